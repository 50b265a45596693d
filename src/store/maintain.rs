//! Putting a store in order between runs: merging its segments, taking keys in, and forgetting a protocol.

use std::io::BufRead;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::disk::RealDisk;
use super::inspect::{find_protocol, latest_of_each, merged, now};
use super::manifest::{Listed, Manifest, unhex};
use super::{Session, segment_path};
use crate::error::Error;
use crate::key::ShortKey;
use crate::protocol::Protocol;
use crate::protocol::ProtocolReport;

impl Session<'_> {
    /// Merges the segments of each protocol into one, without keys that were claimed `ttl` milliseconds ago or before.
    /// Returns how many keys there were, and how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], [`Error::Io`]. The store is then as it was.
    pub fn compact(&mut self, ttl: Option<u64>) -> Result<(u64, u64), Error> {
        let expired = self.expired(ttl);
        let mut manifest = self.manifest.clone();
        let before = manifest.segments.iter().map(|listed| listed.keys).sum();
        manifest.segments.clear();
        for protocol in &self.manifest.protocols {
            let mut keys = merged(self.disk, &self.folder, &self.manifest, &protocol.fingerprint, expired)?;
            if self.is_clock_plausible {
                // What was claimed under a clock that was wrong was claimed before now.
                keys.iter_mut().for_each(|(_, claimed)| *claimed = self.time.min(*claimed));
            }
            self.add_segment(&mut manifest, &protocol.fingerprint, None, keys.iter().copied())?;
        }
        let after = manifest.segments.iter().map(|listed| listed.keys).sum();
        manifest.clock = self.clock();
        self.replace(manifest)?;
        Ok((before, after))
    }

    /// Adds keys, read from text: a key a line in hexadecimal digits, with the protocol's prefix or without. With
    /// `times`, a tab and the claim time (RFC 3339) follow; otherwise a tab and what follows do not count. A key that the
    /// store has keeps its claim. Returns how many lines there were, and how many keys are new.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] with the line that is no key or has no time, [`Error::OtherProtocol`], and as [`Session::compact`].
    pub fn import(
        &mut self,
        protocol: &Protocol,
        source: &str,
        text: &mut dyn BufRead,
        times: bool,
    ) -> Result<(u64, u64), Error> {
        let report = ProtocolReport::of(protocol);
        // While a protocol is changed, there are two, and keys of either may be added.
        if self.manifest.protocols.iter().all(|known| known.fingerprint != report.fingerprint) {
            super::check_protocols(&self.manifest, &self.folder, &[protocol])?;
        }
        let seen = self.load(protocol, None)?;
        let mut keys: Vec<(ShortKey, u64)> = Vec::new();
        let mut lines = 0;
        for line in text.split(b'\n') {
            let line = line.map_err(Error::io("read", source))?;
            lines += 1;
            let line = String::from_utf8_lossy(&line);
            let (digits, rest) = line.split_once('\t').unwrap_or((&line, ""));
            if digits.trim().is_empty() {
                continue;
            }
            let told = |reason| Error::Usage(format!("{source}:{lines}: {reason}"));
            let key = parse_key(digits.trim(), protocol).map_err(told)?;
            let claimed = if times { parse_time(rest.trim()).map_err(told)? } else { self.time };
            keys.push((key, claimed.min(self.time)));
        }
        latest_of_each(&mut keys);
        keys.retain(|(key, _)| !seen.contains(key));
        let mut manifest = self.manifest.clone();
        self.add_segment(&mut manifest, &report.fingerprint, None, keys.iter().copied())?;
        super::note_protocol(&mut manifest.protocols, &report, self.time, true);
        manifest.clock = self.clock();
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
    // A store keeps 16 bytes of a longer key, and zeros after a shorter one.
    if ![2 * bytes, 32].contains(&digits.len()) {
        let or_kept = if bytes == 16 { "" } else { ", or 32 as a store exports them" };
        let (name, digits) = (protocol.name(), digits.len());
        return Err(format!("a key of {name} has {} hexadecimal digits{or_kept}, not {digits}", 2 * bytes));
    }
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("`{digits}` is not in hexadecimal digits"));
    }
    let mut padded = digits.to_owned();
    padded.extend(std::iter::repeat_n('0', 32_usize.saturating_sub(digits.len())));
    match unhex(&padded[..32]) {
        Some(key) if key.iter().skip(bytes).all(|&byte| byte == 0) => Ok(key),
        _ => Err(format!("`{digits}` is longer than a key of {}, of {} digits", protocol.name(), 2 * bytes)),
    }
}

/// The time of a claim (RFC 3339), in milliseconds since 1970.
fn parse_time(text: &str) -> Result<u64, String> {
    let time = humantime::parse_rfc3339(text).map_err(|_| {
        format!("`{text}` is no time; with --times, each line has a key, a tab and a time (RFC 3339)")
    })?;
    Ok(time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64))
}

/// Opens a store that is there, to be changed.
///
/// # Errors
///
/// As [`Session::open`], and [`Error::Usage`] if there is none.
pub fn open(folder: &Path, trust_clock: bool) -> Result<Session<'static>, Error> {
    match Manifest::path(folder).exists() {
        true => open_or_create(folder, trust_clock),
        false => Err(Error::Usage(format!("{}: there is no store", folder.display()))),
    }
}

/// As [`open`], but makes a store if there is none.
///
/// # Errors
///
/// As [`Session::open`].
pub fn open_or_create(folder: &Path, trust_clock: bool) -> Result<Session<'static>, Error> {
    let session = Session::open(&RealDisk, folder, now(), trust_clock)?;
    session.announce("of `firstseen store`", Vec::new())?;
    Ok(session)
}
