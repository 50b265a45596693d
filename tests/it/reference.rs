//! A slow, readable reference in Rust: a line to its canonical text, by way of a tree.
//!
//! It shares nothing with the library: its own parser, sorted maps in place of a tape, and every
//! number rounded from its exact decimal expansion. `scripts/reference.py` is the authority; the
//! golden vectors hold both to it. This one is here so that properties can be tested in-process.

use std::collections::BTreeMap;

use firstseen::{Keyer, Overrides, Protocol, stages};
use proptest::prelude::*;

const ENVELOPE: [&str; 7] = [
    "webhook_id",
    "delivery_id",
    "received_at",
    "timestamp",
    "x-signature",
    "x-hub-signature-256",
    "attempt",
];

enum Value {
    Word(&'static str),
    Integer(String),
    Double(f64),
    Text(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

/// The canonical text of an event; `None` if the line is none. Lone surrogates are not told from
/// other faults, wherever they are.
pub(crate) fn canonical(line: &str, decimals: usize) -> Option<String> {
    let mut rest = line;
    let Value::Object(mut members) = value(&mut rest)? else { return None };
    if !space(rest).is_empty() {
        return None;
    }
    members.retain(|name, _| !ENVELOPE.contains(&name.as_str()));
    let mut out = String::new();
    write(&Value::Object(members), decimals, &mut out);
    Some(out)
}

fn space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

fn take(rest: &mut &str, token: &str) -> bool {
    *rest = space(rest);
    match rest.strip_prefix(token) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

fn value(rest: &mut &str) -> Option<Value> {
    for word in ["null", "true", "false"] {
        if take(rest, word) {
            return Some(Value::Word(word));
        }
    }
    for (word, double) in [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)] {
        if take(rest, word) {
            return Some(Value::Double(double));
        }
    }
    match rest.chars().next()? {
        '{' => object(rest),
        '[' => array(rest),
        '"' => string(rest).map(Value::Text),
        _ => number(rest),
    }
}

fn object(rest: &mut &str) -> Option<Value> {
    let mut members = BTreeMap::new();
    take(rest, "{");
    if take(rest, "}") {
        return Some(Value::Object(members));
    }
    loop {
        *rest = space(rest);
        let name = string(rest)?;
        if !take(rest, ":") {
            return None;
        }
        members.insert(name, value(rest)?);
        if take(rest, "}") {
            return Some(Value::Object(members));
        }
        if !take(rest, ",") {
            return None;
        }
    }
}

fn array(rest: &mut &str) -> Option<Value> {
    let mut elements = Vec::new();
    take(rest, "[");
    if take(rest, "]") {
        return Some(Value::Array(elements));
    }
    loop {
        elements.push(value(rest)?);
        if take(rest, "]") {
            return Some(Value::Array(elements));
        }
        if !take(rest, ",") {
            return None;
        }
    }
}

fn string(rest: &mut &str) -> Option<String> {
    let mut units: Vec<u16> = Vec::new();
    let mut characters = rest.strip_prefix('"')?.char_indices();
    while let Some((at, character)) = characters.next() {
        let unescaped = match character {
            '"' => {
                *rest = &rest[at + 2..];
                return String::from_utf16(&units).ok();
            }
            '\\' => match characters.next()?.1 {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let digits: String = (0..4).filter_map(|_| Some(characters.next()?.1)).collect();
                    let digits =
                        Some(digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                plain @ ('"' | '\\' | '/') => plain,
                _ => return None,
            },
            control if control < ' ' => return None,
            plain => plain,
        };
        units.extend_from_slice(unescaped.encode_utf16(&mut [0; 2]));
    }
    None
}

fn number(rest: &mut &str) -> Option<Value> {
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
    let (token, after) = rest.split_at(length);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match token.find(['e', 'E']) {
        Some(at) => (&token[..at], Some(&token[at + 1..])),
        None => (token, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let well_formed = digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
    if !well_formed {
        return None;
    }
    *rest = after;
    Some(match (fraction, exponent) {
        (None, None) if token == "-0" => Value::Integer("0".to_owned()),
        (None, None) => Value::Integer(token.to_owned()),
        _ => Value::Double(token.parse().ok()?),
    })
}

fn write(value: &Value, decimals: usize, out: &mut String) {
    match value {
        Value::Word(word) => out.push_str(word),
        Value::Integer(digits) => out.push_str(digits),
        Value::Double(double) => out.push_str(&repr(round(*double, decimals))),
        Value::Text(text) => write_string(text, out),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write(element, decimals, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_string(name, out);
                out.push(':');
                write(member, decimals, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// Rounds from the exact decimal expansion, which for a double has at most 1,074 decimals: digit by
/// digit, ties to even.
pub(crate) fn round(x: f64, decimals: usize) -> f64 {
    if !x.is_finite() || decimals >= 1074 {
        return x;
    }
    let exact = format!("{:.1074}", x.abs());
    let point = exact.find('.').unwrap();
    let mut kept: Vec<u8> = exact[..point].bytes().chain(exact[point + 1..].bytes().take(decimals)).collect();
    let cut = &exact[point + 1 + decimals..];
    let half = format!("5{}", "0".repeat(cut.len() - 1));
    let odd = kept.last().is_some_and(|digit| digit % 2 == 1);
    if *cut > *half || (*cut == *half && odd) {
        kept.insert(0, b'0');
        let nines = kept.iter().rev().take_while(|&&digit| digit == b'9').count();
        let length = kept.len();
        kept[length - nines..].fill(b'0');
        kept[length - nines - 1] += 1;
    }
    let digits = String::from_utf8(kept).unwrap();
    let value: f64 = format!("{digits}e-{decimals}").parse().unwrap();
    value.copysign(x)
}

/// `float.__repr__` of CPython: the shortest digits that read back as `x`, and of these the nearest
/// to it, ties to even; with an exponent below 1e-4 and from 1e16.
pub(crate) fn repr(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if x.is_sign_negative() { "-" } else { "" };
    if x.is_infinite() {
        return format!("{sign}Infinity");
    }
    let (digits, exponent) = (1..=17).find_map(|length| shortest(x.abs(), length)).unwrap();
    let trimmed = digits.trim_end_matches('0');
    let digits = if trimmed.is_empty() { "0" } else { trimmed };
    let zeros = |count: i32| "0".repeat(count.max(0) as usize);
    let length = digits.len() as i32;
    match exponent {
        -4..0 => format!("{sign}0.{}{digits}", zeros(-exponent - 1)),
        0..16 if length <= exponent + 1 => format!("{sign}{digits}{}.0", zeros(exponent + 1 - length)),
        0..16 => format!("{sign}{}.{}", &digits[..=exponent as usize], &digits[exponent as usize + 1..]),
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let direction = if exponent < 0 { '-' } else { '+' };
            format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs())
        }
    }
}

/// Digits and decimal exponent of `x` in `length` digits, if so many read back as `x`. At a power of
/// two the doubles below are nearer than those above, so that not the nearest such decimal may read
/// back but only the one above it.
fn shortest(x: f64, length: usize) -> Option<(String, i32)> {
    let nearest = format!("{x:.*e}", length - 1);
    let (mantissa, exponent) = nearest.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let digits: u64 = mantissa.replace('.', "").parse().unwrap();
    let scale = exponent + 1 - length as i32;
    let reads_back = |digits: &u64| format!("{digits}e{scale}").parse::<f64>() == Ok(x);
    let digits = [digits, digits + 1].into_iter().find(reads_back)?.to_string();
    let exponent = exponent + digits.len() as i32 - length as i32;
    Some((digits, exponent))
}

/// The library's canonical text, which must be the same by way of its exact parser.
fn ours(line: &str, decimals: u16) -> Option<String> {
    let overrides = Overrides { decimals: Some(decimals), ..Overrides::default() };
    let protocol = Protocol::built_in("geojson-v1").unwrap().derive(&overrides).unwrap();
    let canonical = Keyer::new(&protocol).canonical(line.as_bytes()).map(<[u8]>::to_vec);
    let mut exactly = Vec::new();
    let result = stages::canonical_exactly(&protocol, line.as_bytes(), &mut exactly);
    assert_eq!(canonical, result.map(|()| exactly), "the exact parser disagrees on {line}");
    Some(String::from_utf8(canonical.ok()?).unwrap())
}

fn number_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("{x:?}")),
        (-180.0..180.0_f64).prop_map(|x| format!("{x:.7}")),
        (-180.0..180.0_f64).prop_map(|x| format!("{x:?}")),
        // Odd multiples of powers of two end in a 5: ties, when they end at the right place.
        (any::<i32>(), 1..25_i32)
            .prop_map(|(odd, power)| format!("{:?}", f64::from(odd | 1) / 2_f64.powi(power))),
        "-?(0|[1-9][0-9]{0,2})\\.[0-9]{0,9}5(0{0,5}1)?",
        "-?[1-9][0-9]{0,45}",
        "-?[0-9]\\.[0-9]{1,25}[eE][+-]?[0-9]{1,3}",
        Just("NaN".to_owned()),
        Just("-Infinity".to_owned()),
    ]
}

fn string_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\"[a-c]{0,2}\"",
        "\"[ !#-\\[\\]-~é北😀\u{7f}\u{2028}]{0,20}\"",
        "\"([a-z]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-7][0-9a-fA-F]){0,9}\"",
        Just("\"\\ud83d\\ude00\"".to_owned()),
        Just("\"attempt\"".to_owned()),
        Just("\"\u{ffff}\"".to_owned()),
        Just("\"\u{10000}\"".to_owned()),
    ]
}

fn value_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![number_text(), string_text(), Just("null".to_owned()), Just("true".to_owned())];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|elements| format!("[{}]", elements.join(" , "))),
            object_text(inner),
        ]
    })
}

