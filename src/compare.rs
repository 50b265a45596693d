//! Two protocols on the same captures: which keys stay, move, merge or split, and by which setting.
//!
//! In: captures and two protocols. Out: a [`Comparison`] for each setting that differs, alone, and one
//! for all together. An event of a protocol is the set of deliveries that have one key under it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::config::Config;
use crate::contract::for_each_delivery;
use crate::error::{Error, Invalid, printable};
use crate::key::{Key, Keyer};
use crate::protocol::{Protocol, Settings};

/// Ids of examples that a comparison names, at most.
const EXAMPLES_MAX: usize = 3;

/// Two protocols, compared. It displays as a table for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Compared {
    /// Deliveries that were looked at.
    pub deliveries: u64,
    /// Those that are events under one protocol, or under both.
    pub events: u64,
    /// Each setting that differs, alone; the last one is all together.
    pub comparisons: Vec<Comparison>,
}

impl Compared {
    /// Whether there were events, and every key stays.
    #[must_use]
    pub fn keys_stay(&self) -> bool {
        self.events > 0 && self.comparisons.last().is_some_and(|all| all.keys_stay)
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", heading())?;
        self.comparisons.iter().try_for_each(|comparison| writeln!(f, "{comparison}"))?;
        let Self { deliveries, events, .. } = self;
        writeln!(
            f,
            "looked at {deliveries} deliveries, of which {events} are events under one protocol or both"
        )?;
        if *events == 0 { writeln!(f, "nothing was compared") } else { Ok(()) }
    }
}

/// What one change of settings does to the keys of the captures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// The setting that changes; empty for all together.
    pub setting: String,
    /// Events whose key stays.
    pub kept: usize,
    /// Events that stay what they are, with another key.
    pub renamed: usize,
    /// Events that become one with others.
    pub merged: usize,
    /// Events that become several.
    pub split: usize,
    /// Deliveries that one protocol rejects and the other does not.
    pub rejected: usize,
    /// Ids of deliveries of events that are renamed: at most three, as of the next ones.
    pub renamed_examples: Vec<String>,
    /// Ids of deliveries of events that are merged.
    pub merged_examples: Vec<String>,
    /// Ids of deliveries of events that are split.
    pub split_examples: Vec<String>,
    /// Deliveries that one protocol rejects and the other does not.
    pub rejected_examples: Vec<RejectedExample>,
    /// Whether every key stays.
    pub keys_stay: bool,
    /// What follows from it, in one line.
    pub advice: &'static str,
}

/// A delivery that one protocol rejects and the other does not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RejectedExample {
    /// What it is called by.
    pub id: String,
    /// The protocol that rejects it: `from` or `to`.
    pub by: &'static str,
    /// At which byte, and why.
    pub reason: String,
}

impl fmt::Display for RejectedExample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (by --{}: {})", printable(&self.id), self.by, self.reason)
    }
}

impl Comparison {
    fn advice(&self) -> &'static str {
        match self {
            _ if self.keys_stay => "every key stays",
            Self { rejected: 1.., .. } => "other deliveries are rejected: look at these first",
            Self { merged: 1.., split: 1.., .. } => {
                "merges distinct events and splits others: another identity"
            }
            Self { merged: 1.., renamed: 1.., .. } => {
                "merges distinct events: only right if they are one; other keys move: needs a migration of the seen store"
            }
            Self { merged: 1.., .. } => "merges distinct events: only right if they are one",
            Self { split: 1.., .. } => "splits events: their redeliveries are new events",
            _ => "same events, new keys: needs a migration of the seen store",
        }
    }
}

