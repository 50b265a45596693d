//! `dedup --store`: nights that lose nothing and repeat nothing, and what a store is asked for.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use firstseen::Protocol;
use firstseen::ProtocolReport;
use firstseen::store::disk::RealDisk;
use firstseen::store::{Claimed, KeyFormat, Run, Session};

use crate::tool::{Folder, Run as ToolRun};

/// An event, delivered for the `attempt`-th time.
fn delivery(id: u32, attempt: u32) -> String {
    format!("{{\"id\":{id},\"attempt\":{attempt}}}\n")
}

fn feed(ids: &[u32]) -> String {
    ids.iter().enumerate().map(|(attempt, &id)| delivery(id, attempt as u32)).collect()
}

fn night(folder: &Folder, name: &str, more: &[&str]) -> ToolRun {
    let (input, output) = (format!("{name}.in"), format!("{name}.out"));
    folder
        .run(&[&["dedup", "--store", "store", "--run-id", name, &input, "-o", &output, "-q"], more].concat())
}

/// The ids of the events in the outputs of nights, one after another.
fn published(folder: &Folder, nights: &[&str]) -> Vec<u32> {
    let text: Vec<u8> = nights.iter().flat_map(|name| folder.read(&format!("{name}.out"))).collect();
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap() as u32)
        .collect()
}

#[test]
fn keys_of_earlier_nights_count_as_seen() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2, 1]));
    folder.file("b.in", feed(&[3, 2, 4, 3]));
    folder.file("c.in", feed(&[4, 1, 2, 3]));
    for name in ["a", "b", "c"] {
        night(&folder, name, &[]).expect_code(0);
    }
    assert_eq!(published(&folder, &["a"]), [1, 2]);
    assert_eq!(published(&folder, &["b"]), [3, 4]);
    assert_eq!(folder.read("c.out"), b"");
    let info = folder.run(&["store", "info", "store"]).expect_code(0);
    let info = String::from_utf8(info.stdout).unwrap();
    assert!(info.contains("keys       4 in 2 segments") && info.contains("run        c at "), "{info}");
    let verified = folder.run(&["store", "verify", "store", "--outputs"]).expect_code(0);
    assert_eq!(verified.stdout, b"whole: 2 segments of 4 keys, 3 outputs\n");
}

#[test]
fn a_night_that_has_committed_is_not_done_again() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2, 1]));
    night(&folder, "a", &[]).expect_code(0);
    let (manifest, output) = (folder.read("store/MANIFEST"), folder.read("a.out"));
    let again =
        folder.run(&["dedup", "--store", "store", "--run-id", "a", "a.in", "-o", "a.out"]).expect_code(0);
    assert!(
        again.stderr.contains("run `a` was committed at ") && again.stderr.contains("nothing to do"),
        "{}",
        again.stderr
    );
    assert_eq!((folder.read("store/MANIFEST"), folder.read("a.out")), (manifest, output));
    // What is not the same run is refused, whatever it is called.
    folder.file("other.in", feed(&[9]));
    folder
        .run(&["dedup", "--store", "store", "--run-id", "a", "other.in", "-o", "a.out"])
        .expect_trouble("with other inputs");
    folder
        .run(&["dedup", "--store", "store", "--run-id", "a", "a.in", "-o", "b.out"])
        .expect_trouble("with another output");
    folder
        .run(&["dedup", "--store", "store", "other.in", "-o", "a.out"])
        .expect_trouble("is the output of run `a`; write to another file (--force replaces it");
    folder.file("mine.out", "precious");
    folder
        .run(&["dedup", "--store", "store", "other.in", "-o", "mine.out"])
        .expect_trouble("is the output of no run of this store");
    assert_eq!(folder.read("mine.out"), b"precious");
    // Without a name, the same files and settings are the same run.
    for _ in 0..2 {
        folder.run(&["dedup", "--store", "store", "other.in", "-o", "other.out"]).expect_code(0);
    }
    assert_eq!(published(&folder, &["other"]), [9]);
    // An input that has grown is another run: its new lines must not be taken for done.
    folder.shell("cp -p a.in a.kept").expect_code(0);
    let read = folder.read("a.in").len();
    let grown = format!(
        "run `a` is committed, and read {read} bytes of a.in, which has grown; what is another run needs"
    );
    for (ids, told) in
        [(&[1, 2, 1, 7][..], &*grown), (&[3, 4, 3], "with other inputs, or they have changed since")]
    {
        folder.file("a.in", feed(ids));
        night(&folder, "a", &[]).expect_trouble(told);
    }
    // An output that has changed or gone is told, and nothing is done.
    folder.shell("mv a.kept a.in").expect_code(0);
    folder.file("a.out", "damaged");
    night(&folder, "a", &[]).expect_trouble("run `a` is committed");
    fs::remove_file(folder.path().join("a.out")).unwrap();
    night(&folder, "a", &[]).expect_trouble("it is missing");
}

#[test]
fn force_replaces_events_by_others_and_not_by_none() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2]));
    folder.file("b.in", feed(&[2, 3]));
    night(&folder, "a", &[]).expect_code(0);
    // As after a rebuild: the events are seen, and the output is of no run of the store.
    folder.run(&["store", "rebuild", "again", "--from", "a.out"]).expect_code(0);
    let again = ["dedup", "--store", "again", "--force"];
    let before = folder.read("again/MANIFEST");
    folder.run(&[&again[..], &["a.in", "-o", "a.out"]].concat()).expect_trouble("nothing was replaced");
    assert_eq!((published(&folder, &["a"]), folder.read("again/MANIFEST")), (vec![1, 2], before));
    folder.run(&[&again[..], &["b.in", "-o", "a.out"]].concat()).expect_code(0);
    assert_eq!(published(&folder, &["a"]), [3]);
    // A file of nothing is no loss.
    folder.file("empty.out", "");
    folder.run(&[&again[..], &["b.in", "-o", "empty.out"]].concat()).expect_code(0);
}

