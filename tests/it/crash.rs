//! The store on a disk that crashes: what was not brought to disk survives in part, or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use firstseen::store::disk::{Disk, DiskFile, ReadAt};
use firstseen::store::{Claimed, CommitError, Published, Run, Session};
use firstseen::{Error, Protocol, ProtocolReport};
use rayon::prelude::*;
use twox_hash::XxHash3_128;

/// Random numbers (the generator splitmix64 of Steele, Lea and Flood, 2014).
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// What a file holds, and what of it is on disk.
#[derive(Clone, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
}

/// A change of names that is not on disk yet. Each survives a crash, or does not, whatever the others do.
#[derive(Clone)]
enum Change {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Remove(PathBuf),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    /// The process ends before the operation of that number, and the machine with it.
    Crash(u64),
    /// The operation of that number fails, if it brings something to disk or writes. What was to be brought to
    /// disk may be lost, whatever is done later.
    Failure(u64),
    Nothing,
}

#[derive(Default)]
struct State {
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    changes: Vec<Change>,
    operations: u64,
    trouble: Option<Trouble>,
    is_down: bool,
}

/// A disk that loses what was not brought to it.
#[derive(Clone, Default)]
struct Fragile(Arc<Mutex<State>>);

impl Fragile {
    /// One operation: an error, if the machine is down or this is where it goes down, or where it fails.
    fn step(&self, may_fail: bool) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.0.lock().unwrap();
        state.operations += 1;
        let operation = state.operations;
        if state.trouble == Some(Trouble::Crash(operation)) {
            state.is_down = true;
        }
        if state.is_down {
            return Err(io::Error::other("the machine is down"));
        }
        if state.trouble == Some(Trouble::Failure(operation)) && may_fail {
            return Err(io::Error::other("the disk failed"));
        }
        Ok(state)
    }

    fn begin(&self, trouble: Trouble) {
        let mut state = self.0.lock().unwrap();
        (state.operations, state.trouble) = (0, Some(trouble));
    }

    fn operations(&self) -> u64 {
        self.0.lock().unwrap().operations
    }

    fn is_down(&self) -> bool {
        self.0.lock().unwrap().is_down
    }

    /// The machine starts again, with what has survived.
    fn restart(&self, dice: &mut Dice) {
        let mut state = self.0.lock().unwrap();
        for change in std::mem::take(&mut state.changes) {
            if dice.coin() {
                apply(&mut state.durable_names, &change);
            }
        }
        state.names = state.durable_names.clone();
        for content in &mut state.contents {
            let Content { now, durable } = content;
            // Nothing, all, or some of what was written since: pages in any order, and perhaps zeros.
            match dice.below(4) {
                0 => *now = durable.clone(),
                1 => {}
                2 => now.truncate(durable.len() + dice.below(now.len().saturating_sub(durable.len()) + 1)),
                _ => {
                    let from = durable.len().min(now.len());
                    now[from..].iter_mut().for_each(|byte| *byte = if dice.coin() { *byte } else { 0 });
                }
            }
            *durable = now.clone();
        }
        state.is_down = false;
        state.trouble = None;
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.0.lock().unwrap();
        state.names.get(path).map(|&file| state.contents[file].now.clone())
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().unwrap().names.keys().cloned().collect()
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, change: &Change) {
    match change {
        Change::Create(path, file) => drop(names.insert(path.clone(), *file)),
        Change::Rename(from, to, file) => {
            names.remove(from);
            names.insert(to.clone(), *file);
        }
        Change::Remove(path) => drop(names.remove(path)),
    }
}

impl State {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }
}

struct Open {
    disk: Fragile,
    file: usize,
}

