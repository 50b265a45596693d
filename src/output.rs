//! One output, and its publication.
//!
//! In: slices and runs of lines, in order. Out: a file. A regular file is written under a temporary
//! name in its folder, brought to disk, and renamed, so that its name never stands for half of it;
//! see [`mod@publish`]. What is no regular file (a device, a FIFO, the process's own streams) is
//! written straight.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::emit::Runs;
use crate::error::Error;
use crate::input::{FileId, Source};
use crate::publish::{self, Temporary};
use crate::sink::Sink;
use crate::store::Published;
use crate::store::disk::DiskFile;

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// One output: a stream of bytes, and what becomes of it at the end.
pub(crate) struct Output {
    name: String,
    encoder: Encoder,
    /// `None` for what is written straight.
    temporary: Option<Temporary>,
    /// Length and checksum, when it is finished.
    written: Option<(u64, u128)>,
}

enum Encoder {
    Plain(Sink),
    Gzip(flate2::write::GzEncoder<Sink>),
    Zstd(zstd::Encoder<'static, Sink>),
    /// Finished: nothing more is written.
    Finished,
}

/// Where an output path leads.
enum Target {
    /// To be replaced, or created.
    File(PathBuf),
    /// Written straight: the process's own, or a device or pipe that is yet to be opened.
    Own(File),
    Special(PathBuf),
}

impl Output {
    /// The process's standard output.
    pub(crate) fn stdout() -> Result<Self, Error> {
        let name = "standard output";
        let file = duplicate(io::stdout().as_fd()).map_err(Error::io("write to", name))?;
        Ok(Self {
            name: name.to_owned(),
            encoder: Encoder::Plain(Sink::new(file)),
            temporary: None,
            written: None,
        })
    }

    /// The file of that name; `-` is standard output. Nothing stands under it until it is published. With a
    /// tag, the temporary has a name that is known before, and what is written has a checksum.
    pub(crate) fn create(path: &Path, tag: Option<&str>) -> Result<Self, Error> {
        if path.as_os_str() == "-" {
            return Self::stdout();
        }
        let name = path.display().to_string();
        let target = resolve(path).map_err(Error::io("write to", &name))?;
        let (file, temporary) = match target {
            Target::Own(file) => (file, None),
            Target::Special(path) => {
                let file = OpenOptions::new().write(true).open(path).map_err(Error::io("write to", &name))?;
                (file, None)
            }
            Target::File(target) => {
                let (file, temporary) =
                    Temporary::create(target, tag).map_err(Error::io("write to", &name))?;
                (file, Some(temporary))
            }
        };
        let mut sink = Sink::new(file);
        if temporary.is_some() {
            sink = sink.with_early_write_back();
        }
        if tag.is_some() {
            sink = sink.with_checksum();
        }
        let encoder = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => {
                Encoder::Gzip(flate2::write::GzEncoder::new(sink, flate2::Compression::new(GZIP_LEVEL)))
            }
            Some("zst") => {
                Encoder::Zstd(zstd::Encoder::new(sink, ZSTD_LEVEL).map_err(Error::io("compress", &name))?)
            }
            _ => Encoder::Plain(sink),
        };
        Ok(Self { name, encoder, temporary, written: None })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What this output would replace or is writing to, if that exists and could be an input too.
    pub(crate) fn existing(&self) -> Option<FileId> {
        let metadata = match (&self.temporary, &self.encoder) {
            (Some(temporary), _) => fs::metadata(temporary.target()),
            (None, Encoder::Plain(sink)) => sink.file().metadata(),
            (None, Encoder::Gzip(encoder)) => encoder.get_ref().file().metadata(),
            (None, Encoder::Zstd(encoder)) => encoder.get_ref().file().metadata(),
            (None, Encoder::Finished) => return None,
        };
        FileId::of(&metadata.ok()?)
    }

    /// Refuses an output that is also an input.
    pub(crate) fn check(&self, sources: &[Source]) -> Result<(), Error> {
        let existing = self.existing();
        match sources.iter().find(|source| existing.is_some() && source.id == existing) {
            None => Ok(()),
            Some(source) => Err(Error::Usage(format!(
                "{} is also an input ({}); write to another file",
                self.name, source.name
            ))),
        }
    }

