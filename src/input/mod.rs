//! Inputs to batches of whole lines.
//!
//! In: paths, as given on a command line. Out: [`Batch`]es over a bounded channel, in the order of
//! the inputs, then one [`Message::End`]; a channel that closes without it has lost its reader.
//! Every batch ends at a line end or at the end of its input, so no line is in two of them. How
//! the bytes got here, mapped or read, plain or compressed, makes no difference to anything after.

mod source;

mod decode;
mod map;
mod stream;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::LINE_BYTES_MAX;
use crate::error::Error;
use crate::meter::Meter;
use decode::Format;
use map::{Mapped, MappedRange};
pub use source::Grown;
use source::open_stdin;
pub(crate) use source::{FileId, Source, passed_over, resolve};
use stream::Block;

/// Batches that wait between the reader and the workers.
const BATCHES_WAITING: usize = 2;

/// So many compressed files are decompressed at a time at most, or as many as there are cores.
const FILES_AT_ONCE_MAX: usize = 8;

/// How inputs are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOptions {
    /// Map regular files instead of reading them.
    pub(crate) mmap: bool,
    /// Batches are about this long.
    pub(crate) batch_bytes: usize,
}

/// A run of whole lines of one input.
pub(crate) struct Batch {
    /// The input's place among the sources.
    pub(crate) source: usize,
    /// Whether the input begins here, where a byte-order mark may stand.
    pub(crate) first: bool,
    pub(crate) bytes: Bytes,
}

/// The bytes of a batch, wherever they are.
pub(crate) enum Bytes {
    Mapped(MappedRange),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Whether the bytes can no longer be trusted, because their file became shorter.
    pub(crate) fn shrunk(&self) -> bool {
        match self {
            Self::Mapped(range) => range.shrunk(),
            Self::Owned(_) => false,
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(range) => range,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// What the reader sends.
pub(crate) enum Message {
    Batch(Batch),
    /// An input cannot be read further; nothing follows.
    Failed(Error),
    /// All inputs were read to their ends; nothing follows.
    End,
}

/// Reads all sources in order on a thread of its own. The thread ends when the receiver is
/// dropped, or, if it waits for a pipe at that time, with the process.
pub(crate) fn spawn_reader(
    sources: &Arc<[Source]>,
    options: ReadOptions,
    meter: &Arc<Meter>,
) -> Receiver<Message> {
    let (sender, receiver) = bounded(BATCHES_WAITING);
    let (sources, meter) = (Arc::clone(sources), Arc::clone(meter));
    std::thread::spawn(move || {
        let mut reader =
            Reader { options, meter, sender, source: 0, first: true, begun: BTreeMap::new(), looked_at: 0 };
        let files_at_once = available_parallelism().map_or(1, usize::from).min(FILES_AT_ONCE_MAX);
        for (index, source) in sources.iter().enumerate() {
            reader.source = index;
            reader.begin(&sources, index + files_at_once);
            reader.first = true;
            match reader.read(source) {
                Ok(Flow::Continue) => {}
                Ok(Flow::Stop) => return,
                Err(error) => return drop(reader.sender.send(Message::Failed(error))),
            }
        }
        drop(reader.sender.send(Message::End));
    });
    receiver
}

/// Whether anybody still wants batches.
#[derive(PartialEq)]
enum Flow {
    Continue,
    Stop,
}

struct Reader {
    options: ReadOptions,
    meter: Arc<Meter>,
    sender: Sender<Message>,
    source: usize,
    first: bool,
    /// The compressed files that are being read, by their places among the sources.
    begun: BTreeMap<usize, Receiver<Block>>,
    /// So many sources were looked at for that.
    looked_at: usize,
}

impl Reader {
    /// Begins to read those of the sources before `end` that are compressed files. What cannot be read is told in
    /// its turn.
    fn begin(&mut self, sources: &[Source], end: usize) {
        let end = end.min(sources.len());
        for (index, source) in sources.iter().enumerate().take(end).skip(self.looked_at) {
            let (Some(path), Some(_)) = (&source.path, source.bytes) else { continue };
            if let Ok(file) = File::open(path)
                && let Ok(Some(Format::Gzip | Format::Zstd)) = format_of(&file)
                && let Ok(metadata) = file.metadata()
            {
                let bytes = source.bytes_to_read(&metadata);
                self.begun.insert(index, stream::begin(file, bytes, &source.name, &self.meter));
            }
        }
        self.looked_at = end;
    }

    fn read(&mut self, source: &Source) -> Result<Flow, Error> {
        if let Some(blocks) = self.begun.remove(&self.source) {
            return stream::make_batches(self, &blocks);
        }
        let open = || match &source.path {
            Some(path) => File::open(path),
            None => open_stdin(),
        };
        let file = open().map_err(Error::io("read", &source.name))?;
        let metadata = file.metadata().map_err(Error::io("read", &source.name))?;
        if metadata.is_dir() {
            return Err(Error::Usage(format!("{}: a directory, where a file is expected", source.name)));
        }
        let bytes = source.bytes_to_read(&metadata);
        let mapped = bytes.min(metadata.len());
        if self.options.mmap && source.path.is_some() && metadata.is_file() && mapped > 0 {
            let format = format_of(&file).map_err(Error::io("read", &source.name))?;
            if format == Some(Format::Plain)
                && let Some(mapped) = Mapped::new(file.try_clone().ok(), mapped)
            {
                return Ok(self.read_mapped(&mapped));
            }
        }
        let blocks = stream::begin(file, bytes, &source.name, &self.meter);
        stream::make_batches(self, &blocks)
    }

    fn read_mapped(&mut self, mapped: &Arc<Mapped>) -> Flow {
        let mut start = 0;
        while start < mapped.len() {
            let began = Instant::now();
            let end = batch_end(mapped, start, self.options.batch_bytes);
            self.meter.read.add(began.elapsed());
            self.meter.raw_bytes.add((end - start) as u64);
            if self.send(Bytes::Mapped(mapped.range(start..end))) == Flow::Stop {
                return Flow::Stop;
            }
            start = end;
        }
        Flow::Continue
    }

    fn send(&mut self, bytes: Bytes) -> Flow {
        let batch = Batch { source: self.source, first: self.first, bytes };
        self.first = false;
        match self.sender.send(Message::Batch(batch)) {
            Ok(()) => Flow::Continue,
            Err(_) => Flow::Stop,
        }
    }
}

/// The format of a regular file, if it is long enough to tell.
fn format_of(file: &File) -> io::Result<Option<Format>> {
    let mut start = [0; decode::MAGIC_BYTES];
    let got = file.read_at(&mut start, 0)?;
    Ok(decode::format_of(&start[..got]))
}

/// Where the batch that starts at `start` ends: after the last line end within `batch_bytes`, or
/// else after the first one beyond. A line past the limit is cut, which its length will show.
fn batch_end(bytes: &[u8], start: usize, batch_bytes: usize) -> usize {
    let rest = &bytes[start..];
    if rest.len() <= batch_bytes {
        return bytes.len();
    }
    if let Some(newline) = memchr::memrchr(b'\n', &rest[..batch_bytes]) {
        return start + newline + 1;
    }
    let most = rest.len().min(LINE_BYTES_MAX + 1);
    let beyond = memchr::memchr(b'\n', &rest[..most]);
    start + beyond.map_or(most, |newline| newline + 1)
}
