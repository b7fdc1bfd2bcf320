//! The settings that change the bounds of a turn.

use std::fmt::Write as _;

use adjutant_core::{LimitName, Quantity, Scope, TurnError};

/// Returns the setting that changes a bound, by the name it has in the configuration file, and the
/// environment variable that some of them have too. `None`: no setting is known for it.
#[must_use]
pub fn limit_setting(limit: &LimitName) -> Option<String> {
    let (scope, quantity) = match limit {
        LimitName::TurnDeadline => return Some("agent.turn_deadline".to_owned()),
        LimitName::OutputTokens => return Some("llm.max_tokens, or LLM_MAX_TOKENS".to_owned()),
        LimitName::ToolIterations => {
            return Some("agent.max_tool_iterations, or MAX_TOOL_ITERATIONS".to_owned());
        }
        LimitName::IdenticalCalls => return Some("agent.identical_calls_max".to_owned()),
        LimitName::Budget { scope, quantity } => (scope, quantity),
        _ => return None,
    };
    let scope = match scope {
        Scope::Turn => "per_turn",
        Scope::Day => "per_day",
        Scope::Everyone => "everyone_per_day",
    };
    let quantity = match quantity {
        Quantity::Money => "usd",
        Quantity::Tokens => "tokens",
        Quantity::ModelCalls => "model_calls",
        Quantity::ToolCalls => "tool_calls",
        Quantity::Time => "time",
    };
    Some(format!("budget.{scope}_{quantity}"))
}

/// Returns the message of a turn's error, with the setting that changes the bound that was reached.
pub(crate) fn message_with_setting(error: &TurnError) -> String {
    let mut message = error.to_string();
    if let TurnError::Limit {
        limit,
        stored_setting,
        ..
    } = error
        && let Some(setting) = limit_setting(limit).or_else(|| stored_setting.clone())
    {
        let _ = write!(message, " (set {setting})");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_setting_that_helps() {
        let error = |limit| TurnError::Limit {
            limit,
            value: "5".to_owned(),
            stored_setting: None,
        };
        assert_eq!(
            message_with_setting(&error(LimitName::ToolIterations)),
            "tool iterations reached: 5 (set agent.max_tool_iterations, or MAX_TOOL_ITERATIONS)"
        );
        assert_eq!(
            message_with_setting(&error(LimitName::Other("rows".to_owned()))),
            "rows reached: 5"
        );
    }
}
