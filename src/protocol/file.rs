//! Protocol files: TOML to settings.
//!
//! Everything that is wrong with a file is said with its line and with what is allowed there:
//! unknown settings, bad values, and combinations that cannot be.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;

use super::Protocol;
use super::select::{Pointer, Selected, Source, Transform};
use super::settings::{
    CrsPolicy, DuplicateNames, Hash, Identity, NameSet, NonFinite, Scheme, Settings, Where,
};
use super::tables::{
    CanonicalTable, EventTable, File, GeometryTable, KeyTable, List, NumbersTable, SelectTable, Setting,
    SourceEntry,
};
use crate::crs::Crs;
use crate::error::Error;

const KEY_BYTES: usize = 16;

/// A fault, and where in the text it is.
struct Fault {
    span: Range<usize>,
    reason: String,
}

/// Reads a protocol; `source` is what messages call the text.
pub(super) fn read(source: &str, text: &str) -> Result<Protocol, Error> {
    let parsed = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let reason = match (error.message(), text.get(span.clone())) {
            ("duplicate key", Some(name)) => format!("`{name}` is set twice"),
            (message, _) => message.to_owned(),
        };
        Fault { span, reason }
    });
    parsed.and_then(resolve).map_err(|fault| Error::ProtocolFile {
        source: source.to_owned(),
        line: text[..fault.span.start.min(text.len())].matches('\n').count() + 1,
        reason: fault.reason,
    })
}

fn get<T: Copy + Default>(setting: &Setting<T>) -> T {
    setting.as_ref().map_or_else(T::default, |setting| *setting.get_ref())
}

/// Refuses a setting that another one leaves no room for.
fn refuse<T>(setting: &Setting<T>, reason: &str) -> Result<(), Fault> {
    match setting {
        Some(setting) => Err(Fault { span: setting.span(), reason: reason.to_owned() }),
        None => Ok(()),
    }
}

/// A fault of a setting.
fn at<T>(setting: &Spanned<T>) -> impl FnOnce(String) -> Fault + use<T> {
    let span = setting.span();
    |reason| Fault { span, reason }
}

fn resolve(file: File) -> Result<Protocol, Fault> {
    let File { name, doc, event, numbers, geometry, canonical, key, select } = file;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.get_ref().is_empty() || !name.get_ref().bytes().all(plain) {
        return Err(at(&name)("a name is made of letters, digits, `-`, `_` and `.`".to_owned()));
    }
    let scheme = get(&canonical.scheme);
    let mut settings = Settings {
        duplicate_names: get(&event.duplicate_names),
        non_finite: get(&event.non_finite),
        decimals: numbers.decimals.as_ref().map(|decimals| decimals.get_ref().0),
        round_where: get(&numbers.round_where),
        negative_zero: get(&numbers.negative_zero),
        integral: get(&numbers.integral),
        identity: get(&geometry.identity),
        crs: get(&geometry.crs),
        scheme,
        members: get(&canonical.members),
        separators: get(&canonical.separators),
        non_ascii: get(&canonical.non_ascii),
        hash: get(&key.hash),
        ..Settings::default()
    };
    match scheme {
        Scheme::PythonJson => {}
        Scheme::Jcs => check_jcs(&event, &numbers, &canonical, &mut settings)?,
        Scheme::Bytes => check_bytes(&event, &numbers, &geometry, &canonical)?,
    }
    if settings.decimals.is_none() {
        refuse(&numbers.round_where, "`where` says which doubles are rounded, and needs `decimals`")?;
    }
    check_geometry(geometry, &mut settings)?;
    if let Some(first) = select.0.first() {
        check_select(first, &event, &numbers, &settings)?;
    }
    if let Some(strip) = event.strip {
        resolve_strip(&strip.get_ref().0, &mut settings).map_err(at(&strip))?;
    }
    if let Some(add) = event.add {
        let fault = at(&add);
        settings.add = resolve_add(add.into_inner()).map_err(fault)?;
    }
    for table in select.0 {
        let fault = at(&table.get_ref().member);
        let selected = resolve_selected(table)?;
        if settings.select.iter().any(|other| other.member == selected.member) {
            return Err(fault(format!("`{}` is selected twice", selected.member)));
        }
        settings.select.push(selected);
    }
    resolve_key(key, &mut settings)?;
    Ok(Protocol { name: name.into_inner(), doc, settings })
}

