//! One event, from where a command line says that it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::LINE_BYTES_MAX;
use crate::error::Error;
use crate::exact::ExactParser;
use crate::input::{self, Message, ReadOptions, Source};
use crate::meter::Meter;
use crate::split;

const BATCH_BYTES: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The bytes of the event that `name` says: a file that holds one event, on one line or on several;
/// `FILE:LINE`, a line of a file, counted from 1; or `-`, standard input. gzip and zstd are told by content.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, and [`Error::Usage`] if there is no such line, or no line is named and
/// there are several.
pub fn read_event(name: &str) -> Result<Vec<u8>, Error> {
    let line = match name.rsplit_once(':') {
        Some((file, line)) if !Path::new(name).exists() => line.parse().ok().map(|line: u64| (file, line)),
        _ => None,
    };
    match line {
        Some((file, line)) => read_line(file, line),
        None => read_whole(name),
    }
}

fn read_line(file: &str, wanted: u64) -> Result<Vec<u8>, Error> {
    let mut line = 0;
    let mut found = None;
    for_each_batch(file, &mut |batch| {
        for place in split::lines(batch, 0..batch.len()) {
            line += 1;
            if line == wanted {
                found = Some(place.of(batch).to_vec());
            }
        }
        found.is_none()
    })?;
    found.ok_or_else(|| Error::Usage(format!("{file}: there is no line {wanted}; the last one is {line}")))
}

fn read_whole(name: &str) -> Result<Vec<u8>, Error> {
    let mut event = Vec::new();
    for_each_batch(name, &mut |batch| {
        event.extend_from_slice(batch);
        event.len() <= LINE_BYTES_MAX
    })?;
    let lines = split::lines(&event, 0..event.len()).filter(|line| !split::is_blank(line.of(&event))).count();
    if event.len() > LINE_BYTES_MAX || (lines > 1 && ExactParser::default().parse(&event).is_err()) {
        let which = if name == "-" { "give one" } else { "name one, as FILE:LINE" };
        return Err(Error::Usage(format!("{name}: there is more than one line, and not one event; {which}")));
    }
    while event.last() == Some(&b'\n') {
        event.pop();
    }
    Ok(event)
}

/// Calls `each` with the whole lines of an input, batch by batch, until it says that that is enough.
fn for_each_batch(name: &str, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
    let sources: Arc<[Source]> = input::resolve(&[PathBuf::from(name)])?.into();
    let options = ReadOptions { mmap: false, batch_bytes: BATCH_BYTES };
    let batches = input::spawn_reader(&sources, options, &Arc::new(Meter::default()));
    loop {
        match batches.recv() {
            Ok(Message::Batch(batch)) => {
                let marked = batch.first && batch.bytes.starts_with(BYTE_ORDER_MARK);
                let start = if marked { BYTE_ORDER_MARK.len() } else { 0 };
                if !each(&batch.bytes[start..]) {
                    return Ok(());
                }
            }
            Ok(Message::Failed(error)) => return Err(error),
            Ok(Message::End) => return Ok(()),
            Err(_) => return Err(Error::ThreadLost("input")),
        }
    }
}
