//! Key protocols: every setting that decides which events are one.
//!
//! In: a TOML file, or a built-in's name, and the overrides of a command line. Out: a [`Protocol`]
//! whose settings are valid together. What always holds: two protocols with the same meaning have
//! the same [fingerprint](Protocol::fingerprint), whatever their names and texts.

mod file;
mod lint;
mod select;
mod settings;
mod tables;
mod write;

use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::crs::Crs;
use crate::error::Error;
pub(crate) use file::resolve_strip as add_strip;
pub(crate) use lint::{looks_like_envelope, looks_suspicious, suspicions};
pub(crate) use select::child;
pub use select::{Pointer, Selected, Source, Transform};
use write::word;

pub use settings::{
    CrsPolicy, DuplicateNames, Hash, Identity, Integral, Members, NameSet, NegativeZero, NonAscii, NonFinite,
    Scheme, Separators, Settings, Where,
};

/// The texts of the built-in protocols, the default first.
const BUILT_IN: [(&str, &str); 5] = [
    ("geojson-v1", include_str!("geojson-v1.toml")),
    ("geojson-shape-v1", include_str!("geojson-shape-v1.toml")),
    ("feed-v1", include_str!("feed-v1.toml")),
    ("jcs-v1", include_str!("jcs-v1.toml")),
    ("bytes-v1", include_str!("bytes-v1.toml")),
];

/// The most decimals that a protocol can round to: from 324 on, CPython's `round` leaves every double
/// as it is.
pub const DECIMALS_MAX: u16 = 323;

/// A key protocol: the settings that decide which events have one key, and a name for them.
///
/// ```
/// use firstseen::Protocol;
///
/// let protocol = Protocol::built_in("geojson-v1")?;
/// assert_eq!(protocol.settings().decimals, Some(8));
/// assert!(protocol.settings().strip.contains("delivery_id"));
/// # Ok::<(), firstseen::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    name: String,
    doc: String,
    settings: Settings,
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
    /// Strip these as well: names of top-level members, or JSON Pointers.
    pub strip: Vec<String>,
    /// Strip only the members of `strip`.
    pub no_default_strip: bool,
    /// Take the coordinates of events that name no system of their own to be in this one.
    pub source_crs: Option<String>,
}

