//! Compressed inputs, pipes, directories, and lines of any length.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use crate::tool::{Folder, gzip, zstd};

/// `dedup` of one file of this content, to standard output.
#[track_caller]
fn check(content: &[u8], kept: &str) {
    let folder = Folder::new();
    folder.file("feed", content);
    for run in [folder.run(&["dedup", "-q", "feed"]), folder.pipe(&["dedup", "-q"], content)] {
        let run = run.expect_code(0);
        assert_eq!(String::from_utf8(run.stdout).unwrap(), kept);
    }
}

#[track_caller]
fn check_trouble(content: &[u8], message: &str) {
    let folder = Folder::new();
    folder.file("feed", content);
    folder.run(&["dedup", "-q", "feed", "-o", "out"]).expect_trouble(message);
    assert_eq!(folder.names(), ["feed"]);
    folder.pipe(&["dedup", "-q", "-o", "out"], content).expect_trouble(message);
    assert_eq!(folder.names(), ["feed"]);
}

const EVENTS: &str = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n";

#[test]
fn members_and_frames_are_read_to_the_end() {
    for compress in [gzip, zstd] {
        let by_record: Vec<u8> =
            EVENTS.split_inclusive('\n').flat_map(|line| compress(line.as_bytes())).collect();
        check(&by_record, EVENTS);
        let inside_a_line = [compress(&EVENTS.as_bytes()[..5]), compress(&EVENTS.as_bytes()[5..])].concat();
        check(&inside_a_line, EVENTS);
        let with_empty_ones = [compress(b""), compress(EVENTS.as_bytes()), compress(b"")].concat();
        check(&with_empty_ones, EVENTS);
    }
}

