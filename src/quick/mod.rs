//! Lines canonicalised without a tape, where that can be done to the byte.
//!
//! In: a line. Out: its canonical form, or the word that the line has to be parsed. There are two ways: lines of a
//! [shape](shapes) seen before are compared with it, and only their values are looked at; other usual lines are
//! [read](direct) with names and all. The way by the tape is the authority on both, and tests hold them to it.

mod direct;
mod line;
mod scalar;
mod shape;
mod shapes;
mod text;

use crate::error::Invalid;
use crate::geometry::Geometer;
use crate::protocol::Protocol;
use direct::Direct;
use shapes::Shapes;

/// The quick ways, for one worker.
pub(crate) struct Quick {
    shapes: Shapes,
    direct: Direct,
}

impl Quick {
    pub(crate) fn new(protocol: &Protocol, geometer: &Geometer) -> Self {
        Self { shapes: Shapes::new(protocol), direct: Direct::new(protocol, geometer) }
    }

    /// Appends the canonical form of `line`, if there is a quick way to it. Otherwise nothing is appended.
    /// `canonicalise` is the way by the tape, to learn from.
    #[inline]
    pub(crate) fn write(
        &mut self,
        line: &[u8],
        out: &mut Vec<u8>,
        canonicalise: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<(), Invalid>,
    ) -> bool {
        if self.shapes.write(line, out) {
            return true;
        }
        let is_written = self.direct.write(line, out);
        if is_written {
            self.shapes.learn(line, canonicalise);
        }
        is_written
    }

    /// Learns the shape of a line that was parsed, if it is time to.
    pub(crate) fn learn(
        &mut self,
        line: &[u8],
        canonicalise: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<(), Invalid>,
    ) {
        self.shapes.learn(line, canonicalise);
    }
}
