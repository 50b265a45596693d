//! What is done to a store between runs: looking, checking, and putting its segments in order.

use std::fmt;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::disk::{Disk, RealDisk};
use super::manifest::{Listed, Manifest, hex, unhex};
use super::segment::{Header, Segment};
use super::{KnownProtocol, Session, open_segment, segment_path, verify_output};
use crate::error::Error;
use crate::key::ShortKey;
use crate::protocol::Protocol;
use crate::report::thousands;

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

/// A time for people and programs (RFC 3339), to the second.
pub(crate) fn time_text(time: u64) -> String {
    // Times past the year 9999 have no such text.
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(time.min(253_402_300_799_000)))
        .to_string()
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
    /// are forgotten. `None` while it is used alone, or never.
    fn droppable(&self, old: &KnownProtocol) -> Option<String> {
        let newer = self
            .manifest
            .protocols
            .iter()
            .filter(|other| other.since > old.since)
            .min_by_key(|new| new.since)?;
        let last = self.manifest.runs.last()?;
        Some(match last.ttl {
            None => format!("needed for events from before {}: no run forgets keys", time_text(newer.since)),
            Some(ttl) if newer.since.saturating_add(ttl) <= self.manifest.clock => {
                "can be dropped".to_owned()
            }
            Some(ttl) => format!("can be dropped from {} on", time_text(newer.since.saturating_add(ttl))),
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
            let KnownProtocol { name, fingerprint, since, until } = protocol;
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
    let manifest = read(folder)?;
    let id = store_id(&manifest, folder)?;
    let mut verified = Verified::default();
    for listed in &manifest.segments {
        open_segment(&RealDisk, folder, id, listed)?.verify()?;
        verified.segments += 1;
        verified.keys += listed.keys;
    }
    if outputs {
        for run in &manifest.runs {
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
    let manifest = read(folder)?;
    let known = find_protocol(&manifest, protocol, folder)?;
    let keys = merged(&RealDisk, folder, &manifest, &known.fingerprint, None)?;
    let mut text = Vec::new();
    for (key, claimed) in &keys {
        match format {
            KeyFormat::Raw => text.extend_from_slice(key),
            KeyFormat::Hex => text.extend_from_slice(format!("{}\n", hex(key)).as_bytes()),
            KeyFormat::Dated => {
                text.extend_from_slice(format!("{}\t{}\n", hex(key), time_text(*claimed)).as_bytes());
            }
        }
        if text.len() > 1 << 20 {
            out.write_all(&text).map_err(Error::io("write", "keys"))?;
            text.clear();
        }
    }
    out.write_all(&text).map_err(Error::io("write", "keys"))?;
    Ok(keys.len() as u64)
}

/// A protocol of the store, by name or fingerprint.
fn find_protocol<'a>(manifest: &'a Manifest, name: &str, folder: &Path) -> Result<&'a KnownProtocol, Error> {
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
fn merged(
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
    // The stable sort merges what is sorted already. Of one key, the latest claim comes first, and stays.
    keys.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    keys.dedup_by_key(|(key, _)| *key);
    Ok(keys)
}

impl Session<'_> {
    /// Merges the segments of each protocol into one, without keys that were claimed `ttl` milliseconds ago or before.
    /// Returns how many keys there were, and how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], [`Error::Io`]. The store is then as it was.
    pub fn compact(&mut self, ttl: Option<u64>) -> Result<(u64, u64), Error> {
        let expired = ttl.filter(|_| self.is_clock_plausible).and_then(|ttl| self.time.checked_sub(ttl));
        let mut manifest = self.manifest.clone();
        let before = manifest.segments.iter().map(|listed| listed.keys).sum();
        manifest.segments.clear();
        for protocol in &self.manifest.protocols {
            let keys = merged(self.disk, &self.folder, &self.manifest, &protocol.fingerprint, expired)?;
            manifest.segments.extend(self.write_merged(
                &mut manifest.next_segment,
                &protocol.fingerprint,
                &keys,
            )?);
        }
        let after = manifest.segments.iter().map(|listed| listed.keys).sum();
        manifest.clock = manifest.clock.max(self.time);
        self.replace(manifest)?;
        Ok((before, after))
    }

    /// Adds keys, read from text: a key a line in hexadecimal digits, with the protocol's prefix or without; a tab and
    /// what follows do not count. Returns how many lines there were, and how many keys are new.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] with the line that is no key, and as [`Session::compact`].
    pub fn import(
        &mut self,
        protocol: &Protocol,
        source: &str,
        text: &mut dyn BufRead,
    ) -> Result<(u64, u64), Error> {
        super::check_protocols(&self.manifest, &self.folder, &[protocol])?;
        let report = crate::report::ProtocolReport::of(protocol);
        let seen = self.load(protocol, None)?;
        let mut keys: Vec<(ShortKey, u64)> = Vec::new();
        let mut lines = 0;
        for line in text.split(b'\n') {
            let line = line.map_err(Error::io("read", source))?;
            lines += 1;
            let line = String::from_utf8_lossy(&line);
            let digits = line.split('\t').next().unwrap_or("").trim();
            if digits.is_empty() {
                continue;
            }
            let key = parse_key(digits, protocol)
                .map_err(|reason| Error::Usage(format!("{source}:{lines}: {reason}")))?;
            keys.push((key, self.time));
        }
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|(key, _)| !seen.contains(key));
        let mut manifest = self.manifest.clone();
        manifest.segments.extend(self.write_merged(
            &mut manifest.next_segment,
            &report.fingerprint,
            &keys,
        )?);
        super::note_protocol(&mut manifest.protocols, &report, self.time);
        manifest.clock = manifest.clock.max(self.time);
        self.replace(manifest)?;
        Ok((lines, keys.len() as u64))
    }

    /// Forgets a protocol, by name or fingerprint, and all its keys. Returns how many these were.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] if there are no keys of it, or of no other, and as [`Session::compact`].
    pub fn drop_protocol(&mut self, name: &str) -> Result<u64, Error> {
        let fingerprint = find_protocol(&self.manifest, name, &self.folder)?.fingerprint.clone();
        if self.manifest.protocols.len() == 1 {
            let folder = self.folder.display();
            return Err(Error::Usage(format!(
                "{folder}: {name} is its only protocol; to forget all, remove the folder"
            )));
        }
        let mut manifest = self.manifest.clone();
        let is_dropped = |listed: &&Listed| listed.protocol == fingerprint;
        let keys = manifest.segments.iter().filter(is_dropped).map(|listed| listed.keys).sum();
        manifest.segments.retain(|listed| listed.protocol != fingerprint);
        manifest.protocols.retain(|protocol| protocol.fingerprint != fingerprint);
        self.replace(manifest)?;
        Ok(keys)
    }

    /// Writes a segment of keys that have claim times of their own, if there are any.
    fn write_merged(
        &self,
        next: &mut u64,
        fingerprint: &str,
        keys: &[(ShortKey, u64)],
    ) -> Result<Option<Listed>, Error> {
        let times = || keys.iter().map(|(_, claimed)| *claimed);
        let (Some(earliest), Some(latest)) = (times().min(), times().max()) else { return Ok(None) };
        let header = Header {
            store: self.id,
            protocol: unhex(fingerprint).unwrap_or_default(),
            run: [0; 16],
            latest,
            earliest,
            keys: keys.len() as u64,
            dated: earliest < latest,
        };
        let number = *next;
        *next += 1;
        self.write_segment(number, &header, None, keys.iter().copied()).map(Some)
    }

    /// Puts another manifest in place, and removes the segments that it no longer lists.
    fn replace(&mut self, mut manifest: Manifest) -> Result<(), Error> {
        self.disk
            .sync_folder(&self.folder)
            .map_err(Error::io("bring to disk", self.folder.display().to_string()))?;
        manifest.write(self.disk, &self.folder).map_err(super::Uncommitted::into_error)?;
        let old = std::mem::replace(&mut self.manifest, manifest);
        for listed in old.segments {
            if self.manifest.segments.iter().all(|kept| kept.number != listed.number) {
                let path = segment_path(&self.folder, listed.number);
                self.disk.remove(&path).map_err(Error::io("remove", path.display().to_string()))?;
            }
        }
        Ok(())
    }
}

/// The bytes that the filter compares, of a key in hexadecimal digits.
fn parse_key(digits: &str, protocol: &Protocol) -> Result<ShortKey, String> {
    let settings = protocol.settings();
    let digits = digits.strip_prefix(&settings.prefix).unwrap_or(digits);
    let bytes = settings.key_bytes;
    if digits.len() != 2 * bytes {
        return Err(format!(
            "a key of {} has {} hexadecimal digits, not {}",
            protocol.name(),
            2 * bytes,
            digits.len()
        ));
    }
    let kept = bytes.min(16);
    let mut key = [0; 16];
    for (byte, place) in key.iter_mut().take(kept).enumerate().map(|(at, place)| (2 * at, place)) {
        let pair = digits.get(byte..byte + 2).and_then(unhex::<1>);
        *place = pair.ok_or_else(|| format!("`{digits}` is not in hexadecimal digits"))?[0];
    }
    match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => Ok(key),
        false => Err(format!("`{digits}` is not in hexadecimal digits")),
    }
}

/// Opens a store that is there, to be changed.
///
/// # Errors
///
/// As [`Session::open`], and [`Error::Usage`] if there is none.
pub fn open(folder: &Path) -> Result<Session<'static>, Error> {
    match Manifest::path(folder).exists() {
        true => Session::open(&RealDisk, folder, now(), false),
        false => Err(Error::Usage(format!("{}: there is no store", folder.display()))),
    }
}

/// As [`open`], but makes a store if there is none.
///
/// # Errors
///
/// As [`Session::open`].
pub fn open_or_create(folder: &Path) -> Result<Session<'static>, Error> {
    Session::open(&RealDisk, folder, now(), false)
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segments, keys, outputs } = self;
        write!(f, "whole: {segments} segments of {} keys", thousands(*keys))?;
        if *outputs > 0 { writeln!(f, ", {outputs} outputs") } else { writeln!(f) }
    }
}
