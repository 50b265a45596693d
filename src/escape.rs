//! Strings as JSON has them.
//!
//! In: text. Out: the same between quotation marks, with the escapes that RFC 8259, section 7, demands, in the form that
//! both `json.dumps` and RFC 8785, section 3.2.2.2, give them; or in ASCII only, as `json.dumps` does it when it is asked to.

/// Appends `text` as a JSON string in which only `"`, `\` and C0 controls are escaped.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let clean = clean_length(rest);
        out.extend_from_slice(&rest[..clean]);
        let Some(&byte) = rest.get(clean) else { break };
        write_escape(byte, out);
        rest = &rest[clean + 1..];
    }
    out.push(b'"');
}

/// Appends a string, given in WTF-8, as a JSON string of printable ASCII characters.
pub(crate) fn write_escaped_string(wtf8: &[u8], out: &mut Vec<u8>) {
    let escape_unit = |unit: u32, out: &mut Vec<u8>| {
        out.extend_from_slice(b"\\u");
        out.extend([12, 8, 4, 0].map(|shift| HEX[(unit >> shift & 15) as usize]));
    };
    out.push(b'"');
    let mut rest = wtf8;
    while let [first, after @ ..] = rest {
        let following = first.leading_ones().saturating_sub(1).min(3) as usize;
        match first {
            b' '..=b'~' if *first != b'"' && *first != b'\\' => out.push(*first),
            0..=b'~' => write_escape(*first, out),
            _ => {
                let start = u32::from(*first) & (0x7F >> first.leading_ones());
                let low_bits = after[..following].iter().map(|byte| u32::from(byte & 0x3F));
                let code_point = low_bits.fold(start, |bits, low| bits << 6 | low);
                match code_point.checked_sub(0x1_0000) {
                    None => escape_unit(code_point, out),
                    Some(past) => {
                        escape_unit(0xD800 + (past >> 10), out);
                        escape_unit(0xDC00 + (past & 0x3FF), out);
                    }
                }
            }
        }
        rest = &after[following..];
    }
    out.push(b'"');
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cold]
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            return out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    };
    out.extend([b'\\', short]);
}

/// The length of the part of `bytes` before the first one that needs an escape. Eight bytes at a
/// time, as in "Bit Twiddling Hacks" (Anderson, "Determine if a word has a byte less than n"): the
/// test may take a byte after a true hit for a hit, but never one before it.
#[inline]
fn clean_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let mut clean = 0;
    for chunk in bytes.chunks_exact(8) {
        // A chunk of `chunks_exact(8)` has eight bytes.
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let is_quote = quote.wrapping_sub(ONES) & !quote;
        let is_backslash = backslash.wrapping_sub(ONES) & !backslash;
        let hits = (below_space | is_quote | is_backslash) & HIGHS;
        if hits != 0 {
            return clean + hits.trailing_zeros() as usize / 8;
        }
        clean += 8;
    }
    let needs_escape = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    clean + bytes[clean..].iter().position(needs_escape).unwrap_or(bytes.len() - clean)
}
