//! What the client says was said before, as the agent's own messages.
//!
//! The agent's instruction is not the client's to change. What a client sends as `system` or
//! `developer` goes in front of the conversation as words of the person's side: an interface's own
//! settings and documents are of use, and have no more say than the person has.

use std::collections::VecDeque;

use adjutant_core::turn::trim;
use adjutant_core::{
    CallId, Content, InvalidMessage, Message, Notice, Part, Role as Speaker, ToolCall, ToolResult,
    check_pairing,
};
use serde_json::Value;

use super::error::invalid;
use super::message::{ChatMessage, FunctionCalled, Messages, Role};
use crate::problem::Problem;

/// What stands in front of the words of the application.
pub(super) const FROM_THE_APPLICATION: &str = include_str!("../../../../prompts/client_context.md");
/// The message of a turn that begins with results of the client's tools, because no turn waits for
/// them.
const RESULTS_CAME: &str = include_str!("../../../../prompts/client_results.md");
/// What stands in front of a conversation whose first words are the agent's.
const BEGINNING_IS_MISSING: &str = "[The beginning of this conversation is not here.]";

/// The beginning of the ids that calls of a client's history get.
const MINTED: &str = "earlier_";

/// Words of the person or the agent, thinking and notes of an interface left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) by_person: bool,
    pub(super) text: String,
}

/// A client's messages, read.
#[derive(Debug)]
pub(super) struct Transcript {
    /// What the person says now.
    pub(super) message: String,
    /// What was said between them, `message` last; neighbours of one side are one.
    pub(super) said: Vec<Said>,
    /// What the turn is given of the past.
    pub(super) history: Vec<Message>,
    /// What of the messages is not in it.
    pub(super) notices: Vec<Notice>,
}

/// How much of the past a turn is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// User and assistant messages; `None`: all.
    pub(super) messages_max: Option<usize>,
    /// Whether calls and results are among them.
    pub(super) with_tools: bool,
}

/// Returns what was said between the person and the agent.
pub(super) fn said(messages: &[ChatMessage]) -> Vec<Said> {
    let mut said = Vec::new();
    for message in messages
        .iter()
        .filter(|message| !message.text().trim().is_empty())
    {
        match message.role {
            Role::User => say(&mut said, true, message.text()),
            Role::Assistant => say(&mut said, false, without_thinking(&message.text())),
            Role::System | Role::Developer | Role::Tool | Role::Function => {}
        }
    }
    said
}

/// Reads a client's messages that end with results of its tools, for a turn that goes on from them.
pub(super) fn read_with_results(messages: &Messages, room: Room) -> Result<Transcript, Problem> {
    let mut notices = Vec::new();
    let history = history(messages, (&messages.list, &[]), room, &mut notices)?;
    let message = RESULTS_CAME.trim_end().to_owned();
    Ok(Transcript {
        message,
        said: said(&messages.list),
        history,
        notices,
    })
}

/// Reads a client's messages. `background`: the last may be the application's.
pub(super) fn read(
    messages: &Messages,
    background: bool,
    room: Room,
) -> Result<Transcript, Problem> {
    let is_last = |message: &ChatMessage| background || !message.role.is_instruction();
    let nobody = || invalid(messages.member, "nobody says anything");
    let at = messages.list.iter().rposition(is_last).ok_or_else(nobody)?;
    let (before, rest) = messages.list.split_at(at);
    let (last, after) = rest.split_first().ok_or_else(nobody)?;
    if last.role != Role::User && !(background && last.role.is_instruction()) {
        let place = format!("{}.role", messages.place(at));
        return Err(invalid(
            place,
            "the last message has to be the person's: user",
        ));
    }
    if let Some((piece, kind)) = last.not_words() {
        let place = format!("{}[{piece}]", messages.content(at));
        return Err(invalid(
            place,
            format!("the agent reads text only, and this is {kind}"),
        ));
    }
    let mut said = said(before);
    // Two messages in a row are one turn: the earlier is part of what is said now.
    let text = last.text();
    if text.trim().is_empty() {
        return Err(invalid(messages.content(at), "the message is empty"));
    }
    say(&mut said, true, text.clone());
    let mut notices = Vec::new();
    let history = history(messages, (before, after), room, &mut notices)?;
    Ok(Transcript {
        message: text,
        said,
        history,
        notices,
    })
}

