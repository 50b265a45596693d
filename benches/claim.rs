//! Claiming keys where the filter holds many already: `cargo bench --bench claim`.
//!
//! A table of nanoseconds a key, for filters of 10^6, 10^7 and 10^8 keys, or up to as many as the
//! environment's `CLAIM_KEYS` says: what growing to that many took, growth of the tables included; what the
//! next million took; and what it took to find a million, spread over all, again. It is the slice of a run
//! that depends on the filter's size. 10^8 keys need 2.5 GB of memory.

use std::env;
use std::time::Instant;

use firstseen::stages::{Claims, Filter};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The allocator of the command-line tool.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CHUNK_EVENTS: u64 = 220;
/// Chunks in a batch of one worker, which is 4 MiB.
const BATCH_CHUNKS: u64 = 64;
const TIMED_KEYS: u64 = 1_000_000;

fn main() {
    let most =
        env::var("CLAIM_KEYS").map_or(100_000_000, |keys| keys.parse().expect("CLAIM_KEYS is a number"));
    println!(
        "nanoseconds a key\n\n| threads | keys | to there | a million more | a million again |\n|---|---|---|---|---|"
    );
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
        let filter = Filter::new();
        let mut held = 0;
        let mut to_there = 0.0;
        for keys in [1_000_000, 10_000_000, 100_000_000].into_iter().filter(|&keys| keys <= most) {
            to_there += seconds(&pool, &filter, held, 1, keys - held, 0);
            let more = seconds(&pool, &filter, keys, 1, TIMED_KEYS, 0);
            let again = seconds(&pool, &filter, 0, keys / TIMED_KEYS, TIMED_KEYS, TIMED_KEYS);
            held = keys + TIMED_KEYS;
            println!(
                "| {threads} | {keys} | {:.0} | {:.0} | {:.0} |",
                to_there * 1e9 / keys as f64,
                more * 1e9 / TIMED_KEYS as f64,
                again * 1e9 / TIMED_KEYS as f64,
            );
        }
    }
}

/// How long it takes to claim `count` keys, of which `known` were claimed before: those of the numbers from
/// `first` on, `step` apart.
fn seconds(pool: &ThreadPool, filter: &Filter, first: u64, step: u64, count: u64, known: u64) -> f64 {
    let batch_events = CHUNK_EVENTS * BATCH_CHUNKS * pool.current_num_threads() as u64;
    let (mut took, mut repeated) = (0.0, 0);
    for start in (0..count).step_by(batch_events as usize) {
        let end = count.min(start + batch_events);
        let chunk = |from: u64| {
            let to = end.min(from + CHUNK_EVENTS);
            Claims::group(&(from..to).map(|number| key(first + number * step)).collect::<Vec<_>>())
        };
        let batch: Vec<Claims> = pool.install(|| {
            (start..end)
                .step_by(CHUNK_EVENTS as usize)
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(chunk)
                .collect()
        });
        let began = Instant::now();
        pool.install(|| filter.claim(&batch));
        took += began.elapsed().as_secs_f64();
        repeated += batch.iter().map(Claims::duplicates).sum::<u64>();
    }
    assert_eq!(repeated, known);
    took
}

/// As good as random, and different for every number: steps of the SplitMix64 generator.
fn key(number: u64) -> [u8; 16] {
    let mut state = number.wrapping_mul(2);
    let mut next = || {
        state = state.wrapping_add(1);
        let mixed = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let (high, low) = (next(), next());
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}
