//! Who may write to a store: one run at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use crate::error::Error;

const NAME: &str = "LOCK";

/// What the lock file says of the run that has it, or had it last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) process: u32,
    pub(super) run: String,
    /// What is to be removed if that run did not commit.
    pub(super) temporaries: Vec<PathBuf>,
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
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(Error::io("lock", &name))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &name)(error)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Who holds it may be writing this just now.
                let _ = file.read_to_string(&mut text);
                let holder = serde_json::from_str::<Holder>(&text).unwrap_or_default();
                let who = match holder.process {
                    0 => "another process".to_owned(),
                    process => format!("process {process}, run `{}`", holder.run),
                };
                Err(Error::StoreBusy { store: folder.display().to_string(), holder: who })
            }
        }
    }
}

/// What the last holder of the lock left there.
pub(super) fn last_holder(disk: &dyn Disk, folder: &Path) -> Holder {
    let read = || {
        let file = disk.open(&folder.join(NAME)).ok()?;
        let mut bytes = vec![0; usize::try_from(file.length().ok()?).ok()?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    read().unwrap_or_default()
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
