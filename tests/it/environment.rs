//! Bad environments: a clear line, exit code 2, and whatever stood under the output's name before
//! is still there, whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::tool::{BINARY, Folder};

const EVENTS: &str = "{\"a\":1}\n{\"a\":2}\n{\"a\":1}\n";
const KEPT: &[u8] = b"{\"a\":1}\n{\"a\":2}\n";

/// A feed that is larger than pipes and buffers.
fn large_feed() -> String {
    (0..200_000).map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

/// A folder with a feed, and something that stands under the output's name.
fn folder_with_old_output() -> Folder {
    let folder = Folder::new();
    folder.file("feed", EVENTS);
    folder.file("out", "old\n");
    folder
}

#[track_caller]
fn assert_untouched(folder: &Folder, names: &[&str]) {
    assert_eq!(folder.read("out"), b"old\n");
    assert_eq!(folder.names(), names);
}

#[test]
fn a_missing_input_is_named() {
    let folder = folder_with_old_output();
    folder
        .run(&["dedup", "feed", "missing", "-o", "out"])
        .expect_trouble("cannot read missing: No such file or directory");
    assert_untouched(&folder, &["feed", "out"]);
}

#[test]
fn a_missing_output_folder_is_named() {
    let folder = folder_with_old_output();
    folder.run(&["dedup", "feed", "-o", "no/out"]).expect_trouble("no/out: No such file or directory");
    folder.run(&["dedup", "feed", "-o", "."]).expect_trouble("cannot write to .: is a directory");
    folder
        .run(&["dedup", "feed", "-o", "new/", "--rejects", "out"])
        .expect_trouble("cannot write to new/: is a directory");
    assert_untouched(&folder, &["feed", "out"]);
}

/// The superuser may read and write everything, so the tool runs as somebody else if need be.
#[test]
fn missing_permissions_are_named() {
    let folder = folder_with_old_output();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.path().join("feed"), Permissions::from_mode(0o000)).unwrap();
    folder.file("readable", EVENTS);
    copy_tool(&folder);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(folder.path().join("tool"));
        command.args(arguments).current_dir(folder.path());
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        } else {
            fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
        }
        let output = command.output().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let names = ["feed", "out", "readable", "tool"];
    assert!(run(&["dedup", "feed"]).contains("cannot read feed: Permission denied"));
    assert!(run(&["dedup", "readable", "-o", "out"]).contains("out: Permission denied"));
    assert_untouched(&folder, &names);
}

/// Copies the tool to a place that everybody can reach. The copy is a process of its own: were the
/// file open for writing here, a test that forks at this moment would keep it open in its child,
/// and running it would fail with "text file busy".
fn copy_tool(folder: &Folder) {
    let status = Command::new("cp").arg(BINARY).arg(folder.path().join("tool")).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_full_device_is_named() {
    let folder = folder_with_old_output();
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: this system has no /dev/full");
        return;
    }
    folder
        .run(&["dedup", "-q", "feed", "-o", "/dev/full"])
        .expect_trouble("cannot write to /dev/full: No space left on device");
    folder
        .shell("firstseen dedup -q feed > /dev/full")
        .expect_trouble("cannot write to standard output: No space left on device");
    folder
        .shell("firstseen key feed > /dev/full")
        .expect_trouble("cannot write to standard output: No space left on device");
    assert_untouched(&folder, &["feed", "out"]);
}

/// A limit on the size of files is a disk that is full after so many blocks.
#[test]
fn an_output_that_cannot_be_written_whole_is_not_published() {
    let folder = folder_with_old_output();
    folder.file("feed", large_feed());
    for name in ["out", "out.gz", "out.zst"] {
        let script = format!("trap '' XFSZ; ulimit -f 40; firstseen dedup -q feed -o {name}");
        folder.shell(&script).expect_trouble(&format!("cannot write to {name}: File too large"));
    }
    folder
        .shell("trap '' XFSZ; ulimit -f 40; firstseen dedup -q feed feed -o /dev/null --duplicates out")
        .expect_trouble("cannot write to out: File too large");
    assert_untouched(&folder, &["feed", "out"]);
}