/// What is selected leaves no room for some other settings.
fn check_select(
    first: &Spanned<SelectTable>,
    event: &EventTable,
    numbers: &NumbersTable,
    settings: &Settings,
) -> Result<(), Fault> {
    let touches = settings.identity == Identity::Shape || settings.crs == CrsPolicy::Wgs84;
    if settings.round_where == Where::Coordinates && touches {
        refuse(
            &numbers.round_where,
            "what is selected may have another name than `coordinates`, and would not be rounded as its geometry is \
             compared: only `everywhere` is allowed with `select` and `[geometry]`",
        )?;
    }
    if settings.scheme == Scheme::Bytes {
        return Err(at(first)("scheme `bytes` does not look into the line, and selects nothing".to_owned()));
    }
    refuse(&event.strip, "only what is selected is hashed; there is nothing to strip")?;
    refuse(&event.add, "only what is selected is hashed; select a member with `first_of = [{ value = … }]`")
}

fn resolve_key(key: KeyTable, settings: &mut Settings) -> Result<(), Fault> {
    let asked_for = key.bytes.as_ref().map_or(KEY_BYTES, |bytes| usize::from(bytes.get_ref().0));
    settings.key_bytes = key_bytes(settings.hash, asked_for)
        .map_err(|reason| Fault { span: key.bytes.map_or(0..0, |bytes| bytes.span()), reason })?;
    if let Some(prefix) = key.prefix {
        if prefix.get_ref().chars().any(char::is_control) {
            return Err(at(&prefix)("a prefix has no control characters".to_owned()));
        }
        settings.prefix = prefix.into_inner();
    }
    Ok(())
}

/// Adds what is to be stripped: a name is one of a top-level member, and so is a pointer of one token.
pub(crate) fn resolve_strip(strip: &[String], settings: &mut Settings) -> Result<(), String> {
    let mut names = settings.strip.names().to_vec();
    for entry in strip {
        if !entry.starts_with('/') {
            names.push(entry.clone());
            continue;
        }
        let pointer = Pointer::parse(entry)?;
        match pointer.tokens() {
            [name] => names.push(name.clone()),
            _ => settings.strip_pointers.push(pointer),
        }
    }
    settings.strip = NameSet::new(names);
    settings.strip_pointers.sort();
    settings.strip_pointers.dedup();
    Ok(())
}

