//! Step three of a batch: verdicts to what is written.
//!
//! In: an analysed batch, claimed or not. Out: an [`Emission`] for the writer. Lines that stand
//! next to each other and go the same way are one run of bytes, straight from where they were read.

use std::ops::Range;
use std::time::Instant;

use rayon::prelude::*;

use crate::analyse::{Analysed, Chunk};
use crate::input::Bytes;
use crate::meter::Meter;
use crate::split::Line;

/// What is to be written of one batch. The parts are in input order.
pub(crate) struct Emission {
    pub(crate) source: usize,
    pub(crate) bytes: Bytes,
    pub(crate) parts: Vec<Part>,
}

/// What is to be written of one chunk.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) kept: Runs,
    pub(crate) duplicates: Runs,
    pub(crate) rejects: Runs,
    /// Text that stands for the kept lines.
    pub(crate) text: Vec<u8>,
}

/// Runs of whole lines, as ranges of the batch: each with its line end, where it has one.
#[derive(Default)]
pub(crate) struct Runs(pub(crate) Vec<Range<u32>>);

impl Runs {
    fn push(&mut self, line: Line, batch: &[u8]) {
        let end = (line.end + 1).min(batch.len() as u32);
        match self.0.last_mut() {
            Some(run) if run.end == line.start => run.end = end,
            _ => self.0.push(line.start..end),
        }
    }
}

/// Sorts the lines of a batch into what goes where.
pub(crate) fn emit(analysed: Analysed, claimed: bool, meter: &Meter) -> Emission {
    let Analysed { source, bytes, chunks } = analysed;
    let parts = chunks
        .into_par_iter()
        .with_min_len(8)
        .map(|chunk| {
            let began = Instant::now();
            let part = emit_chunk(chunk, claimed, &bytes);
            meter.emit.add(began.elapsed());
            part
        })
        .collect();
    Emission { source, bytes, parts }
}

fn emit_chunk(chunk: Chunk, claimed: bool, batch: &[u8]) -> Part {
    let mut part = Part::default();
    if claimed {
        for (event, &line) in chunk.events.iter().enumerate() {
            if chunk.is_duplicate(event) {
                part.duplicates.push(line, batch);
            } else {
                part.kept.push(line, batch);
            }
        }
    }
    for reject in &chunk.rejects {
        part.rejects.push(reject.line, batch);
    }
    part.text = chunk.text;
    part
}
