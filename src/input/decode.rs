//! Compressed inputs: gzip (RFC 1952) and Zstandard (RFC 8878), told by their first bytes.
//!
//! In: a reader of compressed bytes. Out: the content of all its members, one after another. Both
//! formats are a sequence of members (frames, in Zstandard); after the last one there may be zero
//! bytes, as block devices and tapes leave them, and nothing else.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// How many first bytes tell the formats apart.
pub(super) const MAGIC_BYTES: usize = 4;

const GZIP: [u8; 3] = [0x1F, 0x8B, 0x08];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// The first byte of a skippable frame is anything from 0x50 to 0x5F; these follow.
const ZSTD_SKIPPABLE: [u8; 3] = [0x2A, 0x4D, 0x18];

/// The longest window that Zstandard has, 2 GiB.
const WINDOW_LOG_MAX: u32 = 31;

/// What an input is, by its content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    Plain,
    Gzip,
    Zstd,
}

/// The format of what begins with `start`. `None` asks for more bytes; if there are none, it is
/// plain. Reading no further than it must, this decides on the first byte of any JSON.
pub(super) fn format_of(start: &[u8]) -> Option<Format> {
    let matches = |magic: &[u8]| start.len() >= magic.len() && start.starts_with(magic);
    let may_match = |magic: &[u8]| start.len() < magic.len() && magic.starts_with(start);
    let skippable = |check: &dyn Fn(&[u8]) -> bool| match start.first() {
        Some(first @ 0x50..=0x5F) => {
            check(&[*first, ZSTD_SKIPPABLE[0], ZSTD_SKIPPABLE[1], ZSTD_SKIPPABLE[2]])
        }
        _ => false,
    };
    if matches(&GZIP) {
        Some(Format::Gzip)
    } else if matches(&ZSTD) || skippable(&matches) {
        Some(Format::Zstd)
    } else if may_match(&GZIP) || may_match(&ZSTD) || skippable(&may_match) {
        None
    } else {
        Some(Format::Plain)
    }
}

/// The content of a sequence of compressed members.
pub(super) struct Members<R: BufRead> {
    format: Format,
    state: State<R>,
}

enum State<R: BufRead> {
    /// At the start of a member, or after the last one.
    Between {
        source: R,
        first: bool,
    },
    Gzip(Box<GzDecoder<R>>),
    Zstd(zstd::stream::read::Decoder<'static, R>),
    Done,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(source: R, format: Format) -> Self {
        Self { format, state: State::Between { source, first: true } }
    }

    /// Opens the next member, if there is one.
    fn advance(&self, mut source: R, first: bool) -> io::Result<State<R>> {
        let Some(&next) = source.fill_buf()?.first() else { return Ok(State::Done) };
        match (self.format, next) {
            (_, 0) if !first => expect_padding(&mut source).map(|()| State::Done),
            (Format::Gzip, 0x1F) => Ok(State::Gzip(Box::new(GzDecoder::new(source)))),
            (Format::Zstd, 0x28 | 0x50..=0x5F) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                // What was compressed with a long window takes as much memory to read.
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Ok(State::Zstd(decoder.single_frame()))
            }
            _ => Err(trailing_bytes()),
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let got = match &mut self.state {
                State::Between { .. } => 0,
                State::Gzip(decoder) => decoder.read(out)?,
                State::Zstd(decoder) => decoder.read(out)?,
                State::Done => return Ok(0),
            };
            if got > 0 {
                return Ok(got);
            }
            self.state = match std::mem::replace(&mut self.state, State::Done) {
                State::Between { source, first } => self.advance(source, first)?,
                State::Gzip(decoder) => State::Between { source: decoder.into_inner(), first: false },
                State::Zstd(decoder) => State::Between { source: decoder.finish(), first: false },
                State::Done => State::Done,
            };
        }
    }
}

fn expect_padding(source: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.iter().any(|&byte| byte != 0) {
            return Err(trailing_bytes());
        }
        let length = bytes.len();
        source.consume(length);
    }
}

fn trailing_bytes() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "other bytes follow the compressed data")
}