#[test]
fn what_cannot_be_committed_is_refused() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1]));
    folder
        .run(&["dedup", "--store", "store", "a.in", "-o", "-"])
        .expect_trouble("standard output cannot be committed");
    folder
        .run(&["dedup", "--store", "store", "a.in", "-o", "/dev/null"])
        .expect_trouble("/dev/null cannot be committed");
    let run = folder.run(&["dedup", "--store", "store", "a.in"]);
    assert_eq!(run.code, Some(2));
    folder
        .run(&["dedup", "--store", "store", "-", "-o", "a.out"])
        .expect_trouble("give it a name, with --run-id");
    folder.file("full/file", "x");
}

#[test]
fn a_store_is_of_its_protocols() {
    let folder = Folder::new();
    folder.file("a.in", "{\"id\":1,\"n\":1.0}\n");
    folder.file("b.in", "{\"id\":1,\"n\":1.0,\"attempt\":2}\n{\"id\":1,\"n\":1}\n{\"id\":2,\"n\":NaN}\n{\"id\":2,\"n\":NaN}\n");
    night(&folder, "a", &[]).expect_code(0);
    let refused = night(&folder, "b", &["--protocol", "feed-v1"]);
    refused.expect_trouble(
        "holds keys of geojson-v1 (06f50e9a8b432ab147296028e784a407), and this run is under feed-v1 (",
    );
    assert!(!folder.path().join("b.out").exists());
    // Under both, 1.0 is seen by its old key, and 1 then by its new one.
    night(&folder, "b", &["--protocol", "feed-v1", "--also", "geojson-v1"]).expect_code(0);
    assert_eq!(folder.read("b.out"), b"{\"id\":2,\"n\":NaN}\n");
    let info = String::from_utf8(folder.run(&["store", "info", "store"]).expect_code(0).stdout).unwrap();
    assert!(info.contains("geojson-v1 (06f50e9a8b432ab147296028e784a407): 3 keys"), "{info}");
    assert!(info.contains("feed-v1 (1270c83f42dd83480892fdaab6e6781d): 2 keys"), "{info}");
    assert!(info.contains("not every run forgets keys"), "{info}");
    folder.file("c.in", "{\"id\":1,\"n\":1.0}\n{\"id\":3}\n");
    night(&folder, "c", &["--protocol", "feed-v1"]).expect_trouble("holds keys of geojson-v1");
    let dropped = folder.run(&["store", "drop-protocol", "store", "geojson-v1"]).expect_code(0);
    assert_eq!(dropped.stdout, b"dropped 3 keys of geojson-v1\n");
    night(&folder, "c", &["--protocol", "feed-v1"]).expect_code(0);
    assert_eq!(folder.read("c.out"), b"{\"id\":3}\n");
    folder.run(&["store", "drop-protocol", "store", "feed-v1"]).expect_trouble("its only protocol");
    // An event that the old protocol rejects has a key under the new one only.
    folder.file("d.in", "{\"id\":4,\"n\":1e999}\n{\"id\":5}\n{\"id\":4,\"n\":1e999}\n");
    night(&folder, "d", &["--protocol", "feed-v1", "--also", "jcs-v1"]).expect_code(0);
    assert_eq!(folder.read("d.out"), b"{\"id\":4,\"n\":1e999}\n{\"id\":5}\n");
}

/// A run of keys that are made of numbers, at a time.
fn claim(store: &Path, now: u64, run: &str, numbers: &[u8]) -> Session<'static> {
    let mut session = Session::open(&RealDisk, store, now, false).unwrap();
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
    let committed =
        session.commit(run, &[Claimed::from(numbers.iter().map(|&number| [number; 16]).collect::<Vec<_>>())]);
    assert!(committed.is_ok());
    session
}

fn seen(session: &Session<'_>, ttl: Option<u64>) -> Vec<u8> {
    let loaded = session.load(&Protocol::built_in("geojson-v1").unwrap(), ttl).unwrap();
    (0..=255).filter(|&number| loaded.contains(&[number; 16])).collect()
}

const DAY: u64 = 24 * 60 * 60 * 1000;

#[test]
fn keys_are_forgotten_after_their_first_claim_and_the_clock_never_goes_back() {
    let folder = Folder::new();
    let store = folder.path().join("store");
    let start = 1_700_000_000_000;
    drop(claim(&store, start, "1", &[1, 2]));
    drop(claim(&store, start + DAY, "2", &[3]));
    let session = claim(&store, start + 2 * DAY, "3", &[4]);
    assert_eq!(seen(&session, None), [1, 2, 3, 4]);
    assert_eq!(seen(&session, Some(2 * DAY + 1)), [1, 2, 3, 4]);
    // As SET NX PX of Redis: a key lives for the time given, and not at its end.
    assert_eq!(seen(&session, Some(2 * DAY)), [3, 4]);
    assert_eq!(seen(&session, Some(DAY)), [4]);
    drop(session);
    let open = |now| Session::open(&RealDisk, &store, now, false).unwrap();
    // A clock that jumps back revives nothing, and claims nothing in the past.
    let session = open(start);
    assert_eq!((session.time(), seen(&session, Some(DAY))), (start + 2 * DAY, vec![4]));
    drop(session);
    // One that jumps ahead forgets nothing, unless it is right.
    let ahead = start + 400 * DAY;
    let session = open(ahead);
    assert!(!session.is_clock_plausible());
    assert_eq!((session.time(), seen(&session, Some(DAY))), (ahead, vec![1, 2, 3, 4]));
    drop(session);
    let session = Session::open(&RealDisk, &store, ahead, true).unwrap();
    assert_eq!((session.time(), seen(&session, Some(DAY))), (ahead, vec![]));
    drop(session);
    // Merged segments keep the claim time of each key; what has expired can be dropped.
    let mut session = open(start + 2 * DAY);
    assert_eq!(session.compact(None).unwrap(), (4, 4));
    assert_eq!(session.manifest().segments.len(), 1);
    assert_eq!(seen(&session, Some(2 * DAY)), [3, 4]);
    assert_eq!(session.compact(Some(DAY)).unwrap(), (4, 1));
    assert_eq!(seen(&session, None), [4]);
    // A key that was forgotten and claimed anew has its later claim.
    drop(session);
    drop(claim(&store, start + 3 * DAY, "4", &[1]));
    drop(claim(&store, start + 9 * DAY, "5", &[1]));
    let mut session = open(start + 9 * DAY);
    assert_eq!(session.compact(None).unwrap(), (3, 2));
    assert_eq!(seen(&session, Some(DAY)), [1]);
}

