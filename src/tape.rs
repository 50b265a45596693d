//! A parsed line as a flat list of nodes, in the order of the text.
//!
//! There are two sources: simd-json's tape, and the one that [`exact`](crate::exact) makes of the
//! lines that simd-json cannot hold. A container is followed by its elements (of an object: name,
//! value, name, value), and knows how many nodes that are.

use std::ops::Range;

use simd_json::StaticNode;

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
    /// Unescaped.
    Str(&'a str),
    /// A string with a surrogate that has no other half, escaped at this byte column. It has no
    /// UTF-8 form, so only an event that drops it has a key.
    LoneSurrogate {
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
    Exact { nodes: &'a [ExactNode], text: &'a str },
}

/// A node of the exact parser. Ranges are of its text.
#[derive(Clone, Debug)]
pub(crate) enum ExactNode {
    Null,
    Bool(bool),
    Integer(Range<usize>),
    Double(f64),
    Str(Range<usize>),
    LoneSurrogate { byte: usize },
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
            Self::Exact { nodes, text } => match &nodes[index] {
                ExactNode::Null => Node::Null,
                ExactNode::Bool(value) => Node::Bool(*value),
                ExactNode::Integer(range) => Node::BigInteger(&text[range.clone()]),
                ExactNode::Double(value) => Node::Double(*value),
                ExactNode::Str(range) => Node::Str(&text[range.clone()]),
                ExactNode::LoneSurrogate { byte } => Node::LoneSurrogate { byte: *byte },
                ExactNode::Array { len, count } => Node::Array { len: *len, count: *count },
                ExactNode::Object { len, count } => Node::Object { len: *len, count: *count },
            },
        }
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
