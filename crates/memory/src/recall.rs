//! Search in all of a memory: facts, notes and past conversations.

use adjutant_core::ConversationId;
use adjutant_core::turn::estimate_tokens;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::conversation_search::{ConversationSearchOptions, search_conversations};
use crate::key_fact::RecallLimits;
use crate::vault::NoteFilter;
use crate::vault_memory::blocking;
use crate::{Memory, MemoryError};

/// Bound of all results together, in tokens.
const TOKENS_MAX: u32 = 2_000;
/// Number of results from each source, before the best of all are taken.
const HITS_PER_SOURCE: usize = 20;
/// Characters of the turn of a past conversation.
const TURN_CHARS: usize = 1_200;

/// A part of a memory that can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallSource {
    /// Key facts, of the file or the database.
    Facts,
    /// Passages of notes, the whole passage under one heading.
    Notes,
    /// Turns of past conversations, the message and the answer.
    Conversations,
}

/// A result of [`Memory::recall`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecallHit {
    /// The part of the memory in which it was found.
    pub from: RecallSource,
    /// The fact's id, the note's path, or the conversation's id.
    pub source: String,
    /// The heading above the passage of a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The title of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The day on which the fact was recorded, or the conversation's turn began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Date>,
    /// The fact, the passage of the note, or both sides of the turn.
    pub text: String,
    /// True if the turn of a past conversation holds text of others, or was written after such text
    /// was read. Facts and notes are the user's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_others: bool,
    /// The score, comparable between the sources: a share of the most that a text can score for
    /// this query.
    #[serde(skip)]
    pub score: f64,
}

impl Memory {
    /// Returns the parts of the memory that match a query best, best first, 2,000 tokens at most.
    /// `from`: the only source to search. Past conversations are searched if the memory has them
    /// ([`Memory::with_conversations`]), except `current`, the conversation that asks.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] for a query without words, and if the vault cannot be read;
    /// [`MemoryError::Ledger`] or [`MemoryError::Store`] if the store does not answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use adjutant_core::UserId;
    /// use adjutant_memory::{Cause, RecallSource};
    /// # use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let (vault, options) = (Vault::open(folder.path())?, MemoryOptions::default());
    /// # let (ledger, clock) = (Arc::new(InMemoryLedger::new()), Arc::new(jiff::Zoned::now));
    /// # let memory = Memory::new(vault, UserId::local(), options, ledger, clock)?;
    /// memory.facts().add("Anna moved to Munich", false, &Cause::person()).await?;
    /// let hits = memory.recall("When did Anna move?", None, None).await?;
    /// assert_eq!(hits[0].from, RecallSource::Facts);
    /// assert_eq!(hits[0].text, "Anna moved to Munich");
    /// # Ok(()) }
    /// ```
    pub async fn recall(
        &self,
        query: &str,
        from: Option<RecallSource>,
        current: Option<ConversationId>,
    ) -> Result<Vec<RecallHit>, MemoryError> {
        let is_wanted = |source| from.is_none_or(|from| from == source);
        let mut hits = Vec::new();
        if is_wanted(RecallSource::Facts) {
            let limits = RecallLimits {
                facts: HITS_PER_SOURCE,
                tokens: TOKENS_MAX,
                ..RecallLimits::default()
            };
            let facts = self.facts().matching(query, limits).await?;
            hits.extend(facts.into_iter().map(|recalled| RecallHit {
                from: RecallSource::Facts,
                source: recalled.fact.id.to_string(),
                heading: None,
                title: None,
                date: recalled.fact.created,
                text: recalled.fact.content,
                from_others: false,
                score: recalled.score,
            }));
        }
        if is_wanted(RecallSource::Notes)
            && let Some(memory) = self.in_vault()
        {
            let (vault, query) = (memory.vault.clone(), query.to_owned());
            let filter = NoteFilter {
                limit: HITS_PER_SOURCE,
                attached: current.map_or(Vec::new(), |current| memory.attached(current)),
                ..NoteFilter::default()
            };
            let mut passages = blocking(move || vault.passages(&query, &filter)).await?;
            // The file of the facts is a note too, but its facts were searched above.
            passages.retain(|passage| passage.path != memory.facts_path.as_str());
            hits.extend(passages.into_iter().map(|passage| RecallHit {
                from: RecallSource::Notes,
                source: passage.path,
                heading: passage.heading,
                title: None,
                date: None,
                text: passage.text,
                from_others: false,
                score: passage.score,
            }));
        }
        if is_wanted(RecallSource::Conversations)
            && let Some(source) = self.conversations()
        {
            let options = ConversationSearchOptions {
                limit: HITS_PER_SOURCE,
                chars: TURN_CHARS,
                except: current,
            };
            let zone = (self.context().clock)().time_zone().clone();
            let (index, agent) = (&*source.index, &source.agent);
            let found = search_conversations(index, agent, self.owner(), query, options).await?;
            hits.extend(found.found.into_iter().map(|hit| RecallHit {
                from: RecallSource::Conversations,
                source: hit.conversation.to_string(),
                heading: None,
                title: Some(hit.title.clone()).filter(|title| !title.is_empty()),
                date: Some(hit.at.to_zoned(zone.clone()).date()),
                text: hit.both_sides(TURN_CHARS),
                from_others: hit.from_others,
                score: hit.score,
            }));
        }
        // Shares and not absolute scores, so the three sources can be compared.
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        // A hit that is too long is left out, and a shorter one behind it may still fit.
        let mut tokens_left = TOKENS_MAX;
        hits.retain(
            |hit| match tokens_left.checked_sub(estimate_tokens(&hit.text)) {
                Some(left) => {
                    tokens_left = left;
                    true
                }
                None => false,
            },
        );
        Ok(hits)
    }
}
