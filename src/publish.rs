//! Temporary files, and how they come to stand under their names.
//!
//! A temporary is in the same folder as its target, so that a rename is atomic. Its name ends in
//! `.tmp`, so that no run takes it for an input. All temporaries of the process are listed, so
//! that a signal can remove them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use twox_hash::XxHash3_64;

use crate::error::Error;

/// The temporaries there are. Who publishes holds the lock, so that a signal comes before or after
/// all of it.
static TEMPORARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporaries() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is never half changed.
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is not published yet. When it is dropped, it is removed.
pub(crate) struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Temporary {
    /// Creates the file that is to become `target`, with the permissions that `target` has. With a tag, its
    /// name is the one that [`tagged`] has, and what stands there is the rest of another run.
    pub(crate) fn create(target: PathBuf, tag: Option<&str>) -> io::Result<(File, Self)> {
        let mut list = temporaries();
        let (file, path) = match tag {
            Some(tag) => {
                let path = tagged(&target, tag)?;
                (File::create(&path)?, path)
            }
            None => tempfile::Builder::new()
                .prefix(&prefix(&target)?)
                .suffix(".tmp")
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder_of(&target))?
                .keep()
                .map_err(|error| error.error)?,
        };
        list.push(path.clone());
        drop(list);
        let temporary = Self { path, target };
        if let Ok(existing) = fs::metadata(&temporary.target) {
            // Only the superuser may give files away; for others the owner is themselves anyway.
            let _ = fchown(&file, Some(existing.uid()), Some(existing.gid()));
            file.set_permissions(existing.permissions())?;
        }
        Ok((file, temporary))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }
}

/// What the names of temporaries begin with whose targets have long names.
const ANONYMOUS: &str = ".firstseen.";

/// What the names of temporaries begin with.
fn prefix(target: &Path) -> io::Result<OsString> {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    prefix.push(".");
    // Of a name at its longest there is no room for more; the end of it is not needed.
    Ok(if prefix.len() > 200 { ANONYMOUS.into() } else { prefix })
}

/// The temporary of `target` that has a tag in place of something random.
pub(crate) fn tagged(target: &Path, tag: &str) -> io::Result<PathBuf> {
    let mut name = prefix(target)?;
    if name == OsStr::new(ANONYMOUS) {
        // Two long names are to have two temporaries.
        let whole = target.file_name().unwrap_or_default().as_bytes();
        name.push(format!("{:016x}.", XxHash3_64::oneshot(whole)));
    }
    name.push(tag);
    name.push(".tmp");
    Ok(folder_of(target).join(name))
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut list = temporaries();
        if let Some(position) = list.iter().position(|path| *path == self.path) {
            list.swap_remove(position);
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Renames temporaries, already on disk, to their targets, one after another, and brings the folders
/// to disk. The names are for messages.
pub(crate) fn publish(mut files: Vec<(String, Temporary)>) -> Result<(), Error> {
    check_targets(&files)?;
    let mut list = temporaries();
    let mut done = 0;
    let mut result = Ok(());
    for (name, file) in &files {
        result = fs::rename(&file.path, &file.target).map_err(Error::io("rename a file to", name));
        if result.is_err() {
            break;
        }
        list.retain(|path| *path != file.path);
        done += 1;
    }
    // The rest is removed as it is dropped, which takes the lock.
    drop(list);
    let mut folders: Vec<&Path> = files[..done].iter().map(|(_, file)| folder_of(&file.target)).collect();
    folders.sort_unstable();
    folders.dedup();
    for folder in folders {
        let synced = sync_folder(folder).map_err(Error::io("bring to disk", folder.display().to_string()));
        result = result.and(synced);
    }
    files.clear();
    result
}

/// Hands temporaries over to who commits them: they are no longer removed, unless that fails and says so, by
/// a false second value. No signal comes between.
pub(crate) fn hand_over(
    files: Vec<(String, Temporary)>,
    commit: impl FnOnce() -> (Result<(), Error>, bool),
) -> Result<(), Error> {
    check_targets(&files)?;
    let mut list = temporaries();
    let (result, is_handed_over) = commit();
    if is_handed_over {
        list.retain(|path| files.iter().all(|(_, file)| file.path != *path));
    }
    // The rest is removed as it is dropped, which takes the lock.
    drop(list);
    result
}

/// What would keep one file from being renamed is looked for before any is.
fn check_targets(files: &[(String, Temporary)]) -> Result<(), Error> {
    match files.iter().find(|(_, file)| file.target.is_dir()) {
        None => Ok(()),
        Some((name, _)) => Err(Error::io("rename a file to", name)(io::ErrorKind::IsADirectory.into())),
    }
}

/// Removes every temporary and keeps any from being published. The process is expected to end.
pub fn abandon() {
    let list = temporaries();
    for path in &*list {
        let _ = fs::remove_file(path);
    }
    std::mem::forget(list);
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Brings the names in a folder to disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems have nothing to bring to disk for a folder, and say so.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}
