//! The progress bar: bytes, events a second, share of duplicates, time left.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use firstseen::Meter;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

const REDRAWS_PER_SECOND: u8 = 10;

/// A bar that follows a meter until it is ended.
pub(crate) struct Progress {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Progress {
    /// Draws on standard error, whatever that is: whether it should is for the caller to say.
    pub(crate) fn start(meter: Arc<Meter>) -> Self {
        let (stop, stopped) = bounded(0);
        let thread = std::thread::spawn(move || {
            let target = if io::stderr().is_terminal() {
                ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND)
            } else {
                ProgressDrawTarget::term_like_with_hz(Box::new(StandardError), REDRAWS_PER_SECOND)
            };
            let bar = ProgressBar::with_draw_target(None, target);
            let began = Instant::now();
            let pause = Duration::from_secs(1) / u32::from(REDRAWS_PER_SECOND);
            let mut known = false;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let total = meter.input_bytes.get();
                if total > 0 && !known {
                    known = true;
                    bar.set_length(total);
                    bar.set_style(style("{bar:24} {bytes}/{total_bytes}, {msg}, {eta} left"));
                } else if !known {
                    bar.set_style(style("{spinner} {bytes}, {msg}"));
                }
                bar.set_message(message(&meter, began.elapsed()));
                bar.set_position(meter.raw_bytes.get());
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { stop, thread }
    }

    /// Takes the bar away.
    pub(crate) fn end(self) {
        drop(self.stop);
        // A bar that panicked is gone as well.
        drop(self.thread.join());
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are fixed, and a test draws with them.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn message(meter: &Meter, elapsed: Duration) -> String {
    let (events, duplicates) = (meter.events.get(), meter.duplicates.get());
    let rate = HumanCount((events as f64 / elapsed.as_secs_f64()) as u64);
    let share = 100.0 * duplicates as f64 / events.max(1) as f64;
    format!("{rate} events/s, {share:.1} % duplicates")
}

/// Standard error that is no terminal, drawn on with the control sequences of ECMA-48 all the same.
#[derive(Debug)]
struct StandardError;

impl StandardError {
    fn print(text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }
}

impl TermLike for StandardError {
    fn width(&self) -> u16 {
        100
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        if lines == 0 { Ok(()) } else { Self::print(&format!("\x1b[{lines}A")) }
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        if lines == 0 { Ok(()) } else { Self::print(&format!("\x1b[{lines}B")) }
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        if columns == 0 { Ok(()) } else { Self::print(&format!("\x1b[{columns}C")) }
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        if columns == 0 { Ok(()) } else { Self::print(&format!("\x1b[{columns}D")) }
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        Self::print(&format!("{line}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        Self::print(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        Self::print("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
