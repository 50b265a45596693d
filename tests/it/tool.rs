//! Running the built tool in a folder of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_firstseen");

/// A folder that goes away with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The tool, about to be run in this folder.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs the tool without input.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Run {
        Run::of(self.command(arguments).output().unwrap())
    }

    /// Runs the tool with `input` on its standard input.
    pub(crate) fn pipe<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A tool that stops early does not read everything.
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let run = Run::of(child.wait_with_output().unwrap());
        feeder.join().unwrap();
        run
    }

    /// Runs a shell script in this folder, with the tool in its path.
    pub(crate) fn shell(&self, script: &str) -> Run {
        let tools = Path::new(BINARY).parent().unwrap();
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(self.path()).env("PATH", path).stdin(Stdio::null());
        Run::of(command.output().unwrap())
    }
}

/// What a run did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    /// The run failed with exit code 2 and exactly one line that has `message` in it.
    #[track_caller]
    pub(crate) fn expect_trouble(self, message: &str) -> Self {
        assert_eq!(self.code, Some(2), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.contains(message), "{:?} lacks {message:?}", self.stderr);
        self
    }
}

/// `content` as one gzip member.
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// `content` as one Zstandard frame.
pub(crate) fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}
