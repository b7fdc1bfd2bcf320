//! Past conversations: what was said in them is put into the store's index behind the turns, and
//! found by what is meant.

mod excerpt; // the words that are shown
mod ranking; // which turns fit
mod said; // turns in words

use adjutant_core::port::{PastConversations, PastQuery, StoreError};
use adjutant_core::{AgentName, ConversationId, ConversationKey, Role, TurnId, UserId};
use jiff::Timestamp;
use serde::Serialize;

use crate::rank::Query;
use crate::vault::{Term, meets, terms_of};
use excerpt::excerpt;
use ranking::{Ranked, rank};
use said::{Said, passages, said};

/// Turns that are put into the index at once.
const TURNS_AT_ONCE: u32 = 50;
/// Portions that are put into the index before a search that would not look through all turns.
const CAUGHT_UP_MAX: u32 = 40;
/// Passages of the index that are ranked.
const CANDIDATES_MAX: u32 = 500;
/// Turns that are ranked although they are not in the index yet.
const UNINDEXED_MAX: u32 = 200;

/// Settings of a search in past conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastOptions {
    /// Number of conversations that are found at most. Default 10.
    pub limit: usize,
    /// Characters of what is shown of each. Default 240.
    pub chars: usize,
    /// The conversation that goes on, which is not past. Default: none.
    pub except: Option<ConversationId>,
}

impl Default for PastOptions {
    fn default() -> Self {
        Self {
            limit: 10,
            chars: 240,
            except: None,
        }
    }
}

/// Conversations in which something was said that fits a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PastSearch {
    /// Best first, each once.
    pub found: Vec<PastHit>,
    /// False if more turns were not in the index yet than a search looks through: the oldest of
    /// them were not searched.
    pub is_complete: bool,
}

/// A conversation that was found, and the turn of it that fits best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PastHit {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// Its title. Empty: it has none yet.
    pub title: String,
    /// The turn.
    #[serde(rename = "run_id")]
    pub turn: TurnId,
    /// Time of the beginning of the turn.
    pub at: Timestamp,
    /// The speaker of the passage.
    pub said_by: Role,
    /// The part of the words that fits best, without secrets. What was left out before and behind
    /// it is an ellipsis.
    pub passage: String,
    /// A part of what a turn would have that says just what was asked.
    #[serde(skip)]
    pub score: f64,
    #[serde(skip)]
    said: Said,
}

impl PastHit {
    /// Returns the words of both sides, as far as they fit into so many characters, else the
    /// passage alone.
    pub(crate) fn both_sides(&self, chars: usize) -> String {
        let Said { person, answer, .. } = &self.said;
        let both = match answer.is_empty() {
            true => format!("User: {person}"),
            false => format!("User: {person}\nAssistant: {answer}"),
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

/// Puts some of what is not in the index into it: at most 50 turns, in one transaction. Returns
/// whether any was put there, so that there may be more. What a crash breaks off is done again by
/// the next call.
///
/// # Errors
/// [`StoreError`]; then nothing was changed.
pub async fn index_past(
    past: &dyn PastConversations,
    agent: &AgentName,
) -> Result<bool, StoreError> {
    let unindexed = past.unindexed(agent, TURNS_AT_ONCE).await?;
    if unindexed.is_empty() {
        return Ok(false);
    }
    // Finding the stems of long texts takes a while.
    let parts = tokio::task::spawn_blocking(move || {
        let parts = unindexed.into_iter();
        parts
            .map(|part| (part.key, part.part, passages(&said(&part.events))))
            .collect::<Vec<_>>()
    });
    let parts = parts.await.map_err(|error| StoreError::Unavailable {
        message: error.to_string(),
    })?;
    // None: others are at it.
    Ok(past.index(&parts).await? > 0)
}

/// Returns the conversations of a user with an agent in which something was said that fits a query
/// best, best first. Words are ranked by, in any of their forms; `"several words"` have to stand in
/// the turn as they are, `#tag` is a tag and `[[Note]]` a link that it has to have. A query without
/// words finds nothing.
///
/// Turns that are not in the index yet are looked through as they are, the last 200 of them. If
/// there are more, up to 2,000 are put into the index first, if it can be written.
///
/// # Errors
/// [`StoreError`] if the store does not answer.
pub async fn search_past(
    past: &dyn PastConversations,
    (agent, user): (&AgentName, &UserId),
    query: &str,
    options: PastOptions,
) -> Result<PastSearch, StoreError> {
    let (words, terms) = terms_of(query);
    // A tag alone is looked for by its words.
    let words = if words.is_empty() { query } else { &words };
    let query = Query::of(&[(words, 1.0)]);
    let index_words = query.index_words();
    let wanted: Vec<String> = index_words.iter().map(|(word, _)| word.clone()).collect();
    let asked = PastQuery {
        words: &wanted,
        except: options.except,
        candidates_max: CANDIDATES_MAX,
        unindexed_max: UNINDEXED_MAX,
    };
    let mut found = past.search(agent, user, asked).await?;
    if !found.is_complete {
        for _ in 0..CAUGHT_UP_MAX {
            // Where nothing can be written, what was found is all there is to find.
            if !index_past(past, agent).await.unwrap_or(false) {
                break;
            }
        }
        found = past.search(agent, user, asked).await?;
    }
    let is_complete = found.is_complete;
    let newer: Vec<Said> = found
        .unindexed
        .iter()
        .flat_map(|part| said(&part.events))
        .collect();
    let ranked = rank(&query, &index_words, found);
    let mut hits = Vec::new();
    for conversation in ranked {
        if hits.len() >= options.limit {
            break;
        }
        let key = ConversationKey {
            agent: agent.clone(),
            user: user.clone(),
            conversation: conversation.conversation,
        };
        if let Some((turn, at, said)) = best(past, &key, &conversation, &terms, &newer).await? {
            hits.push(hit(conversation, (turn, at), said, &query, options.chars));
        }
    }
    Ok(PastSearch {
        found: hits,
        is_complete,
    })
}

/// Returns the turn of a conversation that fits best of those that meet all conditions.
async fn best(
    past: &dyn PastConversations,
    key: &ConversationKey,
    conversation: &Ranked,
    terms: &[Term],
    newer: &[Said],
) -> Result<Option<(TurnId, Timestamp, Said)>, StoreError> {
    for (turn, at) in &conversation.turns {
        let known = newer.iter().find(|said| said.turn == *turn).cloned();
        let read = match known {
            Some(known) => Some(known),
            None => {
                let turns = past.load_turn(key, *turn).await?;
                turns.and_then(|turns| said(&turns.events).into_iter().next())
            }
        };
        // It may have been deleted since.
        let Some(read) = read else { continue };
        let text = read.text();
        if terms.iter().all(|term| meets(&text, term)) {
            return Ok(Some((*turn, *at, read)));
        }
    }
    Ok(None)
}

fn hit(
    conversation: Ranked,
    (turn, at): (TurnId, Timestamp),
    said: Said,
    query: &Query,
    chars: usize,
) -> PastHit {
    let (person, answer) = (
        excerpt(&said.person, query, chars),
        excerpt(&said.answer, query, chars),
    );
    let (said_by, shown) = if answer.words > person.words {
        (Role::Assistant, answer)
    } else {
        (Role::User, person)
    };
    PastHit {
        conversation: conversation.conversation,
        title: conversation.title,
        turn,
        at,
        said_by,
        passage: shown.text,
        score: conversation.score,
        said,
    }
}
