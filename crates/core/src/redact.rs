//! Redaction of messages, arguments and results in logs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fingerprint::sha256;
use crate::names::impl_names;
use crate::tool::{Arguments, ToolResult};

/// The amount of text in the decision log, the tool invocation log and traces.
///
/// Applied before anything is logged. The journal is not affected, because a conversation continues
/// from it: it keeps messages until the conversation is deleted or its retention period
/// (`log.keep`) ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogContent {
    /// Everything except secrets: what looks like a key or token becomes `[secret]`.
    #[default]
    Full,
    /// Structure and sizes: each text becomes its length and the first digits of its SHA-256, by
    /// which texts can be told apart; numbers, field names and tool names stay. A short text can be
    /// guessed from its digest.
    Redacted,
    /// No message, answer, arguments or results.
    None,
}

/// The error for a name that is not a [`LogContent`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of full, redacted, none")]
pub struct UnknownLogContent(pub String);

impl LogContent {
    /// Returns a text as it is logged. An empty text stays empty.
    #[must_use]
    pub fn text(self, text: &str) -> String {
        match self {
            Self::Full => without_secrets(text).into_owned(),
            Self::Redacted if text.is_empty() => String::new(),
            Self::Redacted => {
                format!("[{} chars #{:.8}]", text.chars().count(), sha256(text))
            }
            Self::None => String::new(),
        }
    }

    /// Returns JSON as it is logged: the same structure, with each text as [`LogContent::text`]
    /// returns it.
    #[must_use]
    pub fn json(self, value: &Value) -> Value {
        match (self, value) {
            (Self::None, _) => Value::Null,
            (_, Value::String(text)) => Value::String(self.text(text)),
            (_, Value::Array(items)) => items.iter().map(|item| self.json(item)).collect(),
            // Names may hold secrets too: a tool can use a key as the name of a member.
            (_, Value::Object(map)) => Value::Object(self.object(map)),
            (_, Value::Null | Value::Bool(_) | Value::Number(_)) => value.clone(),
        }
    }

