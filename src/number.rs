//! One number: rounding to decimals, and its text.
//!
//! In: a double and a [`NumberStyle`]. Out: `repr(round(x, p))` of CPython, or the text that
//! ECMAScript has for it, appended to a buffer.
//!
//! # Why the quick way is exact
//!
//! Let `t` be the double nearest to `|x| · 10^p`, with `p ≤ 15` so that `10^p` is a double itself
//! and `t` off by at most half a unit in its last place, `t · 2^-53`. Where `t < 10^15` and the
//! fraction of `t` is further than that from one half, rounding `t` to an integer `m` gives what
//! rounding the exact product gives. `m / 10^p` has at most 15 significant digits (`10^15` itself has
//! one), and a decimal of at most 15 digits is the shortest one of the double nearest to it (IEEE
//! 754, section 5.12.2: 15 digits survive the way to binary64 and back). So the digits of `m` are the
//! answer, and no double has to be made of them. Everything else takes the slow way: the shortest
//! digits that read back as `x` if they have no more than `p` decimals, otherwise the standard
//! library's exact decimal expansion, rounded to nearest with ties to even.

use std::io::Write;

use crate::protocol::{Integral, NegativeZero, Scheme, Settings};

/// How many decimals doubles are rounded to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    decimals: u16,
    /// `10^decimals` where that is exact, in both types.
    power: Option<(u64, f64)>,
}

impl Rounding {
    pub(crate) fn new(decimals: u16) -> Self {
        // 10^15 is the bound on the scaled number, so greater powers would only serve numbers
        // below one; 10^15 also keeps `power` exact in both types.
        let power = (decimals <= 15).then(|| 10_u64.pow(u32::from(decimals)));
        Self { decimals, power: power.map(|power| (power, power as f64)) }
    }
}

/// How doubles are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberStyle {
    pub(crate) rounding: Option<Rounding>,
    /// −0.0 is 0.0.
    pub(crate) fold_zero: bool,
    /// Doubles of integral value, up to 2^53, are written as integers.
    pub(crate) unify: bool,
    pub(crate) notation: Notation,
}

/// When a number has an exponent, and how it looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Notation {
    /// `float.__repr__` of CPython: below 1e-4 and from 1e16, of two digits at least; a number
    /// without an exponent has a fraction.
    Python,
    /// `Number::toString` of ECMAScript (ECMA-262, section 6.1.6.1.20), which RFC 8785 requires:
    /// below 1e-6 and from 1e21.
    EcmaScript,
}

impl NumberStyle {
    pub(crate) fn new(settings: &Settings) -> Self {
        let jcs = settings.scheme == Scheme::Jcs;
        Self {
            rounding: settings.decimals.map(Rounding::new),
            fold_zero: jcs || settings.negative_zero == NegativeZero::Fold,
            unify: settings.integral == Integral::Unify,
            notation: if jcs { Notation::EcmaScript } else { Notation::Python },
        }
    }

    /// The least power of ten, as its negative exponent, that is written without an exponent.
    fn plain_places(&self) -> u32 {
        match self.notation {
            Notation::Python => 4,
            Notation::EcmaScript => 6,
        }
    }

    /// Whether a number of integral value is written without a fraction.
    pub(crate) fn is_integer(&self, x: f64) -> bool {
        match self.notation {
            Notation::EcmaScript => true,
            Notation::Python => self.unify && x.abs() <= INTEGER_MAX && !(x == 0.0 && x.is_sign_negative()),
        }
    }
}

/// 2^53: up to here, every integer is a double.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Appends the text of `x`, rounded if the style says so. The non-finite numbers are `NaN`,
/// `Infinity` and `-Infinity`, as `json.dumps` writes them.
pub(crate) fn write_double(x: f64, style: &NumberStyle, out: &mut Vec<u8>) {
    if !x.is_finite() {
        let text: &[u8] = match x {
            _ if x.is_nan() => b"NaN",
            _ if x > 0.0 => b"Infinity",
            _ => b"-Infinity",
        };
        return out.extend_from_slice(text);
    }
    match style.rounding {
        Some(rounding) => {
            if !write_rounded_quickly(x, rounding, style, out) {
                write_rounded_exactly(x, rounding.decimals, style, out);
            }
        }
        None => write_shortest(x, style, out),
    }
}

