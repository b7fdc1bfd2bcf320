//! Shows a running turn: the answer on standard output, its progress on standard error.

mod blocks; // splits streaming Markdown into final blocks
mod code; // syntax colours of code
mod footer; // tokens, cost and time of a turn
pub(crate) mod live; // live lines: status and unfinished answer
mod markdown; // Markdown blocks as lines
pub(crate) mod prompt_progress; // progress of reading the prompt
mod table; // tables as lines
mod theme; // styles
mod thinking; // the model's thinking
mod tools; // lines of tool calls
mod wrap; // word wrapping of styled text

#[cfg(test)]
mod fuzz;

pub(crate) use footer::{Spent, context_meter, footer};

use std::time::Duration;

use adjutant_core::{
    AgentResponse, CallId, ModelError, OutcomeCategory, PromptProgress, ToolCall, ToolResult,
    TurnError, TurnId, words,
};
use adjutant_memory::Vault;
use adjutant_runtime::RunEvent;
use tokio::time::Instant;

use crate::terminal::display::{clean, clip, millis, plural};
use crate::terminal::screen::{Screen, dim};
use crate::terminal::stream_json;
use blocks::{Block, Blocks};
use live::{Countdown, Status};
use markdown::Layout;
use theme::Theme;
use thinking::ThinkingLines;
use tools::Running;

/// Characters of a failed attempt's reason at most.
const REASON_CHARS: usize = 200;

/// Bytes of the unfinished answer that are laid out for the live lines.
const TAIL_BYTES: usize = 2 * 1_024;

/// Lays out a whole answer for the screen, as it was shown when it was streamed. `vault` resolves its
/// links to notes.
pub(crate) fn laid_out(screen: &Screen, vault: Option<Vault>, answer: &str) -> String {
    Layout::new(Theme::new(screen.styles_answers()))
        .with_notes(vault)
        .whole(answer, screen.columns())
}

/// Returns the answer without the sentence that the service has for an error of the model: whoever is
/// at the terminal owns the key, and reads the error itself below the answer. A refusal stays.
fn without_error_sentence(response: &AgentResponse) -> &str {
    let sentence = match &response.error {
        Some(TurnError::Model { error }) if !matches!(error, ModelError::Refused { .. }) => {
            words::for_model_error(error)
        }
        _ => return &response.content,
    };
    let content = response.content.strip_suffix(&*sentence);
    content.unwrap_or(&response.content)
}

/// Shows the events of one run.
pub(crate) struct Renderer<'a> {
    screen: &'a Screen,
    layout: Layout,
    /// True if the answer is shown while it arrives; else only its final form is, or what had
    /// arrived before it broke off.
    live: bool,
    /// Text of the last model call so far. Where answers are not shown live, it is cleared after
    /// each call.
    streamed: String,
    blocks: Blocks,
    thinking_lines: ThinkingLines,
    running: Running,
    /// The call whose line is unfinished, where there is no live line.
    open_line: Option<CallId>,
    status: Status,
    /// The activity after the prompt is read: thinking or writing.
    phase: &'static str,
    /// Progress of the prompt while the model reads it.
    reading: Option<PromptProgress>,
    /// The quarter of the prompt reported last, where there is no live line.
    reported_quarter: Option<u32>,
    /// Bytes of text and thinking received in this run.
    bytes: u64,
    /// The turn that is shown. A run may also finish a turn that another terminal began in the same
    /// conversation.
    turn: Option<TurnId>,
    /// Answers of earlier turns of this run, which are on the screen already.
    earlier: Vec<String>,
}

impl<'a> Renderer<'a> {
    /// Creates a renderer. `answers` prints answers as text; `vault` resolves their links to notes.
    pub(crate) fn new(screen: &'a Screen, answers: bool, vault: Option<Vault>) -> Self {
        Self {
            screen,
            layout: Layout::new(Theme::new(screen.styles_answers())).with_notes(vault),
            live: answers && screen.shows_answers_live(),
            streamed: String::new(),
            blocks: Blocks::default(),
            thinking_lines: ThinkingLines::default(),
            running: Running::default(),
            open_line: None,
            status: Status::new("waiting"),
            phase: "answering",
            reading: None,
            reported_quarter: None,
            bytes: 0,
            turn: None,
            earlier: Vec::new(),
        }
    }

