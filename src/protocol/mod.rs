//! Key protocols: every setting that decides which events are one.
//!
//! In: a small TOML text, or a built-in's name, and the overrides of a command line. Out: a
//! [`Protocol`] whose settings are valid. What always holds: two protocols with the same meaning
//! have the same [fingerprint](Protocol::fingerprint), whatever their names and texts.

use std::fmt;

use serde::Deserialize;

use crate::error::Error;

/// The built-in protocols: name and text.
const BUILT_IN: [(&str, &str); 1] = [("geojson-v1", include_str!("geojson-v1.toml"))];

/// The most decimals that a protocol can round to: from 324 on, CPython's `round` leaves every double
/// as it is.
pub const DECIMALS_MAX: u16 = 323;

/// The hash function that turns canonical bytes into a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// BLAKE2b (RFC 7693) with its full digest of 64 bytes.
    Blake2b,
    /// SHA-256 (FIPS 180-4), a digest of 32 bytes.
    Sha256,
}

impl Hash {
    /// The length of the whole digest in bytes.
    #[must_use]
    pub fn digest_bytes(self) -> usize {
        match self {
            Self::Blake2b => 64,
            Self::Sha256 => 32,
        }
    }

    /// The name used in protocol files and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake2b => "blake2b",
            Self::Sha256 => "sha256",
        }
    }
}

/// A set of member names, quick to ask for names of a length that none of them has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSet {
    /// Sorted, each once.
    names: Vec<String>,
    /// Bit `min(length, 63)` is set when a name has that length.
    lengths: u64,
}

impl NameSet {
    fn new(mut names: Vec<String>) -> Self {
        names.sort_unstable();
        names.dedup();
        let lengths = names.iter().fold(0, |bits, name| bits | Self::length_bit(name));
        Self { names, lengths }
    }

    fn length_bit(name: &str) -> u64 {
        1 << name.len().min(63)
    }

    /// Whether `name` is one of the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, name: &str) -> bool {
        self.lengths & Self::length_bit(name) != 0 && self.names.iter().any(|n| n == name)
    }

    /// The names, sorted.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// A key protocol: the settings that decide which events have one key.
///
/// ```
/// use firstseen::Protocol;
///
/// let protocol = Protocol::built_in("geojson-v1")?;
/// assert_eq!(protocol.decimals(), Some(8));
/// assert!(protocol.strip().contains("delivery_id"));
/// # Ok::<(), firstseen::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    name: String,
    doc: String,
    strip: NameSet,
    decimals: Option<u16>,
    hash: Hash,
    key_bytes: usize,
}

/// Changes to a protocol that a command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Round doubles to this many decimals.
    pub decimals: Option<u16>,
    /// Hash with this function.
    pub hash: Option<Hash>,
    /// Keep this many bytes of the digest; 0 keeps it whole.
    pub key_bytes: Option<usize>,
    /// Strip these top-level members as well.
    pub strip: Vec<String>,
    /// Strip only the members of `strip`.
    pub no_default_strip: bool,
}