fn say(said: &mut Vec<Said>, by_person: bool, text: String) {
    match said.last_mut() {
        Some(last) if last.by_person == by_person => {
            last.text.push_str("\n\n");
            last.text.push_str(&text);
        }
        _ => said.push(Said { by_person, text }),
    }
}

/// Returns the messages that the turn is given: the application's words, then whole turns as far as
/// there is room. `before`, `after`: the messages around the one that is said now.
fn history(
    all: &Messages,
    (before, after): (&[ChatMessage], &[ChatMessage]),
    room: Room,
    notices: &mut Vec<Notice>,
) -> Result<Vec<Message>, Problem> {
    let unusable = |error: InvalidMessage| invalid(all.member, error.to_string());
    let mut messages = earlier(&all.earlier, room.with_tools).map_err(unusable)?;
    let mut lost_pieces = false;
    for (message, parts) in parts_of(before, minted(&messages), room.with_tools, notices) {
        lost_pieces |= message.not_words().is_some();
        let (speaker, parts) = match message.role {
            Role::User if !parts.is_empty() => (Speaker::User, parts),
            Role::Assistant if !parts.is_empty() => (Speaker::Assistant, parts),
            Role::Tool | Role::Function if !parts.is_empty() => (Speaker::Tool, parts),
            _ => continue,
        };
        join(&mut messages, speaker, parts).map_err(unusable)?;
    }
    if lost_pieces {
        notices.push(Notice::not_sent(
            "Pictures, sounds and files of earlier messages were left out.",
        ));
    }
    let instructions: Vec<String> = before
        .iter()
        .chain(after)
        .filter(|message| message.role.is_instruction())
        .map(ChatMessage::text)
        .filter(|text| !text.trim().is_empty())
        .collect();
    // One place is for what stands in front.
    let room = room.messages_max.map(|max| max.saturating_sub(1).max(1));
    let kept = trim(&messages, room);
    let front = match kept.first().map(Message::role) {
        _ if !instructions.is_empty() => Some(format!(
            "{}\n\n{}",
            FROM_THE_APPLICATION.trim_end(),
            instructions.join("\n\n")
        )),
        Some(Speaker::Assistant) => Some(BEGINNING_IS_MISSING.to_owned()),
        _ => None,
    };
    let mut history = Vec::with_capacity(kept.len() + 1);
    if let Some(front) = front {
        join(&mut history, Speaker::User, vec![text_part(front)]).map_err(unusable)?;
    }
    for message in kept {
        join(&mut history, message.role(), message.parts().to_vec()).map_err(unusable)?;
    }
    check_pairing(&history).map_err(|error| invalid(all.member, error.to_string()))?;
    Ok(history)
}

/// Returns what the journal has of the past. Without tools there are no calls either.
fn earlier(messages: &[Message], with_tools: bool) -> Result<Vec<Message>, InvalidMessage> {
    if with_tools {
        return Ok(messages.to_vec());
    }
    let mut words = Vec::new();
    for message in messages
        .iter()
        .filter(|message| !message.text().trim().is_empty())
    {
        join(&mut words, message.role(), vec![text_part(message.text())])?;
    }
    Ok(words)
}

/// Returns the highest number in the ids that earlier requests gave to calls.
fn minted(messages: &[Message]) -> usize {
    let calls = messages.iter().flat_map(Message::tool_calls);
    let numbers = calls.filter_map(|call| call.id.as_str().strip_prefix(MINTED)?.parse().ok());
    numbers.max().unwrap_or_default()
}

/// Adds a message; what the same side said right before is one message with it, as some providers
/// take no other.
fn join(
    messages: &mut Vec<Message>,
    speaker: Speaker,
    parts: Vec<Part>,
) -> Result<(), InvalidMessage> {
    let joins = |last: &Message| {
        last.role() == speaker && speaker != Speaker::Tool && last.tool_calls().next().is_none()
    };
    let mut all = match messages.pop_if(|last| joins(last)) {
        Some(last) => {
            let mut all = last.parts().to_vec();
            all.push(text_part("\n\n".to_owned()));
            all
        }
        None => Vec::new(),
    };
    all.extend(parts);
    messages.push(Message::new(speaker, all)?);
    Ok(())
}

fn text_part(text: String) -> Part {
    Part::ours(Content::Text { text })
}

