//! Two events: whether they are one, and if not, where they differ and what would make them one.

use std::cell::Cell;
use std::fmt;

use crate::canonical::Canonicaliser;
use crate::error::{Invalid, printable};
use crate::exact::ExactParser;
use crate::key::Keyer;
use crate::protocol::{Protocol, Scheme, Settings, child};
use crate::tape::{Node, Tape};

use super::remedy::{PARSED, remedies};
use super::walk::{name_of, values_by_name};

/// A value longer than this is cut when it is shown.
const TEXT_MAX: usize = 200;
/// Changes of settings are tried until so many bytes have been keyed, which takes about a second.
const TRIED_BYTES_MAX: usize = 32 << 20;
/// So many are tried however large the events are: most of the single ones.
const TRIES_MIN: usize = 40;
/// What it costs to try one on events without content, as if they were so long.
const TRY_BYTES: usize = 16 << 10;

/// A place, and the texts there; `None` for what one of them does not have.
pub(super) type Place = (String, Option<String>, Option<String>);

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
    /// Whether the events are so large, or differ in so much, that not all changes were tried.
    pub gave_up: bool,
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
    let tries = Cell::new((TRIED_BYTES_MAX / (one.len() + other.len() + TRY_BYTES)).max(TRIES_MIN));
    let makes_one = |settings: &Settings| {
        let Some(left) = tries.get().checked_sub(1) else { return false };
        tries.set(left);
        forms(&protocol.with(settings)).is_ok_and(|((_, form), (_, other_form))| form == other_form)
    };
    difference.remedies = remedies(protocol.settings(), &difference.places, &makes_one);
    difference.gave_up = tries.get() == 0;
    if difference.remedies.is_empty() && protocol.settings().scheme == Scheme::Bytes {
        let parsed = Settings { scheme: Scheme::PythonJson, ..protocol.settings().clone() };
        // What is no event if it is looked into stays two.
        let further = self::difference(&protocol.with(&parsed), [one, other]).unwrap_or_default();
        difference.gave_up = further.gave_up;
        // Another scheme takes the place of this one.
        let alone = |remedy: &String| remedy.starts_with("canonical.scheme");
        let named = |remedy| if alone(&remedy) { remedy } else { format!("{PARSED} and {remedy}") };
        difference.remedies.extend(further.remedies.into_iter().map(named));
    }
    Ok(difference)
}

/// Where two canonical forms differ.
fn places(protocol: &Protocol, one: &[u8], other: &[u8]) -> Vec<Place> {
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
    places: Vec<Place>,
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
        let (values, other_values) = (values_by_name(first, one), values_by_name(second, other));
        let differing = self.places.len();
        for name in ones.iter().chain(others.iter().filter(|name| !values.contains_key(*name))) {
            let pair = (values.get(name).copied(), other_values.get(name).copied());
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

pub(super) fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = &self.keys;
        if self.is_none() {
            return writeln!(f, "one event: both have the key {one}");
        }
        writeln!(f, "two events: {one} and {other}")?;
        if let Some((pointer, one, other)) = self.places.first() {
            let place = if pointer.is_empty() {
                "the event".to_owned()
            } else {
                printable(&shortened(pointer.clone()))
            };
            let text = |text: &Option<String>| {
                text.as_ref().map_or_else(|| "nothing".to_owned(), |text| printable(text))
            };
            writeln!(f, "first difference, at {place}:\n  {}\n  {}", text(one), text(other))?;
            if self.places.len() > 1 {
                let places = self.places.len() - 1;
                writeln!(f, "{places} more {}", if places == 1 { "place differs" } else { "places differ" })?;
            }
        }
        match &self.remedies[..] {
            [] => writeln!(f, "none of the changes of settings that were tried would make them one")?,
            remedies => {
                writeln!(f, "any of these would make them one:")?;
                remedies.iter().try_for_each(|remedy| writeln!(f, "  {remedy}"))?;
            }
        }
        match self.gave_up {
            true => writeln!(f, "they are too large, or differ in too much, to try every change"),
            false => Ok(()),
        }
    }
}
