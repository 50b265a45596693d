//! The command-line tool: arguments in, exit code out. All else is the library's.

mod cli;
mod progress;
mod signals;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use firstseen::{Config, Error, Meter, Protocol};

use cli::{Cli, Command, Compare, Dedup, Explain, ProtocolCommand};
use progress::Progress;
use signals::end_on_signals;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code of a check that found something.
const DIFFERENCE: u8 = 1;
/// The exit code for trouble and for wrong usage.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    match end_on_signals().and_then(|()| run(&command)) {
        Ok(code) => code,
        Err(error) => {
            tell(&error, matches!(command, Command::Dedup(_) | Command::Key(_)));
            ExitCode::from(TROUBLE)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode, Error> {
    match command {
        Command::Dedup(dedup) => run_dedup(dedup)?,
        Command::Key(key) => {
            let config = key.config()?;
            warn(&config.protocol.warnings());
            let report = firstseen::keys(&config, key.text(), &Arc::new(Meter::default()))?;
            warn(&report.warnings());
        }
        Command::Record(record) => {
            firstseen::record(&record.config()?, record.id())?;
        }
        Command::Verify(verify) => {
            let found = firstseen::verify(&verify.config()?, verify.id(), &verify.record)?;
            print(&found.to_string())?;
            if !found.is_stable() {
                return Ok(ExitCode::from(DIFFERENCE));
            }
        }
        Command::Explain(explain) => return run_explain(explain),
        Command::Compare(compare) => return run_compare(compare),
        Command::Protocol(command) => return run_protocol(command),
        Command::Store(command) => command.run()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_dedup(dedup: &Dedup) -> Result<(), Error> {
    let config = dedup.config()?;
    warn(&config.protocol.warnings());
    let meter = Arc::new(Meter::default());
    let progress = dedup.shows_progress().then(|| Progress::start(Arc::clone(&meter)));
    let result = firstseen::dedup(&config, &meter);
    if let Some(progress) = progress {
        progress.end();
    }
    let report = result?;
    if dedup.shows_summary() {
        say(&format!("firstseen: {report}"));
    }
    warn(&report.warnings());
    Ok(())
}

fn run_explain(explain: &Explain) -> Result<ExitCode, Error> {
    let protocol = explain.protocol()?;
    let invalid = |name: &str, invalid| Error::Usage(format!("{name}: {invalid}"));
    let event = firstseen::read_event(&explain.event)?;
    let Some(name) = &explain.other else {
        let explanation =
            firstseen::explain(&protocol, &event).map_err(|error| invalid(&explain.event, error))?;
        print(&explanation.to_string())?;
        return Ok(ExitCode::SUCCESS);
    };
    if name == "-" && explain.event == "-" {
        return Err(Error::Usage("standard input holds one of two events at most".to_owned()));
    }
    let other = firstseen::read_event(name)?;
    let difference = firstseen::difference(&protocol, [&event, &other])
        .map_err(|(which, error)| invalid([&explain.event, name][which], error))?;
    print(&difference.to_string())?;
    Ok(if difference.is_none() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENCE) })
}

fn run_compare(compare: &Compare) -> Result<ExitCode, Error> {
    let (from, to) = (Protocol::find(&compare.from)?, Protocol::find(&compare.to)?);
    let config = Config { inputs: compare.captures.clone(), ..Config::new(from.clone()) };
    let compared = firstseen::compare(&config, (&from, &to), &compare.id)?;
    if compare.json {
        // Numbers and text always have a JSON form.
        print(&format!("{}\n", serde_json::to_string_pretty(&compared).unwrap_or_default()))?;
    } else {
        print(&compared.to_string())?;
    }
    Ok(if compared.keys_stay() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENCE) })
}

fn run_protocol(command: &ProtocolCommand) -> Result<ExitCode, Error> {
    match command {
        ProtocolCommand::List => {
            for name in Protocol::built_in_names() {
                let protocol = Protocol::built_in(name)?;
                print(&format!("{name:<16} {}  {}\n", protocol.fingerprint(), protocol.doc()))?;
            }
        }
        ProtocolCommand::Show { name } => {
            let protocol = Protocol::find(name)?;
            let fingerprint = protocol.fingerprint();
            print(&format!("# Fingerprint: {fingerprint} (`protocol check` says that of a changed copy)\n"))?;
            print(&protocol.to_toml())?;
        }
        ProtocolCommand::Check { name, captures, id } => {
            let protocol = Protocol::find(name)?;
            let config = Config { inputs: captures.clone(), ..Config::new(protocol.clone()) };
            let findings = if captures.is_empty() { None } else { Some(firstseen::check(&config, id)?) };
            print(&format!("{} is valid, fingerprint {}\n", protocol.name(), protocol.fingerprint()))?;
            let warnings = protocol.lints();
            for warning in &warnings {
                print(&format!("warning: {warning}\n"))?;
            }
            findings.iter().try_for_each(|findings| print(&findings.to_string()))?;
            if !warnings.is_empty() || findings.is_some_and(|findings| !findings.is_clean()) {
                return Ok(ExitCode::from(DIFFERENCE));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is to be thought about.
fn warn(warnings: &[String]) {
    for warning in warnings {
        say(&format!("firstseen: warning: {warning}"));
    }
}

/// Writes to standard output.
fn print(text: &str) -> Result<(), Error> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Error::BrokenPipe,
        _ => Error::Io { action: "write to", path: "standard output".to_owned(), error },
    })
}

/// One line about what went wrong, and one on what can be done about it.
fn tell(error: &Error, may_collect: bool) {
    match error {
        // The reader of the output has gone, as `head` does. It knows.
        Error::BrokenPipe => {}
        Error::Event { .. } => {
            say(&error.to_string());
            if may_collect {
                say("firstseen: no file was published; --rejects FILE collects such lines and goes on");
            }
        }
        Error::LineTooLong { .. }
        | Error::Compressed { .. }
        | Error::Shrunk { .. }
        | Error::ProtocolFile { .. } => say(&error.to_string()),
        _ => say(&format!("firstseen: {error}")),
    }
}

/// A line to standard error. If nobody listens there, there is nobody to tell.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
