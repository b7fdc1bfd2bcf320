//! Prints the state of a conversation and its last turns.

use adjutant_core::port::BranchPoint;
use adjutant_core::{
    Role, Session, TranscriptCall, TranscriptMessage, TurnId, conversation, transcript,
};
use adjutant_memory::Vault;
use adjutant_runtime::RunContext;
use adjutant_service::export::Export;
use jiff::Timestamp;
use serde::Serialize;

use super::list::title;
use crate::clock::ago;
use crate::error::CliError;
use crate::store::{self, Store};
use crate::terminal::display::{clean, clip, json_line, local, plural, tokens};
use crate::terminal::json_answer::Pending;
use crate::terminal::render;
use crate::terminal::screen::{Screen, dim};

/// Turns shown when a conversation is continued.
const TURNS_AGAIN: usize = 3;
/// Lines of a message shown at most.
const LINES: usize = 12;
/// Lines of the last answer shown at most; more, because the conversation continues from it.
const LAST_LINES: usize = 40;
const LINE_CHARS: usize = 400;
/// Characters of a call's arguments at most.
const ARGUMENTS_CHARS: usize = 160;

/// The object that `sessions show --json` prints.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    id: adjutant_core::ConversationId,
    title: &'a str,
    #[serde(flatten)]
    session: &'a Session,
    models: &'a [String],
    pending: Vec<Pending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branched_from: Option<BranchPoint>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(export: &'a Export, pending: Vec<Pending>, session: &'a Session) -> Self {
        Self {
            id: export.summary.id,
            title: &export.summary.title,
            session,
            models: &export.models,
            pending,
            branched_from: export.summary.branched_from,
        }
    }
}

/// Prints the state and the last turns.
pub(super) fn print(
    screen: &Screen,
    export: &Export,
    session: &Session,
    turns: usize,
    now: Timestamp,
) {
    let field =
        |name: &str, value: &str| screen.answer_line(&format!("{name:14} {}", clip(value, 2_000)));
    let at = |at: Option<Timestamp>| {
        at.map_or_else(String::new, |at| {
            format!("{} ({})", local(at), ago(at, now))
        })
    };
    field("conversation", &export.summary.id.to_string());
    field("title", &title(&export.summary));
    if let Some(from) = export.summary.branched_from {
        field("branch of", &from.conversation.to_string());
    }
    field("state", session.state.as_str());
    field("started", &at(session.started_at));
    field("last activity", &at(session.last_activity));
    field("turns", &session.turns.to_string());
    field(
        "messages",
        &format!(
            "{}, about {} tokens",
            session.messages,
            tokens(session.token_estimate.into())
        ),
    );
    if let Some(messages) = session.summarized_at {
        field("summarized", &format!("the first {messages} messages"));
    }
    for model in &export.models {
        field("model", model);
    }
    for call in export.pending() {
        field(
            "waits",
            &format!(
                "{} ({}): adjutant pending list",
                clip(&call.preview, 200),
                call.short_id()
            ),
        );
    }
    if export.unanswered() > 0 {
        field(
            "not answered",
            &format!(
                "{}; answered at the next start",
                plural(export.unanswered() as u64, "message", "messages")
            ),
        );
    }
    for line in format_messages(last_turns(&export.messages, turns)) {
        screen.answer_line(&line);
    }
}

/// The last answer of a conversation, for `/copy` and `/trace`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LastAnswer {
    pub(crate) content: String,
    /// `None` if the journal has no turn for it.
    pub(crate) turn: Option<TurnId>,
}

/// Prints the last turns and pending calls of a continued conversation on standard error, and
/// returns its last answer. `vault` resolves links to notes.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn print_resumed(
    screen: &Screen,
    store: &dyn Store,
    context: &RunContext,
    vault: Option<&Vault>,
) -> Result<Option<LastAnswer>, CliError> {
    let known = store.load(&context.key(&store::agent_name())).await?;
    let messages: Vec<TranscriptMessage> = if known.events.is_empty() {
        context
            .history
            .iter()
            .map(TranscriptMessage::from_message)
            .collect()
    } else {
        transcript(&known.events)
    };
    let shown = last_turns(&messages, TURNS_AGAIN);
    for (at, message) in shown.iter().enumerate() {
        let is_last = shown
            .iter()
            .skip(at + 1)
            .all(|later| later.role != Role::Assistant);
        match message.role {
            Role::Assistant if screen.styles_answers() => {
                show_answer(
                    screen,
                    vault,
                    &message.content,
                    if is_last { LAST_LINES } else { LINES },
                );
            }
            Role::User | Role::Assistant => {
                text_lines(message)
                    .iter()
                    .for_each(|line| screen.side_line(&dim(line)));
            }
            Role::Tool | Role::System => {}
        }
        call_lines(message, shown)
            .iter()
            .for_each(|line| screen.side_line(&dim(line)));
    }
    for call in conversation::pending(&known.events) {
        screen.side_line(&format!(
            "? {}  waits for a yes or no",
            clip(&call.preview, 200)
        ));
    }
    Ok(last_answer(&messages))
}

