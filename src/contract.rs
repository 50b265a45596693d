//! Key contracts: which delivery claimed which key first, recorded and verified.
//!
//! In: captures, which are inputs as for any run. [`record`] writes each key with the id of the first
//! delivery that claimed it; [`verify`] makes the keys again, and says what is not as recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::analyse::{Analyst, KeyText, Product};
use crate::config::Config;
use crate::error::{Error, Invalid, printable};
use crate::input::{self, Message, ReadOptions, Source};
use crate::meter::Meter;
use crate::output::{Output, publish};
use crate::parse::Parser;
use crate::project::text_at;
use crate::protocol::Pointer;
use crate::protocol::ProtocolReport;
use crate::tally::Tally;

/// Captures are small; a batch of them need not keep many workers busy.
const BATCH_BYTES: usize = 4 << 20;

/// What a record file holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    keys: Keys,
    protocol: ProtocolReport,
}

/// Each key, and the id of the delivery that claimed it first.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Keys(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of keys and ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Keys, A::Error> {
        let mut keys = BTreeMap::new();
        while let Some((key, id)) = entries.next_entry::<String, Value>()? {
            let named = printable(&key);
            let id = match id {
                Value::String(text) => text,
                // Deliveries may be numbered.
                Value::Number(number) => number.to_string(),
                _ => return Err(A::Error::custom(format!("what stands for the id of `{named}` is none"))),
            };
            if keys.insert(key, id).is_some() {
                return Err(A::Error::custom(format!("`{named}` is there twice")));
            }
        }
        Ok(Keys(keys))
    }
}

/// What a verification found. It displays as lines for people.
#[derive(Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// Deliveries that were verified.
    pub deliveries: u64,
    /// The protocol of the record and the one of now, by name and fingerprint, if they differ in
    /// meaning.
    pub drift: Option<(String, String)>,
    /// Keys that are not in the record, with the first delivery that has each.
    pub new: Vec<(String, String)>,
    /// Keys of the record that no delivery has, with the delivery that had each.
    pub lost: Vec<(String, String)>,
    /// Keys with another first delivery: the recorded one, and the one of now.
    pub changed: Vec<(String, String, String)>,
}

impl Verification {
    /// Whether everything is as recorded.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.drift.is_none() && self.new.is_empty() && self.lost.is_empty() && self.changed.is_empty()
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_stable() {
            return writeln!(f, "stable {} deliveries", self.deliveries);
        }
        if let Some((recorded, now)) = &self.drift {
            writeln!(f, "protocol drift: recorded under {recorded}, verified under {now}")?;
        }
        for (key, first) in &self.new {
            writeln!(f, "new key {key} (first {})", printable(first))?;
        }
        for (key, first) in &self.lost {
            writeln!(f, "lost key {key} (was {})", printable(first))?;
        }
        for (key, recorded, now) in &self.changed {
            let (recorded, now) = (printable(recorded), printable(now));
            writeln!(f, "key {key} was first claimed by {recorded}, now by {now}")?;
        }
        Ok(())
    }
}

/// Writes the record of the captures that are the inputs of `config` to its output. `id` is a JSON
/// Pointer (RFC 6901) to what deliveries are called by; those that have nothing there are called
/// `#` and their number. Returns how many deliveries there were.
///
/// # Errors
///
/// As [`dedup`](crate::dedup), and [`Error::Usage`] if `id` is no pointer.
pub fn record(config: &Config, id: &str) -> Result<u64, Error> {
    let sources = input::resolve(&config.inputs)?;
    let compresses = |path: &Path| path.extension().is_some_and(|end| end == "gz" || end == "zst");
    if let Some(path) = config.output.as_deref().filter(|path| compresses(path)) {
        let name = path.display();
        return Err(Error::Usage(format!("{name}: a record is not compressed; give it another ending")));
    }
    let mut output = match &config.output {
        Some(path) => Output::create(path, None)?,
        None => Output::stdout()?,
    };
    output.check(&sources)?;
    let (keys, deliveries) = first_claims(config, id)?;
    let record = Record { keys: Keys(keys), protocol: ProtocolReport::of(&config.protocol) };
    // Text always has a JSON form.
    let json = serde_json::to_vec_pretty(&record).unwrap_or_default();
    output.write(&[&json, b"\n"])?;
    output.finish()?;
    publish(vec![output])?;
    Ok(deliveries)
}

