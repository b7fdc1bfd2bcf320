//! Lines of tool calls: `⚙ add_task {"description":"buy milk"}  ✓ 2 ms`.

use adjutant_core::{CallId, ToolCall, ToolResult};

use crate::display::{clip, json_line, millis};

/// The longest arguments shown on a tool's line, in characters.
const ARGUMENTS_CHARS: usize = 160;

/// The longest name of a tool, in characters.
const NAME_CHARS: usize = 64;

/// What begins the words of a tool that wrote what the person can take back.
const WRITTEN: char = '✎';

/// Calls that run, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Running(Vec<Call>);

/// A call that runs.
#[derive(Debug)]
struct Call {
    id: CallId,
    line: String,
    /// Its progress, in its tool's words.
    at: Option<String>,
}

impl Running {
    /// A call begins. The answer is its line.
    pub(super) fn begin(&mut self, call: &ToolCall) -> String {
        let arguments = clip(&json_line(&call.arguments), ARGUMENTS_CHARS);
        let line = format!("  ⚙ {} {arguments}", name(&call.name));
        self.0.push(Call {
            id: call.id.clone(),
            line: line.clone(),
            at: None,
        });
        line
    }

    /// A call says how far it is.
    pub(super) fn is_at(&mut self, call: &CallId, words: &str) {
        if let Some(running) = self.0.iter_mut().find(|running| running.id == *call) {
            running.at = Some(clip(words, ARGUMENTS_CHARS));
        }
    }

    /// A call ends. The answer is its line, as it began.
    pub(super) fn end(&mut self, call: &CallId, tool: &str) -> String {
        let place = self.0.iter().position(|running| running.id == *call);
        place.map_or_else(
            || format!("  ⚙ {}", name(tool)),
            |place| self.0.remove(place).line,
        )
    }

    /// Describes the running calls in a few words: one call with its arguments, or with how far it
    /// is; several by their names, with the first that says how far it is.
    pub(super) fn words(&self) -> Option<String> {
        match self.0.as_slice() {
            [] => None,
            [Call { line, at: None, .. }] => Some(line.trim_start().to_owned()),
            running => {
                let names: Vec<&str> = running
                    .iter()
                    .filter_map(|call| call.line.trim_start_matches([' ', '⚙']).split(' ').next())
                    .collect();
                let at = running.iter().find_map(|call| call.at.as_deref());
                let at = at.map(|at| format!("  {at}")).unwrap_or_default();
                Some(format!("⚙ {}{at}", names.join(", ")))
            }
        }
    }

    /// The lines of calls whose end nobody saw.
    pub(super) fn left(&mut self) -> Vec<String> {
        self.0
            .drain(..)
            .map(|call| format!("{}  … not finished", call.line))
            .collect()
    }
}

/// What stands behind the call when it ended.
pub(super) fn end(result: &ToolResult, ms: u64) -> String {
    match &result.error {
        Some(error) if !result.success => format!("  ✗ {}", clip(error, ARGUMENTS_CHARS)),
        _ => format!("  ✓ {}", millis(ms)),
    }
}

/// The tool's own words, if it wrote something the person can take back.
pub(super) fn written(result: &ToolResult, summary: Option<&str>) -> Option<String> {
    let words = summary.filter(|words| result.success && words.starts_with(WRITTEN))?;
    Some(format!("  {}", crate::display::clean_line(words)))
}

/// A call that the gate refused.
pub(super) fn refused(tool: &str, message: &str) -> String {
    format!("  ⚙ {}  ✗ {}", name(tool), clip(message, ARGUMENTS_CHARS))
}

fn name(tool: &str) -> String {
    clip(tool, NAME_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
        serde_json::from_value(json!({ "id": id, "name": name, "arguments": arguments })).unwrap()
    }

    fn result(value: Value) -> ToolResult {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn several_calls_at_once_keep_their_lines() {
        let mut running = Running::default();
        assert_eq!(running.words(), None);
        let milk = call("a", "add_task", json!({ "description": "milk" }));
        assert_eq!(
            running.begin(&milk),
            "  ⚙ add_task {\"description\":\"milk\"}"
        );
        assert_eq!(
            running.words().unwrap(),
            "⚙ add_task {\"description\":\"milk\"}"
        );
        let list = call("b", "list_tasks", json!({}));
        running.begin(&list);
        running.is_at(&list.id, "3 of 10: reading");
        assert_eq!(
            running.words().unwrap(),
            "⚙ add_task, list_tasks  3 of 10: reading"
        );
        running.end(&list.id, "list_tasks");
        running.begin(&list);
        assert_eq!(running.words().unwrap(), "⚙ add_task, list_tasks");
        assert_eq!(running.end(&list.id, "list_tasks"), "  ⚙ list_tasks {}");
        assert_eq!(running.end(&list.id, "list_tasks"), "  ⚙ list_tasks");
        assert_eq!(
            running.left(),
            ["  ⚙ add_task {\"description\":\"milk\"}  … not finished"]
        );
        assert_eq!(running.words(), None);
    }

    #[test]
    fn names_and_arguments_are_short_and_cannot_steer_the_terminal() {
        let mut running = Running::default();
        let long = call(
            "a",
            &format!("\u{1b}[2J{}", "n".repeat(99)),
            json!({ "x": "\u{1b}]52;c;x\u{7}".repeat(99) }),
        );
        let line = running.begin(&long);
        assert!(
            line.chars().count() <= 4 + NAME_CHARS + 1 + ARGUMENTS_CHARS,
            "{line}"
        );
        assert!(!line.chars().any(adjutant_core::is_control), "{line:?}");
    }

    #[test]
    fn an_end_says_what_came_of_it() {
        let good = result(json!({ "success": true, "data": {} }));
        let bad = result(json!({ "success": false, "error": "no such task\u{1b}[31m" }));
        assert_eq!(end(&good, 2), "  ✓ 2 ms");
        assert_eq!(end(&bad, 2), "  ✗ no such task[31m");
        let words = "✎ remembered: likes\ttea  (undo: /undo)";
        assert_eq!(
            written(&good, Some(words)).unwrap(),
            "  ✎ remembered: likes tea  (undo: /undo)"
        );
        assert_eq!(written(&bad, Some(words)), None);
        assert_eq!(written(&good, Some("There are no notes.")), None);
    }
}
