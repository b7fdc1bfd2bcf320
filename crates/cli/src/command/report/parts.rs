//! Files of a bug report. Their contents are selected field by field.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use adjutant_core::port::Which;
use adjutant_core::{DecisionFilter, DecisionRecord, LogContent, ModelId, Step, StepKind};
use adjutant_providers::Provider;
use adjutant_runtime::read_trace;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::command::doctor;
use crate::command::log;
use crate::command::output::file_error;
use crate::config::{Settings, Shown, Sources, find_setting};
use crate::error::CliError;
use crate::store::Store;

/// Failed turns included at most.
const ERRORS: u32 = 50;
/// Lines of a log included at most.
const LINES: usize = 2_000;
/// Fields of a log line that are included, if their values are single words or numbers.
const FIELDS: [&str; 22] = [
    "time",
    "timestamp",
    "level",
    "target",
    "request_id",
    "turn",
    "run_id",
    "trace_id",
    "span_id",
    "method",
    "route",
    "status",
    "ms",
    "code",
    "error_code",
    "kind",
    "outcome",
    "provider",
    "attempt",
    "retries",
    "tokens",
    "event",
];
/// Replacement of a word that could name a person, a place or a secret.
const WITHHELD: &str = "(withheld)";

/// A file of the report.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// Short description of its contents, for the user who is about to share it.
    pub(super) holds: String,
    pub(super) text: String,
}

impl Part {
    fn new(name: &'static str, holds: impl Into<String>, value: &impl Serialize) -> Self {
        let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        Self {
            name,
            holds: holds.into(),
            text,
        }
    }
}

/// Describes program and machine.
pub(super) fn about(now: Timestamp) -> Part {
    let features: Vec<&str> = [
        ("embedded", cfg!(feature = "embedded")),
        ("gemini", cfg!(feature = "gemini")),
        ("openai", cfg!(feature = "openai")),
        ("anthropic", cfg!(feature = "anthropic")),
        ("ollama", cfg!(feature = "ollama")),
        ("postgres", cfg!(feature = "postgres")),
        ("restate", cfg!(feature = "restate")),
    ]
    .into_iter()
    .filter_map(|(name, is_there)| is_there.then_some(name))
    .collect();
    let about = json!({
        "made_at": now, "adjutant": env!("CARGO_PKG_VERSION"), "features": features, "debug_build": cfg!(debug_assertions),
        "os": std::env::consts::OS, "architecture": std::env::consts::ARCH, "processors": processors(),
    });
    Part::new("about.json", "version, features, operating system", &about)
}

fn processors() -> Option<usize> {
    std::thread::available_parallelism()
        .ok()
        .map(std::num::NonZero::get)
}

/// Creates the file about data that could not be read, with the exit code instead of the error
/// message.
pub(super) fn unreadable(what: &str, error: &CliError) -> Part {
    let words = format!("that the {what} cannot be read");
    Part::new(
        "problem.json",
        words,
        &json!({ "cannot_be_read": what, "exit_code": error.exit as u8 }),
    )
}

/// Runs `adjutant doctor` and keeps group and status of each check. Findings contain paths and are
/// left out.
pub(super) async fn doctor(sources: &Sources) -> Part {
    let findings = doctor::run_checks(sources, None).await;
    let checks: Vec<Value> = findings
        .checks
        .iter()
        .map(|check| json!({ "group": check.group, "status": check.status }))
        .collect();
    Part::new(
        "doctor.json",
        "what is well and what is not, without places",
        &json!(checks),
    )
}

/// Lists every setting that has a value, with the kind of its source.
pub(super) fn settings(settings: &Settings) -> Part {
    let set = settings.shown.iter().filter(|shown| shown.value.is_some());
    let mut all: Map<String, Value> = Map::new();
    let mut servers = std::collections::BTreeSet::new();
    for shown in set {
        if let Some(server) = shown.name.strip_prefix("mcp.servers.") {
            servers.insert(server.split('.').next());
        } else {
            all.insert(
                shown.name.to_string(),
                json!({ "value": value(shown), "origin": origin(&shown.origin) }),
            );
        }
    }
    let shown = json!({ "settings": all, "mcp_servers": servers.len() });
    Part::new(
        "settings.json",
        "settings that are numbers, times or words of a list; of others, that they are set",
        &shown,
    )
}

/// Returns a value if it is one of a fixed set.
fn value(shown: &Shown) -> &str {
    let value = shown.value.as_deref().unwrap_or_default();
    match find_setting(&shown.name) {
        Ok(key) if key.kind.is_closed() => value,
        _ => WITHHELD,
    }
}

/// Returns the kind of a source without its path.
fn origin(origin: &str) -> &str {
    match origin.split_once(' ') {
        _ if origin == "default" => "default",
        Some(("variable", _)) => "variable",
        Some(("option", _)) => "option",
        Some((_, rest)) if rest.starts_with("in ") => "environment file",
        _ => "file",
    }
}

