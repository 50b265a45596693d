//! A run, as it is asked for: plain data that is made once and goes down to the stages.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::Protocol;

/// A run, as it is asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// Files and directories, in order; `-`, or none at all, is standard input.
    pub inputs: Vec<PathBuf>,
    /// What makes two events one.
    pub protocol: Protocol,
    /// Where the events (or keys) go; `None` is standard output.
    pub output: Option<PathBuf>,
    /// Read, count and report, but write no events.
    pub dry_run: bool,
    /// Where events go whose key had been seen.
    pub duplicates: Option<PathBuf>,
    /// Where lines go that are no events. `None`: the first one ends the run.
    pub rejects: Option<PathBuf>,
    /// Where the report goes, as JSON.
    pub report: Option<PathBuf>,
    /// Where keys are remembered from run to run. `None`: nowhere.
    pub store: Option<StoreConfig>,
    /// Worker threads, at most 1024; `None` is one for each core that the process may use.
    pub threads: Option<NonZero<usize>>,
    /// Map regular uncompressed files instead of reading them.
    pub mmap: bool,
    /// Bytes that are in work together; `None` is 4 MiB for each worker.
    pub batch_bytes: Option<NonZero<usize>>,
    /// Bytes that a worker takes at a time.
    pub chunk_bytes: NonZero<usize>,
}

impl Config {
    /// From standard input to standard output under `protocol`, with a worker for each core.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self {
            inputs: Vec::new(),
            protocol,
            output: None,
            dry_run: false,
            duplicates: None,
            rejects: None,
            report: None,
            store: None,
            threads: None,
            mmap: true,
            batch_bytes: None,
            chunk_bytes: NonZero::<usize>::MIN.saturating_add((64 << 10) - 1),
        }
    }
}

/// A store, as a run is to use it.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The folder of the store; it is made if there is none.
    pub folder: PathBuf,
    /// What the run is called; `None` derives it from inputs, output and settings.
    pub run_id: Option<String>,
    /// How long after its first claim a key is forgotten; `None` never forgets.
    pub ttl: Option<Duration>,
    /// Protocols whose keys count too, and are remembered too.
    pub also: Vec<Protocol>,
    /// Whether the inputs are what earlier runs have published: their keys are remembered, in a store that has
    /// none yet, although nothing is written.
    pub adopt: bool,
    /// Whether an output that exists may be replaced.
    pub force: bool,
    /// Whether the clock is right although it is far ahead of the last run.
    pub trust_clock: bool,
}
