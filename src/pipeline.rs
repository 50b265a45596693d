//! All the wiring: one run from inputs to published outputs.
//!
//! # Algorithm
//!
//! The reader cuts the inputs into batches. Of each batch, `analyse` makes keys of lines, `claim`
//! finds the first event of each key, `emit` sorts lines into runs, and the writer writes them.
//! When all went well, the outputs are brought to disk and published.
//!
//! # Threading
//!
//! The reader and the writer have a thread each, behind bounded channels. The calling thread drives
//! a pool of workers: while they claim and emit batch k, they analyse batch k + 1. If there is no
//! batch k + 1 yet, batch k is finished at once, so that a quiet pipe does not hold back its events.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use crate::analyse::{Analysed, Analyst, Fault, KeyText, Product};
use crate::emit::{Emission, Part, Runs, emit};
use crate::error::Error;
use crate::input::{self, Message, ReadOptions, Source};
use crate::meter::Meter;
use crate::output::{Output, publish};
use crate::protocol::Protocol;
use crate::report::{Counts, InputReport, Report};
use crate::seen::Seen;

/// Emissions that wait for the writer.
const EMISSIONS_WAITING: usize = 2;

/// A run, as it is asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// Files and directories, in order; `-`, or none at all, is standard input.
    pub inputs: Vec<PathBuf>,
    /// What makes two events one.
    pub protocol: Protocol,
    /// Where the events (or keys) go; `None` is standard output.
    pub output: Option<PathBuf>,
    /// Read, count and report, but write no events.
    pub dry_run: bool,
    /// Where events go whose key had been seen.
    pub duplicates: Option<PathBuf>,
    /// Where lines go that are no events. `None`: the first one ends the run.
    pub rejects: Option<PathBuf>,
    /// Where the report goes, as JSON.
    pub report: Option<PathBuf>,
    /// Worker threads; `None` is one for each core that the process may use.
    pub threads: Option<NonZero<usize>>,
    /// Map regular uncompressed files instead of reading them.
    pub mmap: bool,
    /// Bytes that are in work together; `None` is 4 MiB for each worker.
    pub batch_bytes: Option<NonZero<usize>>,
    /// Bytes that a worker takes at a time.
    pub chunk_bytes: NonZero<usize>,
}

impl Config {
    /// From standard input to standard output under `protocol`, with a worker for each core.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self {
            inputs: Vec::new(),
            protocol,
            output: None,
            dry_run: false,
            duplicates: None,
            rejects: None,
            report: None,
            threads: None,
            mmap: true,
            batch_bytes: None,
            chunk_bytes: NonZero::<usize>::MIN.saturating_add((64 << 10) - 1),
        }
    }
}

/// Writes the first event of every key, byte for byte, in input order.
///
/// ```
/// use firstseen::{Config, Meter, Protocol, dedup};
///
/// # let folder = tempfile::tempdir()?;
/// # let feed = folder.path().join("feed.jsonl");
/// # let output = folder.path().join("first.jsonl");
/// std::fs::write(&feed, "{\"id\":1,\"attempt\":1}\n{\"attempt\":2, \"id\":1}\n{\"id\":2}\n")?;
/// let mut config = Config::new(Protocol::built_in("geojson-v1")?);
/// config.inputs = vec![feed];
/// config.output = Some(output.clone());
/// let report = dedup(&config, &Meter::default().into())?;
/// assert_eq!(report.total.unique, Some(2));
/// assert_eq!(std::fs::read_to_string(output)?, "{\"id\":1,\"attempt\":1}\n{\"id\":2}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Anything that keeps the run from being done whole. Then no file was published, and standard
/// output, if that was the output, has the events before the fault.
pub fn dedup(config: &Config, meter: &Arc<Meter>) -> Result<Report, Error> {
    run(config, Product::Claim, meter)
}

/// Writes a line of text about the key of every event, in input order. Like [`dedup`] otherwise.
///
/// # Errors
///
/// As [`dedup`].
pub fn keys(config: &Config, text: KeyText, meter: &Arc<Meter>) -> Result<Report, Error> {
    run(config, Product::Text(text), meter)
}