/// Prints an answer as when it was streamed, cut to `lines_max` lines.
fn show_answer(screen: &Screen, vault: Option<&Vault>, answer: &str, lines_max: usize) {
    let answer = clean(answer);
    let answer = answer.trim();
    if answer.is_empty() {
        return;
    }
    let mut lines = answer.lines();
    let first: Vec<&str> = lines.by_ref().take(lines_max).collect();
    screen.side(&render::laid_out(screen, vault.cloned(), &first.join("\n")));
    if lines.next().is_some() {
        screen.side_line(&dim("…"));
    }
}

/// Returns the last message of the assistant that is an answer.
fn last_answer(messages: &[TranscriptMessage]) -> Option<LastAnswer> {
    let is_answer = |message: &&TranscriptMessage| {
        message.role == Role::Assistant && !message.content.trim().is_empty()
    };
    let last = messages.iter().rev().find(is_answer)?;
    Some(LastAnswer {
        content: last.content.clone(),
        turn: last.turn,
    })
}

/// Returns the messages of the last `turns` turns; a turn begins with a message of the user.
fn last_turns(messages: &[TranscriptMessage], turns: usize) -> &[TranscriptMessage] {
    if turns == 0 {
        return &[];
    }
    let begins = messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| message.role == Role::User);
    let first = begins.map(|(at, _)| at).nth(turns - 1).unwrap_or(0);
    messages.get(first..).unwrap_or_default()
}

/// Formats messages for people, each cut to a dozen lines.
fn format_messages(messages: &[TranscriptMessage]) -> Vec<String> {
    messages
        .iter()
        .flat_map(|message| {
            text_lines(message)
                .into_iter()
                .chain(call_lines(message, messages))
        })
        .collect()
}

/// Formats the text of a message of user or assistant.
fn text_lines(message: &TranscriptMessage) -> Vec<String> {
    let mark = match message.role {
        Role::User => "you> ",
        Role::Assistant => "     ",
        // Results are shown with their calls; attachments are in the export.
        Role::Tool | Role::System => return Vec::new(),
    };
    let text = clean(&message.content);
    let mut rest = text.trim().lines();
    let numbered = rest.by_ref().take(LINES).enumerate();
    let mut lines: Vec<String> = numbered
        .map(|(at, line)| format!("{}{}", if at == 0 { mark } else { "     " }, cut(line)))
        .collect();
    if rest.next().is_some() {
        lines.push("     …".to_owned());
    }
    lines
}

/// Formats the calls in a message.
fn call_lines(message: &TranscriptMessage, messages: &[TranscriptMessage]) -> Vec<String> {
    let line = |call: &TranscriptCall| {
        let ended = messages
            .iter()
            .find(|other| other.tool_call_id.as_ref() == Some(&call.id));
        let end = match ended.and_then(|message| message.result.as_ref()) {
            None => "",
            Some(result) if result.success => "  ✓",
            Some(_) => "  ✗",
        };
        let arguments = clip(&json_line(&call.arguments), ARGUMENTS_CHARS);
        format!("     ⚙ {} {arguments}{end}", clip(&call.tool, 64))
    };
    message.tool_calls.iter().map(line).collect()
}

/// Returns a line, cut if it is very long. Leading blanks are kept, because they matter in code.
fn cut(line: &str) -> String {
    if line.chars().count() <= LINE_CHARS {
        return line.to_owned();
    }
    line.chars().take(LINE_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use adjutant_core::{Message, ToolCall, ToolResult};

    use super::*;

    fn transcript_of(messages: &[Message]) -> Vec<TranscriptMessage> {
        messages
            .iter()
            .map(TranscriptMessage::from_message)
            .collect()
    }

    fn user(text: &str) -> Message {
        Message::user(text).unwrap()
    }

    #[test]
    fn the_last_turns_begin_with_the_person() {
        let all = transcript_of(&[user("one"), user("two"), user("three"), user("four")]);
        assert_eq!(
            format_messages(last_turns(&all, 3)),
            ["you> two", "you> three", "you> four"]
        );
        assert_eq!(format_messages(last_turns(&all, 9)).len(), 4);
        assert!(last_turns(&all, 0).is_empty() && last_turns(&[], 3).is_empty());
    }

    #[test]
    fn what_is_shown_again_obeys_no_escape_and_is_bounded() {
        let lines = format_messages(&transcript_of(&[user(&format!(
            "\u{1b}[2Jx\n  code\n{}",
            "y\n".repeat(50)
        ))]));
        assert_eq!(&lines[..2], ["you> [2Jx", "       code"]);
        assert_eq!((lines.len(), lines[12].as_str()), (13, "     …"));
        assert_eq!(
            format_messages(&transcript_of(&[user(&"z".repeat(5_000))]))[0]
                .chars()
                .count(),
            405
        );
    }

    #[test]
    fn a_call_stands_on_one_line_with_its_end() {
        let call = ToolCall::from_object(0, None, "add_task".to_owned(), serde_json::Map::new());
        let result = Message::tool(call.id.clone(), "add_task", ToolResult::failed("no")).unwrap();
        let mut all = transcript_of(&[user("go"), result]);
        all.insert(
            1,
            TranscriptMessage {
                role: Role::Assistant,
                tool_calls: vec![adjutant_core::TranscriptCall {
                    id: call.id,
                    tool: call.name,
                    arguments: call.arguments,
                }],
                ..all[0].clone()
            },
        );
        all[1].content.clear();
        assert_eq!(format_messages(&all), ["you> go", "     ⚙ add_task {}  ✗"]);
    }
}
