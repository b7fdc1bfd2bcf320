use jiff::Timestamp;

use crate::BoxFuture;
use crate::event::Recorded;
use crate::id::{AgentName, ConversationId, ConversationKey, TurnId, UserId};
use crate::port::{Journal, StoreError};

/// The part of a conversation that is not in the index yet: its turns behind the last one that is,
/// without those of the conversation that it branches off.
#[derive(Debug, Clone, PartialEq)]
pub struct Unindexed {
    /// The conversation.
    pub key: ConversationKey,
    /// Its title. Empty: it has none yet.
    pub title: String,
    /// The part that was read.
    pub part: IndexedPart,
    /// The beginnings and ends of the turns in that part, in order.
    pub events: Vec<Recorded>,
}

/// A part of a conversation that [`PastConversations::index`] puts into the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedPart {
    /// Time of creation of the conversation: one that was deleted and begun again is another.
    pub created_at: Timestamp,
    /// The place behind which it begins: everything up to there is in the index.
    pub after: u64,
    /// The place up to which it goes.
    pub until: u64,
    /// Number of turns of the conversation, if the part goes up to its end. `None`: there is more
    /// behind it.
    pub turns: Option<u64>,
}

/// A piece of what was said in a turn, in the form in which it is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The place of the beginning of its turn.
    pub seq: u64,
    /// Its number among the passages of the turn, from 0.
    pub number: u32,
    /// The turn.
    pub turn: TurnId,
    /// Time of the beginning of the turn.
    pub at: Timestamp,
    /// Number of words in the piece.
    pub length: u32,
    /// The index words, separated by single spaces, each as often as it stands in the piece. A
    /// store takes them for what they are and compares them whole: of what language they are, and
    /// what they are made from, is the caller's affair.
    pub words: String,
}

/// A search in the past conversations of a user.
#[derive(Debug, Clone, Copy)]
pub struct PastQuery<'a> {
    /// The index words, any of which a passage has to hold. Each once, without white space or
    /// control characters.
    pub words: &'a [String],
    /// The conversation that is left out, if one is.
    pub except: Option<ConversationId>,
    /// Number of passages that are returned at most: those that hold the rarest of the words.
    pub candidates_max: u32,
    /// Number of turns that are returned at most of those that are not in the index yet.
    pub unindexed_max: u32,
}

/// The answer to [`PastConversations::search`]: what a ranking needs, of one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastFound {
    /// Number of conversations of the user that have passages in the index.
    pub conversations: u64,
    /// Number of these passages.
    pub passages: u64,
    /// Sum of their lengths.
    pub length: u64,
    /// For each word of the query, the number of these passages that hold it.
    pub holding: Vec<u64>,
    /// Passages that hold at least one of the words.
    pub candidates: Vec<Candidate>,
    /// Turns that are not in the index yet, of the conversations with the newest inputs, whatever
    /// they hold. Also those that are open.
    pub unindexed: Vec<Unindexed>,
    /// False if there were more of them than asked for.
    pub is_complete: bool,
}

/// A passage that may be what is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The title of that. Empty: it has none yet.
    pub title: String,
    /// The sum of the lengths of all passages of the conversation.
    pub conversation_length: u64,
    /// The passage.
    pub passage: Passage,
}

/// An index of what was said in the conversations of a journal.
///
/// It is filled behind the turns, from a mark in each conversation, so that no turn waits for it;
/// what is newer than the mark comes with every search as it was said. A conversation that is
/// deleted leaves the index in the same transaction. Single requests
/// ([`ConversationId::is_of_a_request`]) are not in it.
pub trait PastConversations: Journal {
    /// Reads turns of an agent's conversations, of all users, that ended and are not in the index
    /// yet: at most `turns`, of the conversations with the newest inputs. Conversations with an
    /// open turn are left out. Empty: everything is in the index, which takes one statement to find
    /// out.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unindexed<'a>(
        &'a self,
        agent: &'a AgentName,
        turns: u32,
    ) -> BoxFuture<'a, Result<Vec<Unindexed>, StoreError>>;

    /// Puts passages into the index and moves the mark of their conversation to the end of the
    /// part, for all of them in one transaction. A part is left out if somebody else has moved the
    /// mark meanwhile, or the conversation is gone. Returns the number of parts that were not.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was changed.
    fn index<'a>(
        &'a self,
        parts: &'a [(ConversationKey, IndexedPart, Vec<Passage>)],
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Looks for what a user's search may mean, in their conversations with an agent and in no
    /// others.
    ///
    /// # Errors
    /// [`StoreError`].
    fn search<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        query: PastQuery<'a>,
    ) -> BoxFuture<'a, Result<PastFound, StoreError>>;
}