    pub(crate) fn event(&mut self, event: &RunEvent) {
        if self.screen.streams_events()
            && let Some(line) = stream_json::line(event)
        {
            self.screen.answer_line(&line);
        }
        // Any event but these means that the prompt was read. A run that ends before keeps the
        // progress, for the message about it.
        if !matches!(
            event,
            RunEvent::Reading(_) | RunEvent::Noticed(_) | RunEvent::Finished(_)
        ) {
            self.reading = None;
        }
        match event {
            RunEvent::TurnStarted { turn, .. } => self.turn_started(*turn),
            RunEvent::Reading(progress) => self.reading(*progress),
            RunEvent::ModelStarted { .. } => {
                self.phase = "answering";
                self.reported_quarter = None;
                self.end_text();
                // The text of an earlier attempt at this call is void.
                self.streamed.clear();
                self.start_activity(Status::new("waiting"));
            }
            RunEvent::Text(text) => self.on_text(text),
            RunEvent::Thinking(text) => self.thinking(text),
            RunEvent::Retrying {
                attempt,
                wait,
                reason,
            } => self.retrying(*attempt, *wait, reason),
            RunEvent::ModelFinished { .. } => {
                self.end_text();
                if !self.live {
                    // The response has the whole text.
                    self.streamed.clear();
                }
            }
            RunEvent::SummaryStarted { messages, .. } => {
                self.phase = "summarizing";
                self.reported_quarter = None;
                self.start_activity(Status::new(format!(
                    "summarizing {}",
                    plural(*messages as u64, "older message", "older messages")
                )));
            }
            RunEvent::SummaryProgress { bytes } => {
                self.bytes += *bytes as u64;
                self.continue_activity(self.phase);
            }
            RunEvent::ToolStarted { call } => self.tool_started(call),
            RunEvent::ToolProgress { call, progress, .. } => {
                self.running.set_progress(call, &progress.to_string());
                if self.screen.shows_work() && self.screen.shows_live() {
                    self.continue_activity(&self.running.describe().unwrap_or_default());
                }
            }
            RunEvent::ToolFinished {
                call,
                tool,
                result,
                summary,
                ms,
            } => {
                self.tool_finished(call, tool, result, summary.as_deref(), *ms);
            }
            RunEvent::ToolRefused { tool, message } if self.screen.shows_work() => {
                self.close_line();
                self.end_text();
                self.screen.side_line(&dim(&tools::refused(tool, message)));
            }
            // A part that the model cannot be sent is the same at every turn, so it is printed with
            // `-v` only.
            RunEvent::Noticed(notice) if notice.code == "not_sent" && !self.screen.verbose() => {}
            RunEvent::Noticed(notice) => {
                self.close_line();
                self.screen.notice(&notice.code, &notice.text);
            }
            _ => {}
        }
    }

    /// Prints the final answer, unless it is on the screen already. `asked`: a confirmation
    /// follows, which states it better.
    pub(crate) fn finish(&mut self, response: &AgentResponse, asked: bool) {
        let content = clean(without_error_sentence(response));
        let content = content.trim();
        let shown = self.streamed.trim().to_owned();
        self.end_lines();
        if asked
            || (self.live
                && (shown == content || self.earlier.iter().any(|earlier| earlier == content)))
        {
            return;
        }
        // The streamed part is shown once.
        let rest = content.strip_prefix(&shown).unwrap_or(content).trim_start();
        if !self.live {
            let is_whole =
                response.error.is_none() && response.outcome != OutcomeCategory::Cancelled;
            if shown.is_empty() || (is_whole && content.starts_with(&shown)) {
                if !content.is_empty() {
                    self.screen.answer_line(content);
                }
            } else {
                // The answer broke off. The reader of a pipe gets what there is; the exit code says
                // that it is incomplete.
                self.screen.answer_line(&shown);
                if !rest.is_empty() {
                    self.screen.note(rest);
                }
            }
            return;
        }
        if rest.is_empty() {
            return;
        }
        // Half of an answer is on the screen; the note that it was cancelled is not part of it.
        if response.outcome == OutcomeCategory::Cancelled {
            self.screen.note(rest);
            return;
        }
        let rest = self.layout.whole(rest, self.screen.columns());
        self.screen.answer(&rest);
    }

    /// Returns the progress of the prompt, if the run ended before all of it was read.
    pub(crate) fn unread(&self) -> Option<PromptProgress> {
        self.reading
    }

    /// Prints unfinished text as it is and removes the live line, which leaves the cursor at the
    /// beginning of a line.
    pub(crate) fn end_lines(&mut self) {
        self.close_line();
        self.end_text();
        self.streamed.clear();
        if self.screen.shows_work() {
            // After Ctrl-C no event reports the end of calls that were running.
            for line in self.running.unfinished() {
                self.screen.side_line(&dim(&line));
            }
        }
        self.screen.end_live();
    }

    fn turn_started(&mut self, turn: TurnId) {
        if self.turn.replace(turn).is_some_and(|before| before != turn) {
            self.close_line();
            self.end_text();
            self.earlier
                .push(std::mem::take(&mut self.streamed).trim().to_owned());
            self.screen.note("the answer to a message from elsewhere:");
        }
    }

    /// Prints a line about the turn, unless only its answer is shown.
    pub(crate) fn print_note(&mut self, line: &str) {
        if self.screen.shows_work() {
            self.close_line();
            self.end_text();
            self.screen.side_line(&dim(line));
        }
    }

