//! The part of the instruction that is made anew for every turn.

use std::time::Duration;

use adjutant_core::{BoxFuture, Notice, UserId};
use tokio::time::timeout;

use crate::agent::Inner;

/// How long a turn waits for it. A disk that does not answer must not hold up a conversation.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Says what stands at the end of an instruction, anew for every turn: what is known about the person, the date.
///
/// It is part of no transcript, so nothing of it is stored. All model calls of a turn get the same; a turn that goes on
/// after a crash, or after a person's answer, gets it anew.
pub trait TurnInstruction: Send + Sync + 'static {
    /// The text for a turn of this user. What goes wrong is a notice, never the end of a turn: see [`FreshInstruction`].
    /// Waited for 5 seconds; after that the turn goes on without, and says so.
    fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, FreshInstruction>;
}

/// What [`TurnInstruction`] says for one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreshInstruction {
    /// Stands behind the agent's own instruction, after a blank line. Empty: nothing is added.
    pub text: String,
    /// What the person should know about it, shown with the turn's other notices.
    pub notices: Vec<Notice>,
}

impl Inner {
    /// The whole instruction for a turn of this user: the part that never changes first, so that prompt caches hit.
    pub(crate) async fn instruction_for(&self, user: &UserId) -> (String, Vec<Notice>) {
        let Some(source) = &self.fresh else { return (self.instruction.clone(), Vec::new()) };
        let fresh = timeout(WAIT_MAX, source.for_turn(user)).await.unwrap_or_else(|_| FreshInstruction {
            text: String::new(),
            notices: vec![Notice {
                code: "instruction_incomplete".to_owned(),
                text: format!(
                    "What is read before every turn was not there after {} s; this turn goes on without it.",
                    WAIT_MAX.as_secs()
                ),
            }],
        });
        let text = match fresh.text.trim() {
            "" => self.instruction.clone(),
            text => format!("{}\n\n{text}\n", self.instruction.trim_end()),
        };
        (text, fresh.notices)
    }
}
