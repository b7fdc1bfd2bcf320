//! Token counts and costs, decoded from every server's form.

use adjutant_core::{Cost, Counters, Usage};
use serde_json::Value;

use crate::openai::common::cost_of_ticks;

/// The counts so far. Reports are totals, so the last one of each count is valid.
#[derive(Debug, Default)]
pub(super) struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    cache_written: Option<u64>,
    thinking: Option<u64>,
    cost: Option<Cost>,
    billed: Option<Cost>,
}

impl Counts {
    /// Adds a report of counts; ignores other values.
    pub(super) fn add(&mut self, report: &Value) {
        let count = |names: &[&str]| names.iter().find_map(|name| number(report.get(name)?));
        let detail = |of: &str, name: &str| number(report.get(of)?.get(name)?);
        self.input = count(&["prompt_tokens", "input_tokens"]).or(self.input);
        self.output = count(&["completion_tokens", "output_tokens"]).or(self.output);
        self.total = count(&["total_tokens"]).or(self.total);
        // The names of OpenAI, DeepSeek and Moonshot.
        let cached = detail("prompt_tokens_details", "cached_tokens")
            .or_else(|| count(&["prompt_cache_hit_tokens", "cached_tokens"]));
        self.cached = cached.or(self.cached);
        let cache_written = detail("prompt_tokens_details", "cache_write_tokens");
        self.cache_written = cache_written.or(self.cache_written);
        let thinking = detail("completion_tokens_details", "reasoning_tokens");
        self.thinking = thinking
            .or_else(|| count(&["reasoning_tokens"]))
            .or(self.thinking);
        self.billed = report
            .get("cost_in_usd_ticks")
            .and_then(cost_of_ticks)
            .or(self.billed);
        self.cost = report
            .get("cost")
            .and_then(Value::as_f64)
            .and_then(Cost::from_usd)
            .or(self.cost);
    }

    /// Returns the server's counts as they were sent.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            input: self.input,
            output: self.output,
        }
    }

    /// Returns the counts in our meaning: output includes thinking. xAI counts thinking apart from
    /// its output (recorded), which its total shows.
    pub(super) fn usage(&self) -> Usage {
        let beside = match (self.input, self.output, self.total, self.thinking) {
            (Some(input), Some(output), Some(total), Some(thinking)) => {
                total == input.saturating_add(output).saturating_add(thinking)
            }
            _ => false,
        };
        let thinking = self.thinking.filter(|_| beside).unwrap_or(0);
        Usage {
            input_tokens: self.input,
            output_tokens: self.output.map(|output| output.saturating_add(thinking)),
            cached_tokens: self.cached,
            cache_written_tokens: self.cache_written,
            thinking_tokens: self.thinking,
        }
    }

    /// Returns the price: xAI reports it itself; others report dollars if `in_dollars`.
    pub(super) fn cost(&self, in_dollars: bool) -> Option<Cost> {
        self.billed.or(self.cost.filter(|_| in_dollars))
    }
}

/// Returns a count; a few servers write integers with a fraction.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (0.0..1e15).contains(&number).then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(report: Value) -> Usage {
        let mut counts = Counts::default();
        counts.add(&report);
        counts.usage()
    }

    #[test]
    fn thinking_is_part_of_the_output() {
        let openai = json!({"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 40}});
        let expected = Usage {
            input_tokens: Some(10),
            output_tokens: Some(50),
            cached_tokens: Some(4),
            thinking_tokens: Some(40),
            ..Usage::default()
        };
        assert_eq!(usage(openai), expected);
        let xai = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 60,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 40}});
        assert_eq!(usage(xai), expected);
    }

    #[test]
    fn other_names_and_odd_values_count_too() {
        let deepseek = usage(
            json!({"prompt_tokens": 10.0, "completion_tokens": null, "prompt_cache_hit_tokens": 7}),
        );
        assert_eq!(
            (
                deepseek.input_tokens,
                deepseek.output_tokens,
                deepseek.cached_tokens
            ),
            (Some(10), None, Some(7))
        );
        assert_eq!(usage(json!("none")), Usage::default());
        assert_eq!(
            usage(json!({"prompt_tokens": -1, "completion_tokens": "3"})),
            Usage::default()
        );
    }

    #[test]
    fn ticks_are_parts_of_a_dollar() {
        let mut counts = Counts::default();
        counts.add(&json!({"cost_in_usd_ticks": 1_641_500, "cost": 7}));
        assert_eq!(counts.cost(false), Cost::from_usd(0.000_164_15));
        counts.add(&json!({"cost_in_usd_ticks": "none"}));
        assert_eq!(counts.cost(true), Cost::from_usd(0.000_164_15));
    }

    #[test]
    fn the_last_report_of_each_holds() {
        let mut counts = Counts::default();
        counts.add(&json!({"prompt_tokens": 10, "completion_tokens": 1}));
        counts.add(&json!({"prompt_tokens": 10, "completion_tokens": 9}));
        counts.add(&Value::Null);
        assert_eq!(
            counts.counters(),
            Counters {
                input: Some(10),
                output: Some(9)
            }
        );
    }
}
