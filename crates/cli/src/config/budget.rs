//! `[budget]`: money, tokens, calls and time that may be spent.

use std::time::Duration;

use adjutant_core::{Allowance, Budgets, Cost};

use super::key::Key;
use super::layer::Values;
use super::section::{Section, settings};
use super::value::{DAY, SECOND};
use crate::error::CliError;

/// Beginnings of the settings' names, and the scopes they stand for.
const SCOPES: [(&str, &str); 3] = [
    ("per_turn", "one turn"),
    ("per_day", "one user in a day"),
    ("everyone_per_day", "all users in a day"),
];

// `{whose}` stands for the scope: the three have the same settings.
settings! {
    impl Allowance {
        /// Cost in US dollars of {whose}, at most.
        #[setting("usd", quiet)]
        cost: Option<Cost>,
        /// Tokens read and written of {whose}, at most.
        #[setting("tokens", quiet)]
        tokens: Option<u64>,
        /// Model calls of {whose}, at most.
        #[setting("model_calls", quiet)]
        model_calls: Option<u64>,
        /// Tool calls of {whose}, at most.
        #[setting("tool_calls", quiet)]
        tool_calls: Option<u64>,
        /// Time in models and tools of {whose}, at most.
        #[setting("time", range = SECOND..=365 * DAY, quiet)]
        time: Option<Duration>,
    }
}

impl Section for Budgets {
    fn append_keys(_prefix: &str, keys: &mut Vec<Key>) {
        for (scope, whose) in SCOPES {
            let before = keys.len();
            Allowance::append_keys(&format!("budget.{scope}_"), keys);
            for key in &mut keys[before..] {
                key.description = key.description.replace("{whose}", whose);
            }
        }
    }

    fn from_values(_prefix: &str, values: &Values) -> Result<Self, CliError> {
        let [per_turn, per_day, everyone_per_day] =
            SCOPES.map(|(scope, _)| Allowance::from_values(&format!("budget.{scope}_"), values));
        Ok(Self {
            per_turn: per_turn?,
            per_day: per_day?,
            everyone_per_day: everyone_per_day?,
        })
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{LimitName, Scope, Spending};

    use super::super::KEYS;
    use super::*;

    #[test]
    fn the_key_an_error_names_is_a_setting() {
        let nothing = Allowance {
            tokens: Some(0),
            model_calls: Some(0),
            tool_calls: Some(0),
            time: Some(Duration::ZERO),
            cost: Some(Cost::default()),
        };
        let names: Vec<&str> = KEYS.iter().map(|key| key.name.as_str()).collect();
        let one = Cost::from_usd(1.0).unwrap();
        for scope in [Scope::Turn, Scope::Day, Scope::Everyone] {
            for needed in [
                Spending {
                    tokens: 1,
                    ..Spending::default()
                },
                Spending {
                    model_calls: 1,
                    ..Spending::default()
                },
                Spending {
                    tool_calls: 1,
                    ..Spending::default()
                },
                Spending {
                    ms: 1,
                    ..Spending::default()
                },
                Spending {
                    cost: one,
                    ..Spending::default()
                },
            ] {
                let exceeded = nothing
                    .exceeded(scope, Spending::default(), needed)
                    .unwrap();
                let limit = LimitName::Budget {
                    scope,
                    quantity: exceeded.quantity,
                };
                let setting = adjutant_service::limit_setting(&limit).unwrap();
                assert!(names.contains(&setting.as_str()), "{setting}");
            }
        }
    }
}
