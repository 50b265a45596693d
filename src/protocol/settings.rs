//! The settings of a protocol, each with the words that files use for it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::select::{Pointer, Selected};
use crate::crs::Crs;

/// An enumeration whose values are words of a protocol file; the first one is the default.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $(#[$first_doc:meta])* $first:ident, $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $(#[$first_doc])*
            #[default]
            $first,
            $($(#[$variant_doc])* $variant,)*
        }
    };
}

words! {
    /// What becomes of members with one name in one object.
    DuplicateNames {
        /// The last one counts, as in Python and JavaScript.
        Last,
        /// The event is rejected.
        Reject,
    }
}

words! {
    /// What becomes of `NaN`, the infinities, and numbers past the range of a double.
    NonFinite {
        /// They are values like others.
        Accept,
        /// The event is rejected.
        Reject,
    }
}

words! {
    /// Which doubles are rounded.
    Where {
        /// All of them.
        Everywhere,
        /// Those inside a member named `coordinates`, at any depth.
        Coordinates,
    }
}

words! {
    /// Whether the double −0.0 is another value than 0.0.
    NegativeZero {
        /// It is.
        Keep,
        /// It is 0.0.
        Fold,
    }
}

words! {
    /// Whether an integral double is another value than the integer.
    Integral {
        /// It is: Python writes `17.0` and `17`.
        Keep,
        /// Doubles of integral value, up to 2^53, are integers, as JavaScript writes them.
        Unify,
    }
}

words! {
    /// Which geometries are one.
    Identity {
        /// Those that are written with the same coordinates in the same order.
        Serialization,
        /// Those of one shape: where a ring starts, which way it goes, and the order of holes, of the
        /// polygons of a `MultiPolygon` and of the points of a `MultiPoint` do not count.
        Shape,
    }
}

words! {
    /// What becomes of coordinates that are not in WGS 84.
    CrsPolicy {
        /// They stay as they are.
        AsIs,
        /// They are brought to longitude and latitude in WGS 84.
        Wgs84,
    }
}

words! {
    /// The order of members.
    Members {
        /// By the code points of their names.
        Sorted,
        /// As in the event. A repeated name keeps its first place and its last value, as in a
        /// Python dictionary.
        AsWritten,
    }
}

words! {
    /// What stands between elements, and between names and values.
    Separators {
        /// `,` and `:`.
        Compact,
        /// `, ` and `: `, as `json.dumps` writes unless told otherwise.
        Spaced,
    }
}

words! {
    /// How characters past ASCII are written.
    NonAscii {
        /// As UTF-8.
        Utf8,
        /// As `\uxxxx` in lower case, those past U+FFFF as surrogate pairs; so is U+007F.
        Escape,
    }
}

words! {
    /// How canonical bytes are made of an event.
    Scheme {
        /// As CPython's `json.dumps`.
        PythonJson,
        /// As RFC 8785, the JSON Canonicalization Scheme.
        Jcs,
        /// The bytes of the line, which need not even be an event.
        Bytes,
    }
}

words! {
    /// The hash function that turns canonical bytes into a digest.
    Hash {
        /// BLAKE2b (RFC 7693) with its full digest of 64 bytes.
        Blake2b,
        /// SHA-256 (FIPS 180-4), a digest of 32 bytes.
        Sha256,
    }
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
    pub(crate) fn new(mut names: Vec<String>) -> Self {
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

    /// Whether a name that is written so is one of the set.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names.iter().any(|one| one.as_bytes() == name)
    }

    /// Whether some name may be of that length.
    #[inline]
    pub(crate) fn has_length(&self, length: usize) -> bool {
        self.lengths >> length.min(63) & 1 != 0
    }

    /// The names, sorted.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// All that decides which events have one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The top-level members that are left out.
    pub strip: NameSet,
    /// Nested members, and elements, that are left out: sorted, each once.
    pub strip_pointers: Vec<Pointer>,
    /// Constant top-level members that are put in, in place of what has their names; sorted by name.
    pub add: Vec<(String, Value)>,
    /// What is hashed in place of the event; if it is empty, the event is.
    pub select: Vec<Selected>,
    /// What becomes of repeated names.
    pub duplicate_names: DuplicateNames,
    /// What becomes of numbers that are not finite.
    pub non_finite: NonFinite,
    /// The decimals that doubles are rounded to; `None` leaves them as they are.
    pub decimals: Option<u16>,
    /// Which doubles are rounded.
    pub round_where: Where,
    /// Whether −0.0 is kept.
    pub negative_zero: NegativeZero,
    /// Whether integral doubles are kept.
    pub integral: Integral,
    /// Which geometries are one.
    pub identity: Identity,
    /// What becomes of coordinates that are not in WGS 84.
    pub crs: CrsPolicy,
    /// The system of events that name none; `None` is WGS 84.
    pub source_crs: Option<Crs>,
    /// How canonical bytes are made.
    pub scheme: Scheme,
    /// The order of members, for [`Scheme::PythonJson`].
    pub members: Members,
    /// The separators, for [`Scheme::PythonJson`].
    pub separators: Separators,
    /// How characters past ASCII are written, for [`Scheme::PythonJson`].
    pub non_ascii: NonAscii,
    /// The hash function.
    pub hash: Hash,
    /// The leading bytes of the digest that are the key, from 1 to all of them.
    pub key_bytes: usize,
    /// What is printed before a key's hexadecimal digits.
    pub prefix: String,
}

impl Settings {
    /// Whether something else than the event as it is, less stripped members, is hashed.
    #[must_use]
    pub fn projects(&self) -> bool {
        !self.strip_pointers.is_empty() || !self.add.is_empty() || !self.select.is_empty()
    }
}
