//! Each case on every path: mapped, read, piped, gzip and zstd, for 1, 2 and 8 threads, with chunks
//! and batches of the usual size and tiny ones.

use crate::tool::{Folder, Run, gzip, zstd};

/// What a run on one input must do. Texts are whole files.
#[derive(Default)]
struct Expected<'a> {
    kept: &'a [u8],
    duplicates: &'a [u8],
    /// `None`: run without `--rejects`.
    rejects: Option<&'a [u8]>,
    /// The end of the message of a run that fails: nothing may be published then.
    trouble: Option<&'a str>,
}

const SIZES: [&[&str]; 3] =
    [&[], &["--chunk-bytes", "1", "--batch-bytes", "1"], &["--chunk-bytes", "20", "--batch-bytes", "100"]];

#[track_caller]
fn check(input: &[u8], expected: &Expected<'_>) {
    for way in ["map", "read", "pipe", "gzip", "zstd", "zstd pipe"] {
        for threads in ["1", "2", "8"] {
            for sizes in SIZES {
                let what = format!("{way}, {threads} threads, {sizes:?}");
                check_one(input, way, &[&["--threads", threads], sizes].concat(), &what, expected);
            }
        }
    }
}

#[track_caller]
fn check_one(input: &[u8], way: &str, options: &[&str], what: &str, expected: &Expected<'_>) {
    let folder = Folder::new();
    let mut arguments = vec!["dedup", "-q", "-o", "kept", "--duplicates", "duplicates"];
    arguments.extend_from_slice(options);
    if expected.rejects.is_some() {
        arguments.extend(["--rejects", "rejects"]);
    }
    let (content, name) = match way {
        "gzip" => (gzip(input), "feed.gz"),
        "zstd" => (zstd(input), "feed.zst"),
        _ => (input.to_vec(), "feed"),
    };
    let run: Run = match way {
        "pipe" => folder.pipe(&arguments, input),
        "zstd pipe" => folder.pipe(&arguments, &zstd(input)),
        _ => {
            if way == "read" {
                arguments.push("--no-mmap");
            }
            folder.file(name, &content);
            arguments.push(name);
            folder.run(&arguments)
        }
    };
    if let Some(message) = expected.trouble {
        assert_eq!(run.code, Some(2), "{what}: {}", run.stderr);
        let first = run.stderr.lines().next().unwrap_or_default();
        assert!(first.ends_with(message), "{what}: {first}");
        assert_eq!(folder.names().iter().filter(|file| !file.starts_with("feed")).count(), 0, "{what}");
        return;
    }
    assert_eq!(run.code, Some(0), "{what}: {}", run.stderr);
    assert_eq!(run.stderr, "", "{what}");
    let read = |name| String::from_utf8_lossy(&folder.read(name)).into_owned();
    assert_eq!(read("kept"), String::from_utf8_lossy(expected.kept), "{what}");
    assert_eq!(read("duplicates"), String::from_utf8_lossy(expected.duplicates), "{what}");
    if let Some(rejects) = expected.rejects {
        assert_eq!(folder.read("rejects"), rejects, "{what}");
    }
}

/// An input that is all events: what is kept, and what is dropped.
#[track_caller]
fn check_events(input: &str, kept: &str, duplicates: &str) {
    let expected =
        Expected { kept: kept.as_bytes(), duplicates: duplicates.as_bytes(), ..Expected::default() };
    check(input.as_bytes(), &expected);
}

#[test]
fn the_first_copy_is_kept_as_it_was_written() {
    check_events(
        "{\"b\":1, \"a\":[1.50]}\n{\"a\":[1.5],\"b\":1}\n{\"a\":[1.5],\"b\":2}\n{\"b\":2,\"a\":[1.500000000001]}\n",
        "{\"b\":1, \"a\":[1.50]}\n{\"a\":[1.5],\"b\":2}\n",
        "{\"a\":[1.5],\"b\":1}\n{\"b\":2,\"a\":[1.500000000001]}\n",
    );
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    check_events("", "", "");
}

#[test]
fn blank_lines_are_skipped() {
    check_events("\n \n\t\r\n{\"a\":1}\n\n{\"a\":2}\n\r\n   ", "{\"a\":1}\n{\"a\":2}\n", "");
}

#[test]
fn carriage_returns_stay_with_their_line_but_not_in_its_key() {
    check_events("{\"a\":1}\r\n{\"a\":1}\n{\"a\":2}\r\n", "{\"a\":1}\r\n{\"a\":2}\r\n", "{\"a\":1}\n");
}

#[test]
fn a_last_line_without_a_line_end_gets_one() {
    check_events("{\"a\":1}\n{\"a\":2}", "{\"a\":1}\n{\"a\":2}\n", "");
    check_events("{\"a\":1}\n{\"a\":1}", "{\"a\":1}\n", "{\"a\":1}\n");
}

#[test]
fn a_byte_order_mark_at_the_start_is_dropped() {
    check_events("\u{feff}{\"a\":1}\n{\"a\":1}\n", "{\"a\":1}\n", "{\"a\":1}\n");
    check_events("\u{feff}", "", "");
    check_events("\u{feff}\n{\"a\":1}\n", "{\"a\":1}\n", "");
}

#[test]
fn a_byte_order_mark_elsewhere_is_no_event() {
    let expected = Expected { trouble: Some(":2:1: not a JSON object"), ..Expected::default() };
    check("{\"a\":1}\n\u{feff}{\"a\":1}\n".as_bytes(), &expected);
    let expected = Expected { trouble: Some(":1:9: expected a JSON value"), ..Expected::default() };
    check("\u{feff}{\"a\":x}".as_bytes(), &expected);
}

#[test]
fn rejects_are_collected_verbatim_and_are_in_no_other_output() {
    let expected = Expected {
        kept: b"{\"a\":1}\n{\"a\":2}\n",
        duplicates: b"{\"a\": 1}\n",
        rejects: Some(b"{\"a\":01}\r\n[1]\n\x00\xFF\nx\n"),
        ..Expected::default()
    };
    check(b"{\"a\":1}\n{\"a\":01}\r\n[1]\n\n{\"a\": 1}\n\x00\xFF\n{\"a\":2}\nx", &expected);
}

#[test]
fn the_first_line_that_is_no_event_ends_the_run() {
    let input = b"{\"a\":1}\n\n{\"a\":2}\n{\"abcdefghi\":\"\x01\"}\n{\"a\":01}\n";
    let expected = Expected { trouble: Some(":4:15: control character in string"), ..Expected::default() };
    check(input, &expected);
}

#[test]
fn numbers_that_simd_json_cannot_hold_are_kept_exactly() {
    check_events(
        "{\"a\":123456789012345678901}\n{\"a\":123456789012345678902}\n{\"a\":1e999}\n{\"a\":Infinity}\n{\"a\":-0}\n{\"a\":0}\n{\"a\":-0.0}\n",
        "{\"a\":123456789012345678901}\n{\"a\":123456789012345678902}\n{\"a\":1e999}\n{\"a\":-0}\n{\"a\":-0.0}\n",
        "{\"a\":Infinity}\n{\"a\":0}\n",
    );
}

#[test]
fn a_line_longer_than_many_batches_is_one_line() {
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1_000_000));
    let input = format!("{{\"a\":1}}\n{long}{{\"a\":1}}\n{long}");
    check_events(&input, &format!("{{\"a\":1}}\n{long}"), &format!("{{\"a\":1}}\n{long}"));
}
