//! Pairs of events that are otherwise equal.
//!
//! In: the trees of events that all differ. Out: pairs of them, and where they differ. An event is
//! paired by the least difference first, and only if the two are not connected by pairs already: there
//! are fewer pairs than events, and a place in which connected events differ is in some pair.
//!
//! No two events are compared to find out. What is left of an event when a set of parts is left out has
//! a sum; events that have one in common are equal but for those parts. The sets are
//!
//! - each part alone, at any depth, if it is at most half of the event;
//! - two members that are at most half, or three that are at most a third of it, where no more than
//!   [`MEMBERS_MAX`] vary: those at the top, and those that are there once members are opened, as long
//!   as there is room;
//! - all but the largest object or array at the top.
//!
//! Then the same once more, next to all members whose names look like a part of the envelope.

use super::tree::{Places, Tree};

/// The members of which two or three are left out together, at most.
const MEMBERS_MAX: usize = 16;
/// If more events than that differ in several members only, these are what the events are about, such
/// as time and value of a sensor's readings: hardly anybody redelivers one event that often.
const DELIVERIES_MAX: usize = 16;
/// Sums that are in memory together, more or less.
const SUMS_MAX: usize = 1 << 22;

/// Two events that are otherwise equal.
pub(super) struct Pair {
    /// Their indices, in the order of the captures.
    pub(super) events: [usize; 2],
    /// Where they differ; nowhere, if only the order of members does.
    pub(super) places: Vec<u32>,
}

/// What may be left out of one event: sums and costs.
struct Choice {
    total: u64,
    weight: usize,
    alone: Vec<(u64, usize)>,
    /// Members that may be left out together.
    together: [Vec<(u64, usize)>; 2],
    /// The sum of the largest object or array at the top.
    largest: Option<u64>,
}

/// All pairs.
pub(super) fn pairs(trees: &[Tree], places: &Places) -> Vec<Pair> {
    let mut joined = Joined { trees, places, parents: (0..trees.len()).collect(), pairs: Vec::new() };
    joined.join_near(trees, usize::MAX);
    if places.name_an_envelope() {
        let rests: Vec<Tree> = trees.iter().map(|tree| tree.without_envelope(places)).collect();
        joined.join_near(&rests, DELIVERIES_MAX);
    }
    joined.pairs
}

impl Choice {
    fn new(tree: &Tree, places: &Places) -> Self {
        let of = |index: &usize| (tree.parts[*index].sum, tree.parts[*index].cost());
        let top = varying(tree, places, 0);
        let together = match top.len() {
            0..=MEMBERS_MAX => [open_members(tree, places, &top), top],
            _ => [Vec::new(), Vec::new()],
        };
        let containers = tree.children(0).filter(|&child| tree.children(child).next().is_some());
        let largest = containers.max_by_key(|&child| tree.parts[child].cost());
        Self {
            total: tree.parts[0].sum,
            weight: tree.parts[0].weight,
            alone: (1..tree.parts.len()).map(|index| of(&index)).collect(),
            together: together.map(|members| members.iter().map(of).collect()),
            largest: largest.map(|index| tree.parts[index].sum),
        }
    }

    /// The sums there are, at most.
    fn count(&self) -> usize {
        let sets = |members: usize| members * members.saturating_sub(1) * (members + 1) / 6;
        1 + self.alone.len() + self.together.iter().map(|members| sets(members.len())).sum::<usize>()
    }

    /// Calls `with` with the sum of what is left, for each set that costs no more than `most`. Nothing
    /// left out is such a set too: the other event may have a part more.
    fn for_each_rest(&self, most: usize, mut with: impl FnMut(u64)) {
        let [half, third] = [2, 3].map(|share| most.min(self.weight / share));
        with(self.total);
        for (sum, _) in self.alone.iter().filter(|(_, cost)| *cost <= half) {
            with(self.total.wrapping_sub(*sum));
        }
        for members in &self.together {
            for (next, one) in (1..).zip(members) {
                for (after, two) in (next + 1..).zip(&members[next..]) {
                    let rest = self.total.wrapping_sub(one.0).wrapping_sub(two.0);
                    let cost = one.1 + two.1;
                    if cost <= half {
                        with(rest);
                    }
                    for (sum, _) in members[after..].iter().filter(|three| cost + three.1 <= third) {
                        with(rest.wrapping_sub(*sum));
                    }
                }
            }
        }
    }
}

