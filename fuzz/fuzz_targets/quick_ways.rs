//! Lines on every quick way to their canonical form, against the exact one.
//!
//! The input's first byte chooses a protocol, the rest is lines. One keyer takes them all, so that later ones can
//! be of a shape that it has learnt. Each must have the same canonical bytes, or be refused for the same reason at
//! the same byte, as by the exact parser and a canonicaliser that has seen nothing before. `tests/` does the same
//! with lines that are made to be nearly of one shape; here the fuzzer finds its own.
#![no_main]

use firstseen::{Keyer, Protocol, stages};
use libfuzzer_sys::fuzz_target;

const PROTOCOLS: [&str; 9] = [
    "numbers.decimals = 8\nevent.strip = ['a']",
    "",
    "numbers.decimals = 0",
    "numbers = {decimals = 2, where = 'coordinates'}",
    "numbers = {decimals = 3, negative_zero = 'fold', integral = 'unify'}",
    "canonical = {members = 'as-written', separators = 'spaced', non_ascii = 'escape'}",
    "event = {duplicate_names = 'reject', non_finite = 'reject'}",
    "canonical.scheme = 'jcs'",
    "numbers.decimals = 2\ngeometry = {identity = 'shape', crs = 'wgs84'}",
];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, lines)) = input.split_first() else { return };
    let settings = PROTOCOLS[usize::from(choice) % PROTOCOLS.len()];
    let protocol = Protocol::from_toml("fuzz", &format!("name = 'fuzz'\n{settings}")).expect("these are protocols");
    let mut keyer = Keyer::new(&protocol);
    for line in lines.split(|&byte| byte == b'\n') {
        let mut exactly = Vec::new();
        let expected = stages::canonical_exactly(&protocol, line, &mut exactly).map(|()| exactly);
        assert_eq!(keyer.canonical(line).map(<[u8]>::to_vec), expected);
    }
});
