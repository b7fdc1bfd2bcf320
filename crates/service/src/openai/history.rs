//! Conversion of the client's messages to the agent's history.
//!
//! A client cannot change the agent's instruction. Its `system` and `developer` messages become a
//! user message at the beginning of the conversation: the settings and documents of an interface
//! are useful, but have no more authority than the user.

use std::collections::VecDeque;

use adjutant_core::turn::trim;
use adjutant_core::{
    CLIENT_CONTEXT_INTRODUCTION, CallId, Content, InvalidMessage, Message, Notice, Part,
    Role as Speaker, ToolCall, ToolResult, check_pairing, without_client_context, words,
};
use serde_json::Value;

use super::error::invalid;
use super::message::{ChatMessage, FunctionCalled, Messages, Role};
use crate::problem::Problem;

/// Message of a new turn that starts with results of the client's tools, because no turn waits for
/// them.
const RESULTS_CAME: &str = include_str!("../../../../prompts/client_results.md");
/// First message of a history that would otherwise begin with the agent's.
const BEGINNING_IS_MISSING: &str = "[The beginning of this conversation is not here.]";

/// Prefix of the call ids that are generated for a client's history.
const CALL_ID_PREFIX: &str = "earlier_";

/// Text of the user or the agent, without thinking and without an interface's own notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Utterance {
    pub(super) by_user: bool,
    pub(super) text: String,
}

/// The parsed messages of a client.
#[derive(Debug)]
pub(super) struct Transcript {
    /// The current message of the user.
    pub(super) message: String,
    /// The dialogue, ending with `message`; successive messages of one side are joined.
    pub(super) dialogue: Vec<Utterance>,
    /// The history that the turn gets.
    pub(super) history: Vec<Message>,
    /// Notices about parts of the messages that are not in the history.
    pub(super) notices: Vec<Notice>,
}

/// Limits of the history.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryLimits {
    /// Largest number of user and assistant messages; `None`: unlimited.
    pub(super) messages_max: Option<usize>,
    /// True if tool calls and results are included.
    pub(super) with_tools: bool,
}

/// Returns the dialogue between user and agent.
pub(super) fn dialogue(messages: &[ChatMessage]) -> Vec<Utterance> {
    let mut dialogue = Vec::new();
    for message in messages
        .iter()
        .filter(|message| !message.text().trim().is_empty())
    {
        match message.role {
            Role::User => push(&mut dialogue, true, message.text()),
            Role::Assistant => push(&mut dialogue, false, without_thinking(&message.text())),
            Role::System | Role::Developer | Role::Tool | Role::Function => {}
        }
    }
    dialogue
}

/// Parses messages that end with results of the client's tools, for a new turn.
pub(super) fn parse_with_results(
    messages: &Messages,
    limits: HistoryLimits,
) -> Result<Transcript, Problem> {
    let mut notices = Vec::new();
    let history = history(messages, &messages.list, &[], limits, &mut notices)?;
    let message = RESULTS_CAME.trim_end().to_owned();
    Ok(Transcript {
        message,
        dialogue: dialogue(&messages.list),
        history,
        notices,
    })
}

/// Parses messages. `background`: the last one may be an instruction.
pub(super) fn parse(
    messages: &Messages,
    background: bool,
    limits: HistoryLimits,
) -> Result<Transcript, Problem> {
    let is_last = |message: &ChatMessage| background || !message.role.is_instruction();
    let missing = || invalid(messages.member, "there is no message to answer");
    // Interfaces may put instructions after the user's message.
    let at = messages
        .list
        .iter()
        .rposition(is_last)
        .ok_or_else(missing)?;
    let (before, rest) = messages.list.split_at(at);
    let (last, after) = rest.split_first().ok_or_else(missing)?;
    if last.role != Role::User && !(background && last.role.is_instruction()) {
        let place = format!("{}.role", messages.place(at));
        return Err(invalid(place, "the last message must have the role user"));
    }
    if let Some((piece, kind)) = last.first_non_text() {
        let place = format!("{}[{piece}]", messages.content(at));
        return Err(invalid(
            place,
            format!("the agent reads text only, and this is {kind}"),
        ));
    }
    let mut dialogue = dialogue(before);
    // The dialogue joins it with a preceding user message, the turn's message is only the last.
    let text = last.text();
    if text.trim().is_empty() {
        return Err(invalid(messages.content(at), "the message is empty"));
    }
    push(&mut dialogue, true, text.clone());
    let mut notices = Vec::new();
    let history = history(messages, before, after, limits, &mut notices)?;
    Ok(Transcript {
        message: text,
        dialogue,
        history,
        notices,
    })
}

fn push(dialogue: &mut Vec<Utterance>, by_user: bool, text: String) {
    match dialogue.last_mut() {
        Some(last) if last.by_user == by_user => {
            last.text.push_str("\n\n");
            last.text.push_str(&text);
        }
        _ => dialogue.push(Utterance { by_user, text }),
    }
}