/// Makes the keys of the captures that are the inputs of `config` and compares them with a record,
/// or with a bare JSON object of keys and ids. Writes nothing.
///
/// # Errors
///
/// As [`record`], and [`Error::Usage`] if the file at `recorded`, or standard input for `-`, is no record.
pub fn verify(config: &Config, id: &str, recorded: &Path) -> Result<Verification, Error> {
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if is_stdin(recorded) && config.inputs.iter().any(|input| is_stdin(input)) {
        return Err(Error::Usage("standard input is given twice; it can be read once".to_owned()));
    }
    let (Keys(want), protocol) = if is_stdin(recorded) {
        read_record("<stdin>", io::stdin().lock())?
    } else {
        let name = recorded.display().to_string();
        read_record(&name, File::open(recorded).map_err(Error::io("read", &name))?)?
    };
    let (got, deliveries) = first_claims(config, id)?;
    let now = ProtocolReport::of(&config.protocol);
    let described = |protocol: &ProtocolReport| format!("{} ({})", protocol.name, protocol.fingerprint);
    let mut found = Verification { deliveries, ..Verification::default() };
    found.drift = protocol
        .filter(|protocol| protocol.fingerprint != now.fingerprint)
        .map(|protocol| (described(&protocol), described(&now)));
    let keys: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
    for key in keys {
        match (want.get(key), got.get(key)) {
            (Some(recorded), Some(first)) if recorded != first => {
                found.changed.push((key.clone(), recorded.clone(), first.clone()));
            }
            (Some(recorded), None) => found.lost.push((key.clone(), recorded.clone())),
            (None, Some(first)) => found.new.push((key.clone(), first.clone())),
            _ => {}
        }
    }
    Ok(found)
}

fn read_record(name: &str, mut file: impl Read) -> Result<(Keys, Option<ProtocolReport>), Error> {
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(Error::io("read", name))?;
    // In a bare object of keys every value is an id.
    let has_header = serde_json::from_slice::<Value>(&text)
        .is_ok_and(|record| ["keys", "protocol"].iter().any(|part| record[part].is_object()));
    let read = if has_header {
        serde_json::from_slice(&text).map(|Record { keys, protocol }| (keys, Some(protocol)))
    } else {
        serde_json::from_slice(&text).map(|keys| (keys, None))
    };
    read.map_err(|error| {
        Error::Usage(format!(
            "{name}: no record of keys, nor a JSON object of keys and ids: {error}; write it anew with `firstseen record`"
        ))
    })
}

/// Each key and the id of the first delivery that claims it, and how many deliveries there are.
fn first_claims(config: &Config, id: &str) -> Result<(BTreeMap<String, String>, u64), Error> {
    let mut claims = BTreeMap::new();
    let mut deliveries = 0;
    for_each_delivery(config, id, |_, key, id| {
        deliveries += 1;
        claims.entry(key.to_owned()).or_insert(id);
    })?;
    Ok((claims, deliveries))
}

/// Calls `each` with the line, the key and the id of every delivery of the captures, in order.
pub(crate) fn for_each_delivery(
    config: &Config,
    id: &str,
    mut each: impl FnMut(&[u8], &str, String),
) -> Result<(), Error> {
    let pointer = Pointer::parse(id).map_err(Error::Usage)?;
    let sources: Arc<[Source]> = input::resolve(&config.inputs)?.into();
    let meter = Arc::new(Meter::default());
    let options = ReadOptions { mmap: config.mmap, batch_bytes: BATCH_BYTES };
    let batches = input::spawn_reader(&sources, options, &meter);
    let product = Product::Text(KeyText::Key);
    let analyst = Analyst::new(config, product, &meter);
    let mut tally = Tally::new(&sources, product);
    let mut parser = Parser::new();
    let mut deliveries = 0;
    loop {
        let batch = match batches.recv() {
            Ok(Message::Batch(batch)) => batch,
            Ok(Message::Failed(error)) => return Err(error),
            Ok(Message::End) => return Ok(()),
            Err(_) => return Err(Error::ThreadLost("input")),
        };
        let mut analysed = analyst.analyse(batch);
        if let Some(fault) = tally.fault(&mut analysed) {
            return Err(fault);
        }
        for chunk in &analysed.chunks {
            let keys = String::from_utf8_lossy(&chunk.text);
            for (line, key) in chunk.events.iter().zip(keys.lines()) {
                deliveries += 1;
                let line = line.of(&analysed.bytes);
                let named = parser.parse(line, |tape| Ok::<_, Invalid>(text_at(tape, &pointer)));
                each(line, key, named.ok().flatten().unwrap_or_else(|| format!("#{deliveries}")));
            }
        }
        tally.add(&analysed, &meter);
    }
}