    fn on_text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        let text = clean(text);
        // Leading newlines of a model are no part of the answer.
        let text = if self.streamed.is_empty() {
            text.trim_start()
        } else {
            text.as_str()
        };
        self.streamed.push_str(text);
        self.end_thinking();
        if self.live && !text.is_empty() {
            self.close_line();
            let done = self.blocks.push(text);
            self.print_blocks(&done);
        }
        self.continue_activity("answering");
    }

    fn reading(&mut self, progress: PromptProgress) {
        if progress.done >= progress.total {
            self.reading = None;
            self.start_activity(Status {
                since: self.status.since,
                ..Status::new(self.phase)
            });
            return;
        }
        self.reading = Some(progress);
        if self.screen.shows_live() {
            // The seconds go on from the start of the wait, of which reading is a part.
            self.start_activity(prompt_progress::status(progress, self.status.since));
        } else if let Some(line) = prompt_progress::line(progress, self.reported_quarter) {
            self.screen.note(&line);
            self.reported_quarter = Some(prompt_progress::quarter(progress));
        }
    }

    fn thinking(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        if self.screen.shows_thinking() {
            let lines = self.thinking_lines.push(text, self.screen.columns());
            if !lines.is_empty() {
                self.close_line();
                let rest = self.blocks.finish();
                self.print_blocks(&rest);
            }
            self.print_thinking(&lines);
        }
        self.continue_activity("thinking");
    }

    fn print_thinking(&self, lines: &[String]) {
        lines
            .iter()
            .for_each(|line| self.screen.side_line(&dim(line)));
    }

    /// Prints the rest of the model's thinking.
    fn end_thinking(&mut self) {
        let rest = self.thinking_lines.finish();
        self.print_thinking(&rest);
    }

    fn retrying(&mut self, attempt: u32, wait: Duration, reason: &str) {
        self.close_line();
        self.end_text();
        // The attempt starts from the beginning.
        self.streamed.clear();
        let (again, reason) = (
            millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            clip(reason, REASON_CHARS),
        );
        self.screen.note(&format!(
            "  ↻ attempt {attempt} failed: {reason}; again in {again}"
        ));
        // No event marks the start of the next attempt: it starts when the wait is over.
        let attempt = format!("waiting, attempt {}", attempt.saturating_add(1));
        let countdown = Instant::now().checked_add(wait).map(|until| Countdown {
            until,
            before: " ",
            after: "",
            then: attempt,
        });
        self.start_activity(Status {
            countdown,
            ..Status::new("trying again in")
        });
    }

    fn tool_started(&mut self, call: &ToolCall) {
        if !self.screen.shows_work() {
            return;
        }
        self.close_line();
        self.end_text();
        let line = self.running.begin(call);
        if self.screen.shows_live() {
            self.show_running_calls();
        } else if self.screen.shows_progress() {
            self.screen.side(&dim(&line));
            self.open_line = Some(call.id.clone());
        }
    }

    fn tool_finished(
        &mut self,
        call: &CallId,
        tool: &str,
        result: &ToolResult,
        summary: Option<&str>,
        ms: u64,
    ) {
        if self.screen.shows_work() {
            let (line, end) = (self.running.end(call, tool), tools::end(result, ms));
            if self.open_line.as_ref() == Some(call) {
                self.open_line = None;
                self.screen.side_line(&dim(&end));
            } else {
                self.close_line();
                self.end_text();
                self.screen.side_line(&dim(&format!("{line}{end}")));
            }
        }
        // A change to the user's notes or facts is printed even with less output, except with `-q`.
        if let Some(words) = tools::change_summary(result, summary) {
            self.close_line();
            self.screen.note(&words);
        }
        self.show_running_calls();
    }

    /// Shows the running calls; if there are none, the turn waits for the model.
    fn show_running_calls(&mut self) {
        let words = self
            .running
            .describe()
            .unwrap_or_else(|| "waiting".to_owned());
        self.start_activity(Status::new(words));
    }

    /// Starts a new activity.
    fn start_activity(&mut self, status: Status) {
        self.status = status;
        self.show();
    }

    /// Continues the current activity, or starts it.
    fn continue_activity(&mut self, words: &str) {
        if self.status.words != words {
            self.status = Status {
                since: self.status.since,
                ..Status::new(words)
            };
        }
        self.show();
    }

    fn show(&mut self) {
        // Four bytes per token on average: the tokenizer of most models is not available here.
        self.status.tokens = self.bytes.div_ceil(4);
        let tail = match self.thinking_lines.unfinished() {
            "" => self.blocks.unfinished(TAIL_BYTES),
            thought => thought.to_owned(),
        };
        self.screen.live(&self.status, &tail);
    }

    /// Prints final blocks.
    fn print_blocks(&mut self, done: &[Block]) {
        let columns = self.screen.columns();
        let shown: String = done
            .iter()
            .map(|block| self.layout.render(block, columns))
            .collect();
        if !shown.is_empty() {
            self.screen.answer(&shown);
        }
    }

    /// Prints the rest of the running call's thinking and text.
    fn end_text(&mut self) {
        self.end_thinking();
        let rest = self.blocks.finish();
        self.print_blocks(&rest);
    }

    /// Ends the unfinished line of a tool call, where there is no live line.
    fn close_line(&mut self) {
        if self.open_line.take().is_some() {
            self.screen.side("\n");
        }
    }
}
