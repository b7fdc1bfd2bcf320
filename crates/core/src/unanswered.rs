//! Turns without an answer of the model: the note that the next request has in its place.
//!
//! The words that a person reads when a turn fails or is stopped are the program's. Sent back as
//! the assistant's they would read as a refusal of the model, so they are not part of the history.
//! Without any trace, however, the model would take the request for an open one and carry it out
//! together with the next. A note in the person's role, in brackets, says what became of it.

use crate::decision::OutcomeCategory;
use crate::event::TurnEnd;
use crate::message::{Content, Message, Part, Role};
use crate::words;

/// The note for a turn that a person stopped.
const STOPPED: &str = "[The person stopped this request. What was not done by then counts only if they ask for it again.]";
/// The note for a turn that failed or reached a limit.
const ENDED_EARLY: &str = "[This request ended early, without an answer. What was not done by then counts only if the person asks for it again.]";
/// The note in place of words that earlier versions stored behind the model's.
const STEP_FAILED: &str = "[The person was also told that a step of this failed.]";

/// Returns the note for a turn with this outcome. `None`: such a turn has an answer.
pub(crate) fn note(outcome: OutcomeCategory) -> Option<&'static str> {
    match outcome {
        OutcomeCategory::Cancelled => Some(STOPPED),
        OutcomeCategory::RateLimited
        | OutcomeCategory::LlmFailure
        | OutcomeCategory::NoResult
        | OutcomeCategory::ContentFilter
        | OutcomeCategory::IterationsLimit
        | OutcomeCategory::MaxTokensLimit
        | OutcomeCategory::IdenticalCallsLimit
        | OutcomeCategory::DeadlineLimit
        | OutcomeCategory::BudgetLimit
        | OutcomeCategory::ContextLimit
        | OutcomeCategory::Poisoned => Some(ENDED_EARLY),
        OutcomeCategory::ResponseGiven
        | OutcomeCategory::TaskCompleted
        | OutcomeCategory::UnclearIntent
        | OutcomeCategory::OutOfScope
        | OutcomeCategory::ToolFailure
        | OutcomeCategory::PendingConfirmation
        | OutcomeCategory::PendingResult
        | OutcomeCategory::ConfirmationDenied
        | OutcomeCategory::ConfirmationExpired
        | OutcomeCategory::InDoubt => None,
    }
}

/// Returns true if a message of a history is a note of this program about the turn before it, and
/// not written by the person in whose role it is.
#[must_use]
pub fn is_note(message: &Message) -> bool {
    let [part] = message.parts() else {
        return false;
    };
    let notes = [STOPPED, ENDED_EARLY, STEP_FAILED];
    message.role() == Role::User
        && matches!(&part.content, Content::Text { text } if notes.contains(&text.as_str()))
}

/// Adds the note for a turn with this outcome to its messages, unless they end with words of the
/// model.
pub(crate) fn add_note(messages: &mut Vec<Message>, outcome: OutcomeCategory) {
    if messages.last().is_some_and(is_answer) {
        return;
    }
    messages.extend(note(outcome).and_then(|note| Message::user(note).ok()));
}

/// Returns true for a message of the assistant that calls nothing.
fn is_answer(message: &Message) -> bool {
    message.role() == Role::Assistant && message.tool_calls().next().is_none()
}

impl TurnEnd {
    /// Returns the messages that the turn adds to the history.
    ///
    /// Earlier versions stored words of the program as the assistant's. A note takes the place of
    /// such a message, so that the number of messages, to which summaries refer, stays the same.
    pub fn history(&self) -> impl Iterator<Item = Message> {
        let replaced = self.note_for_stored_words();
        let kept = self.messages.len() - usize::from(replaced.is_some());
        let kept = self.messages.iter().take(kept).cloned();
        kept.chain(replaced)
    }

    /// Returns the note that takes the place of the last message, if that has words of the program.
    fn note_for_stored_words(&self) -> Option<Message> {
        let (last, before) = self.messages.split_last()?;
        let is_plain =
            |part: &Part| matches!(part.content, Content::Text { .. }) && part.state.is_none();
        let text = &self.decision.text;
        if !is_answer(last) || !last.parts().iter().all(is_plain) || last.text() != *text {
            return None;
        }
        let note = if before.last().is_some_and(is_answer) {
            Some(note(self.outcome).unwrap_or(STEP_FAILED))
        } else if self.outcome == OutcomeCategory::MaxTokensLimit {
            // The model's own text, which was cut, unless it was cut inside a call.
            note(self.outcome).filter(|_| text.ends_with(words::TOO_COMPLEX))
        } else {
            note(self.outcome)
        };
        Message::user(note?).ok()
    }
}