#[test]
fn many_members_of_one_record_each_are_read() {
    let lines: Vec<String> = (0..3000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    for compress in [gzip, zstd] {
        let content: Vec<u8> = lines.iter().flat_map(|line| compress(line.as_bytes())).collect();
        check(&content, &lines.concat());
    }
}

/// BGZF (SAM specification, section 4.1): gzip members with an extra field, and an empty one last.
#[test]
fn block_gzip_is_read() {
    let block = |content: &[u8]| {
        let mut encoder = flate2::GzBuilder::new()
            .extra(b"BC\x02\x00\x00\x00".to_vec())
            .write(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        let mut block = encoder.finish().unwrap();
        let size = u16::try_from(block.len() - 1).unwrap();
        block[16..18].copy_from_slice(&size.to_le_bytes());
        block
    };
    let content = [block(&EVENTS.as_bytes()[..3]), block(&EVENTS.as_bytes()[3..]), block(b"")].concat();
    check(&content, EVENTS);
}

#[test]
fn a_header_with_a_name_and_skippable_frames_are_read() {
    let mut encoder = flate2::GzBuilder::new()
        .filename("feed.jsonl")
        .comment("x")
        .write(Vec::new(), flate2::Compression::best());
    encoder.write_all(EVENTS.as_bytes()).unwrap();
    check(&encoder.finish().unwrap(), EVENTS);

    let skippable = b"\x5A\x2A\x4D\x18\x03\x00\x00\x00abc".to_vec();
    check(&[skippable.clone(), zstd(EVENTS.as_bytes()), skippable].concat(), EVENTS);
}

#[test]
fn a_truncated_archive_is_an_error_wherever_it_is_cut() {
    for (compress, header) in [(gzip as fn(&[u8]) -> Vec<u8>, 3), (zstd, 4)] {
        let whole = compress(EVENTS.as_bytes());
        for cut in header..whole.len() {
            check_trouble(&whole[..cut], "feed: the compressed data is cut short".trim_start_matches("feed"));
        }
        let second = [whole.clone(), whole[..whole.len() - 1].to_vec()].concat();
        check_trouble(&second, "the compressed data is cut short");
    }
}

#[test]
fn zero_padding_after_the_last_member_is_allowed_and_other_bytes_are_not() {
    for compress in [gzip, zstd] {
        let whole = compress(EVENTS.as_bytes());
        for padding in [1, 511, 600_000] {
            check(&[whole.clone(), vec![0; padding]].concat(), EVENTS);
        }
        for trailing in [&b"x"[..], b"\0\0x", b"\n", b"{\"a\":4}\n"] {
            check_trouble(&[&whole, trailing].concat(), "other bytes follow the compressed data");
        }
        // A member after padding would be lost by readers that stop at the padding.
        check_trouble(&[whole.clone(), vec![0; 4], whole].concat(), "other bytes follow the compressed data");
    }
}

#[test]
fn a_damaged_archive_is_an_error() {
    let mut damaged = gzip(EVENTS.as_bytes());
    let check_sum = damaged.len() - 8;
    damaged[check_sum] ^= 1;
    check_trouble(&damaged, "the compressed data is damaged: corrupt gzip stream");
}

/// More files than are decompressed at a time, and more in each than waits for its turn.
#[test]
fn many_archives_are_read_in_order() {
    let folder = Folder::new();
    let mut expected = String::new();
    let line = |file: usize, number: usize| {
        format!("{{\"text\":\"{}\",\"file\":{file},\"id\":{number}}}\n", "x".repeat(990))
    };
    for file in 0..20 {
        let count = if file % 14 == 3 { 20_000 } else { file };
        let content: String = (0..count).map(|number| line(file, number)).collect();
        expected.push_str(&content);
        let (name, content) = match file % 3 {
            0 => ("jsonl.gz", gzip(content.as_bytes())),
            1 => ("jsonl.zst", zstd(content.as_bytes())),
            _ => ("jsonl", content.into_bytes()),
        };
        folder.file(&format!("day/{file:02}.{name}"), content);
    }
    let run = folder.run(&["dedup", "-q", "day"]).expect_code(0);
    assert!(run.stdout == expected.as_bytes());

    let damaged = folder.read("day/04.jsonl.zst").split_last().unwrap().1.to_vec();
    folder.file("day/04.jsonl.zst", damaged);
    folder.run(&["dedup", "-q", "day"]).expect_trouble("day/04.jsonl.zst: the compressed data is");
}

#[test]
fn lines_are_numbered_in_archives_and_pipes_too() {
    let mut content = String::new();
    for number in 1..=2000 {
        content.push_str(&if number == 1041 {
            "{\"id\":\"abcdef\t\"}\n".to_owned()
        } else {
            format!("{{\"id\":{number}}}\n")
        });
    }
    let folder = Folder::new();
    folder.file("feed.jsonl", &content);
    folder.file("feed.jsonl.gz", gzip(content.as_bytes()));
    let by_line: Vec<u8> = content.split_inclusive('\n').flat_map(|line| zstd(line.as_bytes())).collect();
    folder.file("feed.jsonl.zst", by_line);
    for name in ["feed.jsonl", "feed.jsonl.gz", "feed.jsonl.zst"] {
        let run =
            folder.run(&["dedup", name, "--chunk-bytes", "100", "--batch-bytes", "1000"]).expect_code(2);
        assert!(
            run.stderr.starts_with(&format!("{name}:1041:14: control character in string\n")),
            "{}",
            run.stderr
        );
    }
    let run = folder.pipe(&["dedup"], content.as_bytes()).expect_code(2);
    assert!(run.stderr.starts_with("<stdin>:1041:14: control character in string\n"), "{}", run.stderr);
}

#[test]
fn what_came_before_the_fault_is_written_to_standard_output_whatever_the_batches() {
    let content = "{\"a\":1}\n{\"a\":2}\n{\"a\":1}\n{\"a\":3}\nx\n{\"a\":4}\n";
    let folder = Folder::new();
    for batch in ["1", "20", "1000000"] {
        let run = folder.pipe(&["dedup", "--batch-bytes", batch, "--chunk-bytes", "9"], content.as_bytes());
        assert_eq!(run.code, Some(2));
        assert_eq!(String::from_utf8(run.stdout).unwrap(), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "{batch}");
    }
}

#[test]
fn a_quiet_pipe_does_not_hold_back_its_events() {
    let folder = Folder::new();
    for compress in [(|bytes: &[u8]| bytes.to_vec()) as fn(&[u8]) -> Vec<u8>, gzip, zstd] {
        let mut child = folder
            .command(&["dedup", "-q", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        let reader =
            std::thread::spawn(move || stdout.lines().for_each(|line| sender.send(line.unwrap()).unwrap()));
        for id in 0..3 {
            let line = format!("{{\"id\":{id}}}");
            stdin.write_all(&compress(format!("{line}\n").as_bytes())).unwrap();
            // The pipe stays open. The limit is only there so that a failure ends.
            assert_eq!(lines.recv_timeout(Duration::from_secs(60)).unwrap(), line);
        }
        drop(stdin);
        reader.join().unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn who_reads_a_compressed_pipe_does_not_wait_either() {
    let folder = Folder::new();
    for name in ["out.gz", "out.zst"] {
        folder.shell(&format!("mkfifo {name}")).expect_code(0);
        let mut child =
            folder.command(&["dedup", "-q", "-", "-o", name]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (sender, lines) = mpsc::channel();
        let path = folder.path().join(name);
        let reader = std::thread::spawn(move || {
            let pipe = BufReader::new(File::open(&path).unwrap());
            let content: Box<dyn Read> = match path.extension().unwrap().to_str() {
                Some("gz") => Box::new(flate2::bufread::GzDecoder::new(pipe)),
                _ => Box::new(zstd::stream::read::Decoder::with_buffer(pipe).unwrap()),
            };
            BufReader::new(content).lines().for_each(|line| sender.send(line.unwrap()).unwrap());
        });
        stdin.write_all(b"{\"a\":1}\n").unwrap();
        // Standard input stays open. The limit is only there so that a failure ends.
        assert_eq!(lines.recv_timeout(Duration::from_secs(60)).unwrap(), "{\"a\":1}");
        drop(stdin);
        reader.join().unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn directories_stand_for_their_event_files_sorted_by_path() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("day")).unwrap();
    std::fs::create_dir(folder.path().join("day/deeper.jsonl")).unwrap();
    for (name, content) in [
        ("day/c.ndjson", b"{\"a\":3}\n".to_vec()),
        ("day/a.jsonl", b"{\"a\":1}".to_vec()),
        ("day/b.json.gz", gzip(b"{\"a\":2}\n{\"a\":1.0}\n")),
        ("day/d.geojsonl.zst", zstd(b"{\"a\":4}\n{\"a\":1}\n")),
        ("day/e.JSONL", b"{\"a\":5}\n".to_vec()),
        ("day/notes.txt", b"not read".to_vec()),
        ("day/jsonl", b"not read".to_vec()),
    ] {
        folder.file(name, content);
    }
    let run = folder.run(&["dedup", "-q", "day"]).expect_code(0);
    let kept = "{\"a\":1}\n{\"a\":2}\n{\"a\":1.0}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n";
    assert_eq!(String::from_utf8(run.stdout).unwrap(), kept);

    std::fs::create_dir(folder.path().join("empty")).unwrap();
    folder.run(&["dedup", "empty"]).expect_trouble("empty: no files that end in .jsonl");
}

#[test]
fn inputs_are_read_in_the_order_given_and_standard_input_among_them() {
    let folder = Folder::new();
    folder.file("a", "{\"a\":1}\n{\"a\":2}");
    folder.file("b", "\u{feff}{\"a\":2}\n{\"a\":4}\n");
    let run = folder.pipe(&["dedup", "-q", "b", "-", "a"], b"{\"a\":3}\n{\"a\":4}").expect_code(0);
    assert_eq!(String::from_utf8(run.stdout).unwrap(), "{\"a\":2}\n{\"a\":4}\n{\"a\":3}\n{\"a\":1}\n");
    folder.run(&["dedup", "-", "a", "-"]).expect_trouble("standard input is given twice");
}

#[test]
fn a_line_past_the_limit_is_refused_with_its_number() {
    let folder = Folder::new();
    let mut file = File::create(folder.path().join("feed")).unwrap();
    file.write_all(b"{\"a\":1}\n").unwrap();
    // A hole: 256 MiB and a byte of zeros, without a line end.
    file.set_len(8 + (256 << 20) + 1).unwrap();
    for options in [&[][..], &["--no-mmap"], &["--rejects", "rejects"]] {
        let run = folder.run(&[&["dedup", "feed", "-o", "out"], options].concat());
        run.expect_trouble("feed:2: the line is longer than 256 MiB");
        assert_eq!(folder.names(), ["feed"]);
    }
}

#[test]
fn a_file_of_no_length_may_still_have_content() {
    if !std::path::Path::new("/proc/version").exists() {
        eprintln!("skipped: this system has no /proc");
        return;
    }
    let run = Folder::new().run(&["dedup", "/proc/version"]).expect_code(2);
    assert!(run.stderr.starts_with("/proc/version:1:1: not a JSON object"), "{}", run.stderr);
}

#[test]
fn a_fifo_is_read_like_a_pipe() {
    let folder = Folder::new();
    let run = folder
        .shell("mkfifo feed && (printf '{\"a\":1}\\n{\"a\":1}\\n' > feed & firstseen dedup -q feed)")
        .expect_code(0);
    assert_eq!(run.stdout, b"{\"a\":1}\n");
}

#[test]
fn outputs_are_compressed_by_their_names() {
    let folder = Folder::new();
    folder.file("feed", EVENTS);
    folder.run(&["dedup", "-q", "feed", "-o", "out.gz", "--duplicates", "dropped.zst"]).expect_code(0);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&folder.read("out.gz")[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, EVENTS);
    assert_eq!(zstd::decode_all(&folder.read("dropped.zst")[..]).unwrap(), b"");
    folder.run(&["dedup", "-q", "out.gz", "-o", "out.zst"]).expect_code(0);
    assert_eq!(zstd::decode_all(&folder.read("out.zst")[..]).unwrap(), EVENTS.as_bytes());
}
