//! The output is that of a serial loop over a hash set, whatever the threads, batches and chunks.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::Arc;

use firstseen::{Config, Keyer, Meter, Protocol, dedup};
use proptest::prelude::*;

use crate::tool::Folder;

/// The oracle: what is kept, what is dropped, and what is rejected.
fn serially(input: &[u8]) -> [Vec<u8>; 3] {
    let mut keyer = Keyer::new(&Protocol::built_in("geojson-v1").unwrap());
    let mut seen = HashSet::new();
    let mut outputs = [Vec::new(), Vec::new(), Vec::new()];
    for line in input.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let output = match keyer.key(line) {
            Ok(key) if seen.insert(key.to_string()) => &mut outputs[0],
            Ok(_) => &mut outputs[1],
            Err(_) => &mut outputs[2],
        };
        output.extend_from_slice(line);
        output.push(b'\n');
    }
    outputs
}

fn in_parallel(
    input: &[u8],
    threads: usize,
    batch_bytes: usize,
    chunk_bytes: usize,
    mmap: bool,
) -> [Vec<u8>; 3] {
    let folder = Folder::new();
    let mut config = Config::new(Protocol::built_in("geojson-v1").unwrap());
    config.inputs = vec![folder.file("feed", input)];
    config.output = Some(folder.path().join("kept"));
    config.duplicates = Some(folder.path().join("duplicates"));
    config.rejects = Some(folder.path().join("rejects"));
    config.threads = NonZero::new(threads);
    config.batch_bytes = NonZero::new(batch_bytes);
    config.chunk_bytes = NonZero::new(chunk_bytes).unwrap();
    config.mmap = mmap;
    let report = dedup(&config, &Arc::new(Meter::default())).unwrap();
    let outputs = ["kept", "duplicates", "rejects"].map(|name| folder.read(name));
    let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let total = &report.total;
    assert_eq!(total.lines, total.blank + total.events + total.rejected);
    assert_eq!(
        [total.unique.unwrap(), total.duplicates.unwrap(), total.rejected],
        [lines(&outputs[0]), lines(&outputs[1]), lines(&outputs[2])]
    );
    assert_eq!(total.bytes, input.len() as u64);
    outputs
}

/// Lines of few different events, so that copies meet in one chunk, one batch, and far apart.
fn feed() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        12 => (0..40_u32, any::<bool>()).prop_map(|(id, spaced)| {
            if spaced { format!("{{ \"id\": {id} }}") } else { format!("{{\"id\":{id}}}") }
        }),
        1 => Just(String::new()),
        1 => Just(" \r".to_owned()),
        1 => (0..9_u32).prop_map(|id| format!("{{\"id\":0{id}}}")),
    ];
    (prop::collection::vec(line, 0..300), any::<bool>()).prop_map(|(lines, ended)| {
        let mut feed = lines.join("\n");
        if ended {
            feed.push('\n');
        }
        feed.into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_outputs_are_those_of_a_serial_loop(
        feed in feed(),
        threads in 1..9_usize,
        batch_bytes in 1..3000_usize,
        chunk_bytes in 1..500_usize,
        mmap in any::<bool>(),
    ) {
        prop_assert_eq!(in_parallel(&feed, threads, batch_bytes, chunk_bytes, mmap), serially(&feed));
    }
}

#[test]
fn a_large_feed_gives_what_a_serial_loop_gives() {
    let mut feed = Vec::new();
    for number in 0..60_000_u64 {
        let id = number * number % 40_009;
        feed.extend_from_slice(
            format!("{{\"id\":{id},\"x\":{}.5,\"attempt\":{number}}}\n", id % 180).as_bytes(),
        );
    }
    let expected = serially(&feed);
    assert!(expected.iter().take(2).all(|output| output.len() > 100_000));
    for threads in [1, 2, 8] {
        assert!(in_parallel(&feed, threads, 300_000, 10_000, true) == expected, "{threads} threads");
    }
}
