//! Startup of a command: opening a model and starting servers, which Ctrl-C and signals can stop.

use std::time::Duration;

use crate::error::CliError;
use crate::terminal::signals::{Interrupts, Terminations};

/// Time that a future which handles Ctrl-C itself, such as a download, gets to report what it
/// stopped.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// Signals that stop the startup.
pub(crate) struct Startup {
    interrupts: Interrupts,
    endings: Terminations,
}

impl Startup {
    /// Starts to listen for Ctrl-C, SIGTERM and SIGHUP, which from now on do not kill the process.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub(crate) fn listen() -> Result<Self, CliError> {
        Ok(Self {
            interrupts: Interrupts::new()?,
            endings: Terminations::new()?,
        })
    }

    /// Reads input; Ctrl-C stops that at once.
    ///
    /// # Errors
    /// Those of `read`, or it was stopped.
    pub(crate) async fn read_input<T>(
        &mut self,
        read: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::select! {
            biased;
            read = read => read,
            () = self.endings.next() => Err(CliError::terminated()),
            () = self.interrupts.next() => Err(stopped()),
        }
    }

    /// Runs `opened`. After Ctrl-C it gets a moment to return an error of its own, because a
    /// download knows best what it stopped and how to resume.
    ///
    /// # Errors
    /// Those of `opened`, or it was stopped.
    pub(crate) async fn run<T>(
        &mut self,
        opened: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::pin!(opened);
        tokio::select! {
            biased;
            () = self.endings.next() => return Err(CliError::terminated()),
            () = self.interrupts.next() => {}
            opened = &mut opened => return opened,
        }
        match tokio::time::timeout(SAID_WITHIN, opened).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(stopped()),
        }
    }
}

fn stopped() -> CliError {
    CliError::interrupted("stopped before anything was sent")
}
