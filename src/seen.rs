//! Step two of a batch: which events are the first of their key.
//!
//! In: the keys of a batch, in input order. Out: a verdict for each. The filter is a dashmap whose
//! shards are claimed side by side. In each step one worker owns a shard and takes that shard's
//! keys in input order, so the first copy wins whatever the threads do: there is no race to decide,
//! and one lock for each shard and batch.
//!
//! The filter holds 16 bytes of each key. By chance alone, two of n different events share them
//! with probability n²/2^129: for 10^9 events, 1 in 10^20.

use std::hash::{BuildHasher, Hasher};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dashmap::{DashMap, SharedValue};
use rayon::prelude::*;

use crate::hint::prefetch;
use crate::key::ShortKey;
use crate::meter::Meter;
use crate::store::{Alias, Loaded};

/// Enough that 64 workers have one each, and that growing one of them is a short pause.
const SHARDS: usize = 128;
/// So many look-ups ask for their memory at a time: what a core can wait for, about.
const AHEAD: usize = 12;

/// What a table holds for a key.
type Slot = (ShortKey, SharedValue<()>);

/// The keys that were seen.
pub(crate) struct Seen {
    /// Those of earlier runs.
    before: Loaded,
    map: DashMap<ShortKey, (), KeyHasher>,
}

/// The keys of one chunk's events, and the verdicts on them.
#[derive(Default)]
pub(crate) struct Claims {
    keys: Vec<ShortKey>,
    /// The events that have no key, in order. Only of a second protocol there are any.
    absent: Vec<u32>,
    /// The events' numbers, those of shard 0 first, in input order within a shard.
    order: Vec<u32>,
    /// Where each shard's part of `order` ends.
    ends: Vec<u32>,
    /// Atomic because shards are claimed side by side; each is written by one of them only.
    duplicate: Vec<AtomicBool>,
}

impl Seen {
    /// A filter that has seen the keys of earlier runs.
    pub(crate) fn new(before: Loaded) -> Self {
        Self { before, map: DashMap::with_capacity_and_hasher_and_shard_amount(0, KeyHasher, SHARDS) }
    }

    /// Claims the keys of a batch's chunks, given in input order.
    pub(crate) fn claim(&self, chunks: &[&Claims], meter: &Meter) {
        (0..SHARDS).into_par_iter().with_min_len(4).for_each(|shard| {
            let began = Instant::now();
            let mut table = self.map.shards()[shard].write();
            let claimed: Vec<_> = chunks.iter().flat_map(|claims| claims.of_shard(shard)).collect();
            let mut ahead = claimed.iter();
            // Where a look-up begins: the slots' control bytes start where their contents end.
            let mut prefetch_next = |contents_end: NonNull<Slot>, slots: usize| {
                if let Some((key, _)) = ahead.next() {
                    let slot = hash_of(key) as usize & (slots - 1);
                    prefetch(contents_end.as_ptr().cast::<u8>().wrapping_add(slot));
                    prefetch(contents_end.as_ptr().wrapping_sub(slot + 1));
                }
            };
            table.reserve(claimed.len(), |(seen, _)| hash_of(seen));
            (0..AHEAD).for_each(|_| prefetch_next(table.data_end(), table.buckets()));
            for (key, duplicate) in &claimed {
                prefetch_next(table.data_end(), table.buckets());
                let hash = hash_of(key);
                let is_known = table.get(hash, |(seen, _)| seen == *key).is_some();
                if is_known || self.before.contains(key) {
                    duplicate.store(true, Ordering::Relaxed);
                } else {
                    table.insert(hash, (**key, SharedValue::new(())), |(seen, _)| hash_of(seen));
                }
            }
            meter.claim.add(began.elapsed());
        });
    }
}

impl Seen {
    /// The keys that were claimed here, sorted.
    pub(crate) fn into_claimed(self) -> Vec<ShortKey> {
        // Allocated once, and sorted where it stands: fresh memory costs more than the sorting.
        let mut keys = Vec::with_capacity(self.map.len());
        keys.extend(self.map.into_iter().map(|(key, ())| key));
        // Compared as one number each, which is the order of bytes.
        keys.par_sort_unstable_by_key(|key| u128::from_be_bytes(*key));
        keys
    }
}

