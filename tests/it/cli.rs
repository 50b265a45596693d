//! Options, overrides, the report and the messages.

use serde_json::Value;

use crate::tool::{Folder, gzip};

const EVENTS: &str = "{\"attempt\":1,\"x\":1.23456789}\n{\"x\":1.23456789}\n{\"x\":1.2345678,\"id\":7}\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("feed", EVENTS);
    folder
}

#[track_caller]
fn lines(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let run = folder.run(arguments).expect_code(0);
    String::from_utf8(run.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn key_prints_one_key_a_line_with_what_is_asked_for() {
    let folder = folder();
    let keys = lines(&folder, &["key", "feed"]);
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())));
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
    let canonical = ["{\"x\":1.23456789}", "{\"x\":1.23456789}", "{\"id\":7,\"x\":1.2345678}"];
    for (index, line) in lines(&folder, &["key", "--canonical", "feed"]).iter().enumerate() {
        assert_eq!(*line, format!("{}\t{}", keys[index], canonical[index]));
    }
    for (index, line) in lines(&folder, &["key", "--long", "feed"]).iter().enumerate() {
        assert_eq!(*line, format!("{}\tgeojson-v1\t{}", keys[index], canonical[index].len()));
    }
    let run = folder.run(&["key", "--long", "--canonical", "feed"]).expect_code(2);
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
}

#[test]
fn key_takes_the_inputs_of_dedup_and_collects_rejects() {
    let folder = folder();
    folder.file("bad.gz", gzip(b"{\"x\":01}\n{}\n[]"));
    let run = folder.run(&["key", "bad.gz"]).expect_code(2);
    assert!(run.stderr.starts_with("bad.gz:1:7: malformed number\n"), "{}", run.stderr);
    let keys = lines(
        &folder,
        &["key", "bad.gz", "feed", "--rejects", "rejects", "--threads", "2", "--chunk-bytes", "3"],
    );
    assert_eq!(keys.len(), 4);
    assert_eq!(folder.read("rejects"), b"{\"x\":01}\n[]\n");
}

/// The digests of `{"x":1.23456789}` and, for 3 decimals, `{"x":1.235}`, from CPython's hashlib.
#[test]
fn overrides_change_the_key_and_the_name() {
    let folder = folder();
    let check = |options: &[&str], key: &str, name: &str| {
        let line = lines(&folder, &[&["key", "--long", "feed"], options].concat()).swap_remove(0);
        let (got, rest) = line.split_once('\t').unwrap();
        assert!(
            got == key || (key.ends_with('…') && got.starts_with(key.trim_end_matches('…'))),
            "{options:?}: {got}"
        );
        assert_eq!(rest.split_once('\t').unwrap().0, name);
        got.len()
    };
    check(&[], "073da57963d3032604afbd014314eee9", "geojson-v1");
    check(&["--decimals", "8"], "073da57963d3032604afbd014314eee9", "geojson-v1");
    assert_eq!(check(&["--key-bytes", "0"], "073da57963d3032604afbd014314eee9…", "geojson-v1+bytes=64"), 128);
    assert_eq!(check(&["--key-bytes", "3"], "073da5", "geojson-v1+bytes=3"), 6);
    let sha256 = "016e913950d88945ce48760ece938415b4db862cb60c232ac93ec4f87903bfdd";
    assert_eq!(
        check(&["--hash", "sha256", "--key-bytes", "0"], sha256, "geojson-v1+hash=sha256+bytes=32"),
        64
    );
    check(&["--decimals", "3"], "132926509ef3166bde58a17fad82ef45", "geojson-v1+decimals=3");
}

