//! Usual lines, canonicalised as they are read, without a tape.
//!
//! In: a line. Out: its canonical form, or the word that the line has to be parsed.
//!
//! ```text
//! object(line):                                      value(line):
//!   for each member:                                   an object: see there
//!     write its name and its value(line),              an array: write `[`, its values, `]`
//!       and remember where they begin and end          a scalar: write its own bytes of the line,
//!     forget it again if it is stripped                  if they are canonical; of a number that
//!   sort what is remembered by name                      is not so usual, write the double
//!   if it stood in another order, write it anew
//! ```
//!
//! # Why it is exact
//!
//! This reads JSON as RFC 8259 has it, and nothing else. Whatever is unusual (most escapes, `NaN`, a repeated
//! name, a `crs` member, a fault) makes the line one to be parsed, so there is one authority on it. A scalar's
//! own bytes are copied only if every rule for it is checked here: a string without escapes is its own canonical
//! form, and a decimal of at most 15 digits is the shortest one of its double (see [`number`](crate::number)),
//! so where it has no more decimals than are kept, its own text without trailing zeros is canonical.

use super::line::Line;
use super::scalar::{self, Rules, Value};
use super::text::{Mark, Text};
use crate::geometry::Geometer;
use crate::protocol::{Members, NameSet, Protocol, Scheme, Separators, Settings};

/// Longer lines are rare, and take buffers as long as they are.
const BYTES_MAX: usize = 1 << 20;
/// What nests deeper is parsed.
const DEPTH_MAX: usize = 64;
/// After so many lines in a row that had to be parsed, one in as many is tried, at least.
const RESTING_MAX: u32 = 64;

/// What a worker needs to canonicalise usual lines.
pub(super) struct Direct {
    style: Style,
    line: Line,
    /// What has been written of the line.
    text: Text,
    /// Members in their order, before they take the place of those in another.
    sorted: Text,
    /// The members of the objects that are open: each one's stand on top of its parent's.
    members: Vec<Member>,
    /// Lines to let pass, and how many that will be after the next one that is to be parsed.
    resting: u32,
    rest: u32,
}

/// How things are written.
struct Style {
    /// Whether there are lines that need no tape under this protocol.
    serves: bool,
    rules: Rules,
    strip: NameSet,
    order: Order,
    comma: Mark,
    colon: Mark,
    /// Where arrays stand in arrays, there may be a geometry that has an order of its own.
    nested_arrays: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// By bytes, which is the order of code points.
    Bytes,
    /// By UTF-16 code units: the same for names in ASCII.
    CodeUnits,
    AsWritten,
}

/// A member of an object.
#[derive(Clone, Copy)]
struct Member {
    /// The first eight bytes of the name, big-endian: decides most comparisons.
    prefix: u64,
    /// Where the name is in the line, without quotes.
    name: (u32, u32),
    /// Where name and value are in what has been written.
    text: (u32, u32),
}

impl Style {
    fn new(settings: &Settings, geometer: &Geometer) -> Self {
        let jcs = settings.scheme == Scheme::Jcs;
        let spaced = settings.separators == Separators::Spaced;
        Self {
            serves: !settings.projects() && !geometer.brings_all(),
            rules: Rules::new(settings),
            strip: settings.strip.clone(),
            order: match settings.members {
                _ if jcs => Order::CodeUnits,
                Members::Sorted => Order::Bytes,
                Members::AsWritten => Order::AsWritten,
            },
            comma: Mark::new(if spaced { b", " } else { b"," }),
            colon: Mark::new(if spaced { b": " } else { b":" }),
            nested_arrays: !geometer.is_shaped(),
        }
    }
}

impl Direct {
    pub(super) fn new(protocol: &Protocol, geometer: &Geometer) -> Self {
        Self {
            style: Style::new(protocol.settings(), geometer),
            line: Line::default(),
            text: Text::default(),
            sorted: Text::default(),
            members: Vec::new(),
            resting: 0,
            rest: 1,
        }
    }

    /// Appends the canonical form of `line`, if it is a usual one. Otherwise nothing is appended.
    #[inline]
    pub(super) fn write(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        if !self.style.serves || line.len() > BYTES_MAX {
            return false;
        }
        if self.resting > 0 {
            self.resting -= 1;
            return false;
        }
        if self.read(line).is_none() {
            self.resting = self.rest - 1;
            self.rest = (self.rest * 2).min(RESTING_MAX);
            return false;
        }
        self.rest = 1;
        out.extend_from_slice(self.text.written());
        true
    }

    fn read(&mut self, line: &[u8]) -> Option<()> {
        self.line.read(line);
        // At most a space is put after each comma and colon.
        self.text.restart(2 * line.len());
        self.members.clear();
        let start = self.line.skip_space(0);
        if self.line.byte(start) != b'{' {
            return None;
        }
        let end = self.object(start + 1, 0, false)?;
        (self.line.skip_space(end) == line.len()).then_some(())
    }

