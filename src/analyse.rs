//! Step one of a batch: lines to keys, chunks side by side.
//!
//! In: a [`Batch`]. Out: an [`Analysed`] batch, whose chunks hold the lines that are events with
//! what was made of each, and the lines that are none. After the first chunks a worker allocates
//! by the chunk, never by the line.

use std::io::Write;
use std::mem;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;

use crate::LINE_BYTES_MAX;
use crate::config::Config;
use crate::error::Invalid;
use crate::geometry::Notes;
use crate::input::{Batch, Bytes};
use crate::key::{Key, Keyer, LONG_LINE_BYTES};
use crate::meter::Meter;
use crate::protocol::Protocol;
use crate::seen::Claims;
use crate::split::{self, Line};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What is made of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    /// Its key, for the first-seen filter.
    Claim,
    /// A line of text about its key.
    Text(KeyText),
}

/// What the text about a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyText {
    /// The key.
    Key,
    /// Key, tab, canonical JSON.
    Canonical,
    /// Key, tab, protocol name, tab, length of the canonical JSON in bytes.
    Long,
}

/// A batch after analysis.
pub(crate) struct Analysed {
    pub(crate) source: usize,
    pub(crate) bytes: Bytes,
    pub(crate) chunks: Vec<Chunk>,
}

/// What a worker made of one chunk.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Lines of any kind that were looked at.
    pub(crate) lines: u64,
    pub(crate) blank: u64,
    /// The lines that are events.
    pub(crate) events: Vec<Line>,
    /// The keys of the events, for the filter.
    pub(crate) claims: Claims,
    /// Those under each further protocol whose keys count too.
    pub(crate) also: Vec<Claims>,
    /// The text about the events' keys.
    pub(crate) text: Vec<u8>,
    pub(crate) rejects: Vec<Reject>,
    pub(crate) notes: Notes,
    /// The line that ends the run, counted from 1 in this chunk. Nothing after it was looked at.
    pub(crate) fault: Option<(u64, Fault)>,
}

/// A line that is no event.
pub(crate) struct Reject {
    pub(crate) line: Line,
    pub(crate) invalid: Invalid,
}

/// Why a line ends the run.
pub(crate) enum Fault {
    Invalid(Invalid),
    TooLong,
}

/// What a worker needs for itself: its buffers are reused from chunk to chunk.
struct Workplace {
    forms: Forms,
    /// Those under further protocols, and which events have one.
    also: Vec<(Forms, Vec<bool>)>,
}

/// The canonical forms of a chunk's events under one protocol, to be hashed together.
struct Forms {
    keyer: Keyer,
    canonical: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

/// Everything that analysis needs, shared by the workers.
pub(crate) struct Analyst<'a> {
    protocol: &'a Protocol,
    also: &'a [Protocol],
    product: Product,
    /// Whether lines that are no events are collected, or else end the run.
    collect_rejects: bool,
    chunk_bytes: usize,
    meter: &'a Meter,
    /// What no worker is using.
    idle: Mutex<Vec<Workplace>>,
    /// Held while a long line is parsed: that takes many times its length in memory.
    long_line: Mutex<()>,
}

impl<'a> Analyst<'a> {
    pub(crate) fn new(config: &'a Config, product: Product, meter: &'a Meter) -> Self {
        Self {
            protocol: &config.protocol,
            also: config.store.as_ref().map_or(&[], |store| &store.also),
            product,
            collect_rejects: config.rejects.is_some(),
            chunk_bytes: config.chunk_bytes.get(),
            meter,
            idle: Mutex::default(),
            long_line: Mutex::default(),
        }
    }

    pub(crate) fn analyse(&self, batch: Batch) -> Analysed {
        let Batch { source, first, bytes } = batch;
        let ranges = split::chunks(&bytes, self.chunk_bytes);
        let chunks = ranges
            .into_par_iter()
            .with_max_len(1)
            .map(|range| {
                let began = Instant::now();
                let chunk = self.analyse_chunk(&bytes, range, first);
                self.meter.analyse.add(began.elapsed());
                chunk
            })
            .collect();
        Analysed { source, bytes, chunks }
    }

    fn analyse_chunk(&self, batch: &[u8], range: Range<usize>, first: bool) -> Chunk {
        // A worker that panicked took its workplace with it; the list is whole.
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let mut place = free.unwrap_or_else(|| Workplace::new(self.protocol, self.also));
        let mut chunk = Chunk::default();
        // A guess at the length of a line saves most of the growing.
        chunk.events.reserve(range.len() / 256);
        for mut line in split::lines(batch, range) {
            let marked = first && line.start == 0 && line.of(batch).starts_with(BYTE_ORDER_MARK);
            if marked {
                line.start = BYTE_ORDER_MARK.len() as u32;
            }
            chunk.lines += 1;
            if let Err(mut fault) = self.analyse_line(&mut place, batch, line, &mut chunk) {
                if let Fault::Invalid(invalid) = &mut fault
                    && marked
                {
                    invalid.byte += BYTE_ORDER_MARK.len();
                }
                chunk.fault = Some((chunk.lines, fault));
                break;
            }
        }
        chunk.notes = place.forms.keyer.take_notes();
        place.hash_into(&mut chunk);
        idle().push(place);
        chunk
    }

