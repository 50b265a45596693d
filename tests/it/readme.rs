//! Every shell example of the README and of `docs/` is run.
//!
//! A block marked `console` is a session: lines that begin with `$ ` are commands, and the lines
//! below each are what it prints. A line `…` stands for any lines, and `…` inside a line for any
//! text. A file's blocks run one after another in one copy of the example data. The block marked
//! `sh` is for a fresh machine: `.ci/run` runs those commands.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tool::Folder;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README, and every page of `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    if let Ok(entries) = fs::read_dir(root().join("docs")) {
        pages.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|end| end == "md")),
        );
    }
    pages
}

/// The blocks of a page that are marked `mark`.
fn blocks(page: &str, mark: &str) -> Vec<String> {
    let fence = format!("```{mark}\n");
    let parts = page.split(fence.as_str()).skip(1);
    parts.map(|part| part.split("\n```").next().unwrap().to_owned()).collect()
}

/// Commands and what they print, of one session.
fn steps(block: &str) -> Vec<(String, Vec<String>)> {
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), Vec::new())),
            (None, Some((_, printed))) => printed.push(line.to_owned()),
            (None, None) => panic!("a session begins with a command: {line}"),
        }
    }
    steps
}

/// Whether `text` is `pattern`, in which `…` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('…') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).filter(|&at| text.is_char_boundary(at)).any(|at| matches(rest, &text[at..]))
        }),
    }
}

#[test]
fn every_console_session_prints_what_it_says() {
    let mut commands = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let folder = Folder::new();
        fs::create_dir(folder.path().join("examples")).unwrap();
        for entry in fs::read_dir(root().join("examples")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join("examples").join(entry.file_name())).unwrap();
        }
        for (command, printed) in blocks(&text, "console").iter().flat_map(|block| steps(block)) {
            let run = folder.shell(&format!("({command}) 2>&1"));
            let got = String::from_utf8(run.stdout).unwrap();
            let want = printed.join("\n");
            assert!(matches(&want, got.trim_end_matches('\n')), "{}: {command}\n{got}", page.display());
            commands += 1;
        }
    }
    assert!(commands > 5);
}

#[test]
fn the_commands_for_a_fresh_machine_are_what_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let block = blocks(&readme, "sh").concat();
    assert_eq!(block.lines().count(), 2);
    assert!(ci.ends_with(&format!("{block}\n")), "{block}");
}

#[test]
fn no_other_kind_of_block_hides_shell_commands() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (index, fence) in text.lines().filter(|line| line.starts_with("```")).enumerate() {
            let known = if index % 2 == 0 {
                &["```console", "```sh", "```rust", "```text", "```toml", "```json"][..]
            } else {
                &["```"]
            };
            assert!(known.contains(&fence), "{}: {fence}", page.display());
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_nightly_job_is_the_one_that_is_shown_and_its_service_runs_it() {
    let page = fs::read_to_string(root().join("docs/nightly.md")).unwrap();
    let shown = blocks(&page, "text");
    for name in ["nightly.sh", "firstseen-nightly.service", "firstseen-nightly.timer"] {
        let file = fs::read_to_string(root().join("examples").join(name)).unwrap();
        assert!(shown.iter().any(|block| *block == file.trim_end()), "{name}");
    }
    let service = fs::read_to_string(root().join("examples/firstseen-nightly.service")).unwrap();
    let command = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let folder = Folder::new();
    let script = root().join("examples/nightly.sh").display().to_string();
    let command = command.replace("/usr/local/lib/firstseen/nightly.sh", &format!("'{script}'"));
    assert!(command.contains(&script), "{command}");
    // Two days were missed, one before the other; today may be over while this runs.
    for day in ["-3 day", "-2 day"] {
        let feed =
            format!("printf '{{\"id\":1}}\\n{{\"id\":1}}\\n' | gzip > in/$(date -u -d '{day}' +%F).jsonl.gz");
        folder.shell(&format!("mkdir -p in; {feed}")).expect_code(0);
    }
    for _ in 0..2 {
        folder.shell(&command).expect_code(0);
    }
    assert_eq!(folder.shell("cat out/*.jsonl").expect_code(0).stdout, b"{\"id\":1}\n");
    assert_eq!(folder.shell("ls out | wc -l").expect_code(0).stdout.trim_ascii(), b"2");
}

#[test]
fn every_option_is_in_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["dedup", "key"] {
        let help = String::from_utf8(Folder::new().run(&[command, "--help"]).stdout).unwrap();
        let options = help.split_whitespace().filter(|word| word.starts_with("--"));
        for option in options
            .map(|word| word.trim_end_matches([',', '.']))
            .filter(|word| !["--help", "--version"].contains(word))
        {
            assert!(
                readme.contains(&format!("`{option}")) || readme.contains(&format!(", `{option}")),
                "{option}"
            );
        }
    }
}
