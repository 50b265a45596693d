//! What captures say about a protocol: the members that look like a part of the envelope.
//!
//! In: captures and a protocol. Out: [`Findings`]. Looked into is what is hashed, nothing else: members
//! whose names look like secrets or like parts of the envelope, and members that differ between events
//! that are otherwise equal.

mod near;
mod tree;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::config::Config;
use crate::contract::for_each_delivery;
use crate::error::{Error, printable};
use crate::key::Keyer;
use crate::parse::Parser;
use crate::protocol::{Protocol, Scheme, looks_suspicious, suspicions};
use near::Pair;
use tree::{Places, Tree};

/// The events that are compared with one another, at most: the first ones.
const EVENTS_MAX: usize = 50_000;
/// The members that are named, at most, and those that are named next to one.
const NAMED_MAX: usize = 20;
const TOGETHER_MAX: usize = 3;

/// What captures say about a protocol. It displays as lines for people.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Findings {
    /// Deliveries that were looked at.
    pub deliveries: u64,
    /// Those that are no events under the protocol.
    pub rejected: u64,
    /// Different keys of the others.
    pub events: u64,
    /// What is said of members that are hashed, by their names.
    pub suspicions: Vec<String>,
    /// Members that differ between events that are otherwise equal, those of most pairs first.
    pub differing: Vec<Differing>,
    /// Pairs of events that differ in the order of members only, and the ids of the first one.
    pub reordered: Option<(u64, [String; 2])>,
}

/// A member that differs between events that are otherwise equal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Differing {
    /// The JSON Pointer to it in what is hashed.
    pub pointer: String,
    /// Pairs of events that differ in it. Of events that are all equal but for it, each one makes a pair
    /// with the one before it.
    pub pairs: u64,
    /// The ids of deliveries that are such a pair: one that differs in as little else as possible.
    pub example: [String; 2],
    /// The other members in which these two differ.
    pub together: Vec<String>,
}

impl Findings {
    /// Whether there were events, and nothing is to be said of them.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.warnings().is_empty()
    }

    /// What speaks against the protocol, in sentences for people.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.suspicions.clone();
        if self.events == 0 {
            warnings.push("no delivery is an event under this protocol: nothing was checked".to_owned());
        }
        if let Some((pairs, example)) = &self.reordered {
            warnings.push(format!(
                "events differ in nothing but the order of their members ({}): sorted members make them one",
                counted_pairs(*pairs, example)
            ));
        }
        warnings.extend(self.differing.iter().take(NAMED_MAX).map(Differing::to_string));
        match self.differing.len().saturating_sub(NAMED_MAX) {
            0 => {}
            more => {
                warnings.push(format!("{} like that", counted(more as u64, "more differs", "more differ")))
            }
        }
        warnings
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { deliveries, events, rejected, .. } = self;
        let deliveries = counted(*deliveries, "delivery", "deliveries");
        writeln!(f, "looked at {deliveries}: {}", counted(*events, "event", "events"))?;
        if *rejected > 0 {
            let are_none = counted(*rejected, "delivery is no event", "deliveries are no events");
            writeln!(f, "{are_none} under this protocol")?;
        }
        if *events > EVENTS_MAX as u64 {
            writeln!(f, "only the first {EVENTS_MAX} events were compared with one another")?;
        }
        self.warnings().iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, pairs, example, together } = self;
        write!(f, "`{}` differs ", printable(pointer))?;
        if !together.is_empty() {
            let named: Vec<String> =
                together.iter().take(TOGETHER_MAX).map(|other| format!("`{}`", printable(other))).collect();
            write!(f, "together with {} ", named.join(", "))?;
            if together.len() > named.len() {
                write!(f, "and {} more ", together.len() - named.len())?;
            }
        }
        let (them, they_make) = if together.is_empty() { ("it", "it makes") } else { ("them", "they make") };
        write!(
            f,
            "between events that are otherwise equal ({}): likely envelope; leave {them} out unless \
             {they_make} another event",
            counted_pairs(*pairs, example)
        )
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn counted_pairs(pairs: u64, [one, other]: &[String; 2]) -> String {
    format!("{}, e.g. {} and {}", counted(pairs, "pair", "pairs"), printable(one), printable(other))
}

