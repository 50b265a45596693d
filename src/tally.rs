//! The counts of every input, batch by batch, and through them the numbers of lines.

use crate::analyse::{Analysed, Fault, Product};
use crate::error::Error;
use crate::input::Source;
use crate::meter::Meter;
use crate::report::{Counts, InputReport};

/// The counts of every input so far.
pub(crate) struct Tally {
    inputs: Vec<InputReport>,
}

impl Tally {
    pub(crate) fn new(sources: &[Source], product: Product) -> Self {
        let compared = (product == Product::Claim).then_some(0);
        let counts = || Counts { unique: compared, duplicates: compared, ..Counts::default() };
        let input = |source: &Source| InputReport { source: source.name.clone(), counts: counts() };
        Self { inputs: sources.iter().map(input).collect() }
    }

    /// What in this batch ends the run, before it is added.
    pub(crate) fn fault(&self, analysed: &mut Analysed) -> Option<Error> {
        let InputReport { source, counts } = &self.inputs[analysed.source];
        let source = source.clone();
        if analysed.bytes.shrunk() {
            // None of it can be trusted.
            analysed.chunks.clear();
            return Some(Error::Shrunk { source });
        }
        let (line, fault) = analysed.take_fault()?;
        let line = counts.lines + line;
        Some(match fault {
            Fault::Invalid(invalid) => Error::Event { source, line, invalid },
            Fault::TooLong => Error::LineTooLong { source, line },
        })
    }

    pub(crate) fn add(&mut self, analysed: &Analysed, meter: &Meter) {
        let counts = &mut self.inputs[analysed.source].counts;
        counts.bytes += analysed.bytes.len() as u64;
        for chunk in &analysed.chunks {
            let events = chunk.events.len() as u64;
            counts.lines += chunk.lines;
            counts.blank += chunk.blank;
            counts.events += events;
            chunk.rejects.iter().for_each(|reject| counts.add_reject(&reject.invalid.reason));
            counts.foreign_crs += chunk.notes.foreign_crs;
            counts.degenerate_rings += chunk.notes.degenerate_rings;
            let repeated = chunk.duplicates();
            if let (Some(unique), Some(duplicates)) = (&mut counts.unique, &mut counts.duplicates) {
                *unique += events - repeated;
                *duplicates += repeated;
            }
            meter.events.add(events);
            meter.duplicates.add(repeated);
        }
    }

    pub(crate) fn into_inputs(self) -> Vec<InputReport> {
        self.inputs
    }
}
