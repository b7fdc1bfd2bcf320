//! The processes that hear words of others.

use std::sync::Arc;

use adjutant_core::port::RelayItem;
use tokio::sync::mpsc::UnboundedSender;

use crate::process::Process;

/// A process that hears.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) process: Arc<Process>,
    pub(crate) heard: UnboundedSender<RelayItem>,
}
