//! Looking into a store: what is in it, whether it is whole, and its keys.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::disk::{Disk, RealDisk};
use super::manifest::{Listed, Manifest, hex, unhex};
use super::published::verify_output;
use super::segment::Segment;
use super::{KnownProtocol, open_segment};
use crate::error::Error;
use crate::key::ShortKey;
use crate::units::{exact_time_text, thousands, time_text};

/// What is in a store. It displays as lines for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoreInfo {
    /// All that the manifest says.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// Keys, of all protocols.
    pub keys: u64,
    /// Bytes of all segments.
    pub bytes: u64,
}

/// What `verify` has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// Segments, all of them whole.
    pub segments: u64,
    /// Their keys.
    pub keys: u64,
    /// Outputs, as they were written.
    pub outputs: u64,
}

/// How keys are exported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyFormat {
    /// 32 hexadecimal digits, a line each.
    Hex,
    /// As hexadecimal digits, a tab, and the claim time (RFC 3339).
    Dated,
    /// 16 bytes each.
    Raw,
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// What a folder's store holds, without taking its lock.
///
/// # Errors
///
/// [`Error::Usage`] if there is no store, [`Error::Damaged`], [`Error::Io`].
pub fn info(folder: &Path) -> Result<StoreInfo, Error> {
    let manifest = read(folder)?;
    let sum = |of: fn(&Listed) -> u64| manifest.segments.iter().map(of).sum();
    Ok(StoreInfo { keys: sum(|listed| listed.keys), bytes: sum(|listed| listed.bytes), manifest })
}

fn read(folder: &Path) -> Result<Manifest, Error> {
    Manifest::read(&RealDisk, folder)?
        .ok_or_else(|| Error::Usage(format!("{}: there is no store", folder.display())))
}

impl StoreInfo {
    /// When the keys of a protocol that was used beside another one are no longer needed: when all that only it has
    /// are forgotten. `None` while runs are under it, or of the only protocol.
    fn droppable(&self, old: &KnownProtocol) -> Option<String> {
        let Manifest { protocols, runs, clock, .. } = &self.manifest;
        let in_use = runs.last()?.protocols.first()?;
        let newer = protocols.iter().find(|known| known.fingerprint == in_use.fingerprint)?;
        if newer == old {
            return None;
        }
        let since = newer.since.max(old.alone);
        // The longest time that a run since then has looked back. `None` if one has forgotten nothing.
        let mut later = runs.iter().filter(|run| run.time >= newer.since);
        let longest = later.try_fold(0, |longest: u64, run| Some(longest.max(run.ttl?)));
        Some(match longest.map(|ttl| since.saturating_add(ttl)) {
            None => {
                format!(
                    "needed for events from before {}: not every run forgets keys",
                    time_text(newer.since)
                )
            }
            Some(end) if end <= *clock => "can be dropped".to_owned(),
            Some(end) => format!("can be dropped from {} on", time_text(end)),
        })
    }
}

impl fmt::Display for StoreInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Manifest { store, protocols, segments, runs, clock, .. } = &self.manifest;
        writeln!(f, "store      {store}")?;
        writeln!(
            f,
            "keys       {} in {} segments, {} bytes",
            thousands(self.keys),
            segments.len(),
            thousands(self.bytes)
        )?;
        if *clock > 0 {
            writeln!(f, "clock      {}", time_text(*clock))?;
        }
        for protocol in protocols {
            let KnownProtocol { name, fingerprint, since, until, .. } = protocol;
            let keys: u64 = segments
                .iter()
                .filter(|listed| listed.protocol == *fingerprint)
                .map(|listed| listed.keys)
                .sum();
            let times = format!("{} to {}", time_text(*since), time_text(*until));
            writeln!(f, "protocol   {name} ({fingerprint}): {} keys, {times}", thousands(keys))?;
            if let Some(droppable) = self.droppable(protocol) {
                writeln!(f, "           {droppable}")?;
            }
        }
        for run in runs {
            let state = if run.published { "published" } else { "committed, not published" };
            let output =
                run.outputs.last().map_or("no output".to_owned(), |output| output.path.display().to_string());
            let unique = thousands(run.unique);
            writeln!(
                f,
                "run        {} at {}: {unique} of {} events, {output} ({state})",
                run.id,
                time_text(run.time),
                thousands(run.events)
            )?;
        }
        Ok(())
    }
}

/// Checks every checksum and the order of all keys; with `outputs`, also what the runs have published.
///
/// # Errors
///
/// [`Error::Damaged`] or [`Error::OutputLost`] for the first thing that is wrong.
pub fn verify(folder: &Path, outputs: bool) -> Result<Verified, Error> {
    reading(folder, |manifest| verify_listed(folder, manifest, outputs))
}

