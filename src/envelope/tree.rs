//! Events as trees of parts that can be compared, and left out, one by one.
//!
//! In: the tapes of what is hashed. Out: a [`Tree`] for each, over the [`Places`] of all of them. A part
//! is a member's value or an array's element, with everything in it. Its sum is that of the hashes of
//! its scalars and their places: two parts at one place are equal if their sums are, and the sum of an
//! event without a part is that of the event, less that of the part.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::protocol::{Pointer, looks_like_envelope};
use crate::tape::{Node, Tape};

/// The place of every event as a whole.
const ROOT: u32 = 0;

/// Every place at which an event had a part, once.
pub(super) struct Places(Vec<Place>);

struct Place {
    /// The place of the object or the array that it is in.
    parent: u32,
    step: Step,
    /// Whether its name looks like a part of the envelope.
    is_envelope: bool,
    /// The places in it, by names in WTF-8 and by positions.
    members: HashMap<Vec<u8>, u32>,
    elements: Vec<u32>,
    /// How many events have a part here, the sum of the last one, and whether another has another sum.
    events: usize,
    last: u64,
    differs: bool,
}

/// From a place to one in it.
enum Step {
    Member(String),
    Element(usize),
}

/// One event.
pub(super) struct Tree {
    /// Every part is followed by those in it. Part 0 is the event.
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) place: u32,
    pub(super) sum: u64,
    /// The members in it that hold a value. An array counts as one of them, but for the members of
    /// objects in it: the vertices of a polygon say no more than a number elsewhere.
    pub(super) weight: usize,
    /// The index of the part after it and all in it.
    after: usize,
}

/// In what two events differ.
#[derive(Default)]
pub(super) struct Difference {
    /// The innermost places that differ; of an array in which several elements do, the array's.
    pub(super) places: Vec<u32>,
    /// The weight of what differs, in either event.
    pub(super) weights: [usize; 2],
}

impl Part {
    /// What it weighs if it is left out alone: an element of an array has no weight of its own.
    pub(super) fn cost(&self) -> usize {
        self.weight.max(1)
    }
}

impl Tree {
    /// What is left of the event without members whose names look like a part of the envelope.
    pub(super) fn without_envelope(&self, places: &Places) -> Self {
        let mut rest = Self { parts: Vec::new() };
        self.copy_rest(0, places, &mut rest.parts);
        rest
    }

    /// Copies a part without such members in it; returns their sum and weight.
    fn copy_rest(&self, index: usize, places: &Places, rest: &mut Vec<Part>) -> (u64, usize) {
        let own = rest.len();
        rest.push(self.parts[index]);
        let mut left_out = (0_u64, 0);
        for child in self.children(index) {
            let Part { place, sum, weight, .. } = self.parts[child];
            let (sum, weight) = match places.0[place as usize].is_envelope {
                true => (sum, weight),
                false => self.copy_rest(child, places, rest),
            };
            left_out = (left_out.0.wrapping_add(sum), left_out.1 + weight);
        }
        let after = rest.len();
        let part = &mut rest[own];
        part.sum = part.sum.wrapping_sub(left_out.0);
        part.weight -= left_out.1;
        part.after = after;
        left_out
    }

    /// The indices of the parts that are in the one at `index`, not those deeper inside.
    pub(super) fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        let end = self.parts[index].after;
        let there = move |child: &usize| *child < end;
        let first = Some(index + 1).filter(there);
        std::iter::successors(first, move |&child| Some(self.parts[child].after).filter(there))
    }

    /// Whether what is in the part at `index` may be left out in its place: not so of plain arrays.
    pub(super) fn opens(&self, index: usize) -> bool {
        self.children(index).all(|child| self.parts[child].weight > 0)
    }
}

impl Places {
    pub(super) fn new() -> Self {
        Self(vec![Place::new(ROOT, Step::Element(0))])
    }

    /// The tree of an event that has not been here before.
    pub(super) fn tree(&mut self, tape: &Tape<'_>) -> Tree {
        let mut tree = Tree { parts: Vec::new() };
        self.grow(&mut tree.parts, tape, 0, ROOT);
        for part in &tree.parts {
            let place = &mut self.0[part.place as usize];
            place.differs |= place.events > 0 && place.last != part.sum;
            place.last = part.sum;
            place.events += 1;
        }
        tree
    }

