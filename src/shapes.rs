//! Lines of a shape seen before, canonicalised without parsing them.
//!
//! In: a line. Out: its canonical form, or the word that the line has to be parsed. A feed has few
//! serializers, and each writes the same bytes between the values of its events. A *shape* is those
//! bytes, learned from a line that was parsed.
//!
//! ```text
//! learn(line):                                  apply(shape, line):
//!   cut the line at its scalar values,            for each literal, and the value after it:
//!     so that line = l0 v0 l1 v1 … ln               the line goes on with the literal, or give up
//!   put a marker for each value: the probe          scan one scalar, or give up
//!   canonicalise the probe                        the line ends with the last literal, or give up
//!   cut the result at the markers:                for each piece of the output:
//!     the output is c0 vi c1 vj … cm                append its literal, and the canonical value
//! ```
//!
//! # Why it is exact
//!
//! Between the values of a learned line stand brackets, commas, names, colons and white space, all
//! of it well-formed. With each scalar replaced by a scalar it is well-formed again, and has the
//! same names in the same places. The canonical form depends on these, but for the values' own
//! text; the canonicaliser says itself how, by what it makes of the probe. A value counts as a
//! scalar only if every rule for it is checked here. Whatever is unusual (an escape, `NaN`, a fault)
//! makes the line one to be parsed, so there is one authority on it.
//!
//! A decimal of at most 15 digits is the shortest one of its double (see [`number`](crate::number)),
//! so where it has no more decimals than are kept, its own text without trailing zeros is canonical.

use std::ops::Range;

use crate::canonical::clean_length;
use crate::error::Invalid;
use crate::number::{NumberStyle, write_double};
use crate::protocol::{NonAscii, NonFinite, Protocol, Scheme, Where};

/// Shapes that are remembered. A feed of three serializers, with members that come and go, has about
/// a dozen.
const SHAPES_MAX: usize = 16;
/// Longer lines are arrays of varying length more often than not.
const LEARNED_BYTES_MAX: usize = 4096;
const LEARNED_VALUES_MAX: usize = 128;

/// What learning costs, in hits: a shape is to be used some times before the next one is learned.
const LEARNING_PRICE: u32 = 32;
const LEARNING_SAVINGS_MAX: u32 = 8 * LEARNING_PRICE;
/// When trying has failed about this often more than it paid, it rests for some lines.
const PATIENCE: u32 = 64;
/// A hit saves about three times what a miss costs.
const HIT_GAIN: u32 = 3;
const REST_MIN: u32 = 256;
const REST_MAX: u32 = 1 << 15;

/// The shapes that one worker remembers.
pub(crate) struct Shapes {
    rules: Rules,
    /// The last one that fitted comes first.
    known: Vec<Shape>,
    /// The values of the line that is tried.
    values: Vec<Value>,
    savings: u32,
    patience: u32,
    /// Lines to let pass, and how many that will be the next time.
    resting: u32,
    rest: u32,
}

/// What the canonical text of a scalar depends on.
#[derive(Clone, Copy)]
struct Rules {
    style: NumberStyle,
    decimals_max: usize,
    /// Integers are doubles too.
    jcs: bool,
    ascii_only: bool,
    finite_only: bool,
}

/// The bytes between values, in lines and in their canonical forms.
struct Shape {
    text: Vec<u8>,
    /// Ranges of `text`: what stands before each value of a line, and after the last.
    literals: Vec<Range<usize>>,
    /// What stands before a value of the output, and which value of the line that is.
    pieces: Vec<(Range<usize>, usize)>,
    /// What stands after the last one.
    tail: Range<usize>,
}

/// A scalar of a line, as it is to be written.
#[derive(Clone, Copy)]
enum Value {
    /// These bytes of the line are canonical.
    Copy {
        start: usize,
        end: usize,
    },
    Double(f64),
    /// The integer `-0`, which is `0`.
    Zero,
}

impl Shapes {
    pub(crate) fn new(protocol: &Protocol) -> Self {
        let settings = protocol.settings();
        let rules = Rules {
            style: NumberStyle::new(settings),
            decimals_max: settings.decimals.map_or(usize::MAX, usize::from),
            jcs: settings.scheme == Scheme::Jcs,
            ascii_only: settings.non_ascii == NonAscii::Escape,
            finite_only: settings.scheme == Scheme::Jcs || settings.non_finite == NonFinite::Reject,
        };
        // A shape does not know which of its values are coordinates, nor what is selected by value;
        // and what looks like a marker must be one.
        let has_marker = |text: &str| text.contains('\u{1}');
        let learns = settings.round_where == Where::Everywhere
            && settings.select.is_empty()
            && !settings
                .add
                .iter()
                .any(|(name, value)| has_marker(name) || value.as_str().is_some_and(has_marker));
        Self {
            rules,
            known: Vec::new(),
            values: Vec::new(),
            savings: if learns { LEARNING_SAVINGS_MAX } else { 0 },
            patience: PATIENCE,
            resting: 0,
            rest: REST_MIN,
        }
    }

