//! Protocol files as serde reads them: the tables, and what type each setting has.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

use super::DECIMALS_MAX;
use super::select::Transform;
use super::settings::{
    CrsPolicy, DuplicateNames, Hash, Identity, Integral, Members, NegativeZero, NonAscii, NonFinite, Scheme,
    Separators, Where,
};

/// A protocol file as it is written. What a setting's absence means is decided where it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) doc: String,
    #[serde(default)]
    pub(super) event: EventTable,
    #[serde(default)]
    pub(super) numbers: NumbersTable,
    #[serde(default)]
    pub(super) geometry: GeometryTable,
    #[serde(default)]
    pub(super) canonical: CanonicalTable,
    #[serde(default)]
    pub(super) key: KeyTable,
    #[serde(default)]
    pub(super) select: List<Spanned<SelectTable>>,
}

pub(super) type Setting<T> = Option<Spanned<T>>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventTable {
    pub(super) strip: Setting<List<String>>,
    pub(super) add: Setting<toml::Table>,
    pub(super) duplicate_names: Setting<DuplicateNames>,
    pub(super) non_finite: Setting<NonFinite>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NumbersTable {
    pub(super) decimals: Setting<Decimals>,
    #[serde(rename = "where")]
    pub(super) round_where: Setting<Where>,
    pub(super) negative_zero: Setting<NegativeZero>,
    pub(super) integral: Setting<Integral>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GeometryTable {
    pub(super) identity: Setting<Identity>,
    pub(super) crs: Setting<CrsPolicy>,
    pub(super) source_crs: Setting<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CanonicalTable {
    pub(super) scheme: Setting<Scheme>,
    pub(super) members: Setting<Members>,
    pub(super) separators: Setting<Separators>,
    pub(super) non_ascii: Setting<NonAscii>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyTable {
    pub(super) hash: Setting<Hash>,
    pub(super) bytes: Setting<Bytes>,
    pub(super) prefix: Setting<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SelectTable {
    pub(super) member: Spanned<String>,
    pub(super) pointer: Setting<String>,
    pub(super) default: Setting<toml::Value>,
    pub(super) first_of: Setting<List<Spanned<SourceEntry>>>,
    #[serde(default)]
    pub(super) transforms: List<Spanned<Transform>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a source is a JSON Pointer, or a table with a `value`")]
pub(super) enum SourceEntry {
    Pointer(String),
    Constant(ConstantTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConstantTable {
    pub(super) value: toml::Value,
}

/// A list, which says what it is a list of where something else is written.
pub(super) struct List<T>(pub(super) Vec<T>);

/// What a list may have as its items.
pub(super) trait Listed {
    const EXPECTED: &'static str;
}

impl Listed for String {
    const EXPECTED: &'static str = "a list of names and JSON Pointers";
}

impl Listed for Spanned<SelectTable> {
    const EXPECTED: &'static str = "a table headed `[[select]]` for each selected member";
}

impl Listed for Spanned<SourceEntry> {
    const EXPECTED: &'static str = "a list of JSON Pointers";
}

impl Listed for Spanned<Transform> {
    const EXPECTED: &'static str = "a list of transforms";
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de> + Listed> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Listed> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(List(list))
    }
}

/// A whole number of at most `MOST`. It says so of everything else.
pub(super) struct Whole<const MOST: u16>(pub(super) u16);

pub(super) type Decimals = Whole<DECIMALS_MAX>;
/// The longest digest has 64 bytes.
pub(super) type Bytes = Whole<64>;

impl<'de, const MOST: u16> Deserialize<'de> for Whole<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeVisitor::<MOST>)
    }
}

struct WholeVisitor<const MOST: u16>;

impl<const MOST: u16> Visitor<'_> for WholeVisitor<MOST> {
    type Value = Whole<MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {MOST}")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let fitting = u16::try_from(number).ok().filter(|number| *number <= MOST);
        fitting.map(Whole).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }
}

/// The decimals of the transform `fixed`.
pub(super) fn decimals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    Decimals::deserialize(deserializer).map(|decimals| decimals.0)
}