#[test]
fn a_full_disk_is_named() {
    let folder = folder_with_old_output();
    folder.file("feed", large_feed());
    let script = "unshare -m sh -c 'mkdir disk && mount -t tmpfs -o size=200k none disk || exit 77
        echo old > disk/out; firstseen dedup -q feed -o disk/out; code=$?
        ls -A disk >&2; cat disk/out; exit $code'";
    let run = folder.shell(script);
    if run.code != Some(2) || run.stderr.starts_with("unshare") {
        assert!(matches!(run.code, Some(77 | 1 | 127)), "{run:?}");
        eprintln!("skipped: this process may not mount a small disk");
        return;
    }
    assert_eq!(run.stderr, "firstseen: cannot write to disk/out: No space left on device\nout\n");
    assert_eq!(run.stdout, b"old\n");
}

#[test]
fn a_broken_pipe_is_quiet() {
    let folder = folder_with_old_output();
    folder.file("feed", large_feed());
    for command in ["dedup", "key"] {
        let run = folder
            .shell(&format!("firstseen {command} feed | head -n 1; echo ${{PIPESTATUS[0]}}"))
            .expect_code(0);
        assert_eq!(run.stderr, "", "{command}");
        assert!(run.stdout.ends_with(b"\n2\n"), "{command}: {run:?}");
    }
    let run = folder.shell("firstseen dedup feed feed --duplicates out | head -n 1; echo ${PIPESTATUS[0]}");
    assert_eq!((run.stderr.as_str(), run.stdout), ("", b"{\"id\":0}\n2\n".to_vec()));
    assert_untouched(&folder, &["feed", "out"]);
}

/// The tool, on a feed whose end it has not seen when `change` happens: its output is a pipe that
/// nobody reads until then.
#[track_caller]
fn check_change_while_mapped(change: impl FnOnce(&File), message: &str) {
    let folder = folder_with_old_output();
    let feed = folder.file("feed", large_feed().repeat(4));
    let options = ["dedup", "-q", "feed", "--duplicates", "out", "--batch-bytes", "65536"];
    let mut command = folder.command(&options);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "{\"id\":0}\n");
    change(&OpenOptions::new().write(true).open(feed).unwrap());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert!(!rest.contains(&0), "zeros that were not in the input were written");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
    assert_untouched(&folder, &["feed", "out"]);
}

