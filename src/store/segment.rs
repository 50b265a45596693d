//! Segments: sorted keys in immutable files. `docs/store-format.md` draws them byte by byte.
//!
//! In: keys in increasing order. Out: a file, and later its keys again, block by block, each checked.

use std::io;
use std::path::{Path, PathBuf};

use twox_hash::{XxHash3_64, xxhash3_128};

use super::disk::{Disk, DiskFile, ReadAt};
use crate::error::Error;
use crate::key::ShortKey;

const MAGIC: &[u8; 8] = b"1stseen\n";
const END_MAGIC: &[u8; 8] = b"1stend.\n";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 96;
const FOOTER_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 8;
/// Records of a block.
pub(super) const BLOCK_RECORDS: usize = 4096;
const KEY_BYTES: usize = 16;
const DATED_KEY_BYTES: usize = 24;

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) store: [u8; 16],
    pub(super) protocol: [u8; 16],
    /// Zeros in a merged segment.
    pub(super) run: [u8; 16],
    /// Claim times.
    pub(super) latest: u64,
    pub(super) earliest: u64,
    pub(super) keys: u64,
    /// Whether each key has a claim time of its own.
    pub(super) dated: bool,
}

/// What is known of a segment that was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Written {
    pub(super) bytes: u64,
    pub(super) checksum: u128,
}

impl Header {
    fn record_bytes(&self) -> usize {
        if self.dated { DATED_KEY_BYTES } else { KEY_BYTES }
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = after;
        };
        put(MAGIC);
        put(&VERSION.to_le_bytes());
        put(&(self.record_bytes() as u32).to_le_bytes());
        put(&self.store);
        put(&self.protocol);
        put(&self.run);
        put(&self.latest.to_le_bytes());
        put(&self.earliest.to_le_bytes());
        put(&self.keys.to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[..HEADER_BYTES - CHECKSUM_BYTES]);
        bytes[HEADER_BYTES - CHECKSUM_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, String> {
        let long = |at: usize| u64::from_le_bytes(field(bytes, at));
        let short = |at: usize| u32::from_le_bytes(field(bytes, at));
        if bytes[..8] != MAGIC[..] {
            return Err("it does not begin as a segment does".to_owned());
        }
        if short(8) != VERSION {
            return Err(format!(
                "it has version {} of the format; this program knows version {VERSION}",
                short(8)
            ));
        }
        if XxHash3_64::oneshot(&bytes[..HEADER_BYTES - CHECKSUM_BYTES]) != long(HEADER_BYTES - CHECKSUM_BYTES)
        {
            return Err("the checksum of the header is wrong".to_owned());
        }
        let dated = match short(12) as usize {
            KEY_BYTES => false,
            DATED_KEY_BYTES => true,
            other => return Err(format!("records cannot have {other} bytes")),
        };
        Ok(Self {
            store: field(bytes, 16),
            protocol: field(bytes, 32),
            run: field(bytes, 48),
            latest: long(64),
            earliest: long(72),
            keys: long(80),
            dated,
        })
    }

    fn blocks(&self) -> u64 {
        self.keys.div_ceil(BLOCK_RECORDS as u64)
    }

    /// The length that the whole file has.
    fn file_bytes(&self) -> Option<u64> {
        let records = self.keys.checked_mul(self.record_bytes() as u64)?;
        records.checked_add(self.blocks() * CHECKSUM_BYTES as u64 + (HEADER_BYTES + FOOTER_BYTES) as u64)
    }
}

/// The bytes of a field. `at` is where one is that the format has.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Writes a segment, and brings it to disk. Keys must come in increasing order, as many as the header says;
/// claim times are written if it is dated.
pub(super) fn write(
    mut file: Box<dyn DiskFile>,
    header: &Header,
    records: impl Iterator<Item = (ShortKey, u64)>,
) -> io::Result<Written> {
    let mut checksum = xxhash3_128::Hasher::new();
    let mut bytes = 0;
    let mut put = |part: &[u8]| {
        checksum.write(part);
        bytes += part.len() as u64;
        file.write_all(part)
    };
    put(&header.encode())?;
    let mut block = Vec::with_capacity(BLOCK_RECORDS * header.record_bytes() + CHECKSUM_BYTES);
    let mut records = records.peekable();
    while records.peek().is_some() {
        block.clear();
        for (key, claimed) in records.by_ref().take(BLOCK_RECORDS) {
            block.extend_from_slice(&key);
            if header.dated {
                block.extend_from_slice(&claimed.to_le_bytes());
            }
        }
        let sum = XxHash3_64::oneshot(&block);
        block.extend_from_slice(&sum.to_le_bytes());
        put(&block)?;
    }
    put(END_MAGIC)?;
    let length = header.file_bytes().unwrap_or(u64::MAX);
    put(&length.to_le_bytes())?;
    let whole = checksum.finish_128();
    file.write_all(&whole.to_be_bytes())?;
    // A header that counts other keys than there were would make a segment that nobody can read.
    if bytes + 16 != length {
        return Err(io::Error::other("a segment has not the keys that its header counts"));
    }
    file.finish()?;
    Ok(Written { bytes: length, checksum: whole })
}

/// A segment that is being read.
pub(super) struct Segment {
    path: PathBuf,
    file: Box<dyn ReadAt>,
    pub(super) header: Header,
}

impl Segment {
    /// Opens a segment that must have that length and checksum, and be of that store.
    pub(super) fn open(
        disk: &dyn Disk,
        path: &Path,
        store: [u8; 16],
        written: Written,
    ) -> Result<Self, Error> {
        let damaged = |reason: String| Error::Damaged { path: path.display().to_string(), reason };
        let read = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => damaged("it is missing, and the manifest lists it".to_owned()),
            io::ErrorKind::UnexpectedEof => damaged("it ends too soon".to_owned()),
            _ => Error::io("read", path.display().to_string())(error),
        };
        let file = disk.open(path).map_err(read)?;
        let length = file.length().map_err(read)?;
        if length != written.bytes {
            return Err(damaged(format!("it has {length} bytes, where {} were written", written.bytes)));
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).map_err(read)?;
        let header = Header::decode(&bytes).map_err(damaged)?;
        let mut footer = [0; FOOTER_BYTES];
        file.read_exact_at(&mut footer, length - FOOTER_BYTES as u64).map_err(read)?;
        let says_length =
            header.file_bytes() == Some(length) && u64::from_le_bytes(field(&footer, 8)) == length;
        if footer[..8] != END_MAGIC[..] || !says_length {
            return Err(damaged("the footer is wrong".to_owned()));
        }
        if u128::from_be_bytes(field(&footer, 16)) != written.checksum {
            return Err(damaged("its checksum is not the one that the manifest lists".to_owned()));
        }
        if header.store != store {
            return Err(damaged("it is a segment of another store".to_owned()));
        }
        Ok(Self { path: path.to_owned(), file, header })
    }

