//! One conversation in a file: as Markdown for people, as JSON for programs. The whole conversation
//! is read for it: that nothing in the Markdown is live is only known of the whole.

mod markdown; // text that stays where it is put

use adjutant_core::port::{ConversationSummary, Loaded};
use adjutant_core::{
    Arguments, Awaits, ConversationId, Doubt, Event, PendingCall, Role, Session, SessionState,
    TITLE_CHARS_MAX, TranscriptMessage, clip, conversation, json_line, last_summary, session,
    transcript,
};
use jiff::Timestamp;
use serde::Serialize;

use markdown::{code, fenced, heading, inert, quoted};

/// Everything of one conversation.
#[derive(Debug)]
pub struct Export {
    /// Its entry in a list of conversations.
    pub summary: ConversationSummary,
    /// The models that were asked, in the order they first were.
    pub models: Vec<String>,
    /// Its messages, oldest first, without instructions to the model.
    pub messages: Vec<TranscriptMessage>,
    known: Loaded,
    pending: Vec<PendingCall>,
}

/// An export as JSON.
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
    pending: Vec<Waiting>,
}

impl Export {
    /// Puts together what is known of it.
    #[must_use]
    pub fn of(summary: ConversationSummary, known: Loaded) -> Self {
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
        Self {
            summary,
            models,
            messages,
            known,
            pending,
        }
    }

    /// Returns where it stands. `summarize_from`: with so many tokens it is to be summarized;
    /// `None`: that is not known here.
    #[must_use]
    pub fn session(&self, now: Timestamp, summarize_from: Option<u32>) -> Session {
        session(&self.known, now, summarize_from)
    }

    /// Returns what waits in it for an answer.
    pub fn pending(&self) -> impl Iterator<Item = &PendingCall> {
        self.pending.iter()
    }

    /// Returns how many messages were accepted and not begun.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.known.inbox.len()
    }

    /// Returns it as JSON, one object on one line.
    #[must_use]
    pub fn json(&self, session: &Session) -> String {
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
            pending: self.pending().map(Waiting::of).collect(),
        })
    }

    /// Returns it as Markdown. What was said is quoted and what tools got and gave is fenced, so
    /// that nothing of it can pass for something else in the file; and nothing in it is loaded or
    /// run when the file is looked at.
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
            // A result belongs to the assistant's calls above it.
            match &message.result {
                Some(result) => {
                    let end = if result.success { "✓" } else { "✗" };
                    let name = self
                        .tool_of(message)
                        .map_or_else(String::new, |tool| format!(" of {}", code(tool)));
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
            text += &format!(
                "\n## Waits for an answer\n\n{}",
                quoted(&clip(&call.preview, 2_000))
            );
        }
        for input in &self.known.inbox {
            if let adjutant_core::InputBody::Message { text: words, .. } = &input.body {
                text += &format!(
                    "\n## You · {} · not answered yet\n\n{}",
                    time(input.at),
                    quoted(words.trim())
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
    // Our own types hold no maps with keys other than text, the one thing that cannot be written.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A call that waits for a human, as programs read it.
#[derive(Debug, Serialize)]
pub struct Waiting {
    /// The argument of `adjutant pending approve`.
    id: String,
    call_id: String,
    tool: String,
    arguments: Arguments,
    preview: String,
    digest: String,
    expires_at: Timestamp,
    /// Not `null`: it was begun, and nobody knows whether it was done.
    doubt: Option<Doubt>,
    /// Not `null`: it waits for its result and not for a person. `client`: from the program that
    /// sent the message.
    awaits: Option<Awaits>,
}

impl Waiting {
    /// Returns it as it is written.
    #[must_use]
    pub fn of(call: &PendingCall) -> Self {
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

/// Returns the title, fit to be shown.
#[must_use]
pub fn title(summary: &ConversationSummary) -> String {
    let title = clip(&summary.title, TITLE_CHARS_MAX);
    if title.is_empty() {
        "(no words)".to_owned()
    } else {
        title
    }
}
