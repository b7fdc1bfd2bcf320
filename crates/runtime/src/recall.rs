//! What of a memory is told with a message.

use adjutant_core::{BoxFuture, ConversationKey, Message, Told};

/// Chooses what of a memory fits a message, once, before the turn that answers it begins.
///
/// It is recorded with the turn, stands in front of the person's words in every request of the
/// turn, and stays there in later turns with the same bytes, so that caches of prompts hold.
///
/// ```
/// use adjutant_core::{BoxFuture, Told};
/// use adjutant_runtime::{Recall, RecallRequest};
///
/// struct Birthdays;
///
/// impl Recall for Birthdays {
///     fn for_message<'a>(&'a self, asked: RecallRequest<'a>) -> BoxFuture<'a, Vec<Told>> {
///         let fits = asked.message.contains("birthday");
///         let told = Told { id: None, text: "- Anna's birthday is on 3 May".to_owned() };
///         Box::pin(async move { if fits { vec![told] } else { Vec::new() } })
///     }
/// }
/// ```
pub trait Recall: Send + Sync + 'static {
    /// Returns what fits, best first; nothing if nothing does. What goes wrong is told elsewhere: a
    /// message is answered without a memory too. Waited for 5 seconds.
    fn for_message<'a>(&'a self, asked: RecallRequest<'a>) -> BoxFuture<'a, Vec<Told>>;
}

/// A message that something of a memory may fit.
#[derive(Debug, Clone, Copy)]
pub struct RecallRequest<'a> {
    /// Its conversation, and whose it is.
    pub key: &'a ConversationKey,
    /// The person's words.
    pub message: &'a str,
    /// The messages that the request begins with. What still stands there need not be told again:
    /// see [`told::stands_in`](adjutant_core::told::stands_in).
    pub history: &'a [Message],
}
