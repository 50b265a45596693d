//! Walks through tapes, and names as people read them.

use std::collections::BTreeMap;

use crate::protocol::child;
use crate::tape::{Node, Tape};

/// Calls `each` with the name, if it is a member, and the value of everything in a container, and with
/// the pointer to it.
pub(super) fn each_child(
    tape: &Tape<'_>,
    index: usize,
    pointer: &mut String,
    each: &mut impl FnMut(Option<usize>, usize, &mut String),
) {
    for (name, value) in tape.members(index) {
        child(pointer, &name_of(tape, name), |pointer| each(Some(name), value, pointer));
    }
    for (position, element) in tape.elements(index).enumerate() {
        child(pointer, &position.to_string(), |pointer| each(None, element, pointer));
    }
}

/// A member's name; lone surrogates in it are shown as their escapes.
pub(super) fn name_of(tape: &Tape<'_>, index: usize) -> String {
    match tape.node(index) {
        Node::Str(text) => text.to_owned(),
        Node::LoneSurrogate { wtf8, .. } => surrogates_escaped(wtf8),
        _ => String::new(),
    }
}

/// WTF-8 is UTF-8 in which a lone surrogate is three bytes, of which the first is ED and the second A0 or more.
fn surrogates_escaped(wtf8: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = wtf8;
    while let Some(start) = rest.windows(3).position(|bytes| bytes[0] == 0xED && bytes[1] >= 0xA0) {
        text.push_str(&String::from_utf8_lossy(&rest[..start]));
        let unit = 0xD000 | u32::from(rest[start + 1] & 0x3F) << 6 | u32::from(rest[start + 2] & 0x3F);
        text.push_str(&format!("\\u{unit:04x}"));
        rest = &rest[start + 3..];
    }
    text + &String::from_utf8_lossy(rest)
}

/// The members of an object that count, by name: of those with one name, the last.
pub(super) fn values_by_name(tape: &Tape<'_>, index: usize) -> BTreeMap<String, usize> {
    tape.members(index).map(|(name, value)| (name_of(tape, name), value)).collect()
}

/// The byte where the first string or number of a value stands.
pub(super) fn first_byte(tape: &Tape<'_>, index: usize) -> Option<usize> {
    (index..tape.after(index)).find_map(|node| tape.byte_of(node))
}