/// Finds the events of a chunk whose key under one protocol is new although it is seen under another. `claims` are
/// those of the chunk under each protocol, with their verdicts.
pub(crate) fn find_aliases(claims: &[&Claims], aliases: &mut Vec<Alias>) {
    let events = claims.first().map_or(0, |claims| claims.keys.len());
    for event in 0..events {
        let of_verdict = |duplicate: bool| {
            let places = claims.iter().enumerate();
            let places = places.filter(move |(_, claims)| {
                claims.is_duplicate(event) == duplicate && !is_among(&claims.absent, event)
            });
            places.map(move |(protocol, claims)| (protocol, claims.keys[event]))
        };
        aliases
            .extend(of_verdict(false).flat_map(|new| of_verdict(true).map(move |seen| Alias { new, seen })));
    }
}

impl Claims {
    /// An event without a key, which is no duplicate by this filter.
    pub(crate) fn push_absent(&mut self) {
        self.absent.push(self.keys.len() as u32);
        self.keys.push([0; 16]);
    }

    pub(crate) fn push(&mut self, key: ShortKey) {
        self.keys.push(key);
    }

    /// Sorts the events by shard, keeping their order within each: a counting sort.
    pub(crate) fn group_by_shard(&mut self) {
        let mut next = [0_u32; SHARDS + 1];
        for (event, key) in self.keys.iter().enumerate() {
            next[shard_of(key) + 1] += u32::from(!is_among(&self.absent, event));
        }
        for shard in 0..SHARDS {
            next[shard + 1] += next[shard];
        }
        self.order.resize(self.keys.len() - self.absent.len(), 0);
        for (event, key) in self.keys.iter().enumerate() {
            if is_among(&self.absent, event) {
                continue;
            }
            let place = &mut next[shard_of(key)];
            self.order[*place as usize] = event as u32;
            *place += 1;
        }
        // Each shard's start has moved to its end.
        self.ends = next[..SHARDS].to_vec();
        self.duplicate.resize_with(self.keys.len(), AtomicBool::default);
    }

    /// The keys of a shard, each with the place of its verdict.
    fn of_shard(&self, shard: usize) -> impl Iterator<Item = (&ShortKey, &AtomicBool)> {
        let start = if shard == 0 { 0 } else { self.ends[shard - 1] };
        let events = self.order[start as usize..self.ends[shard] as usize].iter();
        events.map(|&event| (&self.keys[event as usize], &self.duplicate[event as usize]))
    }

    /// Whether the event's key had been claimed before. Where no keys are claimed, none had.
    pub(crate) fn is_duplicate(&self, event: usize) -> bool {
        self.duplicate.get(event).is_some_and(|duplicate| duplicate.load(Ordering::Relaxed))
    }
}

/// Whether a sorted list, which mostly is empty, has the event.
fn is_among(events: &[u32], event: usize) -> bool {
    !events.is_empty() && events.binary_search(&(event as u32)).is_ok()
}

fn hash_of(key: &ShortKey) -> u64 {
    KeyHasher.hash_one(key)
}

/// The shard of a key, as dashmap has it: by the bits below the seven that a table tells its slots
/// apart by.
fn shard_of(key: &ShortKey) -> usize {
    (hash_of(key) << 7 >> (u64::BITS - SHARDS.trailing_zeros())) as usize
}

/// The hash of a key is the key: its bytes are as good as random.
#[derive(Clone, Copy, Default)]
struct KeyHasher;

impl BuildHasher for KeyHasher {
    type Hasher = KeyHash;

    fn build_hasher(&self) -> KeyHash {
        KeyHash(0)
    }
}

struct KeyHash(u64);

impl Hasher for KeyHash {
    /// The product carries the bits of short keys, of which the filter holds mostly zeros, to the
    /// high end, where shard and slot are chosen.
    #[inline]
    fn write(&mut self, key: &[u8]) {
        let mut bytes = [0; 8];
        let length = key.len().min(8);
        bytes[..length].copy_from_slice(&key[..length]);
        self.0 = u64::from_le_bytes(bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// The length of an array, which is the same for every key.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_those_of_dashmap() {
        let seen = Seen::new(Loaded::default());
        for number in 0..1000_u32 {
            let mut key = [0; 16];
            key[..4].copy_from_slice(&number.to_be_bytes());
            assert_eq!(shard_of(&key), seen.map.determine_map(&key), "{key:?}");
        }
    }
}
