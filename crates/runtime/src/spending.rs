//! What an agent may spend.

use std::sync::Arc;

use adjutant_core::{Allowance, Budgets, Cost, ModelId, Usage};
use jiff::civil::Date;

use crate::prices::Prices;
use crate::purse::Purse;

/// The budgets of an agent, and what it has taken of those of the day. Whoever bounds no day has no
/// purse.
#[derive(Clone)]
pub(crate) struct SpendingLimits {
    pub(crate) budgets: Budgets,
    pub(crate) purse: Option<Arc<Purse>>,
}

impl SpendingLimits {
    /// Whether it matters to any budget that tools run.
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

/// The most that so many tokens cost: none read from a cache, and all of them written to one if
/// that has a price. `None`: the price is not known.
pub(crate) fn most_it_costs(
    prices: &Prices,
    model: &ModelId,
    (input, output): (u64, u64),
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
    Some(written.map_or(plain, |written| written.max(plain)))
}
