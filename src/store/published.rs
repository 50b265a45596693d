//! Outputs of runs: how they come to stand under their names, and whether they still do.

use std::io;
use std::path::Path;

use twox_hash::xxhash3_128;

use super::disk::{Disk, ReadAt};
use super::manifest::Published;
use crate::error::Error;

/// Whose work an output is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Writer {
    /// This run's, which has just brought it to disk: its length is all there is to check.
    Own,
    /// That of a run before, which did not get to its end.
    Before,
}

/// Brings a committed output to its name, or finds it there.
pub(super) fn publish(disk: &dyn Disk, output: &Published, run: &str, writer: Writer) -> Result<(), Error> {
    let Published { path, temporary, .. } = output;
    match disk.open(temporary) {
        Ok(file) => {
            match writer {
                Writer::Own => check_length(&*file, output, temporary, run)?,
                Writer::Before => check_output(&*file, output, temporary, run)?,
            }
            drop(file);
            disk.rename(temporary, path)
                .map_err(Error::io("rename a file to", path.display().to_string()))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => verify_output(disk, output, run)?,
        Err(error) => return Err(Error::io("read", temporary.display().to_string())(error)),
    }
    let folder = crate::publish::folder_of(path);
    disk.sync_folder(folder).map_err(Error::io("bring to disk", folder.display().to_string()))
}

/// Checks that what is to be published is there, as long as it was written.
pub(super) fn check_written(disk: &dyn Disk, output: &Published) -> Result<(), Error> {
    let name = || output.temporary.display().to_string();
    let length =
        disk.open(&output.temporary).and_then(|file| file.length()).map_err(Error::io("read", name()))?;
    match length == output.bytes {
        true => Ok(()),
        false => {
            let reason = format!("it has {length} bytes, where {} were written", output.bytes);
            Err(Error::io("publish", name())(io::Error::other(reason)))
        }
    }
}

/// Checks that an output stands under its name, as its run wrote it.
pub(crate) fn verify_output(disk: &dyn Disk, output: &Published, run: &str) -> Result<(), Error> {
    let path = &output.path;
    match disk.open(path) {
        Ok(file) => check_output(&*file, output, path, run),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(lost(path, run, "it is missing".to_owned()))
        }
        Err(error) => Err(Error::io("read", path.display().to_string())(error)),
    }
}

fn check_length(file: &dyn ReadAt, output: &Published, path: &Path, run: &str) -> Result<(), Error> {
    let length = file.length().map_err(Error::io("read", path.display().to_string()))?;
    match length == output.bytes {
        true => Ok(()),
        false => Err(lost(path, run, format!("it has {length} bytes, where {} were written", output.bytes))),
    }
}

fn check_output(file: &dyn ReadAt, output: &Published, path: &Path, run: &str) -> Result<(), Error> {
    check_length(file, output, path, run)?;
    let mut checksum = xxhash3_128::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < output.bytes {
        let part = &mut buffer[..(output.bytes - at).min(1 << 20) as usize];
        file.read_exact_at(part, at).map_err(Error::io("read", path.display().to_string()))?;
        checksum.write(part);
        at += part.len() as u64;
    }
    match format!("{:032x}", checksum.finish_128()) == output.checksum {
        true => Ok(()),
        false => Err(lost(path, run, "its bytes are not those that were written".to_owned())),
    }
}

fn lost(path: &Path, run: &str, reason: String) -> Error {
    Error::OutputLost { path: path.display().to_string(), run: run.to_owned(), reason }
}
