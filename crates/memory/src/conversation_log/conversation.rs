//! A conversation as it is handed in to be written.

use adjutant_core::{ConversationId, TranscriptMessage};
use jiff::Timestamp;

/// A conversation to be written as a note.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationLog {
    /// The id by which its note is found again.
    pub id: ConversationId,
    /// The title. The note is named after it when it is created, and keeps that name.
    pub title: String,
    /// The time at which the conversation began; the date is a part of the name.
    pub started: Timestamp,
    /// The user's name in the note, such as `You`.
    pub person: String,
    /// The assistant's name in the note, such as `Diana`.
    pub assistant: String,
    /// All messages from the beginning, as [`adjutant_core::transcript`] returns them. Messages of
    /// the user and of the assistant and the names of called tools are written; instructions,
    /// arguments and results are not.
    pub messages: Vec<TranscriptMessage>,
}