/// Looks at the captures that are the inputs of `config` under its protocol. `id` is a JSON Pointer to
/// what deliveries are called by.
///
/// # Errors
///
/// As [`record`](crate::record), and [`Error::Protocol`] if the protocol does not look into lines.
/// Deliveries that are no events under it are counted.
pub fn check(config: &Config, id: &str) -> Result<Findings, Error> {
    let protocol = &config.protocol;
    if protocol.settings().scheme == Scheme::Bytes {
        let reason = "it does not look into lines, so captures have no members to name".to_owned();
        return Err(Error::Protocol { name: protocol.name().to_owned(), reason });
    }
    let blind = Config { protocol: Protocol::built_in("bytes-v1")?, ..config.clone() };
    let mut keyer = Keyer::new(protocol);
    let mut parser = Parser::new();
    let mut findings = Findings::default();
    let mut keys = HashSet::new();
    let (mut ids, mut trees, mut places) = (Vec::new(), Vec::new(), Places::new());
    for_each_delivery(&blind, id, |line, _, id| {
        findings.deliveries += 1;
        let Ok((key, canonical)) = keyer.key_and_canonical(line) else {
            findings.rejected += 1;
            return;
        };
        if keys.insert(key) {
            let tree = parser.parse(canonical, |tape| Ok(places.tree(tape)));
            debug_assert!(tree.is_ok(), "a canonical form is an event");
            if let Some(tree) = tree.ok().filter(|_| trees.len() < EVENTS_MAX) {
                trees.push(tree);
                ids.push(id);
            }
        }
    })?;
    findings.events = keys.len() as u64;
    findings.suspicions = kept_suspicions(protocol, &places);
    findings.compare(&trees, &places, &ids);
    Ok(findings)
}

/// What the names of hashed members look like, by their pointers. What is selected or added by the
/// protocol has had its word already.
fn kept_suspicions(protocol: &Protocol, places: &Places) -> Vec<String> {
    let settings = protocol.settings();
    let of_protocol = |name: &str| {
        !settings.select.is_empty() || settings.add.iter().any(|(added, _)| added.as_str() == name)
    };
    let members = places.members(looks_suspicious);
    let kept = members.into_iter().filter(|(_, name, is_top_level)| !(*is_top_level && of_protocol(name)));
    let mut kept: Vec<_> = kept.map(|(place, name, _)| (places.pointer(place), name)).collect();
    kept.sort_unstable();
    kept.iter().flat_map(|(pointer, name)| suspicions(&printable(pointer), &[name])).collect()
}

impl Findings {
    /// Finds the events that are otherwise equal, and says where they differ.
    fn compare(&mut self, trees: &[Tree], places: &Places, ids: &[String]) {
        let mut differing: BTreeMap<u32, Differing> = BTreeMap::new();
        let mut pairs = near::pairs(trees, places);
        // Each member's example is the first pair of those that differ in the fewest members.
        pairs.sort_by_key(|pair| (pair.places.len(), pair.events));
        for Pair { events, places: differ } in pairs {
            let example = || events.map(|event| ids[event].clone());
            if differ.is_empty() {
                self.reordered.get_or_insert_with(|| (0, example())).0 += 1;
            }
            for &place in &differ {
                let others = || differ.iter().filter(|&&other| other != place);
                let first = || Differing {
                    pointer: places.pointer(place),
                    pairs: 0,
                    example: example(),
                    together: others().map(|&other| places.pointer(other)).collect(),
                };
                differing.entry(place).or_insert_with(first).pairs += 1;
            }
        }
        self.differing = differing.into_values().collect();
        self.differing.iter_mut().for_each(|member| member.together.sort_unstable());
        self.differing
            .sort_by(|one, two| two.pairs.cmp(&one.pairs).then_with(|| one.pointer.cmp(&two.pointer)));
    }
}
