//! Who may write to a store: one run at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use crate::error::Error;

const NAME: &str = "LOCK";

/// What a line of the lock file says of a run that has it, or has had it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Holder {
    process: u32,
    /// Empty while it recovers what the run before has left.
    run: String,
    /// Where the store was then: in a copy of it, the line means another one.
    store: PathBuf,
    /// What is to be removed if that run did not commit.
    temporaries: Vec<PathBuf>,
}

impl Holder {
    pub(super) fn new(store: &Path, run: &str, temporaries: Vec<PathBuf>) -> Self {
        Self { process: std::process::id(), run: run.to_owned(), store: place_of(store), temporaries }
    }
}

/// A folder's place, whatever leads to it.
fn place_of(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// What a lock file says, a line for each holder since the last that began to write.
fn parse(text: &[u8]) -> impl Iterator<Item = Holder> {
    text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The lock of a store. It is held until it is dropped, or the process ends.
pub(super) struct Lock(File);

impl Drop for Lock {
    /// A process that is being started may hold a copy of the open file for a moment, and with it the lock.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Lock {
    /// Takes the lock; an error, at once, if somebody has it.
    pub(super) fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let name = path.display().to_string();
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let mut file = file.map_err(Error::io("lock", &name))?;
        match file.try_lock() {
            Ok(()) => {
                // What the last holder says of its temporaries stays until they are removed.
                let line = serde_json::to_string(&Holder::new(folder, "", Vec::new())).unwrap_or_default();
                file.write_all(format!("\n{line}\n").as_bytes()).map_err(Error::io("write to", &name))?;
                Ok(Self(file))
            }
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &name)(error)),
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                // Who holds it may be writing this just now.
                let _ = file.read_to_end(&mut text);
                let who = match parse(&text).last() {
                    None => "another process".to_owned(),
                    Some(Holder { process, run, .. }) if run.is_empty() => format!("process {process}"),
                    Some(Holder { process, run, .. }) => format!("process {process}, run `{run}`"),
                };
                Err(Error::StoreBusy { store: folder.display().to_string(), holder: who })
            }
        }
    }
}

/// The temporaries that holders of the lock may have left.
pub(super) fn temporaries_left(disk: &dyn Disk, folder: &Path) -> Vec<PathBuf> {
    let read = || {
        let file = disk.open(&folder.join(NAME)).ok()?;
        let mut bytes = vec![0; usize::try_from(file.length().ok()?).ok()?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        Some(bytes)
    };
    let here = place_of(folder);
    let holders = parse(&read().unwrap_or_default()).collect::<Vec<_>>();
    holders.into_iter().filter(|holder| holder.store == here).flat_map(|holder| holder.temporaries).collect()
}

/// Says who holds the lock, and which temporaries it has.
pub(super) fn write_holder(disk: &dyn Disk, folder: &Path, holder: &Holder) -> Result<(), Error> {
    let path = folder.join(NAME);
    let written = disk.create(&path).and_then(|mut file| {
        // Numbers and text always have a JSON form.
        file.write_all(&serde_json::to_vec(holder).unwrap_or_default())?;
        file.finish()?;
        disk.sync_folder(folder)
    });
    written.map_err(Error::io("write to", path.display().to_string()))
}
