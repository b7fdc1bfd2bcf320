//! The end of the transcript that the guards look at: the user's message and what was said before
//! it.

use super::analysis;
use adjutant_core::recall_block;
use adjutant_core::{Message, Role};

/// The last messages of a conversation, as far as a weak model and the guards read them.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    /// The user's last message.
    pub(super) message: String,
    /// The assistant's reply before it.
    pub(super) assistant_before: Option<String>,
    /// The user's message before that reply.
    pub(super) user_before: Option<String>,
}

impl Dialogue {
    pub(super) fn from_messages(messages: &[Message]) -> Self {
        let Some(at) = messages
            .iter()
            .rposition(|message| message.role() == Role::User)
        else {
            return Self::default();
        };
        let last_of = |role: Role, end: usize| {
            messages[..end]
                .iter()
                // An answer that only calls tools has no text that the user could refer to.
                .rposition(|message| message.role() == role && !message.text().trim().is_empty())
                .map(|at| (at, own_text(&messages[at])))
        };
        let before = last_of(Role::Assistant, at);
        let earlier = before.as_ref().and_then(|(at, _)| last_of(Role::User, *at));
        Self {
            message: own_text(&messages[at]),
            assistant_before: before.map(|(_, text)| text),
            user_before: earlier.map(|(_, text)| text),
        }
    }

    /// Returns the text that arguments may come from: the message, and what was said before it if the
    /// message answers a question or points back.
    pub(super) fn source(&self) -> String {
        let mut text = self.message.clone();
        if self.answers() || analysis::has_anaphora(&self.message) {
            for earlier in [&self.assistant_before, &self.user_before]
                .into_iter()
                .flatten()
            {
                text.push('\n');
                text.push_str(earlier);
            }
        }
        text
    }

    /// Returns true if the assistant's reply was a question, so that the message may be its answer.
    pub(super) fn answers(&self) -> bool {
        self.assistant_before
            .as_deref()
            .is_some_and(|before| before.trim_end().ends_with('?'))
    }
}

/// Returns true if a text asks which of several entities is meant: a question that numbers or
/// quotes two or more.
pub(super) fn asks_which(text: &str) -> bool {
    let numbered = text.contains("1. ") && text.contains("2. ");
    let quoted = text.matches(['\u{201c}', '\u{ab}', '\u{201e}']).count() > 1;
    text.trim_end().ends_with('?') && (numbered || quoted || text.matches(". ").count() > 1)
}

/// Returns the text that the user wrote, without the facts that automatic recall attached.
fn own_text(message: &Message) -> String {
    recall_block::strip(message.text().trim()).trim().to_owned()
}
