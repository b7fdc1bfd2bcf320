//! Records of changes to a person's memory: what changed, when, and which conversation caused it.
//!
//! For a vault the files are authoritative; these records hold what a line of Markdown cannot.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{CallId, ConversationId, IdempotencyKey, TurnId, UserId};

/// The owner and vault of a memory. Nothing is shared between scopes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryScope {
    /// User who owns the memory.
    pub user: UserId,
    /// Absolute path of the vault with symbolic links resolved; a vault that is moved starts a new
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

/// The call that stored something in the memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySource {
    /// Conversation in which the call was made.
    pub conversation: ConversationId,
    /// Turn in which the call was made.
    pub turn: TurnId,
    /// Id of the call in the turn.
    pub call: CallId,
}

/// A fact in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFact {
    /// Text of the fact, on one line.
    pub text: String,
    /// True if the fact is part of every instruction.
    pub important: bool,
    /// Time at which the fact was first stored.
    pub created_at: Timestamp,
    /// Time at which its text or importance last changed.
    pub updated_at: Timestamp,
    /// Call that stored its text; `None` if the person wrote it.
    pub source: Option<MemorySource>,
}

/// A fact as it was in the file or database at the time of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactLine {
    /// Text of the fact, by which its history is found.
    pub text: String,
    /// Bytes of the list item in the file with its marker, date and nested lines; in the database,
    /// the text.
    pub line: String,
    /// True if it was in the section of important facts.
    pub important: bool,
    /// Index in its section, from 0; in the database, among all facts.
    pub place: usize,
    /// Time at which the fact was first stored, if it is known.
    pub created: Option<Timestamp>,
}

/// The content of a change, by what was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MemoryEffect {
    /// A fact was added (no `before`), forgotten (no `after`), or changed (both).
    Fact {
        /// The fact before the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<FactLine>,
        /// The fact after the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FactLine>,
    },
    /// Text was inserted into a note.
    Note {
        /// Path of the note relative to the vault, with `/`.
        path: String,
        /// Inserted bytes; the whole note if it was created.
        inserted: String,
        /// True if the note did not exist before.
        created: bool,
        /// Number of times that `inserted` occurred in the note before.
        found_before: usize,
        /// Result data of the call, returned again if the call is repeated.
        answer: serde_json::Value,
    },
    /// The lines of a task were added (no `before`), removed (no `after`), or changed or moved
    /// (both).
    Task {
        /// Description of the task, for messages to the person.
        words: String,
        /// Lines of the task before, with their note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<TaskLines>,
        /// Lines after, with their note; two tasks if the next occurrence was added beside the
        /// completed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<TaskLines>,
        /// True if the note with the new lines did not exist before.
        created: bool,
        /// Result data of the call, returned again if the call is repeated.
        answer: serde_json::Value,
    },
}

/// Lines of a note, with what is needed to find them or their position again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLines {
    /// Path of the note relative to the vault, with `/`.
    pub path: String,
    /// The lines, separated by `\n`, without the last line end.
    pub text: String,
    /// Line above; `None` at the beginning of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// Line below; `None` at the end of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// Number of times that these lines occurred in the note before the change.
    pub found_before: usize,
}

/// The progress of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// Recorded before the file is written; whether it was carried out can be read from the file.
    Begun,
    /// Carried out completely, and can be undone.
    Done,
    /// Reverted by the person who owns the memory.
    Undone,
    /// Never carried out, or not revertible because the file was edited since.
    Void,
}

/// A change of a file's bytes, which can be reverted exactly while the file has not been changed
/// otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePatch {
    /// SHA-256 of the whole file after the change, in hexadecimal digits.
    pub after: String,
    /// Offset of the changed bytes, from 0.
    pub at: usize,
    /// Bytes that were replaced.
    pub removed: String,
    /// Number of bytes that replaced them.
    pub inserted: usize,
}

/// A recorded change of a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// Id of the change, a time-ordered UUID.
    pub id: Uuid,
    /// Time at which the change was made.
    pub at: Timestamp,
    /// Call that made the change; `None` if the person made it without a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MemorySource>,
    /// Idempotency key of the call, so that repeating it has no second effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// Content of the change.
    pub effect: MemoryEffect,
    /// Progress of the change.
    pub state: MemoryState,
    /// Exact patch of the file; `None` for notes, whose text is in the effect, and for new files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<FilePatch>,
}
