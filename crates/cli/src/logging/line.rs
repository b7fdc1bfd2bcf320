//! Formats one event as one line.

use std::fmt::Write as _;

use adjutant_core::LogContent;
use clap::ValueEnum;
use jiff::{Timestamp, TimestampRound, Unit};
use serde_json::{Map, Value};
use tracing::Level;

use crate::terminal::display::{clip, json_line};

/// The format of log lines, as `serve.log_format` and `--log-format` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people: time, level, crate, words, and `name=value`
    Text,
    /// For programs: a JSON object
    Json,
}

/// Characters of a text that are written at most.
pub(super) const TEXT_MAX: usize = 2_000;
/// Characters of a token after `Bearer` at least.
const SECRET_MIN: usize = 12;

/// Members of every line, whose names no field may have.
const OWN: [&str; 4] = ["time", "level", "target", "message"];

/// Removes secrets and invisible characters from a text, and puts it on one line of bounded length.
pub(super) fn clean(text: &str) -> String {
    clip(&LogContent::Full.text(&without_credentials(text)), TEXT_MAX)
}

/// Removes credentials in URLs and headers, beside keys of a known form: `user:password@`, values
/// of `key=` and `token=`, and what follows `Bearer` and `Basic`.
fn without_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut words = text.split_inclusive(char::is_whitespace).peekable();
    while let Some(word) = words.next() {
        let name = word.trim_end().trim_start_matches(['"', '\'', '(', ':']);
        clean.push_str(&without_password(&without_values(word)));
        let announces = name.eq_ignore_ascii_case("bearer") || name.eq_ignore_ascii_case("basic");
        // "bearer token" in a sentence is no header: a secret is longer than a word.
        if let Some(secret) = words.next_if(|next| announces && next.trim_end().len() >= SECRET_MIN)
        {
            clean.push_str("[secret]");
            clean.push_str(secret.trim_start_matches(|letter: char| !letter.is_whitespace()));
        }
    }
    clean
}

/// Removes user and password from `https://user:password@host`.
fn without_password(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.get(..host).and_then(|host| host.rfind('@')) {
        Some(at) => format!("{scheme}://[secret]{}", rest.get(at..).unwrap_or_default()),
        None => word.to_owned(),
    }
}

/// Removes the values of secret parameters from `?key=value&n=1`.
fn without_values(word: &str) -> String {
    let mut parts = word.split_inclusive(['?', '&']);
    let is_secret = |part: &str| {
        let name = part
            .split('=')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        part.contains('=')
            && ["key", "token", "secret", "password"]
                .iter()
                .any(|end| name.ends_with(end))
    };
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| match part.split_once('=') {
        Some((name, value)) if is_secret(part) => {
            let end = value
                .find(['&', ' ', '"', '\'', ')', ',', ';', '\n'])
                .unwrap_or(value.len());
            format!(
                "{whole}{name}=[secret]{}",
                value.get(end..).unwrap_or_default()
            )
        }
        _ => whole + part,
    })
}

/// A line in preparation.
pub(super) struct Line {
    time: String,
    level: Level,
    target: String,
    message: String,
    fields: Map<String, Value>,
}

impl Line {
    pub(super) fn new(level: Level, target: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a line says when it was written")]
        let now = Timestamp::now();
        let rounded = now
            .round(TimestampRound::new().smallest(Unit::Millisecond))
            .unwrap_or(now);
        Self {
            time: format!("{rounded:.3}"),
            level,
            target: target.to_owned(),
            message: String::new(),
            fields: Map::new(),
        }
    }

    /// Sets the text.
    pub(super) fn set_message(&mut self, words: String) {
        self.message = words;
    }

    /// Adds a field of the event or a span. If the name is taken by another value, the field gets
    /// the prefix `of`.
    pub(super) fn add(&mut self, of: &str, name: &str, value: Value) {
        let is_taken = |known: &Value| *known != value;
        let name = match self.fields.get(name) {
            Some(known) if is_taken(known) => format!("{of}_{name}"),
            Some(_) => return,
            None if OWN.contains(&name) => format!("{of}_{name}"),
            None => name.to_owned(),
        };
        self.fields.insert(name, value);
    }

    /// Formats the line, with its newline.
    pub(super) fn format(self, format: LogFormat) -> String {
        match format {
            LogFormat::Json => self.json(),
            LogFormat::Text => self.into_text(),
        }
    }

    fn json(self) -> String {
        let own = [self.time, self.level.to_string(), self.target, self.message].map(Value::String);
        let mut line: Map<String, Value> = OWN.map(str::to_owned).into_iter().zip(own).collect();
        line.extend(self.fields);
        json_line(&line) + "\n"
    }

    fn into_text(self) -> String {
        // The crate is enough for a person; the JSON form has the module.
        let target = self.target.split("::").next().unwrap_or_default();
        let mut line = format!("{} {:5} {target}: {}", self.time, self.level, self.message);
        for (name, value) in self.fields {
            // Writing to a String cannot fail.
            let _ = match &value {
                Value::String(text) if is_plain(text) => write!(line, " {name}={text}"),
                value => write!(line, " {name}={value}"),
            };
        }
        line + "\n"
    }
}

/// Returns true if a text needs no quotes after `name=`.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text
            .contains(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '=' | '\\'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_taken_out_wherever_they_stand() {
        for (text, expected) in [
            (
                "cannot reach https://ana:s3cret@host:80/a?b=1 now",
                "cannot reach https://[secret]@host:80/a?b=1 now",
            ),
            (
                "(https://host/v1?alt=sse&key=abc&n=1): no",
                "(https://host/v1?alt=sse&key=[secret]&n=1): no",
            ),
            (
                "url (https://host/?access_token=abc) failed",
                "url (https://host/?access_token=[secret]) failed",
            ),
            (
                "Authorization: Bearer abc.def-ghi_jkl was sent",
                "Authorization: Bearer [secret] was sent",
            ),
            (
                "the bearer token is not known; mail ana@host",
                "the bearer token is not known; mail ana@host",
            ),
            ("https://host/@ana?n=1&b=2", "https://host/@ana?n=1&b=2"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn text_is_for_people_and_can_be_searched() {
        let mut line = Line::new(Level::WARN, "adjutant_service::serve");
        line.set_message("it failed".to_owned());
        line.add("request", "request_id", json!("r1"));
        line.add("request", "user", json!("x user=admin"));
        line.add("event", "message", json!("a \"b\""));
        line.add("event", "ms", json!(5));
        line.add("event", "none", json!(""));
        let text = line.format(LogFormat::Text);
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(
            time.parse::<Timestamp>().is_ok() && time.len() == "2026-11-26T09:00:00.000Z".len(),
            "{time}"
        );
        assert_eq!(
            rest,
            "WARN  adjutant_service: it failed request_id=r1 user=\"x user=admin\" event_message=\"a \\\"b\\\"\" ms=5 none=\"\"\n"
        );
    }
}