    /// Appends the canonical form of `line`, if it has a known shape. Otherwise nothing is appended.
    #[inline]
    pub(crate) fn write(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        if self.resting > 0 {
            self.resting -= 1;
            return false;
        }
        // A line that nearly fits many shapes is not scanned many times.
        let mut effort_left = line.len();
        for index in 0..self.known.len() {
            match self.known[index].scan(line, &self.rules, &mut self.values) {
                Ok(()) => {
                    self.known[..=index].rotate_right(1);
                    self.known[0].write(line, &self.values, &self.rules.style, out);
                    self.patience = (self.patience + HIT_GAIN).min(PATIENCE);
                    self.rest = (self.rest / 2).max(REST_MIN);
                    self.savings = (self.savings + 1).min(LEARNING_SAVINGS_MAX);
                    return true;
                }
                Err(scanned) => effort_left = effort_left.saturating_sub(scanned),
            }
            if effort_left == 0 {
                break;
            }
        }
        self.miss();
        false
    }

    fn miss(&mut self) {
        if self.known.is_empty() && self.savings == 0 {
            return;
        }
        if self.patience > 0 {
            self.patience -= 1;
            return;
        }
        self.resting = self.rest;
        self.rest = (self.rest * 2).min(REST_MAX);
        self.patience = PATIENCE / 4;
        self.savings = self.savings.max(LEARNING_PRICE);
    }

    /// Learns the shape of a line that is an event, if it is time to. `canonicalise` appends the
    /// canonical form of a line.
    pub(crate) fn learn(
        &mut self,
        line: &[u8],
        canonicalise: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<(), Invalid>,
    ) {
        if self.resting > 0 || self.savings < LEARNING_PRICE || line.len() > LEARNED_BYTES_MAX {
            return;
        }
        self.savings -= LEARNING_PRICE;
        if let Some(shape) = Shape::learn(line, canonicalise) {
            if self.known.len() == SHAPES_MAX {
                self.known.pop();
            }
            self.known.insert(0, shape);
        }
    }
}

impl Shape {
    fn learn(
        line: &[u8],
        canonicalise: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<(), Invalid>,
    ) -> Option<Self> {
        let scalars = scalars(line)?;
        let mut shape = Self { text: Vec::new(), literals: Vec::new(), pieces: Vec::new(), tail: 0..0 };
        let mut probe = Vec::new();
        let mut at = 0;
        for (index, scalar) in scalars.iter().enumerate() {
            let literal = &line[at..scalar.start];
            shape.literals.push(append(&mut shape.text, literal));
            probe.extend_from_slice(literal);
            probe.extend_from_slice(&marker(index));
            at = scalar.end;
        }
        shape.literals.push(append(&mut shape.text, &line[at..]));
        probe.extend_from_slice(&line[at..]);

        let mut canonical = Vec::new();
        canonicalise(&probe, &mut canonical).ok()?;
        let mut rest = &canonical[..];
        while let Some(start) = memchr::memmem::find(rest, MARKER_START) {
            let after = &rest[start + MARKER_START.len()..];
            let digits = memchr::memmem::find(after, MARKER_END)?;
            let index = std::str::from_utf8(&after[..digits]).ok()?.parse().ok()?;
            scalars.get(index)?;
            shape.pieces.push((append(&mut shape.text, &rest[..start]), index));
            rest = &after[digits + MARKER_END.len()..];
        }
        shape.tail = append(&mut shape.text, rest);
        Some(shape)
    }

    /// Finds the values of a line of this shape. If it has another one, says how far it fitted.
    #[inline]
    fn scan(&self, line: &[u8], rules: &Rules, values: &mut Vec<Value>) -> Result<(), usize> {
        values.clear();
        let (last, literals) = self.literals.split_last().ok_or(0_usize)?;
        let mut at = 0;
        for literal in literals {
            let literal = &self.text[literal.clone()];
            if !line[at..].starts_with(literal) {
                return Err(at);
            }
            at += literal.len();
            let (value, end) = scan_scalar(line, at, rules).ok_or(at)?;
            values.push(value);
            at = end;
        }
        if line[at..] == self.text[last.clone()] { Ok(()) } else { Err(at) }
    }

    #[inline]
    fn write(&self, line: &[u8], values: &[Value], style: &NumberStyle, out: &mut Vec<u8>) {
        for (literal, index) in &self.pieces {
            out.extend_from_slice(&self.text[literal.clone()]);
            match values[*index] {
                Value::Copy { start, end } => out.extend_from_slice(&line[start..end]),
                Value::Double(value) => write_double(value, style, out),
                Value::Zero => out.push(b'0'),
            }
        }
        out.extend_from_slice(&self.text[self.tail.clone()]);
    }
}

