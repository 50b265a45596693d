//! Counts and timings of a run, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::error::Reason;
use crate::input::Grown;
use crate::meter::Meter;
use crate::protocol::{Protocol, ProtocolReport};
use crate::store::Run;
use crate::units::{thousands, time_text};

/// What a run did. It serialises to the JSON of `--report`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this program.
    pub version: &'static str,
    /// The key protocol.
    pub protocol: ProtocolReport,
    /// Each input, in order.
    pub inputs: Vec<InputReport>,
    /// The sums over all inputs.
    pub total: Counts,
    /// Where the time went.
    pub seconds: Seconds,
    /// Events in total, by wall seconds in total.
    pub events_per_second: f64,
    /// What a store has to do with it; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreReport>,
    /// The most memory that was resident at a time, mapped pages of inputs included, in bytes;
    /// `None` where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
}

/// A store in a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreReport {
    /// What the run is called.
    pub run: String,
    /// The time of the run, at which its keys are claimed, in milliseconds since 1970.
    pub time: u64,
    /// Whether it had been committed before: then nothing was done.
    pub already_committed: bool,
    /// Keys that were remembered from earlier runs.
    pub keys_before: u64,
    /// Keys that this run has added.
    pub keys_added: u64,
    /// Inputs that have grown since the run found them.
    pub grown: Vec<Grown>,
    /// What is to be thought about.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// One input in a report.
#[derive(Clone, Debug, Serialize)]
pub struct InputReport {
    /// What messages call it.
    pub source: String,
    /// What it held.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What lines there were. `lines = blank + events + rejected`, and after `dedup`,
/// `events = unique + duplicates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Bytes, after decompression.
    pub bytes: u64,
    /// Lines of any kind; bytes after the last line end are one too.
    pub lines: u64,
    /// Lines that hold nothing but white space.
    pub blank: u64,
    /// Lines that are events.
    pub events: u64,
    /// Events that are the first of their key. Absent where keys were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<u64>,
    /// Events whose key had been seen. Absent where keys were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Lines that are neither blank nor events.
    pub rejected: u64,
    /// Of those, how many for each reason.
    pub rejected_by_reason: BTreeMap<&'static str, u64>,
    /// Events with a `crs` member that names another system than WGS 84, keyed as they are.
    pub foreign_crs: u64,
    /// Rings of polygons that enclose nothing, and so were left as they are. Counted where
    /// geometries of one shape are one.
    pub degenerate_rings: u64,
}

impl Counts {
    pub(crate) fn add_reject(&mut self, reason: &Reason) {
        self.rejected += 1;
        *self.rejected_by_reason.entry(reason.name()).or_default() += 1;
    }

    fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0) + b?).or(a);
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.blank += other.blank;
        self.events += other.events;
        self.unique = sum(self.unique, other.unique);
        self.duplicates = sum(self.duplicates, other.duplicates);
        self.rejected += other.rejected;
        self.foreign_crs += other.foreign_crs;
        self.degenerate_rings += other.degenerate_rings;
        for (reason, count) in &other.rejected_by_reason {
            *self.rejected_by_reason.entry(reason).or_default() += count;
        }
    }
}

/// Seconds by stage. `total` is wall time; stages overlap, and each is the sum over its threads.
#[derive(Clone, Debug, Serialize)]
pub struct Seconds {
    /// From start to the outputs on disk.
    pub total: f64,
    /// Reading and decompressing. Mapped files are read by whoever looks at them first.
    pub read: f64,
    /// Lines to keys: parse, canonical form, hash.
    pub analyse: f64,
    /// Keys to verdicts.
    pub claim: f64,
    /// Verdicts to runs of lines.
    pub emit: f64,
    /// Writing and compressing.
    pub write: f64,
    /// Bringing the outputs to disk.
    pub publish: f64,
}

impl Report {
    /// The report of a run that had been committed before.
    pub(crate) fn committed(protocol: &Protocol, run: Run, warnings: Vec<String>, wall: Duration) -> Self {
        let mut report = Self::new(protocol, Vec::new(), &Meter::default(), wall);
        report.total.events = run.events;
        report.total.unique = Some(run.unique);
        report.total.duplicates = Some(run.events - run.unique);
        report.store = Some(StoreReport {
            run: run.id,
            time: run.time,
            already_committed: true,
            keys_before: 0,
            keys_added: 0,
            grown: Vec::new(),
            warnings,
        });
        report
    }

    /// What went well but is worth a look, in sentences for people.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let Counts { foreign_crs, degenerate_rings, .. } = &self.total;
        let mut warnings: Vec<String> = self.store.iter().flat_map(|store| store.warnings.clone()).collect();
        for Grown { source, read, bytes } in self.store.iter().flat_map(|store| &store.grown) {
            let (read, appended) = (thousands(*read), thousands(bytes - read));
            warnings.push(format!(
                "{source}: has grown since the run found it; its first {read} bytes were read, {appended} are left for \
                 another run"
            ));
        }
        if *foreign_crs > 0 {
            warnings.push(format!(
                "{} events carry a `crs` member that is not WGS 84, and were keyed as they are; a protocol with \
                 `crs = \"wgs84\"` brings them to longitude and latitude",
                thousands(*foreign_crs)
            ));
        }
        if *degenerate_rings > 0 {
            warnings.push(format!(
                "{} rings enclose nothing (too short, not closed, or of no area), and kept their order",
                thousands(*degenerate_rings)
            ));
        }
        warnings
    }

    pub(crate) fn new(protocol: &Protocol, inputs: Vec<InputReport>, meter: &Meter, wall: Duration) -> Self {
        let mut total = Counts::default();
        for input in &inputs {
            total.add(&input.counts);
        }
        let seconds = Seconds {
            total: wall.as_secs_f64(),
            read: meter.read.seconds(),
            analyse: meter.analyse.seconds(),
            claim: meter.claim.seconds(),
            emit: meter.emit.seconds(),
            write: meter.write.seconds(),
            publish: meter.publish.seconds(),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            protocol: ProtocolReport::of(protocol),
            events_per_second: total.events as f64 / seconds.total,
            inputs,
            total,
            seconds,
            store: None,
            peak_memory_bytes: peak_memory_bytes(),
        }
    }
}

/// The summary at the end of a run: one or two lines.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { events, unique, duplicates, rejected, blank, .. } = &self.total;
        if let Some(store) = self.store.as_ref().filter(|store| store.already_committed) {
            let time = time_text(store.time);
            return write!(
                f,
                "run `{}` was committed at {time} ({} events, {} unique); its output is there, as it was written: \
                 nothing to do",
                store.run,
                thousands(*events),
                thousands(unique.unwrap_or(0))
            );
        }
        write!(f, "{} events", thousands(*events))?;
        if let (Some(unique), Some(duplicates)) = (unique, duplicates) {
            write!(f, ": {} unique, {} duplicates", thousands(*unique), thousands(*duplicates))?;
        }
        for (count, what) in [(rejected, "rejected"), (blank, "blank")] {
            if *count > 0 {
                write!(f, ", {} {what}", thousands(*count))?;
            }
        }
        let rate = thousands(self.events_per_second as u64);
        write!(f, " ({:.2} s, {rate} events/s)", self.seconds.total)?;
        for (index, (reason, count)) in self.total.rejected_by_reason.iter().enumerate() {
            let lead = if index == 0 { "\nrejected: " } else { ", " };
            write!(f, "{lead}{} {reason}", thousands(*count))?;
        }
        Ok(())
    }
}

/// `VmHWM` of proc_pid_status(5).
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
