//! A change of the facts, planned over a list of them and carried out by either backend.

use adjutant_core::{FactLine, MemoryChange, MemoryEffect, MemoryState};

use super::change::FactChange;
use super::fact::{IMPORTANT, KeyFact};
use super::record::FactRecord;

/// A change of one fact. `at` is its index in the list that the change was planned over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlannedChange {
    /// The fact is stored as it is to be.
    Nothing {
        at: usize,
    },
    Add {
        content: String,
        important: bool,
    },
    Reword {
        at: usize,
        content: String,
        important: bool,
        /// True if the text says something else, so that it is dated today.
        renews_date: bool,
    },
    Remove {
        at: usize,
    },
}

/// Returns the two sides of a change of a fact. `None`: the change is of something else.
pub(crate) fn fact_sides(effect: &MemoryEffect) -> Option<(Option<&FactLine>, Option<&FactLine>)> {
    match effect {
        MemoryEffect::Fact { before, after } => Some((before.as_ref(), after.as_ref())),
        MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => None,
    }
}

/// Returns the answer of a call that was carried out: its repeat has no second effect, even if the
/// fact was changed since.
pub(crate) fn recorded_answer(prior: Option<&MemoryChange>) -> Option<FactChange> {
    let prior =
        prior.filter(|change| matches!(change.state, MemoryState::Done | MemoryState::Undone))?;
    let (before, after) = fact_sides(&prior.effect)?;
    answer_from_sides(before, after)
}

/// Returns the answer of a call, made from its change in the ledger.
pub(crate) fn answer_from_sides(
    before: Option<&FactLine>,
    after: Option<&FactLine>,
) -> Option<FactChange> {
    let fact = |line: &FactLine| {
        let is_tagged = line.line.split_whitespace().any(|word| word == IMPORTANT);
        KeyFact {
            created_at: line.created,
            ..FactRecord::undated(line.text.clone(), line.important || is_tagged).to_fact()
        }
    };
    FactChange::between(before.map(fact), after.map(fact))
}
