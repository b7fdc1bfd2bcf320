//! The part of the instruction that is made anew for every turn.

use adjutant_core::{BoxFuture, Notice, UserId};
/// Says what stands at the end of an instruction, anew for every turn: what is known about the
/// person, the date.
///
/// It is part of no transcript, so nothing of it is stored. All model calls of a turn get the same;
/// a turn that goes on after a crash, or after a person's answer, gets it anew.
pub trait TurnInstruction: Send + Sync + 'static {
    /// The text for a turn of this user. What goes wrong is a notice, never the end of a turn: see
    /// [`FreshInstruction`]. Waited for 5 seconds; after that the turn goes on without, and says
    /// so.
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
