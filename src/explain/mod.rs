//! One event, stage by stage: what the protocol made of it on the way to its key.
//!
//! In: a protocol and the bytes of an event. Out: an [`Explanation`]. What is told is found by
//! comparing what came out of each stage with what went in, not by asking the settings, so that it is
//! what happened. Every node of the exact tape knows the byte where it stood in the event, through all
//! stages; by that, things are found again.

mod event;
mod pair;
mod remedy;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::canonical::Canonicaliser;
use crate::error::{Invalid, printable};
use crate::exact::ExactParser;
use crate::geometry::{Geometer, Notes};
use crate::key::Keyer;
use crate::project::{Projector, left_out};
use crate::protocol::ProtocolReport;
use crate::protocol::{Protocol, Scheme, Source, Transform, child};
use crate::tape::{Node, Tape};
use walk::{each_child, first_byte, name_of, values_by_name};

pub use event::read_event;
pub use pair::{Difference, difference};

/// Of a long list, this many are shown.
const SHOWN_MAX: usize = 20;

/// What became of one event. It displays as lines for people. Places are JSON Pointers (RFC 6901).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The protocol's name and fingerprint.
    pub protocol: String,
    /// Members and elements that are left out.
    pub stripped: Vec<String>,
    /// Members that do not count, because a later one has the same name.
    pub repeated: Vec<String>,
    /// Constant members that are put in, and their texts.
    pub added: Vec<(String, String)>,
    /// Selected members, where each comes from, and its text.
    pub selected: Vec<(String, String, String)>,
    /// Numbers that are written in another way.
    pub numbers: Vec<NumberChange>,
    /// Arrays whose elements are in another order.
    pub reordered: Vec<String>,
    /// Objects whose members are in another order, and that order.
    pub moved: Vec<(String, Vec<String>)>,
    /// Rings of polygons that enclose nothing, and so kept their order.
    pub degenerate_rings: u64,
    /// Whether a `crs` member names a system other than WGS 84 and is left as it is.
    pub foreign_crs: bool,
    /// The bytes that are hashed.
    pub canonical: Vec<u8>,
    /// The key, with its prefix.
    pub key: String,
}

/// A number that is written in another way than in the event.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberChange {
    /// Where it stood in the event.
    pub pointer: String,
    /// Its text there.
    pub from: String,
    /// Its canonical text.
    pub to: String,
}

/// Explains the key of the event that `event` holds, which may span several lines.
///
/// ```
/// use firstseen::{Protocol, explain};
///
/// let protocol = Protocol::built_in("geojson-v1")?;
/// let explained = explain(&protocol, br#"{"type":"Feature","reading":17.30000000000001,"attempt":1}"#)?;
/// assert_eq!(explained.stripped, ["/attempt"]);
/// assert_eq!(explained.numbers[0].to, "17.3");
/// assert_eq!(explained.moved[0].1, ["reading", "type"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Invalid`] if it is no event.
pub fn explain(protocol: &Protocol, event: &[u8]) -> Result<Explanation, Invalid> {
    let (key, canonical) =
        Keyer::new(protocol).key_and_canonical(event).map(|(key, form)| (key, form.to_vec()))?;
    let settings = protocol.settings();
    let report = ProtocolReport::of(protocol);
    let mut explanation = Explanation {
        protocol: format!("{} ({})", report.name, report.fingerprint),
        canonical,
        key: format!("{}{key}", settings.prefix),
        ..Explanation::default()
    };
    if settings.scheme == Scheme::Bytes {
        return Ok(explanation);
    }
    let mut parser = ExactParser::default();
    let original = parser.parse(event)?;
    let mut notes = Notes::default();
    let mut geometer = Geometer::new(protocol);
    let normalised = geometer.normalise(&original, event, &mut notes)?;
    explanation.degenerate_rings = notes.degenerate_rings;
    explanation.foreign_crs = notes.foreign_crs > 0;
    let left_out = if normalised.is_none() { left_out(&original, settings) } else { Vec::new() };
    let left_out = left_out.into_iter().collect();
    let normalised = normalised.as_ref().unwrap_or(&original);
    let mut projector = Projector::new(protocol);
    let projected = projector.as_mut().map(|projector| projector.project(normalised)).transpose()?;
    let hashed = projected.as_ref().unwrap_or(normalised);

    let mut trace = Trace {
        event,
        left_out,
        selects: !settings.select.is_empty(),
        places: BTreeMap::new(),
        kept: BTreeSet::new(),
        numbers: BTreeSet::new(),
        reordered: BTreeSet::new(),
        canonicaliser: Canonicaliser::new(protocol),
        explanation,
    };
    trace.note_places(&original, 0, &mut String::new());
    trace.follow(hashed, 0, &mut String::new(), false)?;
    if settings.select.is_empty() {
        trace.find_left_out(&original, 0, &mut String::new());
    } else {
        trace.note_selected(protocol, hashed)?;
    }
    Ok(trace.explanation)
}

