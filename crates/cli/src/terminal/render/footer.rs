//! Figures of a turn: tokens, cost, time, and the use of the context window.

use std::time::Duration;

use adjutant_core::{AgentResponse, Cost, Usage};

use crate::terminal::display::{millis, tokens};

/// Tokens, cost and time of a turn, summed over its runs: a confirmation divides a turn into runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    /// `None` if a price is not known.
    pub(crate) cost: Option<Cost>,
    /// Time of the runs, without the time in which the user was asked.
    pub(crate) took: Duration,
}

impl Default for Spent {
    fn default() -> Self {
        Self {
            usage: Usage::default(),
            cost: Some(Cost::default()),
            took: Duration::ZERO,
        }
    }
}

impl Spent {
    /// Adds the figures of a run.
    pub(crate) fn add(&mut self, response: &AgentResponse, took: Duration) {
        self.plus(response.usage, response.cost, took);
    }

    fn plus(&mut self, usage: Usage, cost: Option<Cost>, took: Duration) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.zip(cost).map(|(before, cost)| before + cost);
        self.took += took;
    }
}

/// Formats the figures: `1.2k in · 80 out · $0.00034 · 1.4 s`. A turn without cost,
/// or of unknown cost, shows none.
pub(crate) fn footer(Spent { usage, cost, took }: &Spent) -> String {
    let mut parts = Vec::new();
    if let Some(input) = usage.input_tokens {
        parts.push(format!("{} in", tokens(input)));
    }
    if let Some(output) = usage.output_tokens {
        parts.push(format!("{} out", tokens(output)));
    }
    match *cost {
        Some(cost) if cost != Cost::default() => parts.push(cost.to_string()),
        Some(_) | None => {}
    }
    parts.push(millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
    parts.join(" · ")
}

/// Formats the use of the context window: `ctx 12 %`, rounded up so that a little is not nothing.
/// `None` if the window is not known.
pub(crate) fn context_meter(tokens: u64, window: u64) -> Option<String> {
    let percent = tokens
        .saturating_mul(100)
        .checked_add(window.checked_sub(1)?)?
        / window;
    Some(format!("ctx {percent} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footer_says_what_is_known() {
        let usage = Usage {
            input_tokens: Some(1_234),
            output_tokens: Some(80),
            ..Usage::default()
        };
        let took = Duration::from_millis(1_400);
        let free = Some(Cost::default());
        let words = |usage: Usage, cost: Option<Cost>| footer(&Spent { usage, cost, took });
        assert_eq!(words(usage, free), "1.2k in · 80 out · 1.4 s");
        assert_eq!(words(usage, None), "1.2k in · 80 out · 1.4 s");
        assert_eq!(
            words(usage, Cost::from_usd(0.000_34)),
            "1.2k in · 80 out · $0.00034 · 1.4 s"
        );
        assert_eq!(words(Usage::default(), free), "1.4 s");
    }

    #[test]
    fn a_turn_with_a_question_is_counted_whole() {
        let usage = |tokens| Usage {
            input_tokens: Some(tokens),
            output_tokens: Some(10),
            ..Usage::default()
        };
        let mut spent = Spent::default();
        spent.plus(usage(1_000), Cost::from_usd(0.001), Duration::from_secs(28));
        spent.plus(usage(500), Cost::from_usd(0.002), Duration::from_millis(14));
        assert_eq!(footer(&spent), "1.5k in · 20 out · $0.0030 · 28.0 s");
        spent.plus(usage(1), None, Duration::ZERO);
        assert_eq!(spent.cost, None);
    }

    #[test]
    fn the_meter_is_a_share_of_the_window() {
        assert_eq!(context_meter(0, 32_768).unwrap(), "ctx 0 %");
        assert_eq!(context_meter(1, 32_768).unwrap(), "ctx 1 %");
        assert_eq!(context_meter(3_932, 32_768).unwrap(), "ctx 12 %");
        assert_eq!(context_meter(40_000, 32_768).unwrap(), "ctx 123 %");
        assert_eq!(context_meter(5, 0), None);
    }
}
