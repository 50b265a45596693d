//! What a run with a store may be called, and where its outputs may stand.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::{Config, StoreConfig};
use crate::error::Error;
use crate::input::{Source, passed_over};
use crate::output::target_of;
use crate::protocol::{Protocol, ProtocolReport};
use crate::publish::folder_of;
use crate::store::{Consumed, Manifest, Run, hex, run_digest};

/// Where the outputs of a run are to stand: events, duplicates, rejected lines and the report. `None` is what it does
/// not write, or writes straight, as to a pipe.
pub(super) struct Targets([Option<PathBuf>; 4]);

impl Targets {
    pub(super) fn of(config: &Config) -> Result<Self, Error> {
        let refused = |name: String| {
            Error::Usage(format!(
                "{name} cannot be committed together with a store; write to a file, with -o FILE"
            ))
        };
        let target = |path: &Option<PathBuf>| match path {
            Some(path) if path.as_os_str() != "-" => target_of(path),
            _ => Ok(None),
        };
        let of_events = |path: &Option<PathBuf>| if config.dry_run { Ok(None) } else { target(path) };
        let events = of_events(&config.output)?;
        if events.is_none() && !config.dry_run {
            let name = config.output.as_ref().filter(|path| path.as_os_str() != "-");
            return Err(refused(
                name.map_or("standard output".to_owned(), |path| path.display().to_string()),
            ));
        }
        Ok(Self([events, of_events(&config.duplicates)?, target(&config.rejects)?, target(&config.report)?]))
    }

    /// Where the events are to stand.
    pub(super) fn events(&self) -> Option<&Path> {
        self.0[0].as_deref()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().flatten().map(PathBuf::as_path)
    }

    /// Refuses places where an output could not be committed: the store's own folder, where what no manifest names is
    /// removed, and names that a manifest cannot hold.
    pub(super) fn check_places(&self, store: &Path) -> Result<(), Error> {
        let canonical = |folder: &Path| fs::canonicalize(folder).ok();
        for target in self.paths() {
            let name = target.display();
            if target.to_str().is_none() {
                return Err(Error::Usage(format!(
                    "{name}: a store takes names in UTF-8 only; give it another one"
                )));
            }
            if canonical(store).is_some_and(|store| canonical(folder_of(target)) == Some(store)) {
                return Err(Error::Usage(format!(
                    "{name}: a store has its folder for itself; write elsewhere"
                )));
            }
        }
        Ok(())
    }

    /// Refuses to replace what another run has published, and events of whatever origin.
    pub(super) fn check_owners(&self, manifest: &Manifest) -> Result<(), Error> {
        for (place, target) in self.0.iter().enumerate() {
            let Some(target) = target.as_ref().filter(|target| target.exists()) else { continue };
            let is_of = |run: &&Run| run.outputs.iter().any(|other| other.path == *target);
            let owner = match manifest.runs.iter().find(is_of) {
                Some(run) => format!("run `{}`", run.id),
                // Rejected lines and reports of no run may be written anew, as without a store.
                None if place >= 2 => continue,
                None => "no run of this store".to_owned(),
            };
            return Err(Error::Usage(format!(
                "{}: exists, and is the output of {owner}; write to another file (--force replaces it, and the events that \
                 only it has come no more)",
                target.display()
            )));
        }
        Ok(())
    }

    /// Refuses to replace events by none: those that are there may be the only copies of those that were seen.
    pub(super) fn check_replaced(&self, unique: Option<u64>) -> Result<(), Error> {
        match self.events() {
            Some(path) if unique == Some(0) && path.metadata().is_ok_and(|there| there.len() > 0) => {
                Err(Error::Usage(format!(
                    "{}: nothing was replaced, since this run has no new event, and what is there may be the one copy of \
                     those that were seen; to have an empty file, remove it first",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses to make a store anew where one is, or of a part of what was published.
pub(super) fn check_adoption(manifest: &Manifest, store: &Path, outputs: &[PathBuf]) -> Result<(), Error> {
    if !(manifest.runs.is_empty() && manifest.segments.is_empty()) {
        let name = store.display();
        return Err(Error::Usage(format!(
            "{name}: is a store with keys; make the store anew in another folder"
        )));
    }
    for folder in outputs.iter().filter(|path| path.is_dir()) {
        if let Some(other) = passed_over(folder)? {
            return Err(Error::Usage(format!(
                "{}: is no file called as event files are, and would be passed over; if it was published, name the \
                 files instead of their folder, otherwise put it elsewhere",
                other.display()
            )));
        }
    }
    Ok(())
}

/// Refuses names that nobody could tell or print.
pub(super) fn check_id(id: &str) -> Result<(), Error> {
    match id.trim().is_empty() || id.contains(char::is_control) {
        true => Err(Error::Usage(format!("a run cannot be called {id:?}; give it a name of one line"))),
        false => Ok(()),
    }
}

/// A name that the same run has again: of the same inputs, output and settings.
pub(super) fn derived_id(
    config: &Config,
    store: &StoreConfig,
    sources: &[Source],
    targets: &Targets,
) -> Result<String, Error> {
    let mut inputs = Vec::new();
    for source in sources {
        let Some(state) = source.state() else {
            let reason = "what is no regular file cannot name a run; give it a name, with --run-id";
            return Err(Error::Usage(format!("{}: {reason}", source.name)));
        };
        inputs.push(json!([source.absolute(), state.bytes, state.modified]));
    }
    let protocols: Vec<String> = [&config.protocol]
        .into_iter()
        .chain(&store.also)
        .map(|protocol| protocol.fingerprint().to_string())
        .collect();
    let [events, duplicates, rejects, _] = &targets.0;
    let described = json!([inputs, events, protocols, store.ttl, duplicates, rejects]);
    Ok(format!("auto-{}", hex(&run_digest(&described.to_string())[..8])))
}

/// A run of the same name must be the same run.
pub(super) fn check_same(
    run: &Run,
    protocols: &[Protocol],
    sources: &[Source],
    targets: &Targets,
) -> Result<(), Error> {
    let used: Vec<ProtocolReport> = protocols.iter().map(ProtocolReport::of).collect();
    let same = |one: &[ProtocolReport], two: &[ProtocolReport]| {
        one.iter().map(|protocol| &protocol.fingerprint).eq(two.iter().map(|protocol| &protocol.fingerprint))
    };
    let grown = |(source, read): (&Source, &Consumed)| match (consumed(source), read.bytes) {
        (now, Some(bytes)) if now.source == read.source && now.bytes > read.bytes => {
            Some(format!("and read {bytes} bytes of {}, which has grown", source.name))
        }
        _ => None,
    };
    let differs = if !same(&run.protocols, &used) {
        "under another protocol".to_owned()
    } else if !targets.paths().all(|path| run.outputs.iter().any(|output| output.path == path)) {
        "with another output".to_owned()
    } else if sources.iter().map(consumed).ne(run.inputs.iter().cloned()) {
        // What was appended must not be taken for done.
        let grown = sources.iter().zip(&run.inputs).find_map(grown);
        grown.unwrap_or_else(|| "with other inputs, or they have changed since".to_owned())
    } else {
        return Ok(());
    };
    Err(Error::Usage(format!(
        "run `{}` is committed, {differs}; what is another run needs another --run-id",
        run.id
    )))
}

/// What is read of an input: of a file, as much as it had when it was found.
pub(super) fn consumed(source: &Source) -> Consumed {
    let state = source.state();
    Consumed {
        source: source.absolute(),
        bytes: source.bytes,
        modified: state.and_then(|state| i64::try_from(state.modified).ok()),
    }
}
