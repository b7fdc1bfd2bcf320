//! Conversation search: indexes the turns of past conversations, and finds those that match a
//! query.
//!
//! The index is in the store of the conversations ([`ConversationIndex`]) and is filled behind the
//! turns, by [`index_conversations`]. [`search_conversations`] also reads the turns that are not in
//! it yet.

mod excerpt; // the part of a turn that is shown
mod ranking; // BM25 over conversations and passages
mod turn_text; // the text of a turn

use adjutant_core::port::{ConversationIndex, IndexQuery, StoreError};
use adjutant_core::{
    AgentName, ConversationId, ConversationKey, InputBody, Role, TurnId, UserId, first_words,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::rank::Query;
use crate::vault::{Condition, parse_query};
use excerpt::excerpt;
use ranking::{RankedConversation, rank};
use turn_text::{TurnText, passages, turn_texts};

/// Number of turns that are indexed in one transaction.
const TURNS_AT_ONCE: u32 = 50;
/// Number of such transactions that a search waits for, if too many turns are not indexed yet.
const CATCH_UP_MAX: u32 = 40;
/// Number of passages of the index that are ranked.
const CANDIDATES_MAX: u32 = 500;
/// Number of turns that are ranked although they are not in the index yet.
const UNINDEXED_MAX: u32 = 200;

/// Settings of a search in past conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationSearchOptions {
    /// Number of conversations that are returned. Default 10.
    pub limit: usize,
    /// Characters of the passage that is shown of each. Default 240.
    pub chars: usize,
    /// The conversation that is left out: the one that asks. Default: none.
    pub except: Option<ConversationId>,
}

impl Default for ConversationSearchOptions {
    fn default() -> Self {
        Self {
            limit: 10,
            chars: 240,
            except: None,
        }
    }
}

/// The conversations that match a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConversationSearchResults {
    /// Best first, each conversation once.
    pub found: Vec<ConversationHit>,
    /// False if more turns were not in the index yet than a search reads: the oldest of them were
    /// not searched.
    pub is_complete: bool,
}

/// A conversation that matches a query, with the turn of it that matches best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConversationHit {
    /// The id of the conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The title of the conversation; if it has none, the first words of the turn that matches best.
    pub title: String,
    /// The id of the turn that matches best.
    #[serde(rename = "run_id")]
    pub turn: TurnId,
    /// The time at which the turn began.
    pub at: Timestamp,
    /// The side of the turn that the passage is from: the user's message or the answer.
    pub said_by: Role,
    /// The part of the turn that matches best, without secrets, with an ellipsis where text is left
    /// out.
    pub passage: String,
    /// True if the turn holds text of others, or was written after such text was read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_others: bool,
    /// The score, as a share of the most that a conversation can score for the query.
    #[serde(skip)]
    pub score: f64,
    #[serde(skip)]
    text: TurnText,
}

impl ConversationHit {
    /// Returns the message and the answer, if they have at most `chars` characters, else the
    /// passage alone.
    pub(crate) fn both_sides(&self, chars: usize) -> String {
        let TurnText { user, answer, .. } = &self.text;
        let both = match answer.is_empty() {
            true => format!("User: {user}"),
            false => format!("User: {user}\nAssistant: {answer}"),
        };
        if both.chars().count() <= chars {
            return both;
        }
        let name = if self.said_by == Role::Assistant {
            "Assistant"
        } else {
            "User"
        };
        format!("{name}: {}", self.passage)
    }
}

/// Indexes turns that are not in the index yet: at most 50, in one transaction. Returns true if any
/// were indexed, so that there may be more. Turns whose transaction does not commit are indexed by
/// the next call.
///
/// # Errors
/// [`StoreError`]; then nothing was changed.
pub async fn index_conversations(
    index: &dyn ConversationIndex,
    agent: &AgentName,
) -> Result<bool, StoreError> {
    let unindexed = index.unindexed(agent, TURNS_AT_ONCE).await?;
    if unindexed.is_empty() {
        return Ok(false);
    }
    // Stemming long texts would block the other tasks of this thread.
    let parts = tokio::task::spawn_blocking(move || {
        let parts = unindexed.into_iter();
        parts
            .map(|part| (part.key, part.part, passages(&turn_texts(&part.events))))
            .collect::<Vec<_>>()
    });
    let parts = parts
        .await
        .map_err(|error| StoreError::unavailable(error.to_string()).with_source(error))?;
    // None were written if another process is indexing the same turns.
    Ok(index.index(&parts).await? > 0)
}

