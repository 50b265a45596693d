//! A tape to the tape of what is hashed, for protocols that hash something else than the event.
//!
//! In: the tape of an event. Out: the tape of its projection: without the members that pointers
//! strip, with constant members added, or made of selected parts. The meaning of a selection is that
//! of a Python handler; what would make it raise is a rejected event.

use serde_json::Value;

use crate::error::{Invalid, Reason};
use crate::protocol::{Pointer, Protocol, Selected, Settings, Source};
use crate::tape::{ExactNode, Node, Tape};
use crate::transform::Scalar;

/// The projection of one protocol, with reusable buffers.
pub(crate) struct Projector {
    settings: Settings,
    nodes: Vec<ExactNode>,
    text: String,
    wtf8: Vec<u8>,
    /// The nodes of names and elements that are left out.
    left_out: Vec<usize>,
    /// Which of the constants that are put in stand in place of a member already.
    replaced: Vec<usize>,
}

/// A selected value.
enum Picked<'a> {
    Node(usize),
    Constant(&'a Value),
}

impl Projector {
    /// `None` for a protocol that hashes the event as it is.
    pub(crate) fn new(protocol: &Protocol) -> Option<Self> {
        let settings = protocol.settings();
        settings.projects().then(|| Self {
            settings: settings.clone(),
            nodes: Vec::new(),
            text: String::new(),
            wtf8: Vec::new(),
            left_out: Vec::new(),
            replaced: Vec::new(),
        })
    }

