//! A tape and a protocol to canonical bytes.
//!
//! In: the tape of one event. Out: the bytes that are hashed, appended to a buffer: what CPython
//! gives for `json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` after
//! the envelope members are dropped and every double is rounded. Names are sorted by code points,
//! which is the order of their UTF-8 bytes; of members with one name the last one counts.

use crate::error::{Invalid, Reason};
use crate::number::{Rounding, write_double};
use crate::protocol::{NameSet, Protocol};
use crate::tape::{Node, Tape};

/// The settings that the canonical form depends on, and scratch space.
pub(crate) struct Canonicaliser {
    strip: NameSet,
    rounding: Option<Rounding>,
    /// The members of the objects being written: each one's stand on top of its parent's.
    members: Vec<Member>,
}

/// A member of an object, ready to be sorted.
#[derive(Clone, Copy)]
struct Member {
    /// The first eight bytes of the name, big-endian: decides most comparisons.
    prefix: u64,
    /// The index of the name's node; the value's is the next one.
    name: usize,
}

impl Canonicaliser {
    pub(crate) fn new(protocol: &Protocol) -> Self {
        Self {
            strip: protocol.strip().clone(),
            rounding: protocol.decimals().map(Rounding::new),
            members: Vec::new(),
        }
    }

    /// Appends the canonical form of the event to `out`.
    pub(crate) fn write(&mut self, tape: &Tape<'_>, out: &mut Vec<u8>) -> Result<(), Invalid> {
        self.members.clear();
        match tape.node(0) {
            Node::Object { len, .. } => self.write_object(tape, 0, len, out),
            _ => Err(Invalid { reason: Reason::NotAnObject, byte: 1 }),
        }
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
            Node::Unsigned(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Node::Signed(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Node::BigInteger(digits) => out.extend_from_slice(digits.as_bytes()),
            Node::Double(value) => write_double(value, self.rounding, out),
            Node::Str(text) => write_string(text, out),
            Node::LoneSurrogate { byte } => return Err(Invalid { reason: Reason::LoneSurrogate, byte }),
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
                out.push(b',');
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
        self.collect_members(tape, index, len)?;
        sort_members(tape, &mut self.members[base..]);
        out.push(b'{');
        let mut first = true;
        for position in base..self.members.len() {
            let Member { prefix, name } = self.members[position];
            let text = name_of(tape, name);
            let repeated = self
                .members
                .get(position + 1)
                .is_some_and(|next| next.prefix == prefix && name_of(tape, next.name) == text);
            if repeated {
                continue;
            }
            if !first {
                out.push(b',');
            }
            first = false;
            write_string(text, out);
            out.push(b':');
            self.write_value(tape, name + 1, out)?;
        }
        out.push(b'}');
        self.members.truncate(base);
        Ok(())
    }

    /// Puts the members of the object at `index` on the stack, without those that are stripped.
    fn collect_members(&mut self, tape: &Tape<'_>, index: usize, len: usize) -> Result<(), Invalid> {
        let mut name = index + 1;
        for _ in 0..len {
            match tape.node(name) {
                Node::Str(text) if index == 0 && self.strip.contains(text) => {}
                Node::Str(text) => self.members.push(Member { prefix: prefix(text), name }),
                Node::LoneSurrogate { byte } => {
                    return Err(Invalid { reason: Reason::LoneSurrogate, byte });
                }
                _ => unreachable!("a tape has a string for every member's name"),
            }
            name = tape.after(name + 1);
        }
        Ok(())
    }
}

/// Sorts by name; members with one name stay in the order of the text.
fn sort_members(tape: &Tape<'_>, members: &mut [Member]) {
    members.sort_unstable_by(|a, b| {
        a.prefix
            .cmp(&b.prefix)
            .then_with(|| name_of(tape, a.name).cmp(name_of(tape, b.name)))
            .then_with(|| a.name.cmp(&b.name))
    });
}

fn name_of<'a>(tape: &Tape<'a>, index: usize) -> &'a str {
    match tape.node(index) {
        Node::Str(text) => text,
        _ => unreachable!("only members with a proper name are collected"),
    }
}

#[inline]
fn prefix(name: &str) -> u64 {
    let mut bytes = [0; 8];
    let length = name.len().min(8);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    u64::from_be_bytes(bytes)
}

/// Appends `text` as a JSON string in which only `"`, `\` and C0 controls are escaped.
fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let clean = clean_length(rest);
        out.extend_from_slice(&rest[..clean]);
        let Some(&byte) = rest.get(clean) else { break };
        write_escape(byte, out);
        rest = &rest[clean + 1..];
    }
    out.push(b'"');
}

#[cold]
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            return out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    };
    out.extend([b'\\', short]);
}

/// The length of the part of `bytes` before the first one that needs an escape. Eight bytes at a
/// time, as in "Bit Twiddling Hacks" (Anderson, "Determine if a word has a byte less than n"): the
/// test may take a byte after a true hit for a hit, but never one before it.
#[inline]
pub(crate) fn clean_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let mut clean = 0;
    for chunk in bytes.chunks_exact(8) {
        // A chunk of `chunks_exact(8)` has eight bytes.
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let is_quote = quote.wrapping_sub(ONES) & !quote;
        let is_backslash = backslash.wrapping_sub(ONES) & !backslash;
        let hits = (below_space | is_quote | is_backslash) & HIGHS;
        if hits != 0 {
            return clean + hits.trailing_zeros() as usize / 8;
        }
        clean += 8;
    }
    let needs_escape = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    clean + bytes[clean..].iter().position(needs_escape).unwrap_or(bytes.len() - clean)
}
