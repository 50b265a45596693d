//! A line to its key.
//!
//! In: the bytes of one line. Out: its canonical bytes, and the [`Key`] that the protocol's hash
//! makes of them. Pure: the same line and protocol always give the same key.

use std::fmt;

use blake2::{Blake2b512, Digest};
use sha2::Sha256;

use crate::canonical::Canonicaliser;
use crate::error::Invalid;
use crate::parse::Parser;
use crate::protocol::{Hash, Protocol};

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
    parser: Parser,
    canonicaliser: Canonicaliser,
    canonical: Vec<u8>,
}

impl Keyer {
    /// A keyer for `protocol`.
    #[must_use]
    pub fn new(protocol: &Protocol) -> Self {
        Self {
            hash: protocol.hash(),
            key_bytes: protocol.key_bytes(),
            parser: Parser::new(),
            canonicaliser: Canonicaliser::new(protocol),
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
        let Self { parser, canonicaliser, canonical, .. } = self;
        canonical.clear();
        parser.parse(line, |tape| canonicaliser.write(tape, canonical))?;
        Ok(canonical)
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
        let mut bytes = [0; 64];
        match self.hash {
            Hash::Blake2b => bytes.copy_from_slice(&Blake2b512::digest(&self.canonical)),
            Hash::Sha256 => bytes[..32].copy_from_slice(&Sha256::digest(&self.canonical)),
        }
        bytes[self.key_bytes..].fill(0);
        // A digest has at most 64 bytes, which fits.
        Key { bytes, length: self.key_bytes as u8 }
    }
}
