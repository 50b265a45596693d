//! Two events: whether they are one, and if not, where they differ and what would make them one.

use std::collections::BTreeSet;
use std::fmt;

use crate::canonical::Canonicaliser;
use crate::error::{Invalid, printable};
use crate::exact::ExactParser;
use crate::key::Keyer;
use crate::protocol::{
    CrsPolicy, DuplicateNames, Identity, Integral, Members, NegativeZero, NonFinite, Protocol, Scheme,
    Settings, Transform, Where, add_strip, child,
};
use crate::tape::{Node, Tape};

use super::name_of;

/// So many differing parts are stripped together to make two events one, at most.
const STRIPPED_MAX: usize = 8;
/// Rounding to more decimals than these changes no double of common size.
const DECIMALS_TRIED_MAX: u16 = 17;
/// A value longer than this is cut when it is shown.
const TEXT_MAX: usize = 200;

/// How two events differ under a protocol. It displays as lines for people. Places are JSON Pointers
/// (RFC 6901) in what is hashed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The keys, with their prefix.
    pub keys: (String, String),
    /// The places where they differ, in the order in which they are written, each with both texts; `None` for
    /// what one of them does not have. Empty if they are one.
    pub places: Vec<(String, Option<String>, Option<String>)>,
    /// Changes of settings each of which would make them one.
    pub remedies: Vec<String>,
}

impl Difference {
    /// Whether the two are one event.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.keys.0 == self.keys.1
    }
}

/// How two events differ under a protocol.
///
/// # Errors
///
/// Which of the two is no event, 0 or 1, and why.
pub fn difference(protocol: &Protocol, [one, other]: [&[u8]; 2]) -> Result<Difference, (usize, Invalid)> {
    let forms = |protocol: &Protocol| {
        let mut keyer = Keyer::new(protocol);
        let mut form = |which, event| match keyer.key_and_canonical(event) {
            Ok((key, form)) => Ok((key, form.to_vec())),
            Err(invalid) => Err((which, invalid)),
        };
        Ok((form(0, one)?, form(1, other)?))
    };
    let ((key, form), (other_key, other_form)) = forms(protocol)?;
    let prefix = &protocol.settings().prefix;
    let mut difference = Difference {
        keys: (format!("{prefix}{key}"), format!("{prefix}{other_key}")),
        ..Difference::default()
    };
    if difference.is_none() {
        return Ok(difference);
    }
    difference.places = places(protocol, &form, &other_form);
    let makes_one = |settings: &Settings| {
        forms(&protocol.with(settings)).is_ok_and(|((_, form), (_, other_form))| form == other_form)
    };
    difference.remedies = remedies(protocol.settings(), &difference.places, &makes_one);
    Ok(difference)
}

/// Where two canonical forms differ.
fn places(protocol: &Protocol, one: &[u8], other: &[u8]) -> Vec<(String, Option<String>, Option<String>)> {
    if protocol.settings().scheme == Scheme::Bytes {
        let text = |form: &[u8]| Some(shortened(String::from_utf8_lossy(form).into_owned()));
        return vec![(String::new(), text(one), text(other))];
    }
    // A canonical form is an event whose parts are written as they are already.
    let plain = Settings {
        scheme: protocol.settings().scheme,
        members: protocol.settings().members,
        separators: protocol.settings().separators,
        non_ascii: protocol.settings().non_ascii,
        ..Settings::default()
    };
    let (mut parser, mut other_parser) = (ExactParser::default(), ExactParser::default());
    let (Ok(one), Ok(other)) = (parser.parse(one), other_parser.parse(other)) else { return Vec::new() };
    let canonicaliser = Canonicaliser::new(&protocol.with(&plain));
    let mut walk = Walk { tapes: [&one, &other], canonicaliser, places: Vec::new() };
    walk.compare([0, 0], &mut String::new());
    walk.places
}

/// A walk through two canonical forms side by side.
struct Walk<'a> {
    tapes: [&'a Tape<'a>; 2],
    canonicaliser: Canonicaliser,
    places: Vec<(String, Option<String>, Option<String>)>,
}

