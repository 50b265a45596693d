//! The exact parser: slow, strict, and the authority on what is an event.
//!
//! In: a line. Out: its tape, or the [`Reason`] and byte at which it stops being an event. It takes
//! the lines that simd-json refuses, of which some are events all the same: those with integers
//! past 64 bits, the literals `NaN`, `Infinity` and `-Infinity` (which Python's producers emit),
//! numbers past the range of a double, and lone surrogates in members that are dropped. Every line
//! that simd-json takes, this parser takes with the same result; the tests hold both to it.

use crate::DEPTH_MAX;
use crate::error::{Invalid, Reason};
use crate::tape::{ExactNode, Tape};

/// A parser with reusable buffers.
#[derive(Default)]
pub(crate) struct ExactParser {
    nodes: Vec<ExactNode>,
    /// Unescaped strings and the digits of integers, one after another.
    text: String,
    /// Unescaped strings with lone surrogates, in WTF-8: like UTF-8, surrogates included.
    wtf8: Vec<u8>,
}

impl ExactParser {
    /// Parses one line: white space, an object, white space (RFC 8259, section 2).
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Tape<'_>, Invalid> {
        let line = std::str::from_utf8(line)
            .map_err(|error| Invalid { reason: Reason::InvalidUtf8, byte: error.valid_up_to() + 1 })?;
        self.nodes.clear();
        self.text.clear();
        self.wtf8.clear();
        let Self { nodes, text, wtf8 } = self;
        Cursor { line, at: 0, nodes, text, wtf8 }.event()?;
        Ok(Tape::Exact { nodes, text, wtf8 })
    }
}

struct Cursor<'a> {
    line: &'a str,
    at: usize,
    nodes: &'a mut Vec<ExactNode>,
    text: &'a mut String,
    /// A string is put together at the end of this; only one with a lone surrogate stays there.
    wtf8: &'a mut Vec<u8>,
}

