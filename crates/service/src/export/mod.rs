//! Export of a conversation, as Markdown for people or JSON for programs. The conversation is
//! loaded as a whole: only in the whole Markdown file it is known which parts would be active.

mod markdown; // embedding of untrusted text

use adjutant_core::port::{ConversationSummary, Loaded};
use adjutant_core::{
    Arguments, Awaits, ConversationId, Doubt, Event, PendingCall, Role, Session, SessionState,
    TITLE_CHARS_MAX, TranscriptMessage, clip, conversation, json_line, last_summary, session,
    transcript,
};
use jiff::Timestamp;
use serde::Serialize;

use markdown::{code, fenced, heading, inert, quoted};

/// Everything that is known about one conversation, to be written as Markdown or JSON.
#[derive(Debug)]
pub struct Export {
    /// Its entry in a list of conversations.
    pub summary: ConversationSummary,
    /// The models that were called, in the order of their first call.
    pub models: Vec<String>,
    /// The messages, oldest first, without system instructions.
    pub messages: Vec<TranscriptMessage>,
    known: Loaded,
    pending: Vec<PendingCall>,
}

/// Serialized form of an export.
#[derive(Serialize)]
struct ExportJson<'a> {
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
    pending: Vec<PendingEntry>,
}

impl Export {
    /// Collects the messages, models and pending calls of a loaded conversation.
    #[must_use]
    pub fn new(summary: ConversationSummary, known: Loaded) -> Self {
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
        // Instructions are the agent's configuration, and not part of the conversation.
        messages.retain(|message| message.role != Role::System);
        let pending = conversation::pending(&known.events);
        Self {
            summary,
            models,
            messages,
            known,
            pending,
        }
    }

    /// Returns the state of the conversation at `now`. `summarize_from` is the number of tokens
    /// from which it is compacted, if known.
    #[must_use]
    pub fn session(&self, now: Timestamp, summarize_from: Option<u32>) -> Session {
        session(&self.known, now, summarize_from)
    }

    /// Returns the calls that wait for an answer.
    pub fn pending(&self) -> impl Iterator<Item = &PendingCall> {
        self.pending.iter()
    }

    /// Returns the number of accepted messages whose turn has not started.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.known.inbox.len()
    }

    /// Returns the export as one line of JSON.
    #[must_use]
    pub fn json(&self, session: &Session) -> String {
        json_line(&ExportJson {
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
            pending: self.pending().map(PendingEntry::new).collect(),
        })
    }

    /// Returns the export as Markdown. Messages are quoted and tool data is fenced, so that no text
    /// can be mistaken for the file's own structure, and no link, image or HTML in it is active.
    #[must_use]
    pub fn markdown(&self) -> String {
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
            text += &format!(
                "- Summarized: the model is given a summary of the first {first} messages\n"
            );
        }
        for message in &self.messages {
            let who = match message.role {
                Role::User => "You",
                Role::Assistant => "Assistant",
                Role::Tool => "Tool",
                Role::System => continue,
            };
            let at = message
                .at
                .map_or_else(String::new, |at| format!(" · {}", time(at)));
            // A result follows the assistant's calls and needs no heading.
            match &message.result {
                Some(result) => {
                    let end = if result.success { "✓" } else { "✗" };
                    let name = self
                        .tool_of(message)
                        .map_or_else(String::new, |tool| format!(" of {}", code(tool)));
                    text += &format!("\nResult{name} {end}{at}\n\n");
                    // A text is shown as it is: as JSON its line ends would be escaped.
                    text += &match (result.data.as_deref(), &result.error) {
                        (Some(serde_json::Value::String(data)), _) => fenced("text", data),
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
            text += &format!(
                "\n## Waits for an answer\n\n{}",
                quoted(&clip(&call.preview, 2_000))
            );
        }
        for input in &self.known.inbox {
            if let adjutant_core::InputBody::Message { text: message, .. } = &input.body {
                text += &format!(
                    "\n## You · {} · not answered yet\n\n{}",
                    time(input.at),
                    quoted(message.trim())
                );
            }
        }
        inert(text)
    }

    fn tool_of(&self, result: &TranscriptMessage) -> Option<&str> {
        let wanted = result.tool_call_id.as_ref()?;
        let mut calls = self.messages.iter().flat_map(|message| &message.tool_calls);
        calls
            .find(|call| call.id == *wanted)
            .map(|call| call.tool.as_str())
    }
}

fn pretty(value: &impl Serialize) -> String {
    // Serialization fails only for maps whose keys are not strings, which these types do not have.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A pending call, in the form for programs.
#[derive(Debug, Serialize)]
pub struct PendingEntry {
    /// Id for `adjutant pending approve`.
    id: String,
    call_id: String,
    tool: String,
    arguments: Arguments,
    preview: String,
    digest: String,
    expires_at: Timestamp,
    /// Set if the call is in doubt: it was started, and its result is unknown.
    doubt: Option<Doubt>,
    /// Set if the call waits for its result and not for the user. `client`: from the program that
    /// sent the message.
    awaits: Option<Awaits>,
}

impl PendingEntry {
    /// Converts a pending call.
    #[must_use]
    pub fn new(call: &PendingCall) -> Self {
        Self {
            id: call.short_id().to_owned(),
            call_id: call.call_id.to_string(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            preview: call.preview.clone(),
            digest: call.digest.clone(),
            expires_at: call.expires_at,
            doubt: call.doubt.clone(),
            awaits: call.awaits,
        }
    }
}

/// Returns the title of a conversation, cut to its maximum length; a placeholder if it is empty.
#[must_use]
pub fn title(summary: &ConversationSummary) -> String {
    let title = clip(&summary.title, TITLE_CHARS_MAX);
    if title.is_empty() {
        "(no words)".to_owned()
    } else {
        title
    }
}
