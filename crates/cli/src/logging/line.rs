//! One event in one line.

use std::fmt::Write as _;

use adjutant_core::LogContent;
use clap::ValueEnum;
use jiff::{Timestamp, TimestampRound, Unit};
use serde_json::{Map, Value};
use tracing::Level;

use crate::display::{clip, json_line};

/// The format of a log line, named in `serve.log_format` and `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people: time, level, crate, words, and `name=value`
    Text,
    /// For programs: a JSON object
    Json,
}

/// Characters of a text that are written.
pub(super) const TEXT_MAX: usize = 2_000;
/// Characters that what stands behind `Bearer` has at least.
const SECRET_MIN: usize = 12;

/// The members that every line has, which no field may be called.
const OWN: [&str; 4] = ["time", "level", "target", "message"];

/// A text without secrets and without characters that nobody sees, on one line, and of bounded
/// length.
pub(super) fn clean(text: &str) -> String {
    clip(&LogContent::Full.text(&without_credentials(text)), TEXT_MAX)
}

/// Takes out what addresses and headers hold beside keys of a known form: `user:password@`, the
/// values of `key=` and `token=`, and what stands behind `Bearer` and `Basic`.
fn without_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut words = text.split_inclusive(char::is_whitespace).peekable();
    while let Some(word) = words.next() {
        let name = word.trim_end().trim_start_matches(['"', '\'', '(', ':']);
        clean.push_str(&without_password(&without_values(word)));
        let announces = name.eq_ignore_ascii_case("bearer") || name.eq_ignore_ascii_case("basic");
        // "bearer token" is no header: a secret is longer than a word of a sentence.
        if let Some(secret) = words.next_if(|next| announces && next.trim_end().len() >= SECRET_MIN)
        {
            clean.push_str("[secret]");
            clean.push_str(secret.trim_start_matches(|letter: char| !letter.is_whitespace()));
        }
    }
    clean
}

/// `https://user:password@host` without the two.
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

/// `?key=value&n=1` without the value.
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

/// An event and what it is of.
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

    /// Sets its words.
    pub(super) fn say(&mut self, words: String) {
        self.message = words;
    }

    /// Adds a field of a span or of the event itself. What came first keeps its name: another value
    /// of that name gets `of` in front of it.
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

    /// Returns the line with its end.
    pub(super) fn written(self, format: LogFormat) -> String {
        match format {
            LogFormat::Json => self.json(),
            LogFormat::Text => self.text(),
        }
    }

    fn json(self) -> String {
        let own = [self.time, self.level.to_string(), self.target, self.message].map(Value::String);
        let mut line: Map<String, Value> = OWN.map(str::to_owned).into_iter().zip(own).collect();
        line.extend(self.fields);
        json_line(&line) + "\n"
    }

    fn text(self) -> String {
        let Self {
            time,
            level,
            target,
            message,
            fields,
        } = self;
        let target = target.split("::").next().unwrap_or_default();
        let mut line = format!("{time} {level:5} {target}: {message}");
        for (name, value) in fields {
            // Writing to a String cannot fail.
            let _ = match &value {
                Value::String(text) if is_plain(text) => write!(line, " {name}={text}"),
                value => write!(line, " {name}={value}"),
            };
        }
        line + "\n"
    }
}

/// Returns whether a text can stand behind `name=` as it is, and ends where the next blank is.
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
        line.say("it failed".to_owned());
        line.add("request", "request_id", json!("r1"));
        line.add("request", "user", json!("x user=admin"));
        line.add("event", "message", json!("a \"b\""));
        line.add("event", "ms", json!(5));
        line.add("event", "none", json!(""));
        let text = line.written(LogFormat::Text);
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
