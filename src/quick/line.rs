//! A line that is looked at sixteen bytes at a time.
//!
//! Where a string or a run of digits ends is a matter of counting zeros, without a branch for each byte. The
//! vector code is that of the crate `wide`: SSE2, NEON, or plain code elsewhere.

use wide::u8x16;

/// Bytes that are looked at, compared or copied at a time.
pub(super) const LANE: usize = 16;
/// So many bytes past its end may be read of a line, and of a shape's text.
pub(super) const PADDING: usize = 2 * LANE;

/// A line, copied: what is scanned is what is written, whatever becomes of the input.
#[derive(Default)]
pub(super) struct Line {
    /// The line, and zeros.
    padded: Vec<u8>,
    len: usize,
}

impl Line {
    #[inline]
    pub(super) fn read(&mut self, line: &[u8]) {
        self.len = line.len();
        self.padded.clear();
        self.padded.reserve(line.len() + PADDING);
        self.padded.extend_from_slice(line);
        self.padded.extend_from_slice(&[0; PADDING]);
    }

    /// The line without padding.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.padded[..self.len]
    }

    /// The line and what follows it: [`PADDING`] zeros.
    #[inline]
    pub(super) fn padded(&self) -> &[u8] {
        &self.padded
    }

    /// The byte at `at`; zero past the end.
    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.padded.get(at).copied().unwrap_or(0)
    }

    /// Where the first byte that is no white space stands, from `at` on; the end of the line counts as one.
    #[inline]
    pub(super) fn skip_space(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\t' | b'\r' | b'\n') {
            at += 1;
        }
        at
    }

    /// The first eight bytes of a name, big-endian, with zeros in place of what a shorter one does not have.
    #[inline]
    pub(super) fn prefix(&self, start: usize, end: usize) -> u64 {
        let bytes =
            self.padded.get(start..start + 8).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        let missing = 8_usize.saturating_sub(end - start) as u32;
        u64::from_be_bytes(bytes) & u64::MAX.checked_shl(8 * missing).unwrap_or(0)
    }

    /// Where the first quote, backslash or control character stands from `at` on, and whether all before it is
    /// ASCII. The end of the line counts as one.
    #[inline]
    pub(super) fn next_stop(&self, mut at: usize) -> (usize, bool) {
        let mut is_ascii = true;
        while let Some(lane) = lane(&self.padded, at) {
            let is_control = lane.min(u8x16::splat(0x1F)).simd_eq(lane);
            let is_stop = is_control | lane.simd_eq(u8x16::splat(b'"')) | lane.simd_eq(u8x16::splat(b'\\'));
            let (stops, high) = (is_stop.to_bitmask(), lane.to_bitmask());
            // All bits below the lowest one that is set; all bits, if none is.
            is_ascii &= high & !stops & stops.wrapping_sub(1) == 0;
            if stops != 0 {
                return (at + stops.trailing_zeros() as usize, is_ascii);
            }
            at += LANE;
        }
        // Less than a lane is left, and the padding is as long as one: all of it is zeros.
        (at.max(self.len), is_ascii)
    }

    /// A bit for each of the 16 bytes from `at` on: whether it is a digit.
    #[inline]
    pub(super) fn digits(&self, at: usize) -> u32 {
        let Some(lane) = lane(&self.padded, at) else { return 0 };
        let value = lane - u8x16::splat(b'0');
        value.min(u8x16::splat(9)).simd_eq(value).to_bitmask()
    }

    /// Whether the line goes on at `at` with `len` bytes of `text`, which is padded as the line is.
    #[inline]
    pub(super) fn has(&self, at: usize, text: &[u8], from: usize, len: usize) -> bool {
        let mut done = 0;
        while done < len {
            let (Some(one), Some(other)) = (lane(&self.padded, at + done), lane(text, from + done)) else {
                return false;
            };
            let differing = !one.simd_eq(other).to_bitmask();
            // Of what is past the text, nothing counts.
            let compared = (len - done).min(LANE);
            if differing << (u32::BITS as usize - compared) != 0 {
                return false;
            }
            done += LANE;
        }
        true
    }
}

#[inline]
fn lane(bytes: &[u8], at: usize) -> Option<u8x16> {
    bytes.get(at..at + LANE)?.first_chunk().copied().map(u8x16::new)
}

/// Copies `len` bytes, and some of those that follow them: both have [`PADDING`] bytes more.
#[inline]
pub(super) fn copy(to: &mut [u8], at: usize, from: &[u8], start: usize, len: usize) {
    let mut done = 0;
    while done < len {
        to[at + done..at + done + LANE].copy_from_slice(&from[start + done..start + done + LANE]);
        done += LANE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_looked_at() {
        let mut looked_at = Line::default();
        for len in 0..200 {
            // Runs without a stop, with digits, and with bytes past ASCII here and there.
            let line: Vec<u8> = (0..len)
                .map(|at| match (at * 37 + len) % 256 {
                    byte @ (0x30..=0x39 | 0x7F) => byte as u8,
                    byte @ (0xA0..=0xA3 | 0x00 | 0x1F | 0x22 | 0x5C) => byte as u8,
                    _ => b' ',
                })
                .collect();
            looked_at.read(&line);
            assert_eq!(looked_at.bytes(), line);
            for at in 0..=len {
                let is_stop = |&at: &usize| at >= len || line[at] < 0x20 || b"\"\\".contains(&line[at]);
                let stop = (at..).find(is_stop).unwrap();
                assert_eq!(looked_at.next_stop(at), (stop, line[at..stop].is_ascii()));
                let digits = (0..16).filter(|&next| line.get(at + next).is_some_and(u8::is_ascii_digit));
                assert_eq!(looked_at.digits(at), digits.map(|next| 1 << next).sum::<u32>());
            }
        }
    }

    #[test]
    fn what_goes_on_alike_is_told_to_the_byte() {
        let text: Vec<u8> = (0..100).chain([0; PADDING]).collect();
        let mut looked_at = Line::default();
        for len in 0..90 {
            let mut line: Vec<u8> = [7; 3].into_iter().chain(10..10 + len as u8).collect();
            looked_at.read(&line);
            assert!(looked_at.has(3, &text, 10, len));
            assert!(!looked_at.has(3, &text, 10, len + 1), "the line ends before");
            let mut copied = vec![0; len + PADDING];
            copy(&mut copied, 0, looked_at.padded(), 3, len);
            assert_eq!(copied[..len], text[10..10 + len]);
            for differing in 3..line.len() {
                line[differing] ^= 0x80;
                looked_at.read(&line);
                assert!(!looked_at.has(3, &text, 10, len));
                line[differing] ^= 0x80;
            }
        }
    }
}
