//! Warnings for operators about conditions that do not end a turn. The span of the turn adds its
//! user and conversation.

use std::time::Duration;

use adjutant_core::ModelId;
use tracing::{info, warn};

/// Characters of a tool's name in the log; a model wrote it, so it may be long.
const NAME_MAX: usize = 64;

/// Characters of an error message in the log; a server wrote it, so it may be long.
const MESSAGE_MAX: usize = 300;

/// Warns that a model called a tool that it was not offered. The call was refused.
pub(crate) fn unknown_tool(name: &str) {
    let name: String = name.chars().take(NAME_MAX).collect();
    warn!("the model called {name:?}, a tool that it does not have; nothing was executed");
}

/// Warns that a turn that started with another model continues with the agent's own, which gets the
/// turn's messages.
pub(crate) fn other_model(began: &ModelId, now: &ModelId) {
    warn!("the turn began with the model {began} and goes on with {now}");
}

/// Warns that automatic recall took too long, and a message is answered without it.
pub(crate) fn not_recalled(waited: Duration) {
    warn!(
        "the memory did not answer within {} s; the message is answered without it",
        waited.as_secs()
    );
}

/// Warns that dispatch failed several times and is suspended. `why`: the last error.
pub(crate) fn not_dispatched(why: &str) {
    let error: String = why.chars().take(MESSAGE_MAX).collect();
    warn!(
        error,
        "turns are not dispatched for now, and this process does the work itself; it is tried again from time to time"
    );
}

/// Logs that dispatch works again.
pub(crate) fn dispatched_again() {
    info!("turns are dispatched again");
}