/// A row of the table of [`Compared`].
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = if self.setting.is_empty() { "all together" } else { &printable(&self.setting) };
        let stay = if self.keys_stay { "yes" } else { "no" };
        write!(
            f,
            "{setting:<24} {stay:<5} {:>6} {:>8} {:>7} {:>6} {:>9}  {}",
            self.kept, self.renamed, self.merged, self.split, self.rejected, self.advice
        )?;
        let ids = |ids: &[String]| ids.iter().map(|id| printable(id)).collect::<Vec<_>>();
        for (what, examples) in [
            ("renamed", ids(&self.renamed_examples)),
            ("merged", ids(&self.merged_examples)),
            ("split", ids(&self.split_examples)),
            ("rejected", self.rejected_examples.iter().map(RejectedExample::to_string).collect()),
        ] {
            if !examples.is_empty() {
                write!(f, "\n{:24} {what}: {}", "", examples.join(", "))?;
            }
        }
        Ok(())
    }
}

/// The first line of a table of comparisons.
fn heading() -> String {
    format!(
        "{:<24} {:<5} {:>6} {:>8} {:>7} {:>6} {:>9}  advice",
        "setting", "stay?", "kept", "renamed", "merged", "split", "rejected"
    )
}

/// A key with its prefix, or why there is none.
type NamedKey = Result<String, Invalid>;

/// Compares two protocols on the captures that are the inputs of `config`; its own protocol does not
/// matter. `id` is a JSON Pointer to what deliveries are called by.
///
/// # Errors
///
/// As [`record`](crate::record). Deliveries that are no events under a protocol are counted.
pub fn compare(config: &Config, (from, to): (&Protocol, &Protocol), id: &str) -> Result<Compared, Error> {
    let mut changes = changes(from.settings(), to.settings());
    changes.push((String::new(), to.settings().clone()));
    let mut keyers: Vec<Keyer> =
        changes.iter().map(|(_, settings)| Keyer::new(&from.with(settings))).collect();
    let mut old_keyer = Keyer::new(from);
    let mut ids = Vec::new();
    let mut old = Vec::new();
    let mut new: Vec<Vec<NamedKey>> = vec![Vec::new(); changes.len()];
    let named = |key: Result<Key, _>, prefix: &str| key.map(|key| format!("{prefix}{key}"));
    let blind = Config { protocol: Protocol::built_in("bytes-v1")?, ..config.clone() };
    for_each_delivery(&blind, id, |line, _, id| {
        ids.push(id);
        old.push(named(old_keyer.key(line), &from.settings().prefix));
        for ((keyer, keys), (_, settings)) in keyers.iter_mut().zip(&mut new).zip(&changes) {
            keys.push(named(keyer.key(line), &settings.prefix));
        }
    })?;
    let together = new.last().map_or(&[][..], Vec::as_slice);
    let events = old.iter().zip(together).filter(|(old, new)| old.is_ok() || new.is_ok()).count();
    let comparisons = changes.into_iter().zip(&new);
    let comparisons = comparisons.map(|((setting, _), new)| Comparison::of(setting, &ids, &old, new));
    Ok(Compared { deliveries: ids.len() as u64, events: events as u64, comparisons: comparisons.collect() })
}

impl Comparison {
    fn of(setting: String, ids: &[String], old: &[NamedKey], new: &[NamedKey]) -> Self {
        let mut comparison = Self { setting, ..Self::default() };
        let mut olds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        // The new keys of each old one, and a delivery that has it.
        let mut news: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            match (old, new) {
                (Ok(old), Ok(new)) => {
                    olds.entry(new).or_default().insert(old);
                    news.entry(old).or_insert_with(|| (BTreeSet::new(), index)).0.insert(new);
                }
                (Err(_), Err(_)) => {}
                (Err(invalid), _) => comparison.add_rejected(&ids[index], "from", invalid),
                (_, Err(invalid)) => comparison.add_rejected(&ids[index], "to", invalid),
            }
        }
        for (old, (new, delivery)) in news {
            let example = &ids[delivery];
            match new.first() {
                Some(_) if new.len() > 1 => {
                    comparison.split += 1;
                    comparison.split_examples.push(example.clone());
                }
                Some(only) if olds[only].len() > 1 => {
                    comparison.merged += 1;
                    comparison.merged_examples.push(example.clone());
                }
                Some(only) if *only == old => comparison.kept += 1,
                _ => {
                    comparison.renamed += 1;
                    comparison.renamed_examples.push(example.clone());
                }
            }
        }
        let Self { renamed_examples, merged_examples, split_examples, .. } = &mut comparison;
        for examples in [renamed_examples, merged_examples, split_examples] {
            examples.sort();
            examples.truncate(EXAMPLES_MAX);
        }
        let Self { renamed, merged, split, rejected, .. } = comparison;
        comparison.keys_stay = renamed + merged + split + rejected == 0;
        comparison.advice = comparison.advice();
        comparison
    }

    fn add_rejected(&mut self, id: &str, by: &'static str, invalid: &Invalid) {
        self.rejected += 1;
        if self.rejected_examples.len() < EXAMPLES_MAX {
            let example = RejectedExample { id: id.to_owned(), by, reason: invalid.to_string() };
            self.rejected_examples.push(example);
        }
    }
}