impl Disk for Fragile {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.step(true)?;
        // Emptying a file is a change of its content, which may survive or not: another file is as good.
        state.contents.push(Content::default());
        let file = state.contents.len() - 1;
        state.change(Change::Create(path.to_owned(), file));
        Ok(Box::new(Open { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        let state = self.step(false)?;
        let file = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Open { disk: self.clone(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.step(true)?;
        let file = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.step(true)?;
        state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        state.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.step(true)?;
        let is_here = |path: &Path| path.parent() == Some(folder);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.changes).into_iter().partition(|change| {
                let (Change::Create(path, _) | Change::Rename(_, path, _) | Change::Remove(path)) = change;
                is_here(path)
            });
        here.iter().for_each(|change| apply(&mut state.durable_names, change));
        state.changes = elsewhere;
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.step(false)?;
        Ok(state.names.keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.step(true)?.contents[self.file].now.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Open {
    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut state = self.disk.step(true)?;
        let content = &mut state.contents[self.file];
        content.durable = content.now.clone();
        drop(state);
        // Closing may fail too.
        self.disk.step(true).map(drop)
    }
}

impl ReadAt for Open {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.step(false)?.contents[self.file].now.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.disk.step(false)?;
        let offset = offset as usize;
        let bytes = state.contents[self.file].now.get(offset..offset + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

const STORE: &str = "/store";

/// An event is a number, and its key is made of it.
fn key_of(event: u32) -> [u8; 16] {
    XxHash3_128::oneshot(&event.to_le_bytes()).to_be_bytes()
}

fn protocol() -> Protocol {
    Protocol::built_in("geojson-v1").unwrap()
}

/// The job of one night: the run, unless it has committed; what `dedup --store` does.
fn run_night(disk: &Fragile, night: usize, events: &[u32], now: u64) -> Result<(), Error> {
    let mut session = Session::recover(disk, Path::new(STORE), now, false)?;
    let id = format!("night-{night}");
    if session.manifest().runs.iter().any(|run| run.id == id) {
        return Ok(());
    }
    let (path, temporary) =
        (PathBuf::from(format!("/out/{night}")), PathBuf::from(format!("/out/.{night}.tmp")));
    session.announce(&id, vec![temporary.clone()])?;
    let seen = session.load(&protocol(), None)?;
    let mut new = BTreeSet::new();
    let fresh: Vec<u32> = events
        .iter()
        .copied()
        .filter(|&event| !seen.contains(&key_of(event)) && new.insert(key_of(event)))
        .collect();
    let bytes: Vec<u8> = fresh.iter().flat_map(|event| event.to_le_bytes()).collect();
    let write = || {
        let mut file = disk.create(&temporary)?;
        file.write_all(&bytes)?;
        file.finish()
    };
    let failed = |error| Error::Io { action: "write", path: "output".to_owned(), error };
    if let Err(error) = write() {
        let _ = disk.remove(&temporary);
        return Err(failed(error));
    }
    let checksum = format!("{:032x}", XxHash3_128::oneshot(&bytes));
    let run = Run {
        id,
        time: 0,
        ttl: None,
        protocols: vec![ProtocolReport {
            name: "geojson-v1".to_owned(),
            fingerprint: protocol().fingerprint().to_string(),
        }],
        inputs: Vec::new(),
        events: events.len() as u64,
        unique: fresh.len() as u64,
        outputs: vec![Published { path, temporary: temporary.clone(), bytes: bytes.len() as u64, checksum }],
        published: false,
    };
    session.commit(run, &[Claimed::from(new.into_iter().collect::<Vec<_>>())]).map_err(|error| match error {
        CommitError::Nothing(error) => {
            let _ = disk.remove(&temporary);
            error
        }
        CommitError::Unfinished(error) => error,
    })
}

/// What all nights have published, or why something is wrong with it.
fn published(disk: &Fragile, nights: usize) -> Vec<u32> {
    let bytes = (0..nights).filter_map(|night| disk.read(Path::new(&format!("/out/{night}")))).flatten();
    bytes
        .collect::<Vec<u8>>()
        .chunks_exact(4)
        .map(|event| u32::from_le_bytes(event.try_into().unwrap()))
        .collect()
}

/// Whether the store and the outputs say the same: each night is published as a whole or not at all.
fn check(disk: &Fragile, nights: &[Vec<u32>], context: &str) {
    let session = Session::recover(disk, Path::new(STORE), 1, false)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let events = published(disk, nights.len());
    let once: BTreeSet<u32> = events.iter().copied().collect();
    assert_eq!(once.len(), events.len(), "{context}: an event is published twice");
    let committed: BTreeSet<&str> = session.manifest().runs.iter().map(|run| run.id.as_str()).collect();
    for (night, events) in nights.iter().enumerate() {
        let is_committed = committed.contains(format!("night-{night}").as_str());
        let is_published = disk.read(Path::new(&format!("/out/{night}"))).is_some();
        assert_eq!(is_committed, is_published, "{context}: night {night}");
        assert!(
            !is_committed || events.iter().all(|event| once.contains(event)),
            "{context}: night {night} lost an event"
        );
    }
    let seen = session.load(&protocol(), None).unwrap();
    assert_eq!(seen.len(), once.len(), "{context}");
    assert!(once.iter().all(|&event| seen.contains(&key_of(event))), "{context}");
    // What no manifest names is gone.
    let left: Vec<_> =
        disk.paths().into_iter().filter(|path| path.extension().is_some_and(|end| end == "tmp")).collect();
    assert!(left.is_empty(), "{context}: {left:?}");
}

/// Nights with trouble at one place, and perhaps more while that is recovered from.
fn try_nights(seed: u64, nights: &[Vec<u32>], troubled: usize, trouble: Trouble) -> u64 {
    let disk = Fragile::default();
    let mut dice = Dice(seed);
    let mut operations = 0;
    for (night, events) in nights.iter().enumerate() {
        let context = format!("seed {seed}, night {troubled}, {trouble:?}, at night {night}");
        disk.begin(if night == troubled { trouble } else { Trouble::Nothing });
        let result = run_night(&disk, night, events, 1);
        if night == troubled {
            operations = disk.operations();
        }
        if disk.is_down() || (result.is_err() && dice.coin()) {
            disk.restart(&mut dice);
        }
        // A second crash, while the first one is recovered from.
        disk.begin(if result.is_err() && dice.coin() {
            Trouble::Crash(dice.below(30) as u64)
        } else {
            Trouble::Nothing
        });
        let _ = Session::recover(&disk, Path::new(STORE), 1, false);
        if disk.is_down() {
            disk.restart(&mut dice);
        }
        disk.begin(Trouble::Nothing);
        check(&disk, nights, &context);
        run_night(&disk, night, events, 1).unwrap_or_else(|error| panic!("{context}, again: {error}"));
        check(&disk, nights, &context);
        // A crash at rest changes nothing.
        disk.restart(&mut dice);
        check(&disk, nights, &context);
    }
    let all: BTreeSet<u32> = nights.iter().flatten().copied().collect();
    let mut events = published(&disk, nights.len());
    events.sort_unstable();
    assert_eq!(events, all.into_iter().collect::<Vec<_>>());
    operations
}

#[test]
fn no_crash_and_no_failure_loses_or_repeats_an_event() {
    let nights = [vec![1, 2, 3, 2], vec![3, 4, 1, 5], vec![5, 6, 6, 2]];
    let mut cases = 0;
    for troubled in 0..nights.len() {
        let operations = try_nights(0, &nights, troubled, Trouble::Nothing);
        assert!(operations > 30, "{operations}");
        let seeds = 0..50;
        cases += 2 * operations * seeds.end;
        (1..=operations).into_par_iter().for_each(|operation| {
            for seed in seeds.clone() {
                try_nights(seed, &nights, troubled, Trouble::Crash(operation));
                try_nights(seed, &nights, troubled, Trouble::Failure(operation));
            }
        });
    }
    println!("{cases} cases");
    assert!(cases > 10_000, "{cases}");
}
