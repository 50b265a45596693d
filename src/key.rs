//! A line to its key.
//!
//! In: the bytes of one line. Out: its canonical bytes, and the [`Key`] that the protocol's hash
//! makes of them. Pure: the same line and protocol always give the same key.

use std::fmt;
use std::iter;
use std::mem;

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};
use sha2::{Digest, Sha256};

use crate::canonical::Canonicaliser;
use crate::error::Invalid;
use crate::geometry::{Geometer, Notes};
use crate::parse::Parser;
use crate::project::Projector;
use crate::protocol::{Hash, Protocol, Scheme};
use crate::quick::Quick;

/// An idempotency key: the leading bytes of the digest of an event's canonical form.
///
/// It displays as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Zero from `length` on.
    bytes: [u8; 64],
    length: u8,
}

impl Key {
    /// The bytes of the key, as many as the protocol keeps (1 to 64).
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// What the first-seen filter compares: the first 16 bytes, zeros in place of what a shorter
    /// key does not have.
    pub(crate) fn short(&self) -> ShortKey {
        let mut short = [0; 16];
        short.copy_from_slice(&self.bytes[..16]);
        short
    }
}

/// The 16 bytes that the filter holds of a key.
pub(crate) type ShortKey = [u8; 16];

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Longer lines are rare, and their buffers are given back after them.
pub(crate) const LONG_LINE_BYTES: usize = 16 << 20;

/// Computes keys under one protocol. Its buffers are reused from line to line.
///
/// ```
/// use firstseen::{Keyer, Protocol};
///
/// let mut keyer = Keyer::new(&Protocol::built_in("geojson-v1")?);
/// let first = keyer.key(br#"{"type":"Feature","reading":17.3,"attempt":1}"#)?;
/// let again = keyer.key(br#"{"attempt":2, "reading":17.300000000000001, "type":"Feature"}"#)?;
/// assert_eq!(first, again);
/// assert_eq!(keyer.canonical(br#"{"b": 1.50, "a": null}"#)?, br#"{"a":null,"b":1.5}"#);
///
/// let error = keyer.key(b"{\"a\":01}").unwrap_err();
/// assert_eq!(error.to_string(), "byte 7: malformed number");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Keyer {
    hash: Hash,
    key_bytes: usize,
    /// The line is its own canonical form.
    bytes: bool,
    quick: Quick,
    by_parsing: ByParsing,
    notes: Notes,
    canonical: Vec<u8>,
}

/// The way of a line that is parsed.
struct ByParsing {
    parser: Parser,
    geometer: Geometer,
    /// `None` where the event is hashed as it is.
    projector: Option<Projector>,
    canonicaliser: Canonicaliser,
}

/// What is to be known of a line that was parsed.
struct Parsed {
    notes: Notes,
    /// Whether lines of its shape are treated like it in all that is not the text of a value.
    is_like_others: bool,
}

impl ByParsing {
    fn new(protocol: &Protocol) -> Self {
        Self {
            parser: Parser::new(),
            geometer: Geometer::new(protocol),
            projector: Projector::new(protocol),
            canonicaliser: Canonicaliser::new(protocol),
        }
    }

    fn write(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<Parsed, Invalid> {
        let Self { parser, geometer, projector, canonicaliser } = self;
        let start = out.len();
        parser.parse(line, |tape| {
            // If this is the second tape of the line, the first one left something.
            out.truncate(start);
            let mut notes = Notes::default();
            let is_like_others = geometer.leaves_alone(tape, line);
            let normalised = geometer.normalise(tape, line, &mut notes)?;
            let tape = normalised.as_ref().unwrap_or(tape);
            match projector {
                Some(projector) => canonicaliser.write(&projector.project(tape)?, out)?,
                None => canonicaliser.write(tape, out)?,
            }
            Ok(Parsed { notes, is_like_others })
        })
    }

    /// Gives back what a long line needed.
    fn give_back(&mut self) {
        self.parser = Parser::new();
        self.geometer.give_back();
        self.canonicaliser.give_back();
        if let Some(projector) = &mut self.projector {
            projector.give_back();
        }
    }
}

impl Keyer {
    /// A keyer for `protocol`.
    #[must_use]
    pub fn new(protocol: &Protocol) -> Self {
        let by_parsing = ByParsing::new(protocol);
        Self {
            hash: protocol.settings().hash,
            key_bytes: protocol.settings().key_bytes,
            bytes: protocol.settings().scheme == Scheme::Bytes,
            quick: Quick::new(protocol, &by_parsing.geometer),
            by_parsing,
            notes: Notes::default(),
            canonical: Vec::new(),
        }
    }

    /// The key of the event that `line` holds, one JSON object without its line end. White space
    /// around the object, a trailing carriage return included, does not count.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the line is no event.
    pub fn key(&mut self, line: &[u8]) -> Result<Key, Invalid> {
        self.canonical(line)?;
        Ok(self.hash_canonical())
    }