/// Builds the history of the turn: the client's instructions, then the newest whole turns that fit.
/// `before` and `after` are the messages around the current one.
fn history(
    all: &Messages,
    before: &[ChatMessage],
    after: &[ChatMessage],
    limits: HistoryLimits,
    notices: &mut Vec<Notice>,
) -> Result<Vec<Message>, Problem> {
    let unusable = |error: InvalidMessage| invalid(all.member, error.to_string());
    let mut messages = earlier(&all.earlier, limits.with_tools).map_err(unusable)?;
    let mut lost_parts = false;
    for (message, parts) in split_parts(
        before,
        last_call_number(&messages),
        limits.with_tools,
        notices,
    ) {
        lost_parts |= message.first_non_text().is_some();
        let (speaker, parts) = match message.role {
            Role::User if !parts.is_empty() => (Speaker::User, parts),
            Role::Assistant if !parts.is_empty() => (Speaker::Assistant, parts),
            Role::Tool | Role::Function if !parts.is_empty() => (Speaker::Tool, parts),
            _ => continue,
        };
        join(&mut messages, speaker, parts).map_err(unusable)?;
    }
    if lost_parts {
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
    // One message is reserved for the instructions.
    let messages_max = limits.messages_max.map(|max| max.saturating_sub(1).max(1));
    let kept = trim(&messages, messages_max);
    let left_out = messages.len() - kept.len();
    if left_out > 0 {
        let text = words::history_trimmed(left_out);
        notices.push(Notice::new("history_trimmed", text));
    }
    let front = match kept.first().map(Message::role) {
        _ if !instructions.is_empty() => Some(format!(
            "{}\n\n{}",
            CLIENT_CONTEXT_INTRODUCTION.trim_end(),
            instructions.join("\n\n")
        )),
        // Some providers require that the user speaks first.
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
    // Checked at the end: the parts that were left out may have separated a call and its result.
    check_pairing(&history).map_err(|error| invalid(all.member, error.to_string()))?;
    Ok(history)
}

/// Returns true if a client's history holds more than the person's own words. The client's
/// instructions may be documents; results are of its tools; and an answer may have been written after
/// text of others was read, of which the client's messages say nothing.
pub(super) fn is_from_others(history: &[Message]) -> bool {
    history.iter().any(|message| {
        message.role() != Speaker::User || without_client_context(message) != message.text()
    })
}

/// Returns the messages that are in the journal. Without tools, only texts.
fn earlier(messages: &[Message], with_tools: bool) -> Result<Vec<Message>, InvalidMessage> {
    if with_tools {
        return Ok(messages.to_vec());
    }
    let mut texts = Vec::new();
    for message in messages
        .iter()
        .filter(|message| !message.text().trim().is_empty())
    {
        join(&mut texts, message.role(), vec![text_part(message.text())])?;
    }
    Ok(texts)
}

/// Returns the highest number in the call ids that were generated for earlier requests.
fn last_call_number(messages: &[Message]) -> usize {
    let calls = messages.iter().flat_map(Message::tool_calls);
    let numbers =
        calls.filter_map(|call| call.id.as_str().strip_prefix(CALL_ID_PREFIX)?.parse().ok());
    numbers.max().unwrap_or_default()
}

/// Appends a message. It is joined with the previous one of the same role, because some providers
/// require alternating roles.
fn join(
    messages: &mut Vec<Message>,
    speaker: Speaker,
    parts: Vec<Part>,
) -> Result<(), InvalidMessage> {
    let joins = |last: &Message| {
        // Results have to follow their calls directly, so nothing is joined to either.
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

/// Returns each message with its parts. Calls with matching results get new ids, numbered from
/// `number` on; other calls and results are left out.
fn split_parts<'a>(
    messages: &'a [ChatMessage],
    mut number: usize,
    with_tools: bool,
    notices: &mut Vec<Notice>,
) -> Vec<(&'a ChatMessage, Vec<Part>)> {
    let mut out: Vec<(&ChatMessage, Vec<Part>)> = Vec::new();
    let mut left_out = false;
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        let mut parts = text_parts(message);
        let calls = tool_calls(message);
        if matches!(message.role, Role::Tool | Role::Function) {
            // The message before it has no matching call.
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
                .position(|result| is_result_of(result, id, &function.name));
            let arguments = parse_arguments(function);
            let (Some(place), Some(arguments), true) = (result, arguments, with_tools) else {
                left_out = true;
                continue;
            };
            let Some(result) = open.remove(place) else {
                continue;
            };
            number += 1;
            let Ok(call_id) = CallId::new(format!("{CALL_ID_PREFIX}{number}")) else {
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

fn text_parts(message: &ChatMessage) -> Vec<Part> {
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

fn tool_calls(message: &ChatMessage) -> Vec<(Option<&str>, &FunctionCalled)> {
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

/// Returns true if a message is the result of the call: by the call's id, or, from older clients,
/// by the function's name.
fn is_result_of(result: &ChatMessage, id: Option<&str>, name: &str) -> bool {
    match (result.role, id) {
        (Role::Tool, Some(id)) => result.tool_call_id.as_deref() == Some(id),
        (Role::Function, None) => result.name.as_deref() == Some(name),
        _ => false,
    }
}

fn parse_arguments(function: &FunctionCalled) -> Option<serde_json::Map<String, Value>> {
    if function.name.trim().is_empty() {
        return None;
    }
    match function.arguments.as_deref().map(str::trim) {
        None | Some("") => Some(serde_json::Map::new()),
        // A call whose arguments are no object is left out, like one without a result.
        Some(text) => serde_json::from_str(text).ok(),
    }
}

/// Removes thinking from an answer. Interfaces send back what they displayed, which includes the
/// thinking.
pub(super) fn without_thinking(text: &str) -> String {
    // The element in which Open WebUI displays thinking, and the tag that models write.
    const MARKS: [(&str, &str); 2] = [
        ("<details type=\"reasoning\"", "</details>"),
        ("<think>", "</think>"),
    ];
    let mut text = text.to_owned();
    for (open, close) in MARKS {
        while let Some(start) = text.find(open) {
            let Some(length) = text.get(start..).and_then(|rest| rest.find(close)) else {
                // Unclosed, so it is not known where the answer starts.
                break;
            };
            text.replace_range(start..start + length + close.len(), "");
        }
    }
    text.trim().to_owned()
}
