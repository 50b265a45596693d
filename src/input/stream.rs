//! What cannot be mapped: pipes, compressed files, and regular files on request.
//!
//! A thread of its own reads and decompresses each input, so that a batch can be handed on while the
//! next read blocks: a batch leaves when it is full, or [`QUIET`] after its first bytes came, with
//! whatever whole lines there are. Compressed files are begun before it is their turn: one stream is
//! slower than the workers, and cannot be shared out among threads, but several at once can.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Take};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::decode::{self, Format, Members};
use super::{Bytes, Flow, Reader};
use crate::LINE_BYTES_MAX;
use crate::error::Error;
use crate::meter::Meter;

/// The longest that a whole line waits for its batch to fill.
const QUIET: Duration = Duration::from_millis(50);

/// Bytes that are read at a time, and handed on as they come.
const BLOCK_BYTES: usize = 256 << 10;

/// Blocks that wait between a reading thread and the one that makes batches: 16 MiB, which is how far a file
/// can be ahead of its turn.
const BLOCKS_WAITING: usize = 64;

/// What a reading thread sends: a block that is not empty, or the end, well or not.
pub(super) enum Block {
    Bytes(Vec<u8>),
    End,
    Failed(Error),
}

/// Reads one input to its end or its first `bytes`, or as far as anybody listens, on a thread of its own.
pub(super) fn begin(file: File, bytes: u64, name: &str, meter: &Arc<Meter>) -> Receiver<Block> {
    let (sender, blocks) = bounded(BLOCKS_WAITING);
    let counted = Counted { file: file.take(bytes), meter: Arc::clone(meter) };
    let name = name.to_owned();
    std::thread::spawn(move || {
        let end = match send_blocks(counted, &name, &sender) {
            Ok(()) => Block::End,
            Err(error) => Block::Failed(error),
        };
        drop(sender.send(end));
    });
    blocks
}

/// Reads and decompresses until the end, or until nobody listens.
fn send_blocks(mut file: Counted, name: &str, sender: &Sender<Block>) -> Result<(), Error> {
    let (start, format) = sniff(&mut file).map_err(Error::io("read", name))?;
    let meter = Arc::clone(&file.meter);
    let whole = Cursor::new(start).chain(file);
    let mut content: Box<dyn Read> = match format {
        Format::Plain => Box::new(whole),
        Format::Gzip | Format::Zstd => {
            Box::new(Members::new(BufReader::with_capacity(BLOCK_BYTES, whole), format))
        }
    };
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        let began = Instant::now();
        let got = content.read(&mut buffer);
        meter.read.add(began.elapsed());
        match got {
            Ok(0) => return Ok(()),
            Ok(got) => {
                if sender.send(Block::Bytes(buffer[..got].to_vec())).is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A system's error has a number, a decoder's has none.
            Err(error) if format == Format::Plain || error.raw_os_error().is_some() => {
                return Err(Error::Io { action: "read", path: name.to_owned(), error });
            }
            Err(error) => return Err(Error::Compressed { source: name.to_owned(), error }),
        }
    }
}

/// Reads no more than it takes to tell the format.
fn sniff(file: &mut Counted) -> io::Result<(Vec<u8>, Format)> {
    let mut start = Vec::with_capacity(decode::MAGIC_BYTES);
    loop {
        if let Some(format) = decode::format_of(&start).filter(|_| !start.is_empty()) {
            return Ok((start, format));
        }
        let mut byte = [0];
        match file.read(&mut byte) {
            Ok(0) => return Ok((start, Format::Plain)),
            Ok(_) => start.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Collects blocks into batches of whole lines.
pub(super) fn make_batches(reader: &mut Reader, blocks: &Receiver<Block>) -> Result<Flow, Error> {
    let batch_bytes = reader.options.batch_bytes;
    let mut pending: Vec<u8> = Vec::new();
    // Bytes of `pending` up to and with the last line end.
    let mut whole = 0;
    let mut deadline = None;
    loop {
        let block = match deadline {
            Some(deadline) if whole > 0 => blocks.recv_deadline(deadline),
            _ => blocks.recv().map_err(RecvTimeoutError::from),
        };
        match block {
            Ok(Block::Bytes(block)) => {
                deadline = deadline.or_else(|| Some(Instant::now() + QUIET));
                if let Some(newline) = memchr::memrchr(b'\n', &block) {
                    whole = pending.len() + newline + 1;
                }
                pending.extend_from_slice(&block);
            }
            Ok(Block::End) => {
                let rest = Bytes::Owned(pending);
                return Ok(if rest.is_empty() { Flow::Continue } else { reader.send(rest) });
            }
            Ok(Block::Failed(error)) => {
                // The whole lines before the fault are as good as any.
                pending.truncate(whole);
                if !pending.is_empty() && reader.send(Bytes::Owned(pending)) == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                return Err(error);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::ThreadLost("reading")),
        }
        let due = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if whole > 0 && (pending.len() >= batch_bytes || due) {
            let mut rest = Vec::with_capacity(batch_bytes + BLOCK_BYTES);
            rest.extend_from_slice(&pending[whole..]);
            pending.truncate(whole);
            deadline = (!rest.is_empty()).then(|| Instant::now() + QUIET);
            whole = 0;
            if reader.send(Bytes::Owned(std::mem::replace(&mut pending, rest))) == Flow::Stop {
                return Ok(Flow::Stop);
            }
        } else if whole == 0 && pending.len() > LINE_BYTES_MAX {
            // The line is past the limit. Its length will show that, and end the run.
            reader.send(Bytes::Owned(pending));
            return Ok(Flow::Stop);
        }
    }
}

/// A file that counts what is read of it.
struct Counted {
    file: Take<File>,
    meter: Arc<Meter>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(buffer)?;
        self.meter.raw_bytes.add(got as u64);
        Ok(got)
    }
}
