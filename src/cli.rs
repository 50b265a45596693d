//! Arguments, and what they ask of the library. `clap` lives here only.

mod store;

use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use firstseen::{Config, Error, Hash, KeyText, Overrides, Protocol, StoreConfig};

pub(crate) use store::StoreCommand;

/// Keep the first-seen copy of every event in JSONL archives.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write the first event of every key, byte for byte, in input order.
    ///
    /// Exit codes: 0 done, 2 trouble or wrong usage (then no file was published).
    Dedup(Dedup),
    /// Print the key of every event, one a line, in input order.
    Key(Key),
    /// Write which delivery claimed each key first, to be verified later.
    Record(Record),
    /// Make the keys of captures again, and compare them with a record.
    ///
    /// Exit codes: 0 every key is as recorded, 1 some are not, 2 trouble or wrong usage.
    Verify(Verify),
    /// Say what a protocol makes of one event, stage by stage, or why two events are not one.
    ///
    /// Exit codes: 0 explained (two events: they are one), 1 two events are not one, 2 trouble or wrong usage.
    Explain(Explain),
    /// Say which keys of captures stay, move, merge or split under another protocol, by setting.
    ///
    /// Exit codes: 0 every key stays, 1 some do not, 2 trouble or wrong usage.
    Compare(Compare),
    /// List, show and check key protocols.
    #[command(subcommand)]
    Protocol(ProtocolCommand),
    /// Look into a store of seen keys, check it, and put it in order.
    #[command(subcommand)]
    Store(StoreCommand),
}