    /// Adds the part that the node at `index` makes at `place`.
    fn grow(&mut self, parts: &mut Vec<Part>, tape: &Tape<'_>, index: usize, place: u32) {
        let own = parts.len();
        parts.push(Part { place, sum: 0, weight: 0, after: own + 1 });
        let (len, is_object) = match tape.node(index) {
            Node::Object { len, .. } => (len, true),
            Node::Array { len, .. } => (len, false),
            _ => (0, false),
        };
        let mut element = index + 1;
        let (mut sum, mut weight) = (0_u64, 0);
        for position in 0..len {
            let value = element + usize::from(is_object);
            let inside = match tape.node(element) {
                Node::Str(name) if is_object => self.member(place, name.as_bytes()),
                Node::LoneSurrogate { wtf8, .. } if is_object => self.member(place, wtf8),
                _ => self.element(place, position),
            };
            let child = parts.len();
            self.grow(parts, tape, value, inside);
            sum = sum.wrapping_add(parts[child].sum);
            weight += parts[child].weight;
            element = tape.after(value);
        }
        let is_member = matches!(self.0[place as usize].step, Step::Member(_));
        // What holds no members is one, if it is a member itself.
        let weight = if is_member { weight.max(1) } else { weight };
        let sum = if len == 0 { hash(place, tape.node(index)) } else { sum };
        parts[own] = Part { place, sum, weight, after: parts.len() };
    }

    fn member(&mut self, parent: u32, name: &[u8]) -> u32 {
        if let Some(&known) = self.0[parent as usize].members.get(name) {
            return known;
        }
        let step = Step::Member(String::from_utf8_lossy(name).into_owned());
        let new = self.add(parent, step);
        self.0[parent as usize].members.insert(name.to_owned(), new);
        new
    }

    /// Positions come in order, so a new one is the next one.
    fn element(&mut self, parent: u32, position: usize) -> u32 {
        if let Some(&known) = self.0[parent as usize].elements.get(position) {
            return known;
        }
        let new = self.add(parent, Step::Element(position));
        self.0[parent as usize].elements.push(new);
        new
    }

    fn add(&mut self, parent: u32, step: Step) -> u32 {
        self.0.push(Place::new(parent, step));
        // A line has fewer nodes than 2^32; captures with more places do not fit into memory.
        (self.0.len() - 1) as u32
    }

    /// Whether there is a member whose name looks like a part of the envelope.
    pub(super) fn name_an_envelope(&self) -> bool {
        self.0.iter().any(|place| place.is_envelope)
    }

    /// Whether not all events have the same part there.
    pub(super) fn varies(&self, place: u32) -> bool {
        let place = &self.0[place as usize];
        place.differs || place.events < self.0[ROOT as usize].events
    }

    /// Compares two events.
    pub(super) fn difference(&self, trees: [&Tree; 2]) -> Difference {
        let mut places = Vec::new();
        let weights = self.compare(trees, [0, 0], true, &mut places);
        Difference { places, weights }
    }

    /// Weighs what differs between two parts at one place, and puts its innermost places into `places`
    /// if these are to be `named`.
    // Of an array in which several elements differ, no more is said than that.
    fn compare(&self, trees: [&Tree; 2], at: [usize; 2], named: bool, places: &mut Vec<u32>) -> [usize; 2] {
        let parts = [0, 1].map(|side| &trees[side].parts[at[side]]);
        let costs = parts.map(Part::cost);
        let inside = self.unequal_children(trees, at);
        let is_whole = inside.as_ref().is_none_or(|(children, is_array)| *is_array && children.len() > 1);
        if named && is_whole {
            places.push(parts[0].place);
        }
        let Some((children, _)) = inside else { return costs };
        let mut weights = [0, 0];
        for child in children {
            let added = match child {
                [Some(one), Some(other)] => self.compare(trees, [one, other], named && !is_whole, places),
                _ => {
                    let only = [0, 1].map(|side| child[side].map(|index| &trees[side].parts[index]));
                    if named && !is_whole {
                        places.extend(only.iter().flatten().map(|part| part.place));
                    }
                    only.map(|part| part.map_or(0, Part::cost))
                }
            };
            weights = [weights[0] + added[0], weights[1] + added[1]];
        }
        [0, 1].map(|side| costs[side].min(weights[side]))
    }

