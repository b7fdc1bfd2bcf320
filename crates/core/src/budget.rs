//! Budgets: limits of spending, reservations of steps, and amounts spent.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cost::Cost;

/// Limits of what agents may spend. Unlimited by default.
///
/// A step starts only if the most it can cost fits; what it did not use is free again when it ends.
/// Days are UTC days, so that they end for all users at the same moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Limit of a single turn.
    pub per_turn: Allowance,
    /// Limit of each user for a day.
    pub per_day: Allowance,
    /// Limit of all users together for a day.
    pub everyone_per_day: Allowance,
}

impl Budgets {
    /// Returns true if one of the budgets limits money, which is possible only for models with a
    /// known price.
    #[must_use]
    pub fn bound_money(&self) -> bool {
        [self.per_turn, self.per_day, self.everyone_per_day]
            .iter()
            .any(|allowance| allowance.cost.is_some())
    }
}

/// Limits by quantity. `None`: unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Input and output tokens of models.
    pub tokens: Option<u64>,
    /// Number of model calls, without retries of one call.
    pub model_calls: Option<u64>,
    /// Number of tool calls requested by models, executed or not.
    pub tool_calls: Option<u64>,
    /// Time spent in models and tools.
    pub time: Option<Duration>,
    /// Money spent on model calls.
    pub cost: Option<Cost>,
}

impl Allowance {
    /// Returns true if no quantity is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first limit that `needed` would exceed when `taken` is spent or reserved.
    /// Quantities that the step does not need exceed nothing.
    #[must_use]
    pub fn exceeded(&self, scope: Scope, taken: Spending, needed: Spending) -> Option<Exceeded> {
        Quantity::ALL.iter().find_map(|&quantity| {
            let limit = self.limit(quantity)?;
            let (taken, needed) = (taken.of(quantity), needed.of(quantity));
            // An unknown amount is the maximum, which overflows and so fits no limit.
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

    /// Returns true if `left` covers `needed` in every limited quantity.
    #[must_use]
    pub fn is_covered(&self, left: Spending, needed: Spending) -> bool {
        let is_enough = |&quantity: &Quantity| needed.of(quantity) <= left.of(quantity);
        Quantity::ALL
            .iter()
            .all(|quantity| self.limit(*quantity).is_none() || is_enough(quantity))
    }

    /// Returns what remains of every limited quantity after `spent`.
    #[must_use]
    pub fn left_of(&self, spent: Spending) -> Self {
        // A step may cost more than was reserved for it, so more than the limit may be spent.
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

/// Amounts that were spent, or are reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Input and output tokens of models.
    pub tokens: u64,
    /// Number of model calls, without retries of one call.
    pub model_calls: u64,
    /// Number of tool calls requested by models.
    pub tool_calls: u64,
    /// Time spent in models and tools, in milliseconds.
    pub ms: u64,
    /// Money spent on model calls.
    pub cost: Cost,
}

impl Spending {
    /// Creates amounts from a function of the quantity.
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
        Self::from_fn(|quantity| self.of(quantity).saturating_add(other.of(quantity)))
    }
}

/// Subtracts quantity by quantity, down to zero.
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

/// The scope of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The budget of a single turn.
    Turn,
    /// The daily budget of one user.
    Day,
    /// The daily budget of all users together.
    Everyone,
}

/// The quantities that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Money, in billionths of a dollar.
    Money,
    /// Input and output tokens of models.
    Tokens,
    /// Number of model calls, without retries of one call.
    ModelCalls,
    /// Number of tool calls requested by models.
    ToolCalls,
    /// Time in models and tools, in milliseconds.
    Time,
}

impl Quantity {
    // In the order in which an exceeded limit is reported: money first.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Money,
        Self::Tokens,
        Self::ModelCalls,
        Self::ToolCalls,
        Self::Time,
    ];
}

/// The error for a step that was not started because it could exceed a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Budget that would be exceeded.
    pub scope: Scope,
    /// Quantity that would be exceeded.
    pub quantity: Quantity,
    /// Largest amount that is allowed.
    pub limit: u64,
    /// Amount spent, or reserved for running steps.
    pub taken: u64,
    /// The most that the step can cost. [`u64::MAX`]: unknown.
    pub needed: u64,
}

impl Exceeded {
    /// Returns true if the budget is available again on the next day.
    #[must_use]
    pub fn ends_with_the_day(&self) -> bool {
        self.scope != Scope::Turn
    }

    /// Returns the bound, what is taken of it, and what the next step needs.
    pub(crate) fn value(&self) -> String {
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
            .map(|exceeded| exceeded.value())
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
            "100 (60 spent or set aside, the next step may take 41)"
        );
        // An overflow exceeds every limit; a step that needs nothing of a quantity starts, however
        // much was spent.
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
    fn every_bound_says_its_unit() {
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
        for (allowance, scope, value) in [
            (
                Allowance {
                    cost: Some(usd(0.05)),
                    ..none
                },
                Scope::Turn,
                "$0.050 ($0 ",
            ),
            (
                Allowance {
                    tokens: Some(1),
                    ..none
                },
                Scope::Turn,
                "1 (0 ",
            ),
            (
                Allowance {
                    model_calls: Some(1),
                    ..none
                },
                Scope::Day,
                "1 ",
            ),
            (
                Allowance {
                    tool_calls: Some(0),
                    ..none
                },
                Scope::Day,
                "0 ",
            ),
            (
                Allowance {
                    time: Some(Duration::from_millis(1500)),
                    ..none
                },
                Scope::Everyone,
                "1.5 s (0 s spent or set aside, the next step may take 2.5 s)",
            ),
        ] {
            let text = bound(allowance, scope);
            assert!(text.starts_with(value), "{text}");
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
