//! What speaks against a protocol, by its settings and by the names of what it hashes.

use super::Protocol;
use super::select::{Pointer, Selected, Source};
use super::settings::Hash;
use crate::error::printable;

impl Protocol {
    /// What speaks against these settings, in sentences for people.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match self.settings.decimals {
            Some(decimals @ 0..6) => warnings.push(format!(
                "{decimals} decimals merge distinct points: at 5 decimals a cell is about 1.1 m wide; \
                 keep at least 6 (about 0.11 m, as RFC 7946 recommends)"
            )),
            Some(decimals @ 11..) => warnings.push(format!(
                "{decimals} decimals keep float noise: beyond 10, digits that serializers do not agree on \
                 make one event two keys"
            )),
            _ => {}
        }
        if self.settings.hash == Hash::Sha256 && self.settings.key_bytes < 16 {
            let bytes = self.settings.key_bytes;
            warnings.push(format!(
                "{bytes} bytes of SHA-256 are few: different events may share a key by chance; keep at least 16"
            ));
        }
        warnings
    }

    /// The warnings, and what else a reviewer would ask about.
    #[must_use]
    pub fn lints(&self) -> Vec<String> {
        let mut lints = self.warnings();
        lints.extend(self.settings.select.iter().flat_map(selected_suspicions));
        let is_another = |built_in: Self| built_in.fingerprint() != self.fingerprint();
        if Self::built_in(&self.name).is_ok_and(is_another) {
            lints.push(format!(
                "`{0}` is the name of a built-in protocol, which is another one: \
                 `--protocol {0}` means that one, so call this one something else",
                self.name
            ));
        }
        // A constant may be called what it will: it is the same in every delivery.
        let added = self.settings.add.iter().filter(|(name, _)| looks_like_secret(name));
        lints.extend(added.map(|(name, _)| secret(&printable(name))));
        lints
    }
}

/// What the name of a selected member looks like or, if that is harmless, what those in its pointers do.
fn selected_suspicions(selected: &Selected) -> Vec<String> {
    let own = suspicions(&printable(&selected.member), &[&selected.member]);
    if !own.is_empty() {
        return own;
    }
    let pointers = selected.first_of.iter().filter_map(|source| match source {
        Source::Pointer(pointer, _) => Some(pointer),
        Source::Constant(_) => None,
    });
    let of_pointer = |pointer: &Pointer| {
        let names: Vec<&str> = pointer.tokens().iter().map(String::as_str).collect();
        suspicions(&printable(&pointer.to_string()), &names)
    };
    pointers.flat_map(of_pointer).collect()
}

const SECRETS: [&str; 13] = [
    "token",
    "authorization",
    "bearer",
    "password",
    "passwd",
    "secret",
    "credential",
    "cookie",
    "apikey",
    "privatekey",
    "creditcard",
    "cardnumber",
    "cardholder",
];
/// Other words have this one in them: `discard`, `cardinality`.
const SECRET_WORD: &str = "card";
const ENVELOPE: [&str; 5] = ["attempt", "retry", "received", "signature", "delivery"];

/// Whether one of `parts` is in a name, whatever stands between its words: `api_key` has `apikey` in it.
fn has_part(parts: &[&str], name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    parts.iter().any(|part| letters.contains(part))
}

/// Whether a name has this word, alone or in the plural, written as `a_card`, `a-card` or `aCard`.
fn has_word(word: &str, name: &str) -> bool {
    let mut spaced = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && spaced.ends_with(|before: char| before.is_ascii_lowercase()) {
            spaced.push(' ');
        }
        spaced.push(letter);
    }
    let mut words = spaced.split(|letter: char| !letter.is_ascii_alphabetic()).map(str::to_ascii_lowercase);
    words.any(|found| found.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest == "s"))
}

fn looks_like_secret(name: &str) -> bool {
    has_part(&SECRETS, name) || has_word(SECRET_WORD, name)
}

pub(crate) fn looks_like_envelope(name: &str) -> bool {
    has_part(&ENVELOPE, name)
}

/// Whether a name looks like a secret, or like a part of the envelope.
pub(crate) fn looks_suspicious(name: &str) -> bool {
    looks_like_secret(name) || looks_like_envelope(name)
}

/// What the names of a hashed member look like, which is called `member`.
pub(crate) fn suspicions(member: &str, names: &[&str]) -> Vec<String> {
    let mut suspicions = Vec::new();
    if names.iter().any(|name| looks_like_secret(name)) {
        suspicions.push(secret(member));
    }
    if names.iter().any(|name| looks_like_envelope(name)) {
        suspicions.push(format!(
            "`{member}` looks like a part of the envelope: every delivery would be another event"
        ));
    }
    suspicions
}

fn secret(member: &str) -> String {
    format!("`{member}` looks like a secret: whoever stores the key stores a digest of it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_words_and_not_by_letters() {
        for name in [
            "token",
            "accessToken",
            "API-Key",
            "api_key",
            "X-Authorization",
            "card",
            "cardNumber",
            "card_no",
            "myCards",
        ] {
            assert!(looks_like_secret(name), "{name}");
        }
        for name in ["discard", "postcard", "cardinality", "Cardiff", "key", "keys", ""] {
            assert!(!looks_like_secret(name), "{name}");
        }
        assert!(
            looks_like_envelope("deliveryId")
                && looks_like_envelope("received_at")
                && !looks_like_envelope("trial")
        );
    }
}
