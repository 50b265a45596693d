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

use super::line::Line;
use super::scalar::{Rules, Value};
use super::shape::Shape;
use crate::error::Invalid;
use crate::protocol::Protocol;

/// Shapes that are remembered. A feed of three serializers, with members that come and go, has about
/// a dozen.
const SHAPES_MAX: usize = 16;
/// Longer lines are arrays of varying length more often than not.
const LEARNED_BYTES_MAX: usize = 4096;
/// A line of a shape may be longer than the one that was learned, but not by that much.
const TRIED_BYTES_MAX: usize = 4 * LEARNED_BYTES_MAX;

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
pub(super) struct Shapes {
    rules: Rules,
    /// Those that fitted of late come first.
    #[expect(clippy::vec_box, reason = "their order changes often")]
    known: Vec<Box<Shape>>,
    /// The line that is tried, and its values.
    line: Line,
    values: Vec<Value>,
    savings: u32,
    patience: u32,
    /// Lines to let pass, and how many that will be the next time.
    resting: u32,
    rest: u32,
}

impl Shapes {
    pub(super) fn new(protocol: &Protocol) -> Self {
        let settings = protocol.settings();
        // A shape does not know what is selected by value; and what looks like a marker must be one.
        let has_marker = |text: &str| text.contains('\u{1}');
        let learns = settings.select.is_empty()
            && !settings
                .add
                .iter()
                .any(|(name, value)| has_marker(name) || value.as_str().is_some_and(has_marker));
        Self {
            rules: Rules::new(settings),
            known: Vec::new(),
            line: Line::default(),
            values: Vec::new(),
            savings: if learns { LEARNING_SAVINGS_MAX } else { 0 },
            patience: PATIENCE,
            resting: 0,
            rest: REST_MIN,
        }
    }

    /// Appends the canonical form of `line`, if it has a known shape. Otherwise nothing is appended.
    #[inline]
    pub(super) fn write(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        if self.resting > 0 {
            self.resting -= 1;
            return false;
        }
        if self.fits(line) {
            self.known[0].write(&self.line, &self.values, &self.rules, out);
            self.patience = (self.patience + HIT_GAIN).min(PATIENCE);
            self.rest = (self.rest / 2).max(REST_MIN);
            self.savings = (self.savings + 1).min(LEARNING_SAVINGS_MAX);
            return true;
        }
        self.miss();
        false
    }

    /// Finds the shape of a line, which is the first one afterwards, and the values.
    #[inline]
    fn fits(&mut self, line: &[u8]) -> bool {
        let begins = |shape: &Shape| line.starts_with(shape.beginning());
        let Some(first) = self.known.iter().position(|shape| begins(shape)) else { return false };
        if line.len() > TRIED_BYTES_MAX {
            return false;
        }
        self.line.read(line);
        // A line that nearly fits many shapes is not scanned many times.
        let mut effort_left = line.len();
        for index in first..self.known.len() {
            match self.known[index].scan(&self.line, &self.rules, &mut self.values) {
                Ok(()) => {
                    self.known[..=index].rotate_right(1);
                    return true;
                }
                Err(scanned) => effort_left = effort_left.saturating_sub(scanned),
            }
            if effort_left == 0 {
                break;
            }
        }
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
    pub(super) fn learn(
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
            self.known.insert(0, Box::new(shape));
        }
    }
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
            r#"{"a":1,"b":"\/"}"#,
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
