//! The facts that are told with one message: those that fit it best.

use adjutant_core::turn::estimate_tokens;
use serde::Serialize;

use super::fact::{FactId, KeyFact};
use super::kept::Facts;
use super::known::Known;
use super::prompt;
use super::store::KeyFactStore;
use crate::MemoryError;
use crate::rank::{Query, Scores};

/// The weight of the words that were said before the message, beside its own.
const BEFORE: f64 = 0.25;
/// The part of its neighbours' scores that a fact has: what was told one after the other on one day
/// is often of one matter.
const NEIGHBOURS: f64 = 0.3;
/// Facts that are told although no word of them fits, because they are the newest.
const NEWEST: usize = 3;

/// Bounds of what is told with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldLimits {
    /// Number of facts at most. Default: 10.
    pub facts: usize,
    /// Tokens of their lines at most. Default: 350.
    pub tokens: u32,
}

impl Default for ToldLimits {
    fn default() -> Self {
        Self {
            facts: 10,
            tokens: 350,
        }
    }
}

/// A fact that is told with a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToldFact {
    /// The fact.
    pub fact: KeyFact,
    /// The score, as a part of what a fact would have that says just what was asked. 0: no word of
    /// it fits, and it is told because it is one of the newest.
    pub score: f64,
    /// The line that the model reads.
    pub line: String,
}

impl KeyFactStore {
    /// Returns the facts that fit a message and what was said before it best, best first, as many
    /// as `limits` allow; of those that fit equally well the newer first. Important facts that
    /// stand in the instruction are not among them. Tokens are counted by `count`.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn fitting(
        &self,
        message: &str,
        before: &[&str],
        limits: ToldLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<Vec<ToldFact>, MemoryError> {
        let facts = self.read().await?;
        Ok(self.fitting_of(&facts, message, before, limits, count))
    }

    /// The same of facts that were read.
    pub(crate) fn fitting_of(
        &self,
        facts: &Facts,
        message: &str,
        before: &[&str],
        limits: ToldLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Vec<ToldFact> {
        let texts: Vec<(&str, f64)> = std::iter::once((message, 1.0))
            .chain(before.iter().map(|text| (*text, BEFORE)))
            .collect();
        let always = self.important_of(facts, count).told;
        let is_told = |fact: &Known| fact.important && always.contains(&FactId::of(&fact.content));
        within(
            ranked(facts, &Query::of(&texts), is_told).into_iter(),
            limits,
            count,
        )
    }

    /// Returns the fact that fits words best, if it holds most of them.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub(crate) async fn nearest(&self, words: &str) -> Result<Option<KeyFact>, MemoryError> {
        let limits = ToldLimits {
            facts: 1,
            ..ToldLimits::default()
        };
        let found = self.all_fitting(words, limits).await?.into_iter().next();
        let asked = Query::of(&[(words, 1.0)]);
        Ok(found
            .map(|told| told.fact)
            .filter(|fact| asked.has_most_in(&fact.content)))
    }

    /// Returns the facts that hold words of a query best, best first, important ones among them.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub(crate) async fn all_fitting(
        &self,
        query: &str,
        limits: ToldLimits,
    ) -> Result<Vec<ToldFact>, MemoryError> {
        let facts = self.read().await?;
        let ranked = ranked(&facts, &Query::of(&[(query, 1.0)]), |_| false).into_iter();
        Ok(within(
            ranked.filter(|(_, score)| *score > 0.0),
            limits,
            &estimate_tokens,
        ))
    }
}

/// Takes as many as the limits allow.
fn within<'a>(
    ranked: impl Iterator<Item = (&'a Known, f64)>,
    limits: ToldLimits,
    count: &dyn Fn(&str) -> u32,
) -> Vec<ToldFact> {
    let mut told = Vec::new();
    let mut room = limits.tokens;
    for (known, score) in ranked {
        if told.len() == limits.facts {
            break;
        }
        let fact = known.fact();
        let line = prompt::line(&fact);
        if let Some(left) = room.checked_sub(count(&line)) {
            room = left;
            told.push(ToldFact { fact, score, line });
        }
    }
    told
}

/// Returns the facts that may be told, best first, with their scores, without those that are told
/// anyway.
fn ranked<'a>(
    facts: &'a Facts,
    query: &Query,
    is_told: impl Fn(&Known) -> bool,
) -> Vec<(&'a Known, f64)> {
    let counted = facts.counted(query);
    let Scores { each: own, most } = query.scores(&counted);
    let ages = facts.ages();
    let neighbour = |at: usize, other: Option<usize>| {
        let other = other.filter(|other| ages.days.get(*other) == ages.days.get(at));
        other
            .and_then(|other| own.get(other))
            .copied()
            .unwrap_or(0.0)
    };
    let newest = facts.newest_first().filter(|(_, fact)| !is_told(fact));
    let newest: Vec<usize> = newest.take(NEWEST).map(|(at, _)| at).collect();
    let mut ranked: Vec<(usize, &Known, f64)> = Vec::new();
    for (at, (fact, score)) in facts.iter().zip(&own).enumerate() {
        let beside = neighbour(at, at.checked_sub(1)) + neighbour(at, Some(at + 1));
        let score = score + NEIGHBOURS * beside;
        if (score > 0.0 || newest.contains(&at)) && !is_told(fact) {
            ranked.push((at, fact, if most > 0.0 { score / most } else { 0.0 }));
        }
    }
    ranked.sort_by(|one, other| {
        other
            .2
            .total_cmp(&one.2)
            .then_with(|| ages.age(other.0).cmp(&ages.age(one.0)))
    });
    ranked
        .into_iter()
        .map(|(_, fact, score)| (fact, score))
        .collect()
}