#[test]
fn keys_that_were_claimed_under_a_clock_that_seemed_wrong_are_not_forgotten_early() {
    let folder = Folder::new();
    let store = folder.path().join("store");
    let (start, later) = (1_700_000_000_000, 1_700_000_000_000 + 400 * DAY);
    drop(claim(&store, start, "1", &[1]));
    // The clock seems wrong for two nights, and is right.
    drop(claim(&store, later, "2", &[2]));
    drop(claim(&store, later + DAY, "3", &[3]));
    let open = |now, trust| Session::open(&RealDisk, &store, now, trust).unwrap();
    let session = open(later + 2 * DAY, false);
    assert_eq!((session.manifest().clock, seen(&session, Some(DAY))), (start, vec![1, 2, 3]));
    drop(session);
    let session = open(later + 2 * DAY, true);
    assert_eq!(seen(&session, Some(3 * DAY)), [2, 3]);
    assert_eq!(seen(&session, Some(2 * DAY)), [3]);
    drop(session);
    // It was wrong: the store's clock has not followed it, and nothing is forgotten early.
    let mut session = open(start + DAY, false);
    assert!(session.is_clock_plausible());
    assert_eq!((session.time(), seen(&session, Some(DAY))), (start + DAY, vec![2, 3]));
    // What is claimed in a time to come is, once merged, as old as the merging.
    assert_eq!(session.compact(None).unwrap(), (3, 3));
    drop(session);
    let session = open(start + 2 * DAY, false);
    assert_eq!((seen(&session, Some(DAY + 1)), seen(&session, Some(DAY))), (vec![2, 3], vec![]));
}

/// Keys with their claim times, as `store export --times` has them.
fn ages(folder: &Folder, protocol: &str) -> Vec<(String, String)> {
    let run = folder.run(&["store", "export", "store", "--protocol", protocol, "--times"]).expect_code(0);
    let text = String::from_utf8(run.stdout).unwrap();
    text.lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(key, time)| (key.to_owned(), time.to_owned()))
        .collect()
}

#[test]
fn a_duplicate_makes_no_key_younger_under_another_protocol_either() {
    let folder = Folder::new();
    folder.file("a.in", "{\"id\":1,\"n\":1.0}\n");
    // Seen by its old key; then by the new one that it has thereby; an event of its own.
    folder.file("b.in", "{\"id\":1,\"n\":1.0,\"attempt\":2}\n{\"id\":1,\"n\":1}\n{\"id\":2}\n");
    night(&folder, "a", &[]).expect_code(0);
    thread::sleep(Duration::from_millis(1100));
    night(&folder, "b", &["--protocol", "feed-v1", "--also", "geojson-v1"]).expect_code(0);
    assert_eq!(folder.read("b.out"), b"{\"id\":2}\n");
    let times = |protocol| {
        let mut times: Vec<String> = ages(&folder, protocol).into_iter().map(|(_, time)| time).collect();
        times.sort();
        times
    };
    let (new, old) = (times("feed-v1"), times("geojson-v1"));
    assert_eq!((new.len(), old.len()), (2, 3));
    // The event of the first night is as old as that, under both protocols and in both of its forms.
    assert_eq!(
        [&new[..], &old[..]],
        [&[old[0].clone(), new[1].clone()][..], &[&*old[0], &*old[0], &*new[1]].map(str::to_owned)]
    );
    assert!(old[0] < new[1]);
    folder.run(&["store", "verify", "store", "--outputs"]).expect_code(0);
}

#[test]
fn one_run_at_a_time() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1]));
    let mut waiting =
        folder.command(&["dedup", "--store", "store", "--run-id", "long", "-", "-o", "long.out", "-q"]);
    let mut waiting = waiting.stdin(Stdio::piped()).spawn().unwrap();
    let held =
        || fs::read_to_string(folder.path().join("store/LOCK")).is_ok_and(|text| text.contains("long"));
    for _ in 0..200 {
        if held() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(held());
    let refused = night(&folder, "a", &[]);
    refused.expect_trouble(&format!("store: in use by process {}, run `long`", waiting.id()));
    folder.run(&["store", "compact", "store"]).expect_trouble("in use by process");
    // Readers need no lock.
    folder.run(&["store", "info", "store"]).expect_code(0);
    folder.run(&["store", "verify", "store"]).expect_code(0);
    drop(waiting.stdin.take());
    assert!(waiting.wait().unwrap().success());
    night(&folder, "a", &[]).expect_code(0);
}

