//! What a turn took.

use std::time::Duration;

use adjutant_core::{Cost, Usage};

use crate::display::{millis, tokens};

/// What a turn cost: `1.2k in · 80 out · $0.00034 · 1.4 s`. `$?`: nobody knows how much money; what cost none says nothing.
pub(crate) fn footer(usage: &Usage, cost: Option<Cost>, took: Duration) -> String {
    let mut parts = Vec::new();
    if let Some(input) = usage.input_tokens {
        parts.push(format!("{} in", tokens(input)));
    }
    if let Some(output) = usage.output_tokens {
        parts.push(format!("{} out", tokens(output)));
    }
    match cost {
        None => parts.push("$?".to_owned()),
        Some(free) if free == Cost::default() => {}
        Some(cost) => parts.push(cost.to_string()),
    }
    parts.push(millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
    parts.join(" · ")
}

/// How full the model's window is: `ctx 12 %`. Rounded up, so that a little is not nothing; `None` without a window.
pub(crate) fn context_meter(tokens: u64, window: u64) -> Option<String> {
    let percent = tokens.saturating_mul(100).checked_add(window.checked_sub(1)?)? / window;
    Some(format!("ctx {percent} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footer_says_what_is_known() {
        let usage = Usage { input_tokens: Some(1_234), output_tokens: Some(80), ..Usage::default() };
        let took = Duration::from_millis(1_400);
        let free = Some(Cost::default());
        assert_eq!(footer(&usage, free, took), "1.2k in · 80 out · 1.4 s");
        assert_eq!(footer(&usage, None, took), "1.2k in · 80 out · $? · 1.4 s");
        assert_eq!(footer(&usage, Cost::from_usd(0.000_34), took), "1.2k in · 80 out · $0.00034 · 1.4 s");
        assert_eq!(footer(&Usage::default(), free, took), "1.4 s");
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
