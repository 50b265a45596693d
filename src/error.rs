//! What can go wrong, and where.
//!
//! Bad *data* is an [`Invalid`]: a [`Reason`] and the byte column at which the line stops being an
//! event. The caller decides whether it is collected or ends the run. A bad *environment* is an
//! [`Error`], and always ends the run.

use std::fmt;
use std::io;

use crate::{DEPTH_MAX, LINE_BYTES_MAX};

/// Why a line is no event.
///
/// The name of a reason ([`Reason::name`]) is what reports count by, so it does not change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The bytes are not UTF-8 (RFC 3629), or encode a surrogate.
    InvalidUtf8,
    /// The line holds JSON that is no object, or no JSON at all.
    NotAnObject,
    /// A value was expected (RFC 8259, section 3).
    ExpectedValue,
    /// A member name in double quotes was expected (RFC 8259, section 4).
    ExpectedName,
    /// The colon between a member's name and value is missing.
    ExpectedColon,
    /// After an element, neither a comma nor the closing bracket.
    ExpectedComma,
    /// A number that RFC 8259, section 6, does not allow, such as `01`, `1.` or `-`.
    MalformedNumber,
    /// An unescaped character below U+0020 in a string (RFC 8259, section 7).
    ControlCharacter,
    /// A backslash before anything but `"\/bfnrtu`, or `\u` without four hexadecimal digits.
    InvalidEscape,
    /// An escaped surrogate without its other half, in a part of the event that is hashed: it has
    /// no UTF-8 form.
    LoneSurrogate,
    /// The line ends inside the event.
    UnexpectedEnd,
    /// Something other than white space follows the event.
    TrailingCharacters,
    /// Two members of one object have one name, and the protocol rejects that.
    DuplicateName,
    /// A number is `NaN`, infinite, or past the range of a double, and the protocol rejects that.
    NonFinite,
    /// A selected value's parent is no object and not falsy either.
    NoMembers,
    /// A selected value is none that its transform takes: which member, transform and value, in words.
    Untransformable(Box<str>),
    /// A `crs` member names no system that coordinates can be brought from: what it names, in words.
    UnknownCrs(Box<str>),
    /// Coordinates that are no positions, or that a point on the earth does not have.
    Unprojectable,
    /// More than [`DEPTH_MAX`] objects and arrays inside each other.
    TooDeep,
}

impl Reason {
    /// The stable name for reports, in snake case.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "invalid_utf8",
            Self::NotAnObject => "not_an_object",
            Self::ExpectedValue => "expected_value",
            Self::ExpectedName => "expected_name",
            Self::ExpectedColon => "expected_colon",
            Self::ExpectedComma => "expected_comma",
            Self::MalformedNumber => "malformed_number",
            Self::ControlCharacter => "control_character",
            Self::InvalidEscape => "invalid_escape",
            Self::LoneSurrogate => "lone_surrogate",
            Self::UnexpectedEnd => "unexpected_end",
            Self::TrailingCharacters => "trailing_characters",
            Self::DuplicateName => "duplicate_name",
            Self::NonFinite => "non_finite",
            Self::NoMembers => "no_members",
            Self::Untransformable(_) => "untransformable",
            Self::UnknownCrs(_) => "unknown_crs",
            Self::Unprojectable => "unprojectable",
            Self::TooDeep => "too_deep",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidUtf8 => "invalid UTF-8",
            Self::NotAnObject => "not a JSON object",
            Self::ExpectedValue => "expected a JSON value",
            Self::ExpectedName => "expected a member name in double quotes",
            Self::ExpectedColon => "expected `:` after a member name",
            Self::ExpectedComma => "expected `,` or a closing bracket",
            Self::MalformedNumber => "malformed number",
            Self::ControlCharacter => "control character in string",
            Self::InvalidEscape => "invalid escape in string",
            Self::LoneSurrogate => "lone surrogate in string",
            Self::UnexpectedEnd => "the line ends inside the event",
            Self::TrailingCharacters => "characters after the event",
            Self::DuplicateName => "repeated member name",
            Self::NonFinite => "number that is not finite",
            Self::NoMembers => "a selected value's parent is no object",
            Self::Untransformable(words) | Self::UnknownCrs(words) => words,
            Self::Unprojectable => "coordinates that cannot be brought to longitude and latitude",
            Self::TooDeep => return write!(f, "nested deeper than {DEPTH_MAX} levels"),
        })
    }
}

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong.
    pub reason: Reason,
    /// The byte column of the fault, counted from 1 at the start of the line.
    pub byte: usize,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.byte, self.reason)
    }
}

impl std::error::Error for Invalid {}

