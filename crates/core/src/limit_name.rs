//! Names of the bounds that can end a turn.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::{Quantity, Scope};

/// A bound that can end a turn, by name. The setting that changes it is the caller's to know: a
/// program that has no settings file shows the name alone.
///
/// It is stored as the text that it is shown as, for instance `turn deadline`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum LimitName {
    /// Time of a whole turn: [`TurnLimits::turn_deadline`](crate::TurnLimits::turn_deadline).
    TurnDeadline,
    /// Tokens of one answer: [`GenerationConfig::max_tokens`](crate::GenerationConfig::max_tokens).
    OutputTokens,
    /// Rounds of tools in a turn:
    /// [`TurnLimits::tool_iterations_max`](crate::TurnLimits::tool_iterations_max).
    ToolIterations,
    /// Executions of the same call in a turn:
    /// [`TurnLimits::identical_calls_max`](crate::TurnLimits::identical_calls_max).
    IdenticalCalls,
    /// One of the [`Budgets`](crate::Budgets).
    Budget {
        /// The turns that share the budget.
        scope: Scope,
        /// The unit that the budget counts.
        quantity: Quantity,
    },
    /// A bound by a name that this version does not use, as another version stored it.
    Other(String),
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scope, quantity) = match self {
            Self::TurnDeadline => return f.write_str("turn deadline"),
            Self::OutputTokens => return f.write_str("output tokens"),
            Self::ToolIterations => return f.write_str("tool iterations"),
            Self::IdenticalCalls => return f.write_str("identical calls"),
            Self::Other(name) => return f.write_str(name),
            Self::Budget { scope, quantity } => (scope, quantity),
        };
        let quantity = match quantity {
            Quantity::Money => "money",
            Quantity::Tokens => "tokens",
            Quantity::ModelCalls => "model calls",
            Quantity::ToolCalls => "tool calls",
            Quantity::Time => "time",
        };
        match scope {
            Scope::Turn => write!(f, "budget of {quantity} per turn"),
            Scope::Day => write!(f, "budget of {quantity} per user and day (UTC)"),
            Scope::Everyone => write!(f, "budget of {quantity} of everybody per day (UTC)"),
        }
    }
}

impl From<LimitName> for String {
    fn from(name: LimitName) -> Self {
        name.to_string()
    }
}

impl From<String> for LimitName {
    fn from(name: String) -> Self {
        // Names are stored as they are shown, so a name is found by formatting every known one.
        let budgets = [Scope::Turn, Scope::Day, Scope::Everyone]
            .into_iter()
            .flat_map(|scope| {
                let budget = move |&quantity: &Quantity| Self::Budget { scope, quantity };
                Quantity::ALL.iter().map(budget)
            });
        [
            Self::TurnDeadline,
            Self::OutputTokens,
            Self::ToolIterations,
            Self::IdenticalCalls,
        ]
        .into_iter()
        .chain(budgets)
        .find(|known| known.to_string() == name)
        .unwrap_or(Self::Other(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_stored() {
        for scope in [Scope::Turn, Scope::Day, Scope::Everyone] {
            for &quantity in Quantity::ALL {
                let budget = LimitName::Budget { scope, quantity };
                assert_eq!(LimitName::from(budget.to_string()), budget);
            }
        }
        assert_eq!(
            LimitName::from("identical calls".to_owned()),
            LimitName::IdenticalCalls
        );
        let newer = LimitName::from("rows of a table".to_owned());
        assert_eq!(String::from(newer), "rows of a table");
    }
}
