//! What a run cannot do without, each alone: reading every byte once, hashing every canonical form once,
//! inserting every key once, writing every kept byte once. And a whole run beside them.
//!
//! Each is done by the fastest way known, on 1 and on 2 threads, with all that it needs made before.
//! `scripts/floor.sh` runs this and prints the run as a ratio to the sum of the others. The feed is the one that
//! the environment's `FLOOR_FEED` names, or a small one; output goes to the temporary folder (`TMPDIR`).

mod feed;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, IoSlice, Write};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};
use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use firstseen::{Config, Keyer, Meter, Protocol, dedup};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The allocator of the command-line tool.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LINES: u64 = 200_000;
const THREADS: [usize; 2] = [1, 2];
/// What a worker takes at a time.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNK_EVENTS: usize = 220;
/// The most slices that one system call takes.
const SLICES_MAX: usize = 1024;

/// A feed, and what a run would have made of it before each stage.
struct Made {
    path: PathBuf,
    map: memmap2::Mmap,
    /// Canonical forms one after another, and where each ends.
    canonical: Vec<u8>,
    ends: Vec<usize>,
    keys: Vec<[u8; 16]>,
    /// Runs of kept lines.
    kept: Vec<Range<usize>>,
}

impl Made {
    fn new(path: PathBuf, protocol: &Protocol) -> Self {
        let file = File::open(&path).expect("the feed is there");
        #[expect(unsafe_code, reason = "as the program does; nobody changes the feed meanwhile")]
        // SAFETY: the feed is this bench's own, or that of who runs it.
        let map = unsafe { memmap2::Mmap::map(&file) }.expect("a file can be mapped");
        let mut keyer = Keyer::new(protocol);
        let (mut canonical, mut ends, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let (mut seen, mut kept) = (HashSet::new(), Vec::<Range<usize>>::new());
        let mut start = 0;
        for line in map.split_inclusive(|&byte| byte == b'\n') {
            let event = line.strip_suffix(b"\n").unwrap_or(line);
            canonical.extend_from_slice(keyer.canonical(event).expect("every line is an event"));
            ends.push(canonical.len());
            let key = keyer.key(event).expect("every line is an event");
            let key: [u8; 16] = key.as_bytes().try_into().expect("the keys of the protocol have 16 bytes");
            keys.push(key);
            let end = start + line.len();
            if seen.insert(key) {
                match kept.last_mut() {
                    Some(run) if run.end == start => run.end = end,
                    _ => kept.push(start..end),
                }
            }
            start = end;
        }
        Self { path, map, canonical, ends, keys, kept }
    }

    /// Looks at every byte.
    fn read(&self) -> u64 {
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        self.map
            .par_chunks(CHUNK_BYTES)
            .map(|chunk| chunk.as_chunks().0.iter().map(word).fold(0, |a, b| a ^ b))
            .sum()
    }

    fn hash(&self) -> u64 {
        let params = Params::new();
        let groups = self.ends.par_chunks(CHUNK_EVENTS).enumerate();
        let group = |(group, ends): (usize, &[usize])| {
            let mut start = group
                .checked_mul(CHUNK_EVENTS)
                .filter(|&first| first > 0)
                .map_or(0, |first| self.ends[first - 1]);
            let mut jobs: Vec<HashManyJob<'_>> = Vec::with_capacity(ends.len());
            for &end in ends {
                jobs.push(HashManyJob::new(&params, &self.canonical[start..end]));
                start = end;
            }
            hash_many(&mut jobs);
            jobs.iter().map(|job| u64::from(job.to_hash().as_bytes()[0])).sum::<u64>()
        };
        groups.map(group).sum()
    }

    /// Inserts keys into tables that are large enough, one for each thread.
    fn insert(&self, parts: &[Vec<[u8; 16]>]) -> usize {
        let insert = |keys: &Vec<[u8; 16]>| {
            let mut table: HashMap<[u8; 16], (), BuildHasherDefault<FirstBytes>> = HashMap::default();
            table.reserve(self.kept.len().max(keys.len()));
            for key in keys {
                table.entry(*key).or_insert(());
            }
            table.len()
        };
        parts.par_iter().map(insert).sum()
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        for runs in self.kept.chunks(SLICES_MAX) {
            let mut slices: Vec<IoSlice<'_>> =
                runs.iter().map(|run| IoSlice::new(&self.map[run.clone()])).collect();
            let mut rest = &mut slices[..];
            while !rest.is_empty() {
                let written = file.write_vectored(rest)?;
                IoSlice::advance_slices(&mut rest, written);
            }
        }
        Ok(())
    }
}

/// The hash of a key is its own first bytes.
#[derive(Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, key: &[u8]) {
        if let Some(first) = key.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started")
}

fn floor(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = std::env::var_os("FLOOR_FEED").map(PathBuf::from).unwrap_or_else(|| {
        let path = folder.path().join("feed.jsonl");
        fs::write(&path, feed::feed(LINES)).expect("the temporary folder has room for the feed");
        path
    });
    let protocol = Protocol::built_in("geojson-v1").expect("there is such a protocol");
    let made = Made::new(path, &protocol);
    let unique: HashSet<_> = made.keys.iter().collect();
    let output = folder.path().join("first.jsonl");
    let mut config = Config::new(protocol);
    config.inputs = vec![made.path.clone()];
    config.output = Some(output.clone());

    let mut group = criterion.benchmark_group("floor");
    // Runs are long: the same number of them in every sample keeps the time in bounds.
    group.sampling_mode(SamplingMode::Flat);
    for threads in THREADS {
        let pool = pool(threads);
        let part = |key: &[u8; 16]| usize::from(key[15]) % threads;
        let parts: Vec<Vec<_>> = (0..threads)
            .map(|number| made.keys.iter().filter(|key| part(key) == number).copied().collect())
            .collect();
        assert_eq!(pool.install(|| made.insert(&parts)), unique.len());
        let id = |stage| BenchmarkId::new(stage, threads);
        group.bench_function(id("read"), |bencher| bencher.iter(|| pool.install(|| made.read())));
        group.bench_function(id("hash"), |bencher| bencher.iter(|| pool.install(|| made.hash())));
        group.bench_function(id("insert"), |bencher| bencher.iter(|| pool.install(|| made.insert(&parts))));
        // One file takes one write at a time, however many threads there are.
        group.bench_function(id("write"), |bencher| {
            bencher.iter(|| made.write(&output).expect("the temporary folder has room for the output"));
        });
        config.threads = NonZero::new(threads);
        group.bench_function(id("run"), |bencher| {
            bencher.iter(|| {
                let report = dedup(&config, &Meter::default().into()).expect("every line is an event");
                assert_eq!(report.total.unique, Some(unique.len() as u64));
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(5))
        .without_plots();
    targets = floor
}
criterion_main!(benches);