fn resolve_add(add: toml::Table) -> Result<Vec<(String, Value)>, String> {
    let mut members = add
        .into_iter()
        .map(|(name, value)| match constant(value)? {
            Value::Array(_) => {
                Err(format!("`{name}` is an array, where a string, a number or a boolean is allowed"))
            }
            value => Ok((name, value)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    members.sort_by(|one, two| one.0.cmp(&two.0));
    Ok(members)
}

fn resolve_selected(table: Spanned<SelectTable>) -> Result<Selected, Fault> {
    let header = at(&table);
    let SelectTable { member, pointer, default, first_of, transforms: List(transforms) } = table.into_inner();
    let first_of = match (pointer, first_of) {
        (Some(pointer), None) => {
            let default = default.map(|default| {
                let fault = at(&default);
                constant(default.into_inner()).map_err(fault)
            });
            let pointer = Pointer::parse(pointer.get_ref()).map_err(at(&pointer))?;
            vec![Source::Pointer(pointer, default.transpose()?)]
        }
        (None, Some(sources)) if !sources.get_ref().0.is_empty() => {
            let reason = "`default` goes with `pointer`; the last of `first_of` may be `{ value = … }`";
            refuse(&default, reason)?;
            sources.into_inner().0.into_iter().map(resolve_source).collect::<Result<_, _>>()?
        }
        _ => {
            let reason = "a selected member has a `pointer`, or a `first_of` that is not empty";
            return Err(header(reason.to_owned()));
        }
    };
    let sorts = |transform: &&Spanned<Transform>| matches!(transform.get_ref(), Transform::SortBy(_));
    if let Some(sort) = transforms.iter().find(sorts).filter(|_| transforms.len() > 1) {
        let reason = "`sort_by` makes an array, which no other transform takes: it stands alone";
        return Err(at(sort)(reason.to_owned()));
    }
    let transforms = transforms.into_iter().map(Spanned::into_inner).collect();
    Ok(Selected { member: member.into_inner(), first_of, transforms })
}

fn resolve_source(source: Spanned<SourceEntry>) -> Result<Source, Fault> {
    let fault = at(&source);
    match source.into_inner() {
        SourceEntry::Pointer(pointer) => {
            Pointer::parse(&pointer).map(|pointer| Source::Pointer(pointer, None))
        }
        SourceEntry::Constant(table) => constant(table.value).map(Source::Constant),
    }
    .map_err(fault)
}

/// A constant as JSON has it.
fn constant(value: toml::Value) -> Result<Value, String> {
    match value {
        toml::Value::String(text) => Ok(text.into()),
        toml::Value::Integer(number) => Ok(number.into()),
        toml::Value::Boolean(value) => Ok(value.into()),
        toml::Value::Float(number) if number.is_finite() => Ok(number.into()),
        toml::Value::Array(elements) if elements.is_empty() => Ok(Value::Array(Vec::new())),
        other => Err(format!("a constant is a string, a number, a boolean or `[]`, not {other}")),
    }
}

/// RFC 8785 takes I-JSON only, and leaves no choice of its form.
fn check_jcs(
    event: &EventTable,
    numbers: &NumbersTable,
    canonical: &CanonicalTable,
    settings: &mut Settings,
) -> Result<(), Fault> {
    if get(&event.duplicate_names) == DuplicateNames::Last {
        refuse(&event.duplicate_names, "scheme `jcs` takes no repeated names: only `reject` is allowed")?;
    }
    if get(&event.non_finite) == NonFinite::Accept {
        refuse(&event.non_finite, "scheme `jcs` takes finite numbers only: only `reject` is allowed")?;
    }
    let fixed = "scheme `jcs` fixes this; only `python-json` leaves the choice";
    refuse(&canonical.members, fixed)?;
    refuse(&canonical.separators, fixed)?;
    refuse(&canonical.non_ascii, fixed)?;
    refuse(&numbers.negative_zero, fixed)?;
    refuse(&numbers.integral, fixed)?;
    settings.duplicate_names = DuplicateNames::Reject;
    settings.non_finite = NonFinite::Reject;
    Ok(())
}

/// Whoever hashes the bytes of a line does not look into it.
fn check_bytes(
    event: &EventTable,
    numbers: &NumbersTable,
    geometry: &GeometryTable,
    canonical: &CanonicalTable,
) -> Result<(), Fault> {
    let blind = "scheme `bytes` does not look into the line; only `[key]` has settings then";
    refuse(&event.strip, blind)?;
    refuse(&event.add, blind)?;
    refuse(&event.duplicate_names, blind)?;
    refuse(&event.non_finite, blind)?;
    refuse(&numbers.decimals, blind)?;
    refuse(&numbers.round_where, blind)?;
    refuse(&numbers.negative_zero, blind)?;
    refuse(&numbers.integral, blind)?;
    refuse(&geometry.identity, blind)?;
    refuse(&geometry.crs, blind)?;
    refuse(&geometry.source_crs, blind)?;
    refuse(&canonical.members, blind)?;
    refuse(&canonical.separators, blind)?;
    refuse(&canonical.non_ascii, blind)
}

fn check_geometry(geometry: GeometryTable, settings: &mut Settings) -> Result<(), Fault> {
    if settings.crs == CrsPolicy::AsIs {
        let reason = "`source_crs` is where coordinates are brought from, and needs `crs = \"wgs84\"`";
        return refuse(&geometry.source_crs, reason);
    }
    if settings.decimals.is_none() {
        let reason = "`crs = \"wgs84\"` needs `decimals`: the last digits of what is computed are noise";
        refuse(&geometry.crs, reason)?;
    }
    if let Some(name) = geometry.source_crs {
        let span = name.span();
        settings.source_crs = source_crs(name.get_ref()).map_err(|reason| Fault { span, reason })?;
    }
    Ok(())
}

/// The system of that name, as settings have it.
pub(super) fn source_crs(name: &str) -> Result<Option<Crs>, String> {
    match Crs::parse(name) {
        Some(Crs::Wgs84) => Ok(None),
        Some(crs) if crs.projection().is_some() => Ok(Some(crs)),
        _ => Err(format!(
            "`{name}` is no system that coordinates can be brought from; `EPSG:3857` is one, and so are most of the \
             EPSG dataset"
        )),
    }
}

/// The length of a key of which `bytes` are asked for; 0 asks for the whole digest.
pub(super) fn key_bytes(hash: Hash, bytes: usize) -> Result<usize, String> {
    let most = hash.digest_bytes();
    match bytes {
        0 => Ok(most),
        _ if bytes <= most => Ok(bytes),
        _ => Err(format!(
            "a {} key has at most {most} bytes (0 stands for all of them), not {bytes}",
            hash.name()
        )),
    }
}
