//! A tape and a protocol to canonical bytes.
//!
//! In: the tape of one event. Out: the bytes that are hashed, appended to a buffer. Under the scheme
//! `python-json` they are what CPython's `json.dumps` gives, after members are stripped and doubles
//! rounded; under `jcs`, what RFC 8785 gives.

use std::cmp::Ordering;

use crate::error::{Invalid, Reason};
use crate::escape::{write_escaped_string, write_string};
use crate::number::{NumberStyle, write_double};
use crate::protocol::{
    DuplicateNames, Members, NameSet, NonAscii, NonFinite, Protocol, Scheme, Separators, Settings, Where,
};
use crate::tape::{Node, Tape};

/// The settings that the canonical form depends on, and scratch space.
pub(crate) struct Canonicaliser {
    strip: NameSet,
    style: Style,
    /// Whether what is being written is inside a member named `coordinates`.
    in_coordinates: bool,
    /// The members of the objects being written: each one's stand on top of its parent's.
    members: Vec<Member>,
}

/// How things are written.
#[derive(Clone, Copy)]
struct Style {
    order: Order,
    comma: &'static [u8],
    colon: &'static [u8],
    escape_non_ascii: bool,
    numbers: NumberStyle,
    /// Integers are doubles, as in ECMAScript.
    integers_are_doubles: bool,
    only_coordinates_are_rounded: bool,
    reject_duplicates: bool,
    reject_non_finite: bool,
}

/// The order of members.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// By code points, which is the order of UTF-8 bytes.
    CodePoints,
    /// By UTF-16 code units (RFC 8785, section 3.2.3).
    CodeUnits,
    AsWritten,
}

/// A member of an object, ready to be sorted.
#[derive(Clone, Copy)]
struct Member {
    /// The first eight bytes of the name, big-endian: decides most comparisons.
    prefix: u64,
    /// The indices of the nodes of name and value; a line has fewer nodes than bytes, so they fit.
    name: u32,
    value: u32,
}

impl Member {
    fn new(prefix: u64, name: usize) -> Self {
        Self { prefix, name: name as u32, value: name as u32 + 1 }
    }
}

impl Style {
    fn new(settings: &Settings) -> Self {
        let jcs = settings.scheme == Scheme::Jcs;
        let spaced = settings.separators == Separators::Spaced;
        Self {
            order: match settings.members {
                _ if jcs => Order::CodeUnits,
                Members::Sorted => Order::CodePoints,
                Members::AsWritten => Order::AsWritten,
            },
            comma: if spaced { b", " } else { b"," },
            colon: if spaced { b": " } else { b":" },
            escape_non_ascii: settings.non_ascii == NonAscii::Escape,
            numbers: NumberStyle::new(settings),
            integers_are_doubles: jcs,
            only_coordinates_are_rounded: settings.round_where == Where::Coordinates,
            reject_duplicates: settings.duplicate_names == DuplicateNames::Reject,
            reject_non_finite: settings.non_finite == NonFinite::Reject,
        }
    }
}

impl Canonicaliser {
    pub(crate) fn new(protocol: &Protocol) -> Self {
        let settings = protocol.settings();
        Self {
            // A projection has stripped already.
            strip: if settings.projects() { NameSet::default() } else { settings.strip.clone() },
            style: Style::new(settings),
            in_coordinates: false,
            members: Vec::new(),
        }
    }

    /// Appends the canonical form of the event to `out`.
    pub(crate) fn write(&mut self, tape: &Tape<'_>, out: &mut Vec<u8>) -> Result<(), Invalid> {
        self.members.clear();
        self.in_coordinates = false;
        match tape.node(0) {
            Node::Object { len, .. } => self.write_object(tape, 0, len, out),
            _ => Err(Invalid { reason: Reason::NotAnObject, byte: 1 }),
        }
    }

    /// Appends the canonical form of a part of the event to `out`, as if it stood inside `coordinates` or not.
    pub(crate) fn write_part(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        in_coordinates: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        self.members.clear();
        self.in_coordinates = in_coordinates;
        self.write_value(tape, index, out)
    }

