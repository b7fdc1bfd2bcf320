//! Processes that receive messages of the relay.

use std::sync::Arc;

use adjutant_core::port::RelayItem;
use tokio::sync::mpsc::UnboundedSender;

use crate::process::Process;

/// A process that receives messages.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) process: Arc<Process>,
    pub(crate) sender: UnboundedSender<RelayItem>,
}
