//! A running turn as a person sees it: the answer on standard output, the way there on standard error.

use std::time::Duration;

use adjutant_core::{AgentResponse, CallId, Cost, OutcomeCategory, ToolCall, ToolResult, Usage};
use adjutant_runtime::RunEvent;

use crate::display::{clean, clip, json_line, millis, tokens};
use crate::screen::{Screen, dim};

/// The longest arguments shown on a tool's line.
const ARGUMENTS_CHARS: usize = 160;

/// Shows the events of one run.
pub(crate) struct Renderer<'a> {
    screen: &'a Screen,
    /// Whether the answer is shown while it comes. If not, only its final form is.
    live: bool,
    /// What of the running model call's text is on the screen.
    streamed: String,
    /// Calls that run, with their line.
    running: Vec<(CallId, String)>,
    /// The call whose line the cursor is on.
    open_line: Option<CallId>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(screen: &'a Screen, answers: bool) -> Self {
        Self {
            screen,
            live: answers && screen.shows_answers_live(),
            streamed: String::new(),
            running: Vec::new(),
            open_line: None,
        }
    }

    pub(crate) fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::ModelStarted { .. } => {
                self.end_lines();
                self.streamed.clear();
            }
            RunEvent::Text(text) if self.live => self.text(text),
            RunEvent::Retrying { attempt, wait, reason } => {
                self.end_lines();
                let wait = millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                self.screen.note(&format!("  ↻ attempt {attempt} failed: {reason}; again in {wait}"));
            }
            RunEvent::ToolStarted { call } => self.tool_started(call),
            RunEvent::ToolFinished { call, tool, result, ms, .. } => {
                self.tool_finished(call, tool, result, *ms)
            }
            RunEvent::ToolRefused { tool, message } if self.screen.shows_work() => {
                self.end_lines();
                let line = format!("  ⚙ {}  ✗ {}", clip(tool, 64), clip(message, ARGUMENTS_CHARS));
                self.screen.side_line(&dim(&line));
            }
            // What a model cannot be sent is the same at every turn: told where somebody asks for the details.
            RunEvent::Noticed(notice) if notice.code == "not_sent" && !self.screen.verbose() => {}
            RunEvent::Noticed(notice) => {
                self.end_lines();
                self.screen.note(&format!("  ! {}", notice.text));
            }
            _ => {}
        }
    }

    /// The final words, unless they are on the screen already. `asked`: a question about what waits follows, and says
    /// it better.
    pub(crate) fn finish(&mut self, response: &AgentResponse, asked: bool) {
        let content = clean(&response.content);
        let content = content.trim();
        let shown = self.streamed.trim().to_owned();
        self.end_lines();
        if asked || (self.live && shown == content) {
            return;
        }
        // Half an answer is on the screen; that it was stopped is no part of it.
        if response.outcome == OutcomeCategory::Cancelled && self.live {
            self.screen.note(content);
            return;
        }
        self.screen.answer_line(content);
    }

    /// The cursor goes to the beginning of a line.
    pub(crate) fn end_lines(&mut self) {
        if self.open_line.take().is_some() {
            self.screen.side("\n");
        }
        if !self.streamed.is_empty() {
            if !self.streamed.ends_with('\n') {
                self.screen.answer("\n");
            }
            self.streamed.clear();
        }
    }

    fn text(&mut self, text: &str) {
        if self.open_line.take().is_some() {
            self.screen.side("\n");
        }
        let text = clean(text);
        // A model's leading newlines are no part of what it says.
        let text = if self.streamed.is_empty() { text.trim_start() } else { text.as_str() };
        self.screen.answer(text);
        self.streamed.push_str(text);
    }

    fn tool_started(&mut self, call: &ToolCall) {
        if !self.screen.shows_work() {
            return;
        }
        self.end_lines();
        let arguments = clip(&json_line(&call.arguments), ARGUMENTS_CHARS);
        let line = format!("  ⚙ {} {arguments}", clip(&call.name, 64));
        if self.screen.shows_progress() {
            self.screen.side(&dim(&line));
            self.open_line = Some(call.id.clone());
        }
        self.running.push((call.id.clone(), line));
    }

    fn tool_finished(&mut self, call: &CallId, tool: &str, result: &ToolResult, ms: u64) {
        if !self.screen.shows_work() {
            return;
        }
        let end = match &result.error {
            Some(error) if !result.success => format!("  ✗ {}", clip(error, ARGUMENTS_CHARS)),
            _ => format!("  ✓ {}", millis(ms)),
        };
        let place = self.running.iter().position(|(running, _)| running == call);
        let line =
            place.map_or_else(|| format!("  ⚙ {}", clip(tool, 64)), |place| self.running.remove(place).1);
        if self.open_line.as_ref() == Some(call) {
            self.open_line = None;
            self.screen.side_line(&dim(&end));
        } else {
            self.end_lines();
            self.screen.side_line(&dim(&format!("{line}{end}")));
        }
    }
}

/// What a turn cost: `1.2k in · 80 out · $0.00034 · 1.4 s`. `$?`: nobody knows how much money; what cost none says nothing.
pub(crate) fn footer(usage: &Usage, cost: Option<Cost>, took: Duration) -> String {
    let mut parts = Vec::new();
    if let Some(input) = usage.input_tokens {
        parts.push(format!("{} in", tokens(input)));
    }
    if let Some(output) = usage.output_tokens {
        parts.push(format!("{} out", tokens(output)));
    }
    match cost {
        None => parts.push("$?".to_owned()),
        Some(free) if free == Cost::default() => {}
        Some(cost) => parts.push(cost.to_string()),
    }
    parts.push(millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footer_says_what_is_known() {
        let usage = Usage { input_tokens: Some(1_234), output_tokens: Some(80), ..Usage::default() };
        let took = Duration::from_millis(1_400);
        let free = Some(Cost::default());
        assert_eq!(footer(&usage, free, took), "1.2k in · 80 out · 1.4 s");
        assert_eq!(footer(&usage, None, took), "1.2k in · 80 out · $? · 1.4 s");
        assert_eq!(footer(&usage, Cost::from_usd(0.000_34), took), "1.2k in · 80 out · $0.00034 · 1.4 s");
        assert_eq!(footer(&Usage::default(), free, took), "1.4 s");
    }
}