/// Returns the conversations of a user with an agent that match a query best, best first. Words
/// match in any of their forms; `"several words"` have to stand in the turn as they are, and the
/// turn has to have each `#tag` and a link to each `[[Note]]`. A query without words matches
/// nothing.
///
/// Turns that are not in the index yet are read too, the last 200 of them. If there are more, up to
/// 2,000 are indexed first, if the index can be written.
///
/// # Errors
/// [`StoreError`] if the store does not answer.
pub async fn search_conversations(
    index: &dyn ConversationIndex,
    agent: &AgentName,
    user: &UserId,
    query: &str,
    options: ConversationSearchOptions,
) -> Result<ConversationSearchResults, StoreError> {
    let (words, conditions) = parse_query(query);
    // The index has no tags: a tag alone is searched for by its words, and then checked.
    let words = if words.is_empty() { query } else { &words };
    let query = Query::new(&[(words, 1.0)]);
    let index_terms = query.index_terms();
    let words: Vec<String> = index_terms.iter().map(|(term, _)| term.clone()).collect();
    let asked = IndexQuery {
        words: &words,
        except: options.except,
        candidates_max: CANDIDATES_MAX,
        unindexed_max: UNINDEXED_MAX,
    };
    let mut found = index.search(agent, user, asked).await?;
    if !found.is_complete {
        for _ in 0..CATCH_UP_MAX {
            // A read-only store cannot be indexed; then the search stays incomplete.
            if !index_conversations(index, agent).await.unwrap_or(false) {
                break;
            }
        }
        found = index.search(agent, user, asked).await?;
    }
    let is_complete = found.is_complete;
    let unindexed: Vec<TurnText> = found
        .unindexed
        .iter()
        .flat_map(|part| turn_texts(&part.events))
        .collect();
    let mut hits = Vec::new();
    for ranked in rank(&query, &index_terms, found) {
        // Texts are loaded one by one until there are enough: each costs a statement.
        if hits.len() >= options.limit {
            break;
        }
        let key = ConversationKey {
            agent: agent.clone(),
            user: user.clone(),
            conversation: ranked.conversation,
        };
        if let Some(text) = best_turn(index, &key, &ranked, &conditions, &unindexed).await? {
            hits.push(hit(ranked, text, &query, options.chars));
        }
    }
    Ok(ConversationSearchResults {
        found: hits,
        is_complete,
    })
}

/// Returns the turn of a conversation that matches best, of those that meet all conditions.
async fn best_turn(
    index: &dyn ConversationIndex,
    key: &ConversationKey,
    conversation: &RankedConversation,
    conditions: &[Condition],
    unindexed: &[TurnText],
) -> Result<Option<TurnText>, StoreError> {
    for (turn, at) in &conversation.turns {
        let known = unindexed.iter().find(|text| text.turn == *turn).cloned();
        let text = match known {
            Some(known) => Some(known),
            None => {
                let events = index.load_turn(key, *turn).await?;
                events.and_then(|turn| turn_texts(&turn.events).into_iter().next())
            }
        };
        // The conversation may have been deleted since it was found.
        let Some(text) = text else { continue };
        let whole = text.to_text();
        if conditions.iter().all(|condition| condition.is_met(&whole)) {
            return Ok(Some(TurnText {
                turn: *turn,
                at: *at,
                ..text
            }));
        }
    }
    Ok(None)
}

fn hit(
    conversation: RankedConversation,
    text: TurnText,
    query: &Query,
    chars: usize,
) -> ConversationHit {
    let user = excerpt(&text.user, query, chars);
    let answer = excerpt(&text.answer, query, chars);
    let (said_by, shown) = if answer.terms > user.terms {
        (Role::Assistant, answer)
    } else {
        (Role::User, user)
    };
    // A conversation of greetings has no title.
    let title = Some(conversation.title).filter(|title| !title.is_empty());
    let words = |text: &str| first_words(&InputBody::message(text));
    let title = title
        .or_else(|| words(&text.user))
        .or_else(|| words(&text.answer))
        .unwrap_or_default();
    ConversationHit {
        conversation: conversation.conversation,
        title,
        turn: text.turn,
        at: text.at,
        said_by,
        passage: shown.text,
        from_others: text.from_others,
        score: conversation.score,
        text,
    }
}
