//! The changes of settings that would make two events one.

use std::collections::BTreeSet;

use super::pair::{Place, shortened};
use crate::error::printable;
use crate::protocol::{
    CrsPolicy, DuplicateNames, Identity, Integral, Members, NegativeZero, NonFinite, Pointer, Scheme,
    Selected, Settings, Transform, Where, add_strip,
};

/// So many differing parts are named, or tried one by one, at most.
const PARTS_MAX: usize = 8;
/// Rounding to more decimals than these changes no double of common size.
const DECIMALS_TRIED_MAX: u16 = 17;
/// What lets a protocol look into lines.
pub(super) const PARSED: &str = "canonical.scheme = \"python-json\"";

/// Changes of settings that make two events one: single ones, or if there are none, two together. What leaves out
/// what differs comes last, as it makes more events one than any other.
pub(super) fn remedies(
    settings: &Settings,
    places: &[Place],
    makes_one: &dyn Fn(&Settings) -> bool,
) -> Vec<String> {
    let pointers: Vec<String> = places.iter().map(|(pointer, ..)| pointer.clone()).collect();
    let mut changes = changes(settings);
    let omitting = changes.len();
    changes.extend(omissions(settings, pointers));
    let apply = |changes: &[&Change]| {
        let mut changed = settings.clone();
        changes.iter().for_each(|change| (change.apply)(&mut changed));
        changed
    };
    let single = |change: &&Change| makes_one(&apply(&[change]));
    let singles =
        |changes: &[Change]| changes.iter().filter(single).map(|change| change.text.clone()).collect();
    let mut remedies: Vec<String> = singles(&changes[..omitting]);
    remedies.extend(fewer_decimals(settings, makes_one));
    remedies.extend::<Vec<String>>(singles(&changes[omitting..]));
    if !remedies.is_empty() {
        return remedies;
    }
    for (position, one) in changes.iter().enumerate() {
        let others = changes[position + 1..].iter().filter(|other| makes_one(&apply(&[one, other])));
        let others = others.map(|other| other.text.clone());
        let others: Vec<String> = others.chain(fewer_decimals(&apply(&[one]), makes_one)).collect();
        remedies.extend(others.iter().map(|other| format!("{} and {other}", one.text)));
    }
    remedies
}

/// The most decimals that make the events one, if rounding does.
fn fewer_decimals(settings: &Settings, makes_one: &dyn Fn(&Settings) -> bool) -> Option<String> {
    if settings.scheme == Scheme::Bytes {
        return None;
    }
    let most = settings.decimals.unwrap_or(DECIMALS_TRIED_MAX + 1).min(DECIMALS_TRIED_MAX + 1);
    let decimals = (0..most)
        .rev()
        .find(|&decimals| makes_one(&Settings { decimals: Some(decimals), ..settings.clone() }))?;
    let caution = if decimals < 6 { " (fewer than 6 merge distinct points)" } else { "" };
    Some(format!("numbers.decimals = {decimals}{caution}"))
}

/// A change of a setting that may make events one.
struct Change {
    text: String,
    apply: Box<dyn Fn(&mut Settings)>,
}

impl Change {
    fn new(text: impl Into<String>, apply: impl Fn(&mut Settings) + 'static) -> Self {
        Self { text: text.into(), apply: Box::new(apply) }
    }
}

/// The changes that are to be tried: those that make more events one, and are not made already.
fn changes(settings: &Settings) -> Vec<Change> {
    if settings.scheme == Scheme::Bytes {
        return vec![Change::new(PARSED, |settings| settings.scheme = Scheme::PythonJson)];
    }
    let mut changes = Vec::new();
    let mut add = |is_new: bool, text: &str, apply: fn(&mut Settings)| {
        if is_new {
            changes.push(Change::new(text, apply));
        }
    };
    let python = settings.scheme == Scheme::PythonJson;
    let plain = Settings::default();
    // What `jcs` fixes cannot stand beside it.
    let may_be_jcs = python
        && (settings.members, settings.separators, settings.non_ascii)
            == (plain.members, plain.separators, plain.non_ascii)
        && (settings.negative_zero, settings.integral) == (plain.negative_zero, plain.integral);
    add(
        python && settings.negative_zero == NegativeZero::Keep,
        "numbers.negative_zero = \"fold\"",
        |settings| {
            settings.negative_zero = NegativeZero::Fold;
        },
    );
    add(python && settings.integral == Integral::Keep, "numbers.integral = \"unify\"", |settings| {
        settings.integral = Integral::Unify;
    });
    add(settings.round_where == Where::Coordinates, "numbers.where = \"everywhere\"", |settings| {
        settings.round_where = Where::Everywhere;
    });
    add(settings.identity == Identity::Serialization, "geometry.identity = \"shape\"", |settings| {
        settings.identity = Identity::Shape;
    });
    add(
        settings.crs == CrsPolicy::AsIs && settings.decimals.is_some(),
        "geometry.crs = \"wgs84\"",
        |settings| {
            settings.crs = CrsPolicy::Wgs84;
        },
    );
    add(python && settings.members == Members::AsWritten, "canonical.members = \"sorted\"", |settings| {
        settings.members = Members::Sorted;
    });
    add(may_be_jcs, "canonical.scheme = \"jcs\"", |settings| {
        settings.scheme = Scheme::Jcs;
        settings.duplicate_names = DuplicateNames::Reject;
        settings.non_finite = NonFinite::Reject;
    });
    changes
}