impl Cursor<'_> {
    fn event(&mut self) -> Result<(), Invalid> {
        self.skip_space();
        if self.peek() != Some(b'{') {
            return Err(self.fault(Reason::NotAnObject));
        }
        self.value(0)?;
        self.skip_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault(Reason::TrailingCharacters)),
        }
    }

    /// A value inside `depth` containers.
    fn value(&mut self, depth: usize) -> Result<(), Invalid> {
        match self.peek() {
            Some(b'{') => self.container(depth, b'}'),
            Some(b'[') => self.container(depth, b']'),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.literal(),
            None => Err(self.fault(Reason::UnexpectedEnd)),
        }
    }

    fn container(&mut self, depth: usize, close: u8) -> Result<(), Invalid> {
        if depth == DEPTH_MAX {
            return Err(self.fault(Reason::TooDeep));
        }
        self.at += 1;
        let start = self.nodes.len();
        self.nodes.push(ExactNode::Null);
        let mut len = 0;
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
        } else {
            loop {
                self.element(depth, close)?;
                len += 1;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(byte) if byte == close => break self.at += 1,
                    Some(_) => return Err(self.fault(Reason::ExpectedComma)),
                    None => return Err(self.fault(Reason::UnexpectedEnd)),
                }
                self.skip_space();
            }
        }
        let count = self.nodes.len() - start - 1;
        self.nodes[start] = match close {
            b'}' => ExactNode::Object { len, count },
            _ => ExactNode::Array { len, count },
        };
        Ok(())
    }

    /// A member of an object or a value of an array, by the container's closing bracket.
    fn element(&mut self, depth: usize, close: u8) -> Result<(), Invalid> {
        if close == b'}' {
            match self.peek() {
                Some(b'"') => self.string()?,
                Some(_) => return Err(self.fault(Reason::ExpectedName)),
                None => return Err(self.fault(Reason::UnexpectedEnd)),
            }
            self.skip_space();
            match self.peek() {
                Some(b':') => self.at += 1,
                Some(_) => return Err(self.fault(Reason::ExpectedColon)),
                None => return Err(self.fault(Reason::UnexpectedEnd)),
            }
            self.skip_space();
        }
        self.value(depth + 1)
    }

    fn literal(&mut self) -> Result<(), Invalid> {
        let literals = [
            ("null", ExactNode::Null),
            ("true", ExactNode::Bool(true)),
            ("false", ExactNode::Bool(false)),
            ("NaN", ExactNode::Double { value: f64::NAN, byte: self.at + 1 }),
            ("Infinity", ExactNode::Double { value: f64::INFINITY, byte: self.at + 1 }),
        ];
        for (name, node) in literals {
            if self.take(name) {
                self.nodes.push(node);
                return Ok(());
            }
        }
        Err(self.fault(Reason::ExpectedValue))
    }

    /// A number (RFC 8259, section 6). Without fraction and exponent it is an integer.
    fn number(&mut self) -> Result<(), Invalid> {
        let start = self.at;
        if self.take("-Infinity") {
            self.nodes.push(ExactNode::Double { value: f64::NEG_INFINITY, byte: start + 1 });
            return Ok(());
        }
        self.take("-");
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let mut integer = true;
        if self.take(".") {
            integer = false;
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            integer = false;
            if !self.take("+") {
                self.take("-");
            }
            self.digits()?;
        }
        // "01" and "1x" are faults of the number, not of what follows it.
        if matches!(self.peek(), Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'+' | b'-')) {
            return Err(self.fault(Reason::MalformedNumber));
        }
        let token = &self.line[start..self.at];
        if integer {
            let token = if token == "-0" { "0" } else { token };
            let from = self.text.len();
            self.text.push_str(token);
            self.nodes.push(ExactNode::Integer { range: from..self.text.len(), byte: start + 1 });
        } else {
            // What is a JSON number is a number to the standard library too, which rounds to
            // nearest from any number of digits; past the range it gives an infinity.
            let value = token.parse().map_err(|_| self.fault(Reason::MalformedNumber))?;
            self.nodes.push(ExactNode::Double { value, byte: start + 1 });
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Invalid> {
        let rest = &self.line.as_bytes()[self.at..];
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 if rest.is_empty() => Err(self.fault(Reason::UnexpectedEnd)),
            0 => Err(self.fault(Reason::MalformedNumber)),
            digits => {
                self.at += digits;
                Ok(())
            }
        }
    }

    /// A string (RFC 8259, section 7), unescaped.
    fn string(&mut self) -> Result<(), Invalid> {
        let byte = self.at + 1;
        self.at += 1;
        let from = self.wtf8.len();
        let mut lone_surrogate = None;
        loop {
            let plain = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            self.wtf8.extend_from_slice(&self.line.as_bytes()[plain..self.at]);
            match self.peek() {
                Some(b'"') => break self.at += 1,
                Some(b'\\') => {
                    let byte = self.at + 1;
                    let code_point = self.escape()?;
                    if !push_code_point(code_point, self.wtf8) {
                        lone_surrogate.get_or_insert(byte);
                    }
                }
                Some(_) => return Err(self.fault(Reason::ControlCharacter)),
                None => return Err(self.fault(Reason::UnexpectedEnd)),
            }
        }
        self.nodes.push(match lone_surrogate {
            Some(byte) => ExactNode::LoneSurrogate { range: from..self.wtf8.len(), byte },
            None => {
                let start = self.text.len();
                // Without surrogates it is UTF-8, of which nothing is lost.
                self.text.push_str(&String::from_utf8_lossy(&self.wtf8[from..]));
                self.wtf8.truncate(from);
                ExactNode::Str { range: start..self.text.len(), byte }
            }
        });
        Ok(())
    }

    /// One escape, or two that make one character: its code point, or a lone surrogate.
    fn escape(&mut self) -> Result<u32, Invalid> {
        let start = self.at;
        let simple = match self.line.as_bytes().get(self.at + 1) {
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let Some(unit) = self.code_unit(start) else {
                    return Err(self.fault(Reason::InvalidEscape));
                };
                self.at += 6;
                let low = self.code_unit(self.at).filter(|low| (0xDC00..0xE000).contains(low));
                if let (0xD800..0xDC00, Some(low)) = (unit, low) {
                    self.at += 6;
                    return Ok(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
                }
                return Ok(unit);
            }
            Some(_) => return Err(self.fault(Reason::InvalidEscape)),
            None => {
                self.at += 1;
                return Err(self.fault(Reason::UnexpectedEnd));
            }
        };
        self.at += 2;
        Ok(u32::from(simple))
    }

    /// The UTF-16 code unit of an escape `\uXXXX` that starts at `start`, if one does.
    fn code_unit(&self, start: usize) -> Option<u32> {
        let escape = self.line.as_bytes().get(start..start + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    }

    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.line.as_bytes()[self.at..].starts_with(token.as_bytes());
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, reason: Reason) -> Invalid {
        Invalid { reason, byte: self.at + 1 }
    }
}

/// Appends a code point in UTF-8, or a surrogate as if it were one (WTF-8). False for a surrogate.
fn push_code_point(code_point: u32, out: &mut Vec<u8>) -> bool {
    match char::from_u32(code_point) {
        Some(character) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            true
        }
        None => {
            let low_bits = |shift: u32| 0x80 | (code_point >> shift & 0x3F) as u8;
            out.extend([0xE0 | (code_point >> 12) as u8, low_bits(6), low_bits(0)]);
            false
        }
    }
}
