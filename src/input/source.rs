//! Paths to inputs.
//!
//! In: paths, as given on a command line. Out: a [`Source`] for each file, as it was when it was found, so that it can be
//! told later whether it has changed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use twox_hash::XxHash3_64;

use crate::error::Error;

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
    pub(super) path: Option<PathBuf>,
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
    pub(super) fn bytes_to_read(&self, opened: &fs::Metadata) -> u64 {
        match (&self.path, self.bytes) {
            (Some(_), Some(found)) if opened.len() > 0 => found,
            _ => u64::MAX,
        }
    }
}

fn modified(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
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
    let mut sources = Vec::new();
    for path in paths_in(directory)?.into_iter().filter(|path| is_event_file(path)) {
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

/// Something in the directory that is no file called as event files are, and so is passed over. Hidden ones do not count.
pub(crate) fn passed_over(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
    let is_read = |path: &Path| is_event_file(path) && path.is_file();
    let is_passed_over = |path: &PathBuf| !is_read(path) && !is_hidden(path);
    Ok(paths_in(directory)?.into_iter().find(is_passed_over))
}

/// All that is in a directory, sorted.
fn paths_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let name = directory.display().to_string();
    let entries = fs::read_dir(directory).map_err(Error::io("read", &name))?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(Error::io("read", &name))?;
    paths.sort();
    Ok(paths)
}

fn is_event_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    ENDINGS.iter().any(|ending| plain.ends_with(ending))
}

/// Standard input as a file of its own, past the standard library's buffer.
pub(super) fn open_stdin() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}
