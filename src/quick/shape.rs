//! One shape: the bytes between values, in lines and in their canonical forms.

use super::line::{Line, PADDING, copy};
use super::scalar::{self, Rules, Value};
use crate::error::Invalid;
use crate::number::write_double;

const LEARNED_VALUES_MAX: usize = 128;

/// The bytes between values, in lines and in their canonical forms.
pub(super) struct Shape {
    /// All literals, and padding.
    text: Vec<u8>,
    /// The values of a line, with what stands before each.
    places: Vec<Place>,
    /// What stands after the last one.
    ending: Literal,
    /// What stands before a value of the output, and which value of the line that is.
    pieces: Vec<(Literal, usize)>,
    /// What stands after the last one.
    tail: Literal,
    /// The length of all literals of the output.
    written: usize,
}

/// Bytes of a shape's text.
#[derive(Clone, Copy)]
struct Literal {
    start: u32,
    len: u32,
}

struct Place {
    before: Literal,
    in_coordinates: bool,
}

impl Shape {
    /// Learns the shape of a line that is an event; `canonicalise` appends the canonical form of a line.
    pub(super) fn learn(
        line: &[u8],
        canonicalise: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<(), Invalid>,
    ) -> Option<Self> {
        let scalars = scalars(line)?;
        let mut text = Vec::new();
        let mut append = |bytes: &[u8]| {
            let start = text.len();
            text.extend_from_slice(bytes);
            // Lines that are learned are short.
            Literal { start: start as u32, len: bytes.len() as u32 }
        };
        let (mut places, mut probe) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (index, scalar) in scalars.iter().enumerate() {
            let literal = &line[at..scalar.start];
            places.push(Place { before: append(literal), in_coordinates: scalar.in_coordinates });
            probe.extend_from_slice(literal);
            probe.extend_from_slice(&marker(index));
            at = scalar.end;
        }
        let ending = append(&line[at..]);
        probe.extend_from_slice(&line[at..]);

        let mut canonical = Vec::new();
        canonicalise(&probe, &mut canonical).ok()?;
        let mut pieces = Vec::new();
        let mut rest = &canonical[..];
        while let Some(start) = memchr::memmem::find(rest, MARKER_START) {
            let after = &rest[start + MARKER_START.len()..];
            let digits = memchr::memmem::find(after, MARKER_END)?;
            let index = std::str::from_utf8(&after[..digits]).ok()?.parse().ok()?;
            scalars.get(index)?;
            pieces.push((append(&rest[..start]), index));
            rest = &after[digits + MARKER_END.len()..];
        }
        let tail = append(rest);
        let literals = pieces.iter().map(|(literal, _)| literal).chain([&tail]);
        let written = literals.map(|literal| literal.len as usize).sum();
        text.resize(text.len() + PADDING, 0);
        Some(Self { text, places, ending, pieces, tail, written })
    }

    /// What a line of this shape begins with.
    #[inline]
    pub(super) fn beginning(&self) -> &[u8] {
        let Literal { start, len } = self.places.first().map_or(self.ending, |place| place.before);
        &self.text[start as usize..][..len as usize]
    }

    /// Finds the values of a line of this shape. If it has another one, says how far it fitted.
    #[inline]
    pub(super) fn scan(&self, line: &Line, rules: &Rules, values: &mut Vec<Value>) -> Result<(), usize> {
        values.clear();
        let mut at = 0;
        for Place { before, in_coordinates } in &self.places {
            if !line.has(at, &self.text, before.start as usize, before.len as usize) {
                return Err(at);
            }
            at += before.len as usize;
            let (value, end) = scalar::scan(line, at, *in_coordinates, rules).ok_or(at)?;
            values.push(value);
            at = end;
        }
        let Literal { start, len } = self.ending;
        let ends = line.has(at, &self.text, start as usize, len as usize);
        if ends && at + len as usize == line.bytes().len() { Ok(()) } else { Err(at) }
    }

    /// Appends the canonical form of a line that has these values.
    #[inline]
    pub(super) fn write(&self, line: &Line, values: &[Value], rules: &Rules, out: &mut Vec<u8>) {
        // A value is written once at most, so that its bytes in the line are enough of them.
        let room = self.written + line.bytes().len() + PADDING;
        let mut at = out.len();
        out.resize(at + room, 0);
        for &(Literal { start, len }, index) in &self.pieces {
            copy(out, at, &self.text, start as usize, len as usize);
            at += len as usize;
            match values[index] {
                Value::Copy { start, end } => {
                    let len = end - start;
                    copy(out, at, line.padded(), start, len);
                    at += len;
                }
                Value::Double(value) => {
                    out.truncate(at);
                    write_double(value, &rules.of_number(self.places[index].in_coordinates).style, out);
                    at = out.len();
                    out.resize(at + room, 0);
                }
            }
        }
        copy(out, at, &self.text, self.tail.start as usize, self.tail.len as usize);
        out.truncate(at + self.tail.len as usize);
    }
}

/// A marker is a string with a control character at each end. Shapes have no names with escapes, so
/// the escape of a control character is in no canonical text but that of a marker.
const MARKER_START: &[u8] = b"\"\\u0001";
const MARKER_END: &[u8] = b"\\u0001\"";

fn marker(index: usize) -> Vec<u8> {
    [MARKER_START, index.to_string().as_bytes(), MARKER_END].concat()
}

/// Where a scalar value is in a line.
struct Scalar {
    start: usize,
    end: usize,
    in_coordinates: bool,
}

/// The scalar values of a line that is an event; `None` if it is not worth learning.
fn scalars(line: &[u8]) -> Option<Vec<Scalar>> {
    let mut scalars = Vec::new();
    let mut at = 0;
    // Whether each container that is open is inside a member named `coordinates`, and whether the next value is.
    let mut open = vec![false];
    let mut in_coordinates = false;
    while at < line.len() && scalars.len() <= LEARNED_VALUES_MAX {
        let start = at;
        at += 1;
        match line[start] {
            b'{' | b'[' => open.push(in_coordinates),
            b'}' | b']' => drop(open.pop()),
            b',' => in_coordinates = *open.last()?,
            b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            b'"' => {
                while *line.get(at)? != b'"' {
                    at += if line[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                let mut after = line[at..].iter().filter(|byte| !byte.is_ascii_whitespace());
                if after.next() != Some(&b':') {
                    scalars.push(Scalar { start, end: at, in_coordinates });
                    continue;
                }
                let name = &line[start + 1..at - 1];
                if name.contains(&b'\\') {
                    return None;
                }
                in_coordinates = *open.last()? || name == b"coordinates";
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
                at += line[at..].iter().position(ends)?;
                scalars.push(Scalar { start, end: at, in_coordinates });
            }
        }
    }
    (scalars.len() <= LEARNED_VALUES_MAX).then_some(scalars)
}
