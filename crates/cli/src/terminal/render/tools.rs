//! Lines of tool calls: `⚙ add_task {"description":"buy milk"}  ✓ 2 ms`.

use adjutant_core::{CallId, ToolCall, ToolResult};

use crate::terminal::display::{clip, json_line, millis};

/// Characters of a call's arguments at most.
const ARGUMENTS_CHARS: usize = 160;

/// Characters of a tool's name at most.
const NAME_CHARS: usize = 64;

/// First character of a tool's summary if it made a change that the user can undo.
const WRITTEN: char = '✎';

/// The running calls, in the order of their start.
#[derive(Debug, Default)]
pub(super) struct Running(Vec<Call>);

/// A running call.
#[derive(Debug)]
struct Call {
    id: CallId,
    line: String,
    /// Progress in the tool's own words.
    at: Option<String>,
}

impl Running {
    /// Adds a call and returns its line.
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

    /// Sets the progress of a call.
    pub(super) fn set_progress(&mut self, call: &CallId, words: &str) {
        if let Some(running) = self.0.iter_mut().find(|running| running.id == *call) {
            running.at = Some(clip(words, ARGUMENTS_CHARS));
        }
    }

    /// Removes a call and returns its line as it began.
    pub(super) fn end(&mut self, call: &CallId, tool: &str) -> String {
        let place = self.0.iter().position(|running| running.id == *call);
        place.map_or_else(
            || format!("  ⚙ {}", name(tool)),
            |place| self.0.remove(place).line,
        )
    }

    /// Describes the running calls: one with its arguments or progress; several by their names,
    /// with the first progress.
    pub(super) fn describe(&self) -> Option<String> {
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

    /// Returns the lines of calls whose end was not reported.
    pub(super) fn unfinished(&mut self) -> Vec<String> {
        self.0
            .drain(..)
            .map(|call| format!("{}  … not finished", call.line))
            .collect()
    }
}

/// Returns the end of a call's line: result and time.
pub(super) fn end(result: &ToolResult, ms: u64) -> String {
    match &result.error {
        Some(error) if !result.success => format!("  ✗ {}", clip(error, ARGUMENTS_CHARS)),
        _ => format!("  ✓ {}", millis(ms)),
    }
}

/// Returns the tool's summary, if it made a change that the user can undo.
pub(super) fn change_summary(result: &ToolResult, summary: Option<&str>) -> Option<String> {
    let words = summary.filter(|words| result.success && words.starts_with(WRITTEN))?;
    Some(format!("  {}", crate::terminal::display::clean_line(words)))
}

/// Returns the line of a call that the gate refused.
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
        assert_eq!(running.describe(), None);
        let milk = call("a", "add_task", json!({ "description": "milk" }));
        assert_eq!(
            running.begin(&milk),
            "  ⚙ add_task {\"description\":\"milk\"}"
        );
        assert_eq!(
            running.describe().unwrap(),
            "⚙ add_task {\"description\":\"milk\"}"
        );
        let list = call("b", "list_tasks", json!({}));
        running.begin(&list);
        running.set_progress(&list.id, "3 of 10: reading");
        assert_eq!(
            running.describe().unwrap(),
            "⚙ add_task, list_tasks  3 of 10: reading"
        );
        running.end(&list.id, "list_tasks");
        running.begin(&list);
        assert_eq!(running.describe().unwrap(), "⚙ add_task, list_tasks");
        assert_eq!(running.end(&list.id, "list_tasks"), "  ⚙ list_tasks {}");
        assert_eq!(running.end(&list.id, "list_tasks"), "  ⚙ list_tasks");
        assert_eq!(
            running.unfinished(),
            ["  ⚙ add_task {\"description\":\"milk\"}  … not finished"]
        );
        assert_eq!(running.describe(), None);
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
    fn the_end_of_a_call_has_its_time_or_its_error() {
        let good = result(json!({ "success": true, "data": {} }));
        let bad = result(json!({ "success": false, "error": "no such task\u{1b}[31m" }));
        assert_eq!(end(&good, 2), "  ✓ 2 ms");
        assert_eq!(end(&bad, 2), "  ✗ no such task[31m");
        let words = "✎ remembered: likes\ttea  (undo: /undo)";
        assert_eq!(
            change_summary(&good, Some(words)).unwrap(),
            "  ✎ remembered: likes tea  (undo: /undo)"
        );
        assert_eq!(change_summary(&bad, Some(words)), None);
        assert_eq!(change_summary(&good, Some("There are no notes.")), None);
    }
}
