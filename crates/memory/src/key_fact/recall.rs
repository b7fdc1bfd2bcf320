//! The choice of facts for a message or a query, by BM25 and by their neighbours in time.

use std::sync::Arc;

use adjutant_core::turn::estimate_tokens;
use serde::Serialize;

use super::corpus::FactCorpus;
use super::fact::{FactId, KeyFact};
use super::prompt;
use super::property::topic;
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
/// Tokens of the shortest line: its date and its id.
const LINE_TOKENS_MIN: u32 = 4;

/// Bounds of the facts that are recalled for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallLimits {
    /// Tokens up to which all facts of a memory are recalled together, whatever the message is. Those
    /// in the instruction count too. 0: facts are always chosen. Default: 600.
    pub all_tokens: u32,
    /// Number of facts, where they have to be chosen. Default: as many as `tokens` allow.
    pub facts: usize,
    /// Tokens of the lines of the facts, where they have to be chosen, and of those in the
    /// instruction. Default: 520, which leaves room for the introduction of the block in 600.
    pub tokens: u32,
}

impl Default for RecallLimits {
    fn default() -> Self {
        Self {
            all_tokens: 600,
            facts: usize::MAX,
            tokens: 520,
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
    record: &'a FactRecord,
    /// The number of newer facts.
    age: usize,
    score: f64,
}

impl KeyFactStore {
    /// Returns the facts for a message. As long as all of them together are within `limits`, these
    /// are all facts, the newest first: their order does not depend on the message. Else these are
    /// the facts that fit the message and the messages before it best, best first, as many as
    /// `limits` allow; the newer of two that are alike first. Important facts that stand in the
    /// instruction are left out. Tokens are counted by `count`.
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
        let instruction = self.important_in(facts, count);
        // The model has these in its instruction, so they are not attached to the message too.
        let is_in_instruction = |fact: &FactRecord| {
            fact.important
                && instruction
                    .included
                    .contains(&FactId::from_text(&fact.content))
        };
        let newest_first = scored(facts, &scores, is_in_instruction);
        let told = match instruction.text.as_str() {
            "" => 0,
            text => count(text),
        };
        let left = limits.all_tokens.saturating_sub(told);
        if let Some(all) = all_within(&newest_first, left, count) {
            return Ok(all);
        }
        let limits = RecallLimits {
            tokens: limits.tokens.saturating_sub(told),
            ..limits
        };
        let chosen = within_limits(ranked(newest_first).into_iter(), limits, count);
        Ok(newer_first_where_alike(chosen))
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
        let ranked = ranked(scored(&facts, &scores, |_| false)).into_iter();
        let matching = ranked.filter(|fact| fact.score > 0.0);
        let chosen = within_limits(matching, limits, &estimate_tokens);
        Ok(chosen.into_iter().map(|(_, fact)| fact).collect())
    }
}

/// Returns all facts in their order if they are within the tokens together.
fn all_within(
    scored: &[ScoredFact<'_>],
    tokens: u32,
    count: &dyn Fn(&str) -> u32,
) -> Option<Vec<RecalledFact>> {
    let mut tokens_left = tokens;
    let mut recalled = Vec::new();
    for ScoredFact { record, score, .. } in scored {
        let fact = record.to_fact();
        let line = prompt::line(&fact);
        tokens_left = tokens_left.checked_sub(count(&line))?;
        let score = *score;
        recalled.push(RecalledFact { fact, score, line });
    }
    Some(recalled)
}

/// Takes facts as long as the limits allow, each with its age. One that is too long is skipped; a shorter one behind
/// it may fit.
fn within_limits<'a>(
    scored: impl Iterator<Item = ScoredFact<'a>>,
    limits: RecallLimits,
    count: &dyn Fn(&str) -> u32,
) -> Vec<(usize, RecalledFact)> {
    let mut recalled = Vec::new();
    let mut tokens_left = limits.tokens;
    for ScoredFact { record, age, score } in scored {
        // The shortest line has more tokens than are left then; the rest need not be written.
        if recalled.len() == limits.facts || tokens_left < LINE_TOKENS_MIN {
            break;
        }
        let fact = record.to_fact();
        let line = prompt::line(&fact);
        // A fact that is too long is left out, and a shorter one behind it may still fit.
        if let Some(left) = tokens_left.checked_sub(count(&line)) {
            tokens_left = left;
            recalled.push((age, RecalledFact { fact, score, line }));
        }
    }
    recalled
}

/// Returns the facts with their scores, newest first, without those for which `is_excluded` is
/// true.
fn scored<'a>(
    facts: &'a FactCorpus,
    scores: &Scores,
    is_excluded: impl Fn(&FactRecord) -> bool,
) -> Vec<ScoredFact<'a>> {
    let chronology = facts.chronology();
    let own = |at: usize| scores.values.get(at).copied().unwrap_or(0.0);
    let neighbour = |at: usize, other: Option<usize>| {
        let other = other.filter(|other| chronology.days.get(*other) == chronology.days.get(at));
        other.map_or(0.0, own)
    };
    let score = |at: usize| {
        let beside = neighbour(at, at.checked_sub(1)) + neighbour(at, Some(at + 1));
        scores.share(own(at) + NEIGHBOURS * beside)
    };
    let newest_first = facts.newest_first().filter(|(_, fact)| !is_excluded(fact));
    let scored = newest_first.enumerate();
    scored
        .map(|(age, (at, record))| ScoredFact {
            record,
            age,
            score: score(at),
        })
        .collect()
}

/// Ranks facts that come newest first: best first, the newer of two with the same score first.
/// Those that neither hold a term nor are among the newest are left out.
fn ranked(newest_first: Vec<ScoredFact<'_>>) -> Vec<ScoredFact<'_>> {
    let mut ranked = newest_first;
    ranked.retain(|fact| fact.age < NEWEST || fact.score > 0.0);
    // The sort is stable.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}

/// Moves a fact in front of the older ones about the same property of the same subject. A shorter
/// text scores higher, and the model takes what it reads first for what holds.
fn newer_first_where_alike(ranked: Vec<(usize, RecalledFact)>) -> Vec<RecalledFact> {
    let mut ordered = Vec::with_capacity(ranked.len());
    for (age, recalled) in ranked {
        let topic = topic(&recalled.fact.content);
        let older = |(other, other_age, _): &(_, usize, RecalledFact)| {
            *other_age > age && topic.is_some() && *other == topic
        };
        let place = ordered.iter().position(older).unwrap_or(ordered.len());
        ordered.insert(place, (topic, age, recalled));
    }
    ordered.into_iter().map(|(_, _, fact)| fact).collect()
}