    /// Returns true if [`LogContent::json`] changes nothing.
    fn keeps(self, value: &Value) -> bool {
        let keeps =
            |text: &str| self == Self::Full && matches!(without_secrets(text), Cow::Borrowed(_));
        match value {
            Value::String(text) => keeps(text),
            Value::Array(items) => items.iter().all(|item| self.keeps(item)),
            Value::Object(map) => map
                .iter()
                .all(|(name, value)| keeps(name) && self.keeps(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => self != Self::None,
        }
    }

    /// Returns arguments as they are logged.
    #[must_use]
    pub fn arguments(self, arguments: &Arguments) -> Arguments {
        match self {
            Self::None => Arguments::new(),
            Self::Full | Self::Redacted => self.object(arguments),
        }
    }

    /// Returns a result as it is logged. Success or failure is always kept.
    #[must_use]
    pub fn result(self, result: &ToolResult) -> ToolResult {
        let kept = |text: &String| Some(self.text(text)).filter(|_| self != Self::None);
        ToolResult {
            success: result.success,
            data: result
                .data
                .as_ref()
                .filter(|_| self != Self::None)
                // Results may be large: one that stays as it is is shared and not copied.
                .map(|data| match self.keeps(data) {
                    true => data.clone(),
                    false => self.json(data).into(),
                }),
            error: result.error.as_ref().and_then(kept),
            verbatim: result.verbatim,
            note: result.note.as_ref().and_then(kept),
            from_others: result.from_others,
        }
    }

    fn object(self, map: &Map<String, Value>) -> Map<String, Value> {
        map.iter()
            .map(|(name, value)| (without_secrets(name).into_owned(), self.json(value)))
            .collect()
    }
}

impl_names!(LogContent, UnknownLogContent { Full = "full", Redacted = "redacted", None = "none" });

/// Prefixes of secrets, with the minimum number of characters after each.
///
/// Sources: the providers' and services' documentation of their keys (checked 2026-11-22), and our
/// own tokens.
const SECRETS: &[(&str, usize)] = &[
    ("sk-", 20),         // OpenAI, Anthropic, and those who speak like them
    ("AIza", 30),        // Google
    ("xai-", 20),        // xAI
    ("gsk_", 20),        // Groq
    ("hf_", 20),         // Hugging Face
    ("ghp_", 30),        // GitHub
    ("gho_", 30),        // GitHub
    ("ghs_", 30),        // GitHub
    ("github_pat_", 30), // GitHub
    ("glpat-", 16),      // GitLab
    ("xoxb-", 20),       // Slack
    ("xoxp-", 20),       // Slack
    ("AKIA", 16),        // AWS
    ("adj_", 40),        // Adjutant
    ("eyJ", 40),         // a JSON Web Token
];

/// Replacement text for a secret.
const SECRET: &str = "[secret]";

/// First and last line of a private key in PEM form, as prefixes.
const PRIVATE_KEY: (&str, &str) = ("-----BEGIN ", "-----END ");

/// ASCII characters with which a secret may begin, for a fast scan.
const FIRST_OF_SECRET: [bool; 128] = {
    let mut first = [false; 128];
    first[PRIVATE_KEY.0.as_bytes()[0] as usize] = true;
    let mut at = 0;
    while at < SECRETS.len() {
        first[SECRETS[at].0.as_bytes()[0] as usize] = true;
        at += 1;
    }
    first
};

/// Replaces what looks like a secret. A prefix inside a word does not count.
fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let (mut copied, mut secret_until) = (0, 0);
    let mut inside_word = false;
    for (at, next) in text.char_indices() {
        if at < secret_until {
            continue;
        }
        let may_begin = FIRST_OF_SECRET
            .get(next as usize)
            .is_some_and(|begins| *begins);
        if may_begin
            && !inside_word
            && let Some(length) = text.get(at..).and_then(secret_at)
        {
            clean.push_str(text.get(copied..at).unwrap_or_default());
            clean.push_str(SECRET);
            (copied, secret_until) = (at + length, at + length);
            inside_word = true;
            continue;
        }
        // A prefix inside of a word is a part of that word: "task-list" holds no key.
        inside_word = next.is_alphanumeric() || matches!(next, '_' | '-');
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Returns the length in bytes of the secret that a text begins with.
fn secret_at(text: &str) -> Option<usize> {
    if text.starts_with(PRIVATE_KEY.0)
        && text
            .lines()
            .next()
            .is_some_and(|line| line.contains("PRIVATE KEY"))
    {
        // Without the last line, everything after the first counts as the key.
        let end = text.find(PRIVATE_KEY.1).map(|at| at + PRIVATE_KEY.1.len());
        let line = |from: usize| text.get(from..)?.find('\n').map(|at| from + at);
        return Some(end.and_then(line).unwrap_or(text.len()));
    }
    SECRETS.iter().find_map(|(prefix, least)| {
        let own = text.strip_prefix(prefix)?;
        let length = own
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
            .unwrap_or(own.len());
        (length >= *least).then_some(prefix.len() + length)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn full_keeps_everything_but_secrets() {
        let text = "my key is sk-proj-abcdefghijklmnopqrstuv, ask sk-y or task-abcdefghijklmnopqrstuvwxyz 漢";
        let kept = LogContent::Full.text(text);
        assert_eq!(
            kept,
            "my key is [secret], ask sk-y or task-abcdefghijklmnopqrstuvwxyz 漢"
        );
        let pem = "see\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nbye";
        assert_eq!(LogContent::Full.text(pem), "see\n[secret]\nbye");
        assert_eq!(
            LogContent::Full.text("-----BEGIN PRIVATE KEY-----\nMIIE"),
            "[secret]"
        );
        let bearer = json!({"header": format!("Bearer adj_{}", "x".repeat(43)), "n": 7});
        assert_eq!(
            LogContent::Full.json(&bearer),
            json!({"header": "Bearer [secret]", "n": 7})
        );
    }

    #[test]
    fn redacted_keeps_the_form_and_the_size() {
        let redacted = LogContent::Redacted;
        let value = json!({"task_id": "7", "tags": ["a", "a", "b"], "count": 2, "done": true, "none": null, "": ""});
        let written = redacted.json(&value);
        assert_eq!(
            written["tags"][0], written["tags"][1],
            "the same text is the same digest"
        );
        assert_ne!(written["tags"][0], written["tags"][2]);
        assert_eq!(
            (&written["count"], &written["done"]),
            (&json!(2), &json!(true))
        );
        assert!(written["none"].is_null() && written[""] == "");
        let text = redacted.text("ring Erika at 555-0199 🎂");
        assert!(
            text.starts_with("[24 chars #") && !text.contains("Erika"),
            "{text}"
        );
        let result = redacted.result(&ToolResult::failed("no Erika"));
        assert!(!result.success && !result.error.unwrap().contains("Erika"));
    }

    #[test]
    fn none_keeps_nothing_but_whether_it_worked() {
        let none = LogContent::None;
        assert_eq!(none.text("Erika"), "");
        assert_eq!(none.json(&json!({"a": 1})), Value::Null);
        assert!(
            none.arguments(json!({"a": 1}).as_object().unwrap())
                .is_empty()
        );
        let result = none.result(&ToolResult::ok(json!("Erika")));
        assert_eq!(
            (result.success, result.data, result.error),
            (true, None, None)
        );
        assert_eq!("none".parse(), Ok(none));
        assert!("nothing".parse::<LogContent>().is_err());
    }
}
