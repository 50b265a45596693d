//! What a run has claimed, and since when that counts.
//!
//! A key counts from the time of its run. The exception is an event with a new key that is seen under another of
//! the run's protocols: it is not new, and neither is its key, which is as old as the one that was seen. Otherwise
//! a duplicate would make an event younger than it is.

use std::collections::HashMap;

use super::Session;
use crate::error::Error;
use crate::key::ShortKey;
use crate::protocol::Protocol;

/// The keys of one protocol that a run has claimed.
#[derive(Default)]
pub struct Claimed {
    /// The keys, in increasing order.
    pub keys: Vec<ShortKey>,
    /// The claim times of those that do not count from the time of the run.
    pub times: HashMap<ShortKey, u64>,
}

/// Two keys of one event, each with the place of its protocol in the run: one that was new, and one that had been
/// seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alias {
    pub(crate) new: (usize, ShortKey),
    pub(crate) seen: (usize, ShortKey),
}

impl From<Vec<ShortKey>> for Claimed {
    fn from(keys: Vec<ShortKey>) -> Self {
        Self { keys, times: HashMap::new() }
    }
}

impl Claimed {
    /// The keys, each with its claim time, of a run at `time`.
    pub(super) fn records(&self, time: u64) -> impl ExactSizeIterator<Item = (ShortKey, u64)> + Clone {
        self.keys.iter().map(move |key| (*key, self.times.get(key).copied().unwrap_or(time)))
    }
}

impl Session<'_> {
    /// Gives new keys of events that had been seen the time at which these had been seen first. `aliases` are in the
    /// order of the events, `keys` those of each protocol that were claimed.
    pub(crate) fn date(
        &self,
        protocols: &[Protocol],
        ttl: Option<u64>,
        keys: Vec<Vec<ShortKey>>,
        aliases: &[Alias],
    ) -> Result<Vec<Claimed>, Error> {
        let mut claimed: Vec<Claimed> = keys.into_iter().map(Claimed::from).collect();
        if aliases.is_empty() {
            return Ok(claimed);
        }
        let times_before = protocols.iter().enumerate().map(|(place, protocol)| {
            let seen = aliases.iter().map(|alias| alias.seen).filter(|(protocol, _)| *protocol == place);
            self.times(protocol, ttl, seen.map(|(_, key)| key).collect())
        });
        let times_before = times_before.collect::<Result<Vec<_>, Error>>()?;
        for Alias { new, seen } in aliases {
            // What this run has claimed itself may be an older event's alias, which has then been before this one.
            let times = [&times_before[seen.0], &claimed[seen.0].times];
            if let Some(&time) = times.iter().find_map(|times| times.get(&seen.1)) {
                let first = claimed[new.0].times.entry(new.1).or_insert(time);
                *first = time.min(*first);
            }
        }
        Ok(claimed)
    }

    /// The claim times of those keys that count in the store.
    fn times(
        &self,
        protocol: &Protocol,
        ttl: Option<u64>,
        mut keys: Vec<ShortKey>,
    ) -> Result<HashMap<ShortKey, u64>, Error> {
        keys.sort_unstable();
        keys.dedup();
        let mut times = HashMap::new();
        let expired = self.expired(ttl);
        let mut buffer = Vec::new();
        for segment in self.segments_of(protocol)? {
            // Both are sorted.
            let mut wanted = keys.iter().peekable();
            for block in 0..segment.blocks() {
                segment.read_block(block, &mut buffer, |key, claimed| {
                    while wanted.next_if(|wanted| **wanted < key).is_some() {}
                    if wanted.peek() == Some(&&key) && expired.is_none_or(|expired| claimed > expired) {
                        // Of a key that was claimed again when it was forgotten, the later claim counts.
                        let time = times.entry(key).or_insert(claimed);
                        *time = claimed.max(*time);
                    }
                })?;
            }
        }
        Ok(times)
    }
}
