//! The file operations that a store depends on, all of them.
//!
//! Everything that decides what survives a crash goes through a [`Disk`], so that tests can stand in
//! for it: one that loses what was not brought to disk, fails, or ends in the middle.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file system, as far as a store needs one.
pub trait Disk: Send + Sync {
    /// Creates an empty file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to be read.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>>;

    /// Gives a file another name, in place of what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Brings the names in a folder to disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// The names of the files in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
}

/// A file that is being written.
pub trait DiskFile: Write + Send {
    /// Brings what was written to disk, and closes the file. Either may tell of a write that failed.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A file that is being read, by several threads at once.
pub trait ReadAt: Send + Sync {
    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// The file system that there is.
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(File::open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        crate::publish::sync_folder(folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }
}

impl DiskFile for File {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.sync_all()?;
        // A file that is dropped is closed too, but does not say how that went.
        Ok(nix::unistd::close(*self)?)
    }
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}
