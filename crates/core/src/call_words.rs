//! Descriptions of calls for confirmations, such as "Write file with path “a.txt”, content
//! “hello”".

use serde_json::Value;

use crate::tool::Arguments;
use crate::visible::is_hidden;

/// Describes a call with all its arguments, on one line. Nothing is shortened, because the
/// confirmation covers all of it, and no argument can be mistaken for another: values with
/// quotation marks, line breaks or invisible characters are written as JSON.
#[must_use]
pub fn call_in_words(title: &str, arguments: &Arguments) -> String {
    match arguments.is_empty() {
        true => title.to_owned(),
        false => format!("{title} with {}", members(arguments)),
    }
}

/// Returns a tool's name as words: `delete_task` becomes "Delete task".
#[must_use]
pub fn name_in_words(name: &str) -> String {
    let words: Vec<&str> = name
        .split(['_', '-', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    capitalized(&words.join(" "))
}

/// Returns a text with its first character in upper case.
#[must_use]
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn members(arguments: &Arguments) -> String {
    let member = |(name, value): (&String, &Value)| format!("{} {}", key(name), in_words(value));
    arguments.iter().map(member).collect::<Vec<_>>().join(", ")
}

fn key(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => format!("“{text}”"),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(in_words).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(object) => format!("{{{}}}", members(object)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    !text
        .chars()
        .any(|c| is_hidden(c) || matches!(c, '"' | '“' | '”' | '„' | '\u{2028}' | '\u{2029}'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(arguments: Value) -> String {
        call_in_words("Write file", arguments.as_object().unwrap())
    }

    #[test]
    fn it_reads_as_words() {
        assert_eq!(said(json!({})), "Write file");
        assert_eq!(
            said(
                json!({"path": "/srv/a.txt", "tags": ["x", 2], "mode": {"append": true, "owner": null}})
            ),
            "Write file with path “/srv/a.txt”, tags [“x”, 2], mode {append true, owner null}"
        );
        assert_eq!(name_in_words("git_log--all"), "Git log all");
        assert_eq!(name_in_words("__"), "");
    }

    #[test]
    fn no_argument_passes_for_another_one() {
        for forged in [
            "a”, path “/etc/passwd",
            "a\", path \"b",
            "a\npath “b”",
            "a\u{202e}b",
            "a\u{200b}",
        ] {
            let line = said(json!({"content": forged}));
            let shown = line.strip_prefix("Write file with content ").unwrap();
            assert_eq!(
                serde_json::from_str::<String>(shown).unwrap(),
                forged,
                "{line}"
            );
            assert!(!line.contains('\n'), "{line}");
        }
        assert_eq!(
            said(json!({"a b, c": 1, "5": "5"})),
            r#"Write file with "a b, c" 1, 5 “5”"#
        );
    }
}
