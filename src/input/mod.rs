//! Inputs to batches of whole lines.
//!
//! In: paths, as given on a command line. Out: [`Batch`]es over a bounded channel, in the order of
//! the inputs, then one [`Message::End`]; a channel that closes without it has lost its reader.
//! Every batch ends at a line end or at the end of its input, so no line is in two of them. How
//! the bytes got here, mapped or read, plain or compressed, makes no difference to anything after.

mod decode;
mod map;
mod stream;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use serde::Serialize;
use twox_hash::XxHash3_64;

use crate::LINE_BYTES_MAX;
use crate::error::Error;
use crate::meter::Meter;
use decode::Format;
use map::{Mapped, MappedRange};
use stream::Block;

/// Batches that wait between the reader and the workers.
const BATCHES_WAITING: usize = 2;

/// So many compressed files are decompressed at a time at most, or as many as there are cores.
const FILES_AT_ONCE_MAX: usize = 8;

/// How much of a file is looked at, at its beginning and at its end, to see whether it has been rewritten.
const EDGE_BYTES: u64 = 64 << 10;

/// The endings of a directory's files that are inputs, each also with `.gz` or `.zst`.
const ENDINGS: [&str; 4] = [".jsonl", ".ndjson", ".geojsonl", ".json"];

/// One input, found to exist.
#[derive(Debug)]
pub(crate) struct Source {
    /// What messages call it.
    pub(crate) name: String,
    /// `None` is standard input.
    path: Option<PathBuf>,
    /// Bytes on disk, where that is known.
    pub(crate) bytes: Option<u64>,
    /// When it was modified, in nanoseconds since 1970, of a regular file that has a name.
    modified: Option<i128>,
    /// What it is, however it is called.
    pub(crate) id: Option<FileId>,
}

/// Device and inode: what a file is, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    /// The identity of a regular file or a FIFO: what must not be input and output at once.
    pub(crate) fn of(metadata: &fs::Metadata) -> Option<Self> {
        let kind = metadata.file_type();
        (kind.is_file() || kind.is_fifo()).then(|| Self(metadata.dev(), metadata.ino()))
    }
}

/// A regular file, as it was when it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) bytes: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i128,
}

/// An input that has grown since a run found it: what was appended is left for another run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// What messages call it.
    pub source: String,
    /// Bytes that were read of it, from its beginning.
    pub read: u64,
    /// Bytes that it had at the end.
    pub bytes: u64,
}

impl Source {
    /// `None` for what is no regular file with a name.
    pub(crate) fn state(&self) -> Option<State> {
        Some(State { bytes: self.bytes?, modified: self.modified? })
    }

    /// What it is called wherever one stands.
    pub(crate) fn absolute(&self) -> String {
        let path = self.path.as_ref().and_then(|path| fs::canonicalize(path).ok());
        path.map_or_else(|| self.name.clone(), |path| path.display().to_string())
    }

    /// A checksum of the first and the last bytes of the file as long as it was when it was found. `None` of what is
    /// no regular file, or cannot be read.
    pub(crate) fn edges(&self) -> Option<u64> {
        let (path, bytes) = (self.path.as_ref()?, self.state()?.bytes);
        let file = File::open(path).ok()?;
        let length = bytes.min(EDGE_BYTES);
        let mut edges = vec![0; 2 * length as usize];
        let (first, last) = edges.split_at_mut(length as usize);
        file.read_exact_at(first, 0).ok()?;
        file.read_exact_at(last, bytes - length).ok()?;
        Some(XxHash3_64::oneshot(&edges))
    }

    /// Fails if the file is no longer what it was when it was found and had those `edges`. One that has grown still
    /// begins with that, which is what was read of it.
    pub(crate) fn check_unchanged(&self, edges: Option<u64>) -> Result<Option<Grown>, Error> {
        let (Some(path), Some(before)) = (&self.path, self.state()) else { return Ok(None) };
        let metadata = fs::metadata(path).map_err(Error::io("read", &self.name))?;
        let now = State { bytes: metadata.len(), modified: modified(&metadata) };
        if now.bytes < before.bytes {
            return Err(Error::Shrunk { source: self.name.clone() });
        }
        let is_touched = match now.bytes == before.bytes {
            true => now.modified != before.modified,
            false => self.edges() != edges,
        };
        if is_touched || FileId::of(&metadata) != self.id {
            return Err(Error::Rewritten { source: self.name.clone() });
        }
        let grown = Grown { source: self.name.clone(), read: before.bytes, bytes: now.bytes };
        Ok((now.bytes > before.bytes).then_some(grown))
    }

    /// How many bytes are to be read of it, as it was opened: what is appended after it was found is left for another
    /// run. Files of no length may have content all the same, as those of /proc do.
    fn bytes_to_read(&self, opened: &fs::Metadata) -> u64 {
        match (&self.path, self.bytes) {
            (Some(_), Some(found)) if opened.len() > 0 => found,
            _ => u64::MAX,
        }
    }
}

fn modified(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

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

/// Finds the inputs: none is standard input, a directory stands for the event files in it.
pub(crate) fn resolve(inputs: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let stdin = [PathBuf::from("-")];
    let inputs = if inputs.is_empty() { &stdin } else { inputs };
    let mut sources: Vec<Source> = Vec::new();
    for path in inputs {
        if path.as_os_str() == "-" {
            if sources.iter().any(|source| source.path.is_none()) {
                return Err(Error::Usage("standard input is given twice; it can be read once".to_owned()));
            }
            sources.push(stdin_source()?);
            continue;
        }
        let name = path.display().to_string();
        let metadata = fs::metadata(path).map_err(Error::io("read", &name))?;
        if metadata.is_dir() {
            sources.extend(files_in(path)?);
        } else {
            sources.push(file_source(path.clone(), &metadata));
        }
    }
    Ok(sources)
}

fn stdin_source() -> Result<Source, Error> {
    let metadata = open_stdin().and_then(|file| file.metadata()).map_err(Error::io("read", "<stdin>"))?;
    let bytes = metadata.is_file().then_some(metadata.len());
    Ok(Source { name: "<stdin>".to_owned(), path: None, bytes, modified: None, id: FileId::of(&metadata) })
}

fn file_source(path: PathBuf, metadata: &fs::Metadata) -> Source {
    let bytes = metadata.is_file().then_some(metadata.len());
    let modified = metadata.is_file().then(|| modified(metadata));
    Source { name: path.display().to_string(), path: Some(path), bytes, modified, id: FileId::of(metadata) }
}

/// The event files in a directory, sorted by path.
fn files_in(directory: &Path) -> Result<Vec<Source>, Error> {
    let name = directory.display().to_string();
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io("read", &name))? {
        let path = entry.map_err(Error::io("read", &name))?.path();
        if is_event_file(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let metadata = fs::metadata(&path).map_err(Error::io("read", path.display().to_string()))?;
        if metadata.is_file() {
            sources.push(file_source(path, &metadata));
        }
    }
    if sources.is_empty() {
        return Err(Error::Usage(format!(
            "{name}: no files that end in {}, with or without .gz or .zst",
            ENDINGS.join(", ")
        )));
    }
    Ok(sources)
}

fn is_event_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    ENDINGS.iter().any(|ending| plain.ends_with(ending))
}

/// Standard input as a file of its own, past the standard library's buffer.
fn open_stdin() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
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