/// Reads what a manifest lists, without the lock. If something is not there because a run has replaced the manifest
/// meanwhile, it is done again.
fn reading<T>(folder: &Path, read_listed: impl Fn(&Manifest) -> Result<T, Error>) -> Result<T, Error> {
    let mut manifest = read(folder)?;
    loop {
        let result = read_listed(&manifest);
        let now = read(folder)?;
        if result.is_ok() || now == manifest {
            return result;
        }
        manifest = now;
    }
}

fn verify_listed(folder: &Path, manifest: &Manifest, outputs: bool) -> Result<Verified, Error> {
    let id = store_id(manifest, folder)?;
    let mut verified = Verified::default();
    for listed in &manifest.segments {
        open_segment(&RealDisk, folder, id, listed)?.verify()?;
        verified.segments += 1;
        verified.keys += listed.keys;
    }
    if outputs {
        for run in &manifest.runs {
            if !run.published {
                return Err(Error::Usage(format!(
                    "{}: run `{}` is committed, and what it wrote not all published yet: run it again, or any other run",
                    folder.display(),
                    run.id
                )));
            }
            for output in &run.outputs {
                verify_output(&RealDisk, output, &run.id)?;
                verified.outputs += 1;
            }
        }
    }
    Ok(verified)
}

pub(super) fn store_id(manifest: &Manifest, folder: &Path) -> Result<[u8; 16], Error> {
    unhex(&manifest.store).ok_or_else(|| Error::Damaged {
        path: Manifest::path(folder).display().to_string(),
        reason: "the store's id is none".to_owned(),
    })
}

/// Writes the keys of a protocol, sorted, each once. Returns how many there were.
///
/// # Errors
///
/// [`Error::Damaged`], [`Error::Io`], and [`Error::Usage`] if the store has no keys of it.
pub fn export(folder: &Path, protocol: &str, format: KeyFormat, out: &mut dyn Write) -> Result<u64, Error> {
    let keys = reading(folder, |manifest| {
        let known = find_protocol(manifest, protocol, folder)?;
        merged(&RealDisk, folder, manifest, &known.fingerprint, None)
    })?;
    let write = |text: &[u8], out: &mut dyn Write| match out.write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::BrokenPipe),
        result => result.map_err(Error::io("write", "keys")),
    };
    let mut text = Vec::new();
    for (key, claimed) in &keys {
        match format {
            KeyFormat::Raw => text.extend_from_slice(key),
            KeyFormat::Hex => text.extend_from_slice(format!("{}\n", hex(key)).as_bytes()),
            KeyFormat::Dated => {
                text.extend_from_slice(format!("{}\t{}\n", hex(key), exact_time_text(*claimed)).as_bytes());
            }
        }
        if text.len() > 1 << 20 {
            write(&text, out)?;
            text.clear();
        }
    }
    write(&text, out)?;
    Ok(keys.len() as u64)
}

/// A protocol of the store, by name or fingerprint.
pub(super) fn find_protocol<'a>(
    manifest: &'a Manifest,
    name: &str,
    folder: &Path,
) -> Result<&'a KnownProtocol, Error> {
    let known = |protocol: &&KnownProtocol| protocol.name == name || protocol.fingerprint == name;
    let mut found = manifest.protocols.iter().filter(known);
    match (found.next(), found.next()) {
        (Some(protocol), None) => Ok(protocol),
        (Some(_), Some(_)) => Err(Error::Usage(format!(
            "{}: several protocols are called {name}; give the fingerprint",
            folder.display()
        ))),
        (None, _) => {
            let names: Vec<&str> = manifest.protocols.iter().map(|protocol| protocol.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(Error::Usage(format!(
                "{}: holds no keys of {name}; it has keys of {names}",
                folder.display()
            )))
        }
    }
}

/// The keys of a protocol with their claim times, sorted, each once with its latest one.
pub(super) fn merged(
    disk: &dyn Disk,
    folder: &Path,
    manifest: &Manifest,
    fingerprint: &str,
    expired: Option<u64>,
) -> Result<Vec<(ShortKey, u64)>, Error> {
    let id = store_id(manifest, folder)?;
    let mut keys: Vec<(ShortKey, u64)> = Vec::new();
    let mut buffer = Vec::new();
    for listed in manifest.segments.iter().filter(|listed| listed.protocol == fingerprint) {
        let segment: Segment = open_segment(disk, folder, id, listed)?;
        for block in 0..segment.blocks() {
            segment.read_block(block, &mut buffer, |key, claimed| {
                if expired.is_none_or(|expired| claimed > expired) {
                    keys.push((key, claimed));
                }
            })?;
        }
    }
    latest_of_each(&mut keys);
    Ok(keys)
}

/// Sorts keys, and leaves of each its latest claim.
pub(super) fn latest_of_each(keys: &mut Vec<(ShortKey, u64)>) {
    // The stable sort merges what is sorted already.
    keys.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    keys.dedup_by_key(|(key, _)| *key);
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segments, keys, outputs } = self;
        write!(f, "whole: {segments} segments of {} keys", thousands(*keys))?;
        if *outputs > 0 { writeln!(f, ", {outputs} outputs") } else { writeln!(f) }
    }
}
