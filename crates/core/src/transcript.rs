//! Transcripts: the messages of a conversation for people to read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::conversation;
use crate::event::{Event, GateVerdict, Recorded, TurnEnd};
use crate::id::{CallId, TurnId};
use crate::message::{Message, Role};
use crate::tool::{Arguments, ToolCall, ToolResult};
use crate::turn::{is_control, said_in};
use crate::unanswered::is_note;

/// A message of a transcript: text, calls, or the result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptMessage {
    /// Author of the message.
    pub role: Role,
    /// Text of the message; of a tool, its result as the model reads it. Empty if an assistant only
    /// calls tools.
    pub content: String,
    /// Turn that the message belongs to. `None`: it precedes the first turn.
    #[serde(rename = "run_id", default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Time at which the message was recorded.
    #[serde(
        rename = "created_at",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub at: Option<Timestamp>,
    /// Calls that the assistant makes in this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<TranscriptCall>,
    /// Id of the call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// Result of the call, of a tool message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
}

/// A tool call in a [`TranscriptMessage`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptCall {
    /// Id of the call, unique in the conversation.
    pub id: CallId,
    /// Name of the called tool.
    pub tool: String,
    /// Arguments with which it ran or waits, else as the model wrote them.
    #[serde(rename = "args")]
    pub arguments: Arguments,
}

impl TranscriptMessage {
    /// Creates the transcript form of a message. Control functions are left out, because the turn's
    /// text contains what they say.
    #[must_use]
    pub fn from_message(message: &Message) -> Self {
        let result = message.tool_result();
        Self {
            role: message.role(),
            content: result.map_or_else(|| message.text(), |(_, _, result)| result.to_text()),
            turn: None,
            at: None,
            tool_calls: message
                .tool_calls()
                .filter(|call| !is_control(call))
                .map(TranscriptCall::from_call)
                .collect(),
            tool_call_id: result.map(|(call, _, _)| call.clone()),
            result: result.map(|(_, _, result)| result.clone()),
        }
    }

    fn words(role: Role, content: &str) -> Self {
        let content = content.to_owned();
        Self {
            role,
            content,
            turn: None,
            at: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            result: None,
        }
    }

    fn in_turn(mut self, turn: TurnId, at: Timestamp) -> Self {
        (self.turn, self.at) = (Some(turn), Some(at));
        self
    }
}

impl TranscriptCall {
    fn from_call(call: &ToolCall) -> Self {
        Self {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        }
    }
}

/// Returns all messages of a conversation, oldest first: those of finished turns with the final
/// answer, and those of the open turn so far.
#[must_use]
pub fn transcript(events: &[Recorded]) -> Vec<TranscriptMessage> {
    let open = conversation::open_turn(events);
    let mut entries: Vec<TranscriptMessage> = Vec::new();
    for Recorded { at, event, .. } in events {
        match &**event {
            Event::HistorySet { messages, .. } => {
                // It replaces everything that was said before.
                entries = messages
                    .iter()
                    .filter(|message| !is_note(message))
                    .map(TranscriptMessage::from_message)
                    .collect();
            }
            Event::TurnFinished { turn, end, .. } => {
                entries.extend(finished(events, *turn, *at, end));
            }
            Event::TurnStarted { turn, .. } if open == Some(*turn) => {
                entries.extend(unfinished(events, *turn, *at));
            }
            _ => {}
        }
    }
    entries
}

/// A page of a transcript, made of whole turns.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptPage {
    /// Messages of the page, oldest first.
    pub messages: Vec<TranscriptMessage>,
    /// Sequence number before which the next older page ends. `None`: there are no older messages.
    pub before: Option<u64>,
}

/// Returns the last messages of `events`, at most `limit`, or all of the last turn if that has
/// more. Instructions are left out. `after` is the sequence number before the events, which begin
/// with a turn unless it is 0.
#[must_use]
pub fn transcript_page(events: &[Recorded], after: u64, limit: usize) -> TranscriptPage {
    let mut messages = transcript(events);
    messages.retain(|message| message.role != Role::System);
    let turns: Vec<&[TranscriptMessage]> = messages
        .chunk_by(|one, next| one.turn == next.turn)
        .collect();
    let mut shown = 0;
    // Whole turns: a page must not begin with the result of a call that is on the page before.
    for turn in turns.iter().rev() {
        if shown > 0 && shown + turn.len() > limit {
            break;
        }
        shown += turn.len();
    }
    let left_out = messages.len() - shown;
    let messages = messages.split_off(left_out);
    let is_replaced = events
        .iter()
        .any(|recorded| matches!(*recorded.event, Event::HistorySet { .. }));
    let before = if left_out > 0 {
        let first = messages.first().and_then(|message| message.turn);
        first.and_then(|first| Some(start_of(events, first)?.0.seq))
    } else {
        // A history set from outside has replaced everything older.
        (after > 0 && !is_replaced).then_some(after + 1)
    };
    TranscriptPage { messages, before }
}

