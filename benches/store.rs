//! Loading a store, and adding a night to it: `cargo bench --bench store`.
//!
//! What is measured is too large for many repetitions: 10^7 keys, or as many as the environment's
//! `STORE_KEYS` says, in one segment and in thirty. The store is made in the temporary folder that
//! `TMPDIR` names; one in memory leaves the disk out of it.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use firstseen::store::disk::RealDisk;
use firstseen::store::{Claimed, Run, Session};
use firstseen::{Protocol, ProtocolReport};

/// Keys of a night.
const NIGHT_KEYS: usize = 1_000_000;
const REPETITIONS: usize = 3;

fn main() {
    let keys = std::env::var("STORE_KEYS").map_or(10_000_000, |keys| keys.parse().unwrap());
    let protocol = Protocol::built_in("geojson-v1").unwrap();
    for segments in [1, 30] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        for segment in 0..segments {
            commit(&store, &format!("made-{segment}"), keys / segments, segment as u64);
        }
        for _ in 0..REPETITIONS {
            let session = Session::open(&RealDisk, &store, 1, false).unwrap();
            let before = resident_bytes();
            let began = Instant::now();
            let loaded = session.load(&protocol, None).unwrap();
            let seconds = began.elapsed().as_secs_f64();
            let bytes = resident_bytes().saturating_sub(before) as f64 / loaded.len() as f64;
            println!(
                "load, {segments} segments: {:.1} million keys a second, {bytes:.1} bytes a key",
                loaded.len() as f64 / seconds / 1e6
            );
        }
        for night in 0..REPETITIONS {
            let began = Instant::now();
            commit(&store, &format!("night-{night}"), NIGHT_KEYS, 1000 + night as u64);
            println!("add a night of {NIGHT_KEYS} keys: {:.2} s", began.elapsed().as_secs_f64());
        }
    }
}

/// Commits a run of that many keys that look random, the making of which takes about as long.
fn commit(store: &Path, run: &str, keys: usize, seed: u64) {
    let mut state = seed << 40;
    let mut random = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let mut keys: Vec<[u8; 16]> =
        (0..keys).map(|_| (u128::from(random()) << 64 | u128::from(random())).to_be_bytes()).collect();
    keys.sort_unstable();
    let protocol = Protocol::built_in("geojson-v1").unwrap();
    let report =
        ProtocolReport { name: protocol.name().to_owned(), fingerprint: protocol.fingerprint().to_string() };
    let run = Run {
        id: run.to_owned(),
        time: 0,
        ttl: None,
        protocols: vec![report],
        inputs: Vec::new(),
        events: 0,
        unique: 0,
        outputs: Vec::new(),
        published: false,
    };
    let mut session = Session::open(&RealDisk, store, 1, false).unwrap();
    assert!(session.commit(run, &[Claimed::from(keys)]).is_ok());
}

/// `VmHWM` would count what came before; `RssAnon` of proc_pid_status(5) is what is held now.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
