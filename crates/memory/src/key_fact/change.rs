//! What became of a fact.

use serde::Serialize;

use super::fact::KeyFact;

/// The result of a change of a fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum FactChange {
    /// It is new.
    Added {
        /// The fact.
        fact: KeyFact,
    },
    /// It corrected or replaced a known one, which keeps its creation date.
    Updated {
        /// The fact.
        fact: KeyFact,
        /// The words it replaced.
        before: String,
    },
    /// It was known; nothing was changed.
    Known {
        /// The fact.
        fact: KeyFact,
    },
    /// It is gone.
    Forgotten {
        /// The fact as it was.
        fact: KeyFact,
    },
}

impl FactChange {
    /// The result in words for the person, with the way back.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Added { fact } => format!("✎ remembered: {}  (undo: /undo)", fact.content),
            Self::Updated { fact, before } if *before == fact.content => {
                format!(
                    "✎ remembered: {}{}  (undo: /undo)",
                    fact.content,
                    if fact.is_important() {
                        ", as important"
                    } else {
                        ""
                    }
                )
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

    /// The fact.
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
