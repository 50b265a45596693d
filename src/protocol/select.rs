//! The settings that choose which parts of an event are hashed.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON Pointer (RFC 6901): where in an event a value is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer {
    /// The reference tokens, unescaped.
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer to something inside the event: `/` before each token, in which `~1` stands
    /// for `/` and `~0` for `~`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(tokens) = text.strip_prefix('/') else {
            return Err(format!("`{text}` is no JSON Pointer (RFC 6901): it begins with `/`"));
        };
        let unescape = |token: &str| {
            let plain = token.replace("~1", "").replace("~0", "");
            if plain.contains('~') {
                return Err(format!("in `{text}`, `~` stands before `0` or `1` only (RFC 6901)"));
            }
            Ok(token.replace("~1", "/").replace("~0", "~"))
        };
        Ok(Self { tokens: tokens.split('/').map(unescape).collect::<Result<_, _>>()? })
    }

    pub(crate) fn of(tokens: Vec<String>) -> Self {
        Self { tokens }
    }

    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.to_string()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens.iter().try_for_each(|token| write!(f, "/{}", escaped(token)))
    }
}

fn escaped(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// Calls `with` with a pointer that leads on to `token`, which it takes off again.
pub(crate) fn child<T>(pointer: &mut String, token: &str, with: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&escaped(token));
    let result = with(pointer);
    pointer.truncate(length);
    result
}

/// One member of the projection that is hashed in place of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The member's name.
    pub member: String,
    /// Where its value comes from: the first that is truthy as in Python, or else the last one. What
    /// is missing is null.
    pub first_of: Vec<Source>,
    /// What is done to the value, in order.
    pub transforms: Vec<Transform>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A part of the event; if it is missing, the constant, if there is one.
    Pointer(Pointer, Option<Value>),
    /// A constant.
    Constant(Value),
}

/// What is done to a selected value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// `str.strip` of Python: white space around it, and U+001C to U+001F.
    Strip,
    /// `str.lower` of Python.
    Lower,
    /// Unicode Normalization Form C (UAX #15).
    Nfc,
    /// `str` of Python, of a number, a string, a boolean or null.
    Str,
    /// `f"{float(value):.Nf}"` of Python.
    Fixed(#[serde(deserialize_with = "super::tables::decimals")] u16),
    /// `sorted` of Python, by the string that each element of an array has there. It stands alone.
    SortBy(Pointer),
}

impl Transform {
    /// What files call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Strip => "strip",
            Self::Lower => "lower",
            Self::Nfc => "nfc",
            Self::Str => "str",
            Self::Fixed(_) => "fixed",
            Self::SortBy(_) => "sort_by",
        }
    }
}

impl Selected {
    /// The settings as JSON, for the fingerprint.
    pub(crate) fn to_json(&self) -> Value {
        let source = |source: &Source| match source {
            Source::Pointer(pointer, None) => serde_json::json!({"pointer": pointer.to_string()}),
            Source::Pointer(pointer, Some(value)) => {
                serde_json::json!({"pointer": pointer.to_string(), "default": value})
            }
            Source::Constant(value) => serde_json::json!({"value": value}),
        };
        let sources: Vec<Value> = self.first_of.iter().map(source).collect();
        serde_json::json!({"member": self.member, "first_of": sources, "transforms": self.transforms})
    }
}