#[test]
fn damage_is_found_in_every_region_of_every_file() {
    let folder = Folder::new();
    folder.file("a.in", feed(&(0..9000).collect::<Vec<_>>()));
    folder.file("b.in", feed(&[1, 2]));
    night(&folder, "a", &[]).expect_code(0);
    for name in ["0000000000000001.keys", "MANIFEST"] {
        let path = folder.path().join("store").join(name);
        let whole = fs::read(&path).unwrap();
        let check = |what: &str, expected: Option<&str>| {
            let verified = folder.run(&["store", "verify", "store"]);
            assert_eq!(verified.code, Some(2), "{name}, {what}: {}", verified.stderr);
            assert!(verified.stderr.contains(name), "{name}, {what}: {}", verified.stderr);
            assert!(
                expected.is_none_or(|expected| verified.stderr.contains(expected)),
                "{what}: {}",
                verified.stderr
            );
            // Nor does a run take a damaged store for an empty one, but for the padding that only `verify` reads.
            let run = night(&folder, "b", &[]);
            assert!(run.code == Some(2) || what.contains("whole"), "{name}, {what}: {}", run.stderr);
            assert!(what.contains("whole") || !folder.path().join("b.out").exists());
        };
        let step = whole.len() / 97 + 1;
        let ends =
            [0, 7, 8, 12, 16, 40, 70, 80, 90, 95, 96, whole.len() - 1, whole.len() - 20, whole.len() - 32];
        for place in (0..whole.len()).step_by(step).chain(ends).filter(|&place| place < whole.len()) {
            let mut flipped = whole.clone();
            flipped[place] ^= 1 << (place % 8);
            fs::write(&path, &flipped).unwrap();
            check(&format!("bit of byte {place}"), None);
        }
        for length in [0, 1, 50, 96, whole.len() / 2, whole.len() - 32, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            check(&format!("cut to {length}"), None);
        }
        fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        check("a byte more", None);
        fs::remove_file(&path).unwrap();
        let missing = night(&folder, "b", &[]);
        missing.expect_trouble(if name == "MANIFEST" {
            "MANIFEST: it is missing, and there are segments"
        } else {
            "it is missing, and the manifest lists it"
        });
        fs::write(&path, &whole).unwrap();
    }
    folder.run(&["store", "verify", "store"]).expect_code(0);
    night(&folder, "b", &[]).expect_code(0);
    assert_eq!(folder.read("b.out"), b"");
}

#[test]
fn a_store_of_an_earlier_version_can_be_read_and_one_of_a_later_one_is_refused() {
    let folder = Folder::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-1");
    fs::create_dir(folder.path().join("store")).unwrap();
    for name in ["MANIFEST", "0000000000000003.keys", "0000000000000004.keys"] {
        fs::copy(fixture.join(name), folder.path().join("store").join(name)).unwrap();
    }
    let verified = folder.run(&["store", "verify", "store"]).expect_code(0);
    assert_eq!(verified.stdout, b"whole: 2 segments of 5 keys\n");
    let exported = folder.run(&["store", "export", "store", "--times"]).expect_code(0);
    assert_eq!(
        String::from_utf8(exported.stdout).unwrap(),
        fs::read_to_string(fixture.join("keys.txt")).unwrap()
    );
    folder.file("a.in", feed(&[1, 2, 3, 4, 5, 6]));
    night(&folder, "new", &["a.in"]).expect_trouble("cannot read new.in");
    let manifest = String::from_utf8(folder.read("store/MANIFEST")).unwrap();
    folder.file("store/MANIFEST", manifest.replacen("firstseen-store 1", "firstseen-store 2", 1));
    folder.run(&["store", "info", "store"]).expect_trouble("another version of the format");
}

#[test]
fn keys_go_out_and_in_again() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2, 3]));
    night(&folder, "a", &[]).expect_code(0);
    let keys = folder.run(&["store", "export", "store"]).expect_code(0).stdout;
    let of_feed = folder.run(&["key", "a.in"]).expect_code(0).stdout;
    let mut lines: Vec<&[u8]> = of_feed.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    assert_eq!(keys, lines.concat());
    assert_eq!(folder.run(&["store", "export", "store", "--raw"]).expect_code(0).stdout.len(), 3 * 16);
    folder.file(
        "keys.txt",
        [&keys[..], b"\n", &keys, b"00112233445566778899aabbccddeeff\tsome time\n"].concat(),
    );
    let imported = folder.run(&["store", "import", "other", "keys.txt"]).expect_code(0);
    assert_eq!(imported.stdout, b"8 lines: 4 new keys\n");
    let again = folder.pipe(&["store", "import", "other", "-"], &keys).expect_code(0);
    assert_eq!(again.stdout, b"3 lines: 0 new keys\n");
    folder.file("b.in", feed(&[3, 4, 1]));
    folder.run(&["dedup", "--store", "other", "b.in", "-o", "b.out"]).expect_code(0);
    assert_eq!(published(&folder, &["b"]), [4]);
    for (text, message) in [
        ("0011\n", "keys.txt:1: a key of geojson-v1 has 32 hexadecimal digits, not 4"),
        (
            "\n00112233445566778899aabbccddee+f\n",
            "keys.txt:2: `00112233445566778899aabbccddee+f` is not in hexadecimal digits",
        ),
    ] {
        folder.file("keys.txt", text);
        folder.run(&["store", "import", "other", "keys.txt"]).expect_trouble(message);
    }
    folder
        .run(&["store", "export", "other", "--protocol", "feed-v1"])
        .expect_trouble("holds no keys of feed-v1; it has keys of geojson-v1");
    folder.run(&["store", "info", "nothing"]).expect_trouble("nothing: there is no store");
    // Published outputs are what a store can be made of.
    folder.run(&["store", "rebuild", "new", "--from", "a.out", "b.out"]).expect_code(0);
    assert_eq!(folder.run(&["store", "export", "new"]).expect_code(0).stdout.len(), 4 * 33);
    folder.run(&["store", "rebuild", "new", "--from", "a.out"]).expect_code(2);
    folder
        .run(&["store", "rebuild", "store", "--from", "a.out"])
        .expect_trouble("make the store anew in another folder");
}