/// Waits for a child whose standard input stays open; the limit is only there so that a failure ends.
#[track_caller]
fn ends_with_its_input_open(mut child: Child) -> std::process::Output {
    let stdin = child.stdin.take().unwrap();
    for _ in 0..6000 {
        if child.try_wait().unwrap().is_some() {
            drop(stdin);
            return child.wait_with_output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the tool still waits for input");
}

#[test]
fn an_output_that_fails_ends_the_run_even_if_the_input_is_quiet() {
    let folder = folder_with_old_output();
    let mut command = folder.command(&["dedup", "-q", "--duplicates", "out"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.as_mut().unwrap().write_all(b"{\"a\":1}\n").unwrap();
    let output = ends_with_its_input_open(child);
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(2), &b""[..]));

    command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{\"a\":1}\n").unwrap();
    let output = ends_with_its_input_open(child);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("No space left on device"));
    assert_untouched(&folder, &["feed", "out"]);
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let folder = folder_with_old_output();
    let script = "mkfifo pipe; (trap '' HUP; exec firstseen dedup -q pipe -o out) & exec 3> pipe
        for i in $(seq 6000); do ls -A | grep -q tmp && break; sleep 0.01; done
        kill -HUP $!; echo '{\"a\":1}' >&3; exec 3>&-; wait $!";
    folder.shell(script).expect_code(0);
    assert_eq!(folder.read("out"), b"{\"a\":1}\n");
}

#[test]
fn an_input_that_shrinks_while_mapped_is_named() {
    let message = "feed: the file became shorter while it was read";
    check_change_while_mapped(|feed| feed.set_len(600_000).unwrap(), message);
    // Not at a page's end: the rest of the last page reads as zeros, without any signal.
    check_change_while_mapped(|feed| feed.set_len(600_001).unwrap(), message);
    check_change_while_mapped(|feed| feed.set_len(0).unwrap(), message);
    check_change_while_mapped(|feed| feed.set_len(feed.metadata().unwrap().len() - 100).unwrap(), message);
}

/// The tool at work: it has read a line and waits for more, and its temporaries are there.
fn at_work(folder: &Folder) -> Child {
    let mut command =
        folder.command(&["dedup", "-q", "-o", "out", "--duplicates", "dropped", "--rejects", "bad.gz"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{\"a\":1}\n").unwrap();
    for _ in 0..6000 {
        if folder.names().iter().filter(|name| name.ends_with(".tmp")).count() == 3 {
            return child;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("no temporaries appeared: {:?}", folder.names());
}

#[test]
fn signals_remove_the_temporaries() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let folder = folder_with_old_output();
        let child = at_work(&folder);
        let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{signal}");
        assert_eq!(output.stderr, b"", "{signal}");
        assert_untouched(&folder, &["feed", "out"]);
    }
}

#[test]
fn a_kill_leaves_the_old_output_and_the_next_run_replaces_it() {
    let folder = folder_with_old_output();
    let mut child = at_work(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(folder.read("out"), b"old\n");
    // What is left is hidden, and no input of a directory.
    folder.run(&["dedup", "-q", "feed", "-o", "out"]).expect_code(0);
    assert_eq!(folder.read("out"), KEPT);
    folder.file("feed.jsonl", EVENTS);
    assert_eq!(folder.run(&["dedup", "-q", "."]).expect_code(0).stdout, KEPT);
}

#[test]
fn an_output_that_is_an_input_is_refused_under_any_name() {
    let folder = folder_with_old_output();
    fs::hard_link(folder.path().join("feed"), folder.path().join("hard")).unwrap();
    symlink("feed", folder.path().join("soft")).unwrap();
    symlink(folder.path(), folder.path().join("here")).unwrap();
    for output in ["feed", "./feed", "hard", "soft", "here/feed"] {
        for option in ["-o", "--duplicates", "--rejects", "--report"] {
            let message = format!("{output} is also an input (feed)");
            folder.run(&["dedup", "out", "feed", option, output]).expect_trouble(&message);
        }
    }
    for script in [
        "firstseen dedup -o feed < feed",
        "firstseen dedup feed >> feed",
        "firstseen dedup feed -o /dev/stdout >> feed",
    ] {
        folder.shell(script).expect_trouble("is also an input");
    }
    folder.file("soft.jsonl", EVENTS);
    folder
        .run(&["dedup", ".", "-o", "soft.jsonl"])
        .expect_trouble("soft.jsonl is also an input (./soft.jsonl)");
    assert_eq!(folder.read("feed"), EVENTS.as_bytes());
}

#[test]
fn two_outputs_of_one_name_are_refused() {
    let folder = folder_with_old_output();
    symlink("out", folder.path().join("link")).unwrap();
    for other in ["out", "./out", "link"] {
        folder.run(&["dedup", "feed", "-o", "out", "--duplicates", other]).expect_trouble("are one file");
    }
    folder.run(&["dedup", "feed", "-o", "new", "--rejects", "./new"]).expect_trouble("are one file");
    // Standard output is an output too, whatever it is.
    for option in ["--duplicates", "--rejects", "--report"] {
        folder.run(&["dedup", "feed", option, "-"]).expect_trouble("are one file");
        folder.shell(&format!("firstseen dedup feed {option} out >> out")).expect_trouble("are one file");
    }
    assert_untouched(&folder, &["feed", "link", "out"]);
    folder.run(&["dedup", "-q", "feed", "-o", "/dev/null", "--duplicates", "/dev/null"]).expect_code(0);
}

#[test]
fn what_is_no_regular_file_is_written_straight_and_stays_what_it_is() {
    let folder = folder_with_old_output();
    for stdout in ["/dev/stdout", "/dev/fd/1", "-"] {
        let run = folder.run(&["dedup", "-q", "feed", "-o", stdout]).expect_code(0);
        assert_eq!(run.stdout, KEPT, "{stdout}");
    }
    folder.run(&["dedup", "-q", "feed", "-o", "/dev/null"]).expect_code(0);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let run = folder
        .shell("mkfifo pipe; cat pipe & firstseen dedup -q feed -o pipe; wait; test -p pipe")
        .expect_code(0);
    assert_eq!(run.stdout, KEPT);
    // Standard output that is a regular file is the caller's: it is appended to, not replaced.
    folder.shell("(echo before; firstseen dedup -q feed -o /dev/stdout; echo after) > joined").expect_code(0);
    assert_eq!(folder.read("joined"), [b"before\n", KEPT, b"after\n"].concat());
    folder.shell("firstseen dedup -q feed -o /dev/null --duplicates /dev/fd/3 3> dropped").expect_code(0);
    assert_eq!(folder.read("dropped"), b"{\"a\":1}\n");
    folder.shell("firstseen dedup -q feed -o /dev/null --duplicates /dev/fd/3 3>> dropped").expect_code(0);
    assert_eq!(folder.read("dropped"), b"{\"a\":1}\n{\"a\":1}\n");
}

#[test]
fn the_target_of_a_symbolic_link_is_replaced_and_the_link_stays() {
    let folder = folder_with_old_output();
    fs::create_dir(folder.path().join("sub")).unwrap();
    folder.file("sub/real", "old\n");
    symlink("sub/real", folder.path().join("link")).unwrap();
    symlink("link", folder.path().join("link2")).unwrap();
    symlink("sub/fresh", folder.path().join("dangling")).unwrap();
    for (link, target) in [("link", "sub/real"), ("link2", "sub/real"), ("dangling", "sub/fresh")] {
        folder.run(&["dedup", "-q", "feed", "-o", link]).expect_code(0);
        assert!(fs::symlink_metadata(folder.path().join(link)).unwrap().is_symlink(), "{link}");
        assert_eq!(folder.read(target), KEPT, "{link}");
        folder.file("sub/real", "old\n");
    }
}

#[test]
fn the_permissions_of_a_replaced_file_are_kept_and_new_files_follow_the_umask() {
    let folder = folder_with_old_output();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o7777;
    for kept in [0o600, 0o640, 0o666, 0o755] {
        fs::set_permissions(folder.path().join("out"), Permissions::from_mode(kept)).unwrap();
        folder.run(&["dedup", "-q", "feed", "-o", "out"]).expect_code(0);
        assert_eq!(mode("out"), kept);
    }
    folder.shell("umask 027; firstseen dedup -q feed -o new").expect_code(0);
    assert_eq!(mode("new"), 0o640);
}

#[test]
fn an_output_name_of_any_length_works() {
    let folder = folder_with_old_output();
    let long = "x".repeat(250) + ".zst";
    folder.run(&["dedup", "-q", "feed", "-o", &long]).expect_code(0);
    assert_eq!(zstd::decode_all(&folder.read(&long)[..]).unwrap(), KEPT);
}

#[test]
fn nothing_is_published_when_a_line_is_no_event() {
    let folder = folder_with_old_output();
    folder.file("feed", "{\"a\":1}\n{\"a\":1}\n{}}\n");
    let run = folder
        .run(&["dedup", "feed", "-o", "out", "--duplicates", "dropped", "--report", "report"])
        .expect_code(2);
    assert!(run.stderr.starts_with("feed:3:3: characters after the event\n"), "{}", run.stderr);
    assert!(run.stderr.contains("--rejects FILE"), "{}", run.stderr);
    assert_untouched(&folder, &["feed", "out"]);
}
