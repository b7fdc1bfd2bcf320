use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::BoxFuture;
use crate::id::{AgentName, ConversationId, ConversationKey, UserId};
use crate::port::{Alternatives, BranchPoint, Branched, Branching, Cursor, StoreError};

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// Its id.
    pub id: ConversationId,
    /// Its name: the first words said in it that are no greeting, until somebody renames it. Empty:
    /// there are none yet.
    pub title: String,
    /// True if a person gave it that name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// When its first input was accepted.
    pub created_at: Timestamp,
    /// When its last input was accepted.
    pub updated_at: Timestamp,
    /// Whether something in it waits for a human.
    pub pending: bool,
    /// When anything last happened in it: an input, an answer, an end.
    pub last_activity: Timestamp,
    /// Turns that were begun, with those of the conversation that a branch comes from.
    pub turns: u64,
    /// Whether its session was ended by the person, and nothing came after that.
    pub ended: bool,
    /// The place it branches off at. `None`: it is no branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branched_from: Option<BranchPoint>,
}

impl ConversationSummary {
    /// Its place in the list, to go on behind it.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor {
            at: self.updated_at,
            id: self.id.0,
        }
    }
}

/// Which conversations to list, the one with the newest input first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only those with these words in their title, in upper or lower case.
    pub search: Option<String>,
    /// Only those behind this place.
    pub after: Option<Cursor>,
    /// At most so many.
    pub limit: u32,
}

impl ConversationFilter {
    /// The newest `limit`.
    #[must_use]
    pub fn newest(limit: u32) -> Self {
        Self {
            search: None,
            after: None,
            limit,
        }
    }

    /// Whether a title holds what is searched.
    #[must_use]
    pub fn takes(&self, title: &str) -> bool {
        self.search
            .as_ref()
            .is_none_or(|words| title.to_lowercase().contains(&words.to_lowercase()))
    }
}

/// What became of a request to delete a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone, and what waited in it with it: nothing of that was done.
    Yes,
    /// The user has no such conversation with the agent.
    NoSuchConversation,
    /// Somebody alive works on it: nothing was deleted. Once its turn has ended or waits, it can
    /// be.
    Running,
}

/// The list of conversations. What is said in them is in the journal.
pub trait ConversationStore: Send + Sync + 'static {
    /// The user's conversations with the agent, the one with the newest input first, without single
    /// requests ([`ConversationId::is_of_a_request`]).
    ///
    /// # Errors
    /// [`StoreError`].
    fn list<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        filter: &'a ConversationFilter,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>>;

    /// One conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn summary<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<ConversationSummary>, StoreError>>;

    /// Gives it the name that a person chose for it. `false`: there is no such conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Gives it the title `to` if it still has the title `from`, and not from a person: a name that
    /// a person gave stays, also one that is the title it had. `false`: it has another title or a
    /// person's, or there is no such conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn retitle<'a>(
        &'a self,
        key: &'a ConversationKey,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Deletes it with its events and logs, unless somebody alive has claimed it
    /// ([`Journal::claim`]). The events and logs that branches begin with stay for as long as there
    /// is a branch that does.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// [`Journal::claim`]: crate::port::Journal::claim
    fn delete<'a>(&'a self, key: &'a ConversationKey)
    -> BoxFuture<'a, Result<Deleted, StoreError>>;

    /// Makes a conversation that begins with the events of another one up to a place between two
    /// turns, and goes on with places of its own behind it. Reading it ([`Journal::load`]) gives
    /// both; nothing is copied. It has the other's title, unless they have nothing in common, and
    /// nothing that waits in the other. The same request twice makes one branch.
    ///
    /// # Errors
    /// [`StoreError::Reused`] if the id is that of another conversation; any other [`StoreError`]
    /// as usual.
    ///
    /// [`Journal::load`]: crate::port::Journal::load
    fn branch<'a>(
        &'a self,
        branching: Branching<'a>,
    ) -> BoxFuture<'a, Result<Branched, StoreError>>;

    /// Lists the places of a conversation at which others go on differently, in order: its
    /// branches, those it comes from, and their branches. Branches in which nothing was said yet
    /// are left out. Empty if the user has no such conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<Alternatives>, StoreError>>;
}
