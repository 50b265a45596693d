//! The manifest: what counts in a store. `docs/store-format.md` says what it holds.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::disk::Disk;
use crate::error::Error;
use crate::protocol::ProtocolReport;

const NAME: &str = "MANIFEST";
const TEMPORARY: &str = "MANIFEST.tmp";
const MAGIC: &str = "firstseen-store 1";

/// All that counts in a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The store's id, in hexadecimal.
    pub store: String,
    /// How often a manifest was written.
    pub commits: u64,
    /// The number that the next segment has.
    pub next_segment: u64,
    /// The latest time that a run has had.
    pub clock: u64,
    /// The protocols of which there are keys.
    pub protocols: Vec<KnownProtocol>,
    /// The segments that count.
    pub segments: Vec<Listed>,
    /// The runs that committed, in order.
    pub runs: Vec<Run>,
}

/// A protocol of which a store holds keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownProtocol {
    /// Its name, for people.
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The time of its first run.
    pub since: u64,
    /// The time of the last run under it.
    pub until: u64,
    /// When keys of it were last claimed without another protocol's beside them; 0 if they never were.
    #[serde(default)]
    pub alone: u64,
}

/// A segment that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Its number, which its name has.
    pub number: u64,
    /// The fingerprint of its protocol.
    pub protocol: String,
    /// The run that wrote it; `None` if it is merged from several, or imported.
    pub run: Option<String>,
    /// The latest claim time of its keys.
    pub claimed: u64,
    /// How many keys it has.
    pub keys: u64,
    /// Its length.
    pub bytes: u64,
    /// Its checksum, in hexadecimal.
    pub checksum: String,
}

/// A run that committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What tells it from others.
    pub id: String,
    /// Its time, at which its keys are claimed.
    pub time: u64,
    /// After how many milliseconds keys were forgotten.
    pub ttl: Option<u64>,
    /// Its protocol, and then those that were also used.
    pub protocols: Vec<ProtocolReport>,
    /// What was read.
    pub inputs: Vec<Consumed>,
    /// Events that were read, and those of them that were the first of their key.
    pub events: u64,
    /// First events.
    pub unique: u64,
    /// What was written, the events last.
    pub outputs: Vec<Published>,
    /// Whether all outputs stand under their names.
    pub published: bool,
}

/// An input of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumed {
    /// Its absolute path, or what it is called.
    pub source: String,
    /// Its length on disk as far as it was read, where that is known.
    pub bytes: Option<u64>,
    /// When it had been modified, in nanoseconds since 1970, where that is known.
    #[serde(default)]
    pub modified: Option<i64>,
}

/// An output of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Where it stands when it is published.
    pub path: PathBuf,
    /// Where it stands before.
    pub temporary: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its checksum, in hexadecimal.
    pub checksum: String,
}

/// How writing a manifest failed.
pub(super) enum Uncommitted {
    /// The old one stands.
    Before(Error),
    /// Nobody knows which one will stand after a crash.
    Unknown(Error),
}

impl Uncommitted {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Before(error) | Self::Unknown(error) => error,
        }
    }
}

impl Manifest {
    pub(super) fn new(store: [u8; 16]) -> Self {
        Self {
            store: hex(&store),
            commits: 0,
            next_segment: 1,
            clock: 0,
            protocols: Vec::new(),
            segments: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// The manifest of a store; `None` if there is no file of that name.
    pub(super) fn read(disk: &dyn Disk, folder: &Path) -> Result<Option<Self>, Error> {
        let path = Self::path(folder);
        let name = path.display().to_string();
        let file = match disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::io("read", &name))?,
        };
        let length = file.length().map_err(Error::io("read", &name))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", &name))?;
        let damaged = |reason: &str| Error::Damaged { path: name.clone(), reason: reason.to_owned() };
        let end =
            bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| damaged("it has no first line"))?;
        let (line, document) = (&bytes[..end], &bytes[end + 1..]);
        let line = std::str::from_utf8(line).map_err(|_| damaged("its first line is not text"))?;
        let Some(rest) = line.strip_prefix(MAGIC) else {
            return Err(match line.starts_with("firstseen-store ") {
                true => Error::Usage(format!(
                    "{name}: has another version of the format than this program knows; use the firstseen that wrote it, or, if it is damaged, a backup"
                )),
                false => damaged("it does not begin as a manifest does"),
            });
        };
        if rest != format!(" {} {:032x}", document.len(), XxHash3_128::oneshot(document)) {
            return Err(damaged("its length or checksum is wrong"));
        }
        serde_json::from_slice(document)
            .map(Some)
            .map_err(|error| damaged(&format!("it cannot be read: {error}")))
    }

    /// Writes the manifest in place of the one before: the commit point of whatever it says.
    pub(super) fn write(&mut self, disk: &dyn Disk, folder: &Path) -> Result<(), Uncommitted> {
        let (path, temporary) = (Self::path(folder), folder.join(TEMPORARY));
        self.commits += 1;
        // Numbers and text always have a JSON form; a path that is not UTF-8 has been refused.
        let document = serde_json::to_vec_pretty(self).unwrap_or_default();
        let line = format!("{MAGIC} {} {:032x}\n", document.len(), XxHash3_128::oneshot(&document));
        let prepared = disk.create(&temporary).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.write_all(&document)?;
            file.finish()
        });
        let renamed = prepared.and_then(|()| disk.rename(&temporary, &path));
        renamed
            .map_err(|error| Uncommitted::Before(Error::io("write", path.display().to_string())(error)))?;
        disk.sync_folder(folder).map_err(|error| {
            Uncommitted::Unknown(Error::io("bring to disk", folder.display().to_string())(error))
        })
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits, if there are as many.
pub(super) fn unhex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N || !digits.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok().filter(|_| !pair.starts_with('+'))?;
    }
    Some(bytes)
}