#[test]
fn keys_of_every_length_come_in_again_as_old_as_they_were() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2]));
    folder.file("b.in", feed(&[2, 3]));
    for (key_bytes, digits) in [("8", 16), ("0", 128), ("16", 32), ("20", 40)] {
        let options = ["--key-bytes", key_bytes];
        let (one, two) = (format!("one-{key_bytes}"), format!("two-{key_bytes}"));
        let in_store = |store: &str, name: &str| {
            let output = format!("{store}.{name}.out");
            folder.run(
                &[&["dedup", "-q", "--store", store, &format!("{name}.in"), "-o", &output], &options[..]]
                    .concat(),
            )
        };
        in_store(&one, "a").expect_code(0);
        let info = firstseen::store::info(&folder.path().join(&one)).unwrap();
        let known = &info.manifest.protocols[0].fingerprint;
        let export = |store: &str| {
            let run = folder.run(&["store", "export", store, "--times", "--protocol", known]).expect_code(0);
            String::from_utf8(run.stdout).unwrap()
        };
        let keys = export(&one);
        thread::sleep(Duration::from_millis(5));
        folder.file("keys", &keys);
        folder.run(&[&["store", "import", &two, "keys", "--times"], &options[..]].concat()).expect_code(0);
        assert_eq!(export(&two), keys, "{key_bytes}");
        in_store(&two, "b").expect_code(0);
        assert_eq!(folder.read(&format!("{two}.b.out")), delivery(3, 1).as_bytes());
        // Whole keys, as `key` prints them, are the same ones.
        let whole = folder.run(&[&["key", "a.in"], &options[..]].concat()).expect_code(0).stdout;
        assert_eq!(whole.len(), 2 * (digits + 1), "{key_bytes}");
        let again = folder.pipe(&[&["store", "import", &two, "-"], &options[..]].concat(), &whole);
        assert_eq!(again.expect_code(0).stdout, b"2 lines: 0 new keys\n", "{key_bytes}");
    }
    let refused = |text: &str, options: &[&str], told: &str| {
        folder.file("keys", text);
        folder.run(&[&["store", "import", "other", "keys"], options].concat()).expect_trouble(told);
    };
    let zeros = "0".repeat(31);
    refused(&format!("{zeros}1"), &["--key-bytes", "8"], "is longer than a key of ");
    refused("0011", &["--key-bytes", "8"], "has 16 hexadecimal digits, or 32 as a store exports them, not 4");
    refused(&format!("{zeros}0\tyesterday"), &["--times"], "keys:1: `yesterday` is no time");
    refused(&format!("\n{zeros}0"), &["--times"], "keys:2: `` is no time");
}

#[test]
fn keys_are_added_and_made_anew_while_a_protocol_is_changed() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1]));
    folder.file("b.in", feed(&[1, 2]));
    let both = ["--protocol", "feed-v1", "--also", "geojson-v1"];
    night(&folder, "a", &[]).expect_code(0);
    night(&folder, "b", &both).expect_code(0);
    let key = |protocol: &str| folder.run(&["key", "b.in", "--protocol", protocol]).expect_code(0).stdout;
    for protocol in ["geojson-v1", "feed-v1"] {
        let run = folder.pipe(&["store", "import", "store", "-", "--protocol", protocol], &key(protocol));
        assert_eq!(run.expect_code(0).stdout, b"2 lines: 0 new keys\n");
    }
    folder
        .pipe(&["store", "import", "store", "-", "--protocol", "jcs-v1"], &key("jcs-v1"))
        .expect_trouble("holds keys of geojson-v1");
    let rebuilt = ["store", "rebuild", "new", "--from", "a.out", "b.out"];
    folder.run(&[&rebuilt[..], &both].concat()).expect_code(0);
    let exported = |store: &str, protocol: &str| {
        folder.run(&["store", "export", store, "--protocol", protocol]).expect_code(0).stdout
    };
    for protocol in ["geojson-v1", "feed-v1"] {
        assert_eq!(exported("new", protocol), exported("store", protocol), "{protocol}");
    }
    // A file that would be passed over is no reason to know its keys no more.
    folder.shell("mkdir out && cp a.out out/a.jsonl && cp b.out out/2026-11-30").expect_code(0);
    folder
        .run(&["store", "rebuild", "part", "--from", "out"])
        .expect_trouble("out/2026-11-30: is no file called as event files are");
    folder.shell("mkdir out/2026 && mv out/2026-11-30 out/2026/b.jsonl").expect_code(0);
    folder
        .run(&["store", "rebuild", "part", "--from", "out"])
        .expect_trouble("out/2026: is no file called as event files are");
    folder.shell("mv out/2026/b.jsonl out/b.ndjson && rmdir out/2026 && touch out/.hidden").expect_code(0);
    folder.run(&["store", "rebuild", "part", "--from", "out"]).expect_code(0);
    assert_eq!(exported("part", "geojson-v1"), exported("store", "geojson-v1"));
}

/// Nights that overlap, of which some are killed and all are run again.
#[test]
fn thirty_nights_with_kills_are_as_one() {
    let folder = Folder::new();
    let mut random = 88_172_645_463_325_252_u64;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut oracle = Vec::new();
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    let mut killed = 0;
    for number in 0..30_u64 {
        let name = format!("night-{number:02}");
        let ids: Vec<u32> = (0..2000).map(|_| (number * 700 + below(2500)) as u32).collect();
        oracle.extend(ids.iter().copied().filter(|id| seen.insert(*id)));
        folder.file(&format!("{name}.in"), feed(&ids));
        let (input, output) = (format!("{name}.in"), format!("{name}.out"));
        for _ in 0..3 {
            let mut child = folder
                .command(&["dedup", "--store", "store", "--run-id", &name, &input, "-o", &output, "-q"])
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_micros(below(25_000)));
            child.kill().unwrap();
            killed += u32::from(!child.wait().unwrap().success());
        }
        night(&folder, &name, &[]).expect_code(0);
        night(&folder, &name, &[]).expect_code(0);
        names.push(name);
    }
    println!("{killed} of 90 runs were killed before they ended");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(published(&folder, &names), oracle);
    folder.run(&["store", "verify", "store", "--outputs"]).expect_code(0);
    assert!(!folder.names().iter().any(|name| name.ends_with(".tmp")), "{:?}", folder.names());
}