    /// Writes the value that starts at `at`; says where it ends.
    #[inline]
    fn value(&mut self, at: usize, depth: usize, in_coordinates: bool) -> Option<usize> {
        match self.line.byte(at) {
            b'{' => self.object(at + 1, depth + 1, in_coordinates),
            b'[' => self.array(at + 1, depth + 1, in_coordinates),
            _ => {
                let (value, end) = scalar::scan(&self.line, at, in_coordinates, &self.style.rules)?;
                match value {
                    Value::Copy { start, end } => self.text.copy(self.line.padded(), start, end - start),
                    Value::Double(value) => {
                        self.text.write_double(value, &self.style.rules.of_number(in_coordinates).style);
                    }
                }
                Some(end)
            }
        }
    }

    /// Writes the array of which the first element, or the end, is at `at` or after it.
    fn array(&mut self, at: usize, depth: usize, in_coordinates: bool) -> Option<usize> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.text.push(b'[');
        let mut at = self.line.skip_space(at);
        if self.line.byte(at) != b']' {
            loop {
                if self.line.byte(at) == b'[' && !self.style.nested_arrays {
                    return None;
                }
                let end = self.value(at, depth, in_coordinates)?;
                at = self.line.skip_space(end);
                match self.line.byte(at) {
                    b',' => at = self.line.skip_space(at + 1),
                    b']' => break,
                    _ => return None,
                }
                self.text.put(&self.style.comma);
            }
        }
        self.text.push(b']');
        Some(at + 1)
    }

    /// Writes the object of which the first name, or the end, is at `at` or after it.
    fn object(&mut self, at: usize, depth: usize, in_coordinates: bool) -> Option<usize> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (base, start) = (self.members.len(), self.text.len());
        self.text.push(b'{');
        let mut at = self.line.skip_space(at);
        if self.line.byte(at) != b'}' {
            loop {
                let end = self.member(at, base, depth, in_coordinates)?;
                at = self.line.skip_space(end);
                match self.line.byte(at) {
                    b',' => at = self.line.skip_space(at + 1),
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        self.put_in_order(base, start)?;
        self.text.push(b'}');
        self.members.truncate(base);
        Some(at + 1)
    }

    /// Writes the member that starts at `at`, unless it is stripped; says where it ends.
    #[inline]
    fn member(&mut self, at: usize, base: usize, depth: usize, in_coordinates: bool) -> Option<usize> {
        let Self { line, text, style, .. } = self;
        if line.byte(at) != b'"' {
            return None;
        }
        let (start, (end, is_ascii)) = (at + 1, line.next_stop(at + 1));
        // Names with escapes are parsed, and so are those that may sort in another way.
        if line.byte(end) != b'"' || !(is_ascii || style.order != Order::CodeUnits && !style.rules.ascii_only)
        {
            return None;
        }
        let name = &line.bytes()[start..end];
        // A `crs` member is for who knows reference systems; DEL is for who knows escapes.
        if name == b"crs" || style.rules.ascii_only && name.contains(&0x7F) {
            return None;
        }
        let before = text.len();
        if self.members.len() > base {
            text.put(&style.comma);
        }
        let written = text.len();
        text.copy(line.padded(), start - 1, end - start + 2);
        text.put(&style.colon);
        let prefix = line.prefix(start, end);
        let is_stripped = depth == 0 && style.strip.has_length(end - start) && { style.strip.has(name) };
        if !is_ascii && std::str::from_utf8(name).is_err() {
            return None;
        }
        let in_coordinates = in_coordinates || name == b"coordinates";
        let colon = line.skip_space(end + 1);
        if line.byte(colon) != b':' {
            return None;
        }
        let value = line.skip_space(colon + 1);
        let after = self.value(value, depth, in_coordinates)?;
        if is_stripped {
            self.text.truncate(before);
        } else {
            // Lines that are tried are short.
            let (name, text) = ((start as u32, end as u32), (written as u32, self.text.len() as u32));
            self.members.push(Member { prefix, name, text });
        }
        Some(after)
    }

    /// Brings the members of an object, whose text begins at `start`, in their order. `None` if a name is
    /// repeated.
    #[inline]
    fn put_in_order(&mut self, base: usize, start: usize) -> Option<()> {
        let Self { line, text, sorted, members, style, .. } = self;
        let members = &mut members[base..];
        let less = |one: &Member, other: &Member| {
            let name = |member: &Member| &line.bytes()[member.name.0 as usize..member.name.1 as usize];
            one.prefix.cmp(&other.prefix).then_with(|| name(one).cmp(name(other)))
        };
        let is_sorted = members.windows(2).all(|pair| less(&pair[0], &pair[1]).is_lt());
        if is_sorted {
            return Some(());
        }
        members.sort_unstable_by(less);
        if members.windows(2).any(|pair| less(&pair[0], &pair[1]).is_eq()) {
            return None;
        }
        if style.order == Order::AsWritten {
            return Some(());
        }
        sorted.restart(text.len());
        for (position, Member { text: (start, end), .. }) in members.iter().enumerate() {
            if position > 0 {
                sorted.put(&style.comma);
            }
            sorted.copy(text.padded(), *start as usize, (end - start) as usize);
        }
        // After the brace.
        text.truncate(start + 1);
        text.copy(sorted.padded(), 0, sorted.len());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages;

    fn protocol(settings: &str) -> Protocol {
        Protocol::from_toml("test", &format!("name = 'test'\n{settings}")).unwrap()
    }

    /// What becomes of `line`; `None` if it is to be parsed.
    fn write(settings: &str, line: &str) -> Option<String> {
        let protocol = protocol(settings);
        let mut out = Vec::new();
        let mut direct = Direct::new(&protocol, &Geometer::new(&protocol));
        let is_written = direct.write(line.as_bytes(), &mut out);
        assert!(is_written || out.is_empty());
        is_written.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn usual_lines_are_written_as_by_the_tape() {
        for settings in [
            "numbers.decimals = 8\nevent.strip = ['attempt', 'z']",
            "",
            "canonical = {members = 'as-written', separators = 'spaced'}",
            "numbers = {decimals = 1, where = 'coordinates'}\nevent.duplicate_names = 'reject'",
            "numbers = {integral = 'unify', negative_zero = 'fold'}",
            "canonical.scheme = 'jcs'",
            "numbers.decimals = 0\ngeometry = {identity = 'shape', crs = 'wgs84'}",
        ] {
            for line in [
                "{}",
                " {\t} \r",
                r#"{"b":[1,[],{},[{"d":1,"c":[{}]}]],"attempt":{"b":1,"a":2},"a":[true,false,null]}"#,
                r#"{"attempt":1,"z":2}"#,
                r#"{"z":1,"a":2,"attempt":3}"#,
                r#"{"abcdefgh":1,"abcdefgha":2,"abcdefg":3,"":4,"é":5}"#,
                r#"{ "coordinates" : [ 1.25 , { "x" : 2.25 } ] , "x" : 2.25 , "n" : { "coordinates" : -0.0 } }"#,
                r#"{"a":[0.0,-0.0,-0,1e5,1E-7,1.50,17.0,0.00001,123456789.123456789,1e22,900719925474099267]}"#,
                r#"{"a":"\\ \" \n","b":"\u007f"}"#.replace("\\u007f", "\u{7f}").as_str(),
            ] {
                let protocol = protocol(settings);
                let mut expected = Vec::new();
                stages::canonical_exactly(&protocol, line.as_bytes(), &mut expected).unwrap();
                let expected = String::from_utf8(expected).unwrap();
                let written = write(settings, line);
                let may_be_parsed = settings.contains("jcs") && !line.is_ascii()
                    || settings.contains("shape") && line.contains("[[")
                    || line.contains(",[");
                assert!(written.is_some() || may_be_parsed, "{settings}: {line}");
                assert_eq!(written.unwrap_or(expected.clone()), expected, "{settings}: {line}");
            }
        }
    }

    #[test]
    fn whatever_is_unusual_is_parsed() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(65), "]".repeat(65));
        for line in [
            "",
            "[]",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1"b":2}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":1}}"#,
            r#"{"a":1} x"#,
            "{\"a\":1}\0",
            r#"{'a':1}"#,
            r#"{"a":01}"#,
            r#"{"a":NaN}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u00e9"}"#,
            r#"{"\u0061":1}"#,
            "{\"a\":\"\t\"}",
            r#"{"a":1,"a":2}"#,
            r#"{"b":1,"a":{"c":1,"b":2,"c":3}}"#,
            r#"{"crs":null}"#,
            r#"{"a":[{"crs":1}]}"#,
            deep.as_str(),
        ] {
            assert_eq!(write("", line), None, "{line}");
        }
        assert_eq!(write("geometry.identity = 'shape'", r#"{"a":[[1]]}"#), None);
        assert_eq!(write("canonical.non_ascii = 'escape'", r#"{"a":"é"}"#), None);
        assert_eq!(write("canonical.non_ascii = 'escape'", r#"{"é":1}"#), None);
        assert_eq!(write("event.add = {a = 1}", "{}"), None, "what is put in is another's affair");
    }

    #[test]
    fn a_feed_of_unusual_lines_is_left_alone_most_of_the_time() {
        let protocol = protocol("");
        let mut direct = Direct::new(&protocol, &Geometer::new(&protocol));
        let mut out = Vec::new();
        let mut tried = 0;
        for _ in 0..10_000 {
            tried += u32::from(direct.resting == 0);
            assert!(!direct.write(br#"{"a":"\/"}"#, &mut out));
        }
        assert!(tried < 200, "{tried} of 10,000 lines were tried");
        assert!((0..100).any(|_| direct.write(b"{}", &mut out)), "usual lines are found again");
    }
}
