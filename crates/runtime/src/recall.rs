//! Automatic recall: facts of a memory that are attached to a message.

use adjutant_core::{BoxFuture, ConversationKey, Message, RecalledText};

/// A source of automatic recall: selects the facts that are attached to a message, once, before its
/// turn starts. Set with [`AgentBuilder::recall`](crate::AgentBuilder::recall).
///
/// The facts are recorded with the turn. They stand in front of the message in every request of
/// this and later turns, with the same bytes, so that prompt caches hit.
///
/// # Examples
///
/// ```
/// use adjutant_core::{BoxFuture, RecalledText};
/// use adjutant_runtime::{Recall, RecallRequest};
///
/// struct Birthdays;
///
/// impl Recall for Birthdays {
///     fn for_message<'a>(&'a self, request: RecallRequest<'a>) -> BoxFuture<'a, Vec<RecalledText>> {
///         let fits = request.message.contains("birthday");
///         let fact = RecalledText { id: None, text: "- Anna's birthday is on 3 May".to_owned() };
///         Box::pin(async move { if fits { vec![fact] } else { Vec::new() } })
///     }
/// }
/// ```
pub trait Recall: Send + Sync + 'static {
    /// Returns the facts that fit a message, best first; empty if none do. Errors are for the
    /// source's own log: the message is then answered without facts, as it is after 5 seconds.
    fn for_message<'a>(&'a self, request: RecallRequest<'a>) -> BoxFuture<'a, Vec<RecalledText>>;
}

/// The message to find facts for, with its conversation.
#[derive(Debug, Clone, Copy)]
pub struct RecallRequest<'a> {
    /// The conversation of the message, with its user.
    pub key: &'a ConversationKey,
    /// The text of the user's message.
    pub message: &'a str,
    /// The messages that the request begins with. Facts that they contain need not be attached
    /// again: see [`recall_block::contains`](adjutant_core::recall_block::contains).
    pub history: &'a [Message],
}
