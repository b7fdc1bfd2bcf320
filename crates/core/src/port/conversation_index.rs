use jiff::Timestamp;

use crate::BoxFuture;
use crate::event::Recorded;
use crate::id::{AgentName, ConversationId, ConversationKey, TurnId, UserId};
use crate::port::{Journal, StoreError};

/// A part of a conversation that is not indexed yet: its turns after the last indexed one, without
/// those of the conversation it branches off.
#[derive(Debug, Clone, PartialEq)]
pub struct Unindexed {
    /// Conversation that the turns belong to.
    pub key: ConversationKey,
    /// Title of the conversation; empty if it has none yet.
    pub title: String,
    /// Range of the conversation that was read.
    pub part: IndexedPart,
    /// First and last events of the turns in that range, in order.
    pub events: Vec<Recorded>,
}

/// A range of a conversation that [`ConversationIndex::index`] marks as indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedPart {
    /// Creation time of the conversation, which differs if it was deleted and created again.
    pub created_at: Timestamp,
    /// Sequence number before the range: everything up to it is indexed.
    pub after: u64,
    /// Sequence number of the last event of the range.
    pub until: u64,
    /// Number of turns of the conversation if the range reaches its end, else `None`.
    pub turns: Option<u64>,
}

/// A piece of a turn's text in the form in which it is indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Sequence number of the first event of its turn.
    pub seq: u64,
    /// Number of the passage in its turn, from 0.
    pub number: u32,
    /// Turn that the text comes from.
    pub turn: TurnId,
    /// Time at which the turn started.
    pub at: Timestamp,
    /// Number of words in the passage.
    pub length: u32,
    /// Index terms, separated by single spaces, each as often as it occurs. Stores treat terms as
    /// opaque and compare them whole; their language and form are the caller's business.
    pub words: String,
}

/// A search in the conversations of a user.
#[derive(Debug, Clone, Copy)]
pub struct IndexQuery<'a> {
    /// Index terms, of which a passage has to contain at least one. Unique, without white space or
    /// control characters.
    pub words: &'a [String],
    /// Conversation to leave out, such as the current one.
    pub except: Option<ConversationId>,
    /// Maximum number of passages to return: those with the rarest of the terms.
    pub candidates_max: u32,
    /// Maximum number of turns to return that are not indexed yet.
    pub unindexed_max: u32,
}

/// The result of [`ConversationIndex::search`]: everything that ranking needs, from one snapshot of
/// the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexMatches {
    /// Number of the user's conversations with indexed passages.
    pub conversations: u64,
    /// Number of the user's indexed passages.
    pub passages: u64,
    /// Sum of the lengths of these passages, in words.
    pub length: u64,
    /// Document frequency of each query term: the number of these passages that contain it.
    pub holding: Vec<u64>,
    /// Passages with at least one of the terms.
    pub candidates: Vec<Candidate>,
    /// Turns that are not indexed yet, whatever they contain, of the conversations with the newest
    /// inputs. Open turns are among them.
    pub unindexed: Vec<Unindexed>,
    /// False if there were more unindexed turns than requested.
    pub is_complete: bool,
}

/// A passage that contains a query term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Conversation that the passage belongs to.
    pub conversation: ConversationId,
    /// Title of the conversation; empty if it has none yet.
    pub title: String,
    /// Sum of the lengths of all passages of the conversation, in words.
    pub conversation_length: u64,
    /// The passage with its terms.
    pub passage: Passage,
}

/// A full-text index of the conversations of a journal.
///
/// It is filled after turns, from a position in each conversation, so that no turn waits for it;
/// searches also return what is newer than that position. Deleting a conversation deletes its
/// passages in the same transaction. Single requests ([`ConversationId::is_of_a_request`]) are not
/// indexed.
pub trait ConversationIndex: Journal {
    /// Returns finished turns of an agent's conversations, of all users, that are not indexed yet:
    /// at most `turns`, of the conversations with the newest inputs. Conversations with an open
    /// turn are left out. Empty if everything is indexed, which takes one statement to find out.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn unindexed<'a>(
        &'a self,
        agent: &'a AgentName,
        turns: u32,
    ) -> BoxFuture<'a, Result<Vec<Unindexed>, StoreError>>;

    /// Indexes passages and advances the positions of their conversations, in one transaction. A
    /// part is skipped if another process has advanced the position meanwhile, or the conversation
    /// is gone. Returns the number of parts that were indexed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; then nothing was changed.
    fn index<'a>(
        &'a self,
        parts: &'a [(ConversationKey, IndexedPart, Vec<Passage>)],
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Searches the user's conversations with an agent, and no others.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn search<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        query: IndexQuery<'a>,
    ) -> BoxFuture<'a, Result<IndexMatches, StoreError>>;
}
