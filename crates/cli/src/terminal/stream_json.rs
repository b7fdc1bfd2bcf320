//! `--stream-json`: the events of a run, one JSON object per line, as `docs/json-output.md`
//! describes them.

use adjutant_core::PromptProgress;
use adjutant_runtime::RunEvent;
use serde_json::json;

use crate::terminal::display::json_line;
use crate::terminal::json_answer::Pending;

/// Encodes an event as a line without the newline. Text is as the model sent it, without changes
/// for a terminal. `None` for the last event, whose line is the object of `--json`, and for events
/// without a JSON form.
pub(crate) fn line(event: &RunEvent) -> Option<String> {
    let line = match event {
        RunEvent::TurnStarted {
            turn,
            input,
            model,
            memory,
        } => {
            let mut line = json!({
                "type": "turn_started", "turn": turn, "input": input, "model": model.to_string(),
            });
            if !memory.is_empty() {
                line["memory"] = json!(memory);
            }
            line
        }
        RunEvent::SummaryStarted { messages, tokens } => {
            json!({ "type": "summary_started", "messages": messages, "tokens": tokens })
        }
        RunEvent::SummaryProgress { bytes } => {
            json!({ "type": "summary_progress", "bytes": bytes })
        }
        RunEvent::SummaryFinished {
            messages,
            before,
            after,
            usage,
        } => json!({
            "type": "summary_finished",
            "messages": messages,
            "tokens_before": before,
            "tokens_after": after,
            "usage": usage,
        }),
        RunEvent::SummaryFailed { reason } => json!({ "type": "summary_failed", "reason": reason }),
        RunEvent::ModelStarted { number } => json!({ "type": "model_started", "number": number }),
        RunEvent::Reading(PromptProgress {
            done,
            total,
            kept,
            left,
        }) => {
            let left_ms = left.and_then(|left| u64::try_from(left.as_millis()).ok());
            json!({
                "type": "reading", "done": done, "total": total, "kept": kept, "left_ms": left_ms,
            })
        }
        RunEvent::Text(text) => json!({ "type": "text", "text": text }),
        RunEvent::Thinking(text) => json!({ "type": "thinking", "text": text }),
        RunEvent::Retrying {
            attempt,
            wait,
            reason,
        } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            json!({ "type": "retrying", "attempt": attempt, "wait_ms": wait_ms, "reason": reason })
        }
        RunEvent::ModelFinished { number, usage } => {
            json!({ "type": "model_finished", "number": number, "usage": usage })
        }
        RunEvent::ToolStarted { call } => json!({
            "type": "tool_started",
            "call_id": call.id,
            "tool": call.name,
            "arguments": call.arguments,
        }),
        RunEvent::ToolProgress {
            call,
            tool,
            progress,
        } => json!({
            "type": "tool_progress",
            "call_id": call,
            "tool": tool,
            "done": progress.done,
            "total": progress.total,
            "words": progress.words,
        }),
        RunEvent::ToolFinished {
            call,
            tool,
            result,
            summary,
            ms,
        } => json!({
            "type": "tool_finished",
            "call_id": call,
            "tool": tool,
            "result": result,
            "summary": summary,
            "ms": ms,
        }),
        RunEvent::ToolRefused { tool, message } => {
            json!({ "type": "tool_refused", "tool": tool, "message": message })
        }
        RunEvent::ConfirmationRequested { pending } => json!({
            "type": "confirmation_requested",
            "pending": pending.iter().map(Pending::new).collect::<Vec<_>>(),
        }),
        RunEvent::Noticed(notice) => {
            json!({ "type": "notice", "code": notice.code, "text": notice.text })
        }
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
