//! One conversation in a file: as Markdown for people, as JSON for programs.

mod markdown; // text that stays where it is put

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use adjutant_core::port::{ConversationSummary, Loaded};
use adjutant_core::{
    ConversationId, Event, PendingCall, Role, Session, SessionState, TranscriptMessage, UserId, conversation,
    last_summary, session, transcript,
};
use jiff::Timestamp;
use serde::Serialize;

use super::list::title;
use crate::display::{clip, json_line};
use crate::error::CliError;
use crate::report::Pending;
use crate::store::{self, Store};
use markdown::{code, fenced, heading, inert, quoted};

/// Everything of one conversation.
pub(crate) struct Export {
    pub(crate) summary: ConversationSummary,
    /// The models that were asked, in the order they first were.
    pub(crate) models: Vec<String>,
    /// What was said, oldest first, without an instruction.
    pub(crate) messages: Vec<TranscriptMessage>,
    known: Loaded,
    pending: Vec<PendingCall>,
}

/// What `sessions export --json` writes.
#[derive(Serialize)]
struct Written<'a> {
    id: ConversationId,
    title: &'a str,
    started_at: Option<Timestamp>,
    last_activity: Option<Timestamp>,
    state: SessionState,
    turns: usize,
    token_estimate: u32,
    summarized_at: Option<usize>,
    models: &'a [String],
    messages: &'a [TranscriptMessage],
    pending: Vec<Pending>,
}

impl Export {
    /// Reads it.
    ///
    /// # Errors
    /// The store cannot be read, or something in the conversation cannot be understood.
    pub(crate) async fn of(
        store: &dyn Store,
        user: &UserId,
        summary: ConversationSummary,
    ) -> Result<Self, CliError> {
        let known = store.load(&store::key_of(user, summary.id)).await?;
        let mut models: Vec<String> = Vec::new();
        for recorded in &known.events {
            if let Event::TurnStarted { model, .. } = &*recorded.event {
                let model = model.to_string();
                if !models.contains(&model) {
                    models.push(model);
                }
            }
        }
        let mut messages = transcript(&known.events);
        messages.retain(|message| message.role != Role::System);
        let pending = conversation::pending(&known.events);
        Ok(Self { summary, models, messages, known, pending })
    }

    /// Where it stands.
    pub(super) fn session(&self, now: Timestamp, summarize_from: Option<u32>) -> Session {
        session(&self.known, now, summarize_from)
    }

    /// What waits in it for an answer.
    pub(super) fn pending(&self) -> impl Iterator<Item = &PendingCall> {
        self.pending.iter()
    }

    /// How many messages were accepted and not begun.
    pub(super) fn unanswered(&self) -> usize {
        self.known.inbox.len()
    }

    /// As JSON, one object on one line.
    pub(super) fn json(&self, session: &Session) -> String {
        json_line(&Written {
            id: self.summary.id,
            title: &self.summary.title,
            started_at: session.started_at,
            last_activity: session.last_activity,
            state: session.state,
            turns: session.turns,
            token_estimate: session.token_estimate,
            summarized_at: session.summarized_at,
            models: &self.models,
            messages: &self.messages,
            pending: self.pending().map(Pending::of).collect(),
        })
    }

    /// As Markdown. What was said is quoted and what tools got and gave is fenced, so that nothing of it can pass for
    /// something else in the file; and nothing in it is loaded or run when the file is looked at.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", heading(&title(&self.summary)));
        let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
        text += &format!("- Conversation: {}\n", code(&self.summary.id.to_string()));
        text += &format!("- Started: {}\n", time(self.summary.created_at));
        text += &format!("- Last activity: {}\n", time(self.summary.last_activity));
        for model in &self.models {
            text += &format!("- Model: {}\n", code(model));
        }
        if let Some(summary) = last_summary(&self.known.events) {
            let first = summary.summarized_at;
            text += &format!("- Summarized: the model is given a summary of the first {first} messages\n");
        }
        for message in &self.messages {
            let who = match message.role {
                Role::User => "You",
                Role::Assistant => "Assistant",
                Role::Tool => "Tool",
                Role::System => continue,
            };
            let at = message.at.map_or_else(String::new, |at| format!(" · {}", time(at)));
            // A result belongs to the assistant's calls above it.
            match &message.result {
                Some(result) => {
                    let end = if result.success { "✓" } else { "✗" };
                    let name =
                        self.tool_of(message).map_or_else(String::new, |tool| format!(" of {}", code(tool)));
                    text += &format!("\nResult{name} {end}{at}\n\n");
                    text += &match (result.data.as_deref(), &result.error) {
                        (Some(serde_json::Value::String(words)), _) => fenced("text", words),
                        (Some(data), _) => fenced("json", &pretty(data)),
                        (None, Some(error)) => fenced("text", error),
                        (None, None) => fenced("text", &message.content),
                    };
                }
                None => {
                    text += &format!("\n## {who}{at}\n");
                    if !message.content.trim().is_empty() {
                        text += &format!("\n{}", quoted(message.content.trim()));
                    }
                }
            }
            for call in &message.tool_calls {
                text += &format!("\nCall of {}\n\n", code(&call.tool));
                text += &fenced("json", &pretty(&call.arguments));
            }
        }
        for call in &self.pending {
            text += &format!("\n## Waits for an answer\n\n{}", quoted(&clip(&call.preview, 2_000)));
        }
        for input in &self.known.inbox {
            if let adjutant_core::InputBody::Message { text: words, .. } = &input.body {
                text +=
                    &format!("\n## You · {} · not answered yet\n\n{}", time(input.at), quoted(words.trim()));
            }
        }
        inert(text)
    }

    fn tool_of(&self, result: &TranscriptMessage) -> Option<&str> {
        let wanted = result.tool_call_id.as_ref()?;
        let mut calls = self.messages.iter().flat_map(|message| &message.tool_calls);
        calls.find(|call| call.id == *wanted).map(|call| call.tool.as_str())
    }
}

fn pretty(value: &impl Serialize) -> String {
    // Our own types hold no maps with keys other than text, the one thing that cannot be written.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Writes a file. One that is there is replaced only with `force`, and only by a whole new one. Gives its full path.
///
/// # Errors
/// There is one already, or it cannot be written.
pub(crate) fn save(file: &Path, text: &str, force: bool) -> Result<PathBuf, CliError> {
    let place = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            CliError::failed(format!("{} is there already; nothing was written", place.display()))
                .or_try("another name")
                .or_try("--force    replaces it")
        }
        _ => CliError::failed(format!("{} cannot be written", place.display())).because(error.to_string()),
    };
    if !force {
        return write_new(&place, text).map_err(failed).map(|()| place.clone());
    }
    // What a link names is replaced, and not the link.
    let target = fs::canonicalize(&place).unwrap_or_else(|_| place.clone());
    if target.is_dir() {
        return Err(failed(std::io::Error::from(ErrorKind::IsADirectory)));
    }
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.tmp", uuid::Uuid::now_v7().simple()));
    let beside = PathBuf::from(beside);
    write_new(&beside, text).and_then(|()| fs::rename(&beside, &target)).map_err(|error| {
        // Nothing of an attempt is left; if there is nothing to remove, that is as good.
        let _ = fs::remove_file(&beside);
        failed(error)
    })?;
    Ok(place)
}

/// Writes a file that is not there yet: whole, or not at all.
fn write_new(place: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(place)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = fs::remove_file(place);
    })
}