#[test]
fn members_to_strip_are_added_or_replaced() {
    let folder = folder();
    let canonical = |options: &[&str]| {
        let lines = lines(&folder, &[&["key", "--canonical", "feed"], options].concat());
        lines.into_iter().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(canonical(&["--strip", "x"]), ["{}", "{}", "{\"id\":7}"]);
    assert_eq!(canonical(&["--strip", "x", "--strip", "id"]), ["{}", "{}", "{}"]);
    let long =
        lines(&folder, &["key", "--long", "feed", "--no-default-strip", "--strip", "a,b", "--strip", "x\ny"]);
    assert_eq!(long[0].split('\t').nth(1).unwrap(), "geojson-v1+strip=\"a,b\",\"x\\ny\"");
    assert_eq!(canonical(&["--no-default-strip"])[0], "{\"attempt\":1,\"x\":1.23456789}");
    assert_eq!(canonical(&["--no-default-strip", "--strip", "x"])[0], "{\"attempt\":1}");
}

#[test]
fn decimals_outside_six_to_ten_warn_with_the_reason() {
    let folder = folder();
    for (decimals, reason) in
        [("5", "merge distinct points"), ("0", "merge distinct points"), ("11", "float noise")]
    {
        let run = folder.run(&["key", "feed", "--decimals", decimals]).expect_code(0);
        assert!(run.stderr.starts_with("firstseen: warning: "), "{}", run.stderr);
        assert!(run.stderr.contains(reason), "{}", run.stderr);
    }
    for decimals in ["6", "8", "10"] {
        assert_eq!(folder.run(&["key", "feed", "--decimals", decimals]).expect_code(0).stderr, "");
    }
}

#[test]
fn wrong_settings_are_refused_with_what_is_allowed() {
    let folder = folder();
    let check = |options: &[&str], message: &str| {
        let run = folder.run(&[&["key", "feed"], options].concat()).expect_code(2);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert_eq!(run.stdout, b"");
    };
    check(
        &["--protocol", "geojson-v9"],
        "there is no such protocol or file; built in are geojson-v1, geojson-shape-v1, feed-v1",
    );
    check(&["--key-bytes", "65"], "a blake2b key has at most 64 bytes");
    check(&["--hash", "sha256", "--key-bytes", "33"], "a sha256 key has at most 32 bytes");
    check(&["--decimals", "324"], "decimals must be from 0 to 323");
    check(&["--decimals", "-1"], "-1");
    check(&["--hash", "md5"], "blake2b, sha256");
    check(&["--threads", "0"], "--threads");
    check(&["--threads", "5000"], "5000 threads are too many; 1024 are the most");
}

#[test]
fn the_report_counts_every_line_by_input() {
    let folder = folder();
    folder.file("bad.gz", gzip(b"\n{\"x\":01}\n{\"x\":1.23456789}\n[]\n{\"x\":\"\xFF\"}\n[]"));
    folder
        .run(&[
            "dedup",
            "-q",
            "feed",
            "bad.gz",
            "-o",
            "out",
            "--rejects",
            "rejects",
            "--report",
            "report.json",
        ])
        .expect_code(0);
    let report: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["protocol"]["name"], "geojson-v1");
    assert_eq!(report["protocol"]["fingerprint"], "06f50e9a8b432ab147296028e784a407");
    let expected = |source: &str, counts: [u64; 7]| {
        let [bytes, lines, blank, events, unique, duplicates, rejected] = counts;
        serde_json::json!({"source": source, "bytes": bytes, "lines": lines, "blank": blank, "events": events,
            "unique": unique, "duplicates": duplicates, "rejected": rejected, "foreign_crs": 0, "degenerate_rings": 0})
    };
    let without_reasons = |mut counts: Value| {
        counts.as_object_mut().unwrap().remove("rejected_by_reason");
        counts
    };
    let inputs = &report["inputs"];
    assert_eq!(without_reasons(inputs[0].clone()), expected("feed", [EVENTS.len() as u64, 3, 0, 3, 2, 1, 0]));
    assert_eq!(without_reasons(inputs[1].clone()), expected("bad.gz", [42, 6, 1, 1, 0, 1, 4]));
    assert_eq!(
        inputs[1]["rejected_by_reason"],
        serde_json::json!({"invalid_utf8": 1, "malformed_number": 1, "not_an_object": 2})
    );
    assert_eq!(report["total"]["lines"], 9);
    assert_eq!(report["total"]["duplicates"], 2);
    assert_eq!(report["total"]["rejected_by_reason"], inputs[1]["rejected_by_reason"]);
    for stage in ["total", "read", "analyse", "claim", "emit", "write", "publish"] {
        assert!(report["seconds"][stage].is_f64(), "{stage}");
    }
    assert!(report["events_per_second"].as_f64().unwrap() > 0.0);
    if cfg!(target_os = "linux") {
        assert!(report["peak_memory_bytes"].as_u64().unwrap() > 1 << 20);
    }
}

#[test]
fn a_dry_run_counts_and_reports_and_writes_no_events() {
    let folder = folder();
    let options =
        ["dedup", "feed", "--dry-run", "-o", "out", "--duplicates", "dropped", "--report", "report.json"];
    let run = folder.run(&options).expect_code(0);
    assert_eq!(run.stdout, b"");
    assert!(run.stderr.contains("3 events: 2 unique, 1 duplicates"), "{}", run.stderr);
    assert_eq!(folder.names(), ["feed", "report.json"]);
    let run = folder.run(&["dedup", "feed", "--dry-run"]).expect_code(0);
    assert_eq!(run.stdout, b"");
}

#[test]
fn the_summary_is_short_and_quiet_leaves_it_out() {
    let folder = folder();
    folder.file("bad", "\nx\n");
    let run = folder.run(&["dedup", "feed", "bad", "-o", "out", "--rejects", "rejects"]).expect_code(0);
    let summary = "firstseen: 3 events: 2 unique, 1 duplicates, 1 rejected, 1 blank (";
    assert!(run.stderr.starts_with(summary), "{}", run.stderr);
    assert!(run.stderr.ends_with("events/s)\nrejected: 1 not_an_object\n"), "{}", run.stderr);
    assert_eq!(folder.run(&["dedup", "feed", "-q", "-o", "out"]).expect_code(0).stderr, "");
}

#[test]
fn the_progress_bar_is_drawn_when_asked_for_and_not_into_logs() {
    let folder = folder();
    let drawn = |progress: &str| {
        // Slow input, so that there is something to draw.
        let script = format!("(cat feed; sleep 0.5) | firstseen dedup -o out --progress {progress}");
        folder.shell(&script).expect_code(0).stderr
    };
    let always = drawn("always");
    assert!(always.contains("events/s, 33.3 % duplicates"), "{always:?}");
    assert!(always.contains('\u{1b}'), "{always:?}");
    for quiet in ["auto", "never"] {
        assert!(!drawn(quiet).contains('\u{1b}'), "{quiet}");
    }
    let script =
        "mkfifo slow; (sleep 0.5; cat feed) > slow & firstseen dedup feed slow -o out --progress always";
    assert!(folder.shell(script).expect_code(0).stderr.contains("events/s"));
}

#[test]
fn wrong_usage_exits_with_two() {
    let folder = folder();
    for arguments in
        [&["dedupe"][..], &[], &["dedup", "--no-such-option"], &["dedup", "--progress", "sometimes"]]
    {
        let run = folder.run(arguments).expect_code(2);
        assert!(run.stderr.contains("--help"), "{}", run.stderr);
    }
    assert!(folder.run(&["--version"]).expect_code(0).stdout.starts_with(b"firstseen "));
    assert!(!folder.run(&["dedup", "--help"]).expect_code(0).stdout.is_empty());
}