#[test]
fn a_store_that_cannot_be_written_to_is_told() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1]));
    folder.file("busy/note.txt", "x");
    folder
        .run(&["dedup", "--store", "busy", "a.in", "-o", "a.out"])
        .expect_trouble("busy: no store, and not empty");
    folder
        .run(&["dedup", "--store", "no/such/folder", "a.in", "-o", "a.out"])
        .expect_trouble("cannot create the store no/such/folder");
    // The superuser may write everywhere; a read-only mount is tried in `environment.rs`.
    assert!(!folder.path().join("a.out").exists());
}

/// A run of the night `a` over the given inputs, of which `pipe` is one: what `change` does comes between the
/// start of the run and its end.
fn night_with_a_change(folder: &Folder, inputs: &str, change: &str) -> ToolRun {
    folder.shell(&format!(
        "mkfifo pipe; firstseen dedup --store store --run-id a {inputs} -o a.out --report a.json & run=$!
         exec 3> pipe; {change}; printf '{{\"id\":9}}\\n' >&3; exec 3>&-; wait $run"
    ))
}

#[test]
fn an_input_that_grows_is_read_as_far_as_it_was_there_and_told() {
    // The pipe is opened before the file or after it, so that the file grows before it is opened or after that.
    for inputs in ["a.in pipe", "pipe a.in", "--no-mmap pipe a.in", "--no-mmap a.in pipe", "pipe a.in.gz"] {
        let folder = Folder::new();
        folder.file("a.in", feed(&[1, 2, 1]));
        folder.shell("gzip -k a.in").expect_code(0);
        let name = if inputs.ends_with(".gz") { "a.in.gz" } else { "a.in" };
        let bytes = folder.read(name).len();
        let change = match name {
            "a.in" => format!("printf '%s\\n' '{}' >> a.in", feed(&[7]).trim_end()),
            _ => "printf '{\"id\":7}\\n' | gzip >> a.in.gz".to_owned(),
        };
        let run = night_with_a_change(&folder, inputs, &change).expect_code(0);
        let told = format!("{name}: has grown since the run found it; its first {bytes} bytes were read, ");
        assert!(run.stderr.contains(&told), "{inputs}: {}", run.stderr);
        let mut ids = published(&folder, &["a"]);
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 9], "{inputs}");
        let report: serde_json::Value = serde_json::from_slice(&folder.read("a.json")).unwrap();
        let grown = &report["store"]["grown"][0];
        assert_eq!((&grown["source"], &grown["read"]), (&name.into(), &bytes.into()), "{inputs}");
        assert_eq!(grown["bytes"], folder.read(name).len(), "{inputs}");
        let manifest = firstseen::store::info(&folder.path().join("store")).unwrap().manifest;
        assert!(manifest.runs[0].inputs.iter().any(|input| input.bytes == Some(bytes as u64)), "{inputs}");
        // What was appended is the next night's.
        folder.shell(&format!("cp {name} b.in")).expect_code(0);
        night(&folder, "b", &[]).expect_code(0);
        assert_eq!(published(&folder, &["b"]), [7], "{inputs}");
    }
}

#[test]
fn an_input_that_shrinks_or_is_rewritten_or_replaced_fails_the_run() {
    let changes = [
        (": > a.in", "became shorter"),
        ("cp a.in other && printf '{\"id\":8' | dd of=a.in conv=notrunc 2> dd.log", "was rewritten"),
        ("cp a.in other && mv other a.in", "was rewritten"),
        // Longer than before, but not the same and more. Its lines are as long as those before, so that it does not
        // matter whether the run looks at them before or after.
        ("printf '{\"id\":%d,\"attempt\":0}\\n' 5 6 7 8 1<> a.in", "was rewritten"),
        ("rm a.in", "a.in"),
    ];
    for (change, told) in changes {
        for inputs in ["a.in pipe", "--no-mmap a.in pipe"] {
            let folder = Folder::new();
            folder.file("a.in", feed(&[1, 2, 1]));
            let run = night_with_a_change(&folder, inputs, change);
            run.expect_trouble(told);
            assert!(!folder.path().join("a.out").exists(), "{change}");
            // Nothing was claimed: the same events, as they were, are all published.
            folder.file("a.in", feed(&[1, 2, 1]));
            night(&folder, "again", &[]).expect_trouble("again.in");
            folder.shell("cp a.in again.in").expect_code(0);
            night(&folder, "again", &[]).expect_code(0);
            assert_eq!(published(&folder, &["again"]), [1, 2], "{change}");
        }
    }
}

#[test]
fn no_output_of_any_kind_replaces_what_a_run_has_published() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2, 1]));
    folder.file("b.in", feed(&[2, 3]));
    night(&folder, "a", &["--report", "report.json"]).expect_code(0);
    let kept = folder.read("a.out");
    for option in ["--duplicates", "--rejects", "--report"] {
        night(&folder, "b", &[option, "a.out"])
            .expect_trouble("is the output of run `a`; write to another file (--force replaces it");
    }
    night(&folder, "b", &["--report", "report.json"]).expect_trouble("is the output of run `a`");
    folder.file("mine", "precious");
    night(&folder, "b", &["--duplicates", "mine"]).expect_trouble("is the output of no run of this store");
    assert_eq!((folder.read("a.out"), folder.read("mine")), (kept, b"precious".to_vec()));
    night(&folder, "a", &["--report", "report.json"]).expect_code(0);
    // What no run of the store has written may be a report that is written anew.
    folder.file("old.json", "{}");
    night(&folder, "b", &["--report", "old.json"]).expect_code(0);
}

#[test]
fn outputs_with_the_longest_names_are_two_files() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 1]));
    let [events, duplicates] = ["e", "d"].map(|letter| letter.repeat(250));
    let command = [
        "dedup",
        "-q",
        "--store",
        "store",
        "--run-id",
        "a",
        "a.in",
        "-o",
        &events,
        "--duplicates",
        &duplicates,
    ];
    folder.run(&command).expect_code(0);
    assert_eq!(folder.read(&events), feed(&[1]).as_bytes());
    assert_eq!(folder.read(&duplicates), feed(&[1, 1]).as_bytes()[feed(&[1]).len()..]);
    folder.run(&command).expect_code(0);
}

