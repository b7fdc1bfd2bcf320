//! `[budget]`: money, tokens, calls and time that may be spent.

use std::time::Duration;

use adjutant_core::{Allowance, Budgets, Cost};

use super::key::{Key, Section};
use super::{DAY, SECOND, Values};
use crate::error::CliError;

/// Beginnings of the settings' names, and the scopes they stand for.
const SCOPES: [(&str, &str); 3] = [
    ("per_turn", "one turn"),
    ("per_day", "one user in a day"),
    ("everyone_per_day", "all users in a day"),
];

impl Section for Budgets {
    fn append_keys(keys: &mut Vec<Key>) {
        for (scope, whose) in SCOPES {
            let name = |quantity: &str| format!("budget.{scope}_{quantity}");
            let doc = |quantity: &str| format!("{quantity} of {whose}, at most.");
            let of_scope = [
                Key::new::<Cost>(name("usd"), &[&doc("Cost in US dollars")]),
                Key::new::<u64>(name("tokens"), &[&doc("Tokens read and written")]),
                Key::new::<u64>(name("model_calls"), &[&doc("Model calls")]),
                Key::new::<u64>(name("tool_calls"), &[&doc("Tool calls")]),
                Key {
                    kind: (SECOND..=365 * DAY).into(),
                    ..Key::new::<Duration>(name("time"), &[&doc("Time in models and tools")])
                },
            ];
            // Shown where they are set: without them nothing is limited.
            keys.extend(of_scope.map(|key| Key { quiet: true, ..key }));
        }
    }

    fn from_values(values: &Values) -> Result<Self, CliError> {
        let allowance = |scope: &str| -> Result<Allowance, CliError> {
            let name = |quantity: &str| format!("budget.{scope}_{quantity}");
            Ok(Allowance {
                tokens: values.get(&name("tokens"))?,
                model_calls: values.get(&name("model_calls"))?,
                tool_calls: values.get(&name("tool_calls"))?,
                time: values.get(&name("time"))?,
                cost: values.get(&name("usd"))?,
            })
        };
        let [per_turn, per_day, everyone_per_day] = SCOPES.map(|(scope, _)| allowance(scope));
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
        let names: Vec<&str> = KEYS.iter().map(|key| key.name.as_ref()).collect();
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