/// Returns the event with which a turn began, and the person's message in it.
fn start_of(events: &[Recorded], wanted: TurnId) -> Option<(&Recorded, &str)> {
    events.iter().find_map(|recorded| match &*recorded.event {
        Event::TurnStarted { turn, message, .. } if *turn == wanted => Some((recorded, &**message)),
        _ => None,
    })
}

/// Returns the messages of a finished turn: the person's, each answer with calls and results, and
/// the final answer.
fn finished(
    events: &[Recorded],
    turn: TurnId,
    ended: Timestamp,
    end: &TurnEnd,
) -> Vec<TranscriptMessage> {
    let mut entries = spoken(events, turn, ended, &end.messages);
    entries
        .push(TranscriptMessage::words(Role::Assistant, &end.decision.text).in_turn(turn, ended));
    entries
}

/// Returns the messages of the open turn so far; if it waits, with the question.
fn unfinished(events: &[Recorded], turn: TurnId, began: Timestamp) -> Vec<TranscriptMessage> {
    let mut entries = spoken(events, turn, began, &said_in(events, turn));
    let asked = events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnParked {
                turn: parked,
                content,
                ..
            } if *parked == turn => Some((content, recorded.at)),
            _ => None,
        });
    // A turn that was answered goes on, and its question is history.
    if let Some((content, at)) = asked.filter(|_| !conversation::pending(events).is_empty()) {
        entries.push(TranscriptMessage::words(Role::Assistant, content).in_turn(turn, at));
    }
    entries
}

/// Returns the person's message and the answers with calls, with the results and times from the
/// events. `at`: the time of messages if the turn does not begin among the events.
fn spoken(
    events: &[Recorded],
    turn: TurnId,
    at: Timestamp,
    messages: &[Message],
) -> Vec<TranscriptMessage> {
    let start = start_of(events, turn);
    let mut entries = Vec::new();
    let mut at = start.map_or(at, |(recorded, _)| recorded.at);
    for message in messages {
        let mut entry = TranscriptMessage::from_message(message);
        match entry.role {
            // For the model only.
            Role::User if is_note(message) => continue,
            // The original message, without the notice to the model about a cut.
            Role::User => {
                entry.content = start.map_or(entry.content, |(_, message)| message.to_owned());
            }
            // The text of the turn's end stands for the last answer, which may be another one than
            // the model's.
            Role::Assistant if entry.tool_calls.is_empty() => continue,
            Role::Assistant => {
                let first = entry.tool_calls.first();
                at = first
                    .and_then(|call| checked_at(events, &call.id))
                    .unwrap_or(at);
                for call in &mut entry.tool_calls {
                    call.arguments =
                        ran_with(events, &call.id).unwrap_or_else(|| call.arguments.clone());
                }
            }
            Role::Tool => {
                let shown = entry
                    .tool_call_id
                    .as_ref()
                    .filter(|call| is_shown(&entries, call));
                let Some(call) = shown else { continue };
                at = ended_at(events, call).unwrap_or(at);
            }
            Role::System => continue,
        }
        entries.push(entry.in_turn(turn, at));
    }
    entries
}

fn is_shown(entries: &[TranscriptMessage], call: &CallId) -> bool {
    entries
        .iter()
        .any(|message| message.tool_calls.iter().any(|known| known.id == *call))
}

fn checked_at(events: &[Recorded], wanted: &CallId) -> Option<Timestamp> {
    events.iter().find_map(|recorded| match &*recorded.event {
        Event::CallChecked { call, .. } if call == wanted => Some(recorded.at),
        _ => None,
    })
}

/// Returns the time at which the result of a call was known.
fn ended_at(events: &[Recorded], wanted: &CallId) -> Option<Timestamp> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::CallFinished { call, .. }
            | Event::CallAnswered { call, .. }
            | Event::CallChecked { call, .. }
                if call == wanted =>
            {
                Some(recorded.at)
            }
            _ => None,
        })
}

/// Returns the arguments that a call ran or would run with: references resolved, edits applied.
fn ran_with(events: &[Recorded], wanted: &CallId) -> Option<Arguments> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::CallFinished {
                call, arguments, ..
            }
            | Event::CallStarted {
                call, arguments, ..
            } if call == wanted => Some(arguments.clone()),
            Event::CallChecked {
                call,
                verdict: GateVerdict::Run { arguments },
                ..
            } if call == wanted => Some(arguments.clone()),
            Event::CallChecked {
                call,
                verdict: GateVerdict::Confirm { pending },
                ..
            } if call == wanted => Some(pending.arguments.clone()),
            Event::CallEdited { pending, .. } if pending.call_id == *wanted => {
                Some(pending.arguments.clone())
            }
            _ => None,
        })
}
