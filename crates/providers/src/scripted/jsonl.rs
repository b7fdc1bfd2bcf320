//! Parses scripts of JSON lines: one object per line.

use std::time::Duration;

use adjutant_core::{FinishReason, Usage, nearest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::reply::{Call, Fault, Repetition, Reply, ScriptedArguments};

/// An error in a line of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("script line {line}: {reason}")]
pub struct ScriptError {
    /// The number of the invalid line, counted from 1.
    pub line: usize,
    /// A message for people that says why it cannot be used.
    pub reason: String,
}

/// The settings of the optional first line.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Config {
    pub(super) retries: Option<u32>,
    pub(super) weak_tools: Option<bool>,
    pub(super) context_window: Option<u32>,
    pub(super) model: Option<String>,
}

const CONFIG_KEYS: &[&str] = &["retries", "weak_tools", "context_window", "model"];

const LINE_KEYS: &[&str] = &[
    "text",
    "calls",
    "thinking",
    "finish",
    "match",
    "once",
    "delay_ms",
    "stream",
    "pause_ms",
    "usage",
    "fault",
    "retry_after_s",
    "status",
    "raw",
    "repeat",
];

#[derive(Deserialize)]
struct Line {
    text: Option<String>,
    calls: Option<Vec<Value>>,
    thinking: Option<String>,
    finish: Option<String>,
    #[serde(rename = "match")]
    matching: Option<String>,
    once: Option<bool>,
    delay_ms: Option<u64>,
    stream: Option<usize>,
    pause_ms: Option<u64>,
    usage: Option<Value>,
    fault: Option<String>,
    retry_after_s: Option<f64>,
    status: Option<u16>,
    raw: Option<String>,
    repeat: Option<Repeat>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Repeat {
    Forever(bool),
    Times(u32),
}

#[derive(Deserialize)]
struct CallLine {
    name: String,
    args: Option<Value>,
    args_text: Option<String>,
}

#[derive(Deserialize)]
struct UsageLine {
    input: Option<u64>,
    output: Option<u64>,
}

/// Parses a script.
pub(super) fn parse(script: &str) -> Result<(Config, Vec<Reply>), ScriptError> {
    let mut config = None;
    let mut replies = Vec::new();
    let lines = script.strip_prefix('\u{feff}').unwrap_or(script).lines();
    for (index, line) in lines.enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let failed = |reason: String| ScriptError {
            line: index + 1,
            reason,
        };
        let object: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| failed(format!("not a JSON object: {error}")))?;
        if let Some(settings) = object.get("config") {
            if config.is_some() || !replies.is_empty() {
                return Err(failed("config must be the first line, once".to_owned()));
            }
            known_keys(&object, &["config"]).map_err(failed)?;
            config = Some(typed(settings.clone(), "config", CONFIG_KEYS).map_err(failed)?);
        } else {
            replies.push(reply(object).map_err(failed)?);
        }
    }
    if replies.is_empty() {
        return Err(ScriptError {
            line: script.lines().count().max(1),
            reason: "the script has no replies".to_owned(),
        });
    }
    Ok((config.unwrap_or_default(), replies))
}

fn reply(object: Map<String, Value>) -> Result<Reply, String> {
    let line: Line = typed(Value::Object(object), "the line", LINE_KEYS)?;
    let is_empty = !(line.text.is_some()
        || line.thinking.is_some()
        || line.finish.is_some()
        || line.fault.is_some()
        || line.calls.as_ref().is_some_and(|calls| !calls.is_empty()));
    if is_empty {
        return Err(
            "nothing to answer with: give text, calls, thinking, finish or fault".to_owned(),
        );
    }
    let repetition = match (line.once, line.repeat) {
        (Some(_), Some(_)) => return Err("once and repeat exclude each other".to_owned()),
        (Some(true), None) | (None, Some(Repeat::Forever(false))) => Repetition::Times(1),
        (None, Some(Repeat::Forever(true))) => Repetition::Forever,
        (None, Some(Repeat::Times(times))) => Repetition::Times(times),
        (Some(false) | None, None) => Repetition::Default,
    };
    if line.stream == Some(0) {
        return Err("stream is the size of a piece in characters, at least 1".to_owned());
    }
    let fault = match &line.fault {
        Some(name) => Some(fault(name, &line)?),
        None if line.retry_after_s.is_some() || line.status.is_some() || line.raw.is_some() => {
            return Err("retry_after_s, status and raw belong to a fault".to_owned());
        }
        None => None,
    };
    let calls: Vec<Call> = line
        .calls
        .unwrap_or_default()
        .into_iter()
        .map(call)
        .collect::<Result<_, _>>()?;
    if let (Some(name), true) = (
        &line.fault,
        calls.is_empty() && fault.as_ref().is_some_and(Fault::alters_calls),
    ) {
        return Err(format!("the fault {name} spoils calls: give calls"));
    }
    Ok(Reply {
        thinking: line.thinking,
        text: line.text,
        calls,
        finish: line
            .finish
            .map(|name| find(FINISHES, "finish", &name))
            .transpose()?,
        usage: line.usage.map(usage).transpose()?.unwrap_or_default(),
        fault,
        matching: line.matching,
        repetition,
        delay: Duration::from_millis(line.delay_ms.unwrap_or(0)),
        piece_chars: line.stream,
        pause: Duration::from_millis(line.pause_ms.unwrap_or(0)),
    })
}

