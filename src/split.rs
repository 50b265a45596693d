//! Batches to chunks, and chunks to lines.
//!
//! A chunk is the unit of work of one worker: a slice of a batch that ends at a line end. A line is
//! a range of bytes in its batch, because ranges can cross threads where references cannot.

use std::ops::Range;

/// A line without its line end, as offsets in its batch. Offsets fit 32 bits, because a batch is
/// longer than its nominal size only by one line, and lines have a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Line {
    #[inline]
    pub(crate) fn of(self, batch: &[u8]) -> &[u8] {
        &batch[self.start as usize..self.end as usize]
    }
}

/// Cuts a batch into chunks of about `chunk_bytes`, each ended at a line end.
pub(crate) fn chunks(batch: &[u8], chunk_bytes: usize) -> Vec<Range<usize>> {
    let mut chunks = Vec::with_capacity(batch.len() / chunk_bytes + 1);
    let mut start = 0;
    while start < batch.len() {
        let least = (start + chunk_bytes).min(batch.len());
        let end = match memchr::memchr(b'\n', &batch[least - 1..]) {
            Some(newline) => least + newline,
            None => batch.len(),
        };
        chunks.push(start..end);
        start = end;
    }
    chunks
}

/// The lines of a chunk, in order.
pub(crate) fn lines(batch: &[u8], chunk: Range<usize>) -> impl Iterator<Item = Line> {
    let mut start = chunk.start;
    let ends = memchr::memchr_iter(b'\n', &batch[chunk.clone()]).map(move |end| chunk.start + end);
    // Bytes after the last line end are a line too.
    let rest = (batch[chunk.clone()].last() != Some(&b'\n')).then_some(chunk.end);
    ends.chain(rest).map(move |end| {
        let line = Line { start: start as u32, end: end as u32 };
        start = end + 1;
        line
    })
}

/// Whether a line holds nothing but JSON white space.
#[inline]
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
