//! An evaluation case, parsed strictly from a line of JSON: initial state, message, and expected
//! result.

use std::collections::BTreeSet;
use std::fmt;

use adjutant_core::{Content, DecisionKind, Message, Part};
use adjutant_tools::{TaskDescription, TaskId};
use serde::Deserialize;

/// Initial state, message and expected result of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The case's name in reports.
    pub(crate) id: String,
    /// The user's tasks before the turn, in order of creation: their ids are 1, 2, ...
    pub(crate) tasks: Vec<TaskBefore>,
    /// Earlier messages of the conversation.
    #[serde(default)]
    history: Vec<EarlierMessage>,
    /// Facts before the turn.
    #[serde(default)]
    pub(crate) facts: Vec<String>,
    /// Earlier messages of the user, each in a conversation of its own.
    #[serde(default)]
    pub(crate) said: Vec<String>,
    /// The user's message.
    pub(crate) input: String,
    /// The expected result.
    pub(crate) expect: Expect,
}

/// A task before the turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskBefore {
    pub(crate) description: TaskDescription,
    pub(crate) completed: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlierMessage {
    role: Speaker,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
}

/// The expected result of a turn. Missing fields are not checked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    /// The decision is one of these.
    pub(crate) decision: Option<Vec<DecisionKind>>,
    /// Exactly these tools were executed.
    pub(crate) tools: Option<BTreeSet<String>>,
    /// Exactly this call waits for confirmation.
    pub(crate) pending: Option<PendingExpected>,
    /// The reply contains each of these, ignoring case.
    pub(crate) reply_has: Vec<String>,
    /// The reply contains none of these, ignoring case.
    pub(crate) reply_lacks: Vec<String>,
    /// All tasks after the turn, in any order.
    pub(crate) tasks_after: Option<Vec<TaskAfter>>,
    /// All facts after the turn, in any order: each contains its words, ignoring case.
    pub(crate) facts_after: Option<Vec<Vec<String>>>,
    /// Today's note contains each of these, ignoring case. An empty list expects no note.
    pub(crate) note_today: Option<Vec<String>>,
}

/// The call that has to wait for confirmation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PendingExpected {
    pub(crate) tool: String,
    pub(crate) task_id: Option<TaskId>,
    /// The question contains each of these, ignoring case.
    #[serde(default)]
    pub(crate) has: Vec<String>,
}

/// A task after the turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskAfter {
    /// Its description contains each of these, ignoring case.
    pub(crate) has: Vec<String>,
    pub(crate) completed: bool,
}

/// A line that is not a case. `Display` gives `FILE:LINE: reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadCase {
    /// The file, or `-` for standard input.
    pub(crate) source_name: String,
    /// Line number, from 1.
    pub(crate) line: usize,
    /// The reason why it is no case.
    pub(crate) reason: String,
}

impl fmt::Display for BadCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.source_name, self.line, self.reason)
    }
}

/// Parses the cases of a file, one per line; blank lines are skipped.
///
/// # Errors
/// [`BadCase`] for the first line that is not JSON, has an unknown field, lacks a required one, or
/// could never run or never fail.
pub(crate) fn parse(source_name: &str, text: &str) -> Result<Vec<Case>, BadCase> {
    let mut cases = Vec::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let bad = |reason: String| BadCase {
            source_name: source_name.to_owned(),
            line: index + 1,
            reason,
        };
        let case: Case = serde_json::from_str(line).map_err(|error| bad(in_one_line(&error)))?;
        case.check().map_err(bad)?;
        cases.push(case);
    }
    Ok(cases)
}

impl Case {
    /// Returns the earlier messages as the agent takes them.
    pub(crate) fn history(&self) -> Vec<Message> {
        // `check` has converted all of them successfully.
        self.history
            .iter()
            .filter_map(|earlier| earlier.message().ok())
            .collect()
    }

    /// Returns true if the case needs memory.
    pub(crate) fn needs_memory(&self) -> bool {
        let before = !self.facts.is_empty() || !self.said.is_empty();
        before || self.expect.facts_after.is_some() || self.expect.note_today.is_some()
    }

