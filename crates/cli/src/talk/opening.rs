//! The time before a conversation can begin: a model is opened, servers start. Ctrl-C and signals end it.

use std::time::Duration;

use crate::error::CliError;
use crate::lines::{Endings, Interrupts};

/// How long whatever listens to Ctrl-C itself may take to say what was stopped.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// What ends an opening.
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
        Ok(Self { interrupts: Interrupts::new()?, endings: Endings::new()? })
    }

    /// Waits for a part of the opening.
    ///
    /// # Errors
    /// Its own, or it was stopped.
    pub(crate) async fn part<T>(
        &mut self,
        opened: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::pin!(opened);
        tokio::select! {
            biased;
            opened = &mut opened => return opened,
            () = self.endings.next() => return Err(CliError::terminated()),
            () = self.interrupts.next() => {}
        }
        // A download says better what was stopped, and how it goes on.
        match tokio::time::timeout(SAID_WITHIN, opened).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(CliError::interrupted("stopped before anything was sent")),
        }
    }
}