#[test]
fn recovery_removes_nothing_but_temporaries_of_the_store() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1]));
    folder.file("b.in", feed(&[2]));
    night(&folder, "a", &[]).expect_code(0);
    for output in ["store/b.keys", "store/MANIFEST", "store/x.tmp"] {
        folder
            .run(&["dedup", "--store", "store", "--run-id", "b", "b.in", "-o", "b.out", "--rejects", output])
            .expect_trouble("a store has its folder for itself");
    }
    folder.file("precious", "x");
    let path = folder.path().join("precious").display().to_string();
    let hidden = folder.path().join(".rest.tmp").display().to_string();
    let left_at = |store: &Path| {
        folder.file(".rest.tmp", "x");
        let lock =
            serde_json::json!({"process": 1, "run": "x", "store": store, "temporaries": [path, hidden]});
        folder.file("store/LOCK", lock.to_string());
    };
    // The lock of a copy is about the store that was copied, which may be in use.
    left_at(Path::new("/elsewhere"));
    night(&folder, "b", &[]).expect_code(0);
    assert!(folder.path().join(".rest.tmp").exists());
    left_at(&fs::canonicalize(folder.path().join("store")).unwrap());
    night(&folder, "b", &[]).expect_code(0);
    assert!(!folder.path().join(".rest.tmp").exists());
    assert_eq!(folder.read("precious"), b"x");
}

/// A run with a store that reads a pipe, and what is done while it does.
fn while_it_runs(folder: &Folder, done: &str) -> ToolRun {
    folder.shell(&format!(
        "mkfifo pipe; firstseen dedup -q --store store --run-id long pipe -o long.out & run=$!
         exec 3> pipe; while ! grep -q long store/LOCK; do sleep 0.01; done; while [ ! -e .long.out.*.tmp ]; do sleep 0.01; done
         {done}; printf '{{\"id\":9}}\\n' >&3; exec 3>&-; wait $run"
    ))
}

#[test]
fn a_run_whose_output_is_gone_does_not_commit() {
    let folder = Folder::new();
    while_it_runs(&folder, "rm .long.out.*.tmp").expect_trouble("cannot read ");
    assert!(firstseen::store::info(&folder.path().join("store")).unwrap().manifest.runs.is_empty());
    // What opens a copy of the store leaves the run alone.
    let folder = Folder::new();
    while_it_runs(&folder, "cp -r store copy && firstseen store compact copy").expect_code(0);
    assert_eq!(published(&folder, &["long"]), [9]);
}

#[test]
fn an_output_that_came_while_a_run_worked_is_not_replaced() {
    let folder = Folder::new();
    while_it_runs(&folder, "echo precious > long.out")
        .expect_trouble("is the output of no run of this store");
    assert_eq!(folder.read("long.out"), b"precious\n");
    assert!(firstseen::store::info(&folder.path().join("store")).unwrap().manifest.runs.is_empty());
}

#[test]
fn the_same_run_is_told_from_others_by_all_that_can_be_told() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 1]));
    let run = |options: &[&str]| {
        folder.run(&[&["dedup", "--store", "store", "a.in", "-o", "a.out"], options].concat())
    };
    run(&["--duplicates", "d", "--report", "r.json"]).expect_code(0);
    // However its files are spelled, it is the same run; what is only a report is no loss.
    let again = run(&["--duplicates", "./d", "--report", "./r.json"]).expect_code(0);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    fs::remove_file(folder.path().join("r.json")).unwrap();
    let again = run(&["--duplicates", "d", "--report", "r.json"]).expect_code(0);
    assert!(again.stderr.contains("r.json: is not there as run `auto-"), "{}", again.stderr);
    folder
        .run(&["store", "verify", "store", "--outputs"])
        .expect_trouble("r.json: it is missing; run `auto-");
    // Another file to be written is another run.
    folder.run(&["dedup", "--store", "other", "--run-id", "b", "a.in", "-o", "b.out"]).expect_code(0);
    folder
        .run(&["dedup", "--store", "other", "--run-id", "b", "a.in", "-o", "b.out", "--duplicates", "e"])
        .expect_trouble("with another output");
    // A pipe that is not read is told.
    let piped = |text: &str| {
        folder.pipe(&["dedup", "--store", "piped", "--run-id", "p", "-", "-o", "p.out"], text.as_bytes())
    };
    piped(&feed(&[1])).expect_code(0);
    let again = piped(&feed(&[2])).expect_code(0);
    assert!(
        again.stderr.contains("<stdin>: was not read, and cannot be compared with what run `p` has read"),
        "{}",
        again.stderr
    );
    for (options, told) in [
        (&["--run-id", ""][..], "a run cannot be called \"\""),
        (&["--run-id", "a\nb"], "a run cannot be called \"a\\nb\""),
        (&["--also", "geojson-v1"], "--also geojson-v1: is a protocol of the run already"),
    ] {
        folder
            .run(&[&["dedup", "--store", "new", "a.in", "-o", "new.out"], options].concat())
            .expect_trouble(told);
    }
    // A folder of something else is left as it was.
    folder.file("mine/x", "x");
    folder
        .run(&["dedup", "--store", "mine", "a.in", "-o", "new.out"])
        .expect_trouble("no store, and not empty");
    assert_eq!(fs::read_dir(folder.path().join("mine")).unwrap().count(), 1);
    folder.run(&["dedup", "--store", "dry", "--dry-run", "a.in"]).expect_code(0);
}