/// The stages of one event, compared.
struct Trace<'a> {
    event: &'a [u8],
    /// Elements of the event that pointers leave out, where no geometry has been put in another order.
    left_out: BTreeSet<usize>,
    /// Whether the top level is made of what is selected.
    selects: bool,
    /// Where in the event the strings, names and numbers are that start at a byte.
    places: BTreeMap<usize, String>,
    /// The bytes of the strings, names and numbers that are written.
    kept: BTreeSet<usize>,
    /// The bytes of the numbers that were looked at.
    numbers: BTreeSet<usize>,
    /// The arrays whose elements are in another order.
    reordered: BTreeSet<String>,
    canonicaliser: Canonicaliser,
    explanation: Explanation,
}

impl Trace<'_> {
    fn note_places(&mut self, tape: &Tape<'_>, index: usize, pointer: &mut String) {
        if let Some(byte) = tape.byte_of(index) {
            self.places.insert(byte, pointer.clone());
        }
        each_child(tape, index, pointer, &mut |name, value, pointer| {
            if let Some(byte) = name.and_then(|name| tape.byte_of(name)) {
                self.places.insert(byte, pointer.clone());
            }
            self.note_places(tape, value, pointer);
        });
    }

    /// Follows what is hashed in the order in which it is written.
    fn follow(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        pointer: &mut String,
        in_coordinates: bool,
    ) -> Result<(), Invalid> {
        if let Some(byte) = tape.byte_of(index) {
            self.kept.insert(byte);
        }
        match tape.node(index) {
            Node::Object { .. } => self.follow_members(tape, index, pointer, in_coordinates)?,
            Node::Array { .. } => {
                let starts = tape.elements(index).filter_map(|element| first_byte(tape, element));
                if !starts.is_sorted() {
                    self.explanation.reordered.push(pointer.clone());
                    self.reordered.insert(pointer.clone());
                }
                for (position, element) in tape.elements(index).enumerate() {
                    child(pointer, &position.to_string(), |pointer| {
                        self.follow(tape, element, pointer, in_coordinates)
                    })?;
                }
            }
            Node::Double(_) | Node::NonFinite { .. } | Node::BigInteger(_) => {
                self.note_number(tape, index, in_coordinates)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn follow_members(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        pointer: &mut String,
        in_coordinates: bool,
    ) -> Result<(), Invalid> {
        let members = self.canonicaliser.members(tape, index)?;
        if !members.is_sorted() {
            let names = members.iter().map(|(name, _)| name_of(tape, *name)).collect();
            self.explanation.moved.push((pointer.clone(), names));
        }
        for (name, value) in members {
            let text = name_of(tape, name);
            match tape.byte_of(name) {
                Some(byte) if byte > 1 => drop(self.kept.insert(byte)),
                // Its value is a part of the event all the same.
                _ if self.selects && index == 0 => {}
                // What the protocol itself puts in has no place in the event.
                _ => {
                    let written = self.text_of(tape, value, in_coordinates)?;
                    self.explanation.added.push((format!("/{text}"), written));
                    continue;
                }
            }
            let in_coordinates = in_coordinates || text == "coordinates";
            child(pointer, &text, |pointer| self.follow(tape, value, pointer, in_coordinates))?;
        }
        Ok(())
    }

    fn note_number(&mut self, tape: &Tape<'_>, index: usize, in_coordinates: bool) -> Result<(), Invalid> {
        let to = self.text_of(tape, index, in_coordinates)?;
        let Some((byte, pointer)) =
            tape.byte_of(index).and_then(|byte| Some((byte, self.places.get(&byte)?)))
        else {
            return Ok(());
        };
        // What closes a ring that starts elsewhere is written twice.
        if !self.numbers.insert(byte) {
            return Ok(());
        }
        let digits = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let from: Vec<u8> = self.event[byte - 1..].iter().take_while(digits).copied().collect();
        let from = String::from_utf8_lossy(&from).into_owned();
        if from != to {
            self.explanation.numbers.push(NumberChange { pointer: pointer.clone(), from, to });
        }
        Ok(())
    }

    fn text_of(&mut self, tape: &Tape<'_>, index: usize, in_coordinates: bool) -> Result<String, Invalid> {
        let mut text = Vec::new();
        self.canonicaliser.write_part(tape, index, in_coordinates, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Finds what of the event is not written.
    fn find_left_out(&mut self, tape: &Tape<'_>, index: usize, pointer: &mut String) {
        let is_kept =
            |(name, _): &(usize, usize)| tape.byte_of(*name).is_none_or(|byte| self.kept.contains(&byte));
        let kept: BTreeSet<String> =
            tape.members(index).filter(is_kept).map(|(name, _)| name_of(tape, name)).collect();
        let counting = values_by_name(tape, index);
        let is_reordered = self.reordered.contains(pointer);
        each_child(tape, index, pointer, &mut |name, value, pointer| {
            let name = name.map(|name| name_of(tape, name));
            let is_written = match &name {
                Some(name) => kept.contains(name),
                None => self.keeps_some(tape, value),
            };
            // Of members with one name the last one's value is written, in the first one's place.
            let is_last = name.is_none_or(|name| counting.get(&name) == Some(&value));
            match (is_written, is_last) {
                (true, true) => self.find_left_out(tape, value, pointer),
                // What closes a ring is written anew if the ring starts elsewhere.
                (false, true) if is_reordered => {}
                (true, false) => self.explanation.repeated.push(pointer.clone()),
                (false, true) => self.explanation.stripped.push(pointer.clone()),
                (false, false) => {}
            }
        });
    }

    /// Whether something of an element is written. Of one without strings and numbers the bytes do not tell,
    /// but a pointer does.
    fn keeps_some(&self, tape: &Tape<'_>, index: usize) -> bool {
        if self.left_out.contains(&index) {
            return false;
        }
        let mut bytes = (index..tape.after(index)).filter_map(|node| tape.byte_of(node)).peekable();
        bytes.peek().is_none() || bytes.any(|byte| self.kept.contains(&byte))
    }

    fn note_selected(&mut self, protocol: &Protocol, tape: &Tape<'_>) -> Result<(), Invalid> {
        for selected in &protocol.settings().select {
            let sources = selected.first_of.iter().map(|source| match source {
                Source::Pointer(pointer, _) => pointer.to_string(),
                Source::Constant(value) => value.to_string(),
            });
            let mut from = sources.collect::<Vec<_>>().join(" or ");
            for transform in &selected.transforms {
                from.push_str(&match transform {
                    Transform::Fixed(decimals) => format!(", fixed {decimals}"),
                    Transform::SortBy(pointer) => format!(", sorted by {pointer}"),
                    other => format!(", {}", other.name()),
                });
            }
            if let Some(value) = tape.member(0, &selected.member) {
                let text = self.text_of(tape, value, selected.member == "coordinates")?;
                self.explanation.selected.push((selected.member.clone(), from, text));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: Vec<String>| if texts.is_empty() { vec!["nothing".to_owned()] } else { texts };
        let all = |pointers: &[String]| pointers.iter().map(|pointer| printable(pointer)).collect::<Vec<_>>();
        let object =
            |pointer: &str| if pointer.is_empty() { "the event".to_owned() } else { printable(pointer) };
        section(f, "protocol", std::slice::from_ref(&self.protocol))?;
        if self.selected.is_empty() {
            section(f, "stripped", &list(all(&self.stripped)))?;
        }
        section(f, "repeated", &all(&self.repeated))?;
        let pair = |(name, text): &(String, String)| format!("{} = {text}", printable(name));
        section(f, "added", &self.added.iter().map(pair).collect::<Vec<_>>())?;
        let triple = |(name, from, text): &(String, String, String)| {
            format!("{} = {text}  (from {from})", printable(name))
        };
        section(f, "selected", &self.selected.iter().map(triple).collect::<Vec<_>>())?;
        section(f, "reordered", &self.reordered.iter().map(|pointer| object(pointer)).collect::<Vec<_>>())?;
        let change = |change: &NumberChange| {
            format!("{}  {} -> {}", printable(&change.pointer), change.from, change.to)
        };
        section(f, "numbers", &list(self.numbers.iter().map(change).collect()))?;
        let names = |names: &[String]| all(names).join(", ");
        let moved =
            |(pointer, order): &(String, Vec<String>)| format!("{}: {}", object(pointer), names(order));
        section(f, "moved", &list(self.moved.iter().map(moved).collect()))?;
        if self.degenerate_rings > 0 {
            section(
                f,
                "note",
                &[format!("rings that enclose nothing kept their order: {}", self.degenerate_rings)],
            )?;
        }
        if self.foreign_crs {
            section(
                f,
                "note",
                &["a `crs` member names a system other than WGS 84, and is left as it is".to_owned()],
            )?;
        }
        section(f, "canonical", &[printable(&String::from_utf8_lossy(&self.canonical))])?;
        section(f, "length", &[format!("{} bytes", self.canonical.len())])?;
        section(f, "key", std::slice::from_ref(&self.key))
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    for (position, line) in lines.iter().take(SHOWN_MAX).enumerate() {
        let title = if position == 0 { title } else { "" };
        writeln!(f, "{title:<10} {line}")?;
    }
    match lines.len().checked_sub(SHOWN_MAX) {
        Some(more @ 1..) => writeln!(f, "{:<10} and {more} more", ""),
        _ => Ok(()),
    }
}