/// The double that [`write_double`] writes the text of, for the finite `x`.
pub(crate) fn as_written(x: f64, style: &NumberStyle) -> f64 {
    let rounded = match style.rounding {
        None => x,
        Some(rounding) => match round_quickly(x, rounding) {
            // Both are exact, so their quotient is the double nearest to the decimal.
            Some((m, _, scale)) => (m as f64 / scale).copysign(x),
            None if Shortest::of(x).decimals() <= i32::from(rounding.decimals) => x,
            None => round_exactly(x, rounding.decimals),
        },
    };
    if rounded == 0.0 && style.fold_zero { 0.0 } else { rounded }
}

/// The quick way of the module's text: `|x| · 10^p`, rounded, and `10^p` in both types. `None` where
/// it does not apply.
#[inline]
fn round_quickly(x: f64, rounding: Rounding) -> Option<(u64, u64, f64)> {
    const BOUND: f64 = 1e15;
    const ERROR: f64 = 1.0 / (1_u64 << 52) as f64;
    let (power, scale) = rounding.power?;
    let t = x.abs() * scale;
    if t >= BOUND {
        return None;
    }
    let floor = t as u64;
    let fraction = t - floor as f64;
    let certain = (fraction - 0.5).abs() > t * ERROR;
    certain.then_some((floor + u64::from(fraction > 0.5), power, scale))
}

/// False, with nothing written, where the quick way does not apply.
#[inline]
fn write_rounded_quickly(x: f64, rounding: Rounding, style: &NumberStyle, out: &mut Vec<u8>) -> bool {
    let Some((m, power, _)) = round_quickly(x, rounding) else { return false };
    if m != 0 && m.saturating_mul(10_u64.pow(style.plain_places())) < power {
        // So small that the text has an exponent.
        Shortest::of_decimal(x.is_sign_negative(), m, rounding.decimals).write(style.notation, out);
        return true;
    }
    if x.is_sign_negative() && !(m == 0 && style.fold_zero) {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(m / power).as_bytes());
    let negative_zero = m == 0 && x.is_sign_negative() && !style.fold_zero;
    if m.is_multiple_of(power) && style.is_integer(1.0) && !negative_zero {
        return true;
    }
    out.push(b'.');
    write_fraction(m % power, usize::from(rounding.decimals), &mut buffer, out);
    true
}

/// Appends `fraction` as `decimals` digits without trailing zeros, but one digit at least.
#[inline]
fn write_fraction(fraction: u64, decimals: usize, buffer: &mut itoa::Buffer, out: &mut Vec<u8>) {
    if fraction == 0 {
        return out.push(b'0');
    }
    let digits = buffer.format(fraction).as_bytes();
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    out.extend(std::iter::repeat_n(b'0', decimals - digits.len()));
    out.extend_from_slice(&digits[..significant]);
}

#[cold]
fn write_rounded_exactly(x: f64, decimals: u16, style: &NumberStyle, out: &mut Vec<u8>) {
    if Shortest::of(x).decimals() <= i32::from(decimals) {
        return write_shortest(x, style, out);
    }
    write_shortest(round_exactly(x, decimals), style, out);
}

/// The double nearest to the finite `x` rounded to `decimals`, which it has more of.
fn round_exactly(x: f64, decimals: u16) -> f64 {
    // A sign, 309 digits, a point and DECIMALS_MAX decimals fit.
    let mut buffer = [0; 640];
    let mut rest = &mut buffer[..];
    // So writing cannot fail, and a formatted finite number is a number again.
    let _ = write!(rest, "{x:.*}", usize::from(decimals));
    let left = rest.len();
    let text = std::str::from_utf8(&buffer[..buffer.len() - left]);
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(x)
}

