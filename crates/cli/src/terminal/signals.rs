//! Signals that stop a process.

#[cfg(unix)]
use tokio::signal::unix;

use crate::error::CliError;

/// Installs the handler of a signal, which does not kill the process from then on.
#[cfg(unix)]
fn listen(kind: unix::SignalKind) -> Result<unix::Signal, CliError> {
    unix::signal(kind).map_err(|error| cannot_listen(&error))
}

fn cannot_listen(error: &std::io::Error) -> CliError {
    CliError::failed("cannot listen to signals").because(error.to_string())
}

/// Termination signals: SIGTERM, and SIGHUP of a closed terminal. While this exists they do not
/// kill the process.
pub(crate) struct Terminations {
    #[cfg(unix)]
    terminate: unix::Signal,
    #[cfg(unix)]
    hang_up: unix::Signal,
}

impl Terminations {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self {
            #[cfg(unix)]
            terminate: listen(unix::SignalKind::terminate())?,
            #[cfg(unix)]
            hang_up: listen(unix::SignalKind::hangup())?,
        })
    }

    /// Waits for the next termination signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            Some(()) = self.terminate.recv() => {}
            Some(()) = self.hang_up.recv() => {}
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}

/// A signal that asks the process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C at the terminal.
    Interrupt,
    /// SIGTERM from the operator or the system.
    #[cfg(unix)]
    Terminate,
}

/// Ctrl-C and, on Unix, SIGTERM. While this exists they do not kill the process.
pub(crate) struct StopSignals {
    interrupts: Interrupts,
    #[cfg(unix)]
    terminate: unix::Signal,
}

impl StopSignals {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupts: Interrupts::new()?,
            #[cfg(unix)]
            terminate: listen(unix::SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal of either kind.
    pub(crate) async fn next(&mut self) -> StopSignal {
        #[cfg(unix)]
        tokio::select! {
            () = self.interrupts.next() => StopSignal::Interrupt,
            Some(()) = self.terminate.recv() => StopSignal::Terminate,
        }
        #[cfg(not(unix))]
        {
            self.interrupts.next().await;
            StopSignal::Interrupt
        }
    }
}

/// Ctrl-C. While this exists it does not kill the process.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signal: unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    /// Installs the signal handler.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self {
            #[cfg(unix)]
            signal: listen(unix::SignalKind::interrupt())?,
            #[cfg(windows)]
            signal: tokio::signal::windows::ctrl_c().map_err(|error| cannot_listen(&error))?,
        })
    }

    /// Waits for the next Ctrl-C. One that came since the last call counts.
    pub(crate) async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            // The stream of signals has ended; other branches of the caller's `select!` continue.
            std::future::pending::<()>().await;
        }
    }
}
