//! `--stream-json`: what happens in a run, one JSON object a line. `docs/json-output.md` describes it.

use adjutant_core::{Arguments, CallId, InputId, ToolResult, TurnId, Usage};
use adjutant_runtime::RunEvent;
use serde::Serialize;

use crate::display::json_line;
use crate::report::Pending;

/// One event. Text is as the model sent it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    TurnStarted {
        turn: &'a TurnId,
        input: &'a InputId,
        model: String,
    },
    ModelStarted {
        number: u32,
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
    ToolFinished {
        call_id: &'a CallId,
        tool: &'a str,
        result: &'a ToolResult,
        /// The tool's words for the person.
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

/// An event as its line, without the end. `None` for the last event, whose line is the object of `--json`, and for those
/// that have no form here.
pub(crate) fn line(event: &RunEvent) -> Option<String> {
    let line = match event {
        RunEvent::TurnStarted { turn, input, model } => {
            Line::TurnStarted { turn, input, model: model.to_string() }
        }
        RunEvent::ModelStarted { number } => Line::ModelStarted { number: *number },
        RunEvent::Text(text) => Line::Text { text },
        RunEvent::Thinking(text) => Line::Thinking { text },
        RunEvent::Retrying { attempt, wait, reason } => Line::Retrying {
            attempt: *attempt,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason,
        },
        RunEvent::ModelFinished { number, usage } => Line::ModelFinished { number: *number, usage: *usage },
        RunEvent::ToolStarted { call } => {
            Line::ToolStarted { call_id: &call.id, tool: &call.name, arguments: &call.arguments }
        }
        RunEvent::ToolFinished { call, tool, result, summary, ms } => {
            Line::ToolFinished { call_id: call, tool, result, summary: summary.as_deref(), ms: *ms }
        }
        RunEvent::ToolRefused { tool, message } => Line::ToolRefused { tool, message },
        RunEvent::ConfirmationRequested { pending } => {
            Line::ConfirmationRequested { pending: pending.iter().map(Pending::of).collect() }
        }
        RunEvent::Noticed(notice) => Line::Notice { code: &notice.code, text: &notice.text },
        _ => return None,
    };
    Some(json_line(&line))
}
