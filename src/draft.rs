//! A tape that is made here, from parts of another one.
//!
//! In: nodes of a tape, and values, in the order in which they are to stand. Out: a [`Tape`] of them.
//! Its buffers are reused.

use crate::tape::{ExactNode, Node, Tape};

/// A tape in the making.
#[derive(Default)]
pub(crate) struct Draft {
    nodes: Vec<ExactNode>,
    text: String,
    wtf8: Vec<u8>,
}

/// A container whose elements are being put in.
#[must_use]
pub(crate) struct Open {
    start: usize,
}

impl Draft {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.text.clear();
        self.wtf8.clear();
    }

    pub(crate) fn tape(&self) -> Tape<'_> {
        Tape::Exact { nodes: &self.nodes, text: &self.text, wtf8: &self.wtf8 }
    }

    /// Begins a container. Its elements follow, and [`Draft::close`].
    pub(crate) fn open(&mut self) -> Open {
        self.nodes.push(ExactNode::Null);
        Open { start: self.nodes.len() - 1 }
    }

    /// Ends a container of `len` elements, which for an object are its members.
    pub(crate) fn close(&mut self, open: Open, len: usize, is_object: bool) {
        let count = self.nodes.len() - open.start - 1;
        self.nodes[open.start] = match is_object {
            true => ExactNode::Object { len, count },
            false => ExactNode::Array { len, count },
        };
    }

    /// Copies a node and all that belongs to it.
    pub(crate) fn copy(&mut self, tape: &Tape<'_>, index: usize) {
        self.copy_but(tape, index, &mut |_, _| false);
    }

    /// Copies a node and all that belongs to it, but for the members and elements that `except` deals
    /// with itself: it is given the node of a name or element, and says whether it did.
    pub(crate) fn copy_but(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        except: &mut impl FnMut(&mut Self, usize) -> bool,
    ) {
        let byte = tape.byte_of(index).unwrap_or(0);
        let node = match tape.node(index) {
            Node::Array { len, .. } => return self.copy_container(tape, (index, len, false), except),
            Node::Object { len, .. } => return self.copy_container(tape, (index, len, true), except),
            Node::Str(text) => return self.push_text(text, byte),
            Node::BigInteger(digits) => return self.push_integer(digits, byte),
            Node::Unsigned(value) => return self.push_integer(itoa::Buffer::new().format(value), byte),
            Node::Signed(value) => return self.push_integer(itoa::Buffer::new().format(value), byte),
            Node::LoneSurrogate { wtf8, byte } => return self.push_wtf8(wtf8, byte),
            Node::Null => ExactNode::Null,
            Node::Bool(value) => ExactNode::Bool(value),
            Node::Double(value) => ExactNode::Double { value, byte },
            Node::NonFinite { value, byte } => ExactNode::Double { value, byte },
        };
        self.nodes.push(node);
    }

    /// As [`Draft::copy`], for an array of scalars, of which there are many.
    pub(crate) fn copy_numbers(&mut self, tape: &Tape<'_>, index: usize) {
        let Node::Array { len, .. } = tape.node(index) else { return self.copy(tape, index) };
        self.nodes.push(ExactNode::Array { len, count: len });
        for element in index + 1..=index + len {
            match tape.node(element) {
                Node::Double(value) => {
                    let byte = tape.byte_of(element).unwrap_or(0);
                    self.nodes.push(ExactNode::Double { value, byte });
                }
                _ => self.copy(tape, element),
            }
        }
    }

    fn copy_container(
        &mut self,
        tape: &Tape<'_>,
        (index, len, is_object): (usize, usize, bool),
        except: &mut impl FnMut(&mut Self, usize) -> bool,
    ) {
        let open = self.open();
        let mut kept = 0;
        let mut element = index + 1;
        for _ in 0..len {
            let value = element + usize::from(is_object);
            let nodes = self.nodes.len();
            if !except(self, element) {
                if is_object {
                    self.copy(tape, element);
                }
                self.copy_but(tape, value, except);
            }
            kept += usize::from(self.nodes.len() > nodes);
            element = tape.after(value);
        }
        self.close(open, kept, is_object);
    }

    /// Makes the last `members` that were put in after the event members of it.
    pub(crate) fn add_to_event(&mut self, members: usize) {
        let after = self.nodes.len() - 1;
        if let Some(ExactNode::Object { len, count }) = self.nodes.first_mut() {
            *len += members;
            *count = after;
        }
    }

    pub(crate) fn push(&mut self, node: ExactNode) {
        self.nodes.push(node);
    }

    pub(crate) fn push_text(&mut self, text: &str, byte: usize) {
        let start = self.text.len();
        self.text.push_str(text);
        self.nodes.push(ExactNode::Str { range: start..self.text.len(), byte });
    }

    pub(crate) fn push_wtf8(&mut self, wtf8: &[u8], byte: usize) {
        let start = self.wtf8.len();
        self.wtf8.extend_from_slice(wtf8);
        self.nodes.push(ExactNode::LoneSurrogate { range: start..self.wtf8.len(), byte });
    }

    pub(crate) fn push_integer(&mut self, digits: &str, byte: usize) {
        let start = self.text.len();
        self.text.push_str(digits);
        self.nodes.push(ExactNode::Integer { range: start..self.text.len(), byte });
    }
}
