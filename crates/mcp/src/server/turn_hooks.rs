//! Callbacks at the start and the end of a turn that a client requests.

use adjutant_core::{AgentResponse, ConversationKey, UserId};

/// Permits a user's turn, and returns the callback for its end. The error is the reason for which
/// no turn can start now. See
/// [`McpServerBuilder::offer_agent`](super::McpServerBuilder::offer_agent).
pub type BeginTurn = Box<dyn Fn(&UserId) -> Result<TurnEnded, String> + Send + Sync>;

/// Called when a turn has ended or waits for a person. Dropped without a call if there was no
/// answer.
pub type TurnEnded = Box<dyn FnOnce(&ConversationKey, &AgentResponse) + Send>;
