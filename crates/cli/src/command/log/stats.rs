//! Figures of decisions by day.

use std::collections::BTreeMap;

use adjutant_core::{Cost, DecisionRecord, OutcomeCategory, Rating};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::totals::{cost, ratings, tokens_in_out};
use crate::command::output::table;
use crate::terminal::display::millis;

/// Figures of a day, or of all days.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Sum {
    pub(super) decisions: u64,
    /// Number of decisions by outcome; `open` for those without one.
    pub(super) outcomes: BTreeMap<String, u64>,
    pub(super) model_calls: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Known costs in US dollars.
    pub(super) cost_usd: f64,
    /// Number of decisions whose cost is not known.
    pub(super) unknown_costs: u64,
    /// Answers rated as useful.
    pub(super) rated_up: u64,
    /// Answers rated as not useful.
    pub(super) rated_down: u64,
    /// Duration of ended turns, including the time waiting for confirmations.
    pub(super) total_ms: Quantiles,
    /// Time in model calls.
    pub(super) model_ms: Quantiles,
    /// Time in tools.
    pub(super) tool_ms: Quantiles,
}

/// Median and 95th percentile in milliseconds; `None` if nothing was measured.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: Option<u64>,
    pub(super) p95: Option<u64>,
}

/// Figures of a day.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Day {
    /// The day in UTC.
    pub(super) day: Date,
    #[serde(flatten)]
    pub(super) sum: Sum,
}

/// Figures by day, oldest first, and of all days, including those left out.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Stats {
    pub(super) days: Vec<Day>,
    pub(super) total: Sum,
}

/// Sums up decisions. `latest` keeps only that many of the newest days.
pub(super) fn stats(decisions: &[DecisionRecord], latest: Option<u32>) -> Stats {
    let mut days: BTreeMap<Date, Vec<&DecisionRecord>> = BTreeMap::new();
    for decision in decisions {
        // In UTC, as the totals of the database have it.
        let day = decision.started_at.to_zoned(TimeZone::UTC).date();
        days.entry(day).or_default().push(decision);
    }
    let total = sum(&decisions.iter().collect::<Vec<_>>());
    let shown = latest
        .and_then(|days| usize::try_from(days).ok())
        .unwrap_or(usize::MAX);
    let left_out = days.len().saturating_sub(shown);
    let days = days.into_iter().skip(left_out).map(|(day, decisions)| Day {
        day,
        sum: sum(&decisions),
    });
    Stats {
        days: days.collect(),
        total,
    }
}

fn sum(decisions: &[&DecisionRecord]) -> Sum {
    let mut sum = Sum::default();
    let mut cost = Cost::default();
    for decision in decisions {
        sum.decisions += 1;
        let outcome = decision.outcome.map_or("open", OutcomeCategory::as_str);
        *sum.outcomes.entry(outcome.to_owned()).or_default() += 1;
        sum.model_calls += u64::from(decision.model_calls);
        sum.input_tokens += decision.usage.input_tokens.unwrap_or(0);
        sum.output_tokens += decision.usage.output_tokens.unwrap_or(0);
        match decision.cost {
            Some(known) => cost = cost + known,
            None => sum.unknown_costs += 1,
        }
        match decision.feedback.as_ref().map(|feedback| feedback.rating) {
            Some(Rating::Up) => sum.rated_up += 1,
            Some(Rating::Down) => sum.rated_down += 1,
            None => {}
        }
    }
    sum.cost_usd = cost.usd();
    // A turn that still runs has no duration yet, and would make the figures too small.
    let ended = || {
        decisions
            .iter()
            .filter(|decision| decision.ended_at.is_some())
    };
    sum.total_ms = quantiles(ended().filter_map(|decision| decision.total_ms));
    sum.model_ms = quantiles(ended().map(|decision| decision.model_ms));
    sum.tool_ms = quantiles(ended().map(|decision| decision.tool_ms));
    sum
}

fn quantiles(times: impl Iterator<Item = u64>) -> Quantiles {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    // Nearest rank: the smallest value that `percent` of all values do not exceed.
    let rank = |percent: usize| {
        times
            .get((times.len() * percent).div_ceil(100).saturating_sub(1))
            .copied()
    };
    Quantiles {
        p50: rank(50),
        p95: rank(95),
    }
}

/// Formats the figures for people.
pub(super) fn format_table(stats: &Stats) -> String {
    let header = [
        "day",
        "turns",
        "well",
        "failed",
        "other",
        "tokens in/out",
        "cost",
        "p50",
        "p95",
        "up/down",
    ];
    let days = stats
        .days
        .iter()
        .map(|Day { day, sum }| row(&day.to_string(), sum));
    let mut text = table(&header, days.chain([row("all", &stats.total)]));
    for (outcome, count) in &stats.total.outcomes {
        text += &format!("\n{count:>6}  {outcome}");
    }
    text
}

fn row(name: &str, sum: &Sum) -> [String; 10] {
    let count = |prefix: &str| -> u64 {
        let outcomes = sum.outcomes.iter();
        outcomes
            .filter(|(outcome, _)| outcome.starts_with(prefix))
            .map(|(_, count)| count)
            .sum()
    };
    let (well, failed) = (count("SUCCESS:"), count("ERROR:"));
    let time = |ms: Option<u64>| ms.map(millis).unwrap_or_default();
    [
        name.to_owned(),
        sum.decisions.to_string(),
        well.to_string(),
        failed.to_string(),
        (sum.decisions - well - failed).to_string(),
        tokens_in_out(sum.input_tokens, sum.output_tokens),
        cost(
            Cost::from_usd(sum.cost_usd).unwrap_or_default(),
            sum.unknown_costs,
        ),
        time(sum.total_ms.p50),
        time(sum.total_ms.p95),
        ratings(sum.rated_up, sum.rated_down),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let of = |times: &[u64]| quantiles(times.iter().copied());
        assert_eq!(
            of(&[]),
            Quantiles {
                p50: None,
                p95: None
            }
        );
        assert_eq!(
            of(&[7]),
            Quantiles {
                p50: Some(7),
                p95: Some(7)
            }
        );
        assert_eq!(
            of(&[4, 1, 3, 2]),
            Quantiles {
                p50: Some(2),
                p95: Some(4)
            }
        );
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(
            of(&hundred),
            Quantiles {
                p50: Some(50),
                p95: Some(95)
            }
        );
    }
}