/// Describes the database and the last failed turns.
pub(super) async fn database(store: &dyn Store) -> Vec<Part> {
    let filter = DecisionFilter {
        limit: Some(ERRORS),
        ..DecisionFilter::default()
    };
    let mut parts = Vec::new();
    if let Ok(status) = store.status().await {
        let tables: Map<String, Value> = status
            .tables
            .iter()
            .map(|table| (table.name.clone(), table.rows.into()))
            .collect();
        let status = json!({
            "product": status.product, "schema_version": status.schema_version, "journal_mode": status.journal_mode,
            "bytes": status.bytes, "rows": tables, "unsettled": status.unsettled, "waiting": status.waiting,
        });
        parts.push(Part::new(
            "database.json",
            "product, schema, sizes",
            &status,
        ));
    }
    if let Ok(failed) = store.decisions_of_all(&filter, Which::Failed).await {
        let outlines: Vec<Value> = failed.iter().map(outline).collect();
        let holds = format!(
            "the last {} turns that failed: times, outcomes, codes",
            outlines.len()
        );
        parts.push(Part::new("errors.json", holds, &json!(outlines)));
    }
    parts
}

/// Describes a turn without its user and messages.
fn outline(decision: &DecisionRecord) -> Value {
    json!({
        // The request id was chosen by a client, so it may contain anything.
        "id": decision.id, "request_id": decision.request_id.as_deref().map(plain), "started_at": decision.started_at,
        "ended_at": decision.ended_at, "outcome": decision.outcome, "error_code": decision.error_code,
        "model": model(&decision.model), "model_calls": decision.model_calls, "iterations": decision.iterations,
        "input_tokens": decision.usage.input_tokens, "output_tokens": decision.usage.output_tokens,
        "model_ms": decision.model_ms, "tool_ms": decision.tool_ms, "total_ms": decision.total_ms,
    })
}

/// Returns the name of a vendor's model; of others only the provider, because a file name is
/// private.
fn model(model: &ModelId) -> String {
    let provider = model.provider.as_str();
    let is_vendor =
        Provider::all().any(|known| known.name == provider && !known.local && known.needs_key);
    if is_vendor {
        plain(&model.to_string())
    } else {
        format!("{}/{WITHHELD}", plain(provider))
    }
}

/// Returns a word of letters, digits and a few signs; anything else is withheld.
fn plain(word: &str) -> String {
    let is_plain = word.len() <= 128
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+".contains(&byte));
    // An absolute path names a place on the machine.
    if is_plain && !word.starts_with('/') {
        word.to_owned()
    } else {
        WITHHELD.to_owned()
    }
}

/// Describes the steps of a turn; message contents only if `with_words` is set.
///
/// # Errors
/// There is no such turn or several, or the store cannot be read.
pub(super) async fn turn(
    store: &dyn Store,
    settings: &Settings,
    id: &str,
    with_words: bool,
) -> Result<Part, CliError> {
    let decision = log::find_for_any_user(store, id).await?;
    if with_words {
        let details = log::DecisionDetails::load(store, decision, settings.log_content).await?;
        return Ok(Part::new(
            "turn.json",
            "one turn, WITH WHAT WAS SAID in it and whose it is",
            &details,
        ));
    }
    let steps = read_trace(store, &decision.key(), decision.id, LogContent::None).await?;
    let steps: Vec<Value> = steps.iter().map(step).collect();
    let outline = json!({ "turn": outline(&decision), "steps": steps });
    Ok(Part::new(
        "turn.json",
        "the steps of one turn, without what was said",
        &outline,
    ))
}

fn step(step: &Step) -> Value {
    let code = step.error.as_ref().and_then(|error| error["code"].as_str());
    json!({
        "kind": step.kind, "offset_ms": step.offset_ms, "ms": step.ms, "attempt": step.attempt, "usage": step.usage,
        "failed": step.error.is_some(), "code": code.filter(|_| step.kind == StepKind::Model).map(plain),
    })
}

/// Returns the end of a service's log.
///
/// # Errors
/// The file cannot be read.
pub(super) fn log(file: &Path) -> Result<Part, CliError> {
    let failed = |error: std::io::Error| file_error(file, "read", &error);
    // Only the end is held in memory, because a log may be of any size.
    let mut kept = VecDeque::new();
    let mut left_out = 0_u64;
    for line in BufReader::new(File::open(file).map_err(failed)?).split(b'\n') {
        let line = line.map_err(failed)?;
        match serde_json::from_slice::<Map<String, Value>>(&line) {
            Ok(fields) => {
                if kept.len() == LINES {
                    kept.pop_front();
                }
                kept.push_back(harmless_fields(&fields));
            }
            // A line that is no object was written by something else, and may contain anything.
            Err(_) => left_out += 1,
        }
    }
    let holds = format!(
        "the last {} JSON lines of the log: times, levels, ids, codes; {left_out} other lines are left out",
        kept.len()
    );
    let text = kept.iter().map(|line| format!("{line}\n")).collect();
    Ok(Part {
        name: "log.jsonl",
        holds,
        text,
    })
}

/// Returns the fields of a log line that are included.
fn harmless_fields(fields: &Map<String, Value>) -> Value {
    let included = FIELDS.iter().filter_map(|name| {
        let value = match fields.get(*name)? {
            Value::String(word) => plain(word).into(),
            number @ (Value::Number(_) | Value::Bool(_)) => number.clone(),
            _ => return None,
        };
        Some(((*name).to_owned(), value))
    });
    Value::Object(included.collect())
}
