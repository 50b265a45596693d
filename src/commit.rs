//! A run of `dedup` with a store: from what it is called to its commit.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::{Config, StoreConfig};
use crate::error::Error;
use crate::input::{Source, passed_over};
use crate::key::ShortKey;
use crate::output::target_of;
use crate::protocol::{Protocol, ProtocolReport};
use crate::publish::{folder_of, tagged};
use crate::report::{Counts, StoreReport};
use crate::store::disk::RealDisk;
use crate::store::{
    Alias, CommitError, Consumed, Loaded, Manifest, Published, Run, Session, check_protocols, hex, now,
    run_digest, verify_output,
};
use crate::writer::Outputs;

/// A run that has begun: or rather, what is to be done.
pub(crate) enum Begun {
    /// Nothing: it has committed, and its output is there as it was written.
    Committed(Box<Run>),
    Started(Box<StoreRun>),
}

/// A run between its beginning and its commit.
pub(crate) struct StoreRun {
    session: Session<'static>,
    id: String,
    ttl: Option<u64>,
    protocols: Vec<Protocol>,
    is_dry: bool,
    /// What stands under the name of the events and is to be replaced.
    replaced: Option<PathBuf>,
    keys_before: u64,
    /// Of each input, how it began and ended.
    edges: Vec<Option<u64>>,
}

impl StoreRun {
    /// Opens the store, and finds out whether there is something to do.
    pub(crate) fn begin(store: &StoreConfig, config: &Config, sources: &[Source]) -> Result<Begun, Error> {
        let output = output_path(config)?;
        check_places(config, &store.folder)?;
        let ttl = store.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let id = match &store.run_id {
            Some(id) => id.clone(),
            None => derived_id(config, store, sources, output.as_deref())?,
        };
        let session = Session::open(&RealDisk, &store.folder, now(), store.trust_clock)?;
        let manifest = session.manifest();
        if store.adopt {
            check_adoption(manifest, &store.folder, &config.inputs)?;
        }
        let mut protocols = vec![config.protocol.clone()];
        protocols.extend(store.also.iter().cloned());
        if let Some(run) = session.manifest().runs.iter().find(|run| run.id == id) {
            check_same(run, &protocols, sources, output.as_deref())?;
            run.outputs.iter().try_for_each(|output| verify_output(&RealDisk, output, &run.id))?;
            return Ok(Begun::Committed(Box::new(run.clone())));
        }
        check_protocols(session.manifest(), &store.folder, &protocols.iter().collect::<Vec<_>>())?;
        if !store.force {
            check_owners(config, session.manifest())?;
        }
        Ok(Begun::Started(Box::new(Self {
            replaced: output.filter(|output| output.exists()),
            session,
            id,
            ttl,
            protocols,
            is_dry: config.dry_run && !store.adopt,
            keys_before: 0,
            edges: sources.iter().map(Source::edges).collect(),
        })))
    }

    /// Says in the store which temporaries there will be, and opens them.
    pub(crate) fn open_outputs(&self, config: &Config, sources: &[Source]) -> Result<Outputs, Error> {
        let tag = &self.session.manifest().store[..8];
        let output = config.output.as_ref().filter(|_| !self.is_dry);
        let duplicates = config.duplicates.as_ref().filter(|_| !self.is_dry);
        let mut temporaries = Vec::new();
        for path in
            [output, duplicates, config.rejects.as_ref(), config.report.as_ref()].into_iter().flatten()
        {
            if let Some(target) = target_of(path)? {
                temporaries
                    .push(tagged(&target, tag).map_err(Error::io("write to", path.display().to_string()))?);
            }
        }
        self.session.announce(&self.id, temporaries)?;
        Outputs::open(config, sources, Some(tag))
    }

    /// What is to be told. Fails if an input is no longer what the run has read.
    pub(crate) fn report(&self, keys: &[Vec<ShortKey>], sources: &[Source]) -> Result<StoreReport, Error> {
        let inputs = sources.iter().zip(&self.edges);
        let grown =
            inputs.map(|(source, edges)| source.check_unchanged(*edges)).collect::<Result<Vec<_>, _>>()?;
        Ok(StoreReport {
            run: self.id.clone(),
            time: self.session.time(),
            already_committed: false,
            keys_before: self.keys_before,
            keys_added: keys.iter().map(|keys| keys.len() as u64).sum(),
            grown: grown.into_iter().flatten().collect(),
            warnings: self.warnings(),
        })
    }

    /// The keys that are seen from the start, for each protocol.
    pub(crate) fn load(&mut self) -> Result<Vec<Loaded>, Error> {
        let load = |protocol| self.session.load(protocol, self.ttl);
        let loaded: Vec<Loaded> = self.protocols.iter().map(load).collect::<Result<_, _>>()?;
        self.keys_before = loaded.iter().map(|loaded| loaded.len() as u64).sum();
        Ok(loaded)
    }

    /// What is to be thought about.
    fn warnings(&self) -> Vec<String> {
        if self.session.is_clock_plausible() {
            return Vec::new();
        }
        vec![
            "the clock is more than a year ahead of the last run: no key is forgotten; if the clock is \
              right, give --trust-clock"
                .to_owned(),
        ]
    }

