//! Each stage alone, on one thread: a group for each, with bytes or elements a second.
//!
//! `cargo bench --bench stages -- number` measures the stages whose names contain "number".

mod feed;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use firstseen::stages;
use firstseen::{Hash, Keyer, Overrides, Protocol};

use feed::{Random, coordinate, feed};

/// The allocator of the command-line tool.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LINES: u64 = 20_000;

/// What a worker takes at a time unless it is told otherwise.
const CHUNK_BYTES: usize = 64 << 10;

/// Events in such a chunk, about.
const CHUNK_EVENTS: usize = 220;

/// Doubles in one call of the number stage: few enough to stay in the nearest cache.
const NUMBERS: usize = 2_000;

fn protocol(hash: Hash) -> Protocol {
    let overrides = Overrides { hash: Some(hash), ..Overrides::default() };
    Protocol::built_in("geojson-v1")
        .and_then(|protocol| protocol.derive(&overrides))
        .expect("both hashes have keys as long as the built-in protocol's")
}

fn lines_of(feed: &[u8]) -> Vec<&[u8]> {
    feed.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect()
}

fn split(criterion: &mut Criterion) {
    let feed = feed(LINES);
    let mut group = criterion.benchmark_group("split");
    group.throughput(Throughput::Bytes(feed.len() as u64));
    group.bench_function("feed", |bencher| bencher.iter(|| stages::split(black_box(&feed), CHUNK_BYTES)));
    group.finish();
}

fn parse(criterion: &mut Criterion) {
    let simd = feed(LINES);
    // simd-json refuses these literals, so the exact parser parses these lines.
    let exact = String::from_utf8_lossy(&simd).replace(r#""battery":"#, r#""drain":NaN,"battery":"#);
    let mut group = criterion.benchmark_group("parse");
    for (name, feed) in [("simd", &simd[..]), ("exact", exact.as_bytes())] {
        let lines = lines_of(feed);
        group.throughput(Throughput::Bytes(feed.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| stages::parse(black_box(&lines)).expect("every line is an event"));
        });
    }
    group.finish();
}

/// One chunk's events: a worker finds each tape in the nearest cache, so many of them would measure
/// memory instead.
fn canonical(criterion: &mut Criterion) {
    let protocol = protocol(Hash::Blake2b);
    let mut feed = feed(CHUNK_EVENTS as u64);
    let bytes = feed.len();
    let tapes: Vec<_> = feed
        .split_mut(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| simd_json::to_tape(line).expect("every line is an event"))
        .collect();
    let mut out = Vec::new();
    let mut group = criterion.benchmark_group("canonical");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("feed", |bencher| {
        bencher.iter(|| {
            out.clear();
            stages::canonical(&protocol, black_box(&tapes), &mut out).expect("every event has a form");
        });
    });
    group.finish();
}

fn number(criterion: &mut Criterion) {
    let mut random = Random(1);
    let mut doubles =
        |double: fn(&mut Random) -> f64| -> Vec<f64> { (0..NUMBERS).map(|_| double(&mut random)).collect() };
    let inputs = [
        ("clean_coordinates", doubles(|random| coordinate(random, 180, false))),
        ("drifted_coordinates", doubles(|random| coordinate(random, 180, true))),
        // From 1e15 on, where rounding has nothing to do and the quick way does not apply.
        ("big", doubles(|random| random.below(1 << 53) as f64 * 1e3 + 1e15)),
        // Below 1e-4, where the text has an exponent, and most of them do not round to zero.
        ("tiny", doubles(|random| (1 + random.below(1 << 20)) as f64 / (1_u64 << 34) as f64)),
    ];
    let mut out = Vec::new();
    let mut group = criterion.benchmark_group("number");
    group.throughput(Throughput::Elements(NUMBERS as u64));
    for (name, values) in &inputs {
        for (rounding, decimals) in [("rounded", Some(8)), ("shortest", None)] {
            group.bench_function(BenchmarkId::new(*name, rounding), |bencher| {
                bencher.iter(|| {
                    out.clear();
                    stages::number(black_box(values), decimals, &mut out);
                });
            });
        }
    }
    group.finish();
}

/// All that a worker does to a line: parsing and the canonical form are part of it.
fn key(criterion: &mut Criterion) {
    let feed = feed(LINES);
    let lines = lines_of(&feed);
    let mut group = criterion.benchmark_group("key");
    group.throughput(Throughput::Bytes(feed.len() as u64));
    for hash in [Hash::Blake2b, Hash::Sha256] {
        let mut keyer = Keyer::new(&protocol(hash));
        group.bench_function(hash.name(), |bencher| {
            bencher.iter(|| {
                for line in &lines {
                    black_box(keyer.key(black_box(line)).expect("every line is an event"));
                }
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = stages;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_millis(1500))
        .without_plots();
    targets = split, parse, canonical, number, key
}
criterion_main!(stages);
