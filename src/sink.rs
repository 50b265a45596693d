//! A file that is written to from its start, and what is known of what was written.

use std::fs::File;
use std::io::{self, IoSlice, Write};

use twox_hash::xxhash3_128;

use crate::hint;

/// The most slices that one system call takes (`IOV_MAX` on Linux and macOS).
const SLICES_MAX: usize = 1024;

/// So much is written before its way to the disk begins: enough for one long transfer, and little
/// beside what a run writes.
const WRITE_BACK_BYTES: u64 = 8 << 20;

pub(crate) struct Sink {
    file: File,
    bytes: u64,
    /// How many of the bytes are on their way to the disk; `None` where the system decides when.
    sent: Option<u64>,
    /// `None` where nobody asks for it.
    checksum: Option<xxhash3_128::Hasher>,
}

impl Sink {
    pub(crate) fn new(file: File) -> Self {
        Self { file, bytes: 0, sent: None, checksum: None }
    }

    /// What is written goes to the disk while more is computed, so that little is left to wait for at the end.
    pub(crate) fn with_early_write_back(self) -> Self {
        Self { sent: Some(0), ..self }
    }

    pub(crate) fn with_checksum(self) -> Self {
        Self { checksum: Some(xxhash3_128::Hasher::new()), ..self }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The file, how many bytes were written, and their checksum.
    pub(crate) fn into_parts(self) -> (File, u64, Option<u128>) {
        (self.file, self.bytes, self.checksum.map(|checksum| checksum.finish_128()))
    }

    fn note(&mut self, written: &[u8]) {
        self.bytes += written.len() as u64;
        if let Some(checksum) = &mut self.checksum {
            checksum.write(written);
        }
        if let Some(sent) = &mut self.sent {
            // Whole steps only: a page that is sent half full is written twice.
            while self.bytes - *sent >= WRITE_BACK_BYTES {
                hint::start_write_back(&self.file, *sent, WRITE_BACK_BYTES);
                *sent += WRITE_BACK_BYTES;
            }
        }
    }

    /// Writes all slices with as few system calls as there can be.
    pub(crate) fn write_slices(&mut self, slices: &[&[u8]]) -> io::Result<()> {
        let mut buffers = Vec::with_capacity(slices.len().min(SLICES_MAX));
        for group in slices.chunks(SLICES_MAX) {
            buffers.clear();
            // A call with nothing to write would seem to have failed.
            buffers.extend(group.iter().filter(|slice| !slice.is_empty()).map(|slice| IoSlice::new(slice)));
            let mut rest = &mut buffers[..];
            while !rest.is_empty() {
                match self.write_vectored(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => IoSlice::advance_slices(&mut rest, written),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.note(&bytes[..written]);
        Ok(written)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.file.write_vectored(slices)?;
        let mut left = written;
        for slice in slices {
            let part = left.min(slice.len());
            self.note(&slice[..part]);
            left -= part;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
