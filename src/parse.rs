//! A line to its tape.
//!
//! In: the bytes of one line, without its line end. Out: a [`Tape`], or why the line is no event.
//! simd-json does the work. What it refuses goes to the exact parser, which knows the events that
//! simd-json cannot hold and says precisely what is wrong with the rest, so there is one authority
//! on what is refused and why.

use std::mem;

use crate::DEPTH_MAX;
use crate::error::Invalid;
use crate::exact::ExactParser;
use crate::tape::Tape;

/// A parser with reusable buffers: after the first lines it allocates nothing.
pub(crate) struct Parser {
    /// The line and simd-json's padding. simd-json rewrites what it parses.
    scratch: Vec<u8>,
    buffers: simd_json::Buffers,
    tape: simd_json::Tape<'static>,
    exact: ExactParser,
}

impl Parser {
    pub(crate) fn new() -> Self {
        Self {
            scratch: Vec::new(),
            buffers: simd_json::Buffers::with_max_depth(4096, DEPTH_MAX),
            tape: simd_json::Tape(Vec::new()),
            exact: ExactParser::default(),
        }
    }

    /// Parses one line and hands its tape to `with`. If that finds a fault of which simd-json's tape
    /// does not know the place (its column is 0), it is given the exact tape too.
    pub(crate) fn parse<T>(
        &mut self,
        line: &[u8],
        mut with: impl FnMut(&Tape<'_>) -> Result<T, Invalid>,
    ) -> Result<T, Invalid> {
        self.scratch.clear();
        self.scratch.extend_from_slice(line);
        self.scratch.resize(line.len() + simd_json::INPUT_PADDING, b' ');
        let mut tape = mem::replace(&mut self.tape, simd_json::Tape(Vec::new())).reset();
        let parsed = simd_json::fill_tape_padded(&mut self.scratch, line.len(), &mut self.buffers, &mut tape);
        let quickly = match (parsed, tape.0.first()) {
            (Ok(()), Some(simd_json::Node::Object { .. })) => Some(with(&Tape::Simd(&tape.0))),
            _ => None,
        };
        let result = match quickly {
            Some(result) if !matches!(result, Err(Invalid { byte: 0, .. })) => result,
            _ => self.exact.parse(line).and_then(|tape| with(&tape)),
        };
        self.tape = tape.reset();
        result
    }
}
