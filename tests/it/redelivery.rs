//! Real events, redelivered as another program writes them: `dedup` gives back exactly the first
//! copies.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tool::{Folder, gzip};

#[test]
fn real_events_come_back_as_their_first_copies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("tests/data/usgs-earthquakes.jsonl");
    let original = fs::read_to_string(&path).unwrap();
    assert_eq!(original.lines().count(), 1707);
    let made = match Command::new("python3").arg(root.join("scripts/redeliver.py")).arg(path).output() {
        Ok(made) => made,
        Err(error) => return eprintln!("skipped: python3, which writes the copies, does not start: {error}"),
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let copies: usize = String::from_utf8(made.stderr).unwrap().trim().parse().unwrap();
    assert!(copies > 1000);

    let folder = Folder::new();
    folder.file("feed.jsonl", &made.stdout);
    folder.file("feed.jsonl.gz", gzip(&made.stdout));
    for input in ["feed.jsonl", "feed.jsonl.gz"] {
        for options in
            [&[][..], &["--no-mmap", "--threads", "8", "--chunk-bytes", "2000", "--batch-bytes", "9000"]]
        {
            let run = folder.run(&[&["dedup", input, "-o", "first.jsonl"], options].concat()).expect_code(0);
            assert!(
                String::from_utf8(folder.read("first.jsonl")).unwrap() == original,
                "{input} {options:?}"
            );
            let summary = format!("1,707 unique, {},{:03} duplicates", copies / 1000, copies % 1000);
            assert!(run.stderr.contains(&summary), "{}", run.stderr);
        }
    }
}
