//! Numbers and times as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A number with commas between groups of three digits.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time for people and programs (RFC 3339), to the second.
pub(crate) fn time_text(time: u64) -> String {
    humantime::format_rfc3339_seconds(system_time(time)).to_string()
}

/// The same to the millisecond, as a store keeps it.
pub(crate) fn exact_time_text(time: u64) -> String {
    humantime::format_rfc3339_millis(system_time(time)).to_string()
}

/// Times past the year 9999 have no text.
fn system_time(time: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(time.min(253_402_300_799_000))
}
