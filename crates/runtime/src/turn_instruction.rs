//! Text that is added to the instruction for one turn, such as today's date.

use adjutant_core::{BoxFuture, Notice, UserId};

/// Provides text for the end of an agent's instruction, made for every turn: the date, what is
/// known about the user. Set with
/// [`AgentBuilder::turn_instruction`](crate::AgentBuilder::turn_instruction).
///
/// The text is not part of the transcript and is not stored. All model calls of a turn get the
/// same text; a turn that continues after a crash or a confirmation asks for it again.
///
/// # Examples
///
/// ```
/// use adjutant_core::{BoxFuture, UserId};
/// use adjutant_runtime::{InstructionAddition, TurnInstruction};
///
/// struct Today;
///
/// impl TurnInstruction for Today {
///     fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, InstructionAddition> {
///         let text = format!("You are talking to {user} on 3 May 2027.");
///         Box::pin(async move { InstructionAddition { text, notices: Vec::new() } })
///     }
/// }
/// ```
pub trait TurnInstruction: Send + Sync + 'static {
    /// Returns the text for a turn of this user. Failures are reported as notices; they never end
    /// the turn. After 5 seconds the turn runs without the text, with a notice.
    fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, InstructionAddition>;
}

/// The text that a [`TurnInstruction`] adds to one turn, and notices about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionAddition {
    /// Text behind the agent's own instruction, after a blank line. Empty: nothing is added.
    pub text: String,
    /// Notices for the user, such as a file that could not be read. Shown with the turn's others.
    pub notices: Vec<Notice>,
}
