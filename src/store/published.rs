//! Outputs of runs: how they come to stand under their names, and whether they still do.

use std::io;
use std::path::Path;

use twox_hash::xxhash3_128;

use super::disk::{Disk, ReadAt};
use super::manifest::Published;
use crate::error::Error;

/// Brings a committed output to its name, or finds it there.
pub(super) fn publish(disk: &dyn Disk, output: &Published, run: &str) -> Result<(), Error> {
    let Published { path, temporary, .. } = output;
    match disk.open(temporary) {
        Ok(file) => {
            check_output(&*file, output, temporary, run)?;
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

/// Checks that an output stands under its name, as its run wrote it.
pub(crate) fn verify_output(disk: &dyn Disk, output: &Published, run: &str) -> Result<(), Error> {
    let path = &output.path;
    match disk.open(path) {
        Ok(file) => check_output(&*file, output, path, run),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::OutputLost {
            path: path.display().to_string(),
            run: run.to_owned(),
            reason: "it is missing".to_owned(),
        }),
        Err(error) => Err(Error::io("read", path.display().to_string())(error)),
    }
}

fn check_output(file: &dyn ReadAt, output: &Published, path: &Path, run: &str) -> Result<(), Error> {
    let lost =
        |reason: String| Error::OutputLost { path: path.display().to_string(), run: run.to_owned(), reason };
    let read = |error| Error::io("read", path.display().to_string())(error);
    let length = file.length().map_err(read)?;
    if length != output.bytes {
        return Err(lost(format!("it has {length} bytes, where {} were written", output.bytes)));
    }
    let mut checksum = xxhash3_128::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < length {
        let part = &mut buffer[..(length - at).min(1 << 20) as usize];
        file.read_exact_at(part, at).map_err(read)?;
        checksum.write(part);
        at += part.len() as u64;
    }
    match format!("{:032x}", checksum.finish_128()) == output.checksum {
        true => Ok(()),
        false => Err(lost("its bytes are not those that were written".to_owned())),
    }
}
