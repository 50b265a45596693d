//! firstseen keeps the first-seen copy of every event.
//!
//! It reads JSONL archives, computes a deterministic idempotency key for each event under a named
//! [`Protocol`], keeps the first event of every key, and writes the kept events byte for byte in
//! input order. [`dedup`] is the whole of it, as the command-line tool uses it; [`Keyer`] computes
//! keys alone.
//!
//! # Flow
//!
//! ```text
//!  input ─► split ─► parse ─► canonical ─► key ─► claim ─► emit ─► output
//!  bytes    lines    tape     bytes        16 B   first?   runs    in order
//!  └ reader ┘└────────── workers, by chunk ──┘└─ by shard ┘└ chunk ┘└ writer ┘
//! ```
//!
//! A *batch* is a run of whole lines, a few MiB for each worker; a *chunk* is a slice of a batch
//! that ends at a line end, and the unit of work of a worker; a *line* is a range of bytes in its
//! batch. Data flows one way: a module uses only modules above it in the list below.
//!
//! # Invariants
//!
//! - The key of a line depends on the line and the protocol's settings, and on nothing else. It is
//!   what the reference in `scripts/reference.py` gives.
//! - The output is the same bytes for any number of threads, any batch and chunk size, and any kind
//!   of input: mapped, read, piped, gzip or zstd.
//! - Every line is blank, an event that is written or counted as a duplicate, or a reject that is
//!   collected or ends the run. None is in two outputs, and none in no count.
//! - A file under an output's name is whole: the old one until the run is done, then the new one.
//! - Memory is the seen keys plus a constant: every queue is bounded.

// In reading order, which is the order of the flow.
pub mod error;
pub mod meter;

mod units;

mod hint;

mod crs;

pub mod protocol;

mod config;

mod input;
mod split;

mod tape;

mod exact;

mod parse;

mod number;

mod escape;

mod draft;

mod geometry;

mod transform;

mod project;

mod canonical;

mod quick;

mod key;

mod publish;

pub mod store;

mod seen;

mod analyse;

mod emit;

mod sink;

mod output;

mod report;

mod tally;

mod writer;

mod commit;

mod pipeline;

mod contract;

mod compare;

mod explain;

mod envelope;

#[doc(hidden)]
pub mod stages;

pub use analyse::KeyText;
pub use compare::{Compared, Comparison, RejectedExample, compare};
pub use config::{Config, StoreConfig};
pub use contract::{Verification, record, verify};
pub use crs::Crs;
pub use envelope::{Differing, Findings, check};
pub use error::{Error, Invalid, Reason};
pub use explain::{Difference, Explanation, NumberChange, difference, explain, read_event};
pub use input::Grown;
pub use key::{Key, Keyer};
pub use meter::Meter;
pub use pipeline::{dedup, keys};
pub use protocol::{Fingerprint, Hash, Overrides, Protocol, ProtocolReport, Settings};
pub use publish::abandon;
pub use report::{Counts, InputReport, Report, Seconds, StoreReport};
pub use units::thousands;

/// The most objects and arrays inside each other that an event may have, itself included.
pub const DEPTH_MAX: usize = 1024;

/// The most bytes that a line may have: 256 MiB.
pub const LINE_BYTES_MAX: usize = 256 << 20;
