//! The time before a conversation can begin: a model is opened, servers start. Ctrl-C and signals
//! end it.

use std::time::Duration;

use crate::error::CliError;
use crate::lines::{Endings, Interrupts};

/// Longest time that whatever listens to Ctrl-C itself may take to say what was stopped.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// The signals that end an opening.
pub(crate) struct Opening {
    interrupts: Interrupts,
    endings: Endings,
}

impl Opening {
    /// From here on, Ctrl-C, SIGTERM and SIGHUP do not end the process at once.
    ///
    /// # Errors
    /// The system does not let us listen.
    pub(crate) fn begin() -> Result<Self, CliError> {
        Ok(Self {
            interrupts: Interrupts::new()?,
            endings: Endings::new()?,
        })
    }

    /// Waits for input, which Ctrl-C gives up at once.
    ///
    /// # Errors
    /// Its own, or it was stopped.
    pub(crate) async fn input<T>(
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

    /// Waits for a model and servers. What listens to Ctrl-C itself, such as a download, says
    /// better what was stopped and how it goes on.
    ///
    /// # Errors
    /// Its own, or it was stopped.
    pub(crate) async fn start<T>(
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