/// The settings in which two protocols differ, each with what `from` is if only that one changes.
fn changes(from: &Settings, to: &Settings) -> Vec<(String, Settings)> {
    let mut changes = Vec::new();
    let mut change = |name: &str, apply: &dyn Fn(&mut Settings)| {
        let mut settings = from.clone();
        apply(&mut settings);
        if settings != *from {
            changes.push((name.to_owned(), settings));
        }
    };
    change("event.strip", &|settings| {
        settings.strip = to.strip.clone();
        settings.strip_pointers = to.strip_pointers.clone();
    });
    change("event.add", &|settings| settings.add = to.add.clone());
    change("event.duplicate_names", &|settings| settings.duplicate_names = to.duplicate_names);
    change("event.non_finite", &|settings| settings.non_finite = to.non_finite);
    change("numbers.decimals", &|settings| settings.decimals = to.decimals);
    change("numbers.where", &|settings| settings.round_where = to.round_where);
    change("numbers.negative_zero", &|settings| settings.negative_zero = to.negative_zero);
    change("numbers.integral", &|settings| settings.integral = to.integral);
    change("geometry.identity", &|settings| settings.identity = to.identity);
    change("geometry.crs", &|settings| {
        settings.crs = to.crs;
        settings.source_crs = to.source_crs;
    });
    // A scheme may leave no choice of these two.
    change("canonical.scheme", &|settings| {
        if settings.scheme != to.scheme {
            settings.scheme = to.scheme;
            settings.duplicate_names = to.duplicate_names;
            settings.non_finite = to.non_finite;
        }
    });
    change("canonical.members", &|settings| settings.members = to.members);
    change("canonical.separators", &|settings| settings.separators = to.separators);
    change("canonical.non_ascii", &|settings| settings.non_ascii = to.non_ascii);
    // The lengths of two hash functions' keys need not fit each other's.
    change("key.hash", &|settings| {
        settings.hash = to.hash;
        settings.key_bytes = settings.key_bytes.min(to.hash.digest_bytes());
    });
    change("key.bytes", &|settings| settings.key_bytes = to.key_bytes.min(settings.hash.digest_bytes()));
    change("key.prefix", &|settings| settings.prefix = to.prefix.clone());
    if from.select.is_empty() != to.select.is_empty() {
        change("select", &|settings| settings.select = to.select.clone());
        return changes;
    }
    let names: BTreeSet<&String> =
        from.select.iter().chain(&to.select).map(|selected| &selected.member).collect();
    for name in names {
        change(&format!("select {name}"), &|settings| {
            let wanted = to.select.iter().find(|selected| selected.member == *name);
            let place = settings.select.iter().position(|selected| selected.member == *name);
            match (place, wanted) {
                (Some(place), Some(wanted)) => settings.select[place] = wanted.clone(),
                (Some(place), None) => drop(settings.select.remove(place)),
                (None, Some(wanted)) => settings.select.push(wanted.clone()),
                (None, None) => {}
            }
        });
    }
    change("select order", &|settings| {
        let place = |member: &str| to.select.iter().position(|selected| selected.member == member);
        settings.select.sort_by_key(|selected| place(&selected.member).unwrap_or(usize::MAX));
    });
    changes
}
