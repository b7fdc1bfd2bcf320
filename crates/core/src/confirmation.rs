//! Confirmation as data: what waits, what an answer must match, and how plain words are read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::id::{CallId, TurnId};
use crate::tool::Arguments;

/// A call that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Exactly what would run, references resolved to ids.
    pub arguments: Arguments,
    /// What it would touch, in the person's words.
    pub preview: String,
    /// Hash over turn, call, tool and arguments. Only an answer that carries it counts.
    pub digest: String,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// From when on an answer is too late.
    pub expires_at: Timestamp,
}

/// SHA-256, in hex, over the turn, the call, the tool and its arguments with sorted keys.
#[must_use]
pub fn digest(turn: TurnId, call: &CallId, tool: &str, arguments: &Arguments) -> String {
    let canonical = serde_json::json!([turn, call, tool, sorted(&Value::Object(arguments.clone()))]);
    hex(&Sha256::digest(canonical.to_string().as_bytes()))
}

/// The same JSON with the keys of every object in order, so that equal means equal bytes.
#[must_use]
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A human's answer to one pending call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The call it answers.
    pub call_id: CallId,
    /// The digest the human was shown.
    pub digest: String,
    /// What they said.
    pub verdict: Verdict,
}

/// What a human said to a pending call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Run exactly what was shown.
    Approved,
    /// Do not run it.
    Denied,
}

/// How a message is read while something waits. Never by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// A bare yes.
    Yes,
    /// A bare no, or cancel.
    No,
    /// Anything else: ask again, execute nothing.
    Unclear,
}

/// Reads plain words while something waits. Only a bare yes or no counts; "yes, but ..." is unclear.
#[must_use]
pub fn read_words(text: &str) -> Reading {
    const YES: &[&str] = &[
        "yes",
        "y",
        "yes please",
        "yep",
        "yeah",
        "ok",
        "okay",
        "sure",
        "confirm",
        "confirmed",
        "approve",
        "approved",
        "do it",
        "go ahead",
        "yes do it",
        "yes go ahead",
        "yes delete it",
        "delete it",
        "please do",
        "ja",
    ];
    const NO: &[&str] = &[
        "no",
        "n",
        "nope",
        "no thanks",
        "no thank you",
        "cancel",
        "stop",
        "dont",
        "do not",
        "deny",
        "denied",
        "abort",
        "never mind",
        "nevermind",
        "keep it",
        "no keep it",
        "no dont",
        "dont do it",
        "nein",
    ];
    let words: String = text
        .chars()
        .filter(|c| !matches!(c, '\'' | '’'))
        .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
        .collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    // A question mark makes any word a question.
    if text.contains('?') {
        Reading::Unclear
    } else if YES.contains(&words.as_str()) {
        Reading::Yes
    } else if NO.contains(&words.as_str()) {
        Reading::No
    } else {
        Reading::Unclear
    }
}