/// Appends the text of the finite `x` as it is.
fn write_shortest(x: f64, style: &NumberStyle, out: &mut Vec<u8>) {
    let x = if x == 0.0 && style.fold_zero { 0.0 } else { x };
    let start = out.len();
    Shortest::of(x).write(style.notation, out);
    if style.is_integer(x) && out[start..].ends_with(b".0") {
        out.truncate(out.len() - 2);
    }
}

/// The shortest decimal that reads back as a double: `0.DIGITS · 10^point`.
struct Shortest {
    negative: bool,
    digits: [u8; 17],
    length: usize,
    point: i32,
}

impl Shortest {
    /// `x` must be finite.
    fn of(x: f64) -> Self {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(x.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut shortest = Self { negative: x.is_sign_negative(), digits: [0; 17], length: 0, point: 0 };
        let mut seen_point = false;
        for byte in mantissa.bytes() {
            match byte {
                b'.' => seen_point = true,
                // A leading zero is no digit, but after the point it moves it.
                b'0' if shortest.length == 0 => shortest.point -= i32::from(seen_point),
                // Trailing zeros of a large integer or of "1.0" overrun nothing: they are dropped
                // below, and a shortest form has at most 17 digits before them.
                digit => {
                    if shortest.length < 17 {
                        shortest.digits[shortest.length] = digit;
                        shortest.length += 1;
                    }
                    shortest.point += i32::from(!seen_point);
                }
            }
        }
        shortest.drop_trailing_zeros();
        // The exponent that the crate writes is always a small integer.
        shortest.point += exponent.parse::<i32>().unwrap_or(0);
        shortest
    }

    /// `m · 10^-decimals`, where `m` has at most 15 digits and is not zero.
    fn of_decimal(negative: bool, m: u64, decimals: u16) -> Self {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(m).as_bytes();
        let point = text.len() as i32 - i32::from(decimals);
        let mut shortest = Self { negative, digits: [0; 17], length: text.len(), point };
        shortest.digits[..text.len()].copy_from_slice(text);
        shortest.drop_trailing_zeros();
        shortest
    }

    fn drop_trailing_zeros(&mut self) {
        while self.length > 0 && self.digits[self.length - 1] == b'0' {
            self.length -= 1;
        }
    }

    /// How many digits stand after the decimal point; negative for trailing zeros before it.
    fn decimals(&self) -> i32 {
        self.length as i32 - self.point
    }

    /// Appends the number in this notation; if it has no exponent, with a fraction.
    fn write(&self, notation: Notation, out: &mut Vec<u8>) {
        let (least, most) = match notation {
            Notation::Python => (-3, 16),
            Notation::EcmaScript => (-5, 21),
        };
        if self.negative {
            out.push(b'-');
        }
        let digits = &self.digits[..self.length];
        match self.point {
            _ if digits.is_empty() => out.extend_from_slice(b"0.0"),
            point if (least..=0).contains(&point) => {
                out.extend_from_slice(b"0.");
                out.extend(std::iter::repeat_n(b'0', -self.point as usize));
                out.extend_from_slice(digits);
            }
            point if (1..=most).contains(&point) => {
                let point = point as usize;
                if point < digits.len() {
                    out.extend_from_slice(&digits[..point]);
                    out.push(b'.');
                    out.extend_from_slice(&digits[point..]);
                } else {
                    out.extend_from_slice(digits);
                    out.extend(std::iter::repeat_n(b'0', point - digits.len()));
                    out.extend_from_slice(b".0");
                }
            }
            _ => {
                out.push(digits[0]);
                if digits.len() > 1 {
                    out.push(b'.');
                    out.extend_from_slice(&digits[1..]);
                }
                let exponent = self.point - 1;
                out.push(b'e');
                out.push(if exponent < 0 { b'-' } else { b'+' });
                if exponent.abs() < 10 && notation == Notation::Python {
                    out.push(b'0');
                }
                out.extend_from_slice(itoa::Buffer::new().format(exponent.abs()).as_bytes());
            }
        }
    }
}
