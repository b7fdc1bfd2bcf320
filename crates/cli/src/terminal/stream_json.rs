//! `--stream-json`: the events of a run, one JSON object per line, as `docs/json-output.md`
//! describes them.

use adjutant_core::{
    Arguments, CallId, InputId, PromptProgress, RecalledText, ToolResult, TurnId, Usage,
};
use adjutant_runtime::RunEvent;
use serde::Serialize;

use crate::terminal::display::json_line;
use crate::terminal::json_answer::Pending;

/// An event of the run. Text is as the model sent it, without changes for a terminal.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    TurnStarted {
        turn: &'a TurnId,
        input: &'a InputId,
        model: String,
        #[serde(skip_serializing_if = "<[RecalledText]>::is_empty")]
        memory: &'a [RecalledText],
    },
    SummaryStarted {
        messages: usize,
        tokens: u32,
    },
    SummaryProgress {
        bytes: usize,
    },
    SummaryFinished {
        messages: usize,
        tokens_before: u32,
        tokens_after: u32,
        usage: Usage,
    },
    SummaryFailed {
        reason: &'a str,
    },
    ModelStarted {
        number: u32,
    },
    Reading {
        done: u32,
        total: u32,
        kept: u32,
        left_ms: Option<u64>,
    },
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
    },
    Retrying {
        attempt: u32,
        wait_ms: u64,
        reason: &'a str,
    },
    ModelFinished {
        number: u32,
        usage: Usage,
    },
    ToolStarted {
        call_id: &'a CallId,
        tool: &'a str,
        arguments: &'a Arguments,
    },
    ToolProgress {
        call_id: &'a CallId,
        tool: &'a str,
        done: f64,
        total: Option<f64>,
        words: Option<&'a str>,
    },
    ToolFinished {
        call_id: &'a CallId,
        tool: &'a str,
        result: &'a ToolResult,
        /// The tool's description of its result.
        summary: Option<&'a str>,
        ms: u64,
    },
    ToolRefused {
        tool: &'a str,
        message: &'a str,
    },
    ConfirmationRequested {
        pending: Vec<Pending>,
    },
    Notice {
        code: &'a str,
        text: &'a str,
    },
}

/// Encodes an event as a line without the newline. `None` for the last event, whose line is the
/// object of `--json`, and for events without a JSON form.
pub(crate) fn line(event: &RunEvent) -> Option<String> {
    let line = match event {
        RunEvent::TurnStarted {
            turn,
            input,
            model,
            memory,
        } => Line::TurnStarted {
            turn,
            input,
            model: model.to_string(),
            memory,
        },
        RunEvent::SummaryStarted { messages, tokens } => Line::SummaryStarted {
            messages: *messages,
            tokens: *tokens,
        },
        RunEvent::SummaryProgress { bytes } => Line::SummaryProgress { bytes: *bytes },
        RunEvent::SummaryFinished {
            messages,
            before,
            after,
            usage,
        } => Line::SummaryFinished {
            messages: *messages,
            tokens_before: *before,
            tokens_after: *after,
            usage: *usage,
        },
        RunEvent::SummaryFailed { reason } => Line::SummaryFailed { reason },
        RunEvent::ModelStarted { number } => Line::ModelStarted { number: *number },
        RunEvent::Reading(PromptProgress {
            done,
            total,
            kept,
            left,
        }) => Line::Reading {
            done: *done,
            total: *total,
            kept: *kept,
            left_ms: left.and_then(|left| u64::try_from(left.as_millis()).ok()),
        },
        RunEvent::Text(text) => Line::Text { text },
        RunEvent::Thinking(text) => Line::Thinking { text },
        RunEvent::Retrying {
            attempt,
            wait,
            reason,
        } => Line::Retrying {
            attempt: *attempt,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason,
        },
        RunEvent::ModelFinished { number, usage } => Line::ModelFinished {
            number: *number,
            usage: *usage,
        },
        RunEvent::ToolStarted { call } => Line::ToolStarted {
            call_id: &call.id,
            tool: &call.name,
            arguments: &call.arguments,
        },
        RunEvent::ToolProgress {
            call,
            tool,
            progress,
        } => Line::ToolProgress {
            call_id: call,
            tool,
            done: progress.done,
            total: progress.total,
            words: progress.words.as_deref(),
        },
        RunEvent::ToolFinished {
            call,
            tool,
            result,
            summary,
            ms,
        } => Line::ToolFinished {
            call_id: call,
            tool,
            result,
            summary: summary.as_deref(),
            ms: *ms,
        },
        RunEvent::ToolRefused { tool, message } => Line::ToolRefused { tool, message },
        RunEvent::ConfirmationRequested { pending } => Line::ConfirmationRequested {
            pending: pending.iter().map(Pending::new).collect(),
        },
        RunEvent::Noticed(notice) => Line::Notice {
            code: &notice.code,
            text: &notice.text,
        },
        _ => return None,
    };
    Some(json_line(&line))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(event: &RunEvent, expected: Value) {
        let line = line(event).unwrap();
        assert!(!line.chars().any(adjutant_core::is_control), "{line:?}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
    }

    #[test]
    fn every_line_has_a_type_and_fields_in_snake_case() {
        check(
            &RunEvent::Text("a\nb\u{1b}[2J\u{202e}".to_owned()),
            json!({ "type": "text", "text": "a\nb\u{1b}[2J\u{202e}" }),
        );
        let left = Some(Duration::from_millis(2_500));
        check(
            &RunEvent::Reading(PromptProgress {
                done: 5,
                total: 9,
                kept: 4,
                left,
            }),
            json!({ "type": "reading", "done": 5, "total": 9, "kept": 4, "left_ms": 2500 }),
        );
        check(
            &RunEvent::Retrying {
                attempt: 1,
                wait: Duration::from_millis(1_500),
                reason: "too many requests".to_owned(),
            },
            json!({ "type": "retrying", "attempt": 1, "wait_ms": 1500, "reason": "too many requests" }),
        );
        let call = serde_json::from_value(
            json!({ "id": "c", "name": "add_task", "arguments": { "x": 1 } }),
        )
        .unwrap();
        check(
            &RunEvent::ToolStarted { call },
            json!({ "type": "tool_started", "call_id": "c", "tool": "add_task", "arguments": { "x": 1 } }),
        );
        let notice = serde_json::from_value(json!({ "code": "answer_cut", "text": "…" })).unwrap();
        check(
            &RunEvent::Noticed(notice),
            json!({ "type": "notice", "code": "answer_cut", "text": "…" }),
        );
    }
}
