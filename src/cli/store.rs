//! `firstseen store`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use firstseen::store::{self, KeyFormat};
use firstseen::{Config, Error, Meter, Protocol, StoreConfig, thousands};

use super::{ProtocolOptions, protocols};
use crate::{print, warn};

#[derive(Subcommand)]
pub(crate) enum StoreCommand {
    /// Print what a store holds: protocols, runs, keys, ages.
    Info {
        /// The store's folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Check every checksum of a store, and the order of its keys.
    ///
    /// Exit codes: 0 all is whole, 2 something is damaged or missing.
    Verify {
        /// The store's folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Check the outputs of all its runs, too.
        #[arg(long)]
        outputs: bool,
    },
    /// Print the keys of a protocol, sorted, in hexadecimal digits: their first 16 bytes, or zeros after a shorter key.
    Export {
        /// The store's folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The protocol, by the name that the store knows it by, or by fingerprint.
        #[arg(long, value_name = "NAME", default_value = "geojson-v1")]
        protocol: String,
        /// Print the time when each was claimed, after a tab.
        #[arg(long, conflicts_with = "raw")]
        times: bool,
        /// Write 16 bytes for each key.
        #[arg(long)]
        raw: bool,
    },
    /// Add keys, one a line in hexadecimal digits: whole, or their first 16 bytes, as `export` prints them.
    #[command(
        after_help = "Keys that the store has keep their claims; the others are claimed at the time of the import, \
                            or at the time that --times reads: with --ttl, they are forgotten that long after it."
    )]
    Import {
        /// The store's folder; it is made if there is none.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The file of keys; - is standard input.
        #[arg(value_name = "FILE")]
        keys: PathBuf,
        /// Lines are as `export --times` prints them: keys were claimed at the time after the tab. Without this, a tab
        /// and what follows do not count.
        #[arg(long)]
        times: bool,
        #[command(flatten)]
        protocol: ProtocolOptions,
    },
    /// Merge the segments of a store.
    Compact {
        /// The store's folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Drop keys that were claimed longer ago.
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        ttl: Option<Duration>,
        /// The clock is right, though it is more than a year ahead of the last run.
        #[arg(long)]
        trust_clock: bool,
    },
    /// Make a store from what earlier runs have published.
    #[command(
        after_help = "The keys are claimed at the time of the rebuild: with --ttl, they are forgotten that long \
                            after it. The store does not know the runs of before; a run whose output is there is \
                            refused."
    )]
    Rebuild {
        /// The folder of the new store.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Published outputs: files and directories.
        #[arg(long, value_name = "OUTPUT", required = true, num_args = 1..)]
        from: Vec<PathBuf>,
        /// Remember the keys under the protocol FILE, too.
        #[arg(long, value_name = "FILE")]
        also: Vec<String>,
        #[command(flatten)]
        protocol: ProtocolOptions,
    },
    /// Forget a protocol that is no longer used, and its keys.
    DropProtocol {
        /// The store's folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The protocol, by the name that the store knows it by, or by fingerprint.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

impl StoreCommand {
    pub(crate) fn run(&self) -> Result<(), Error> {
        match self {
            Self::Info { folder, json } => {
                let info = store::info(folder)?;
                // Numbers and text always have a JSON form.
                print(&if *json {
                    serde_json::to_string_pretty(&info).unwrap_or_default() + "\n"
                } else {
                    info.to_string()
                })
            }
            Self::Verify { folder, outputs } => print(&store::verify(folder, *outputs)?.to_string()),
            Self::Export { folder, protocol, times, raw } => {
                let format = match (times, raw) {
                    (true, _) => KeyFormat::Dated,
                    (_, true) => KeyFormat::Raw,
                    _ => KeyFormat::Hex,
                };
                store::export(folder, protocol, format, &mut io::stdout().lock()).map(|_| ())
            }
            Self::Import { folder, keys, times, protocol } => {
                import(folder, keys, *times, &protocol.resolve()?)
            }
            Self::Compact { folder, ttl, trust_clock } => compact(folder, *ttl, *trust_clock),
            Self::Rebuild { folder, from, also, protocol } => {
                rebuild(folder, from, protocols(also)?, protocol.resolve()?)
            }
            Self::DropProtocol { folder, name } => {
                let keys = store::open(folder, false)?.drop_protocol(name)?;
                print(&format!("dropped {} keys of {name}\n", thousands(keys)))
            }
        }
    }
}

fn import(folder: &Path, keys: &Path, times: bool, protocol: &Protocol) -> Result<(), Error> {
    let name = keys.display().to_string();
    let mut text: Box<dyn BufRead> = if name == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(keys);
        Box::new(BufReader::new(file.map_err(|error| Error::Io {
            action: "read",
            path: name.clone(),
            error,
        })?))
    };
    let (lines, new) = store::open_or_create(folder, false)?.import(protocol, &name, &mut *text, times)?;
    print(&format!("{} lines: {} new keys\n", thousands(lines), thousands(new)))
}

fn compact(folder: &Path, ttl: Option<Duration>, trust_clock: bool) -> Result<(), Error> {
    let ttl = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let mut session = store::open(folder, trust_clock)?;
    if ttl.is_some() && !session.is_clock_plausible() {
        warn(&["the clock is more than a year ahead of the last run: no key is dropped; if the clock is right, give \
                --trust-clock"
            .to_owned()]);
    }
    let (before, after) = session.compact(ttl)?;
    print(&format!("{} keys, {} before\n", thousands(after), thousands(before)))
}

/// A run that keeps the keys of all its events and writes none.
fn rebuild(folder: &Path, from: &[PathBuf], also: Vec<Protocol>, protocol: Protocol) -> Result<(), Error> {
    let store = StoreConfig {
        folder: folder.to_owned(),
        run_id: Some("rebuild".to_owned()),
        ttl: None,
        also,
        adopt: true,
        force: false,
        trust_clock: false,
    };
    let config = Config { inputs: from.to_vec(), dry_run: true, store: Some(store), ..Config::new(protocol) };
    let report = firstseen::dedup(&config, &Arc::new(Meter::default()))?;
    print(&format!("firstseen: {report}\n"))
}