#[derive(Subcommand)]
pub(crate) enum ProtocolCommand {
    /// List the built-in protocols: name, fingerprint, what for.
    List,
    /// Print a protocol as a TOML file with every setting written out, ready to be changed.
    Show {
        /// A built-in's name, or a file.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Check a protocol file, and say what speaks against its settings.
    ///
    /// Exit codes: 0 nothing does, 1 something does, 2 the file is not valid.
    Check {
        /// A built-in's name, or a file.
        #[arg(value_name = "FILE")]
        name: String,
        /// Captured deliveries, as for record. Members that differ between events that are otherwise
        /// equal are named, and all that look like secrets or like a part of the envelope.
        #[arg(long, value_name = "CAPTURES", num_args = 1..)]
        captures: Vec<PathBuf>,
        /// What deliveries are called by, as a JSON Pointer.
        #[arg(long, value_name = "POINTER", default_value = "/delivery_id", requires = "captures")]
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct Dedup {
    #[command(flatten)]
    common: Common,
    /// Write events to FILE: a temporary beside it, brought to disk, then renamed. A name in .gz or
    /// .zst compresses. Without it, standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Read, count and report; write neither events nor duplicates.
    #[arg(long)]
    dry_run: bool,
    /// Write the dropped lines to FILE.
    #[arg(long, value_name = "FILE")]
    duplicates: Option<PathBuf>,
    /// Write counts and timings to FILE, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Remember keys in the folder DIR, and count those of earlier runs as seen. The output is a file
    /// that is committed together with the keys.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// What the run is called: a run that has committed is not done again [default: from inputs, output
    /// and settings].
    #[arg(long, value_name = "ID", requires = "store")]
    run_id: Option<String>,
    /// Forget keys this long after they were first claimed, as 72h or 30days.
    #[arg(long, value_name = "TIME", requires = "store", value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    /// An event is a duplicate also if its key under the protocol FILE is seen; both are remembered.
    #[arg(long, value_name = "FILE", requires = "store")]
    also: Vec<String>,
    /// Replace an output that exists, though it is none of this run.
    #[arg(long, requires = "store")]
    force: bool,
    /// The clock is right, though it is more than a year ahead of the last run with the store.
    #[arg(long, requires = "store")]
    trust_clock: bool,
    /// Show a progress bar on standard error; auto shows it on a terminal.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    progress: When,
    /// No progress bar and no summary; errors and warnings only.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Args)]
pub(crate) struct Key {
    #[command(flatten)]
    common: Common,
    /// Print key, tab, canonical JSON.
    #[arg(long, conflicts_with = "long")]
    canonical: bool,
    /// Print key, tab, protocol name, tab, length of the canonical JSON in bytes.
    #[arg(long)]
    long: bool,
}

#[derive(Args)]
pub(crate) struct Record {
    /// Captured deliveries: files, directories or -, as for dedup.
    #[arg(value_name = "CAPTURES", required = true)]
    captures: Vec<PathBuf>,
    /// Write the record to FILE, whole or not at all.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    contract: Contract,
}

#[derive(Args)]
pub(crate) struct Verify {
    /// Captured deliveries: a file, a directory or -.
    #[arg(value_name = "CAPTURES")]
    captures: PathBuf,
    /// What record wrote, or a bare JSON object of keys and ids; - is standard input.
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,
    #[command(flatten)]
    contract: Contract,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// An event: a file that holds one, FILE:LINE, or - for standard input.
    #[arg(value_name = "EVENT")]
    pub(crate) event: String,
    /// Another event, to be compared with it.
    #[arg(value_name = "EVENT")]
    pub(crate) other: Option<String>,
    #[command(flatten)]
    protocol: ProtocolOptions,
}

#[derive(Args)]
pub(crate) struct Compare {
    /// The protocol of now: a built-in's name, or a file.
    #[arg(long, value_name = "OLD")]
    pub(crate) from: String,
    /// The protocol that may take its place.
    #[arg(long, value_name = "NEW")]
    pub(crate) to: String,
    /// Captured deliveries: files, directories or -, as for dedup.
    #[arg(value_name = "CAPTURES", required = true)]
    pub(crate) captures: Vec<PathBuf>,
    /// What deliveries are called by, as a JSON Pointer.
    #[arg(long, value_name = "POINTER", default_value = "/delivery_id")]
    pub(crate) id: String,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
struct Contract {
    /// What deliveries are called by, as a JSON Pointer.
    #[arg(long, value_name = "POINTER", default_value = "/delivery_id")]
    id: String,
    #[command(flatten)]
    protocol: ProtocolOptions,
}

#[derive(Args)]
struct Common {
    /// Files and directories, in order; none or - is standard input. A directory stands for the
    /// .jsonl, .ndjson, .geojsonl and .json files in it (also with .gz or .zst), sorted by path.
    /// gzip and zstd are told by content.
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Collect lines that are no valid event in FILE, verbatim, and go on. Without it, the first
    /// one ends the run.
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    #[command(flatten)]
    protocol: ProtocolOptions,
    /// Worker threads [default: one for each core].
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Read regular files instead of mapping them.
    #[arg(long)]
    no_mmap: bool,
    /// Bytes in work together, for tests.
    #[arg(long, value_name = "N", hide = true)]
    batch_bytes: Option<NonZero<usize>>,
    /// Bytes for a worker at a time, for tests.
    #[arg(long, value_name = "N", hide = true)]
    chunk_bytes: Option<NonZero<usize>>,
}

#[derive(Args)]
pub(crate) struct ProtocolOptions {
    /// The key protocol: a built-in's name, or a file.
    #[arg(long, value_name = "NAME", default_value = "geojson-v1")]
    protocol: String,
    /// Round doubles to N decimals, in place of the protocol's.
    #[arg(long, value_name = "N")]
    decimals: Option<u16>,
    /// Hash with this function, in place of the protocol's.
    #[arg(long, value_enum)]
    hash: Option<HashName>,
    /// Keep the first N bytes of the digest as the key; 0 keeps it whole.
    #[arg(long, value_name = "N")]
    key_bytes: Option<usize>,
    /// Leave out the top-level member NAME, or what a JSON Pointer leads to, too; may be given again.
    #[arg(long, value_name = "NAME")]
    strip: Vec<String>,
    /// Leave out only the members that --strip names.
    #[arg(long)]
    no_default_strip: bool,
    /// Take coordinates to be in this system, such as EPSG:3857, where an event names none. For
    /// protocols that bring coordinates to WGS 84.
    #[arg(long, value_name = "CRS")]
    source_crs: Option<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, ValueEnum)]
enum HashName {
    Blake2b,
    Sha256,
}

impl Dedup {
    /// The run that is asked for.
    pub(crate) fn config(&self) -> Result<Config, Error> {
        Ok(Config {
            output: self.output.clone(),
            dry_run: self.dry_run,
            duplicates: self.duplicates.clone(),
            report: self.report.clone(),
            store: self.store_config()?,
            ..self.common.config()?
        })
    }

    fn store_config(&self) -> Result<Option<StoreConfig>, Error> {
        let Some(folder) = &self.store else { return Ok(None) };
        Ok(Some(StoreConfig {
            folder: folder.clone(),
            run_id: self.run_id.clone(),
            ttl: self.ttl,
            also: protocols(&self.also)?,
            adopt: false,
            force: self.force,
            trust_clock: self.trust_clock,
        }))
    }

    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet
            && match self.progress {
                When::Auto => io::stderr().is_terminal(),
                When::Always => true,
                When::Never => false,
            }
    }

    pub(crate) fn shows_summary(&self) -> bool {
        !self.quiet
    }
}

impl Key {
    /// The run that is asked for.
    pub(crate) fn config(&self) -> Result<Config, Error> {
        self.common.config()
    }

    pub(crate) fn text(&self) -> KeyText {
        match (self.canonical, self.long) {
            (true, _) => KeyText::Canonical,
            (_, true) => KeyText::Long,
            _ => KeyText::Key,
        }
    }
}

impl Record {
    pub(crate) fn config(&self) -> Result<Config, Error> {
        let output = Some(self.output.clone());
        Ok(Config { inputs: self.captures.clone(), output, ..Config::new(self.contract.protocol.resolve()?) })
    }

    pub(crate) fn id(&self) -> &str {
        &self.contract.id
    }
}

impl Verify {
    pub(crate) fn config(&self) -> Result<Config, Error> {
        let inputs = vec![self.captures.clone()];
        Ok(Config { inputs, ..Config::new(self.contract.protocol.resolve()?) })
    }

    pub(crate) fn id(&self) -> &str {
        &self.contract.id
    }
}

impl Explain {
    pub(crate) fn protocol(&self) -> Result<Protocol, Error> {
        self.protocol.resolve()
    }
}

fn protocols(names: &[String]) -> Result<Vec<Protocol>, Error> {
    names.iter().map(|name| Protocol::find(name)).collect()
}

impl ProtocolOptions {
    fn resolve(&self) -> Result<Protocol, Error> {
        let overrides = Overrides {
            decimals: self.decimals,
            hash: self.hash.map(|hash| match hash {
                HashName::Blake2b => Hash::Blake2b,
                HashName::Sha256 => Hash::Sha256,
            }),
            key_bytes: self.key_bytes,
            strip: self.strip.clone(),
            no_default_strip: self.no_default_strip,
            source_crs: self.source_crs.clone(),
        };
        Protocol::find(&self.protocol)?.derive(&overrides)
    }
}

impl Common {
    fn config(&self) -> Result<Config, Error> {
        let defaults = Config::new(self.protocol.resolve()?);
        Ok(Config {
            inputs: self.inputs.clone(),
            rejects: self.rejects.clone(),
            threads: self.threads,
            mmap: !self.no_mmap,
            batch_bytes: self.batch_bytes,
            chunk_bytes: self.chunk_bytes.unwrap_or(defaults.chunk_bytes),
            ..defaults
        })
    }
}
