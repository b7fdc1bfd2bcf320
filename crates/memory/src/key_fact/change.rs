//! The result of a change of a fact.

use serde::Serialize;

use super::fact::KeyFact;

/// The result of remembering, editing or forgetting a fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum FactChange {
    /// A fact was added beside those that were stored.
    Added {
        /// The fact as it is stored.
        fact: KeyFact,
    },
    /// A stored fact was replaced by one that corrects it, or edited.
    Updated {
        /// The fact as it is stored now.
        fact: KeyFact,
        /// The text that was replaced.
        before: String,
    },
    /// The fact was stored already; nothing was changed.
    Known {
        /// The fact as it is stored.
        fact: KeyFact,
    },
    /// A fact was removed.
    Forgotten {
        /// The fact as it was before.
        fact: KeyFact,
    },
}

impl FactChange {
    /// Returns the change that made `after` of `before`. `None` if there is neither.
    pub(crate) fn between(before: Option<KeyFact>, after: Option<KeyFact>) -> Option<Self> {
        Some(match (before, after) {
            (None, Some(fact)) => Self::Added { fact },
            (Some(before), Some(fact)) => Self::Updated {
                fact,
                before: before.content,
            },
            (Some(fact), None) => Self::Forgotten { fact },
            (None, None) => return None,
        })
    }

    /// Returns the change as a message for the user, with the command that undoes it.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Added { fact } => format!("✎ remembered: {}  (undo: /undo)", fact.content),
            Self::Updated { fact, before } if *before == fact.content => {
                // Only the importance was changed, so there is no other text to show.
                let important = if fact.is_important() {
                    ", as important"
                } else {
                    ""
                };
                format!("✎ remembered: {}{important}  (undo: /undo)", fact.content)
            }
            Self::Updated { fact, before } => {
                format!(
                    "✎ remembered: {}  (was: {before}; undo: /undo)",
                    fact.content
                )
            }
            Self::Known { fact } => format!("Already known: {}", fact.content),
            Self::Forgotten { fact } => format!("✎ forgotten: {}  (undo: /undo)", fact.content),
        }
    }

    /// Returns the fact that was changed, whatever was done to it.
    #[must_use]
    pub fn fact(&self) -> &KeyFact {
        match self {
            Self::Added { fact }
            | Self::Updated { fact, .. }
            | Self::Known { fact }
            | Self::Forgotten { fact } => fact,
        }
    }
}