/// Anything that ends a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A line is no event, and invalid lines are not collected.
    Event {
        /// The input's name.
        source: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it, and at which byte.
        invalid: Invalid,
    },
    /// A line is longer than [`LINE_BYTES_MAX`].
    LineTooLong {
        /// The input's name.
        source: String,
        /// The line, counted from 1.
        line: u64,
    },
    /// The operating system refused something.
    Io {
        /// What was being done, as "cannot …" goes on: `read`, `create`, `write`.
        action: &'static str,
        /// The file's name.
        path: String,
        /// The system's reason.
        error: io::Error,
    },
    /// A compressed input is damaged, cut short, or followed by something else.
    Compressed {
        /// The input's name.
        source: String,
        /// The decoder's reason.
        error: io::Error,
    },
    /// A mapped input became shorter while it was read.
    Shrunk {
        /// The input's name.
        source: String,
    },
    /// An input was written to while it was read, and not only at its end.
    Rewritten {
        /// The input's name.
        source: String,
    },
    /// The reader of an output went away, as `head` does. Nothing needs to be said about it.
    BrokenPipe,
    /// The request itself cannot be carried out.
    Usage(String),
    /// A protocol's settings are not valid.
    Protocol {
        /// The protocol's name, or the option that changes it.
        name: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// A protocol file is not valid.
    ProtocolFile {
        /// The file's name.
        source: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// A file of a store is damaged or missing.
    Damaged {
        /// The file's name.
        path: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// What a committed run published is not there as it was written.
    OutputLost {
        /// The file's name.
        path: String,
        /// The run.
        run: String,
        /// What is wrong.
        reason: String,
    },
    /// Another run is writing to the store.
    StoreBusy {
        /// The store's name.
        store: String,
        /// Who that is.
        holder: String,
    },
    /// A store holds keys of another protocol.
    OtherProtocol {
        /// The store's name.
        store: String,
        /// The protocol whose keys it holds, by name and fingerprint.
        known: String,
        /// The protocol of the run.
        used: String,
    },
    /// A thread ended without finishing its work: a defect in this program.
    ThreadLost(&'static str),
}

impl Error {
    /// An [`Error::Io`], ready for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Io { action, path, error },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { source, line, invalid } => {
                write!(f, "{source}:{line}:{}: {}", invalid.byte, invalid.reason)
            }
            Self::LineTooLong { source, line } => write!(
                f,
                "{source}:{line}: the line is longer than {} MiB, the most that an event may have",
                LINE_BYTES_MAX >> 20
            ),
            Self::Io { action, path, error } => write!(f, "cannot {action} {path}: {}", describe(error)),
            Self::Compressed { source, error } => match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    write!(f, "{source}: the compressed data is cut short; fetch the file again")
                }
                _ => write!(f, "{source}: the compressed data is damaged: {}", describe(error)),
            },
            Self::Shrunk { source } => write!(
                f,
                "{source}: the file became shorter while it was read; run again when nothing writes to it"
            ),
            Self::BrokenPipe => f.write_str("the reader of the output has gone"),
            Self::Usage(message) => f.write_str(message),
            Self::Protocol { name, reason } => write!(f, "protocol {name}: {reason}"),
            Self::ProtocolFile { source, line, reason } => write!(f, "{source}:{line}: {reason}"),
            Self::Rewritten { source } => {
                write!(f, "{source}: was rewritten while it was read; run again when nothing writes to it")
            }
            Self::Damaged { path, reason } => write!(
                f,
                "{path}: {reason}; bring it back from a backup, or make the store anew with `firstseen store rebuild`"
            ),
            Self::OutputLost { path, run, reason } => write!(
                f,
                "{path}: {reason}; run `{run}` is committed, so what it held comes no more: bring the file back, or, \
                 if it had events, make the store anew without it with `firstseen store rebuild`"
            ),
            Self::StoreBusy { store, holder } => write!(f, "{store}: in use by {holder}"),
            Self::OtherProtocol { store, known, used } => write!(
                f,
                "{store}: holds keys of {known}, and this run is under {used}; `firstseen compare` says what would become of \
                 the keys, --also FILE uses both, `firstseen store drop-protocol` forgets the old ones"
            ),
            Self::ThreadLost(which) => {
                write!(f, "the {which} thread ended early; this is a defect, please report it")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } | Self::Compressed { error, .. } => Some(error),
            Self::Event { invalid, .. } => Some(invalid),
            _ => None,
        }
    }
}

/// The system's words for an error, without Rust's "(os error N)".
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A text as it is, or as JSON if it would do something to a terminal.
pub(crate) fn printable(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f"),
        false => text.to_owned(),
    }
}
