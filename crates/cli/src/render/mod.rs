//! A running turn as a person sees it: the answer on standard output, the way there on standard
//! error.

mod blocks; // what of an answer is final
mod code; // colours of code
mod footer; // what a turn took
pub(crate) mod live; // what is happening now
mod look; // styles
mod markdown; // blocks as lines
pub(crate) mod reading; // what of a prompt is read
mod table; // tables as lines
mod thoughts; // what a model thinks
mod tools; // lines of calls
mod wrap; // words in lines

#[cfg(test)]
mod generated;

pub(crate) use footer::{Spent, context_meter, footer};

use std::time::Duration;

use adjutant_core::{
    AgentResponse, CallId, OutcomeCategory, PromptProgress, ToolCall, ToolResult, TurnId,
};
use adjutant_memory::Vault;
use adjutant_runtime::RunEvent;
use tokio::time::Instant;

use crate::display::{clean, clip, millis, plural};
use crate::screen::{Screen, dim};
use crate::stream_json;
use blocks::{Block, Blocks};
use live::{Countdown, Status};
use look::Look;
use markdown::Layout;
use thoughts::Thoughts;
use tools::Running;

/// The longest reason shown for a failed attempt, in characters.
const REASON_CHARS: usize = 200;

/// Bytes of the unfinished answer that the live line looks at.
const TAIL_BYTES: usize = 2 * 1_024;

/// Lays out a whole answer for the screen: as it was shown when it came. `vault`: the notes that it
/// may link to.
pub(crate) fn laid_out(screen: &Screen, vault: Option<Vault>, answer: &str) -> String {
    Layout::new(Look::new(screen.styles_answers()))
        .with_notes(vault)
        .whole(answer, screen.columns())
}

/// Shows the events of one run.
pub(crate) struct Renderer<'a> {
    screen: &'a Screen,
    layout: Layout,
    /// Whether the answer is shown while it comes. If not, only its final form is, or what came
    /// before it broke.
    live: bool,
    /// The last model call's text, as far as it came; where answers are not shown live, only while
    /// it comes.
    streamed: String,
    blocks: Blocks,
    thoughts: Thoughts,
    running: Running,
    /// The call whose line the cursor is on, where there is no live line.
    open_line: Option<CallId>,
    status: Status,
    /// What the model writes once it has read the prompt, in a word.
    phase: &'static str,
    /// The progress of the prompt, while the model reads it.
    reading: Option<PromptProgress>,
    /// The quarter of it that the last line told of, where no live line can be shown.
    told_quarter: Option<u32>,
    /// Bytes the model said or thought in this run.
    bytes: u64,
    /// The turn that is shown. A run may see to another terminal's message in the same
    /// conversation, too.
    turn: Option<TurnId>,
    /// The answers of the turns before it, which are on the screen already.
    earlier: Vec<String>,
}

