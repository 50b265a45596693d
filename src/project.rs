//! A tape to the tape of what is hashed, for protocols that hash something else than the event.
//!
//! In: the tape of an event. Out: the tape of its projection: without the members that pointers
//! strip, with constant members added, or made of selected parts. The meaning of a selection is that
//! of a Python handler; what would make it raise is a rejected event.

use serde_json::Value;

use crate::draft::Draft;
use crate::error::{Invalid, Reason, printable};
use crate::protocol::{DuplicateNames, Pointer, Protocol, Selected, Settings, Source, Transform};
use crate::tape::{ExactNode, Node, Tape};
use crate::transform::Scalar;

/// The projection of one protocol, with reusable buffers.
pub(crate) struct Projector {
    settings: Settings,
    draft: Draft,
    /// The nodes of names and elements that are left out.
    left_out: Vec<usize>,
    /// The names of members in whose place a constant is put, and which one that is.
    replaced: Vec<(usize, usize)>,
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
            draft: Draft::default(),
            left_out: Vec::new(),
            replaced: Vec::new(),
        })
    }

    /// The tape of what is hashed of the event.
    pub(crate) fn project(&mut self, tape: &Tape<'_>) -> Result<Tape<'_>, Invalid> {
        let Self { settings, draft, .. } = self;
        draft.clear();
        if settings.select.is_empty() {
            self.copy_event(tape);
        } else {
            let open = draft.open();
            for selected in &settings.select {
                draft.push_text(&selected.member, 1);
                push_selected(draft, tape, selected, settings.duplicate_names)?;
            }
            draft.close(open, settings.select.len(), true);
        }
        Ok(self.draft.tape())
    }

    /// Gives back what a long line needed.
    pub(crate) fn give_back(&mut self) {
        self.draft = Draft::default();
    }

    /// Copies the event, without what is stripped and with the constants.
    fn copy_event(&mut self, tape: &Tape<'_>) {
        self.note_changes(tape);
        let Self { settings, draft, left_out, replaced } = self;
        draft.copy_but(tape, 0, &mut |draft, element| {
            if left_out.binary_search(&element).is_ok() {
                return true;
            }
            let Some((_, constant)) = replaced.iter().find(|(name, _)| *name == element) else {
                return false;
            };
            let (name, value) = &settings.add[*constant];
            draft.push_text(name, 1);
            push_constant(draft, value);
            true
        });
        for (constant, (name, value)) in settings.add.iter().enumerate() {
            if replaced.iter().all(|(_, other)| *other != constant) {
                draft.push_text(name, 1);
                push_constant(draft, value);
                draft.add_to_event(1);
            }
        }
    }

    /// Notes which members and elements are left out or replaced.
    fn note_changes(&mut self, tape: &Tape<'_>) {
        let Self { settings, left_out, replaced, .. } = self;
        replaced.clear();
        *left_out = self::left_out(tape, settings);
        for (name, _) in tape.members(0) {
            let Node::Str(text) = tape.node(name) else { continue };
            let constant = settings.add.iter().position(|(added, _)| added == text);
            match constant {
                _ if settings.strip.contains(text) => left_out.push(name),
                // Of repeated members the first one's place is kept.
                Some(constant) if replaced.iter().any(|(_, other)| *other == constant) => left_out.push(name),
                Some(constant) => replaced.push((name, constant)),
                None => {}
            }
        }
        left_out.sort_unstable();
    }
}

fn push_selected(
    draft: &mut Draft,
    tape: &Tape<'_>,
    selected: &Selected,
    repeated: DuplicateNames,
) -> Result<(), Invalid> {
    let picked = pick(tape, &selected.first_of, repeated)?;
    if selected.transforms.is_empty() {
        match picked {
            Picked::Node(index) => draft.copy(tape, index),
            Picked::Constant(value) => push_constant(draft, value),
        }
        return Ok(());
    }
    let index = if let Picked::Node(index) = picked { index } else { 0 };
    let cannot = |transform: &Transform, what: &str| {
        let member = printable(&selected.member);
        let reason = format!("`{member}`: `{}` cannot take {what}", transform.name());
        tape.fault(index, Reason::Untransformable(reason.into()))
    };
    if let [by @ Transform::SortBy(pointer)] = &selected.transforms[..] {
        let no_array = || cannot(by, &format!("what is no array of objects with a string at `{pointer}`"));
        return push_sorted(draft, tape, &picked, pointer).ok_or_else(no_array);
    }
    let scalar = match picked {
        Picked::Node(index) => Scalar::of_node(tape.node(index)),
        Picked::Constant(value) => Scalar::of_constant(value),
    };
    let mut scalar = scalar.ok_or_else(|| cannot(&selected.transforms[0], "an array or an object"))?;
    for transform in &selected.transforms {
        let kind = scalar.kind();
        scalar = scalar.transform(transform).ok_or_else(|| match (transform, kind) {
            (Transform::Fixed(_), "a string") => cannot(transform, "a string that is no number"),
            (Transform::Fixed(_), "an integer") => cannot(transform, "an integer past the range of a double"),
            _ => cannot(transform, kind),
        })?;
    }
    push_scalar(draft, &scalar);
    Ok(())
}

