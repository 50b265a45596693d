//! The private stages, for `benches/` and `tests/` and for nobody else.
//!
//! Stages are private so that they can change; benchmarks and tests are crates of their own, which
//! see only what is public. To measure or try each stage alone, they call these functions, which
//! call the stages and do nothing else. They are no part of the interface and may change in any
//! release.

use crate::canonical::Canonicaliser;
use crate::error::Invalid;
use crate::exact::ExactParser;
use crate::geometry::{Geometer, Notes};
use crate::meter::Meter;
use crate::number::{NumberStyle, write_double};
use crate::parse::Parser;
use crate::protocol::{Protocol, Settings};
use crate::seen::{self, Seen};
use crate::split;
use crate::store::Loaded;
use crate::tape::Tape;

/// Cuts a batch into chunks and lines; returns how many lines are not blank.
#[must_use]
pub fn split(batch: &[u8], chunk_bytes: usize) -> usize {
    let chunks = split::chunks(batch, chunk_bytes);
    let lines = chunks.into_iter().flat_map(|chunk| split::lines(batch, chunk));
    lines.filter(|line| !split::is_blank(line.of(batch))).count()
}

/// Parses lines; returns how many nodes their tapes have.
///
/// # Errors
///
/// [`Invalid`] if one of them is no event.
pub fn parse(lines: &[&[u8]]) -> Result<usize, Invalid> {
    let mut parser = Parser::new();
    lines.iter().map(|line| parser.parse(line, |tape| Ok(tape.after(0)))).sum()
}

/// Appends the canonical forms of events to `out`. The tapes come from simd-json itself, since the
/// parser lends out one at a time.
///
/// # Errors
///
/// [`Invalid`] if one of them has none.
pub fn canonical(
    protocol: &Protocol,
    tapes: &[simd_json::Tape<'_>],
    out: &mut Vec<u8>,
) -> Result<(), Invalid> {
    let mut canonicaliser = Canonicaliser::new(protocol);
    tapes.iter().try_for_each(|tape| canonicaliser.write(&Tape::Simd(&tape.0), out))
}

/// Appends the canonical form of one event, parsed by the exact parser whatever it holds.
///
/// # Errors
///
/// [`Invalid`] if the line is no event.
pub fn canonical_exactly(protocol: &Protocol, line: &[u8], out: &mut Vec<u8>) -> Result<(), Invalid> {
    let mut exact = ExactParser::default();
    let tape = exact.parse(line)?;
    let mut geometer = Geometer::new(protocol);
    let normalised = geometer.normalise(&tape, line, &mut Notes::default())?;
    Canonicaliser::new(protocol).write(normalised.as_ref().unwrap_or(&tape), out)
}

/// Appends the text of numbers, rounded to `decimals` if that is given, to `out`.
pub fn number(values: &[f64], decimals: Option<u16>, out: &mut Vec<u8>) {
    let style = NumberStyle::new(&Settings { decimals, ..Settings::default() });
    values.iter().for_each(|&value| write_double(value, &style, out));
}

/// The keys of one chunk, ready to be claimed.
pub struct Claims(seen::Claims, usize);

impl Claims {
    /// Groups keys by shard, as a worker does at the end of a chunk.
    #[must_use]
    pub fn group(keys: &[[u8; 16]]) -> Self {
        let mut claims = seen::Claims::default();
        keys.iter().for_each(|&key| claims.push(key));
        claims.group_by_shard();
        Self(claims, keys.len())
    }

    /// How many of them had been claimed before.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        (0..self.1).filter(|&event| self.0.is_duplicate(event)).count() as u64
    }
}

/// A first-seen filter.
pub struct Filter(Seen);

impl Filter {
    /// An empty filter.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "nobody needs one")]
    pub fn new() -> Self {
        Self(Seen::new(Loaded::default()))
    }

    /// Claims the keys of one batch, chunk by chunk.
    pub fn claim(&self, batch: &[Claims]) {
        let chunks: Vec<_> = batch.iter().map(|claims| &claims.0).collect();
        self.0.claim(&chunks, &Meter::default());
    }
}
