//! Lines a person types, and what asks a process to stop.

use std::io::{BufRead as _, Read as _};
use std::sync::mpsc as std_mpsc;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use tokio::sync::mpsc;

use crate::error::CliError;

/// Standard input, line by line, on a thread of its own: a read cannot be called off, but waiting for it can.
///
/// The thread reads only when a line is wanted, so that what is typed while a turn runs answers nothing by accident
/// before it is asked for.
pub(crate) struct Lines {
    wanted: std_mpsc::Sender<()>,
    typed: mpsc::Receiver<std::io::Result<Option<Vec<u8>>>>,
    waiting: bool,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let (wanted, wishes) = std_mpsc::channel();
        let (lines, typed) = mpsc::channel(1);
        std::thread::spawn(move || {
            while wishes.recv().is_ok() {
                if lines.blocking_send(read_line()).is_err() {
                    return;
                }
            }
        });
        Self { wanted, typed, waiting: false }
    }

    /// The next line without its end; `None` at the end of input. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        if !self.waiting {
            // The thread ends only with this.
            let _ = self.wanted.send(());
            self.waiting = true;
        }
        let line = self.typed.recv().await.unwrap_or(Ok(None));
        self.waiting = false;
        line
    }
}

/// A line of at most one byte more than a message may have; the rest of a longer one is read and forgotten.
fn read_line() -> std::io::Result<Option<Vec<u8>>> {
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    stdin.by_ref().take(MESSAGE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MESSAGE_BYTES_MAX {
        loop {
            let buffer = stdin.fill_buf()?;
            let (length, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            stdin.consume(length);
            if ended {
                break;
            }
        }
    }
    line.pop_if(|last| *last == b'\r');
    Ok(Some(line))
}

/// Ctrl-C and, where there is one, the signal that asks a process to end. From the moment this exists.
pub(crate) struct Stops {
    interrupts: Interrupts,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Stops {
    /// # Errors
    /// The system does not let us listen.
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupts: Interrupts::new()?,
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .map_err(|error| CliError::failed("cannot listen to signals").because(error.to_string()))?,
        })
    }

    /// Waits for the next of either.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            () = self.interrupts.next() => {}
            Some(()) = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        self.interrupts.next().await;
    }
}

/// Ctrl-C, from the moment this exists. Without it, Ctrl-C ends the process.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    /// # Errors
    /// The system does not let us listen.
    pub(crate) fn new() -> Result<Self, CliError> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c();
        let signal =
            signal.map_err(|error| CliError::failed("cannot listen to Ctrl-C").because(error.to_string()))?;
        Ok(Self { signal })
    }

    /// Waits for the next one. One that came before is not forgotten.
    pub(crate) async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            // There will be no more; whoever waits beside this goes on.
            std::future::pending::<()>().await;
        }
    }
}