    fn check(&self) -> Result<(), String> {
        if self.id.trim().is_empty() {
            return Err("id is empty".to_owned());
        }
        if self.input.trim().is_empty() {
            return Err("input is empty".to_owned());
        }
        if self
            .facts
            .iter()
            .chain(&self.said)
            .any(|text| text.trim().is_empty())
        {
            return Err("a text of facts or said is empty".to_owned());
        }
        // A case without expectations would count as passed and hide that it tests nothing.
        if self.expect == Expect::default() {
            return Err("expect is empty: the case could not fail".to_owned());
        }
        if self.expect.decision.as_ref().is_some_and(Vec::is_empty) {
            return Err("expect.decision is empty: the case could not pass".to_owned());
        }
        self.history
            .iter()
            .enumerate()
            .try_for_each(|(index, earlier)| {
                earlier
                    .message()
                    .map(drop)
                    .map_err(|error| format!("history[{index}]: {error}"))
            })
    }
}

impl EarlierMessage {
    fn message(&self) -> Result<Message, String> {
        if self.text.trim().is_empty() {
            return Err("text is empty".to_owned());
        }
        match self.role {
            Speaker::User => Message::user(&self.text),
            Speaker::Assistant => Message::assistant(vec![Part::ours(Content::Text {
                text: self.text.clone(),
            })]),
        }
        .map_err(|error| error.to_string())
    }
}

impl fmt::Display for TaskAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\u{201c}{}\u{201d} {}",
            self.has.join(" "),
            open_or_done(self.completed)
        )
    }
}

/// Returns the state of a task as reports name it.
pub(crate) fn open_or_done(completed: bool) -> &'static str {
    if completed { "done" } else { "open" }
}

/// serde counts lines from the start of the case, so only the column is kept.
fn in_one_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (column {})", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_bad(line: &str, expected: &str) {
        let text = format!("\n{line}\n");
        let error = parse("cases.jsonl", &text).expect_err("a bad line");
        assert_eq!(error.to_string(), format!("cases.jsonl:2: {expected}"));
    }

    #[test]
    fn a_full_case_is_read() {
        let cases = parse(
            "-",
            r#"{"id":"a","tasks":[{"description":"Feed the owl","completed":true}],"history":[{"role":"user","text":"hi"},{"role":"assistant","text":"hello"}],"input":"x","expect":{"decision":["INVOKE_TOOL"],"tools":["add_task"],"pending":{"tool":"delete_task","task_id":"1"},"reply_has":["a"],"reply_lacks":["b"],"tasks_after":[{"has":["owl"],"completed":true}]}}"#,
        )
        .expect("a case");
        assert_eq!(cases.len(), 1);
        assert_eq!(
            cases[0]
                .history()
                .iter()
                .map(Message::text)
                .collect::<Vec<_>>(),
            ["hi", "hello"]
        );
        assert_eq!(
            cases[0].expect.decision.as_deref(),
            Some(&[DecisionKind::InvokeTool][..])
        );
    }

    #[test]
    fn blank_lines_are_no_cases() {
        assert_eq!(parse("-", "\n  \n"), Ok(Vec::new()));
    }

    #[test]
    fn the_line_of_a_bad_case_is_named() {
        check_bad("{", "EOF while parsing an object (column 1)");
        check_bad(
            r#"{"id":"a","tasks":[],"input":"x","expect":{"decisions":["INVOKE_TOOL"]}}"#,
            "unknown field `decisions`, expected one of `decision`, `tools`, `pending`, `reply_has`, `reply_lacks`, `tasks_after`, `facts_after`, `note_today` (column 54)",
        );
        check_bad(
            r#"{"id":"a","tasks":[],"expect":{"tools":[]}}"#,
            "missing field `input` (column 43)",
        );
        check_bad(
            r#"{"id":"a","tasks":[],"input":"x","expect":{}}"#,
            "expect is empty: the case could not fail",
        );
        check_bad(
            r#"{"id":"a","tasks":[],"input":"x","expect":{"decision":[]}}"#,
            "expect.decision is empty: the case could not pass",
        );
        check_bad(
            r#"{"id":" ","tasks":[],"input":"x","expect":{"tools":[]}}"#,
            "id is empty",
        );
        check_bad(
            r#"{"id":"a","tasks":[],"input":" ","expect":{"tools":[]}}"#,
            "input is empty",
        );
        check_bad(
            r#"{"id":"a","tasks":[],"history":[{"role":"user","text":""}],"input":"x","expect":{"tools":[]}}"#,
            "history[0]: text is empty",
        );
    }

    #[test]
    fn a_word_that_is_no_decision_is_an_error() {
        let line = r#"{"id":"a","tasks":[],"input":"x","expect":{"decision":["SHRUG"]}}"#;
        let error = parse("-", line).expect_err("no such decision").to_string();
        assert!(error.contains("unknown variant `SHRUG`"), "{error}");
    }
}