fn call(value: Value) -> Result<Call, String> {
    let call: CallLine = typed(value, "a call", &["name", "args", "args_text"])?;
    let arguments = match (call.args, call.args_text) {
        (Some(_), Some(_)) => return Err("a call has args or args_text, not both".to_owned()),
        (Some(args), None) => ScriptedArguments::Json(args),
        (None, Some(text)) => ScriptedArguments::Text(text),
        (None, None) => ScriptedArguments::Json(Value::Object(Map::new())),
    };
    Ok(Call {
        name: call.name,
        arguments,
    })
}

fn usage(value: Value) -> Result<Usage, String> {
    let usage: UsageLine = typed(value, "usage", &["input", "output"])?;
    Ok(Usage {
        input_tokens: usage.input,
        output_tokens: usage.output,
        ..Usage::default()
    })
}

const FINISHES: &[(&str, FinishReason)] = &[
    ("stop", FinishReason::Stop),
    ("tool_calls", FinishReason::ToolCalls),
    ("max_tokens", FinishReason::MaxTokens),
    ("content_filter", FinishReason::ContentFilter),
    ("malformed_call", FinishReason::MalformedCall),
];

/// The faults, with the values that a line may replace.
const FAULTS: &[(&str, Fault)] = &[
    ("rate_limit", Fault::RateLimit { retry_after: None }),
    ("quota", Fault::Quota),
    ("server", Fault::Server { status: 500 }),
    ("timeout", Fault::Timeout),
    ("network", Fault::Network),
    ("reset", Fault::Reset),
    ("auth", Fault::Authentication),
    ("not_found", Fault::NotFound),
    ("bad_request", Fault::BadRequest),
    ("context_too_long", Fault::ContextTooLong),
    ("refused", Fault::Refused),
    (
        "invalid_response",
        Fault::InvalidResponse { raw: String::new() },
    ),
    ("truncated", Fault::Truncated),
    ("stall", Fault::Stall),
    ("empty", Fault::Empty),
    ("thinking_only", Fault::ThinkingOnly),
    ("split_utf8", Fault::SplitUtf8),
    ("truncated_json", Fault::TruncatedJson),
    ("unknown_tool", Fault::UnknownTool),
    ("wrong_type", Fault::WrongType),
];

fn fault(name: &str, line: &Line) -> Result<Fault, String> {
    let mut fault = find(FAULTS, "fault", name)?;
    match &mut fault {
        Fault::RateLimit { retry_after } => {
            let seconds = line.retry_after_s.map(|seconds| {
                Duration::try_from_secs_f64(seconds)
                    .map_err(|error| format!("retry_after_s is {seconds}: {error}"))
            });
            *retry_after = seconds.transpose()?;
        }
        Fault::Server { status } => *status = line.status.unwrap_or(*status),
        Fault::InvalidResponse { raw } => *raw = line.raw.clone().unwrap_or_default(),
        _ => {}
    }
    Ok(fault)
}

/// Returns the value that has this name in a table.
fn find<T: Clone>(table: &[(&str, T)], what: &str, name: &str) -> Result<T, String> {
    let known = table.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, value)| value.clone())
        .ok_or_else(|| unknown(what, name, table.iter().map(|(name, _)| *name)))
}

/// Deserializes a value, after checking it for unknown keys.
fn typed<T: DeserializeOwned>(value: Value, what: &str, keys: &[&str]) -> Result<T, String> {
    if let Value::Object(object) = &value {
        known_keys(object, keys)?;
    }
    serde_json::from_value(value).map_err(|error| format!("{what}: {error}"))
}

fn known_keys(object: &Map<String, Value>, keys: &[&str]) -> Result<(), String> {
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(unknown("key", key, keys.iter().copied())),
        None => Ok(()),
    }
}

fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("unknown {what} {word:?}; did you mean {near:?}?"),
        None => format!(
            "unknown {what} {word:?}; known: {}",
            known.collect::<Vec<_>>().join(", ")
        ),
    }
}
