//! What is to become of the facts, wherever they are kept.

use adjutant_core::{FactLine, MemoryChange, MemoryEffect, MemoryState};

use super::change::FactChange;
use super::fact::{FactId, IMPORTANT, KeyFact, tags_of};

/// A change of one fact, found by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
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
        /// It says something else, so it is of today.
        is_of_today: bool,
    },
    Remove {
        at: usize,
    },
}

/// Returns the answer of a call that was carried out: its repeat has no second effect, whatever was
/// done to the fact since.
pub(crate) fn answered(earlier: Option<&MemoryChange>) -> Option<FactChange> {
    let earlier =
        earlier.filter(|change| matches!(change.state, MemoryState::Done | MemoryState::Undone))?;
    let MemoryEffect::Fact { before, after } = &earlier.effect else {
        return None;
    };
    replayed(before.as_ref(), after.as_ref())
}

/// Returns the answer of a call, as its change in the history says.
pub(crate) fn replayed(before: Option<&FactLine>, after: Option<&FactLine>) -> Option<FactChange> {
    let fact = |line: &FactLine| {
        let mut tags = tags_of(&line.text);
        if line.important || line.line.split_whitespace().any(|word| word == IMPORTANT) {
            tags.insert(0, IMPORTANT.to_owned());
        }
        KeyFact {
            id: FactId::of(&line.text),
            content: line.text.clone(),
            tags,
            created: None,
            created_at: line.created,
            source: None,
        }
    };
    Some(match (before, after) {
        (None, Some(after)) => FactChange::Added { fact: fact(after) },
        (Some(before), Some(after)) => FactChange::Updated {
            fact: fact(after),
            before: before.text.clone(),
        },
        (Some(before), None) => FactChange::Forgotten { fact: fact(before) },
        (None, None) => return None,
    })
}
