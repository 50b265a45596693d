//! The keys of earlier runs in memory.
//!
//! In: segments. Out: one sorted array of all keys, and an index into it by their leading bits. Keys are
//! uniform, so the few that share these bits are found at once: a look-up costs a cache miss or two.
//!
//! ```text
//! read:    every block of every segment, side by side, each checked, to its place in one array
//! merge:   if there are several segments: the range of keys is cut into parts; of each part, the pieces
//!          of all segments are put one after another and sorted, which for sorted pieces is a merge
//! index:   where the keys with each value of the leading bits start
//! ```
//!
//! Memory is 16 bytes a key and half a byte to one for the index; while several segments are merged, twice that.

use rayon::prelude::*;

use super::segment::{BLOCK_RECORDS, Segment};
use crate::error::Error;

/// Keys of one value of the leading bits, about.
const BUCKET_KEYS: usize = 8;
/// Keys of a part that is merged at a time, about: its pieces fit a second-level cache.
const PART_KEYS: usize = 1 << 15;

/// Keys that are seen from the start.
#[derive(Default)]
pub struct Loaded {
    /// Big-endian, so that numbers are in the order of bytes. Sorted.
    keys: Vec<u128>,
    /// Where the keys of each bucket start; one more at the end.
    starts: Vec<u64>,
    /// What is left of a key when this many bits are shifted out is its bucket.
    shift: u32,
}

impl Loaded {
    /// The keys of segments, less those that were claimed at `expired` or before.
    pub(super) fn read(segments: &[Segment], expired: Option<u64>) -> Result<Self, Error> {
        let is_whole = |segment: &Segment| expired.is_none_or(|expired| segment.header.earliest > expired);
        let mut runs = Vec::new();
        for segment in
            segments.iter().filter(|segment| expired.is_none_or(|expired| segment.header.latest > expired))
        {
            runs.push(match is_whole(segment) {
                true => read_whole(segment)?,
                false => read_some(segment, expired.unwrap_or(0))?,
            });
        }
        let keys = match runs.len() {
            0 | 1 => runs.pop().unwrap_or_default(),
            _ => merge(&runs),
        };
        Ok(Self::of_sorted(keys))
    }

    fn of_sorted(keys: Vec<u128>) -> Self {
        let bits = (keys.len() / BUCKET_KEYS).checked_ilog2().unwrap_or(0);
        let shift = u128::BITS - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut at = 0;
        for bucket in 0..1_u128 << bits {
            starts.push(at as u64);
            while at < keys.len() && bucket_of(keys[at], shift) as u128 == bucket {
                at += 1;
            }
        }
        starts.push(keys.len() as u64);
        Self { keys, starts, shift }
    }

    /// How many there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the key is among them.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: &[u8; 16]) -> bool {
        if self.keys.is_empty() {
            return false;
        }
        let key = u128::from_be_bytes(*key);
        let bucket = bucket_of(key, self.shift);
        let (start, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        let keys = &self.keys[start..end];
        match keys.len() {
            // Keys that are short, or chosen by somebody, may share their leading bits.
            0..=64 => keys.contains(&key),
            _ => keys.binary_search(&key).is_ok(),
        }
    }
}

/// The leading bits of a key.
#[inline]
fn bucket_of(key: u128, shift: u32) -> usize {
    key.checked_shr(shift).unwrap_or(0) as usize
}

/// All keys of a segment.
fn read_whole(segment: &Segment) -> Result<Vec<u128>, Error> {
    let mut keys = vec![0; segment.header.keys as usize];
    let blocks = keys.par_chunks_mut(BLOCK_RECORDS).enumerate();
    blocks.try_for_each_init(Vec::new, |buffer, (block, places)| {
        let mut places = places.iter_mut();
        segment.read_block(block as u64, buffer, |key, _| {
            // There are as many places as the block has keys.
            if let Some(place) = places.next() {
                *place = u128::from_be_bytes(key);
            }
        })
    })?;
    let mut starts = (BLOCK_RECORDS..keys.len()).step_by(BLOCK_RECORDS);
    match starts.find(|&at| keys[at - 1] >= keys[at]) {
        Some(at) => Err(segment.out_of_order((at / BLOCK_RECORDS) as u64)),
        None => Ok(keys),
    }
}

/// The keys of a segment that were claimed after `expired`.
fn read_some(segment: &Segment, expired: u64) -> Result<Vec<u128>, Error> {
    let blocks = (0..segment.blocks()).into_par_iter().map_init(Vec::new, |buffer, block| {
        let mut keys = Vec::new();
        segment.read_block(block, buffer, |key, claimed| {
            if claimed > expired {
                keys.push(u128::from_be_bytes(key));
            }
        })?;
        Ok(keys)
    });
    let mut all: Vec<u128> = Vec::new();
    for (block, keys) in blocks.collect::<Result<Vec<_>, Error>>()?.iter().enumerate() {
        if let (Some(last), Some(first)) = (all.last(), keys.first())
            && last >= first
        {
            return Err(segment.out_of_order(block as u64));
        }
        all.extend_from_slice(keys);
    }
    Ok(all)
}

/// One sorted array of several.
fn merge(runs: &[Vec<u128>]) -> Vec<u128> {
    let total: usize = runs.iter().map(Vec::len).sum();
    let parts = (total / PART_KEYS).max(1);
    let step = (u128::MAX / parts as u128).saturating_add(1);
    // Where each part starts in each run.
    let bounds: Vec<Vec<usize>> = (0..=parts)
        .into_par_iter()
        .map(|part| {
            let start = |run: &Vec<u128>| match part {
                _ if part == parts => run.len(),
                _ => run.partition_point(|&key| key < step.saturating_mul(part as u128)),
            };
            runs.iter().map(start).collect()
        })
        .collect();
    let mut merged = vec![0; total];
    let mut rest = &mut merged[..];
    let mut places = Vec::with_capacity(parts);
    for pair in bounds.windows(2) {
        let keys = pair[0].iter().zip(&pair[1]).map(|(start, end)| end - start).sum();
        let (place, after) = std::mem::take(&mut rest).split_at_mut(keys);
        places.push((place, pair));
        rest = after;
    }
    places.into_par_iter().for_each(|(place, pair)| {
        let mut at = 0;
        for ((run, &start), &end) in runs.iter().zip(&pair[0]).zip(&pair[1]) {
            place[at..at + end - start].copy_from_slice(&run[start..end]);
            at += end - start;
        }
        // The stable sort finds what is sorted already, and merges it.
        place.sort();
    });
    merged
}