    #[inline]
    fn analyse_line(
        &self,
        place: &mut Workplace,
        batch: &[u8],
        line: Line,
        chunk: &mut Chunk,
    ) -> Result<(), Fault> {
        let text = line.of(batch);
        if text.len() > LINE_BYTES_MAX {
            return Err(Fault::TooLong);
        }
        if split::is_blank(text) {
            chunk.blank += 1;
            return Ok(());
        }
        let long = text.len() > LONG_LINE_BYTES;
        let _alone = long.then(|| self.long_line.lock().unwrap_or_else(PoisonError::into_inner));
        match self.product(place, text, chunk) {
            Ok(()) => chunk.events.push(line),
            Err(invalid) if self.collect_rejects => chunk.rejects.push(Reject { line, invalid }),
            Err(invalid) => return Err(Fault::Invalid(invalid)),
        }
        Ok(())
    }

    fn product(&self, place: &mut Workplace, line: &[u8], chunk: &mut Chunk) -> Result<(), Invalid> {
        let Workplace { forms: Forms { keyer, canonical, ends }, also } = place;
        let prefix = &self.protocol.settings().prefix;
        // Writing to memory cannot fail.
        match self.product {
            Product::Claim => {
                keyer.append_canonical(line, canonical)?;
                ends.push(canonical.len());
                for (Forms { keyer, canonical, ends }, present) in also {
                    let is_event = keyer.append_canonical(line, canonical).is_ok();
                    present.push(is_event);
                    if is_event {
                        ends.push(canonical.len());
                    }
                }
            }
            Product::Text(KeyText::Key) => drop(writeln!(chunk.text, "{prefix}{}", keyer.key(line)?)),
            Product::Text(KeyText::Long) => {
                let (key, canonical) = keyer.key_and_canonical(line)?;
                drop(writeln!(chunk.text, "{prefix}{key}\t{}\t{}", self.protocol.name(), canonical.len()));
            }
            Product::Text(KeyText::Canonical) => {
                let (key, canonical) = keyer.key_and_canonical(line)?;
                drop(write!(chunk.text, "{prefix}{key}\t"));
                chunk.text.extend_from_slice(canonical);
                chunk.text.push(b'\n');
            }
        }
        Ok(())
    }
}

impl Workplace {
    fn new(protocol: &Protocol, also: &[Protocol]) -> Self {
        Self {
            forms: Forms::new(protocol),
            also: also.iter().map(|other| (Forms::new(other), Vec::new())).collect(),
        }
    }

    /// Hashes the canonical forms there are.
    fn hash_into(&mut self, chunk: &mut Chunk) {
        self.forms.hash(|key| chunk.claims.push(key.short()));
        chunk.claims.group_by_shard();
        for (forms, present) in &mut self.also {
            let mut claims = Claims::default();
            let mut present = present.drain(..);
            forms.hash(|key| {
                // Before each key stand the events that have none.
                present.by_ref().take_while(|is_event| !is_event).for_each(|_| claims.push_absent());
                claims.push(key.short());
            });
            present.for_each(|_| claims.push_absent());
            claims.group_by_shard();
            chunk.also.push(claims);
        }
    }
}

impl Chunk {
    /// Whether a key of the event had been claimed before, under any protocol.
    pub(crate) fn is_duplicate(&self, event: usize) -> bool {
        self.claims.is_duplicate(event) || self.also.iter().any(|claims| claims.is_duplicate(event))
    }

    /// The claims under the protocol, or under a further one, counted from 1.
    pub(crate) fn claims_of(&self, protocol: usize) -> &Claims {
        protocol.checked_sub(1).map_or(&self.claims, |further| &self.also[further])
    }

    pub(crate) fn duplicates(&self) -> u64 {
        (0..self.events.len()).filter(|&event| self.is_duplicate(event)).count() as u64
    }
}

impl Forms {
    fn new(protocol: &Protocol) -> Self {
        Self { keyer: Keyer::new(protocol), canonical: Vec::new(), ends: Vec::new() }
    }

    fn hash(&mut self, keys: impl FnMut(Key)) {
        self.keyer.hash_all(&self.canonical, &self.ends, keys);
        self.canonical.clear();
        self.canonical.shrink_to(LONG_LINE_BYTES);
        self.ends.clear();
    }
}

impl Analysed {
    /// The first line that ends the run, counted from 1 in this batch, and why. The chunks after
    /// it are dropped: what they hold comes too late.
    pub(crate) fn take_fault(&mut self) -> Option<(u64, Fault)> {
        let position = self.chunks.iter().position(|chunk| chunk.fault.is_some())?;
        self.chunks.truncate(position + 1);
        let before: u64 = self.chunks[..position].iter().map(|chunk| chunk.lines).sum();
        let (line, fault) = mem::take(&mut self.chunks[position].fault)?;
        Some((before + line, fault))
    }
}
