//! Budgets: what may be spent, what a step may spend at most, what was spent.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::decision::TurnError;

/// What agents may spend. Default: nothing is bounded.
///
/// A step is begun only if the most it may take fits; what it did not take is free again when it
/// ends. Days are those of UTC: they end for everybody at the same moment, whatever the clock on
/// the wall says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// What one turn may spend. Keys `budget.per_turn_*`.
    pub per_turn: Allowance,
    /// What each user may spend in a day. Keys `budget.per_day_*`.
    pub per_day: Allowance,
    /// What all users together may spend in a day. Keys `budget.everyone_per_day_*`.
    pub everyone_per_day: Allowance,
}

impl Budgets {
    /// Whether any of them bounds money, which can only be kept where the price of a model is
    /// known.
    #[must_use]
    pub fn bound_money(&self) -> bool {
        [self.per_turn, self.per_day, self.everyone_per_day]
            .iter()
            .any(|allowance| allowance.cost.is_some())
    }
}

/// How much of each. `None`: not bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens read and written. Key `..._tokens`.
    pub tokens: Option<u64>,
    /// Calls of models. Key `..._model_calls`.
    pub model_calls: Option<u64>,
    /// Calls of tools that a model asked for, whether or not they ran. Key `..._tool_calls`.
    pub tool_calls: Option<u64>,
    /// Time in models and tools. Key `..._time`.
    pub time: Option<Duration>,
    /// Money. Key `..._usd`.
    pub cost: Option<Cost>,
}

impl Allowance {
    /// Whether it bounds nothing.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The first bound that `needed` would break where `taken` is spent or set aside. What a step
    /// does not need breaks nothing.
    #[must_use]
    pub fn exceeded(&self, scope: Scope, taken: Spending, needed: Spending) -> Option<Exceeded> {
        Quantity::ALL.iter().find_map(|&quantity| {
            let (limit, taken, needed) = (
                self.limit(quantity)?,
                taken.of(quantity),
                needed.of(quantity),
            );
            let fits = needed == 0 || taken.checked_add(needed).is_some_and(|sum| sum <= limit);
            (!fits).then_some(Exceeded {
                scope,
                quantity,
                limit,
                taken,
                needed,
            })
        })
    }

    /// Returns whether `left` is enough for `needed` of everything that is bounded.
    #[must_use]
    pub fn is_covered(&self, left: Spending, needed: Spending) -> bool {
        let is_enough = |&quantity: &Quantity| needed.of(quantity) <= left.of(quantity);
        Quantity::ALL
            .iter()
            .all(|quantity| self.limit(*quantity).is_none() || is_enough(quantity))
    }

    /// Returns what is left of everything that is bounded where `spent` was spent.
    #[must_use]
    pub fn left_of(&self, spent: Spending) -> Self {
        let left = |limit: Option<u64>, spent: u64| limit.map(|limit| limit.saturating_sub(spent));
        let ms = Duration::from_millis(spent.ms);
        Self {
            tokens: left(self.tokens, spent.tokens),
            model_calls: left(self.model_calls, spent.model_calls),
            tool_calls: left(self.tool_calls, spent.tool_calls),
            time: self.time.map(|time| time.saturating_sub(ms)),
            cost: left(self.cost.map(Cost::nano_usd), spent.cost.nano_usd())
                .map(Cost::from_nano_usd),
        }
    }

