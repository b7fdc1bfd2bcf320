//! Calls that outlive the stop of their turn: the caller is answered at once, and the process waits
//! for them in the background.

use std::sync::Arc;

use tokio::sync::watch;

/// The number of stopped turns whose calls go on in this process, shared by its clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutlivingCalls(Arc<watch::Sender<usize>>);

/// A stopped turn whose calls go on, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Outliving(OutlivingCalls);

impl OutlivingCalls {
    /// Counts one more turn until the returned guard is dropped.
    pub(crate) fn enter(&self) -> Outliving {
        self.0.send_modify(|turns| *turns += 1);
        Outliving(self.clone())
    }

    /// Returns a receiver that is notified of every change of the number.
    pub(crate) fn subscribe(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

impl Drop for Outliving {
    fn drop(&mut self) {
        self.0.0.send_modify(|turns| *turns -= 1);
    }
}