/// Each message with its parts. Calls and results that belong together stay, under ids of ours
/// behind the number `minted`; others are left out.
fn parts_of<'a>(
    messages: &'a [ChatMessage],
    mut minted: usize,
    with_tools: bool,
    notices: &mut Vec<Notice>,
) -> Vec<(&'a ChatMessage, Vec<Part>)> {
    let mut out: Vec<(&ChatMessage, Vec<Part>)> = Vec::new();
    let mut left_out = false;
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        let mut parts = words_of(message);
        let calls = calls_of(message);
        if matches!(message.role, Role::Tool | Role::Function) {
            // Its call is not right in front of it.
            left_out = true;
            continue;
        }
        if calls.is_empty() {
            out.push((message, parts));
            continue;
        }
        let behind = messages.get(at..).unwrap_or_default();
        let results: Vec<&ChatMessage> = behind
            .iter()
            .take_while(|message| matches!(message.role, Role::Tool | Role::Function))
            .collect();
        at += results.len();
        let mut open: VecDeque<&ChatMessage> = results.into();
        let mut answered = Vec::new();
        for (id, function) in calls {
            let result = open
                .iter()
                .position(|result| answers(result, id, &function.name));
            let arguments = arguments_of(function);
            let (Some(place), Some(arguments), true) = (result, arguments, with_tools) else {
                left_out = true;
                continue;
            };
            let Some(result) = open.remove(place) else {
                continue;
            };
            minted += 1;
            let Ok(call_id) = CallId::new(format!("{MINTED}{minted}")) else {
                continue;
            };
            let call = ToolCall::from_object(0, None, function.name.clone(), arguments);
            parts.push(Part::ours(Content::ToolCall(ToolCall {
                id: call_id.clone(),
                ..call
            })));
            answered.push((result, call_id, function.name.clone()));
        }
        left_out |= !open.is_empty();
        out.push((message, parts));
        for (result, call_id, name) in answered {
            let result_part = Content::ToolResult {
                call_id,
                name,
                result: ToolResult::verbatim(Value::String(result.text())),
            };
            out.push((result, vec![Part::ours(result_part)]));
        }
    }
    if left_out {
        notices.push(Notice::not_sent(
            "Calls of tools in earlier messages were left out where call and result do not belong together, or where no \
             tools are used.",
        ));
    }
    out
}

fn words_of(message: &ChatMessage) -> Vec<Part> {
    let text = match message.role {
        Role::Assistant => without_thinking(&message.text()),
        _ => message.text(),
    };
    if text.trim().is_empty() {
        Vec::new()
    } else {
        vec![text_part(text)]
    }
}

fn calls_of(message: &ChatMessage) -> Vec<(Option<&str>, &FunctionCalled)> {
    if message.role != Role::Assistant {
        return Vec::new();
    }
    let made = message.tool_calls.iter().flatten();
    let calls = made.filter_map(|call| Some((call.id.as_deref(), call.function.as_ref()?)));
    calls
        .chain(
            message
                .function_call
                .iter()
                .map(|function| (None, function)),
        )
        .collect()
}

/// Whether a message is the result of that call: by its id, or, in older clients, by the tool's
/// name.
fn answers(result: &ChatMessage, id: Option<&str>, name: &str) -> bool {
    match (result.role, id) {
        (Role::Tool, Some(id)) => result.tool_call_id.as_deref() == Some(id),
        (Role::Function, None) => result.name.as_deref() == Some(name),
        _ => false,
    }
}

fn arguments_of(function: &FunctionCalled) -> Option<serde_json::Map<String, Value>> {
    if function.name.trim().is_empty() {
        return None;
    }
    match function.arguments.as_deref().map(str::trim) {
        None | Some("") => Some(serde_json::Map::new()),
        Some(text) => serde_json::from_str(text).ok(),
    }
}

/// An interface may send back what it showed: the thinking with the answer. It is no part of what
/// was said.
pub(super) fn without_thinking(text: &str) -> String {
    const MARKS: [(&str, &str); 2] = [
        ("<details type=\"reasoning\"", "</details>"),
        ("<think>", "</think>"),
    ];
    let mut text = text.to_owned();
    for (open, close) in MARKS {
        while let Some(start) = text.find(open) {
            let Some(length) = text.get(start..).and_then(|rest| rest.find(close)) else {
                break;
            };
            text.replace_range(start..start + length + close.len(), "");
        }
    }
    text.trim().to_owned()
}
