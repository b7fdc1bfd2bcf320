//! The permission to begin a turn that a client asks for, and the listener to its end.

use adjutant_core::{AgentResponse, ConversationKey, UserId};

/// Lets a turn of a user begin, and gives what hears how it ended. The error says why none can
/// begin now. See [`McpServerBuilder::asked`](super::McpServerBuilder::asked).
pub type Begin = Box<dyn Fn(&UserId) -> Result<Ended, String> + Send + Sync>;

/// Hears how a turn ended, or that it waits for a person. Dropped without a call: no answer came.
pub type Ended = Box<dyn FnOnce(&ConversationKey, &AgentResponse) + Send>;