fn append(text: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    let start = text.len();
    text.extend_from_slice(bytes);
    start..text.len()
}

/// A marker is a string with a control character at each end. Shapes have no names with escapes, so
/// the escape of a control character is in no canonical text but that of a marker.
const MARKER_START: &[u8] = b"\"\\u0001";
const MARKER_END: &[u8] = b"\\u0001\"";

fn marker(index: usize) -> Vec<u8> {
    [MARKER_START, index.to_string().as_bytes(), MARKER_END].concat()
}

/// Where the scalar values are in a line that is an event; `None` if it is not worth learning.
fn scalars(line: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut scalars = Vec::new();
    let mut at = 0;
    while at < line.len() && scalars.len() <= LEARNED_VALUES_MAX {
        let start = at;
        match line[at] {
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'"' => {
                at += 1;
                while *line.get(at)? != b'"' {
                    at += if line[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                let mut after = line[at..].iter().filter(|byte| !byte.is_ascii_whitespace());
                if after.next() == Some(&b':') {
                    if line[start..at].contains(&b'\\') {
                        return None;
                    }
                    continue;
                }
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
                at += line[at..].iter().position(ends)?;
            }
        }
        scalars.push(start..at);
    }
    (scalars.len() <= LEARNED_VALUES_MAX).then_some(scalars)
}

/// The scalar that starts at `at`, and where it ends; `None` for what is to be parsed.
#[inline]
fn scan_scalar(line: &[u8], at: usize, rules: &Rules) -> Option<(Value, usize)> {
    let end = match line.get(at)? {
        b'"' => scan_string(line, at, rules)?,
        b'-' | b'0'..=b'9' => return scan_number(line, at, rules),
        b't' if line[at..].starts_with(b"true") => at + 4,
        b'f' if line[at..].starts_with(b"false") => at + 5,
        b'n' if line[at..].starts_with(b"null") => at + 4,
        _ => return None,
    };
    Some((Value::Copy { start: at, end }, end))
}

/// A string without escapes is its own canonical form.
#[inline]
fn scan_string(line: &[u8], at: usize, rules: &Rules) -> Option<usize> {
    let content = &line[at + 1..];
    let length = clean_length(content);
    if content.get(length) != Some(&b'"') {
        return None;
    }
    let content = &content[..length];
    let canonical = match rules.ascii_only {
        true => content.iter().all(|byte| (0x20..0x7F).contains(byte)),
        false => content.is_ascii() || std::str::from_utf8(content).is_ok(),
    };
    canonical.then_some(at + length + 2)
}

/// A number (RFC 8259, section 6).
#[inline]
fn scan_number(line: &[u8], start: usize, rules: &Rules) -> Option<(Value, usize)> {
    let whole = start + usize::from(line[start] == b'-');
    let point = skip_digits(line, whole);
    if point == whole || (line[whole] == b'0' && point > whole + 1) {
        return None;
    }
    let mut end = point;
    if line.get(point) == Some(&b'.') {
        end = skip_digits(line, point + 1);
        if end == point + 1 {
            return None;
        }
    }
    if let Some(b'e' | b'E') = line.get(end) {
        let sign = usize::from(matches!(line.get(end + 1), Some(b'+' | b'-')));
        let digits = end + 1 + sign;
        end = skip_digits(line, digits);
        if end == digits {
            return None;
        }
        return double(&line[start..end], end, rules);
    }
    if end == point {
        if rules.jcs && end - whole > 15 {
            return double(&line[start..end], end, rules);
        }
        let value = if line[start..end] == *b"-0" { Value::Zero } else { Value::Copy { start, end } };
        return Some((value, end));
    }
    let mut significant = end;
    while significant > point + 2 && line[significant - 1] == b'0' {
        significant -= 1;
    }
    let decimals = significant - point - 1;
    let digits = point - whole + decimals;
    // Below 1e-4 the text has an exponent.
    let small = line[whole..significant].starts_with(b"0.0000");
    // So has zero a text of its own, where it may lose its sign.
    let zero = line[whole..significant] == *b"0.0";
    if digits > 15 || decimals > rules.decimals_max || small || (zero && start != whole) {
        return double(&line[start..end], end, rules);
    }
    if line[point..significant] == *b".0" && rules.style.is_integer(1.0) {
        return Some((Value::Copy { start, end: point }, end));
    }
    Some((Value::Copy { start, end: significant }, end))
}

fn double(token: &[u8], end: usize, rules: &Rules) -> Option<(Value, usize)> {
    let value: f64 = std::str::from_utf8(token).ok()?.parse().ok()?;
    (value.is_finite() || !rules.finite_only).then_some((Value::Double(value), end))
}

#[inline]
fn skip_digits(line: &[u8], mut at: usize) -> usize {
    while line.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Canonicaliser;
    use crate::parse::Parser;

    fn canonicalise(line: &[u8], out: &mut Vec<u8>) -> Result<(), Invalid> {
        let protocol = Protocol::built_in("geojson-v1").unwrap();
        Parser::new().parse(line, |tape| Canonicaliser::new(&protocol).write(tape, out))
    }

    fn having_learned(line: &str) -> Shapes {
        let mut shapes = Shapes::new(&Protocol::built_in("geojson-v1").unwrap());
        shapes.learn(line.as_bytes(), canonicalise);
        shapes
    }

    /// What becomes of `line` by the shape of `learned`; `None` if it is to be parsed.
    fn write(learned: &str, line: &str) -> Option<String> {
        let mut out = Vec::new();
        let fits = having_learned(learned).write(line.as_bytes(), &mut out);
        assert!(fits || out.is_empty());
        fits.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn lines_of_a_known_shape_are_written_without_parsing() {
        let learned = r#"{"b": [1, "x"], "attempt": 1, "a": null}"#;
        for (b, x, attempt, a) in [
            ("17", "\"é北\"", "\"anything\"", "true"),
            ("-0", "\"\"", "-0.0", "false"),
            ("123456789012345678901234567890", "\"/\u{7f}\"", "1e999", "0.1"),
            ("-17.500", "1e-7", "null", "0.000010"),
            ("40.78286500000002", "0.123456785", "[", "12345678.123456789"),
        ] {
            let line = format!("{{\"b\": [{b}, {x}], \"attempt\": {attempt}, \"a\": {a}}}");
            let mut expected = Vec::new();
            let is_event = canonicalise(line.as_bytes(), &mut expected).is_ok();
            let expected = is_event.then(|| String::from_utf8(expected).unwrap());
            assert_eq!(write(learned, &line), expected, "{line}");
        }
    }

    #[test]
    fn whatever_is_unusual_is_parsed() {
        let learned = r#"{"a":1,"b":"x"}"#;
        assert!(write(learned, r#"{"a":2,"b":"y"}"#).is_some());
        for line in [
            r#"{"a":NaN,"b":"x"}"#,
            r#"{"a":-Infinity,"b":"x"}"#,
            r#"{"a":1,"b":"\n"}"#,
            "{\"a\":1,\"b\":\"\u{1}\"}",
            r#"{"a":01,"b":"x"}"#,
            r#"{"a":1.,"b":"x"}"#,
            r#"{"a":-,"b":"x"}"#,
            r#"{"a":1e,"b":"x"}"#,
            r#"{"a":tru,"b":"x"}"#,
            r#"{"a":truee,"b":"x"}"#,
            r#"{"a":1,"b":"x"} "#,
            r#"{"a":1,"b":"x""#,
            r#"{"a":1,"b":"x"#,
            r#"{"a":1,"b":"#,
            r#"{"a":1, "b":"x"}"#,
            r#"{"a":[],"b":"x"}"#,
            "",
        ] {
            assert_eq!(write(learned, line), None, "{line}");
        }
        let mut out = Vec::new();
        assert!(!having_learned(learned).write(b"{\"a\":1,\"b\":\"\xFF\"}", &mut out));
    }

    #[test]
    fn repeated_and_escaped_names_are_the_canonicalisers_affair() {
        assert_eq!(write(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":4,"b":5,"a":6}"#).unwrap(), r#"{"a":6,"b":5}"#);
        assert_eq!(write(r#"{"\u0061":1}"#, r#"{"\u0061":1}"#), None, "names with escapes are not learned");
        assert_eq!(write("{ }", "{ }").unwrap(), "{}");
    }

    #[test]
    fn a_feed_without_shapes_is_left_alone_most_of_the_time() {
        let mut shapes = having_learned(r#"{"a":1}"#);
        let mut out = Vec::new();
        let mut tried = 0;
        for number in 0..100_000 {
            tried += u32::from(shapes.resting == 0);
            let line = format!("{{\"n{number}\":1}}");
            assert!(!shapes.write(line.as_bytes(), &mut out));
            shapes.learn(line.as_bytes(), canonicalise);
        }
        assert!(tried < 1000, "{tried} of 100,000 lines were tried");
        // Lines with a shape are found again, though.
        let found = (0..200_000).filter(|_| {
            let found = shapes.write(br#"{"a":1,"b":2}"#, &mut out);
            if !found {
                shapes.learn(br#"{"a":1,"b":2}"#, canonicalise);
            }
            found
        });
        assert!(found.count() > 100_000);
    }
}
