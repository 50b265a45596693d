//! What a run has done so far, for whoever watches it: counters and stopwatches that any thread
//! may add to and read at any time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The sum so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time spent, summed over threads.
#[derive(Debug, Default)]
pub struct Stopwatch(Counter);

impl Stopwatch {
    pub(crate) fn add(&self, spent: Duration) {
        // 2^64 ns are 584 years.
        self.0.add(spent.as_nanos() as u64);
    }

    /// The sum so far, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.0.get() as f64 / 1e9
    }
}

/// Counters and stopwatches of one run.
#[derive(Debug, Default)]
pub struct Meter {
    /// Bytes on disk of all inputs; 0 until they are known, and where one of them is a pipe.
    pub input_bytes: Counter,
    /// Bytes taken from the inputs, compressed ones as they are on disk.
    pub raw_bytes: Counter,
    /// Events seen.
    pub events: Counter,
    /// Events that had been seen before.
    pub duplicates: Counter,
    /// Reading and decompressing.
    pub read: Stopwatch,
    /// Lines to keys.
    pub analyse: Stopwatch,
    /// Keys to verdicts.
    pub claim: Stopwatch,
    /// Verdicts to runs of bytes.
    pub emit: Stopwatch,
    /// Writing and compressing.
    pub write: Stopwatch,
    /// Flushing the outputs to disk.
    pub publish: Stopwatch,
}
