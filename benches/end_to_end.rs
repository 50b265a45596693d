//! A whole run, from a file to a published file, by number of threads.
//!
//! Bringing the output to disk is part of a run, so the file system that has the temporary folder
//! (`TMPDIR` chooses it) is part of what is measured.

mod feed;

use std::fs;
use std::num::NonZero;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use firstseen::{Config, Meter, Protocol, dedup};

/// The allocator of the command-line tool.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Enough for several batches even with two threads.
const LINES: u64 = 200_000;

fn end_to_end(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let input = folder.path().join("feed.jsonl");
    let feed = feed::feed(LINES);
    fs::write(&input, &feed).expect("the temporary folder has room for the feed");
    let mut config = Config::new(Protocol::built_in("geojson-v1").expect("there is such a protocol"));
    config.inputs = vec![input];
    config.output = Some(folder.path().join("first.jsonl"));

    let mut group = criterion.benchmark_group("end_to_end");
    // Runs are long: the same number of them in every sample keeps the time in bounds.
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Bytes(feed.len() as u64));
    for threads in [1, 2] {
        config.threads = NonZero::new(threads);
        group.bench_function(BenchmarkId::new("threads", threads), |bencher| {
            bencher.iter(|| {
                let report = dedup(&config, &Meter::default().into()).expect("every line is an event");
                // A run that finds other events is no measurement of this feed.
                assert_eq!(report.total.duplicates, Some(LINES / 4));
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5))
        .without_plots();
    targets = end_to_end
}
criterion_main!(benches);
