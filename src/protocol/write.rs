//! Protocol files: settings to TOML, each with what it may be.

use serde::Serialize;

use super::Protocol;
use super::select::{Selected, Source, Transform, child};
use super::settings::{CrsPolicy, Scheme};
use crate::crs::Crs;

/// The protocol as a file in which every setting is written out, with what it may be.
pub(super) fn write(protocol: &Protocol) -> String {
    let Protocol { name, doc, settings } = protocol;
    let python = settings.scheme == Scheme::PythonJson;
    let parsed = settings.scheme != Scheme::Bytes;
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!("name = {}", quoted(name)));
    line(format!("doc = {}", quoted(doc)));
    if parsed {
        line("\n[event]".to_owned());
        if settings.select.is_empty() {
            line(
                "# Members that are left out: names of top-level ones, or JSON Pointers (RFC 6901)."
                    .to_owned(),
            );
            let pointers = settings.strip_pointers.iter().map(|pointer| quoted(&pointer.to_string()));
            let names = settings.strip.names().iter().map(|name| quoted(&name_or_pointer(name)));
            line(format!("strip = [{}]", names.chain(pointers).collect::<Vec<_>>().join(", ")));
            line("# Constant members that are put in.".to_owned());
            let members = settings.add.iter().map(|(name, value)| format!("{} = {value}", quoted(name)));
            line(format!("add = {{{}}}", members.collect::<Vec<_>>().join(", ")));
        }
        line("# Members with one name in one object: \"last\" counts, or \"reject\" the event.".to_owned());
        line(format!("duplicate_names = {}", word(&settings.duplicate_names)));
        line("# NaN, infinities, numbers past the range of a double: \"accept\" or \"reject\".".to_owned());
        line(format!("non_finite = {}", word(&settings.non_finite)));
        line("\n[numbers]".to_owned());
        line("# Decimals that doubles are rounded to; without it, they stay as they are.".to_owned());
        match settings.decimals {
            None => line("# decimals = 8".to_owned()),
            Some(decimals) => {
                line(format!("decimals = {decimals}"));
                line("# Which doubles: \"everywhere\", or only those inside \"coordinates\".".to_owned());
                line(format!("where = {}", word(&settings.round_where)));
            }
        }
    }
    if python {
        line("# \"keep\" -0.0 apart from 0.0, or \"fold\" them into one.".to_owned());
        line(format!("negative_zero = {}", word(&settings.negative_zero)));
        line("# \"keep\" 17.0 apart from 17, or \"unify\" them.".to_owned());
        line(format!("integral = {}", word(&settings.integral)));
    }
    if parsed {
        line("\n[geometry]".to_owned());
        line("# Geometries of one \"serialization\" are one, or of one \"shape\".".to_owned());
        line(format!("identity = {}", word(&settings.identity)));
        line("# Coordinates \"as-is\", or brought to \"wgs84\" from what a `crs` member names.".to_owned());
        line(format!("crs = {}", word(&settings.crs)));
        if settings.crs == CrsPolicy::Wgs84 {
            line("# The system of events that name none.".to_owned());
            line(format!("source_crs = \"{}\"", settings.source_crs.unwrap_or(Crs::Wgs84)));
        }
    }
    line("\n[canonical]".to_owned());
    line("# \"python-json\" (json.dumps), \"jcs\" (RFC 8785), or the \"bytes\" of the line.".to_owned());
    line(format!("scheme = {}", word(&settings.scheme)));
    if python {
        line("# \"sorted\" by code points, or \"as-written\".".to_owned());
        line(format!("members = {}", word(&settings.members)));
        line("# \"compact\" or \"spaced\".".to_owned());
        line(format!("separators = {}", word(&settings.separators)));
        line("# Characters past ASCII: \"utf8\", or \"escape\" as \\uxxxx.".to_owned());
        line(format!("non_ascii = {}", word(&settings.non_ascii)));
    }
    line("\n[key]".to_owned());
    line("# \"blake2b\" (64 bytes) or \"sha256\" (32 bytes).".to_owned());
    line(format!("hash = {}", word(&settings.hash)));
    line("# The leading bytes of the digest that are the key; 0 is the whole digest.".to_owned());
    line(format!("bytes = {}", settings.key_bytes));
    line("# What is printed before the hexadecimal digits.".to_owned());
    line(format!("prefix = {}", quoted(&settings.prefix)));
    if !settings.select.is_empty() {
        line(
            "\n# What is hashed: each member from the first source that is truthy, or else the last."
                .to_owned(),
        );
        settings.select.iter().for_each(|selected| line(write_selected(selected)));
    }
    text
}

fn write_selected(selected: &Selected) -> String {
    let source = |source: &Source| match source {
        Source::Pointer(pointer, _) => quoted(&pointer.to_string()),
        Source::Constant(value) => format!("{{ value = {value} }}"),
    };
    let from = match &selected.first_of[..] {
        [Source::Pointer(pointer, Some(default))] => {
            format!("pointer = {}\ndefault = {default}", quoted(&pointer.to_string()))
        }
        sources => format!("first_of = [{}]", sources.iter().map(source).collect::<Vec<_>>().join(", ")),
    };
    let transform = |transform: &Transform| match transform {
        Transform::Fixed(decimals) => format!("{{ fixed = {decimals} }}"),
        Transform::SortBy(pointer) => format!("{{ sort_by = {} }}", quoted(&pointer.to_string())),
        plain => word(plain),
    };
    let transforms = selected.transforms.iter().map(transform).collect::<Vec<_>>().join(", ");
    format!("[[select]]\nmember = {}\n{from}\ntransforms = [{transforms}]\n", quoted(&selected.member))
}

/// A top-level name, as a pointer where it would be taken for one.
fn name_or_pointer(name: &str) -> String {
    match name.starts_with('/') {
        true => child(&mut String::new(), name, |pointer| pointer.clone()),
        false => name.to_owned(),
    }
}

/// A setting's word, in quotes.
pub(super) fn word(setting: &impl Serialize) -> String {
    // A setting is one word, which always has a JSON form.
    serde_json::to_string(setting).unwrap_or_default()
}

/// A TOML basic string. Its escapes are those of JSON, but for U+007F.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
