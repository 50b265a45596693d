//! The command-line tool: arguments in, exit code out. All else is the library's.

mod cli;
mod progress;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use firstseen::{Error, Meter, Report};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use cli::{Cli, Command};
use progress::Progress;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for trouble and for wrong usage.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    match end_on_signals().and_then(|()| run(&command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error);
            ExitCode::from(TROUBLE)
        }
    }
}

fn run(command: &Command) -> Result<(), Error> {
    let config = command.config()?;
    for warning in config.protocol.warnings() {
        say(&format!("firstseen: warning: {warning}"));
    }
    let meter = Arc::new(Meter::default());
    let progress = command.shows_progress().then(|| Progress::start(Arc::clone(&meter)));
    let result = match command {
        Command::Dedup(_) => firstseen::dedup(&config, &meter),
        Command::Key(key) => firstseen::keys(&config, key.text(), &meter),
    };
    if let Some(progress) = progress {
        progress.end();
    }
    let report: Report = result?;
    if command.shows_summary() {
        say(&format!("firstseen: {report}"));
    }
    Ok(())
}

/// Removes temporaries and ends the process when it is told to, with the code that shells expect.
fn end_on_signals() -> Result<(), Error> {
    let ignored = ignored_signals();
    let heeded = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heeded).map_err(|error| Error::Io {
        action: "listen for",
        path: "signals".to_owned(),
        error,
    })?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            firstseen::abandon();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// The signals that were ignored when this process began, as `nohup` asks for, a bit for each: they
/// stay ignored. From `SigIgn` of proc_pid_status(5); on other systems none.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// One line about what went wrong, and one on what can be done about it.
fn tell(error: &Error) {
    match error {
        // The reader of the output has gone, as `head` does. It knows.
        Error::BrokenPipe => {}
        Error::Event { .. } => {
            say(&error.to_string());
            say("firstseen: no file was published; --rejects FILE collects such lines and goes on");
        }
        Error::LineTooLong { .. } | Error::Compressed { .. } | Error::Shrunk { .. } => {
            say(&error.to_string())
        }
        _ => say(&format!("firstseen: {error}")),
    }
}

/// A line to standard error. If nobody listens there, there is nobody to tell.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
