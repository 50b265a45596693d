//! Seen keys on disk between runs, committed together with what the runs publish.
//!
//! In: the keys of a run, and its outputs, written but not published. Out: a store in which they count,
//! and outputs under their names; or neither. `docs/store-format.md` has the files and the order of
//! steps. What always holds: whenever a run ends, and however, the next one finds a store in which each run
//! has either happened, output included, or not.

pub mod disk;

mod manifest;

mod lock;

mod segment;

mod loaded;

mod claimed;

mod published;

mod inspect;

mod maintain;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use blake2b_simd::blake2b;

use crate::error::Error;
use crate::key::ShortKey;
use crate::protocol::Protocol;
use crate::protocol::ProtocolReport;
pub(crate) use claimed::Alias;
pub use claimed::Claimed;
use disk::Disk;
pub(crate) use inspect::now;
pub use inspect::{KeyFormat, StoreInfo, Verified, export, info, verify};
pub use loaded::Loaded;
use lock::{Holder, Lock};
pub use maintain::{open, open_or_create};
pub(crate) use manifest::hex;
pub use manifest::{Consumed, KnownProtocol, Listed, Manifest, Published, Run};
use manifest::{Uncommitted, unhex};
pub(crate) use published::verify_output;
use published::{Writer, publish};
use segment::{Header, Segment, Written};

/// A clock this far ahead of the last run is more likely wrong than right: 366 days.
const CLOCK_AHEAD_MAX: u64 = 366 * 24 * 60 * 60 * 1000;

/// A store that one run may write to.
pub struct Session<'a> {
    disk: &'a dyn Disk,
    folder: PathBuf,
    id: [u8; 16],
    manifest: Manifest,
    /// Held until the session ends. `None` where a test simulates the disk.
    _lock: Option<Lock>,
    /// The time of this run, at which its keys are claimed.
    time: u64,
    /// Whether the clock can be believed.
    is_clock_plausible: bool,
}

/// How a commit went wrong.
pub enum CommitError {
    /// Nothing happened; the temporaries are to be removed.
    Nothing(Error),
    /// It may have happened, or it has and not all is published: the temporaries are to stay, and the next
    /// run decides.
    Unfinished(Error),
}