    pub(crate) fn limit(&self, quantity: Quantity) -> Option<u64> {
        match quantity {
            Quantity::Money => self.cost.map(Cost::nano_usd),
            Quantity::Tokens => self.tokens,
            Quantity::ModelCalls => self.model_calls,
            Quantity::ToolCalls => self.tool_calls,
            Quantity::Time => self
                .time
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// What was spent, or may be at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Tokens read and written.
    pub tokens: u64,
    /// Calls of models.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Time in models and tools, in milliseconds.
    pub ms: u64,
    /// Money.
    pub cost: Cost,
}

impl Spending {
    /// Makes a spending of what `amount` says of each quantity.
    pub(crate) fn from_fn(amount: impl Fn(Quantity) -> u64) -> Self {
        Self {
            tokens: amount(Quantity::Tokens),
            model_calls: amount(Quantity::ModelCalls),
            tool_calls: amount(Quantity::ToolCalls),
            ms: amount(Quantity::Time),
            cost: Cost::from_nano_usd(amount(Quantity::Money)),
        }
    }

    pub(crate) fn of(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Money => self.cost.nano_usd(),
            Quantity::Tokens => self.tokens,
            Quantity::ModelCalls => self.model_calls,
            Quantity::ToolCalls => self.tool_calls,
            Quantity::Time => self.ms,
        }
    }
}

impl Add for Spending {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            ms: self.ms.saturating_add(other.ms),
            cost: self.cost + other.cost,
        }
    }
}

/// Of what is more on the right, nothing is left.
impl Sub for Spending {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::from_fn(|quantity| self.of(quantity).saturating_sub(other.of(quantity)))
    }
}

impl std::iter::Sum for Spending {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One turn's.
    Turn,
    /// One user's, for a day.
    Day,
    /// Everybody's together, for a day.
    Everyone,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Billionths of a dollar.
    Money,
    /// Tokens.
    Tokens,
    /// Calls of models.
    ModelCalls,
    /// Calls of tools.
    ToolCalls,
    /// Milliseconds.
    Time,
}

impl Quantity {
    const ALL: &'static [Self] = &[
        Self::Money,
        Self::Tokens,
        Self::ModelCalls,
        Self::ToolCalls,
        Self::Time,
    ];
}

/// A step that was not begun, because it might have broken a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Whose budget.
    pub scope: Scope,
    /// What it counts.
    pub quantity: Quantity,
    /// The bound.
    pub limit: u64,
    /// Spent, or set aside for steps that run.
    pub taken: u64,
    /// The most the step may take. [`u64::MAX`]: it is not known how much.
    pub needed: u64,
}

impl Exceeded {
    /// The setting that changes it.
    #[must_use]
    pub fn key(&self) -> String {
        let scope = match self.scope {
            Scope::Turn => "per_turn",
            Scope::Day => "per_day",
            Scope::Everyone => "everyone_per_day",
        };
        let quantity = match self.quantity {
            Quantity::Money => "usd",
            Quantity::Tokens => "tokens",
            Quantity::ModelCalls => "model_calls",
            Quantity::ToolCalls => "tool_calls",
            Quantity::Time => "time",
        };
        format!("budget.{scope}_{quantity}")
    }

    /// Whether it is there again when the day ends.
    #[must_use]
    pub fn ends_with_the_day(&self) -> bool {
        self.scope != Scope::Turn
    }

    fn bound(&self) -> String {
        let quantity = match self.quantity {
            Quantity::Money => "money",
            Quantity::Tokens => "tokens",
            Quantity::ModelCalls => "model calls",
            Quantity::ToolCalls => "tool calls",
            Quantity::Time => "time",
        };
        match self.scope {
            Scope::Turn => format!("budget of {quantity} per turn"),
            Scope::Day => format!("budget of {quantity} per user and day (UTC)"),
            Scope::Everyone => format!("budget of {quantity} of everybody per day (UTC)"),
        }
    }

    fn value(&self) -> String {
        let shown = |amount| Shown(self.quantity, amount);
        let needed = match self.needed {
            u64::MAX => "it is not known what the next step takes".to_owned(),
            needed => format!("the next step may take {}", shown(needed)),
        };
        format!(
            "{} ({} spent or set aside, {needed})",
            shown(self.limit),
            shown(self.taken)
        )
    }
}

impl From<Exceeded> for TurnError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit {
            bound: exceeded.bound(),
            value: exceeded.value(),
            key: exceeded.key(),
        }
    }
}