impl Protocol {
    /// The built-in protocol of that name.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] with the names there are, if it is none of them.
    pub fn built_in(name: &str) -> Result<Self, Error> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::from_toml(name, text),
            None => {
                let known: Vec<&str> = BUILT_IN.iter().map(|(known, _)| *known).collect();
                Err(invalid(name, format!("there is no such protocol; there is {}", known.join(", "))))
            }
        }
    }

    fn from_toml(source: &str, text: &str) -> Result<Self, Error> {
        let file: File = toml::from_str(text).map_err(|error| invalid(source, error.to_string()))?;
        Self {
            name: file.name,
            doc: file.doc,
            strip: NameSet::new(file.event.strip),
            decimals: file.numbers.decimals,
            hash: file.key.hash,
            key_bytes: file.key.bytes,
        }
        .resolve()
    }

    /// This protocol with some settings changed. Its name tells the changes; without any, it is
    /// the same protocol.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] if a value is out of its range.
    pub fn derive(&self, overrides: &Overrides) -> Result<Self, Error> {
        let mut strip = if overrides.no_default_strip { Vec::new() } else { self.strip.names.clone() };
        strip.extend_from_slice(&overrides.strip);
        let mut derived = Self {
            name: self.name.clone(),
            doc: self.doc.clone(),
            strip: NameSet::new(strip),
            decimals: overrides.decimals.or(self.decimals),
            hash: overrides.hash.unwrap_or(self.hash),
            key_bytes: overrides.key_bytes.unwrap_or(self.key_bytes),
        }
        .resolve()?;
        derived.name = self.derived_name(&derived);
        Ok(derived)
    }

    /// The name of `derived`: this one's, and each setting in which they differ.
    fn derived_name(&self, derived: &Self) -> String {
        let mut name = self.name.clone();
        if let Some(decimals) = derived.decimals.filter(|_| derived.decimals != self.decimals) {
            name.push_str(&format!("+decimals={decimals}"));
        }
        if derived.hash != self.hash {
            name.push_str(&format!("+hash={}", derived.hash.name()));
        }
        if derived.key_bytes != self.key_bytes {
            name.push_str(&format!("+bytes={}", derived.key_bytes));
        }
        if derived.strip != self.strip {
            let names: Vec<String> = derived.strip.names.iter().map(|name| quoted(name)).collect();
            name.push_str(&format!("+strip={}", names.join(",")));
        }
        name
    }

    /// Checks the settings and replaces the ones that stand for others.
    fn resolve(mut self) -> Result<Self, Error> {
        if self.decimals.is_some_and(|decimals| decimals > DECIMALS_MAX) {
            return Err(invalid(&self.name, format!("decimals must be from 0 to {DECIMALS_MAX}")));
        }
        let most = self.hash.digest_bytes();
        if self.key_bytes > most {
            let hash = self.hash.name();
            return Err(invalid(
                &self.name,
                format!(
                    "a {hash} key has at most {most} bytes (0 stands for all of them), not {}",
                    self.key_bytes
                ),
            ));
        }
        if self.key_bytes == 0 {
            self.key_bytes = most;
        }
        Ok(self)
    }

    /// What the protocol is called; of a derived one, the base's name and what differs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One sentence on what it is for.
    #[must_use]
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// The top-level members that are left out.
    #[must_use]
    pub fn strip(&self) -> &NameSet {
        &self.strip
    }

    /// The decimals that doubles are rounded to; `None` leaves them as they are.
    #[must_use]
    pub fn decimals(&self) -> Option<u16> {
        self.decimals
    }

    /// The hash function.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The length of a key in bytes, from 1 to the length of the digest.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// What tells protocols apart: the first 16 bytes, in hexadecimal, of the BLAKE2b digest of
    /// the settings as sorted, compact JSON.
    ///
    /// Name, documentation and the order in which names to strip are listed do not count. A
    /// setting that a later version adds counts only where it is not at its default, so that the
    /// fingerprints of older protocols stay what they are.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut settings = serde_json::json!({
            "event": {"strip": self.strip.names},
            "key": {"bytes": self.key_bytes, "hash": self.hash.name()},
        });
        if let Some(decimals) = self.decimals {
            settings["numbers"] = serde_json::json!({"decimals": decimals});
        }
        let digest = blake2b_simd::blake2b(settings.to_string().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.as_bytes()[..16]);
        Fingerprint(bytes)
    }

    /// What speaks against these settings, in sentences for people.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match self.decimals {
            Some(decimals @ 0..6) => vec![format!(
                "{decimals} decimals merge distinct points: at 5 decimals a cell is about 1.1 m wide; \
                 keep at least 6 (about 0.11 m, as RFC 7946 recommends)"
            )],
            Some(decimals @ 11..) => vec![format!(
                "{decimals} decimals keep float noise: beyond 10, digits that serializers do not agree on \
                 make one event two keys"
            )],
            _ => Vec::new(),
        }
    }
}

/// What tells one protocol from another. See [`Protocol::fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 16]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A member's name, as JSON where it is more than one plain word.
fn quoted(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.is_empty() && name.bytes().all(plain) {
        name.to_owned()
    } else {
        serde_json::Value::from(name).to_string()
    }
}

fn invalid(name: &str, reason: String) -> Error {
    Error::Protocol { name: name.to_owned(), reason }
}

/// A protocol file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    doc: String,
    event: EventTable,
    numbers: NumbersTable,
    key: KeyTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventTable {
    strip: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumbersTable {
    decimals: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyTable {
    hash: Hash,
    bytes: usize,
}
