//! How the tool ends when it is told to.
#![allow(unsafe_code)]

use std::{mem, ptr};

use firstseen::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Removes temporaries and ends the process when it is told to, with the code that shells expect.
pub(crate) fn end_on_signals() -> Result<(), Error> {
    let heeded = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
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

/// Whether a signal has been ignored since this process began, as `nohup` asks for: then it stays ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action, sigaction(2) changes nothing and fills in the old one, of which all zeros are
    // a valid value. Where it fails, the zeros stay, which say that the signal has its default action.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}