/// An amount with its unit.
struct Shown(Quantity, u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Quantity::Money => Cost::from_nano_usd(self.1).fmt(f),
            Quantity::Time => write!(f, "{} s", self.1 as f64 / 1000.0),
            Quantity::Tokens | Quantity::ModelCalls | Quantity::ToolCalls => self.1.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(usd: f64) -> Cost {
        Cost::from_usd(usd).unwrap()
    }

    fn said(
        allowance: Allowance,
        scope: Scope,
        taken: Spending,
        needed: Spending,
    ) -> Option<String> {
        allowance
            .exceeded(scope, taken, needed)
            .map(|exceeded| TurnError::from(exceeded).to_string())
    }

    #[test]
    fn what_fits_exactly_fits_and_one_more_does_not() {
        let allowance = Allowance {
            tokens: Some(100),
            ..Allowance::default()
        };
        let tokens = |tokens| Spending {
            tokens,
            ..Spending::default()
        };
        assert_eq!(said(allowance, Scope::Day, tokens(60), tokens(40)), None);
        assert_eq!(
            said(allowance, Scope::Day, tokens(60), tokens(41)).unwrap(),
            "budget of tokens per user and day (UTC) reached: 100 (60 spent or set aside, the next step may take 41) \
             (set budget.per_day_tokens)"
        );
        // A sum no number holds is too much, too; a step that needs none goes on, however much was
        // spent.
        assert!(
            said(allowance, Scope::Day, tokens(1), tokens(u64::MAX))
                .unwrap()
                .contains("not known")
        );
        let tool = Spending {
            tool_calls: 1,
            ..Spending::default()
        };
        assert_eq!(said(allowance, Scope::Day, tokens(1000), tool), None);
    }

    #[test]
    fn every_bound_says_its_unit_and_its_key() {
        let everything = Spending {
            tokens: 2,
            model_calls: 2,
            tool_calls: 2,
            ms: 2500,
            cost: usd(0.5),
        };
        let bound =
            |allowance, scope| said(allowance, scope, Spending::default(), everything).unwrap();
        let none = Allowance::default();
        assert!(
            none.is_unlimited()
                && !Allowance {
                    tokens: Some(0),
                    ..none
                }
                .is_unlimited()
        );
        for (allowance, scope, value, key) in [
            (
                Allowance {
                    cost: Some(usd(0.05)),
                    ..none
                },
                Scope::Turn,
                ": $0.050 ($0 ",
                "budget.per_turn_usd",
            ),
            (
                Allowance {
                    tokens: Some(1),
                    ..none
                },
                Scope::Turn,
                ": 1 (0 ",
                "budget.per_turn_tokens",
            ),
            (
                Allowance {
                    model_calls: Some(1),
                    ..none
                },
                Scope::Day,
                ": 1 ",
                "budget.per_day_model_calls",
            ),
            (
                Allowance {
                    tool_calls: Some(0),
                    ..none
                },
                Scope::Day,
                ": 0 ",
                "budget.per_day_tool_calls",
            ),
            (
                Allowance {
                    time: Some(Duration::from_millis(1500)),
                    ..none
                },
                Scope::Everyone,
                ": 1.5 s (0 s spent or set aside, the next step may take 2.5 s)",
                "budget.everyone_per_day_time",
            ),
        ] {
            let text = bound(allowance, scope);
            assert!(text.contains(value) && text.contains(key), "{text}");
        }
        assert_eq!(said(none, Scope::Turn, everything, everything), None);
    }

    #[test]
    fn money_is_bounded_by_any_of_the_three() {
        let money = Allowance {
            cost: Some(usd(1.0)),
            ..Allowance::default()
        };
        assert!(!Budgets::default().bound_money());
        assert!(
            Budgets {
                everyone_per_day: money,
                ..Budgets::default()
            }
            .bound_money()
        );
    }
}
