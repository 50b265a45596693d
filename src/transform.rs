//! One selected scalar, and what a protocol does to it: the methods and functions of Python that a
//! handler would call, exactly where they give something, and nothing where they raise.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::number::{NumberStyle, write_double};
use crate::protocol::{Settings, Transform};
use crate::tape::Node;

/// A value on its way through transforms.
pub(crate) enum Scalar {
    Text(String),
    /// Text with a lone surrogate, in WTF-8.
    Wtf8(Vec<u8>),
    /// The digits of an integer.
    Integer(String),
    Double(f64),
    Bool(bool),
    Null,
}

impl Scalar {
    pub(crate) fn of_node(node: Node<'_>) -> Option<Self> {
        Some(match node {
            Node::Null => Self::Null,
            Node::Bool(value) => Self::Bool(value),
            Node::Unsigned(value) => Self::Integer(value.to_string()),
            Node::Signed(value) => Self::Integer(value.to_string()),
            Node::BigInteger(digits) => Self::Integer(digits.to_owned()),
            Node::Double(value) | Node::NonFinite { value, .. } => Self::Double(value),
            Node::Str(text) => Self::Text(text.to_owned()),
            Node::LoneSurrogate { wtf8, .. } => Self::Wtf8(wtf8.to_vec()),
            Node::Array { .. } | Node::Object { .. } => return None,
        })
    }

    pub(crate) fn of_constant(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) if number.is_f64() => Self::Double(number.as_f64()?),
            Value::Number(number) => Self::Integer(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Wtf8(_) => "a string with a lone surrogate",
            Self::Integer(_) => "an integer",
            Self::Double(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Null => "null",
        }
    }

    /// `None` where Python raises.
    pub(crate) fn transform(self, transform: &Transform) -> Option<Self> {
        if let Self::Wtf8(text) = self {
            return transform_wtf8(&text, transform).map(Self::Wtf8);
        }
        Some(Self::Text(match (transform, self) {
            (Transform::Strip, Self::Text(text)) => text.trim_matches(is_python_space).to_owned(),
            (Transform::Lower, Self::Text(text)) => text.to_lowercase(),
            (Transform::Nfc, Self::Text(text)) => text.nfc().collect(),
            (Transform::Strip | Transform::Lower | Transform::Nfc | Transform::SortBy(_), _) => return None,
            (Transform::Str, scalar) => scalar.python_str(),
            (Transform::Fixed(decimals), scalar) => {
                let value = scalar.python_float()?;
                match value {
                    _ if value.is_nan() => "nan".to_owned(),
                    _ if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_owned(),
                    _ => format!("{value:.*}", usize::from(*decimals)),
                }
            }
        }))
    }

    /// `str(value)`.
    pub(crate) fn python_str(self) -> String {
        match self {
            Self::Text(text) | Self::Integer(text) => text,
            Self::Wtf8(text) => String::from_utf8_lossy(&text).into_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Null => "None".to_owned(),
            Self::Double(value) if value.is_nan() => "nan".to_owned(),
            Self::Double(value) if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_owned(),
            Self::Double(value) => {
                let mut text = Vec::new();
                write_double(value, &NumberStyle::new(&Settings::default()), &mut text);
                String::from_utf8_lossy(&text).into_owned()
            }
        }
    }

    /// `float(value)`, of text in ASCII digits.
    fn python_float(self) -> Option<f64> {
        match self {
            Self::Double(value) => Some(value),
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            // An integer past the range of a double raises an error, which text does not.
            Self::Integer(digits) => digits.parse().ok().filter(|value: &f64| value.is_finite()),
            Self::Text(text) => {
                let c_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
                // CPython makes spaces of white space past ASCII first, and then trims as C does.
                let text = text.trim_matches(|c: char| c_space(c) || (!c.is_ascii() && c.is_whitespace()));
                let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
                let bytes = text.as_bytes();
                let underscores_between_digits = bytes.iter().enumerate().all(|(at, &byte)| {
                    byte != b'_' || (at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1)))
                });
                underscores_between_digits.then(|| text.replace('_', "").parse().ok()).flatten()
            }
            Self::Null | Self::Wtf8(_) => None,
        }
    }
}

/// Transforms text around its lone surrogates, which stay what they are.
fn transform_wtf8(text: &[u8], transform: &Transform) -> Option<Vec<u8>> {
    let map = |change: &dyn Fn(&str) -> String| {
        let chunks = text.utf8_chunks();
        chunks.flat_map(|chunk| [change(chunk.valid()).as_bytes(), chunk.invalid()].concat()).collect()
    };
    match transform {
        Transform::Str => Some(text.to_vec()),
        Transform::Lower => Some(map(&str::to_lowercase)),
        Transform::Nfc => Some(map(&|text| text.nfc().collect())),
        Transform::Fixed(_) | Transform::SortBy(_) => None,
        Transform::Strip => {
            let first = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            let last = text.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
            let last = last.map_or("", |chunk| chunk.valid());
            let leading = first.len() - first.trim_start_matches(is_python_space).len();
            let trailing = last.len() - last.trim_end_matches(is_python_space).len();
            Some(text[leading..text.len() - trailing].to_vec())
        }
    }
}

/// What `str.strip` takes for white space: Unicode's, and four separators.
fn is_python_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}