impl<'a> Session<'a> {
    /// Opens the store in a folder, for one run at `now`, and recovers what the run before left. If the folder is
    /// empty, or there is none, a store is made.
    ///
    /// # Errors
    ///
    /// [`Error::StoreBusy`] if another run has it, [`Error::Damaged`], [`Error::Io`].
    pub fn open(disk: &'a dyn Disk, folder: &Path, now: u64, trust_clock: bool) -> Result<Self, Error> {
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create the store", folder.display().to_string())(error));
            }
            _ => {}
        }
        if !Manifest::path(folder).exists() {
            check_empty(disk, folder)?;
        }
        let lock = Lock::take(folder)?;
        let mut session = Self::recover(disk, folder, now, trust_clock)?;
        session._lock = Some(lock);
        Ok(session)
    }

    /// As [`Session::open`], of a folder that is there and that nobody else can have.
    ///
    /// # Errors
    ///
    /// As [`Session::open`].
    pub fn recover(disk: &'a dyn Disk, folder: &Path, now: u64, trust_clock: bool) -> Result<Self, Error> {
        // The manifest that is read must be the one that stands after a crash.
        disk.sync_folder(folder).map_err(Error::io("bring to disk", folder.display().to_string()))?;
        let manifest = match Manifest::read(disk, folder)? {
            Some(manifest) => manifest,
            None => create(disk, folder)?,
        };
        let id = inspect::store_id(&manifest, folder)?;
        let is_clock_plausible =
            trust_clock || manifest.clock == 0 || now.saturating_sub(manifest.clock) <= CLOCK_AHEAD_MAX;
        // Under a clock that cannot be believed, keys count from the time that it shows: if it is right after all, they
        // are as old as they are, and if it is wrong, they are remembered for longer than they need be.
        let time = now.max(manifest.clock);
        let folder = folder.to_owned();
        let mut session = Self { disk, folder, id, manifest, _lock: None, time, is_clock_plausible };
        session.publish_committed(Writer::Before)?;
        session.remove_rest()?;
        Ok(session)
    }

    /// What counts in the store.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The time of this run, in milliseconds since 1970: never before that of an earlier one whose clock could be
    /// believed.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// False if the clock is too far ahead of the last run to be believed. Then no key is forgotten, and the store's
    /// own clock stays where it is.
    #[must_use]
    pub fn is_clock_plausible(&self) -> bool {
        self.is_clock_plausible
    }

    /// Says in the lock which run this is and which temporaries it has, so that the next one can remove them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn announce(&self, run: &str, temporaries: Vec<PathBuf>) -> Result<(), Error> {
        lock::write_holder(self.disk, &self.folder, &Holder::new(&self.folder, run, temporaries))
    }

    /// The keys of a protocol, less those that were claimed `ttl` milliseconds ago or before.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] and [`Error::Io`].
    pub fn load(&self, protocol: &Protocol, ttl: Option<u64>) -> Result<Loaded, Error> {
        Loaded::read(&self.segments_of(protocol)?, self.expired(ttl))
    }

    fn segments_of(&self, protocol: &Protocol) -> Result<Vec<Segment>, Error> {
        let fingerprint = protocol.fingerprint().to_string();
        let listed = self.manifest.segments.iter().filter(|listed| listed.protocol == fingerprint);
        listed.map(|listed| open_segment(self.disk, &self.folder, self.id, listed)).collect()
    }

    /// Keys that were claimed then or before are forgotten.
    fn expired(&self, ttl: Option<u64>) -> Option<u64> {
        ttl.filter(|_| self.is_clock_plausible).and_then(|ttl| self.time.checked_sub(ttl))
    }

    /// What the store's clock shows when this run has committed.
    fn clock(&self) -> u64 {
        if self.is_clock_plausible { self.time } else { self.manifest.clock }
    }

    /// Commits a run: from here on it has happened. `claimed` are the keys of each of its protocols that are new.
    ///
    /// # Errors
    ///
    /// [`CommitError`], which says whether it has happened.
    pub fn commit(&mut self, mut run: Run, claimed: &[Claimed]) -> Result<(), CommitError> {
        run.time = self.time;
        let mut manifest = self.manifest.clone();
        manifest.clock = self.clock();
        self.prepare(&run, claimed, &mut manifest).map_err(CommitError::Nothing)?;
        manifest.runs.push(run);
        match manifest.write(self.disk, &self.folder) {
            Ok(()) => self.manifest = manifest,
            Err(Uncommitted::Before(error)) => return Err(CommitError::Nothing(error)),
            Err(Uncommitted::Unknown(error)) => return Err(CommitError::Unfinished(error)),
        }
        self.publish_committed(Writer::Own).map_err(CommitError::Unfinished)
    }

    /// Writes the segments, and brings all names to disk that the manifest is to count on.
    fn prepare(&self, run: &Run, claimed: &[Claimed], manifest: &mut Manifest) -> Result<(), Error> {
        // What somebody else has removed could not be published.
        run.outputs.iter().try_for_each(|output| published::check_written(self.disk, output))?;
        for (protocol, claimed) in run.protocols.iter().zip(claimed) {
            note_protocol(&mut manifest.protocols, protocol, self.time, run.protocols.len() == 1);
            self.add_segment(manifest, &protocol.fingerprint, Some(&run.id), claimed.records(self.time))?;
        }
        let mut folders: BTreeSet<&Path> =
            run.outputs.iter().map(|output| crate::publish::folder_of(&output.temporary)).collect();
        folders.insert(&self.folder);
        for folder in folders {
            self.disk
                .sync_folder(folder)
                .map_err(Error::io("bring to disk", folder.display().to_string()))?;
        }
        Ok(())
    }

    /// Writes a segment, if there are any keys, and lists it. Keys must come in increasing order.
    fn add_segment(
        &self,
        manifest: &mut Manifest,
        fingerprint: &str,
        run: Option<&str>,
        records: impl ExactSizeIterator<Item = (ShortKey, u64)> + Clone,
    ) -> Result<(), Error> {
        let times = || records.clone().map(|(_, claimed)| claimed);
        let (Some(earliest), Some(latest)) = (times().min(), times().max()) else { return Ok(()) };
        let header = Header {
            store: self.id,
            protocol: unhex(fingerprint).unwrap_or_default(),
            run: run.map(run_digest).unwrap_or_default(),
            latest,
            earliest,
            keys: records.len() as u64,
            dated: earliest < latest,
        };
        let number = manifest.next_segment;
        let path = segment_path(&self.folder, number);
        let temporary = path.with_extension("keys.tmp");
        let written = self.disk.create(&temporary).and_then(|file| segment::write(file, &header, records));
        let written = written.and_then(|written| {
            if self.disk.open(&temporary)?.length()? != written.bytes {
                return Err(io::Error::other("it is not as long as what was written"));
            }
            self.disk.rename(&temporary, &path).map(|()| written)
        });
        let Written { bytes, checksum } = written.map_err(Error::io("write", path.display().to_string()))?;
        manifest.next_segment += 1;
        manifest.segments.push(Listed {
            number,
            protocol: fingerprint.to_owned(),
            run: run.map(str::to_owned),
            claimed: latest,
            keys: header.keys,
            bytes,
            checksum: format!("{checksum:032x}"),
        });
        Ok(())
    }

    /// Publishes the outputs of runs that are committed, if there are any that are not, and says so in the
    /// manifest.
    fn publish_committed(&mut self, writer: Writer) -> Result<(), Error> {
        let mut is_changed = false;
        for run in self.manifest.runs.iter_mut().filter(|run| !run.published) {
            for output in &run.outputs {
                publish(self.disk, output, &run.id, writer)?;
            }
            run.published = true;
            is_changed = true;
        }
        if !is_changed {
            return Ok(());
        }
        self.manifest.write(self.disk, &self.folder).map_err(Uncommitted::into_error)
    }

    /// Removes what no manifest names.
    fn remove_rest(&self) -> Result<(), Error> {
        let remove = |path: &Path| match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", path.display().to_string())(error))
            }
            _ => Ok(()),
        };
        // A lock that is damaged must not name files of other kinds.
        let is_temporary = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with('.') && name.ends_with(".tmp")
        };
        let left = lock::temporaries_left(self.disk, &self.folder);
        left.iter().filter(is_temporary).try_for_each(|path| remove(path))?;
        let names =
            self.disk.list(&self.folder).map_err(Error::io("read", self.folder.display().to_string()))?;
        let listed: BTreeSet<PathBuf> =
            self.manifest.segments.iter().map(|listed| segment_path(&self.folder, listed.number)).collect();
        for path in names {
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_rest = extension == Some("tmp") || (extension == Some("keys") && !listed.contains(&path));
            if is_rest {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Makes an empty store.
fn create(disk: &dyn Disk, folder: &Path) -> Result<Manifest, Error> {
    let name = folder.display().to_string();
    // Who made the folder may have come to no more.
    let parent = crate::publish::folder_of(folder);
    disk.sync_folder(parent).map_err(Error::io("bring to disk", parent.display().to_string()))?;
    check_empty(disk, folder)?;
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| Error::io("make an id for", &name)(io::Error::other(error.to_string())))?;
    let mut manifest = Manifest::new(id);
    manifest.write(disk, folder).map_err(Uncommitted::into_error)?;
    Ok(manifest)
}

/// Refuses to make a store where something else is.
fn check_empty(disk: &dyn Disk, folder: &Path) -> Result<(), Error> {
    let name = folder.display().to_string();
    let names = disk.list(folder).map_err(Error::io("read", &name))?;
    let known = |path: &PathBuf| ["LOCK", "MANIFEST.tmp"].iter().any(|known| path.ends_with(known));
    if names.iter().any(|path| path.extension().is_some_and(|extension| extension == "keys")) {
        let path = Manifest::path(folder).display().to_string();
        return Err(Error::Damaged { path, reason: "it is missing, and there are segments".to_owned() });
    }
    if !names.iter().all(known) {
        return Err(Error::Usage(format!(
            "{name}: no store, and not empty; a store has a folder of its own"
        )));
    }
    Ok(())
}

/// Notes that a protocol has been used.
fn note_protocol(protocols: &mut Vec<KnownProtocol>, protocol: &ProtocolReport, time: u64, alone: bool) {
    match protocols.iter_mut().find(|known| known.fingerprint == protocol.fingerprint) {
        Some(known) => {
            known.until = time;
            known.alone = if alone { time } else { known.alone };
        }
        None => protocols.push(KnownProtocol {
            name: protocol.name.clone(),
            fingerprint: protocol.fingerprint.clone(),
            since: time,
            until: time,
            alone: if alone { time } else { 0 },
        }),
    }
}

fn open_segment(disk: &dyn Disk, folder: &Path, store: [u8; 16], listed: &Listed) -> Result<Segment, Error> {
    let checksum = u128::from_str_radix(&listed.checksum, 16).unwrap_or_default();
    let segment = Segment::open(
        disk,
        &segment_path(folder, listed.number),
        store,
        Written { bytes: listed.bytes, checksum },
    )?;
    if hex(&segment.header.protocol) != listed.protocol || segment.header.keys != listed.keys {
        let path = segment_path(folder, listed.number).display().to_string();
        return Err(Error::Damaged { path, reason: "it is not what the manifest lists".to_owned() });
    }
    Ok(segment)
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.keys"))
}

pub(crate) fn run_digest(id: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake2b(id.as_bytes()).as_bytes()[..16]);
    digest
}

/// Checks that a store has the keys of the protocols that a run uses, and of no others.
pub(crate) fn check_protocols(manifest: &Manifest, folder: &Path, used: &[&Protocol]) -> Result<(), Error> {
    let used: Vec<ProtocolReport> = used.iter().map(|protocol| ProtocolReport::of(protocol)).collect();
    for known in &manifest.protocols {
        if used.iter().all(|protocol| protocol.fingerprint != known.fingerprint) {
            return Err(Error::OtherProtocol {
                store: folder.display().to_string(),
                known: format!("{} ({})", known.name, known.fingerprint),
                used: format!("{} ({})", used[0].name, used[0].fingerprint),
            });
        }
    }
    Ok(())
}
