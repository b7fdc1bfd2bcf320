//! The budgets of an agent, and the upper bound of what a model call costs.

use std::sync::Arc;

use adjutant_core::{Allowance, Budgets, Cost, ModelId, Usage};
use jiff::civil::Date;

use crate::daily_budget::DailyBudget;
use crate::prices::Prices;

/// The budgets of an agent, with the reservations of this process in those of the day.
#[derive(Clone)]
pub(crate) struct SpendingLimits {
    pub(crate) budgets: Budgets,
    /// `None`: no budget per day is set.
    pub(crate) daily_budget: Option<Arc<DailyBudget>>,
}

impl SpendingLimits {
    /// Returns true if a budget limits the number or the time of tool calls.
    pub(crate) fn bounds_tools(&self) -> bool {
        let bounds =
            |allowance: &Allowance| allowance.tool_calls.is_some() || allowance.time.is_some();
        let Budgets {
            per_turn,
            per_day,
            everyone_per_day,
        } = &self.budgets;
        [per_turn, per_day, everyone_per_day]
            .into_iter()
            .any(bounds)
    }
}

/// Returns the most that so many tokens cost: none read from a cache, and all of them written to
/// one if that has a price. `None`: the price is not known.
pub(crate) fn max_cost(
    prices: &Prices,
    model: &ModelId,
    input: u64,
    output: u64,
    on: Date,
) -> Option<Cost> {
    let plain = Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    };
    let written = Usage {
        cache_written_tokens: Some(input),
        ..plain
    };
    let (plain, written) = (
        prices.cost(model, &plain, on)?,
        prices.cost(model, &written, on),
    );
    // Some providers charge more for writing their cache than for plain input.
    Some(written.map_or(plain, |written| written.max(plain)))
}
