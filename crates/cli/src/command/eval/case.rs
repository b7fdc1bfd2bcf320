//! An evaluation case, parsed strictly from a line of JSON: initial state, message, and expected
//! result.

use std::fmt;

use adjutant_core::{Content, Message, Part};
use serde::Deserialize;

use super::expect::Expect;
use super::task_before::TaskBefore;

/// Initial state, message and expected result of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The case's name in reports.
    pub(crate) id: String,
    /// The language of the case, by which summaries group it.
    pub(crate) lang: Option<String>,
    /// The class of the case, by which summaries group it.
    pub(crate) class: Option<String>,
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
        let mut expects = self.expect.alternatives();
        before || expects.any(|expect| expect.facts_after.is_some() || expect.note_today.is_some())
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
        let labels = [("lang", &self.lang), ("class", &self.class)];
        let blank =
            |label: &Option<String>| label.as_ref().is_some_and(|text| text.trim().is_empty());
        if let Some((name, _)) = labels.into_iter().find(|(_, label)| blank(label)) {
            return Err(format!("{name} is empty"));
        }
        self.expect.check(&self.tasks, !self.said.is_empty())?;
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
    use adjutant_core::DecisionKind;

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
            "unknown field `decisions`, expected one of `decision`, `tools`, `pending`, `reply_has`, `reply_lacks`, `tasks_after`, `changes`, `facts_after`, `note_today`, `or` (column 54)",
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
    fn a_case_of_the_short_form_is_read() {
        let cases = parse(
            "-",
            r#"{"id":"a","lang":"de","class":"two-orders","tasks":["Eule füttern","Ziege bürsten"],"input":"x","expect":{"changes":{"added":["Milch",{"has":["brot"]}],"completed":["2"],"renamed":{"1":{"is":["a","b"]}}},"pending":[{"tool":"delete_task","task_id":"1"}],"or":[{"decision":["ASK_CLARIFICATION"],"changes":{}}]}}"#,
        )
        .expect("a case");
        let case = &cases[0];
        assert_eq!(case.tasks[0].description.as_str(), "Eule füttern");
        assert!(!case.tasks[0].completed);
        assert_eq!(case.expect.alternatives().count(), 2);
        assert_eq!(
            (case.lang.as_deref(), case.class.as_deref()),
            (Some("de"), Some("two-orders"))
        );
    }

    #[test]
    fn an_expectation_that_can_never_hold_is_an_error() {
        let bad = |expect: &str, reason: &str| {
            let tasks = r#"["Feed the owl",{"description":"Brush the goat","completed":true}]"#;
            check_bad(
                &format!(r#"{{"id":"a","tasks":{tasks},"input":"x","expect":{expect}}}"#),
                reason,
            );
        };
        bad(
            r#"{"changes":{},"tasks_after":[]}"#,
            "expect has both changes and tasks_after: give one of them",
        );
        bad(
            r#"{"changes":{"completed":["3"]}}"#,
            "changes.completed has task 3, and the tasks of the case are 1 to 2",
        );
        bad(
            r#"{"changes":{"completed":["2"]}}"#,
            "changes.completed has task 2, which is done before the turn",
        );
        bad(
            r#"{"changes":{"renamed":{"7":"x"}}}"#,
            "changes.renamed has task 7, and the tasks of the case are 1 to 2",
        );
        bad(
            r#"{"pending":[{"tool":"delete_task","task_id":"3"}]}"#,
            "pending has task 3, and the tasks of the case are 1 to 2",
        );
        bad(
            r#"{"or":[{"tools":[]}]}"#,
            "expect is empty: the case could not fail",
        );
        bad(
            r#"{"tools":[],"or":[{}]}"#,
            "expect.or[0]: expect is empty: the case could not fail",
        );
        bad(
            r#"{"tools":[],"or":[{"tools":[],"or":[{"tools":[]}]}]}"#,
            "expect.or[0] has an or of its own",
        );
        bad(
            r#"{"tools":[],"or":[{"changes":{"completed":["9"]}}]}"#,
            "expect.or[0]: changes.completed has task 9, and the tasks of the case are 1 to 2",
        );
    }

    #[test]
    fn a_word_that_is_no_decision_is_an_error() {
        let line = r#"{"id":"a","tasks":[],"input":"x","expect":{"decision":["SHRUG"]}}"#;
        let error = parse("-", line).expect_err("no such decision").to_string();
        assert!(error.contains("unknown variant `SHRUG`"), "{error}");
    }
}