    /// Refuses to replace events by none: those that are there may be the only copies of those that were seen.
    fn check_replaced(&self, unique: Option<u64>) -> Result<(), Error> {
        match &self.replaced {
            Some(path) if unique == Some(0) && path.metadata().is_ok_and(|there| there.len() > 0) => {
                let name = path.display();
                Err(Error::Usage(format!(
                    "{name}: nothing was replaced, since this run has no new event, and what is there may be the one \
                     copy of those that were seen; to have an empty file, remove it first"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Commits the run: its keys count, and its outputs are published; or neither.
    pub(crate) fn commit(
        mut self,
        keys: Vec<Vec<ShortKey>>,
        aliases: &[Alias],
        sources: &[Source],
        counts: &Counts,
        outputs: Outputs,
    ) -> Result<(), Error> {
        if self.is_dry {
            return outputs.publish();
        }
        self.check_replaced(counts.unique)?;
        let claimed = self.session.date(&self.protocols, self.ttl, keys, aliases)?;
        let inputs = sources.iter().map(consumed).collect();
        outputs.hand_over(|outputs: Vec<Published>| {
            let run = Run {
                id: self.id.clone(),
                time: self.session.time(),
                ttl: self.ttl,
                protocols: self.protocols.iter().map(ProtocolReport::of).collect(),
                inputs,
                events: counts.events,
                unique: counts.unique.unwrap_or(0),
                outputs,
                published: false,
            };
            self.session.commit(run, &claimed)
        })
    }
}

/// The file that a run is to publish, by its absolute path.
fn output_path(config: &Config) -> Result<Option<PathBuf>, Error> {
    let refused = |name: String| {
        Error::Usage(format!(
            "{name} cannot be committed together with a store; write to a file, with -o FILE"
        ))
    };
    match &config.output {
        _ if config.dry_run => Ok(None),
        Some(path) if path.as_os_str() != "-" => {
            let target = target_of(path)?.ok_or_else(|| refused(path.display().to_string()))?;
            Ok(Some(target))
        }
        _ => Err(refused("standard output".to_owned())),
    }
}

/// The files that a run is to write: events, duplicates, rejected lines, report.
fn outputs(config: &Config) -> [Option<&PathBuf>; 4] {
    let [events, duplicates] =
        [&config.output, &config.duplicates].map(|path| path.as_ref().filter(|_| !config.dry_run));
    [events, duplicates, config.rejects.as_ref(), config.report.as_ref()]
}

/// Refuses places where an output could not be committed: the store's own folder, where what no manifest names is
/// removed, and names that a manifest cannot hold.
fn check_places(config: &Config, store: &Path) -> Result<(), Error> {
    let canonical = |folder: &Path| std::fs::canonicalize(folder).ok();
    for path in outputs(config).into_iter().flatten() {
        let Some(target) = target_of(path)? else { continue };
        let name = path.display();
        if target.to_str().is_none() {
            return Err(Error::Usage(format!(
                "{name}: a store takes names in UTF-8 only; give it another one"
            )));
        }
        if canonical(store).is_some_and(|store| canonical(folder_of(&target)) == Some(store)) {
            return Err(Error::Usage(format!("{name}: a store has its folder for itself; write elsewhere")));
        }
    }
    Ok(())
}

/// Refuses to make a store anew where one is, or of a part of what was published.
fn check_adoption(manifest: &Manifest, store: &Path, outputs: &[PathBuf]) -> Result<(), Error> {
    if !(manifest.runs.is_empty() && manifest.segments.is_empty()) {
        let name = store.display();
        return Err(Error::Usage(format!(
            "{name}: is a store with keys; make the store anew in another folder"
        )));
    }
    for folder in outputs.iter().filter(|path| path.is_dir()) {
        if let Some(other) = passed_over(folder)? {
            return Err(Error::Usage(format!(
                "{}: is not called as event files are, and would be passed over; if it was published, name the files \
                 instead of their folder, otherwise put it elsewhere",
                other.display()
            )));
        }
    }
    Ok(())
}

/// Refuses to replace what another run has published, and events of whatever origin.
fn check_owners(config: &Config, manifest: &Manifest) -> Result<(), Error> {
    for (place, path) in outputs(config).into_iter().enumerate() {
        let target = path.map(|path| target_of(path)).transpose()?.flatten();
        let Some(target) = target.filter(|target| target.exists()) else { continue };
        let is_of = |run: &&Run| run.outputs.iter().any(|other| other.path == target);
        let owner = match manifest.runs.iter().find(is_of) {
            Some(run) => format!("run `{}`", run.id),
            // Rejected lines and reports of no run may be written anew, as without a store.
            None if place >= 2 => continue,
            None => "no run of this store".to_owned(),
        };
        let name = target.display();
        return Err(Error::Usage(format!(
            "{name}: exists, and is the output of {owner}; --force replaces it"
        )));
    }
    Ok(())
}

/// A name that the same run has again: of the same inputs, output and settings.
fn derived_id(
    config: &Config,
    store: &StoreConfig,
    sources: &[Source],
    output: Option<&Path>,
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
    let described = json!([inputs, output, protocols, store.ttl, config.duplicates, config.rejects]);
    Ok(format!("auto-{}", hex(&run_digest(&described.to_string())[..8])))
}

/// A run of the same name must be the same run.
fn check_same(
    run: &Run,
    protocols: &[Protocol],
    sources: &[Source],
    output: Option<&Path>,
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
    } else if output.is_some() && output != run.outputs.last().map(|output| output.path.as_path()) {
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
fn consumed(source: &Source) -> Consumed {
    let state = source.state();
    Consumed {
        source: source.absolute(),
        bytes: state.map(|state| state.bytes),
        modified: state.and_then(|state| i64::try_from(state.modified).ok()),
    }
}

/// What has become of a failed commit.
impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Nothing(error) | CommitError::Unfinished(error) => error,
        }
    }
}
