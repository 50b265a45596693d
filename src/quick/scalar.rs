//! One scalar of a line: where it ends, and whether its own text is canonical.

use std::ops::Range;

use super::line::Line;
use crate::number::NumberStyle;
use crate::protocol::{NonAscii, NonFinite, Scheme, Settings, Where};

/// What the canonical text of a scalar depends on.
pub(super) struct Rules {
    pub(super) in_coordinates: NumberRules,
    pub(super) elsewhere: NumberRules,
    /// Integers are doubles too.
    jcs: bool,
    pub(super) ascii_only: bool,
    finite_only: bool,
}

/// What the text of a number depends on.
pub(super) struct NumberRules {
    pub(super) style: NumberStyle,
    decimals_max: usize,
    /// `17.0` is written as it is.
    keeps_zero_fraction: bool,
}

/// A scalar of a line, as it is to be written.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// These bytes of the line are canonical.
    Copy {
        start: usize,
        end: usize,
    },
    Double(f64),
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Self {
        let style = NumberStyle::new(settings);
        let unrounded = NumberStyle { rounding: None, ..style };
        let numbers = |style: NumberStyle| NumberRules {
            style,
            decimals_max: match style.rounding {
                Some(_) => settings.decimals.map_or(usize::MAX, usize::from),
                None => usize::MAX,
            },
            keeps_zero_fraction: !style.is_integer(1.0),
        };
        Self {
            in_coordinates: numbers(style),
            elsewhere: numbers(if settings.round_where == Where::Coordinates { unrounded } else { style }),
            jcs: settings.scheme == Scheme::Jcs,
            ascii_only: settings.non_ascii == NonAscii::Escape,
            finite_only: settings.scheme == Scheme::Jcs || settings.non_finite == NonFinite::Reject,
        }
    }

    /// The rules for a number at a place.
    #[inline]
    pub(super) fn of_number(&self, in_coordinates: bool) -> &NumberRules {
        if in_coordinates { &self.in_coordinates } else { &self.elsewhere }
    }
}

fn copied(Range { start, end }: Range<usize>) -> Option<(Value, usize)> {
    Some((Value::Copy { start, end }, end))
}

/// The scalar that starts at `at`, and where it ends; `None` for what is to be parsed. What follows it is for
/// the caller to look at.
#[inline]
pub(super) fn scan(line: &Line, at: usize, in_coordinates: bool, rules: &Rules) -> Option<(Value, usize)> {
    match line.byte(at) {
        b'"' => scan_string(line, at, rules),
        b'-' | b'0'..=b'9' => scan_number(line, at, rules.of_number(in_coordinates), rules),
        b't' if line.has(at, b"true\0\0\0\0\0\0\0\0\0\0\0\0", 0, 4) => copied(at..at + 4),
        b'f' if line.has(at, b"false\0\0\0\0\0\0\0\0\0\0\0", 0, 5) => copied(at..at + 5),
        b'n' if line.has(at, b"null\0\0\0\0\0\0\0\0\0\0\0\0", 0, 4) => copied(at..at + 4),
        _ => None,
    }
}

/// A string without escapes, or with such as its canonical form has, is its own.
#[inline]
fn scan_string(line: &Line, start: usize, rules: &Rules) -> Option<(Value, usize)> {
    let (mut end, mut is_ascii) = line.next_stop(start + 1);
    // These escapes are canonical themselves.
    while line.byte(end) == b'\\'
        && matches!(line.byte(end + 1), b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't')
    {
        let (next, rest_is_ascii) = line.next_stop(end + 2);
        (end, is_ascii) = (next, is_ascii && rest_is_ascii);
    }
    if line.byte(end) != b'"' {
        return None;
    }
    if !is_ascii || rules.ascii_only {
        let text = &line.bytes()[start..end];
        let is_canonical = match rules.ascii_only {
            true => text.iter().all(|byte| (0x20..0x7F).contains(byte)),
            false => std::str::from_utf8(text).is_ok(),
        };
        if !is_canonical {
            return None;
        }
    }
    copied(start..end + 1)
}

/// A number (RFC 8259, section 6).
#[inline]
fn scan_number(line: &Line, start: usize, numbers: &NumberRules, rules: &Rules) -> Option<(Value, usize)> {
    let is_negative = line.byte(start) == b'-';
    let whole = start + usize::from(is_negative);
    let digits = line.digits(whole);
    let whole_len = digits.trailing_ones() as usize;
    let point = whole + whole_len;
    let begins_with_zero = line.byte(whole) == b'0';
    let decimals = match line.byte(point) {
        b'.' => (digits >> whole_len >> 1).trailing_ones() as usize,
        _ => 0,
    };
    let end = point + if decimals > 0 { 1 + decimals } else { 0 };
    // The usual ones are a few digits, perhaps a point and a few more, of which the last is no zero. Of more than
    // 14 there may be some that were not looked at.
    let is_usual = whole_len > 0
        && whole_len + decimals < 15
        && (!begins_with_zero || whole_len == 1)
        && !matches!(line.byte(end), b'.' | b'e' | b'E');
    if is_usual {
        let is_copied = if decimals == 0 {
            !(is_negative && begins_with_zero)
        } else {
            decimals <= numbers.decimals_max
                && (line.byte(end - 1) != b'0' || (decimals == 1 && numbers.keeps_zero_fraction && !begins_with_zero))
                // Below 1e-4 the text has an exponent; and zero may lose its sign.
                && !(begins_with_zero && line.has(point, b".000\0\0\0\0\0\0\0\0\0\0\0\0", 0, 4))
        };
        if is_copied {
            return copied(start..end);
        }
    }
    scan_unusual_number(line, start, numbers, rules)
}

/// Any number.
#[cold]
fn scan_unusual_number(
    line: &Line,
    start: usize,
    numbers: &NumberRules,
    rules: &Rules,
) -> Option<(Value, usize)> {
    let line = line.bytes();
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
        // The integer `-0` is `0`.
        return copied(if line[start..end] == *b"-0" { whole..end } else { start..end });
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
    if digits > 15 || decimals > numbers.decimals_max || small || (zero && start != whole) {
        return double(&line[start..end], end, rules);
    }
    if line[point..significant] == *b".0" && !numbers.keeps_zero_fraction {
        return copied(start..point).map(|(value, _)| (value, end));
    }
    copied(start..significant).map(|(value, _)| (value, end))
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