impl Protocol {
    /// The names of the built-in protocols, the default first.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in protocol of that name.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] with the names there are, if it is none of them.
    pub fn built_in(name: &str) -> Result<Self, Error> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::from_toml(name, text),
            None => {
                let known: Vec<&str> = Self::built_in_names().collect();
                Err(invalid(
                    name,
                    format!("there is no such protocol or file; built in are {}", known.join(", ")),
                ))
            }
        }
    }

    /// The protocol of a TOML text; `source` is what messages call it.
    ///
    /// # Errors
    ///
    /// [`Error::ProtocolFile`] with the line, what is wrong with it, and what is allowed.
    pub fn from_toml(source: &str, text: &str) -> Result<Self, Error> {
        file::read(source, text)
    }

    /// The built-in protocol of that name or, if there is none, the one in the file of that name.
    ///
    /// # Errors
    ///
    /// As [`Protocol::built_in`] and [`Protocol::from_toml`], and [`Error::Io`] for a file that
    /// cannot be read.
    pub fn find(name: &str) -> Result<Self, Error> {
        if Self::built_in_names().any(|known| known == name) || !Path::new(name).exists() {
            return Self::built_in(name);
        }
        let text = fs::read_to_string(name).map_err(Error::io("read", name))?;
        Self::from_toml(name, &text)
    }

    /// The protocol as a TOML file in which every setting is written out, with what it may be.
    #[must_use]
    pub fn to_toml(&self) -> String {
        write::write(self)
    }

    /// This protocol with some settings changed. Its name tells the changes; without any, it is
    /// the same protocol.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] if a value is out of its range, or means nothing to the protocol.
    pub fn derive(&self, overrides: &Overrides) -> Result<Self, Error> {
        let mut settings = self.settings.clone();
        let strips = !overrides.strip.is_empty();
        if settings.scheme == Scheme::Bytes && (overrides.decimals.is_some() || strips) {
            let reason = "it does not look into lines, so there is nothing to round or to strip";
            return Err(invalid(&self.name, reason.to_owned()));
        }
        if !settings.select.is_empty() && strips {
            let reason = "it hashes what it selects only, so there is nothing to strip";
            return Err(invalid(&self.name, reason.to_owned()));
        }
        if overrides.no_default_strip {
            settings.strip = NameSet::default();
            settings.strip_pointers.clear();
        }
        file::resolve_strip(&overrides.strip, &mut settings).map_err(|reason| invalid(&self.name, reason))?;
        settings.decimals = overrides.decimals.or(settings.decimals);
        if settings.decimals.is_some_and(|decimals| decimals > DECIMALS_MAX) {
            return Err(invalid(&self.name, format!("decimals must be from 0 to {DECIMALS_MAX}")));
        }
        if let Some(name) = &overrides.source_crs {
            if settings.crs != CrsPolicy::Wgs84 {
                let reason =
                    "it keys coordinates as they are; a source CRS needs a protocol with `crs = \"wgs84\"`";
                return Err(invalid(&self.name, reason.to_owned()));
            }
            settings.source_crs = file::source_crs(name).map_err(|reason| invalid(&self.name, reason))?;
        }
        settings.hash = overrides.hash.unwrap_or(settings.hash);
        let bytes = overrides.key_bytes.unwrap_or(settings.key_bytes);
        settings.key_bytes =
            file::key_bytes(settings.hash, bytes).map_err(|reason| invalid(&self.name, reason))?;
        let name = self.derived_name(&settings);
        Ok(Self { name, doc: self.doc.clone(), settings })
    }

    /// This protocol with other settings.
    pub(crate) fn with(&self, settings: &Settings) -> Self {
        Self { settings: settings.clone(), ..self.clone() }
    }

    /// The name of what has these settings: this one's, and each setting in which they differ.
    fn derived_name(&self, derived: &Settings) -> String {
        let mut name = self.name.clone();
        if let Some(decimals) = derived.decimals.filter(|_| derived.decimals != self.settings.decimals) {
            name.push_str(&format!("+decimals={decimals}"));
        }
        if derived.hash != self.settings.hash {
            name.push_str(&format!("+hash={}", derived.hash.name()));
        }
        if derived.key_bytes != self.settings.key_bytes {
            name.push_str(&format!("+bytes={}", derived.key_bytes));
        }
        let own = &self.settings;
        if derived.source_crs != own.source_crs {
            name.push_str(&format!("+source_crs={}", derived.source_crs.unwrap_or(Crs::Wgs84)));
        }
        if (&derived.strip, &derived.strip_pointers) != (&own.strip, &own.strip_pointers) {
            let pointers = derived.strip_pointers.iter().map(|pointer| quoted(&pointer.to_string()));
            let names: Vec<String> =
                derived.strip.names().iter().map(|name| quoted(name)).chain(pointers).collect();
            name.push_str(&format!("+strip={}", names.join(",")));
        }
        name
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

    /// All that decides which events have one key.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What tells protocols apart: the first 16 bytes, in hexadecimal, of the BLAKE2b digest of
    /// the settings as sorted, compact JSON.
    ///
    /// Name, documentation and the order in which names to strip are listed do not count, nor that of
    /// selected members where members are sorted. Names to strip, hash and length of keys always count, others only where they are not at their
    /// defaults, so that a setting that a later version adds does not change older fingerprints.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let Settings { strip, decimals, scheme, hash, key_bytes, prefix, .. } = &self.settings;
        let mut settings = json!({
            "event": {"strip": strip.names()},
            "key": {"bytes": key_bytes, "hash": hash.name()},
        });
        if let Some(decimals) = decimals {
            settings["numbers"]["decimals"] = json!(decimals);
        }
        if !prefix.is_empty() {
            settings["key"]["prefix"] = json!(prefix);
        }
        if !self.settings.strip_pointers.is_empty() {
            let pointers: Vec<String> = self.settings.strip_pointers.iter().map(Pointer::to_string).collect();
            settings["event"]["strip_pointers"] = json!(pointers);
        }
        if !self.settings.add.is_empty() {
            settings["event"]["add"] = json!(self.settings.add);
        }
        if !self.settings.select.is_empty() {
            let mut selected: Vec<&Selected> = self.settings.select.iter().collect();
            if *scheme == Scheme::Jcs || self.settings.members == Members::Sorted {
                // Members that are sorted when they are written have no order of their own.
                selected.sort_by_key(|selected| &selected.member);
            }
            settings["select"] = selected.into_iter().map(Selected::to_json).collect();
        }
        let mut count = |table: &str, name: &str, value: String, default: String| {
            if value != default {
                settings[table][name] = Value::from(value.trim_matches('"'));
            }
        };
        let own = &self.settings;
        let plain = Settings::default();
        count("canonical", "scheme", word(scheme), word(&plain.scheme));
        count("canonical", "members", word(&own.members), word(&plain.members));
        count("canonical", "separators", word(&own.separators), word(&plain.separators));
        count("canonical", "non_ascii", word(&own.non_ascii), word(&plain.non_ascii));
        count("event", "duplicate_names", word(&own.duplicate_names), word(&plain.duplicate_names));
        count("event", "non_finite", word(&own.non_finite), word(&plain.non_finite));
        count("geometry", "identity", word(&own.identity), word(&plain.identity));
        count("geometry", "crs", word(&own.crs), word(&plain.crs));
        let source_crs = own.source_crs.unwrap_or(Crs::Wgs84).to_string();
        count("geometry", "source_crs", source_crs, Crs::Wgs84.to_string());
        count("numbers", "where", word(&own.round_where), word(&plain.round_where));
        count("numbers", "negative_zero", word(&own.negative_zero), word(&plain.negative_zero));
        count("numbers", "integral", word(&own.integral), word(&plain.integral));
        let digest = blake2b_simd::blake2b(settings.to_string().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.as_bytes()[..16]);
        Fingerprint(bytes)
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

/// A protocol, as reports, records and stores name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// Its name.
    pub name: String,
    /// Its [fingerprint](Protocol::fingerprint).
    pub fingerprint: String,
}

impl ProtocolReport {
    pub(crate) fn of(protocol: &Protocol) -> Self {
        Self { name: protocol.name().to_owned(), fingerprint: protocol.fingerprint().to_string() }
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
