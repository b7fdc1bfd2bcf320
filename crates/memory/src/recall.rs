//! Looking for something in all of the memory.

use adjutant_core::ConversationId;
use adjutant_core::turn::estimate_tokens;
use jiff::civil::Date;
use serde::Serialize;

use crate::key_fact::ToldLimits;
use crate::memory::blocking;
use crate::past::{PastOptions, search_past};
use crate::vault::Filter;
use crate::{Memory, MemoryError};

/// Tokens of what is found, at most.
const TOKENS_MAX: u32 = 2_000;
/// Facts, notes, and conversations, that are looked through for the best.
const OF_EACH: usize = 20;
/// Characters of what was said in a conversation.
const SAID_CHARS: usize = 1_200;

/// A part of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A fact.
    Facts,
    /// A passage of a note.
    Notes,
    /// A turn of a past conversation.
    Conversations,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recollection {
    /// Its kind.
    pub from: Place,
    /// The fact's id, the note's path, or the conversation's id.
    pub source: String,
    /// The heading that the passage stands under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The title of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The day that the fact was recorded, or that it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Date>,
    /// The words.
    pub text: String,
    /// The score, from 0.
    #[serde(skip)]
    pub score: f64,
}

impl Memory {
    /// Returns what of the memory fits a query best, best first, 2,000 tokens at most. `from`: only
    /// there. Past conversations are looked through if the memory has them
    /// ([`Memory::with_conversations`]), but for the one that goes on, `current`.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] for a query without words, and if the vault cannot be read;
    /// [`MemoryError::Ledger`] or [`MemoryError::Store`] if the store does not answer.
    pub async fn recall(
        &self,
        query: &str,
        from: Option<Place>,
        current: Option<ConversationId>,
    ) -> Result<Vec<Recollection>, MemoryError> {
        let mut found = Vec::new();
        if from.is_none_or(|place| place == Place::Facts) {
            let limits = ToldLimits {
                facts: OF_EACH,
                tokens: TOKENS_MAX,
            };
            let facts = self.facts().all_fitting(query, limits).await?;
            found.extend(facts.into_iter().map(|told| Recollection {
                from: Place::Facts,
                source: told.fact.id.to_string(),
                heading: None,
                title: None,
                date: told.fact.created,
                text: told.fact.content,
                score: told.score,
            }));
        }
        if from.is_none_or(|place| place == Place::Notes)
            && let Some(shared) = self.in_vault()
        {
            let (vault, query) = (shared.vault.clone(), query.to_owned());
            // The facts were looked through above.
            let facts = shared.facts.to_string();
            let attached = current
                .map(|current| shared.attached(current))
                .unwrap_or_default();
            let filter = Filter {
                limit: OF_EACH,
                attached,
                ..Filter::default()
            };
            let passages = blocking(move || vault.passages(&query, &filter)).await?;
            let passages = passages.into_iter().filter(|passage| passage.path != facts);
            found.extend(passages.map(|passage| Recollection {
                from: Place::Notes,
                source: passage.path,
                heading: passage.heading,
                title: None,
                date: None,
                text: passage.text,
                score: passage.score,
            }));
        }
        if from.is_none_or(|place| place == Place::Conversations)
            && let Some((past, agent)) = self.past()
        {
            let options = PastOptions {
                limit: OF_EACH,
                chars: SAID_CHARS,
                except: current,
            };
            let zone = (self.common().clock)().time_zone().clone();
            let past = search_past(&**past, (agent, self.owner()), query, options).await?;
            found.extend(past.found.into_iter().map(|hit| Recollection {
                from: Place::Conversations,
                source: hit.conversation.to_string(),
                heading: None,
                title: Some(hit.title.clone()).filter(|title| !title.is_empty()),
                date: Some(hit.at.to_zoned(zone.clone()).date()),
                text: hit.both_sides(SAID_CHARS),
                score: hit.score,
            }));
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
        let mut room = TOKENS_MAX;
        found.retain(
            |found| match room.checked_sub(estimate_tokens(&found.text)) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            },
        );
        Ok(found)
    }
}