    /// The canonical form of the event that `line` holds: UTF-8, without a line end.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the line is no event.
    pub fn canonical(&mut self, line: &[u8]) -> Result<&[u8], Invalid> {
        let mut canonical = mem::take(&mut self.canonical);
        canonical.clear();
        canonical.shrink_to(LONG_LINE_BYTES);
        let appended = self.append_canonical(line, &mut canonical);
        self.canonical = canonical;
        appended.map(|()| &self.canonical[..])
    }

    /// Appends the canonical form of the event that `line` holds; if it holds none, nothing.
    pub(crate) fn append_canonical(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), Invalid> {
        if self.bytes {
            out.extend_from_slice(line);
            return Ok(());
        }
        let Self { quick, by_parsing, .. } = self;
        if quick.write(line, out, |probe, out| by_parsing.write(probe, out).map(|_| ())) {
            return Ok(());
        }
        let start = out.len();
        let written = by_parsing.write(line, out);
        if line.len() > LONG_LINE_BYTES {
            by_parsing.give_back();
        }
        let parsed = written.inspect_err(|_| out.truncate(start))?;
        self.notes.add(parsed.notes);
        if parsed.is_like_others {
            quick.learn(line, |probe, out| by_parsing.write(probe, out).map(|_| ()));
        }
        Ok(())
    }

    /// What there is to tell about the events since this was last asked.
    pub(crate) fn take_notes(&mut self) -> Notes {
        mem::take(&mut self.notes)
    }

    /// The key and the canonical form of the event that `line` holds.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the line is no event.
    pub fn key_and_canonical(&mut self, line: &[u8]) -> Result<(Key, &[u8]), Invalid> {
        let key = self.key(line)?;
        Ok((key, &self.canonical))
    }

    fn hash_canonical(&self) -> Key {
        match self.hash {
            Hash::Blake2b => self.key_of(Params::new().hash(&self.canonical).as_bytes()),
            Hash::Sha256 => self.key_of(&Sha256::digest(&self.canonical)),
        }
    }

    /// The keys of canonical forms that stand one after another in `canonical`, each to its end in
    /// `ends`. Several are hashed at a time, where the processor can.
    pub(crate) fn hash_all(&self, canonical: &[u8], ends: &[usize], mut keys: impl FnMut(Key)) {
        let starts = iter::once(0).chain(ends.iter().copied());
        let forms = starts.zip(ends).map(|(start, &end)| &canonical[start..end]);
        match self.hash {
            Hash::Blake2b => {
                let params = Params::new();
                let mut jobs: Vec<HashManyJob<'_>> =
                    forms.map(|form| HashManyJob::new(&params, form)).collect();
                hash_many(&mut jobs);
                jobs.iter().for_each(|job| keys(self.key_of(job.to_hash().as_bytes())));
            }
            Hash::Sha256 => forms.for_each(|form| keys(self.key_of(&Sha256::digest(form)))),
        }
    }

    fn key_of(&self, digest: &[u8]) -> Key {
        let mut bytes = [0; 64];
        bytes[..self.key_bytes].copy_from_slice(&digest[..self.key_bytes]);
        // A digest has at most 64 bytes, which fits.
        Key { bytes, length: self.key_bytes as u8 }
    }
}

#[cfg(test)]
mod tests {
    use blake2::Blake2b512;

    use super::*;
    use crate::protocol::Overrides;

    #[test]
    fn both_ways_to_hash_agree_with_another_implementation() {
        let content: Vec<u8> = (0..100_000_u64).map(|number| (number * number / 8) as u8).collect();
        // Lengths around the block of 128 bytes, in groups of every size.
        let lengths = [0, 1, 63, 127, 128, 129, 193, 255, 256, 257, 1000, 5000];
        let mut ends = Vec::new();
        for count in 0..40 {
            ends.push(ends.last().unwrap_or(&0) + lengths[count * 7 % lengths.len()]);
            for hash in [Hash::Blake2b, Hash::Sha256] {
                let overrides = Overrides { hash: Some(hash), key_bytes: Some(0), ..Overrides::default() };
                let protocol = Protocol::built_in("geojson-v1").unwrap().derive(&overrides).unwrap();
                let mut keyer = Keyer::new(&protocol);
                let mut keys = Vec::new();
                keyer.hash_all(&content, &ends, |key| keys.push(key));
                assert_eq!(keys.len(), ends.len());
                let starts = iter::once(&0).chain(&ends);
                for ((&start, &end), key) in starts.zip(&ends).zip(keys) {
                    let form = &content[start..end];
                    let expected = match hash {
                        Hash::Blake2b => Blake2b512::digest(form).to_vec(),
                        Hash::Sha256 => Sha256::digest(form).to_vec(),
                    };
                    assert_eq!(key.as_bytes(), expected, "{hash:?} of {} bytes", form.len());
                    keyer.canonical = form.to_vec();
                    assert_eq!(keyer.hash_canonical(), key);
                }
            }
        }
    }
}
