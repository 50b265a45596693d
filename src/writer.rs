//! The outputs of a run, and the one thread that owns them.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::config::Config;
use crate::emit::{Emission, Part, Runs};
use crate::error::Error;
use crate::input::Source;
use crate::meter::Meter;
use crate::output::{Output, hand_over, publish};
use crate::report::Report;
use crate::store::{CommitError, Published};

/// Emissions that wait for the writer.
const EMISSIONS_WAITING: usize = 2;

/// The outputs of a run.
pub(crate) struct Outputs {
    events: Option<Output>,
    duplicates: Option<Output>,
    rejects: Option<Output>,
    report: Option<Output>,
}

impl Outputs {
    /// With a tag, for outputs that are committed together with a store.
    pub(crate) fn open(config: &Config, sources: &[Source], tag: Option<&str>) -> Result<Self, Error> {
        let create =
            |path: &Option<PathBuf>| path.as_deref().map(|path| Output::create(path, tag)).transpose();
        let events = match &config.output {
            _ if config.dry_run => None,
            Some(path) => Some(Output::create(path, tag)?),
            None => Some(Output::stdout()?),
        };
        let duplicates = if config.dry_run { None } else { create(&config.duplicates)? };
        let outputs =
            Self { events, duplicates, rejects: create(&config.rejects)?, report: create(&config.report)? };
        outputs.check(sources)?;
        Ok(outputs)
    }

    /// No output is an input, and no two outputs are one file.
    fn check(&self, sources: &[Source]) -> Result<(), Error> {
        let outputs: Vec<&Output> =
            [&self.events, &self.duplicates, &self.rejects, &self.report].into_iter().flatten().collect();
        for (index, output) in outputs.iter().enumerate() {
            output.check(sources)?;
            if let Some(other) = outputs[..index].iter().find(|other| other.is_same_file(output)) {
                let (one, two) = (other.name(), output.name());
                return Err(Error::Usage(format!("{one} and {two} are one file; give each output its own")));
            }
        }
        Ok(())
    }

    fn write(&mut self, batch: &[u8], parts: &[Part]) -> Result<(), Error> {
        type Select = fn(&Part) -> &Runs;
        let selections: [(&mut Option<Output>, Select); 3] = [
            (&mut self.events, |part| &part.kept),
            (&mut self.duplicates, |part| &part.duplicates),
            (&mut self.rejects, |part| &part.rejects),
        ];
        for (output, select) in selections {
            if let Some(output) = output {
                output.write_runs(batch, parts.iter().map(select))?;
            }
        }
        if let Some(events) = &mut self.events {
            let text: Vec<&[u8]> = parts.iter().map(|part| &part.text[..]).collect();
            events.write(&text)?;
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, meter: &Meter) -> Result<(), Error> {
        let began = Instant::now();
        for output in [&mut self.events, &mut self.duplicates, &mut self.rejects].into_iter().flatten() {
            output.finish()?;
        }
        meter.publish.add(began.elapsed());
        Ok(())
    }

    pub(crate) fn write_report(&mut self, report: &Report) -> Result<(), Error> {
        let Some(output) = &mut self.report else { return Ok(()) };
        // A report is made of numbers and names, which always have a JSON form.
        let json = serde_json::to_vec_pretty(report).unwrap_or_default();
        output.write(&[&json, b"\n"])?;
        output.finish()
    }

    /// Publishes the outputs by way of who commits them.
    pub(crate) fn hand_over(
        self,
        commit: impl FnOnce(Vec<Published>) -> Result<(), CommitError>,
    ) -> Result<(), Error> {
        let Self { events, duplicates, rejects, report } = self;
        hand_over([rejects, duplicates, report, events].into_iter().flatten().collect(), |published| {
            match commit(published) {
                Ok(()) => (Ok(()), true),
                Err(CommitError::Nothing(error)) => (Err(error), false),
                Err(CommitError::Unfinished(error)) => (Err(error), true),
            }
        })
    }

    pub(crate) fn publish(self) -> Result<(), Error> {
        let Self { events, duplicates, rejects, report } = self;
        publish([rejects, duplicates, report, events].into_iter().flatten().collect())
    }
}

/// The thread that writes emissions in the order in which they come.
pub(crate) struct Writer {
    /// Takes emissions, in order.
    pub(crate) emissions: Sender<Emission>,
    /// Is closed when the thread has ended.
    pub(crate) ended: Receiver<Infallible>,
    /// Gives the outputs back when no more emissions can come.
    pub(crate) thread: JoinHandle<Result<Outputs, Error>>,
}

pub(crate) fn spawn_writer(mut outputs: Outputs, sources: &Arc<[Source]>, meter: &Arc<Meter>) -> Writer {
    let (emissions, receiver) = bounded::<Emission>(EMISSIONS_WAITING);
    let (alive, ended) = bounded(0);
    let (sources, meter) = (Arc::clone(sources), Arc::clone(meter));
    let thread = std::thread::spawn(move || {
        let _alive = alive;
        for Emission { source, bytes, parts } in receiver {
            let began = Instant::now();
            let written = outputs.write(&bytes, &parts);
            meter.write.add(began.elapsed());
            // Pages that went away while they were written were written as zeros, or not at all.
            if bytes.shrunk() {
                return Err(Error::Shrunk { source: sources[source].name.clone() });
            }
            written?;
        }
        Ok(outputs)
    });
    Writer { emissions, ended, thread }
}