impl<'a> Renderer<'a> {
    /// `answers`: whether answers are shown as text. `vault`: the notes that they may link to.
    pub(crate) fn new(screen: &'a Screen, answers: bool, vault: Option<Vault>) -> Self {
        Self {
            screen,
            layout: Layout::new(Look::new(screen.styles_answers())).with_notes(vault),
            live: answers && screen.shows_answers_live(),
            streamed: String::new(),
            blocks: Blocks::default(),
            thoughts: Thoughts::default(),
            running: Running::default(),
            open_line: None,
            status: Status::new("waiting"),
            phase: "answering",
            reading: None,
            told_quarter: None,
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
                self.told_quarter = None;
                self.end_text();
                self.streamed.clear();
                self.happens(Status::new("waiting"));
            }
            RunEvent::Text(text) => self.text(text),
            RunEvent::Thinking(text) => self.thinking(text),
            RunEvent::Retrying {
                attempt,
                wait,
                reason,
            } => self.retrying(*attempt, *wait, reason),
            RunEvent::ModelFinished { .. } => {
                self.end_text();
                if !self.live {
                    // The whole of it is in the response.
                    self.streamed.clear();
                }
            }
            RunEvent::SummaryStarted { messages, .. } => {
                self.phase = "summarizing";
                self.told_quarter = None;
                self.happens(Status::new(format!(
                    "summarizing {}",
                    plural(*messages as u64, "older message", "older messages")
                )));
            }
            RunEvent::SummaryProgress { bytes } => {
                self.bytes += *bytes as u64;
                self.go_on(self.phase);
            }
            RunEvent::ToolStarted { call } => self.tool_started(call),
            RunEvent::ToolProgress { call, progress, .. } => {
                self.running.is_at(call, &progress.to_string());
                if self.screen.shows_work() && self.screen.shows_live() {
                    self.go_on(&self.running.words().unwrap_or_default());
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
            // What a model cannot be sent is the same at every turn: told where somebody asks for
            // the details.
            RunEvent::Noticed(notice) if notice.code == "not_sent" && !self.screen.verbose() => {}
            RunEvent::Noticed(notice) => {
                self.close_line();
                self.screen.notice(&notice.code, &notice.text);
            }
            _ => {}
        }
    }

    /// The final words, unless they are on the screen already. `asked`: a question about what waits
    /// follows, and says it better.
    pub(crate) fn finish(&mut self, response: &AgentResponse, asked: bool) {
        let content = clean(&response.content);
        let content = content.trim();
        let shown = self.streamed.trim().to_owned();
        self.end_lines();
        if asked
            || (self.live
                && (shown == content || self.earlier.iter().any(|earlier| earlier == content)))
        {
            return;
        }
        if !self.live {
            if shown.is_empty() {
                self.screen.answer_line(content);
            } else {
                // The answer broke. Whoever reads the pipe gets what there is, and the exit code
                // says that it is not all.
                self.screen.answer_line(&shown);
                self.screen.note(content);
            }
            return;
        }
        // Half an answer is on the screen; that it was stopped is no part of it.
        if response.outcome == OutcomeCategory::Cancelled {
            self.screen.note(content);
            return;
        }
        // What was streamed is there already.
        let rest = content.strip_prefix(&shown).unwrap_or(content);
        let rest = self.layout.whole(rest.trim_start(), self.screen.columns());
        self.screen.answer(&rest);
    }

    /// Returns the progress of the prompt if the run ended before all of it was read.
    pub(crate) fn unread(&self) -> Option<PromptProgress> {
        self.reading
    }

    /// What is not final is shown as it is, the live line goes, and the cursor is at the beginning
    /// of a line.
    pub(crate) fn end_lines(&mut self) {
        self.close_line();
        self.end_text();
        self.streamed.clear();
        if self.screen.shows_work() {
            for line in self.running.left() {
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

    /// Shows a line about the turn, unless only its answer is shown.
    pub(crate) fn beside(&mut self, line: &str) {
        if self.screen.shows_work() {
            self.close_line();
            self.end_text();
            self.screen.side_line(&dim(line));
        }
    }

    fn text(&mut self, text: &str) {
        self.count(text);
        let text = clean(text);
        // A model's leading newlines are no part of what it says.
        let text = if self.streamed.is_empty() {
            text.trim_start()
        } else {
            text.as_str()
        };
        self.streamed.push_str(text);
        self.end_thoughts();
        if self.live && !text.is_empty() {
            self.close_line();
            let done = self.blocks.push(text);
            self.put(&done);
        }
        self.go_on("answering");
    }

    fn reading(&mut self, progress: PromptProgress) {
        if progress.done >= progress.total {
            self.reading = None;
            self.happens(Status {
                since: self.status.since,
                ..Status::new(self.phase)
            });
            return;
        }
        self.reading = Some(progress);
        if self.screen.shows_live() {
            self.happens(reading::status(progress, self.status.since));
        } else if let Some(line) = reading::line(progress, self.told_quarter) {
            self.screen.note(&line);
            self.told_quarter = Some(reading::quarter(progress));
        }
    }

    fn thinking(&mut self, text: &str) {
        self.count(text);
        if self.screen.shows_thinking() {
            let lines = self.thoughts.push(text, self.screen.columns());
            if !lines.is_empty() {
                self.close_line();
                let rest = self.blocks.finish();
                self.put(&rest);
            }
            self.tell_thoughts(&lines);
        }
        self.go_on("thinking");
    }

    fn tell_thoughts(&self, lines: &[String]) {
        lines
            .iter()
            .for_each(|line| self.screen.side_line(&dim(line)));
    }

    /// Shows what is left of the model's thinking.
    fn end_thoughts(&mut self) {
        let rest = self.thoughts.finish();
        self.tell_thoughts(&rest);
    }

    fn count(&mut self, text: &str) {
        self.bytes += text.len() as u64;
    }

    fn retrying(&mut self, attempt: u32, wait: Duration, reason: &str) {
        self.close_line();
        self.end_text();
        // It is said again from the beginning.
        self.streamed.clear();
        let (again, reason) = (
            millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            clip(reason, REASON_CHARS),
        );
        self.screen.note(&format!(
            "  ↻ attempt {attempt} failed: {reason}; again in {again}"
        ));
        // No event begins the next attempt: it begins when the wait is over.
        let attempt = format!("waiting, attempt {}", attempt.saturating_add(1));
        let countdown = Instant::now().checked_add(wait).map(|until| Countdown {
            until,
            before: " ",
            after: "",
            then: attempt,
        });
        self.happens(Status {
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
            self.tools_happen();
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
        // What was written is told to everybody but who wants silence.
        if let Some(words) = tools::written(result, summary) {
            self.close_line();
            self.screen.note(&words);
        }
        self.tools_happen();
    }

    /// What runs is shown; nothing but the model can be waited for if nothing does.
    fn tools_happen(&mut self) {
        let words = self.running.words().unwrap_or_else(|| "waiting".to_owned());
        self.happens(Status::new(words));
    }

    /// Something else happens from now on.
    fn happens(&mut self, status: Status) {
        self.status = status;
        self.show();
    }

    /// The same goes on, or this begins.
    fn go_on(&mut self, words: &str) {
        if self.status.words != words {
            self.status = Status {
                since: self.status.since,
                ..Status::new(words)
            };
        }
        self.show();
    }

    fn show(&mut self) {
        // What four bytes are on average: the tokenizer of most models is not known here.
        self.status.tokens = self.bytes.div_ceil(4);
        let tail = match self.thoughts.unfinished() {
            "" => self.blocks.unfinished(TAIL_BYTES),
            thought => thought.to_owned(),
        };
        self.screen.live(&self.status, &tail);
    }

    /// Shows blocks that are final.
    fn put(&mut self, done: &[Block]) {
        let columns = self.screen.columns();
        let shown: String = done
            .iter()
            .map(|block| self.layout.render(block, columns))
            .collect();
        if !shown.is_empty() {
            self.screen.answer(&shown);
        }
    }

    /// Shows what is left of the running call's thinking and text.
    fn end_text(&mut self) {
        self.end_thoughts();
        let rest = self.blocks.finish();
        self.put(&rest);
    }

    /// Where there is no live line, a tool's line is open until it ends.
    fn close_line(&mut self) {
        if self.open_line.take().is_some() {
            self.screen.side("\n");
        }
    }
}
