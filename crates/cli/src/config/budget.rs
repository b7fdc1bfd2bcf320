//! `[budget]`: what may be spent, in money, tokens, calls and time.

use std::borrow::Cow;
use std::time::Duration;

use adjutant_core::{Allowance, Budgets, Cost};

use super::Values;
use super::key::{Key, Kind, key};

/// For whom and how long, as keys begin.
const SCOPES: [&str; 3] = ["per_turn", "per_day", "everyone_per_day"];

/// What is counted, as keys end.
const QUANTITIES: [(&str, Kind); 5] = [
    ("usd", Kind::Number { min: 0.0, max: 1e9 }),
    (
        "tokens",
        Kind::Integer {
            min: 0,
            max: u32::MAX as u64,
        },
    ),
    (
        "model_calls",
        Kind::Integer {
            min: 0,
            max: u32::MAX as u64,
        },
    ),
    (
        "tool_calls",
        Kind::Integer {
            min: 0,
            max: u32::MAX as u64,
        },
    ),
    (
        "time",
        Kind::Duration {
            min: Duration::from_secs(1),
            max: Duration::from_secs(365 * 86_400),
        },
    ),
];

/// The settings of the section. Shown where they are set: without them nothing is bounded.
pub(super) fn keys() -> Vec<Key> {
    let of_scope = |scope: &str| {
        QUANTITIES.map(|(quantity, kind)| Key {
            name: Cow::Owned(format!("budget.{scope}_{quantity}")),
            quiet: true,
            ..key("", kind)
        })
    };
    SCOPES.into_iter().flat_map(of_scope).collect()
}

/// What the section says.
pub(super) fn budgets(values: &Values) -> Budgets {
    let allowance = |scope: &str| {
        let name = |quantity: &str| format!("budget.{scope}_{quantity}");
        Allowance {
            tokens: values.integer(&name("tokens")).map(u64::from),
            model_calls: values.integer(&name("model_calls")).map(u64::from),
            tool_calls: values.integer(&name("tool_calls")).map(u64::from),
            time: values.time(&name("time")),
            cost: values.number(&name("usd")).and_then(Cost::from_usd),
        }
    };
    let [per_turn, per_day, everyone_per_day] = SCOPES.map(allowance);
    Budgets {
        per_turn,
        per_day,
        everyone_per_day,
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{Scope, Spending};

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
        let names: Vec<String> = keys().iter().map(|key| key.name.to_string()).collect();
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
                assert!(names.contains(&exceeded.key()), "{}", exceeded.key());
            }
        }
    }
}