#[test]
fn pipes_as_outputs_are_refused_or_written_and_never_waited_for() {
    let folder = Folder::new();
    folder.file("a.in", format!("{}no event\n", feed(&[1])));
    folder.shell("mkfifo pipe").expect_code(0);
    folder
        .run(&["dedup", "--store", "store", "a.in", "-o", "pipe"])
        .expect_trouble("pipe cannot be committed together with a store");
    let rejects = folder
        .shell("cat pipe > rejects & firstseen dedup -q --store store a.in -o a.out --rejects pipe && wait");
    rejects.expect_code(0);
    assert_eq!(folder.read("rejects"), b"no event\n");
}

#[test]
fn the_protocol_in_use_is_not_called_droppable() {
    let folder = Folder::new();
    for name in ["a", "b", "c", "d"] {
        folder.file(&format!("{name}.in"), feed(&[1, 2]));
    }
    let info = || String::from_utf8(folder.run(&["store", "info", "store"]).expect_code(0).stdout).unwrap();
    night(&folder, "a", &["--ttl", "14d"]).expect_code(0);
    let both = ["--protocol", "feed-v1", "--also", "geojson-v1"];
    night(&folder, "b", &[&both[..], &["--ttl", "14d"]].concat()).expect_code(0);
    thread::sleep(Duration::from_millis(20));
    night(&folder, "c", &[&both[..], &["--ttl", "1ms"]].concat()).expect_code(0);
    // One run with a short time does not make the old keys needless for those with a long one.
    assert!(info().contains("can be dropped from ") && !info().contains("can be dropped\n"), "{}", info());
    folder.run(&["store", "drop-protocol", "store", "geojson-v1"]).expect_code(0);
    night(&folder, "d", &both).expect_code(0);
    assert!(!info().contains("dropped"), "{}", info());
}

#[test]
fn old_keys_can_be_dropped_when_those_that_no_other_protocol_has_are_forgotten() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.file(&format!("{name}.in"), feed(&[1, 2]));
    }
    let info = || String::from_utf8(folder.run(&["store", "info", "store"]).expect_code(0).stdout).unwrap();
    let both = ["--protocol", "feed-v1", "--also", "geojson-v1", "--ttl", "1h"];
    // A store that begins with both.
    night(&folder, "a", &both).expect_code(0);
    assert!(info().contains("can be dropped from "), "{}", info());
    let short = [&both[..5], &["1ms"]].concat();
    folder.shell("rm -r store a.out").expect_code(0);
    night(&folder, "a", &short).expect_code(0);
    thread::sleep(Duration::from_millis(20));
    night(&folder, "b", &short).expect_code(0);
    assert!(info().contains("can be dropped\n"), "{}", info());
    // Keys that were added to the old protocol alone are needed for as long again.
    folder.shell("rm -r store a.out b.out").expect_code(0);
    let minute = [&both[..5], &["1m"]].concat();
    night(&folder, "a", &minute).expect_code(0);
    let from =
        |text: &str| text.split_once("can be dropped from ").unwrap().1.lines().next().unwrap().to_owned();
    let before = from(&info());
    thread::sleep(Duration::from_millis(1100));
    folder
        .pipe(&["store", "import", "store", "-"], format!("{}\n", "ab".repeat(16)).as_bytes())
        .expect_code(0);
    assert!(from(&info()) > before, "{}", info());
}

#[test]
fn reading_without_the_lock_sees_one_state_of_the_store() {
    let folder = Folder::new();
    folder.file("a.in", feed(&[1, 2]));
    night(&folder, "a", &[]).expect_code(0);
    let store = folder.path().join("store");
    let compacted = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100 {
                firstseen::store::open(&store, false).unwrap().compact(None).unwrap();
            }
            compacted.store(true, Ordering::Relaxed);
        });
        while !compacted.load(Ordering::Relaxed) {
            assert_eq!(firstseen::store::verify(&store, true).unwrap().keys, 2);
            let mut keys = Vec::new();
            firstseen::store::export(&store, "geojson-v1", KeyFormat::Raw, &mut keys).unwrap();
            assert_eq!(keys.len(), 32);
        }
    });
}

#[test]
fn a_dry_run_of_a_committed_run_and_an_export_that_nobody_reads_are_well() {
    let folder = Folder::new();
    folder.file("a.in", feed(&(0..50_000).collect::<Vec<_>>()));
    night(&folder, "a", &[]).expect_code(0);
    folder
        .run(&["dedup", "--store", "store", "--run-id", "a", "--dry-run", "a.in", "-o", "a.out"])
        .expect_code(0);
    let cut = folder.shell("(firstseen store export store; echo $? >&3) 3> code | head -n 1");
    assert_eq!((cut.stdout.len(), cut.stderr.as_str()), (33, ""));
    folder.shell("(firstseen key a.in; echo $? >&3) 3> other | head -n 1").expect_code(0);
    assert_eq!(folder.read("code"), folder.read("other"));
}

#[test]
fn blocks_in_another_order_are_damage() {
    let folder = Folder::new();
    folder.file("a.in", feed(&(0..9000).collect::<Vec<_>>()));
    folder.file("b.in", feed(&(0..9000).collect::<Vec<_>>()));
    night(&folder, "a", &[]).expect_code(0);
    let path = folder.path().join("store/0000000000000001.keys");
    let whole = fs::read(&path).unwrap();
    // A block is 4096 keys and their checksum.
    let (start, block) = (96, 4096 * 16 + 8);
    let mut swapped = whole.clone();
    swapped[start..start + block].copy_from_slice(&whole[start + block..start + 2 * block]);
    swapped[start + block..start + 2 * block].copy_from_slice(&whole[start..start + block]);
    fs::write(&path, swapped).unwrap();
    let told = "block 1: its keys do not come after those of the block before";
    folder.run(&["store", "verify", "store"]).expect_trouble(told);
    night(&folder, "b", &[]).expect_trouble(told);
    fs::write(&path, whole).unwrap();
    night(&folder, "b", &[]).expect_code(0);
    assert_eq!(folder.read("b.out"), b"");
}
