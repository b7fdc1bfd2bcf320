use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::BoxFuture;
use crate::id::{AgentName, ConversationId, ConversationKey, UserId};
use crate::port::{Alternatives, BranchPoint, Branched, Branching, Cursor, StoreError};

/// A conversation as an entry of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// Id of the conversation, unique for its user and agent.
    pub id: ConversationId,
    /// Title: the first message that is not a greeting, shortened, until it is renamed. As long as
    /// there is none, the first greeting; empty without a message.
    pub title: String,
    /// True if a person chose the title.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// Time at which the first input was accepted.
    pub created_at: Timestamp,
    /// Time at which the last input was accepted.
    pub updated_at: Timestamp,
    /// True if a call waits for confirmation.
    pub pending: bool,
    /// Time of the last event or input.
    pub last_activity: Timestamp,
    /// Number of turns started, including those of the conversation that a branch comes from.
    pub turns: u64,
    /// True if the person ended the session and nothing followed.
    pub ended: bool,
    /// True if a turn is open that waits for nobody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
    /// Position at which it branches off. `None` if it is not a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branched_from: Option<BranchPoint>,
    /// The versions that the entry stands for. Only in a list of [`Entries::Conversations`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<VersionCount>,
}

/// The number of a conversation's versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionCount {
    /// The conversation that all of them descend from.
    pub root: ConversationId,
    /// Number of the versions in which something was said, at least 1.
    pub count: u64,
}

/// The versions of a conversation: the one that was begun first, and all that branch off it or off
/// each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The conversation that all of them descend from.
    pub root: ConversationId,
    /// All versions: the one with the newest input first, those in which nothing was said last.
    pub ids: Vec<ConversationId>,
}

/// The meaning of an entry in a list of conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Entries {
    /// Each version of a conversation is an entry.
    #[default]
    Versions,
    /// All versions of a conversation are one entry: the version with the newest input.
    Conversations,
}

impl ConversationSummary {
    /// Returns the cursor from which the next page of the list begins.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor {
            at: self.updated_at,
            id: self.id.0,
        }
    }
}

/// A filter and page of the list of conversations, which is ordered by the newest input first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Text that the title has to contain, ignoring case.
    pub search: Option<String>,
    /// Cursor of the last entry of the previous page.
    pub after: Option<Cursor>,
    /// Maximum number of entries to return.
    pub limit: u32,
    /// The meaning of an entry.
    pub entries: Entries,
}

impl ConversationFilter {
    /// Returns a filter for the `limit` newest conversations.
    #[must_use]
    pub fn newest(limit: u32) -> Self {
        Self {
            search: None,
            after: None,
            limit,
            entries: Entries::Versions,
        }
    }

    /// Returns true if a title contains the searched text.
    #[must_use]
    pub fn takes(&self, title: &str) -> bool {
        self.search
            .as_ref()
            .is_none_or(|words| title.to_lowercase().contains(&words.to_lowercase()))
    }
}

/// The result of [`ConversationStore::delete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The conversation was deleted; calls that waited in it were not executed.
    Yes,
    /// The user has no such conversation with the agent.
    NoSuchConversation,
    /// A live worker runs a turn in it, so nothing was deleted. Possible once the turn has ended or
    /// waits.
    Running,
}

/// The list of conversations. Their content is in the [`Journal`](super::Journal).
pub trait ConversationStore: Send + Sync + 'static {
    /// Returns the user's conversations with the agent, the one with the newest input first,
    /// without single requests ([`ConversationId::is_of_a_request`]).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn list<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        filter: &'a ConversationFilter,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>>;

    /// Returns one conversation of the user with the agent, if it exists.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn summary<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<ConversationSummary>, StoreError>>;

    /// Sets the title that a person chose. Returns `false` if the conversation does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Replaces the generated title `from` by `to`. A title that a person chose stays, even if it
    /// equals `from`. Returns `false` if the title is another one or the conversation does not
    /// exist.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn retitle<'a>(
        &'a self,
        key: &'a ConversationKey,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Deletes a conversation with its events and logs, unless a live worker holds its lease
    /// ([`Journal::claim`]). Events and logs that branches share are kept as long as a branch does.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    ///
    /// [`Journal::claim`]: crate::port::Journal::claim
    fn delete<'a>(&'a self, key: &'a ConversationKey)
    -> BoxFuture<'a, Result<Deleted, StoreError>>;

    /// Deletes all versions of a conversation with their events and logs, unless a live worker holds
    /// the lease of one of them; then none is deleted.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn delete_versions<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Deleted, StoreError>>;

    /// Returns the versions of a conversation; `None` if the user has no such conversation.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn versions<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Versions>, StoreError>>;

    /// Creates a conversation that shares the events of another one up to a position between two
    /// turns and has its own sequence numbers after it. Reading it ([`Journal::load`]) returns
    /// both; nothing is copied. It gets the other's title unless it begins empty, and none of its
    /// queued inputs. The same request twice creates one branch.
    ///
    /// # Errors
    ///
    /// [`StoreError::Reused`] if the id belongs to another conversation; any other [`StoreError`].
    ///
    /// [`Journal::load`]: crate::port::Journal::load
    fn branch<'a>(
        &'a self,
        branching: Branching<'a>,
    ) -> BoxFuture<'a, Result<Branched, StoreError>>;

    /// Returns the positions at which other conversations continue differently, in order: branches
    /// of the conversation, its origins, and their branches. Branches without messages are left
    /// out. Empty if the user has no such conversation.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<Alternatives>, StoreError>>;
}