fn run(config: &Config, product: Product, meter: &Arc<Meter>) -> Result<Report, Error> {
    let began = Instant::now();
    let sources: Arc<[Source]> = input::resolve(&config.inputs)?.into();
    let outputs = Outputs::open(config, &sources)?;
    let threads = config.threads.map_or_else(default_threads, NonZero::get);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::Usage(format!("cannot start {threads} worker threads: {error}")))?;
    if let Some(bytes) = sources.iter().map(|source| source.bytes).sum() {
        meter.input_bytes.add(bytes);
    }

    let options = ReadOptions {
        mmap: config.mmap,
        batch_bytes: config.batch_bytes.map_or(threads * (4 << 20), NonZero::get),
    };
    let batches = input::spawn_reader(&sources, options, meter);
    let (emissions, writer) = spawn_writer(outputs, &sources, meter);
    let analyst = Analyst::new(
        &config.protocol,
        product,
        config.rejects.is_some(),
        (config.chunk_bytes.get(), meter.as_ref()),
    );
    let mut stages = Stages {
        seen: (product == Product::Claim).then(Seen::new),
        tally: Tally::new(&sources, product),
        emissions,
        meter,
    };
    let outcome = pool.install(|| drive(&batches, &analyst, &mut stages));

    let Stages { tally, emissions, .. } = stages;
    drop(emissions);
    let outputs = writer.join().map_err(|_| Error::ThreadLost("writing"))?;
    // What kept the writer from writing comes before what followed from it.
    let mut outputs = outputs?;
    outcome?;
    outputs.finish(meter)?;
    let report = Report::new(&config.protocol, tally.into_inputs(), meter, began.elapsed());
    outputs.write_report(&report)?;
    outputs.publish()?;
    Ok(report)
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Takes batches through the steps until the inputs end, or something ends the run.
fn drive(batches: &Receiver<Message>, analyst: &Analyst<'_>, stages: &mut Stages<'_>) -> Result<(), Error> {
    let mut pending: Option<Analysed> = None;
    loop {
        let (batch, end) = match receive(batches, pending.is_none()) {
            Some(Message::Batch(batch)) => (Some(batch), None),
            Some(Message::Failed(error)) => (None, Some(Err(error))),
            Some(Message::End) => (None, Some(Ok(()))),
            None => (None, None),
        };
        let finish = || pending.take().map_or(Ok(()), |analysed| stages.finish(analysed));
        let analyse = || batch.map(|batch| analyst.analyse(batch));
        let (finished, analysed) = rayon::join(finish, analyse);
        finished?;
        if let Some(end) = end {
            return end;
        }
        let Some(mut analysed) = analysed else { continue };
        if let Some(fault) = stages.tally.fault(&mut analysed) {
            // What came before the fault is written all the same: to a stream, the same bytes
            // whatever the batches are. Files are not published.
            return stages.finish(analysed).and(Err(fault));
        }
        pending = Some(analysed);
    }
}

/// The next message; without `wait`, `None` if there is none yet.
fn receive(batches: &Receiver<Message>, wait: bool) -> Option<Message> {
    let lost = || Message::Failed(Error::ThreadLost("input"));
    if wait {
        return Some(batches.recv().unwrap_or_else(|_| lost()));
    }
    match batches.try_recv() {
        Ok(message) => Some(message),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(lost()),
    }
}

/// What happens to a batch after analysis.
struct Stages<'a> {
    /// `None` where keys are not compared.
    seen: Option<Seen>,
    tally: Tally,
    emissions: Sender<Emission>,
    meter: &'a Meter,
}

impl Stages<'_> {
    /// Claims the batch's keys and hands what is to be written to the writer.
    fn finish(&mut self, analysed: Analysed) -> Result<(), Error> {
        if let Some(seen) = &self.seen {
            let claims: Vec<_> = analysed.chunks.iter().map(|chunk| &chunk.claims).collect();
            seen.claim(&claims, self.meter);
        }
        self.tally.add(&analysed, self.meter);
        let emission = emit(analysed, self.seen.is_some(), self.meter);
        // The writer's own error says why it has gone; it is found when the thread is joined.
        self.emissions.send(emission).map_err(|_| Error::ThreadLost("writing"))
    }
}