impl Walk<'_> {
    fn compare(&mut self, [one, other]: [usize; 2], pointer: &mut String) {
        let [first, second] = self.tapes;
        match (first.node(one), second.node(other)) {
            (Node::Object { .. }, Node::Object { .. }) => self.compare_members([one, other], pointer),
            (Node::Array { .. }, Node::Array { .. }) => {
                let (mut ones, mut others) = (first.elements(one), second.elements(other));
                for position in 0.. {
                    let pair = (ones.next(), others.next());
                    if pair == (None, None) {
                        break;
                    }
                    child(pointer, &position.to_string(), |pointer| self.compare_parts(pair, pointer));
                }
            }
            _ => {
                let (one, other) = (self.text(0, one), self.text(1, other));
                if one != other {
                    self.places.push((pointer.clone(), Some(shortened(one)), Some(shortened(other))));
                }
            }
        }
    }

    fn compare_members(&mut self, [one, other]: [usize; 2], pointer: &mut String) {
        let [first, second] = self.tapes;
        let names = |tape: &Tape<'_>, index| {
            tape.members(index).map(|(name, _)| name_of(tape, name)).collect::<Vec<_>>()
        };
        let (ones, others) = (names(first, one), names(second, other));
        let known: BTreeSet<&String> = ones.iter().collect();
        let differing = self.places.len();
        for name in ones.iter().chain(others.iter().filter(|name| !known.contains(name))) {
            let pair = (first.member(one, name), second.member(other, name));
            child(pointer, name, |pointer| self.compare_parts(pair, pointer));
        }
        if self.places.len() == differing && ones != others {
            // Nothing but the order.
            let order =
                |names: Vec<String>| Some(shortened(format!("members in the order {}", names.join(", "))));
            self.places.push((pointer.clone(), order(ones), order(others)));
        }
    }

    fn compare_parts(&mut self, pair: (Option<usize>, Option<usize>), pointer: &mut String) {
        match pair {
            (Some(one), Some(other)) => self.compare([one, other], pointer),
            (one, other) => {
                let one = one.map(|index| shortened(self.text(0, index)));
                let other = other.map(|index| shortened(self.text(1, index)));
                self.places.push((pointer.clone(), one, other));
            }
        }
    }

    fn text(&mut self, which: usize, index: usize) -> String {
        let mut text = Vec::new();
        // What has been written once can be written again.
        let _ = self.canonicaliser.write_part(self.tapes[which], index, true, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// Changes of settings that make two events one: single ones, or if there are none, two together.
fn remedies(
    settings: &Settings,
    places: &[(String, Option<String>, Option<String>)],
    makes_one: &dyn Fn(&Settings) -> bool,
) -> Vec<String> {
    let changes = changes(settings, places);
    let apply = |changes: &[&Change]| {
        let mut changed = settings.clone();
        changes.iter().for_each(|change| (change.apply)(&mut changed));
        changed
    };
    let single = |change: &&Change| makes_one(&apply(&[change]));
    let mut remedies: Vec<String> = changes.iter().filter(single).map(|change| change.text.clone()).collect();
    remedies.extend(fewer_decimals(settings, makes_one));
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
fn changes(settings: &Settings, places: &[(String, Option<String>, Option<String>)]) -> Vec<Change> {
    if settings.scheme == Scheme::Bytes {
        return vec![Change::new("canonical.scheme = \"python-json\"", |settings| {
            settings.scheme = Scheme::PythonJson
        })];
    }
    let mut changes = Vec::new();
    let pointers: Vec<String> = places.iter().map(|(pointer, ..)| pointer.clone()).collect();
    if settings.select.is_empty() {
        let pointers = gathered(pointers);
        if !pointers.iter().any(String::is_empty) {
            let quoted = |pointer: &String| serde_json::Value::from(&pointer[..]).to_string();
            let listed: Vec<String> = pointers.iter().map(quoted).collect();
            changes.push(Change::new(format!("event.strip with {}", listed.join(", ")), move |settings| {
                // Pointers that are made here are well-formed.
                let _ = add_strip(&pointers, settings);
            }));
        }
    } else {
        changes.extend(changes_of_select(settings, &pointers));
    }
    let mut add = |is_new: bool, text: &str, apply: fn(&mut Settings)| {
        if is_new {
            changes.push(Change::new(text, apply));
        }
    };
    let python = settings.scheme == Scheme::PythonJson;
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
    add(python, "canonical.scheme = \"jcs\"", |settings| {
        settings.scheme = Scheme::Jcs;
        settings.duplicate_names = DuplicateNames::Reject;
        settings.non_finite = NonFinite::Reject;
    });
    changes
}

/// The pointers, or if they are many, those of what they are in.
fn gathered(mut pointers: Vec<String>) -> Vec<String> {
    while pointers.len() > STRIPPED_MAX {
        let depth = |pointer: &String| pointer.matches('/').count();
        let deepest = pointers.iter().map(depth).max().unwrap_or(0);
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
        let mut place = String::new();
        let differs = child(&mut place, &selected.member, |place| {
            pointers.iter().any(|pointer| {
                pointer
                    .strip_prefix(place.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        });
        if !differs {
            continue;
        }
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

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = &self.keys;
        if self.is_none() {
            return writeln!(f, "one event: both have the key {one}");
        }
        writeln!(f, "two events: {one} and {other}")?;
        if let Some((pointer, one, other)) = self.places.first() {
            let place = if pointer.is_empty() { "the event".to_owned() } else { printable(pointer) };
            let text = |text: &Option<String>| {
                text.as_ref().map_or_else(|| "nothing".to_owned(), |text| printable(text))
            };
            writeln!(f, "first difference, at {place}:\n  {}\n  {}", text(one), text(other))?;
            if self.places.len() > 1 {
                let places = self.places.len() - 1;
                writeln!(f, "{places} more {} differ", if places == 1 { "place" } else { "places" })?;
            }
        }
        match &self.remedies[..] {
            [] => writeln!(f, "none of the changes of settings that were tried would make them one"),
            remedies => {
                writeln!(f, "any of these would make them one:")?;
                remedies.iter().try_for_each(|remedy| writeln!(f, "  {remedy}"))
            }
        }
    }
}
