//! Warnings for whoever operates an agent: something that they should know of and that is no error,
//! since the turn goes on. Where one is of a turn, the turn's span says whose and which.

use std::time::Duration;

use adjutant_core::ModelId;
use tracing::{info, warn};

/// Characters of a tool's name that are repeated: a model wrote it.
const NAME_MAX: usize = 64;

/// Characters of a reason that are repeated: a server wrote it.
const WHY_MAX: usize = 300;

/// Warns that a model called a tool that it was not offered. Nothing was executed, and the model
/// was told.
pub(crate) fn unknown_tool(name: &str) {
    let name: String = name.chars().take(NAME_MAX).collect();
    warn!("the model called {name:?}, a tool that it does not have; nothing was executed");
}

/// Warns that a turn which began with another model goes on with the agent's own: what was said in
/// it is sent there.
pub(crate) fn other_model(began: &ModelId, now: &ModelId) {
    warn!("the turn began with the model {began} and goes on with {now}");
}

/// Warns that a memory did not say in time what of it fits a message, which is answered without.
pub(crate) fn not_recalled(waited: Duration) {
    warn!(
        "the memory did not answer within {} s; the message is answered without it",
        waited.as_secs()
    );
}

/// Warns that whoever has conversations go on did not do so several times, the last time for this
/// reason, and is left alone for a while.
pub(crate) fn not_dispatched(why: &str) {
    let error: String = why.chars().take(WHY_MAX).collect();
    warn!(
        error,
        "turns are not dispatched for now, and this process does the work itself; it is tried again from time to time"
    );
}

/// Says that whoever has conversations go on does so again.
pub(crate) fn dispatched_again() {
    info!("turns are dispatched again");
}