/// The counts of every input so far.
struct Tally {
    inputs: Vec<InputReport>,
}

impl Tally {
    fn new(sources: &[Source], product: Product) -> Self {
        let compared = (product == Product::Claim).then_some(0);
        let counts = || Counts { unique: compared, duplicates: compared, ..Counts::default() };
        let input = |source: &Source| InputReport { source: source.name.clone(), counts: counts() };
        Self { inputs: sources.iter().map(input).collect() }
    }

    /// What in this batch ends the run, before it is added.
    fn fault(&self, analysed: &mut Analysed) -> Option<Error> {
        let InputReport { source, counts } = &self.inputs[analysed.source];
        let source = source.clone();
        if analysed.bytes.shrunk() {
            // None of it can be trusted.
            analysed.chunks.clear();
            return Some(Error::Shrunk { source });
        }
        let (line, fault) = analysed.take_fault()?;
        let line = counts.lines + line;
        Some(match fault {
            Fault::Invalid(invalid) => Error::Event { source, line, invalid },
            Fault::TooLong => Error::LineTooLong { source, line },
        })
    }

    fn add(&mut self, analysed: &Analysed, meter: &Meter) {
        let counts = &mut self.inputs[analysed.source].counts;
        counts.bytes += analysed.bytes.len() as u64;
        for chunk in &analysed.chunks {
            let events = chunk.events.len() as u64;
            counts.lines += chunk.lines;
            counts.blank += chunk.blank;
            counts.events += events;
            chunk.rejects.iter().for_each(|reject| counts.add_reject(reject.invalid.reason));
            let repeated = chunk.claims.duplicates();
            if let (Some(unique), Some(duplicates)) = (&mut counts.unique, &mut counts.duplicates) {
                *unique += events - repeated;
                *duplicates += repeated;
            }
            meter.events.add(events);
            meter.duplicates.add(repeated);
        }
    }

    fn into_inputs(self) -> Vec<InputReport> {
        self.inputs
    }
}

/// The outputs of a run.
struct Outputs {
    events: Option<Output>,
    duplicates: Option<Output>,
    rejects: Option<Output>,
    report: Option<Output>,
}

impl Outputs {
    fn open(config: &Config, sources: &[Source]) -> Result<Self, Error> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        let events = match &config.output {
            _ if config.dry_run => None,
            Some(path) => Some(Output::create(path)?),
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
            if let Some(id) = output.existing()
                && let Some(source) = sources.iter().find(|source| source.id == Some(id))
            {
                return Err(Error::Usage(format!(
                    "{} is also an input ({}); write to another file",
                    output.name(),
                    source.name
                )));
            }
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

    fn finish(&mut self, meter: &Meter) -> Result<(), Error> {
        let began = Instant::now();
        for output in [&mut self.events, &mut self.duplicates, &mut self.rejects].into_iter().flatten() {
            output.finish()?;
        }
        meter.publish.add(began.elapsed());
        Ok(())
    }

    fn write_report(&mut self, report: &Report) -> Result<(), Error> {
        let Some(output) = &mut self.report else { return Ok(()) };
        // A report is made of numbers and names, which always have a JSON form.
        let json = serde_json::to_vec_pretty(report).unwrap_or_default();
        output.write(&[&json, b"\n"])?;
        output.finish()
    }

    fn publish(self) -> Result<(), Error> {
        let Self { events, duplicates, rejects, report } = self;
        publish([rejects, duplicates, report, events].into_iter().flatten().collect())
    }
}

/// Writes emissions in the order in which they come; returns the outputs when no more can come.
fn spawn_writer(
    mut outputs: Outputs,
    sources: &Arc<[Source]>,
    meter: &Arc<Meter>,
) -> (Sender<Emission>, JoinHandle<Result<Outputs, Error>>) {
    let (sender, receiver) = bounded::<Emission>(EMISSIONS_WAITING);
    let (sources, meter) = (Arc::clone(sources), Arc::clone(meter));
    let writer = std::thread::spawn(move || {
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
    (sender, writer)
}