    /// The nodes of name and value of each member of an object that is written, in their order.
    pub(crate) fn members(&mut self, tape: &Tape<'_>, index: usize) -> Result<Vec<(usize, usize)>, Invalid> {
        self.members.clear();
        let len = tape.members(index).count();
        self.order_members(tape, index, len)?;
        Ok(self.members.iter().map(|member| (member.name as usize, member.value as usize)).collect())
    }

    /// Gives back what a long line needed.
    pub(crate) fn give_back(&mut self) {
        self.members = Vec::new();
    }

    fn write_value(&mut self, tape: &Tape<'_>, index: usize, out: &mut Vec<u8>) -> Result<(), Invalid> {
        match tape.node(index) {
            Node::Null => out.extend_from_slice(b"null"),
            Node::Bool(true) => out.extend_from_slice(b"true"),
            Node::Bool(false) => out.extend_from_slice(b"false"),
            Node::Unsigned(value) if self.style.integers_are_doubles => self.write_number(value as f64, out),
            Node::Signed(value) if self.style.integers_are_doubles => self.write_number(value as f64, out),
            Node::Unsigned(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Node::Signed(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Node::BigInteger(digits) if self.style.integers_are_doubles => {
                // Digits are a number; past the range of a double it is infinite.
                let value = digits.parse().unwrap_or(f64::INFINITY);
                if !f64::is_finite(value) {
                    return Err(Invalid {
                        reason: Reason::NonFinite,
                        byte: tape.byte_of(index).unwrap_or(0),
                    });
                }
                self.write_number(value, out);
            }
            Node::BigInteger(digits) => out.extend_from_slice(digits.as_bytes()),
            Node::Double(value) => self.write_number(value, out),
            Node::NonFinite { byte, .. } if self.style.reject_non_finite => {
                return Err(Invalid { reason: Reason::NonFinite, byte });
            }
            Node::NonFinite { value, .. } => self.write_number(value, out),
            Node::Str(text) => self.write_string(text, out),
            Node::LoneSurrogate { wtf8, .. } if self.style.escape_non_ascii => {
                write_escaped_string(wtf8, out)
            }
            Node::LoneSurrogate { byte, .. } => return Err(Invalid { reason: Reason::LoneSurrogate, byte }),
            Node::Array { len, .. } => self.write_array(tape, index, len, out)?,
            Node::Object { len, .. } => self.write_object(tape, index, len, out)?,
        }
        Ok(())
    }

    fn write_array(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        out.push(b'[');
        let mut element = index + 1;
        for position in 0..len {
            if position > 0 {
                out.extend_from_slice(self.style.comma);
            }
            self.write_value(tape, element, out)?;
            element = tape.after(element);
        }
        out.push(b']');
        Ok(())
    }

    fn write_object(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        let base = self.members.len();
        self.order_members(tape, index, len)?;
        out.push(b'{');
        for position in base..self.members.len() {
            let Member { name, value, .. } = self.members[position];
            if position > base {
                out.extend_from_slice(self.style.comma);
            }
            match tape.node(name as usize) {
                Node::Str(text) => self.write_string(text, out),
                _ => write_escaped_string(name_of(tape, name), out),
            }
            out.extend_from_slice(self.style.colon);
            let outside = self.in_coordinates;
            if self.style.only_coordinates_are_rounded {
                self.in_coordinates |= name_of(tape, name) == b"coordinates";
            }
            self.write_value(tape, value as usize, out)?;
            self.in_coordinates = outside;
        }
        out.push(b'}');
        self.members.truncate(base);
        Ok(())
    }

    /// Puts the members of the object at `index` on the stack, in the order in which they are written.
    fn order_members(&mut self, tape: &Tape<'_>, index: usize, len: usize) -> Result<(), Invalid> {
        let base = self.members.len();
        self.collect_members(tape, index, len)?;
        sort_members(tape, self.style.order, &mut self.members[base..]);
        self.merge_repeated(tape, base)
    }

    /// Puts the members of the object at `index` on the stack, without those that are stripped.
    fn collect_members(&mut self, tape: &Tape<'_>, index: usize, len: usize) -> Result<(), Invalid> {
        let mut name = index + 1;
        for _ in 0..len {
            match tape.node(name) {
                Node::Str(text) if index == 0 && self.strip.contains(text) => {}
                Node::Str(text) => {
                    self.members.push(Member::new(prefix(text.as_bytes()), name));
                }
                Node::LoneSurrogate { wtf8, .. } if self.style.escape_non_ascii => {
                    self.members.push(Member::new(prefix(wtf8), name));
                }
                Node::LoneSurrogate { byte, .. } => {
                    return Err(Invalid { reason: Reason::LoneSurrogate, byte });
                }
                _ => unreachable!("a tape has a string for every member's name"),
            }
            name = tape.after(name + 1);
        }
        Ok(())
    }

    /// Makes one of the sorted members with one name: the first one's name, the last one's value.
    fn merge_repeated(&mut self, tape: &Tape<'_>, base: usize) -> Result<(), Invalid> {
        let mut kept = base;
        for position in base..self.members.len() {
            let member = self.members[position];
            let repeats = position > base && {
                let before = self.members[kept - 1];
                before.prefix == member.prefix && name_of(tape, before.name) == name_of(tape, member.name)
            };
            if repeats && self.style.reject_duplicates {
                let byte = tape.byte_of(member.name as usize).unwrap_or(0);
                return Err(Invalid { reason: Reason::DuplicateName, byte });
            }
            if repeats {
                self.members[kept - 1].value = member.value;
            } else {
                self.members[kept] = member;
                kept += 1;
            }
        }
        self.members.truncate(kept);
        if self.style.order == Order::AsWritten {
            self.members[base..].sort_unstable_by_key(|member| member.name);
        }
        Ok(())
    }

    fn write_number(&self, value: f64, out: &mut Vec<u8>) {
        if self.style.only_coordinates_are_rounded && !self.in_coordinates {
            write_double(value, &NumberStyle { rounding: None, ..self.style.numbers }, out);
        } else {
            write_double(value, &self.style.numbers, out);
        }
    }

    fn write_string(&self, text: &str, out: &mut Vec<u8>) {
        if self.style.escape_non_ascii && !text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
            write_escaped_string(text.as_bytes(), out);
        } else {
            write_string(text, out);
        }
    }
}

/// Sorts by name, so that members with one name are neighbours, in the order of the text.
fn sort_members(tape: &Tape<'_>, order: Order, members: &mut [Member]) {
    if order == Order::CodeUnits {
        return members.sort_unstable_by(|a, b| {
            cmp_code_units(name_of(tape, a.name), name_of(tape, b.name)).then_with(|| a.name.cmp(&b.name))
        });
    }
    members.sort_unstable_by(|a, b| {
        a.prefix
            .cmp(&b.prefix)
            .then_with(|| name_of(tape, a.name).cmp(name_of(tape, b.name)))
            .then_with(|| a.name.cmp(&b.name))
    });
}

/// Compares UTF-8 as UTF-16: the same, but that U+E000 to U+FFFF, which begin with the bytes EE and EF,
/// come after what is past them.
fn cmp_code_units(a: &[u8], b: &[u8]) -> Ordering {
    let place = |byte: u8| if byte == 0xEE || byte == 0xEF { byte + 0x10 } else { byte };
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((&a, &b)) => place(a).cmp(&place(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// The bytes of a name; their order is that of code points, surrogates included.
fn name_of<'a>(tape: &Tape<'a>, index: u32) -> &'a [u8] {
    match tape.node(index as usize) {
        Node::Str(text) => text.as_bytes(),
        Node::LoneSurrogate { wtf8, .. } => wtf8,
        _ => unreachable!("only members with a proper name are collected"),
    }
}

#[inline]
fn prefix(name: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = name.len().min(8);
    bytes[..length].copy_from_slice(&name[..length]);
    u64::from_be_bytes(bytes)
}