/// Puts in the elements of an array by the strings that they have at a pointer; equal ones keep their
/// order. `None` for what is no array, and where an element has no string there.
fn push_sorted(draft: &mut Draft, tape: &Tape<'_>, picked: &Picked<'_>, pointer: &Pointer) -> Option<()> {
    let index = match picked {
        Picked::Node(index) if tape.is_array(*index) => *index,
        Picked::Constant(value @ Value::Array(_)) => {
            push_constant(draft, value);
            return Some(());
        }
        _ => return None,
    };
    // An element that repeats a name is refused, if it is to be, when it is written.
    let key = |element| match tape.node(look_up(tape, element, pointer, DuplicateNames::Last).ok()??) {
        Node::Str(text) => Some(text.as_bytes()),
        Node::LoneSurrogate { wtf8, .. } => Some(wtf8),
        _ => None,
    };
    let keyed = tape.elements(index).map(|element| Some((key(element)?, element)));
    // The order of UTF-8, and of WTF-8, is that of code points.
    let mut keyed = keyed.collect::<Option<Vec<(&[u8], usize)>>>()?;
    keyed.sort_by_key(|(key, _)| *key);
    let open = draft.open();
    keyed.iter().for_each(|(_, element)| draft.copy(tape, *element));
    draft.close(open, keyed.len(), false);
    Some(())
}

fn push_scalar(draft: &mut Draft, scalar: &Scalar) {
    match scalar {
        Scalar::Text(text) => draft.push_text(text, 1),
        Scalar::Wtf8(text) => draft.push_wtf8(text, 1),
        Scalar::Integer(digits) => draft.push_integer(digits, 1),
        Scalar::Double(value) => draft.push(ExactNode::Double { value: *value, byte: 1 }),
        Scalar::Bool(value) => draft.push(ExactNode::Bool(*value)),
        Scalar::Null => draft.push(ExactNode::Null),
    }
}

fn push_constant(draft: &mut Draft, value: &Value) {
    match Scalar::of_constant(value) {
        Some(scalar) => push_scalar(draft, &scalar),
        // Constants are scalars, or the empty array.
        None => draft.push(ExactNode::Array { len: 0, count: 0 }),
    }
}

/// The nodes of names and elements that pointers leave out.
pub(crate) fn left_out(tape: &Tape<'_>, settings: &Settings) -> Vec<usize> {
    let mut nodes = Vec::new();
    settings.strip_pointers.iter().for_each(|pointer| leave_out(tape, 0, pointer.tokens(), &mut nodes));
    nodes
}

/// Notes the nodes of names and elements that `tokens` lead to from `index`.
fn leave_out(tape: &Tape<'_>, index: usize, tokens: &[String], left_out: &mut Vec<usize>) {
    let Some((token, rest)) = tokens.split_first() else { return };
    let mut found = |element, value| {
        if rest.is_empty() {
            left_out.push(element);
        } else {
            leave_out(tape, value, rest, left_out);
        }
    };
    for (name, value) in tape.members(index) {
        if tape.node(name) == Node::Str(token) {
            found(name, value);
        }
    }
    if let Some(element) = array_index(token).and_then(|position| tape.elements(index).nth(position)) {
        found(element, element);
    }
}

/// An array index (RFC 6901, section 4): digits without a leading zero. One past the range is that
/// of no element.
fn array_index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    (plain && digits).then(|| token.parse().unwrap_or(usize::MAX))
}

/// The first source that is truthy, or else the last one.
fn pick<'a>(tape: &Tape<'_>, sources: &'a [Source], repeated: DuplicateNames) -> Result<Picked<'a>, Invalid> {
    let mut picked = Picked::Constant(&Value::Null);
    for source in sources {
        picked = match source {
            Source::Constant(value) => Picked::Constant(value),
            Source::Pointer(pointer, default) => match look_up(tape, 0, pointer, repeated)? {
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

/// The node that a pointer leads to from another one. In what is falsy (a missing or null parent, as `or {}` in a
/// handler has it) nothing is found; what is truthy and has no members is a fault. Of members with one name the last one counts, or it is a fault as well.
fn look_up(
    tape: &Tape<'_>,
    from: usize,
    pointer: &Pointer,
    repeated: DuplicateNames,
) -> Result<Option<usize>, Invalid> {
    let mut index = from;
    for token in pointer.tokens() {
        let node = tape.node(index);
        match node {
            Node::Object { .. } => {}
            Node::Array { len, .. } if len == 0 || array_index(token).is_some() => {}
            _ if !is_truthy(node) => return Ok(None),
            _ => return Err(tape.fault(index, Reason::NoMembers)),
        }
        let found = match (node, array_index(token)) {
            (Node::Array { .. }, Some(position)) => tape.elements(index).nth(position),
            _ => {
                let mut again = tape.members_named(index, token).skip(1);
                if let Some((name, _)) = again.next().filter(|_| repeated == DuplicateNames::Reject) {
                    return Err(tape.fault(name, Reason::DuplicateName));
                }
                tape.member(index, token)
            }
        };
        match found {
            Some(value) => index = value,
            None => return Ok(None),
        }
    }
    Ok(Some(index))
}

/// The text of the scalar that a pointer leads to, as `str` of Python has it.
pub(crate) fn text_at(tape: &Tape<'_>, pointer: &Pointer) -> Option<String> {
    let index = look_up(tape, 0, pointer, DuplicateNames::Last).ok()??;
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
