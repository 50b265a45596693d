//! Text that is written a lane at a time.

use super::line::{LANE, PADDING};
use crate::number::{NumberStyle, write_double};

/// Bytes that are appended to. Behind them there is room for more, whose content is of no account.
#[derive(Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    len: usize,
    /// How many bytes there is room for.
    most: usize,
    /// A number that is written.
    number: Vec<u8>,
}

/// A few bytes that are written often.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    padded: [u8; LANE],
    len: usize,
}

impl Mark {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; LANE];
        padded[..bytes.len()].copy_from_slice(bytes);
        Self { padded, len: bytes.len() }
    }
}

impl Text {
    /// Forgets what has been written, and makes room for `most` bytes beside numbers that are written anew.
    pub(super) fn restart(&mut self, most: usize) {
        self.len = 0;
        self.most = most;
        self.make_room();
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// What has been written.
    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// What has been written, and at least [`PADDING`] bytes more.
    pub(super) fn padded(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    pub(super) fn put(&mut self, mark: &Mark) {
        self.bytes[self.len..][..LANE].copy_from_slice(&mark.padded);
        self.len += mark.len;
    }

    /// Appends `len` bytes of `from`, which has as many more as fill a lane.
    #[inline]
    pub(super) fn copy(&mut self, from: &[u8], start: usize, len: usize) {
        let (to, from) = (&mut self.bytes[self.len..], &from[start..]);
        if len <= LANE {
            to[..LANE].copy_from_slice(&from[..LANE]);
        } else if len <= 2 * LANE {
            to[..2 * LANE].copy_from_slice(&from[..2 * LANE]);
        } else {
            to[..len].copy_from_slice(&from[..len]);
        }
        self.len += len;
    }

    pub(super) fn write_double(&mut self, value: f64, style: &NumberStyle) {
        let mut number = std::mem::take(&mut self.number);
        number.clear();
        write_double(value, style, &mut number);
        let len = number.len();
        number.resize(len + PADDING, 0);
        // Before, because it may be longer than what stands for it in the line; and after it, there is to be as
        // much room as before.
        self.most += len;
        self.make_room();
        self.copy(&number, 0, len);
        self.number = number;
    }

    fn make_room(&mut self) {
        let needed = self.len + self.most + PADDING;
        if needed > self.bytes.len() {
            self.bytes.resize(needed.next_power_of_two(), 0);
        }
    }
}