fn object_text(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let name = prop_oneof![12 => string_text(), 1 => Just("\"coordinates\"".to_owned())];
    prop::collection::vec((name, value), 0..7).prop_map(|members| {
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

pub(crate) fn event_text() -> impl Strategy<Value = String> {
    object_text(value_text())
}

/// A scalar, or what looks like one.
fn scalar_text() -> impl Strategy<Value = String> {
    let token = "(tru|nulll|01|1\\.|-|\"|\"\\\\x\"|\"\\\\ud800\"|\"\\\\u00e9\"|\"\t\"|\\[\\]|\\{\\}|false|)";
    prop_oneof![8 => number_text(), 8 => string_text(), 1 => Just("null".to_owned()), 1 => token]
}

/// An event with `\0` in place of every scalar.
fn shape_text() -> impl Strategy<Value = String> {
    let leaf = Just("\0".to_owned());
    let value = leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|elements| format!("[{}]", elements.join(","))),
            object_text(inner),
        ]
    });
    object_text(value)
}

/// Protocols under which usual lines are not parsed.
const WITHOUT_PARSING: [&str; 11] = [
    "numbers.decimals = 8\nevent.strip = ['a']",
    "",
    "numbers.decimals = 0",
    "numbers = {decimals = 2, where = 'coordinates'}",
    "numbers = {decimals = 3, negative_zero = 'fold', integral = 'unify'}",
    "canonical = {members = 'as-written', separators = 'spaced', non_ascii = 'escape'}",
    "event = {duplicate_names = 'reject', non_finite = 'reject'}\nnumbers = {integral = 'unify', decimals = 1, where = 'coordinates'}",
    "canonical.scheme = 'jcs'",
    "numbers.decimals = 2\ngeometry.identity = 'shape'",
    "numbers.decimals = 2\ngeometry.crs = 'wgs84'",
    "canonical.scheme = 'jcs'\nnumbers = {decimals = 4, where = 'coordinates'}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// One keyer for all lines, so that later ones are of a shape that it knows.
    #[test]
    fn lines_that_are_not_parsed_are_taken_as_by_the_exact_parser(
        settings in prop::sample::select(&WITHOUT_PARSING[..]),
        shape in shape_text(),
        fillings in prop::collection::vec(prop::collection::vec(scalar_text(), 1..12), 3..8),
        at in any::<prop::sample::Index>(),
        damage in "[\\[\\]{},:\"0-9e.\\-\\\\ a\t]?",
    ) {
        let protocol = Protocol::from_toml("test", &format!("name = 'test'\n{settings}")).unwrap();
        let mut keyer = Keyer::new(&protocol);
        let mut lines = vec![shape.replace('\0', "0")];
        for filling in fillings {
            let mut scalars = filling.iter().cycle();
            lines.push(shape.split('\0').map(str::to_owned).reduce(|line, rest| line + scalars.next().unwrap() + &rest).unwrap());
        }
        let last = lines.last().unwrap().clone();
        let at = at.index(last.len());
        if last.is_char_boundary(at) {
            lines.push(format!("{}{damage}{}", &last[..at], &last[at..]));
            lines.push(last[..at].to_owned());
        }
        for line in lines {
            let mut exactly = Vec::new();
            let result = stages::canonical_exactly(&protocol, line.as_bytes(), &mut exactly);
            prop_assert_eq!(keyer.canonical(line.as_bytes()).map(<[u8]>::to_vec), result.map(|()| exactly), "{}: {}", settings, line);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn events_have_the_canonical_text_of_the_reference(event in event_text(), decimals in 0..12_u16) {
        let expected = canonical(&event, usize::from(decimals));
        prop_assert!(expected.is_some(), "the generator makes events only");
        prop_assert_eq!(ours(&event, decimals), expected);
    }

    #[test]
    fn damaged_events_are_refused_as_by_the_reference(
        event in event_text(),
        at in any::<prop::sample::Index>(),
        with in "[\\[\\]{},:\"0-9eE.+\\-\\\\ a-z\t\u{1}]?",
    ) {
        // This reference refuses lone surrogates even where they are dropped: none may come about.
        let characters: Vec<char> = event.replace("\\ud83d\\ude00", "x").chars().collect();
        let at = at.index(characters.len());
        let damaged: String = characters[..at].iter().copied().chain(with.chars()).chain(characters[at + 1..].iter().copied()).collect();
        prop_assert_eq!(ours(&damaged, 8), canonical(&damaged, 8));
    }

    #[test]
    fn doubles_of_every_magnitude_round_as_their_exact_expansion(bits in any::<u64>(), decimals in 0..324_u16) {
        let x = f64::from_bits(bits);
        prop_assume!(x.is_finite());
        let line = format!("{{\"v\":{x:e}}}");
        let expected = format!("{{\"v\":{}}}", repr(round(x, usize::from(decimals))));
        prop_assert_eq!(ours(&line, decimals), Some(expected));
    }
}

#[test]
fn number_tokens_of_100_000_digits_are_kept_exactly() {
    let digits = "1234567890".repeat(10_000);
    for (token, canonical) in [
        (digits.clone(), digits.clone()),
        (format!("-{digits}"), format!("-{digits}")),
        (format!("0.{digits}"), "0.12345679".to_owned()),
        (format!("{digits}.5"), "Infinity".to_owned()),
        (format!("{digits}e-99999"), "1.23456789".to_owned()),
        (format!("0.{}1e100000", "0".repeat(99_999)), "1.0".to_owned()),
        // A tie at the ninth decimal, but for its last digit.
        (format!("0.000000005{}", "0".repeat(100_000)), "1e-08".to_owned()),
        (format!("1e{}", "9".repeat(100_000)), "Infinity".to_owned()),
        (format!("1e-{}", "9".repeat(100_000)), "0.0".to_owned()),
    ] {
        let line = format!("{{\"v\":{token}}}");
        assert_eq!(ours(&line, 8), Some(format!("{{\"v\":{canonical}}}")), "{}", &line[..40]);
        assert_eq!(ours(&format!("{{\"v\":{token}x}}"), 8), None);
    }
}
