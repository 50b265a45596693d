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

use std::convert::Infallible;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TryRecvError, select};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::analyse::{Analysed, Analyst, Chunk, KeyText, Product};
use crate::commit::{Begun, StoreRun};
use crate::config::Config;
use crate::emit::{Emission, emit};
use crate::error::Error;
use crate::input::{self, Message, ReadOptions, Source};
use crate::meter::Meter;
use crate::report::Report;
use crate::seen::{Seen, find_aliases};
use crate::store::{Alias, Loaded};
use crate::tally::Tally;
use crate::writer::{Outputs, Writer, spawn_writer};

/// More threads than that are a slip of the keyboard.
const THREADS_MAX: usize = 1024;
/// Bytes of a batch for each worker.
const BATCH_BYTES_EACH: usize = 4 << 20;
/// Offsets in a batch, which may be longer by a line, have 32 bits.
const BATCH_BYTES_MAX: usize = 1 << 30;

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
    let threads = config.threads.map_or_else(default_threads, NonZero::get);
    let pool = start_pool(threads)?;
    let mut store = match begin(config, product, &sources)? {
        Some(Begun::Committed(run, warnings)) => {
            return Ok(Report::committed(&config.protocol, *run, warnings, began.elapsed()));
        }
        Some(Begun::Started(store)) => Some(store),
        None => None,
    };
    let outputs = match &store {
        Some(store) => store.open_outputs(config, &sources)?,
        None => Outputs::open(config, &sources, None)?,
    };
    let seen = match (&mut store, product) {
        (Some(store), _) => pool.install(|| store.load())?.into_iter().map(Seen::new).collect(),
        (None, Product::Claim) => vec![Seen::new(Loaded::default())],
        (None, Product::Text(_)) => Vec::new(),
    };
    if let Some(bytes) = sources.iter().map(|source| source.bytes).sum() {
        meter.input_bytes.add(bytes);
    }

    let batch_bytes =
        config.batch_bytes.map_or(threads * BATCH_BYTES_EACH, NonZero::get).min(BATCH_BYTES_MAX);
    let batches = input::spawn_reader(&sources, ReadOptions { mmap: config.mmap, batch_bytes }, meter);
    let Writer { emissions, ended, thread } = spawn_writer(outputs, &sources, meter);
    let analyst = Analyst::new(config, product, meter);
    let mut stages =
        Stages { seen, aliases: Vec::new(), tally: Tally::new(&sources, product), emissions, meter };
    // A worker that panics has said so; its files are still to be removed.
    let driven = AssertUnwindSafe(|| pool.install(|| drive((&batches, &ended), &analyst, &mut stages)));
    let outcome = catch_unwind(driven).unwrap_or(Err(Error::ThreadLost("worker")));

    let Stages { tally, emissions, seen, aliases, .. } = stages;
    drop(emissions);
    // The writer may still have something to write.
    let keys: Vec<_> = match &store {
        Some(_) if outcome.is_ok() => pool.install(|| seen.into_iter().map(Seen::into_claimed).collect()),
        _ => Vec::new(),
    };
    // What kept the writer from writing comes before what followed from it.
    let mut outputs = thread.join().unwrap_or(Err(Error::ThreadLost("writing")))?;
    outcome?;
    outputs.finish(meter)?;
    let mut report = Report::new(&config.protocol, tally.into_inputs(), meter, began.elapsed());
    match store {
        None => {
            outputs.write_report(&report)?;
            outputs.publish()?;
        }
        Some(store) => {
            report.store = Some(store.report(&keys, &sources)?);
            outputs.write_report(&report)?;
            store.commit(keys, &aliases, &sources, &report.total, outputs)?;
        }
    }
    Ok(report)
}

/// Begins a run with a store, if there is to be one.
fn begin(config: &Config, product: Product, sources: &[Source]) -> Result<Option<Begun>, Error> {
    match &config.store {
        Some(store) if product == Product::Claim => StoreRun::begin(store, config, sources).map(Some),
        _ => Ok(None),
    }
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX)
}

fn start_pool(threads: usize) -> Result<ThreadPool, Error> {
    if threads > THREADS_MAX {
        return Err(Error::Usage(format!("{threads} threads are too many; {THREADS_MAX} are the most")));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::Io {
        action: "start",
        path: format!("{threads} worker threads"),
        error: std::io::Error::other(error),
    })
}

/// Takes batches through the steps until the inputs end, or something ends the run.
/// The second receiver is closed when the writer has ended, which before the inputs do is a fault.
fn drive(
    (batches, writer_ended): (&Receiver<Message>, &Receiver<Infallible>),
    analyst: &Analyst<'_>,
    stages: &mut Stages<'_>,
) -> Result<(), Error> {
    let mut pending: Option<Analysed> = None;
    loop {
        let (batch, end) = match receive(batches, writer_ended, pending.is_none()) {
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
fn receive(batches: &Receiver<Message>, writer_ended: &Receiver<Infallible>, wait: bool) -> Option<Message> {
    let lost = || Message::Failed(Error::ThreadLost("input"));
    if wait {
        return Some(select! {
            recv(batches) -> message => message.unwrap_or_else(|_| lost()),
            recv(writer_ended) -> _ => Message::Failed(Error::ThreadLost("writing")),
        });
    }
    match batches.try_recv() {
        Ok(message) => Some(message),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(lost()),
    }
}

/// What happens to a batch after analysis.
struct Stages<'a> {
    /// One for each protocol; none where keys are not compared.
    seen: Vec<Seen>,
    /// Of events under several protocols, keys that are not as new as they look.
    aliases: Vec<Alias>,
    tally: Tally,
    emissions: Sender<Emission>,
    meter: &'a Meter,
}

impl Stages<'_> {
    /// Claims the batch's keys and hands what is to be written to the writer.
    fn finish(&mut self, analysed: Analysed) -> Result<(), Error> {
        for (protocol, seen) in self.seen.iter().enumerate() {
            let of_protocol = |chunk| Chunk::claims_of(chunk, protocol);
            let claims: Vec<_> = analysed.chunks.iter().map(of_protocol).collect();
            seen.claim(&claims, self.meter);
        }
        if self.seen.len() > 1 {
            for chunk in &analysed.chunks {
                let claims: Vec<_> = (0..self.seen.len()).map(|protocol| chunk.claims_of(protocol)).collect();
                find_aliases(&claims, &mut self.aliases);
            }
        }
        self.tally.add(&analysed, self.meter);
        let emission = emit(analysed, !self.seen.is_empty(), self.meter);
        // The writer's own error says why it has gone; it is found when the thread is joined.
        self.emissions.send(emission).map_err(|_| Error::ThreadLost("writing"))
    }
}
