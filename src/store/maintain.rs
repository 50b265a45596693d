//! Putting a store in order between runs: merging its segments, taking keys in, and forgetting a protocol.

use std::io::BufRead;
use std::path::Path;

use super::disk::RealDisk;
use super::inspect::{find_protocol, merged, now};
use super::manifest::{Listed, Manifest, unhex};
use super::{Session, segment_path};
use crate::error::Error;
use crate::key::ShortKey;
use crate::protocol::Protocol;

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

    /// Adds keys, read from text: a key a line in hexadecimal digits, with the protocol's prefix or without; a tab and
    /// what follows do not count. A key that the store has keeps its claim. Returns how many lines there were, and how many keys are new.
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
        self.add_segment(&mut manifest, &report.fingerprint, None, keys.iter().copied())?;
        super::note_protocol(&mut manifest.protocols, &report, self.time);
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
        true => open_or_create(folder),
        false => Err(Error::Usage(format!("{}: there is no store", folder.display()))),
    }
}

/// As [`open`], but makes a store if there is none.
///
/// # Errors
///
/// As [`Session::open`].
pub fn open_or_create(folder: &Path) -> Result<Session<'static>, Error> {
    let session = Session::open(&RealDisk, folder, now(), false)?;
    session.announce("of `firstseen store`", Vec::new())?;
    Ok(session)
}
