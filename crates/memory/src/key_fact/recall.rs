//! The choice of facts for a message or a query, by BM25 and by their neighbours in time.

use std::sync::Arc;

use adjutant_core::turn::estimate_tokens;
use serde::Serialize;

use super::corpus::FactCorpus;
use super::fact::{FactId, KeyFact};
use super::prompt;
use super::record::FactRecord;
use super::store::KeyFactStore;
use crate::MemoryError;
use crate::rank::{Query, Scores};

/// Weight of the terms of earlier messages, relative to those of the message itself.
const EARLIER_MESSAGE: f64 = 0.25;
/// Share of its neighbours' scores that is added to a fact's own: facts that were stored one after
/// the other on one day are often about one topic.
const NEIGHBOURS: f64 = 0.3;
/// Number of newest facts that are recalled even if they hold no term of the message.
const NEWEST: usize = 3;

/// Bounds of the facts that are recalled for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallLimits {
    /// Number of facts. Default: 10.
    pub facts: usize,
    /// Tokens of their lines together. Default: 350.
    pub tokens: u32,
}

impl Default for RecallLimits {
    fn default() -> Self {
        Self {
            facts: 10,
            tokens: 350,
        }
    }
}

/// A fact that is recalled for a message or a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecalledFact {
    /// The fact as it is stored.
    pub fact: KeyFact,
    /// The score, as a share of the most that a text can score for this query. 0: neither the fact
    /// nor a neighbour holds a term of the query, and it is recalled because it is one of the
    /// newest.
    pub score: f64,
    /// The line that the model reads.
    pub line: String,
}

/// A fact with its score, before the limits are applied.
struct ScoredFact<'a> {
    at: usize,
    record: &'a FactRecord,
    score: f64,
}

impl KeyFactStore {
    /// Returns the facts that fit a message and the messages before it best, best first, as many as
    /// `limits` allow; the newer of two with the same score first. Important facts that stand in
    /// the instruction are left out. Tokens are counted by `count`.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn relevant_to(
        &self,
        message: &str,
        before: &[&str],
        limits: RecallLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<Vec<RecalledFact>, MemoryError> {
        let facts = self.read().await?;
        self.relevant_in(&facts, message, before, limits, count)
            .await
    }

    /// Does the same as [`relevant_to`](Self::relevant_to) over facts that were read before.
    ///
    /// # Errors
    /// [`MemoryError`] if the scores cannot be computed.
    pub(crate) async fn relevant_in(
        &self,
        facts: &Arc<FactCorpus>,
        message: &str,
        before: &[&str],
        limits: RecallLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<Vec<RecalledFact>, MemoryError> {
        let texts: Vec<(&str, f64)> = std::iter::once((message, 1.0))
            .chain(before.iter().map(|text| (*text, EARLIER_MESSAGE)))
            .collect();
        let scores = self.scores(facts, Query::new(&texts)).await?;
        let included = self.important_in(facts, count).included;
        // The model has these in its instruction, so they are not attached to the message too.
        let is_in_instruction = |fact: &FactRecord| {
            fact.important && included.contains(&FactId::from_text(&fact.content))
        };
        let scored = scored(facts, &scores, is_in_instruction);
        Ok(within_limits(scored.into_iter(), limits, count))
    }

    /// Scores the facts for a query where that holds up no other request: all texts are read.
    async fn scores(&self, facts: &Arc<FactCorpus>, query: Query) -> Result<Scores, MemoryError> {
        let facts = facts.clone();
        self.0
            .compute(move || query.score(&facts.count_terms(&query)))
            .await
    }

    /// Returns the fact that fits a text best, if it holds most of its terms.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub(crate) async fn nearest(&self, text: &str) -> Result<Option<KeyFact>, MemoryError> {
        let limits = RecallLimits {
            facts: 1,
            ..RecallLimits::default()
        };
        let best = self.matching(text, limits).await?.into_iter().next();
        let query = Query::new(&[(text, 1.0)]);
        Ok(best
            .map(|recalled| recalled.fact)
            .filter(|fact| query.has_most_in(&fact.content)))
    }

    /// Returns the facts that hold terms of a query, best first, important ones among them.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub(crate) async fn matching(
        &self,
        query: &str,
        limits: RecallLimits,
    ) -> Result<Vec<RecalledFact>, MemoryError> {
        let facts = self.read().await?;
        let scores = self.scores(&facts, Query::new(&[(query, 1.0)])).await?;
        let scored = scored(&facts, &scores, |_| false).into_iter();
        Ok(within_limits(
            scored.filter(|fact| fact.score > 0.0),
            limits,
            &estimate_tokens,
        ))
    }
}

/// Takes facts as long as the limits allow. One that is too long is skipped; a shorter one behind
/// it may fit.
fn within_limits<'a>(
    scored: impl Iterator<Item = ScoredFact<'a>>,
    limits: RecallLimits,
    count: &dyn Fn(&str) -> u32,
) -> Vec<RecalledFact> {
    let mut recalled = Vec::new();
    let mut tokens_left = limits.tokens;
    for ScoredFact { record, score, .. } in scored {
        if recalled.len() == limits.facts {
            break;
        }
        let fact = record.to_fact();
        let line = prompt::line(&fact);
        // A fact that is too long is left out, and a shorter one behind it may still fit.
        if let Some(left) = tokens_left.checked_sub(count(&line)) {
            tokens_left = left;
            recalled.push(RecalledFact { fact, score, line });
        }
    }
    recalled
}

/// Returns the facts with their scores, best first, without those for which `is_excluded` is true.
fn scored<'a>(
    facts: &'a FactCorpus,
    scores: &Scores,
    is_excluded: impl Fn(&FactRecord) -> bool,
) -> Vec<ScoredFact<'a>> {
    let chronology = facts.chronology();
    let neighbour = |at: usize, other: Option<usize>| {
        let other = other.filter(|other| chronology.days.get(*other) == chronology.days.get(at));
        other
            .and_then(|other| scores.values.get(other))
            .copied()
            .unwrap_or(0.0)
    };
    let newest = facts.newest_first().filter(|(_, fact)| !is_excluded(fact));
    // Taken after the exclusion, so that facts of the instruction do not use up the places.
    let newest: Vec<usize> = newest.take(NEWEST).map(|(at, _)| at).collect();
    let mut scored: Vec<ScoredFact<'a>> = Vec::new();
    for (at, (record, own)) in facts.iter().zip(&scores.values).enumerate() {
        let beside = neighbour(at, at.checked_sub(1)) + neighbour(at, Some(at + 1));
        let score = own + NEIGHBOURS * beside;
        if (score > 0.0 || newest.contains(&at)) && !is_excluded(record) {
            let score = scores.share(score);
            scored.push(ScoredFact { at, record, score });
        }
    }
    scored.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| {
            chronology
                .age_key(other.at)
                .cmp(&chronology.age_key(one.at))
        })
    });
    scored
}