    pub(super) fn blocks(&self) -> u64 {
        self.header.blocks()
    }

    /// Reads a block and checks it; `each` gets its keys and their claim times, in increasing order.
    pub(super) fn read_block(
        &self,
        block: u64,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(ShortKey, u64),
    ) -> Result<(), Error> {
        let record_bytes = self.header.record_bytes();
        let first = block * BLOCK_RECORDS as u64;
        let records = (self.header.keys - first).min(BLOCK_RECORDS as u64) as usize;
        let offset = HEADER_BYTES as u64 + block * (BLOCK_RECORDS * record_bytes + CHECKSUM_BYTES) as u64;
        buffer.resize(records * record_bytes + CHECKSUM_BYTES, 0);
        let damaged = |reason: &str| Error::Damaged {
            path: self.path.display().to_string(),
            reason: format!("block {block}, at byte {offset}: {reason}"),
        };
        self.file.read_exact_at(buffer, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("the file ends too soon"),
            _ => Error::io("read", self.path.display().to_string())(error),
        })?;
        let (content, checksum) = buffer.split_at(records * record_bytes);
        if XxHash3_64::oneshot(content) != u64::from_le_bytes(field(checksum, 0)) {
            return Err(damaged("its checksum is wrong"));
        }
        let mut before: Option<ShortKey> = None;
        for record in content.chunks_exact(record_bytes) {
            let key: ShortKey = field(record, 0);
            if before.is_some_and(|before| before >= key) {
                return Err(damaged("its keys are not in order"));
            }
            before = Some(key);
            each(
                key,
                if self.header.dated { u64::from_le_bytes(field(record, 16)) } else { self.header.latest },
            );
        }
        Ok(())
    }

    /// What to say of a block that does not come after the one before.
    pub(super) fn out_of_order(&self, block: u64) -> Error {
        let reason = format!("block {block}: its keys do not come after those of the block before");
        Error::Damaged { path: self.path.display().to_string(), reason }
    }

    /// Checks all that reading a block does not: the order from block to block, and the checksum of the
    /// whole.
    pub(super) fn verify(&self) -> Result<(), Error> {
        let path = || self.path.display().to_string();
        let mut buffer = Vec::new();
        let mut last: Option<ShortKey> = None;
        for block in 0..self.blocks() {
            let mut first = None;
            let before = last;
            self.read_block(block, &mut buffer, |key, _| {
                first.get_or_insert(key);
                last = Some(key);
            })?;
            if before.is_some() && before >= first {
                return Err(self.out_of_order(block));
            }
        }
        let length = self.file.length().map_err(Error::io("read", path()))?;
        let mut checksum = xxhash3_128::Hasher::new();
        let mut at = 0;
        buffer.resize(1 << 20, 0);
        while at < length - 16 {
            let part = &mut buffer[..(length - 16 - at).min(1 << 20) as usize];
            self.file.read_exact_at(part, at).map_err(Error::io("read", path()))?;
            checksum.write(part);
            at += part.len() as u64;
        }
        let mut footer = [0; 16];
        self.file.read_exact_at(&mut footer, length - 16).map_err(Error::io("read", path()))?;
        if checksum.finish_128() != u128::from_be_bytes(footer) {
            return Err(Error::Damaged {
                path: path(),
                reason: "the checksum of the whole file is wrong".to_owned(),
            });
        }
        Ok(())
    }
}