/// The parts in the one at `index` that are not the same in all events.
fn varying(tree: &Tree, places: &Places, index: usize) -> Vec<usize> {
    tree.children(index).filter(|&child| places.varies(tree.parts[child].place)).collect()
}

/// Puts what is in members in their places, the outer ones first, as long as there is room. Nothing, if
/// these are the members at the `top` again.
fn open_members(tree: &Tree, places: &Places, top: &[usize]) -> Vec<usize> {
    let mut members = top.to_vec();
    let mut next = 0;
    while let Some(&index) = members.get(next) {
        let inside = if tree.opens(index) { varying(tree, places, index) } else { Vec::new() };
        if inside.is_empty() || members.len() - 1 + inside.len() > MEMBERS_MAX {
            next += 1;
        } else {
            members.remove(next);
            members.extend(inside);
        }
    }
    if members == top { Vec::new() } else { members }
}

/// Events, and the pairs that connect some of them.
struct Joined<'a> {
    trees: &'a [Tree],
    places: &'a Places,
    /// Of each event one that it is connected with, nearer to the one that stands for all of them.
    parents: Vec<usize>,
    pairs: Vec<Pair>,
}

impl Joined<'_> {
    /// The event that stands for all that are connected with this one.
    fn root(&mut self, mut event: usize) -> usize {
        while self.parents[event] != event {
            self.parents[event] = self.parents[self.parents[event]];
            event = self.parents[event];
        }
        event
    }

    /// Joins events by what is left of `trees`, which are theirs, or what was left of theirs; not more
    /// than `alone_most` that differ in one member.
    fn join_near(&mut self, trees: &[Tree], alone_most: usize) {
        let choices: Vec<Choice> = trees.iter().map(|tree| Choice::new(tree, self.places)).collect();
        let sums: usize = choices.iter().map(Choice::count).sum();
        // The sums of a share are those that leave this remainder.
        let shares = sums as u64 / SUMS_MAX as u64 + 1;
        for most in [1, 2, 3, usize::MAX] {
            for share in 0..shares {
                let mut rests = Vec::new();
                for (event, choice) in choices.iter().enumerate() {
                    choice.for_each_rest(most, |rest| {
                        if rest % shares == share {
                            rests.push((rest, event));
                        }
                    });
                }
                self.join_equal(rests, if most == 1 { alone_most } else { DELIVERIES_MAX });
            }
        }
        let largest = choices.iter().enumerate().filter_map(|(event, choice)| Some((choice.largest?, event)));
        self.join_equal(largest.collect(), DELIVERIES_MAX);
    }

    /// Joins the events that have a sum in common, each with the one before it, unless that would join
    /// more than `most`.
    fn join_equal(&mut self, mut sums: Vec<(u64, usize)>, most: usize) {
        sums.sort_unstable();
        let mut found = Vec::new();
        for equal in sums.chunk_by(|one, other| one.0 == other.0).filter(|equal| equal.len() > 1) {
            let roots: Vec<usize> = equal.iter().map(|(_, event)| self.root(*event)).collect();
            let mut apart = roots.clone();
            apart.sort_unstable();
            apart.dedup();
            if (2..=most).contains(&apart.len()) {
                let neighbours = (1..equal.len()).filter(|&at| roots[at - 1] != roots[at]);
                found.extend(neighbours.map(|at| [equal[at - 1].1, equal[at].1]));
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().for_each(|events| self.join(events));
    }

    fn join(&mut self, events: [usize; 2]) {
        let [one, other] = events.map(|event| self.root(event));
        if one == other {
            return;
        }
        let trees = events.map(|event| &self.trees[event]);
        let difference = self.places.difference(trees);
        // Which also is the last word on events whose sums are equal by chance.
        if [0, 1].iter().all(|&side| difference.weights[side] <= trees[side].parts[0].weight / 2) {
            self.parents[one.max(other)] = one.min(other);
            self.pairs.push(Pair { events, places: difference.places });
        }
    }
}
