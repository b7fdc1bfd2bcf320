//! What a person's memory changed, when, and because of which conversation.
//!
//! Of a vault, the files are the truth; this is what a line of markdown cannot show.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{CallId, ConversationId, IdempotencyKey, TurnId, UserId};

/// Whose memory, and in which vault. Nothing crosses from one scope to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryScope {
    /// The vault's owner.
    pub user: UserId,
    /// The vault: its absolute path, symbolic links resolved. A vault that is moved starts an empty
    /// history. Empty: the facts are in the database.
    pub vault: String,
}

impl MemoryScope {
    /// Returns the scope of a user's facts in the database.
    #[must_use]
    pub fn database(user: UserId) -> Self {
        Self {
            user,
            vault: String::new(),
        }
    }
}

/// Where something was learned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySource {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn in it.
    pub turn: TurnId,
    /// The call in the turn.
    pub call: CallId,
}

/// A fact that is kept in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFact {
    /// Its words, in one line.
    pub text: String,
    /// True if a model is always told it.
    pub important: bool,
    /// The time at which it was first remembered.
    pub created_at: Timestamp,
    /// The time at which it got the words and the importance it has.
    pub updated_at: Timestamp,
    /// The call that gave it its words; none if the person wrote them.
    pub source: Option<MemorySource>,
}

/// A fact as it stood in the file, or in the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactLine {
    /// The fact's own words, the key by which its history is found.
    pub text: String,
    /// The bytes of the file: the list item with its mark, its date and whatever hangs below it. In
    /// the database: its words.
    pub line: String,
    /// Whether it stood among the important ones.
    pub important: bool,
    /// Its place in its section, from 0; in the database, among all facts.
    pub place: usize,
    /// When the fact was first written down, as far as anybody knows.
    pub created: Option<Timestamp>,
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MemoryEffect {
    /// A fact was added (no `before`), forgotten (no `after`), corrected or edited (both).
    Fact {
        /// How it read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<FactLine>,
        /// How it reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FactLine>,
    },
    /// Text went into a note.
    Note {
        /// The note, relative to the vault, with `/`.
        path: String,
        /// Exactly what was inserted; the whole note if it was created.
        inserted: String,
        /// The note did not exist before.
        created: bool,
        /// How often `inserted` stood in the note before.
        found_before: usize,
        /// The data of the call's answer, given again when the call is repeated.
        answer: serde_json::Value,
    },
    /// The line of a task was added (no `before`), removed (no `after`), changed or moved (both) in
    /// the notes.
    Task {
        /// The words of the task, for the person.
        words: String,
        /// Its lines before, and their note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<TaskLines>,
        /// Its lines after, and their note: two if the next occurrence of the task stands beside
        /// the completed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<TaskLines>,
        /// The note that the lines went to did not exist before.
        created: bool,
        /// The data of the call's answer, given again when the call is repeated.
        answer: serde_json::Value,
    },
}

/// Lines of a note, and what is needed to find them, or their place, again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLines {
    /// The note, relative to the vault, with `/`.
    pub path: String,
    /// The lines, divided by `\n`, without what ends the last.
    pub text: String,
    /// The line above; none at the beginning of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// The line below; none at the end of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// The number of times these lines stood in the note before the change.
    pub found_before: usize,
}

/// How far a change got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// Written down before the file was touched: the file says whether it was carried out.
    Begun,
    /// Carried out.
    Done,
    /// Taken back by the person.
    Undone,
    /// Never carried out, or no longer undoable because the file was changed by hand since.
    Void,
}

/// What a change did to the bytes of a file, so that it can be taken back to the byte while nobody
/// else has changed the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePatch {
    /// The SHA-256 of the whole file after the change, in hexadecimal digits.
    pub after: String,
    /// Where the bytes are that were changed, from 0.
    pub at: usize,
    /// What stood there.
    pub removed: String,
    /// How many bytes stand there instead.
    pub inserted: usize,
}

/// One change of a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// Its own name; a time-ordered UUID.
    pub id: Uuid,
    /// When.
    pub at: Timestamp,
    /// Because of what; none if the person did it without a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MemorySource>,
    /// The call's key, so that a repeat of it has no second effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// What it did.
    pub effect: MemoryEffect,
    /// How far it got.
    pub state: MemoryState,
    /// The way back to the byte; none for notes, whose text is in the effect, and for a file that
    /// is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<FilePatch>,
}