    /// The tape of what is hashed of the event.
    pub(crate) fn project(&mut self, tape: &Tape<'_>) -> Result<Tape<'_>, Invalid> {
        self.nodes.clear();
        self.text.clear();
        self.wtf8.clear();
        self.left_out.clear();
        self.replaced.clear();
        if self.settings.select.is_empty() {
            self.copy_event(tape);
        } else {
            self.select(tape)?;
        }
        Ok(Tape::Exact { nodes: &self.nodes, text: &self.text, wtf8: &self.wtf8 })
    }

    /// Gives back what a long line needed.
    pub(crate) fn give_back(&mut self) {
        self.nodes = Vec::new();
        self.text = String::new();
        self.wtf8 = Vec::new();
    }

    fn copy_event(&mut self, tape: &Tape<'_>) {
        for pointer in &self.settings.strip_pointers {
            leave_out(tape, 0, pointer.tokens(), &mut self.left_out);
        }
        self.left_out.sort_unstable();
        self.copy(tape, 0);
        let added = std::mem::take(&mut self.settings.add);
        let mut new = 0;
        for (position, (name, value)) in added.iter().enumerate() {
            if !self.replaced.contains(&position) {
                self.push_text(name, 1);
                self.push_constant(value);
                new += 1;
            }
        }
        self.settings.add = added;
        let after = self.nodes.len() - 1;
        if let Some(ExactNode::Object { len, count }) = self.nodes.first_mut() {
            *len += new;
            *count = after;
        }
    }

    /// Copies a node and all that belongs to it, but for what is left out.
    fn copy(&mut self, tape: &Tape<'_>, index: usize) {
        let byte = tape.byte_of(index).unwrap_or(0);
        let node = match tape.node(index) {
            Node::Array { len, .. } => return self.copy_container(tape, index, len, false),
            Node::Object { len, .. } => return self.copy_container(tape, index, len, true),
            Node::Str(text) => return self.push_text(text, byte),
            Node::BigInteger(digits) => return self.push_integer(digits, byte),
            Node::Unsigned(value) => return self.push_integer(itoa::Buffer::new().format(value), byte),
            Node::Signed(value) => return self.push_integer(itoa::Buffer::new().format(value), byte),
            Node::LoneSurrogate { wtf8, byte } => {
                let start = self.wtf8.len();
                self.wtf8.extend_from_slice(wtf8);
                ExactNode::LoneSurrogate { range: start..self.wtf8.len(), byte }
            }
            Node::Null => ExactNode::Null,
            Node::Bool(value) => ExactNode::Bool(value),
            Node::Double(value) => ExactNode::Double { value, byte },
            Node::NonFinite { value, byte } => ExactNode::Double { value, byte },
        };
        self.nodes.push(node);
    }

    fn copy_container(&mut self, tape: &Tape<'_>, index: usize, len: usize, is_object: bool) {
        let start = self.nodes.len();
        self.nodes.push(ExactNode::Null);
        let mut kept = 0;
        let mut element = index + 1;
        for _ in 0..len {
            let value = element + usize::from(is_object);
            let is_top_level_stripped = index == 0
                && matches!(tape.node(element), Node::Str(name) if self.settings.strip.contains(name));
            let is_left_out =
                self.left_out.binary_search(&element).is_ok() || (is_object && is_top_level_stripped);
            let constant = if index == 0 { self.constant_for(tape.node(element)) } else { None };
            match constant {
                _ if is_left_out => {}
                // Of repeated members the first one's place is kept.
                Some(position) if self.replaced.contains(&position) => {}
                Some(position) => {
                    kept += 1;
                    self.replaced.push(position);
                    let (name, value) = self.settings.add[position].clone();
                    self.push_text(&name, 1);
                    self.push_constant(&value);
                }
                None => {
                    kept += 1;
                    if is_object {
                        self.copy(tape, element);
                    }
                    self.copy(tape, value);
                }
            }
            element = tape.after(value);
        }
        let count = self.nodes.len() - start - 1;
        self.nodes[start] = match is_object {
            true => ExactNode::Object { len: kept, count },
            false => ExactNode::Array { len: kept, count },
        };
    }

    /// The constant that replaces the top-level member of that name.
    fn constant_for(&self, name: Node<'_>) -> Option<usize> {
        let Node::Str(name) = name else { return None };
        self.settings.add.iter().position(|(added, _)| added == name)
    }

    fn select(&mut self, tape: &Tape<'_>) -> Result<(), Invalid> {
        let select = std::mem::take(&mut self.settings.select);
        self.nodes.push(ExactNode::Null);
        let result = select.iter().try_for_each(|selected| {
            self.push_text(&selected.member, 1);
            self.push_selected(tape, selected)
        });
        self.nodes[0] = ExactNode::Object { len: select.len(), count: self.nodes.len() - 1 };
        self.settings.select = select;
        result
    }

    fn push_selected(&mut self, tape: &Tape<'_>, selected: &Selected) -> Result<(), Invalid> {
        let picked = pick(tape, &selected.first_of)?;
        if selected.transforms.is_empty() {
            match picked {
                Picked::Node(index) => self.copy(tape, index),
                Picked::Constant(value) => self.push_constant(value),
            }
            return Ok(());
        }
        let index = if let Picked::Node(index) = picked { index } else { 0 };
        let cannot = || fault(tape, index, Reason::Untransformable);
        let mut scalar = match picked {
            Picked::Node(index) => Scalar::of_node(tape.node(index)),
            Picked::Constant(value) => Scalar::of_constant(value),
        }
        .ok_or_else(cannot)?;
        for transform in &selected.transforms {
            scalar = scalar.transform(*transform).ok_or_else(cannot)?;
        }
        self.push_scalar(&scalar);
        Ok(())
    }

    fn push_scalar(&mut self, scalar: &Scalar) {
        match scalar {
            Scalar::Text(text) => self.push_text(text, 1),
            Scalar::Wtf8(text) => {
                let start = self.wtf8.len();
                self.wtf8.extend_from_slice(text);
                self.nodes.push(ExactNode::LoneSurrogate { range: start..self.wtf8.len(), byte: 1 });
            }
            Scalar::Integer(digits) => self.push_integer(digits, 1),
            Scalar::Double(value) => self.nodes.push(ExactNode::Double { value: *value, byte: 1 }),
            Scalar::Bool(value) => self.nodes.push(ExactNode::Bool(*value)),
            Scalar::Null => self.nodes.push(ExactNode::Null),
        }
    }

    fn push_constant(&mut self, value: &Value) {
        match Scalar::of_constant(value) {
            Some(scalar) => self.push_scalar(&scalar),
            // Constants are scalars, or the empty array.
            None => self.nodes.push(ExactNode::Array { len: 0, count: 0 }),
        }
    }

    fn push_text(&mut self, text: &str, byte: usize) {
        let start = self.text.len();
        self.text.push_str(text);
        self.nodes.push(ExactNode::Str { range: start..self.text.len(), byte });
    }

    fn push_integer(&mut self, digits: &str, byte: usize) {
        let start = self.text.len();
        self.text.push_str(digits);
        self.nodes.push(ExactNode::Integer { range: start..self.text.len(), byte });
    }
}

/// A fault at a node, whose place only the exact tape knows.
fn fault(tape: &Tape<'_>, index: usize, reason: Reason) -> Invalid {
    let byte = match tape {
        Tape::Simd(_) => 0,
        // What has no place of its own is a member's value, mostly: the name stands before it.
        Tape::Exact { .. } => {
            tape.byte_of(index).or_else(|| tape.byte_of(index.checked_sub(1)?)).unwrap_or(1)
        }
    };
    Invalid { reason, byte }
}

/// Notes the nodes of names and elements that `tokens` lead to from `index`.
fn leave_out(tape: &Tape<'_>, index: usize, tokens: &[String], left_out: &mut Vec<usize>) {
    let Some((token, rest)) = tokens.split_first() else { return };
    let (len, is_object) = match tape.node(index) {
        Node::Object { len, .. } => (len, true),
        Node::Array { len, .. } => (len, false),
        _ => return,
    };
    let mut element = index + 1;
    for position in 0..len {
        let value = element + usize::from(is_object);
        let found = match tape.node(element) {
            Node::Str(name) if is_object => name == token,
            _ => !is_object && array_index(token) == Some(position),
        };
        if found && rest.is_empty() {
            left_out.push(element);
        } else if found {
            leave_out(tape, value, rest, left_out);
        }
        element = tape.after(value);
    }
}

/// An array index (RFC 6901, section 4): digits without a leading zero.
fn array_index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    token.parse().ok().filter(|_| plain && token.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The first source that is truthy, or else the last one.
fn pick<'a>(tape: &Tape<'_>, sources: &'a [Source]) -> Result<Picked<'a>, Invalid> {
    let mut picked = Picked::Constant(&Value::Null);
    for source in sources {
        picked = match source {
            Source::Constant(value) => Picked::Constant(value),
            Source::Pointer(pointer, default) => match look_up(tape, pointer)? {
                Some(index) => Picked::Node(index),
                None => Picked::Constant(default.as_ref().unwrap_or(&Value::Null)),
            },
        };
        let truthy = match picked {
            Picked::Node(index) => is_truthy(tape.node(index)),
            Picked::Constant(value) => is_truthy_constant(value),
        };
        if truthy {
            break;
        }
    }
    Ok(picked)
}

/// The node that a pointer leads to. In what is falsy (a missing or null parent, as `or {}` in a
/// handler has it) nothing is found; what is truthy and has no members is a fault.
fn look_up(tape: &Tape<'_>, pointer: &Pointer) -> Result<Option<usize>, Invalid> {
    let mut index = 0;
    for token in pointer.tokens() {
        let node = tape.node(index);
        let (len, is_object) = match node {
            Node::Object { len, .. } => (len, true),
            Node::Array { len, .. } if len == 0 || array_index(token).is_some() => (len, false),
            _ if !is_truthy(node) => return Ok(None),
            _ => return Err(fault(tape, index, Reason::NoMembers)),
        };
        let mut found = None;
        let mut element = index + 1;
        for position in 0..len {
            let value = element + usize::from(is_object);
            match tape.node(element) {
                // Of members with one name the last one counts.
                Node::Str(name) if is_object && name == token => found = Some(value),
                _ if !is_object && array_index(token) == Some(position) => found = Some(value),
                _ => {}
            }
            element = tape.after(value);
        }
        match found {
            Some(value) => index = value,
            None => return Ok(None),
        }
    }
    Ok(Some(index))
}

/// The text of the scalar that a pointer leads to, as `str` of Python has it.
pub(crate) fn text_at(tape: &Tape<'_>, pointer: &Pointer) -> Option<String> {
    let index = look_up(tape, pointer).ok()??;
    Scalar::of_node(tape.node(index)).map(Scalar::python_str)
}

/// The truth value of Python.
fn is_truthy(node: Node<'_>) -> bool {
    match node {
        Node::Null | Node::Bool(false) | Node::Unsigned(0) | Node::Signed(0) => false,
        Node::BigInteger(digits) => digits != "0",
        Node::Double(value) => value != 0.0,
        Node::Str(text) => !text.is_empty(),
        Node::Array { len, .. } | Node::Object { len, .. } => len > 0,
        _ => true,
    }
}

fn is_truthy_constant(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}
