//! Warnings for whoever operates an agent.

use adjutant_core::{ConversationId, ModelId, TurnId, UserId};

/// Characters of a tool's name that are repeated: a model wrote it.
const NAME_MAX: usize = 64;

/// Characters of a reason that are repeated: a server wrote it.
const WHY_MAX: usize = 300;

/// Something that an operator should know of and that is no error: the turn went on. See
/// [`Agent::on_warning`](crate::Agent::on_warning).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A model called a tool that it was not offered. Nothing was executed, and the model was told. Of calls that it makes side by side
    /// the first is reported.
    UnknownTool {
        /// The user of the turn.
        user: UserId,
        /// The conversation of the turn.
        conversation: ConversationId,
        /// The turn.
        turn: TurnId,
        /// The name as the model wrote it, of any length.
        tool: String,
    },
    /// A turn that began with another model goes on with the agent's own: what was said in it is sent there.
    OtherModel {
        /// The user of the turn.
        user: UserId,
        /// The conversation of the turn.
        conversation: ConversationId,
        /// The turn.
        turn: TurnId,
        /// The model that it began with.
        began: ModelId,
        /// The model that it goes on with.
        now: ModelId,
    },
    /// Whoever has conversations go on did not do so several times, and is left alone for a while. This process does the work itself.
    NotDispatched {
        /// The reason of the last time.
        why: String,
    },
    /// Whoever has conversations go on does so again.
    DispatchedAgain,
}

/// Whoever takes the warnings of an agent.
pub(crate) type WarningReport = Box<dyn Fn(&Warning) + Send + Sync>;

impl std::fmt::Display for Warning {
    /// Writes one line, with control characters escaped.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownTool { user, conversation, turn, tool } => {
                let tool: String = tool.chars().take(NAME_MAX).collect();
                write!(
                    f,
                    "turn {turn} of {user}: the model called {tool:?}, a tool that it does not have; nothing was executed; \
                     conversation {conversation}"
                )
            }
            Self::OtherModel { user, conversation, turn, began, now } => {
                write!(
                    f,
                    "turn {turn} of {user}: it began with the model {began} and goes on with {now}; conversation {conversation}"
                )
            }
            Self::NotDispatched { why } => {
                let why: String = why.chars().take(WHY_MAX).flat_map(char::escape_debug).collect();
                write!(
                    f,
                    "turns are not dispatched for now, and this process does the work itself: {why}; it is tried again from time to time"
                )
            }
            Self::DispatchedAgain => write!(f, "turns are dispatched again"),
        }
    }
}
