//! A parsed line as a flat list of nodes, in the order of the text.
//!
//! There are two sources: simd-json's tape, and the one that [`exact`](crate::exact) makes of the
//! lines that simd-json cannot hold. A container is followed by its elements (of an object: name,
//! value, name, value), and knows how many nodes that are.

use std::ops::Range;

use simd_json::StaticNode;

use crate::error::{Invalid, Reason};

/// One node, whatever tape it is from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    /// An integer past 64 bits: its text, which is canonical as JSON allows no leading zeros.
    BigInteger(&'a str),
    Double(f64),
    /// `NaN`, an infinity, or a number past the range, that starts at this byte column.
    NonFinite {
        value: f64,
        byte: usize,
    },
    /// Unescaped.
    Str(&'a str),
    /// A string with a surrogate that has no other half, escaped at this byte column. It has no
    /// UTF-8 form: only an event that drops it has a key, or a protocol that escapes it.
    LoneSurrogate {
        /// The string in WTF-8.
        wtf8: &'a [u8],
        byte: usize,
    },
    Array {
        /// Elements.
        len: usize,
        /// Nodes that follow and belong to it.
        count: usize,
    },
    Object {
        /// Members.
        len: usize,
        /// Nodes that follow and belong to it.
        count: usize,
    },
}

/// The nodes of one line. Node 0 is the event.
pub(crate) enum Tape<'a> {
    Simd(&'a [simd_json::Node<'a>]),
    Exact { nodes: &'a [ExactNode], text: &'a str, wtf8: &'a [u8] },
}

/// A node of the exact parser. Ranges are of its text.
#[derive(Clone, Debug)]
pub(crate) enum ExactNode {
    Null,
    Bool(bool),
    Integer { range: Range<usize>, byte: usize },
    Double { value: f64, byte: usize },
    Str { range: Range<usize>, byte: usize },
    LoneSurrogate { range: Range<usize>, byte: usize },
    Array { len: usize, count: usize },
    Object { len: usize, count: usize },
}

impl<'a> Tape<'a> {
    // Called for every node; not inlined, it took a fifth of the canonical form's time.
    #[inline(always)]
    pub(crate) fn node(&self, index: usize) -> Node<'a> {
        match self {
            Self::Simd(nodes) => match nodes[index] {
                simd_json::Node::String(text) => Node::Str(text),
                simd_json::Node::Object { len, count } => Node::Object { len, count },
                simd_json::Node::Array { len, count } => Node::Array { len, count },
                simd_json::Node::Static(StaticNode::Null) => Node::Null,
                simd_json::Node::Static(StaticNode::Bool(value)) => Node::Bool(value),
                simd_json::Node::Static(StaticNode::I64(value)) => Node::Signed(value),
                simd_json::Node::Static(StaticNode::U64(value)) => Node::Unsigned(value),
                simd_json::Node::Static(StaticNode::F64(value)) => Node::Double(value),
            },
            Self::Exact { nodes, text, wtf8 } => match &nodes[index] {
                ExactNode::Null => Node::Null,
                ExactNode::Bool(value) => Node::Bool(*value),
                ExactNode::Integer { range, .. } => Node::BigInteger(&text[range.clone()]),
                ExactNode::Double { value, .. } if value.is_finite() => Node::Double(*value),
                ExactNode::Double { value, byte } => Node::NonFinite { value: *value, byte: *byte },
                ExactNode::Str { range, .. } => Node::Str(&text[range.clone()]),
                ExactNode::LoneSurrogate { range, byte } => {
                    Node::LoneSurrogate { wtf8: &wtf8[range.clone()], byte: *byte }
                }
                ExactNode::Array { len, count } => Node::Array { len: *len, count: *count },
                ExactNode::Object { len, count } => Node::Object { len: *len, count: *count },
            },
        }
    }

    /// The byte column of the string or number at `index`; `None` where the tape does not know it.
    pub(crate) fn byte_of(&self, index: usize) -> Option<usize> {
        match self {
            Self::Simd(_) => None,
            Self::Exact { nodes, .. } => match nodes[index] {
                ExactNode::Str { byte, .. }
                | ExactNode::Integer { byte, .. }
                | ExactNode::Double { byte, .. }
                | ExactNode::LoneSurrogate { byte, .. } => Some(byte),
                _ => None,
            },
        }
    }

    /// A fault at the node at `index`. Its byte column is 0 where the tape does not know it.
    pub(crate) fn fault(&self, index: usize, reason: Reason) -> Invalid {
        let byte = match self {
            Self::Simd(_) => 0,
            // What has no place of its own is a member's value, mostly: the name stands before it.
            Self::Exact { .. } => {
                self.byte_of(index).or_else(|| self.byte_of(index.checked_sub(1)?)).unwrap_or(1)
            }
        };
        Invalid { reason, byte }
    }

    /// The nodes of the name and the value of each member of an object; of what is none, nothing.
    pub(crate) fn members(&self, index: usize) -> impl Iterator<Item = (usize, usize)> {
        let len = if let Node::Object { len, .. } = self.node(index) { len } else { 0 };
        let mut next = index + 1;
        (0..len).map(move |_| {
            let name = next;
            next = self.after(name + 1);
            (name, name + 1)
        })
    }

    /// The nodes of name and value of those members of an object that have that name.
    pub(crate) fn members_named(&self, index: usize, name: &str) -> impl Iterator<Item = (usize, usize)> {
        self.members(index).filter(move |(node, _)| self.node(*node) == Node::Str(name))
    }

    /// The node of the value of an object's member of that name: of several, the last one.
    pub(crate) fn member(&self, index: usize, name: &str) -> Option<usize> {
        self.members_named(index, name).last().map(|(_, value)| value)
    }

    pub(crate) fn is_array(&self, index: usize) -> bool {
        matches!(self.node(index), Node::Array { .. })
    }

    /// The nodes of the elements of an array; of what is none, nothing.
    pub(crate) fn elements(&self, index: usize) -> impl Iterator<Item = usize> {
        let len = if let Node::Array { len, .. } = self.node(index) { len } else { 0 };
        let mut next = index + 1;
        (0..len).map(move |_| {
            let element = next;
            next = self.after(element);
            element
        })
    }

    /// The index of the node after the one at `index` and all that belongs to it.
    #[inline]
    pub(crate) fn after(&self, index: usize) -> usize {
        let count = match self {
            Self::Simd(nodes) => match nodes[index] {
                simd_json::Node::Object { count, .. } | simd_json::Node::Array { count, .. } => count,
                _ => 0,
            },
            Self::Exact { nodes, .. } => match nodes[index] {
                ExactNode::Object { count, .. } | ExactNode::Array { count, .. } => count,
                _ => 0,
            },
        };
        index + 1 + count
    }
}