/// The changes that leave out what differs, or transform it if it is selected.
fn omissions(settings: &Settings, pointers: Vec<String>) -> Vec<Change> {
    if settings.scheme == Scheme::Bytes {
        return Vec::new();
    }
    if !settings.select.is_empty() {
        return changes_of_select(settings, &pointers);
    }
    let pointers = gathered(pointers);
    if pointers.iter().any(String::is_empty) {
        return Vec::new();
    }
    let quoted = |pointer: &String| serde_json::Value::from(shortened(pointer.clone())).to_string();
    let mut text = pointers.iter().take(PARTS_MAX).map(quoted).collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = pointers.len().checked_sub(PARTS_MAX) {
        text.push_str(&format!(" and {more} more members"));
    }
    vec![Change::new(format!("event.strip with {text}"), move |settings| {
        // Pointers that are made here are well-formed.
        let _ = add_strip(&pointers, settings);
    })]
}

/// The pointers, or if they are many, those of what they are in, up to the members of the event.
fn gathered(mut pointers: Vec<String>) -> Vec<String> {
    while pointers.len() > PARTS_MAX {
        let depth = |pointer: &String| pointer.matches('/').count();
        let deepest = pointers.iter().map(depth).max().unwrap_or(0);
        if deepest <= 1 {
            break;
        }
        for pointer in pointers.iter_mut().filter(|pointer| depth(pointer) == deepest) {
            pointer.truncate(pointer.rfind('/').unwrap_or(0));
        }
        pointers.sort();
        pointers.dedup();
    }
    pointers
}

/// A selected member that differs may be left out, or transformed.
fn changes_of_select(settings: &Settings, pointers: &[String]) -> Vec<Change> {
    let mut changes = Vec::new();
    for selected in &settings.select {
        let place = Pointer::of(vec![selected.member.clone()]).to_string();
        let is_inside = |pointer: &String| {
            pointer.strip_prefix(&place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !pointers.iter().any(is_inside) {
            continue;
        }
        changes.extend(sorting(selected, &place, pointers));
        let member = selected.member.clone();
        if settings.select.len() > 1 {
            changes.push(Change::new(format!("select without {}", printable(&member)), move |settings| {
                settings.select.retain(|selected| selected.member != member);
            }));
        }
        for (word, transform) in [
            ("strip", Transform::Strip),
            ("lower", Transform::Lower),
            ("nfc", Transform::Nfc),
            ("str", Transform::Str),
            ("{ fixed = 2 }", Transform::Fixed(2)),
        ] {
            let member = selected.member.clone();
            let text = format!("select {} with transform {word}", printable(&member));
            changes.push(Change::new(text, move |settings| {
                let selected = settings.select.iter_mut().find(|selected| selected.member == member);
                selected.into_iter().for_each(|selected| selected.transforms.push(transform.clone()));
            }));
        }
    }
    changes
}

/// The elements of a selected array may be sorted by something in each of them that differs in some.
fn sorting(selected: &Selected, place: &str, pointers: &[String]) -> Vec<Change> {
    let in_elements = pointers.iter().filter_map(|pointer| {
        let (position, rest) = pointer.strip_prefix(place)?.strip_prefix('/')?.split_once('/')?;
        position.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("/{rest}"))
    });
    let candidates: BTreeSet<String> = in_elements.filter(|_| selected.transforms.is_empty()).collect();
    let candidates = candidates.into_iter().take(PARTS_MAX).filter_map(|text| Pointer::parse(&text).ok());
    let change = |pointer: Pointer| {
        let member = selected.member.clone();
        let quoted = serde_json::Value::from(pointer.to_string());
        let text = format!("select {} with transform {{ sort_by = {quoted} }}", printable(&member));
        Change::new(text, move |settings| {
            let selected = settings.select.iter_mut().find(|selected| selected.member == member);
            selected
                .into_iter()
                .for_each(|selected| selected.transforms = vec![Transform::SortBy(pointer.clone())]);
        })
    };
    candidates.map(change).collect()
}