    /// The children of two parts that are not equal, side by side, and whether the parts are arrays.
    /// `None` if one of them has no children, or they are not of one kind.
    fn unequal_children(&self, trees: [&Tree; 2], at: [usize; 2]) -> Option<(Vec<[Option<usize>; 2]>, bool)> {
        let is_array = |side: usize| {
            let first = trees[side].children(at[side]).next()?;
            let place = trees[side].parts[first].place;
            Some(matches!(self.0[place as usize].step, Step::Element(_)))
        };
        // An event is an object, even one without members.
        let kinds = [0, 1].map(|side| is_array(side).or((at[side] == 0).then_some(false)));
        let is_array = kinds[0].filter(|_| kinds[0] == kinds[1])?;
        let sum = |side: usize, child: Option<usize>| child.map(|child| trees[side].parts[child].sum);
        let mut pairs: HashMap<u32, [Option<usize>; 2]> = HashMap::new();
        for side in [0, 1] {
            for child in trees[side].children(at[side]) {
                pairs.entry(trees[side].parts[child].place).or_default()[side] = Some(child);
            }
        }
        pairs.retain(|_, [one, other]| sum(0, *one) != sum(1, *other));
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_unstable();
        Some((pairs.into_iter().map(|(_, pair)| pair).collect(), is_array))
    }

    /// The JSON Pointer to a place.
    pub(super) fn pointer(&self, place: u32) -> String {
        let tokens = self.steps(place).into_iter().map(|step| match step {
            Step::Member(name) => name.clone(),
            Step::Element(position) => position.to_string(),
        });
        Pointer::of(tokens.collect()).to_string()
    }

    /// The places of members whose names `are_like` something, each with its name and whether it is a
    /// top-level one. Of members that differ in the elements they are in only, the first one is given.
    pub(super) fn members(&self, are_like: impl Fn(&str) -> bool) -> Vec<(u32, &str, bool)> {
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for (place, Place { parent, step, .. }) in self.0.iter().enumerate() {
            let Step::Member(name) = step else { continue };
            if !are_like(name) {
                continue;
            }
            let names: Vec<Option<&String>> = self
                .steps(place as u32)
                .into_iter()
                .map(|step| if let Step::Member(name) = step { Some(name) } else { None })
                .collect();
            if known.insert(names) {
                found.push((place as u32, name.as_str(), *parent == ROOT));
            }
        }
        found
    }

    /// The way from the event to a place.
    fn steps(&self, place: u32) -> Vec<&Step> {
        let up = |&place: &u32| Some(self.0[place as usize].parent);
        let places = std::iter::successors(Some(place), up).take_while(|&place| place != ROOT);
        let mut steps: Vec<_> = places.map(|place| &self.0[place as usize].step).collect();
        steps.reverse();
        steps
    }
}

impl Place {
    fn new(parent: u32, step: Step) -> Self {
        let (members, elements) = (HashMap::new(), Vec::new());
        let is_envelope = matches!(&step, Step::Member(name) if looks_like_envelope(name));
        Self { parent, step, is_envelope, members, elements, events: 0, last: 0, differs: false }
    }
}

/// The hash of a scalar, or of an object or array without anything in it, at its place. Which tape it
/// is from makes no difference.
fn hash(place: u32, node: Node<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    match node {
        Node::Null => 0_u8.hash(&mut hasher),
        Node::Bool(value) => (1_u8, value).hash(&mut hasher),
        Node::Unsigned(value) => (2_u8, itoa::Buffer::new().format(value)).hash(&mut hasher),
        Node::Signed(value) => (2_u8, itoa::Buffer::new().format(value)).hash(&mut hasher),
        Node::BigInteger(digits) => (2_u8, digits).hash(&mut hasher),
        Node::Double(value) | Node::NonFinite { value, .. } => (3_u8, value.to_bits()).hash(&mut hasher),
        Node::Str(text) => (4_u8, text).hash(&mut hasher),
        Node::LoneSurrogate { wtf8, .. } => (5_u8, wtf8).hash(&mut hasher),
        Node::Array { .. } => 6_u8.hash(&mut hasher),
        Node::Object { .. } => 7_u8.hash(&mut hasher),
    }
    hasher.finish()
}