    /// Whether both would end up in one file or pipe.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        let place = |output: &Self| {
            let target = output.temporary.as_ref()?.target();
            let folder = fs::canonicalize(publish::folder_of(target)).ok()?;
            Some(folder.join(target.file_name()?))
        };
        let same = |one: Option<_>, two| one.is_some() && one == two;
        same(self.existing(), other.existing()) || place(self).is_some_and(|one| place(other) == Some(one))
    }

    /// Writes runs of whole lines, each line with a line end even where the input had none.
    pub(crate) fn write_runs<'a>(
        &mut self,
        batch: &[u8],
        runs: impl Iterator<Item = &'a Runs>,
    ) -> Result<(), Error> {
        let mut slices: Vec<&[u8]> = Vec::new();
        for Range { start, end } in runs.flat_map(|runs| &runs.0) {
            let run = &batch[*start as usize..*end as usize];
            slices.push(run);
            if run.last() != Some(&b'\n') {
                slices.push(b"\n");
            }
        }
        self.write(&slices)
    }

    /// Writes slices one after another.
    pub(crate) fn write(&mut self, slices: &[&[u8]]) -> Result<(), Error> {
        match &mut self.encoder {
            Encoder::Plain(sink) => sink.write_slices(slices),
            Encoder::Gzip(encoder) => slices.iter().try_for_each(|slice| encoder.write_all(slice)),
            Encoder::Zstd(encoder) => slices.iter().try_for_each(|slice| encoder.write_all(slice)),
            Encoder::Finished => Ok(()),
        }
        .and_then(|()| self.flush_pipe())
        .map_err(Error::io("write to", &self.name))
    }

    /// Who reads what is written straight does not wait for an encoder's buffer to fill.
    fn flush_pipe(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Gzip(encoder) if self.temporary.is_none() => encoder.flush(),
            Encoder::Zstd(encoder) if self.temporary.is_none() => encoder.flush(),
            _ => Ok(()),
        }
    }

    /// Ends the stream and, of a file that is to be published, brings it to disk.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let sink = match std::mem::replace(&mut self.encoder, Encoder::Finished) {
            Encoder::Plain(sink) => Ok(sink),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Finished => return Ok(()),
        }
        .map_err(Error::io("write to", &self.name))?;
        let (file, bytes, checksum) = sink.into_parts();
        self.written = checksum.map(|checksum| (bytes, checksum));
        if self.temporary.is_some() {
            let length = file.metadata().map_err(Error::io("read", &self.name))?.len();
            if length != bytes {
                let reason = format!("{length} bytes are there, where {bytes} were written");
                return Err(Error::io("write to", &self.name)(io::Error::other(reason)));
            }
            Box::new(file).finish().map_err(Error::io("bring to disk", &self.name))?;
        }
        Ok(())
    }
}

/// Publishes finished outputs, the last one last: when its name stands, all the others do.
pub(crate) fn publish(outputs: Vec<Output>) -> Result<(), Error> {
    let temporaries = outputs.into_iter().filter_map(|output| Some((output.name, output.temporary?)));
    publish::publish(temporaries.collect())
}

/// Hands finished outputs over to who commits them, the last one last.
pub(crate) fn hand_over(
    outputs: Vec<Output>,
    commit: impl FnOnce(Vec<Published>) -> (Result<(), Error>, bool),
) -> Result<(), Error> {
    let mut published = Vec::new();
    for output in &outputs {
        let (Some(temporary), Some((bytes, checksum))) = (&output.temporary, output.written) else {
            continue;
        };
        published.push(Published {
            path: absolute(temporary.target()).map_err(Error::io("write to", &output.name))?,
            temporary: absolute(temporary.path()).map_err(Error::io("write to", &output.name))?,
            bytes,
            checksum: format!("{checksum:032x}"),
        });
    }
    let temporaries = outputs.into_iter().filter_map(|output| Some((output.name, output.temporary?)));
    publish::hand_over(temporaries.collect(), || commit(published))
}

/// The file that an output path leads to, wherever one stands; `None` for what is written straight.
pub(crate) fn target_of(path: &Path) -> Result<Option<PathBuf>, Error> {
    let name = path.display().to_string();
    match resolve(path).map_err(Error::io("write to", &name))? {
        Target::Own(_) | Target::Special(_) => Ok(None),
        Target::File(target) => absolute(&target).map(Some).map_err(Error::io("write to", &name)),
    }
}

/// A path that has a name in every locale, from the root on.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let path = fs::canonicalize(publish::folder_of(path))?.join(name);
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(io::Error::other("a store takes names in UTF-8 only")),
    }
}

/// Follows the links of an output path to what they name. What exists and is no regular file is
/// written straight, and so are the process's own descriptors, which `/dev/stdout` leads to: they may be
/// regular files, but they are the caller's, who opened them to be written to.
fn resolve(path: &Path) -> io::Result<Target> {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut path = path.to_owned();
    for _ in 0..40 {
        if let Some(file) = own_descriptor(&path)? {
            return Ok(Target::Own(file));
        }
        match fs::metadata(&path).map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            // Not opened here: who reads a pipe would take that for a writer, and its end for the end.
            Ok(kind) if !kind.is_file() => return Ok(Target::Special(path)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(Target::File(path)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The file behind `/proc/self/fd/N` or `/dev/fd/N`.
fn own_descriptor(path: &Path) -> io::Result<Option<File>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let Ok(parent) = fs::canonicalize(parent) else { return Ok(None) };
    let own = fs::canonicalize("/proc/self/fd").unwrap_or_else(|_| PathBuf::from("/dev/fd"));
    if parent != own {
        return Ok(None);
    }
    match name.to_str() {
        // A duplicate shares the offset, so that what is there already is not written over.
        Some("1") => duplicate(io::stdout().as_fd()).map(Some),
        Some("2") => duplicate(io::stderr().as_fd()).map(Some),
        // Others are opened anew, and so at the end for the same reason.
        _ => OpenOptions::new().append(true).open(path).map(Some),
    }
}

fn duplicate(descriptor: std::os::fd::BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(descriptor.try_clone_to_owned()?))
}
