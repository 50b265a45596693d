//! The store on a disk that crashes: what was not brought to disk survives in part, or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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
/// Keys that are imported are those of events that no night has.
const IMPORTED: [u32; 3] = [100, 101, 102];

/// What is done with the store, one after another.
#[derive(Clone, Debug)]
enum Job {
    /// A run of these events. The first is under the old protocol, all others are under the new one and it.
    Night(usize, &'static [u32]),
    Compact,
    Import,
    DropOld,
}

const JOBS: [Job; 6] = [
    Job::Night(0, &[1, 2, 3, 2]),
    Job::Night(1, &[3, 4, 1, 5]),
    Job::Compact,
    Job::Import,
    Job::Night(2, &[5, 6, 6, 2]),
    Job::DropOld,
];

fn protocol(name: &str) -> Protocol {
    Protocol::built_in(name).unwrap()
}

const OLD: &str = "geojson-v1";
const NEW: &str = "feed-v1";

/// An event is a number, and its key is made of it.
fn key_of(protocol: &str, event: u32) -> [u8; 16] {
    XxHash3_128::oneshot(format!("{protocol} {event}").as_bytes()).to_be_bytes()
}

fn output(night: usize) -> PathBuf {
    PathBuf::from(format!("/out/{night}"))
}

fn duplicates(night: usize) -> PathBuf {
    PathBuf::from(format!("/out/{night}-duplicates"))
}

fn temporary_of(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.tmp", path.file_name().unwrap().display()))
}

/// Writes an output as a run does, under its temporary name.
fn write_output(disk: &Fragile, path: PathBuf, events: &[u32]) -> io::Result<Published> {
    let bytes: Vec<u8> = events.iter().flat_map(|event| event.to_le_bytes()).collect();
    let temporary = temporary_of(&path);
    let mut file = disk.create(&temporary)?;
    file.write_all(&bytes)?;
    file.finish()?;
    let checksum = format!("{:032x}", XxHash3_128::oneshot(&bytes));
    Ok(Published { path, temporary, bytes: bytes.len() as u64, checksum })
}

/// The job of one night: the run, unless it has committed; what `dedup --store` does.
fn run_night(disk: &Fragile, night: usize, events: &[u32]) -> Result<(), Error> {
    let mut session = Session::recover(disk, Path::new(STORE), 1 + night as u64, false)?;
    let id = format!("night-{night}");
    if session.manifest().runs.iter().any(|run| run.id == id) {
        return Ok(());
    }
    let paths = [duplicates(night), output(night)];
    let temporaries = paths.iter().map(|path| temporary_of(path)).collect::<Vec<_>>();
    session.announce(&id, temporaries.clone())?;
    let protocols = if night == 0 { &[OLD][..] } else { &[NEW, OLD] };
    let loaded = protocols.iter().map(|name| session.load(&protocol(name), None));
    let loaded = loaded.collect::<Result<Vec<_>, Error>>()?;
    let mut new = vec![BTreeSet::new(); protocols.len()];
    let (mut kept, mut rest) = (Vec::new(), Vec::new());
    let mut times = HashMap::new();
    for &event in events {
        let keys: Vec<_> = protocols.iter().map(|name| key_of(name, event)).collect();
        let is_seen =
            |place: usize| loaded[place].contains(&keys[place]) || new[place].contains(&keys[place]);
        let is_duplicate = (0..keys.len()).any(is_seen);
        if is_duplicate && !is_seen(0) {
            // As old as by its old key.
            times.insert(keys[0], 1);
        }
        if is_duplicate { &mut rest } else { &mut kept }.push(event);
        for (place, key) in keys.into_iter().enumerate() {
            if !loaded[place].contains(&key) {
                new[place].insert(key);
            }
        }
    }
    let mut claimed: Vec<Claimed> = new.into_iter().map(|keys| Vec::from_iter(keys).into()).collect();
    claimed[0].times = times;
    let give_up = |error| {
        for temporary in &temporaries {
            let _ = disk.remove(temporary);
        }
        error
    };
    let outputs = [rest, kept].into_iter().zip(paths).map(|(events, path)| write_output(disk, path, &events));
    let outputs = outputs.collect::<io::Result<Vec<_>>>();
    let outputs = outputs
        .map_err(|error| Error::Io { action: "write", path: "output".to_owned(), error })
        .map_err(give_up)?;
    let report = |name: &&str| ProtocolReport {
        name: (*name).to_owned(),
        fingerprint: protocol(name).fingerprint().to_string(),
    };
    let run = Run {
        id,
        time: 0,
        ttl: None,
        protocols: protocols.iter().map(report).collect(),
        inputs: Vec::new(),
        events: events.len() as u64,
        unique: outputs[1].bytes / 4,
        outputs,
        published: false,
    };
    session.commit(run, &claimed).map_err(|error| match error {
        CommitError::Nothing(error) => give_up(error),
        CommitError::Unfinished(error) => error,
    })
}

/// Does a job, unless it has been done.
fn work(disk: &Fragile, job: &Job) -> Result<(), Error> {
    let open = || Session::recover(disk, Path::new(STORE), 1, false);
    match job {
        Job::Night(night, events) => run_night(disk, *night, events),
        Job::Compact => open()?.compact(None).map(drop),
        Job::Import => {
            let keys: String = IMPORTED
                .iter()
                .map(|&event| format!("{:032x}\n", u128::from_be_bytes(key_of(NEW, event))))
                .collect();
            open()?.import(&protocol(NEW), "keys", &mut keys.as_bytes(), false).map(drop)
        }
        Job::DropOld => {
            let mut session = open()?;
            let is_there = session.manifest().protocols.iter().any(|known| known.name == OLD);
            if is_there { session.drop_protocol(OLD).map(drop) } else { Ok(()) }
        }
    }
}

fn read_events(disk: &Fragile, path: &Path) -> Option<Vec<u32>> {
    let bytes = disk.read(path)?;
    Some(bytes.chunks_exact(4).map(|event| u32::from_le_bytes(event.try_into().unwrap())).collect())
}

/// Whether the store and the outputs say the same: each run is published as a whole or not at all, and so are the keys
/// of each job. `done` jobs have been done, and perhaps one more.
fn check(disk: &Fragile, done: usize, context: &str) {
    let session = Session::recover(disk, Path::new(STORE), 1, false)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let committed: BTreeSet<&str> = session.manifest().runs.iter().map(|run| run.id.as_str()).collect();
    let (mut once, mut of_new) = (BTreeSet::new(), BTreeSet::new());
    for (place, job) in JOBS.iter().enumerate() {
        let Job::Night(night, events) = job else { continue };
        let is_committed = committed.contains(format!("night-{night}").as_str());
        assert!(is_committed || place >= done, "{context}: night {night} is forgotten");
        let published = [output(*night), duplicates(*night)].map(|path| read_events(disk, &path));
        assert_eq!(published.each_ref().map(Option::is_some), [is_committed; 2], "{context}: night {night}");
        if is_committed {
            let mut seen_before = once.clone();
            let (kept, rest) = events.iter().partition::<Vec<u32>, _>(|&&event| seen_before.insert(event));
            assert_eq!(published, [Some(kept), Some(rest)], "{context}: night {night}");
            once = seen_before;
            of_new.extend(events.iter().filter(|_| *night > 0));
        }
    }
    let loaded = |name| session.load(&protocol(name), None).unwrap();
    let new = loaded(NEW);
    let is_imported = new.contains(&key_of(NEW, IMPORTED[0]));
    assert!(is_imported || done <= 3, "{context}: what was imported is forgotten");
    of_new.extend(IMPORTED.iter().filter(|_| is_imported));
    assert_eq!(new.len(), of_new.len(), "{context}");
    assert!(of_new.iter().all(|&event| new.contains(&key_of(NEW, event))), "{context}");
    let old = loaded(OLD);
    let is_dropped = session.manifest().protocols.iter().all(|known| known.name != OLD);
    assert!(!is_dropped || done + 1 >= JOBS.len() || done == 0, "{context}: the old keys are dropped");
    assert_eq!(old.len(), if is_dropped { 0 } else { once.len() }, "{context}");
    assert!(is_dropped || once.iter().all(|&event| old.contains(&key_of(OLD, event))), "{context}");
    // What no manifest names is gone.
    let listed =
        session.manifest().segments.iter().map(|listed| format!("{STORE}/{:016}.keys", listed.number));
    let listed: BTreeSet<PathBuf> = listed.map(PathBuf::from).collect();
    let is_left = |path: &PathBuf| match path.extension().and_then(|end| end.to_str()) {
        Some("tmp") => true,
        Some("keys") => !listed.contains(path),
        _ => false,
    };
    let left: Vec<_> = disk.paths().into_iter().filter(is_left).collect();
    assert!(left.is_empty(), "{context}: {left:?}");
}

/// All jobs, with trouble in one, and perhaps more while that is recovered from. Returns the operations of that job.
fn try_jobs(seed: u64, troubled: usize, trouble: Trouble) -> u64 {
    let disk = Fragile::default();
    let mut dice = Dice(seed);
    let mut operations = 0;
    for (place, job) in JOBS.iter().enumerate() {
        let context = format!("seed {seed}, job {troubled}, {trouble:?}, at {job:?}");
        disk.begin(if place == troubled { trouble } else { Trouble::Nothing });
        let result = work(&disk, job);
        if place == troubled {
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
        check(&disk, place, &context);
        work(&disk, job).unwrap_or_else(|error| panic!("{context}, again: {error}"));
        check(&disk, place + 1, &context);
        // A crash at rest changes nothing.
        disk.restart(&mut dice);
        check(&disk, place + 1, &context);
    }
    operations
}

#[test]
fn no_crash_and_no_failure_loses_or_repeats_an_event() {
    let mut cases = 0;
    for (troubled, job) in JOBS.iter().enumerate() {
        let operations = try_jobs(0, troubled, Trouble::Nothing);
        assert!(operations > 10, "{operations} of {job:?}");
        let seeds = 0..25;
        cases += 2 * operations * seeds.end;
        (1..=operations).into_par_iter().for_each(|operation| {
            for seed in seeds.clone() {
                try_jobs(seed, troubled, Trouble::Crash(operation));
                try_jobs(seed, troubled, Trouble::Failure(operation));
            }
        });
    }
    println!("{cases} cases");
    assert!(cases > 10_000, "{cases}");
}
