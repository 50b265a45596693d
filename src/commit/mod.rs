//! A run of `dedup` with a store: from what it is called to its commit.

mod check;

use std::io;

use crate::config::{Config, StoreConfig};
use crate::error::Error;
use crate::input::Source;
use crate::key::ShortKey;
use crate::protocol::{Protocol, ProtocolReport};
use crate::publish::tagged;
use crate::report::{Counts, StoreReport};
use crate::store::disk::RealDisk;
use crate::store::{
    Alias, CommitError, Loaded, Published, Run, Session, check_protocols, hex, now, verify_output,
};
use crate::writer::Outputs;
use check::{Targets, check_adoption, check_id, check_same, consumed, derived_id};

/// A run that has begun: or rather, what is to be done.
pub(crate) enum Begun {
    /// Nothing: it has committed, and its output is there as it was written.
    Committed(Box<Run>, Vec<String>),
    Started(Box<StoreRun>),
}

/// A run between its beginning and its commit.
pub(crate) struct StoreRun {
    session: Session<'static>,
    id: String,
    ttl: Option<u64>,
    protocols: Vec<Protocol>,
    is_dry: bool,
    /// Whether what exists may be replaced.
    force: bool,
    targets: Targets,
    /// What the names of its temporaries have in common.
    tag: String,
    keys_before: u64,
    /// Of each input, how it began and ended.
    edges: Vec<Option<u64>>,
}

impl StoreRun {
    /// Opens the store, and finds out whether there is something to do.
    pub(crate) fn begin(store: &StoreConfig, config: &Config, sources: &[Source]) -> Result<Begun, Error> {
        let targets = Targets::of(config)?;
        targets.check_places(&store.folder)?;
        let ttl = store.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let id = match &store.run_id {
            Some(id) => id.clone(),
            None => derived_id(config, store, sources, &targets)?,
        };
        check_id(&id)?;
        let mut protocols = vec![config.protocol.clone()];
        for also in &store.also {
            if protocols.iter().any(|protocol| protocol.fingerprint() == also.fingerprint()) {
                return Err(Error::Usage(format!(
                    "--also {}: is a protocol of the run already",
                    also.name()
                )));
            }
            protocols.push(also.clone());
        }
        let session = Session::open(&RealDisk, &store.folder, now(), store.trust_clock)?;
        let manifest = session.manifest();
        if store.adopt {
            check_adoption(manifest, &store.folder, &config.inputs)?;
        }
        if let Some(run) = session.manifest().runs.iter().find(|run| run.id == id) {
            check_same(run, &protocols, sources, &targets)?;
            let warnings = verify_committed(run, sources)?;
            return Ok(Begun::Committed(Box::new(run.clone()), warnings));
        }
        check_protocols(session.manifest(), &store.folder, &protocols.iter().collect::<Vec<_>>())?;
        if !store.force {
            targets.check_owners(session.manifest())?;
        }
        let mut tag = [0; 4];
        getrandom::fill(&mut tag).map_err(|error| {
            Error::io("make a name for", "a temporary")(io::Error::other(error.to_string()))
        })?;
        Ok(Begun::Started(Box::new(Self {
            force: store.force,
            targets,
            tag: hex(&tag),
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
        let temporary =
            |target| tagged(target, &self.tag).map_err(Error::io("write to", target.display().to_string()));
        self.session.announce(&self.id, self.targets.paths().map(temporary).collect::<Result<_, _>>()?)?;
        Outputs::open(config, sources, Some(&self.tag))
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
        // Something may have come to stand there meanwhile.
        if !self.force {
            self.targets.check_owners(self.session.manifest())?;
        }
        self.targets.check_replaced(counts.unique)?;
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

/// Checks that the events of a committed run are there as it wrote them. Returns what cannot be told or is not as it was,
/// and is no loss of events.
fn verify_committed(run: &Run, sources: &[Source]) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    for source in sources.iter().filter(|source| source.bytes.is_none()) {
        warnings.push(format!(
            "{}: was not read, and cannot be compared with what run `{}` has read; other input needs another --run-id",
            source.name, run.id
        ));
    }
    let Some((events, others)) = run.outputs.split_last() else { return Ok(warnings) };
    verify_output(&RealDisk, events, &run.id)?;
    for output in others {
        if verify_output(&RealDisk, output, &run.id).is_err() {
            let name = output.path.display();
            warnings.push(format!("{name}: is not there as run `{}` wrote it", run.id));
        }
    }
    Ok(warnings)
}

/// What has become of a failed commit.
impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Nothing(error) | CommitError::Unfinished(error) => error,
        }
    }
}
