//! What the person said: the message, and what the assistant said just before it.

use crate::message::{Message, Role};
use crate::told::words_alone;

/// The end of a transcript, as far as a weak model and the guards look at it.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The person's last message.
    pub(super) message: String,
    /// The assistant's last words before it.
    pub(super) before: Option<String>,
    /// The person's message before those.
    pub(super) earlier: Option<String>,
}

impl Said {
    pub(super) fn read(messages: &[Message]) -> Self {
        let Some(at) = messages
            .iter()
            .rposition(|message| message.role() == Role::User)
        else {
            return Self::default();
        };
        let last_of = |role: Role, end: usize| {
            messages[..end]
                .iter()
                .rposition(|message| message.role() == role && !message.text().trim().is_empty())
                .map(|at| (at, words_of(&messages[at])))
        };
        let before = last_of(Role::Assistant, at);
        let earlier = before.as_ref().and_then(|(at, _)| last_of(Role::User, *at));
        Self {
            message: words_of(&messages[at]),
            before: before.map(|(_, text)| text),
            earlier: earlier.map(|(_, text)| text),
        }
    }

    /// Whether the assistant's last words were a question: the message may be the answer.
    pub(super) fn answers(&self) -> bool {
        self.before
            .as_deref()
            .is_some_and(|before| before.trim_end().ends_with('?'))
    }
}

/// The words themselves: what memory told with them nobody said.
fn words_of(message: &Message) -> String {
    words_alone(message.text().trim()).trim().to_owned()
}
