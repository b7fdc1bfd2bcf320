//! A conversation as AG-UI messages, with the ids under which its events were sent.

use std::collections::{HashMap, HashSet};

use adjutant_core::recall_block;
use adjutant_core::turn::{ASK_USER, DECLINE};
use adjutant_core::{
    Arguments, CallId, Event, GateVerdict, GenerateResponse, Message as AgentMessage, Recorded,
    Role, ToolRegistry, ToolResult, TurnEnd, TurnId, conversation, is_note,
};

use super::event::{Message, ToolCall};
use super::input::{InputMessage, same_text};

/// The messages of a conversation, in order.
#[derive(Debug)]
pub(crate) struct Transcript(Vec<Message>);

/// Returns the message id of a model call's text.
pub(crate) fn answer_id(turn: TurnId, model_call: u32) -> String {
    format!("{turn}-{model_call}")
}

/// Returns the message id of a turn's final text, where the model did not write it.
pub(crate) fn end_id(turn: TurnId) -> String {
    format!("{turn}-end")
}

/// Returns the part of `text`, the final text of a turn, that is not in `model_text`, the text of the
/// last model call: the runtime may add lines before and after it. Returns the whole text if it
/// does not contain `model_text` as whole lines.
pub(crate) fn added_text(model_text: &str, text: &str) -> String {
    let model_text = model_text.trim();
    let stands_alone = |at: usize| {
        // Models end a text with blanks that the final text may lack. Compared exactly, the answer
        // would be sent a second time.
        let blank = [' ', '\t', '\r'];
        let before = text[..at].trim_end_matches(blank);
        let behind = text[at + model_text.len()..].trim_start_matches(blank);
        let is_whole = (before.is_empty() || before.ends_with('\n'))
            && (behind.is_empty() || behind.starts_with('\n'));
        is_whole.then(|| [before.trim(), behind.trim()])
    };
    let found = text
        .match_indices(model_text)
        .filter(|_| !model_text.is_empty())
        .find_map(|(at, _)| stands_alone(at));
    found.map_or_else(
        || text.to_owned(),
        |parts| {
            parts
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        },
    )
}

/// Returns the id of the message with a call's result.
pub(crate) fn result_id(call: &CallId) -> String {
    format!("{call}-result")
}

/// Serializes a tool result as the content of a message.
pub(crate) fn result_text(result: &ToolResult) -> String {
    serde_json::to_string(result).unwrap_or_default()
}

impl Transcript {
    /// Builds the messages of all finished turns and of the open one. Of the tool calls only those
    /// of the agent's and the client's tools are shown; the others are internal.
    pub(crate) fn from_events(events: &[Recorded], tools: &ToolRegistry) -> Self {
        let mut messages = Vec::new();
        let open = conversation::open_turn(events);
        // Grouped once: searching the events of each turn in the whole conversation would be
        // quadratic.
        let mut events_by_turn: HashMap<TurnId, Vec<&Event>> = HashMap::new();
        for event in events.iter().map(|recorded| &*recorded.event) {
            if let Some(turn) = event.turn() {
                events_by_turn.entry(turn).or_default().push(event);
            }
        }
        for recorded in events {
            match &*recorded.event {
                Event::HistorySet { messages: set, .. } => {
                    // An imported history replaces all messages before it.
                    messages = Vec::new();
                    let turn = Turn::from_events(&[], None);
                    turn.write(
                        set,
                        None,
                        |at| format!("history-{at}"),
                        tools,
                        &mut messages,
                    );
                }
                Event::TurnStarted { turn, message, .. } => {
                    let turn_events = events_by_turn.remove(turn).unwrap_or_default();
                    let end = turn_events.iter().find_map(|event| match event {
                        Event::TurnFinished { end, .. } => Some(end),
                        _ => None,
                    });
                    let read = Turn::from_events(&turn_events, Some(*turn));
                    match end {
                        Some(end) => {
                            let said: Vec<AgentMessage> = end.history().collect();
                            read.write(&said, Some(end), |_| end_id(*turn), tools, &mut messages);
                        }
                        None if open == Some(*turn) => {
                            messages.push(Message::User {
                                id: format!("{turn}-user"),
                                content: message.clone(),
                            });
                            read.write_open(tools, &mut messages);
                        }
                        None => {}
                    }
                }
                _ => {}
            }
        }
        Self(messages)
    }

    /// Returns the messages with the ids that a client has for them. `client` are the messages that
    /// it sent, `sent` the ids that it was sent since.
    ///
    /// A client keeps known messages in their place and appends new ones. So that the order is
    /// right, all messages after the first new one get new ids.
    pub(crate) fn for_client(
        self,
        client: &[InputMessage],
        sent: &HashSet<String>,
        run: &str,
    ) -> Vec<Message> {
        let mut messages = self.0;
        // User messages have ids of the client, so they are matched by their text, from the newest
        // on.
        let mut theirs = client
            .iter()
            .filter(|message| message.role == "user")
            .rev()
            .peekable();
        for message in messages.iter_mut().rev() {
            let Message::User { id, content } = message else {
                continue;
            };
            let mut ahead = theirs.clone();
            if let Some(found) =
                ahead.find(|theirs| same_text(&theirs.user_message().text, content))
            {
                *id = found.id.clone();
                theirs = ahead;
            }
        }
        for message in &mut messages {
            let Message::Tool {
                id, tool_call_id, ..
            } = message
            else {
                continue;
            };
            // A result that the client executed has the client's id.
            let is_its =
                |theirs: &&InputMessage| theirs.tool_call_id.as_deref() == Some(tool_call_id);
            if let Some(found) = client.iter().find(is_its) {
                *id = found.id.clone();
            }
        }
        let has: HashSet<&str> = client
            .iter()
            .map(|message| message.id.as_str())
            .chain(sent.iter().map(String::as_str))
            .collect();
        let first_new = messages
            .iter()
            .position(|message| !has.contains(message.id()));
        let first_new = first_new.unwrap_or(messages.len());
        for message in messages.iter_mut().skip(first_new) {
            if has.contains(message.id()) {
                let id = format!("{}~{run}", message.id());
                message.set_id(id);
            }
        }
        messages
    }

    /// Returns the id of the last message, in the form for new clients.
    pub(crate) fn last_id(&self) -> Option<String> {
        self.0.last().map(|message| message.id().to_owned())
    }

    /// Returns the messages with their original ids.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.0
    }
}

/// The tool calls of a turn, collected from its events.
struct Turn<'a> {
    turn: Option<TurnId>,
    /// Number and reply of each valid model call, with the calls it led to.
    replies: Vec<(u32, &'a GenerateResponse, Vec<&'a CallId>)>,
    verdicts: HashMap<&'a CallId, &'a GateVerdict>,
    executed: HashMap<&'a CallId, &'a Arguments>,
    results: HashMap<&'a CallId, &'a ToolResult>,
}

impl<'a> Turn<'a> {
    fn from_events(events: &[&'a Event], turn: Option<TurnId>) -> Self {
        let mut all: Vec<(u32, &GenerateResponse, Vec<&CallId>)> = Vec::new();
        let (mut verdicts, mut executed, mut results) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        for event in events {
            match event {
                Event::ModelReplied {
                    number,
                    reply: Ok(reply),
                    ..
                } => all.push((*number, reply, Vec::new())),
                Event::CallChecked { call, verdict, .. } => {
                    verdicts.insert(call, verdict);
                    if let Some((_, _, calls)) = all.last_mut() {
                        calls.push(call);
                    }
                }
                Event::CallStarted {
                    call, arguments, ..
                } => drop(executed.insert(call, arguments)),
                Event::CallFinished { call, result, .. } => drop(results.insert(call, result)),
                _ => {}
            }
        }
        // A reply without calls that is not the last one was invalid, and the model was asked
        // again.
        let last = all.len().saturating_sub(1);
        let counts = |(at, (_, _, calls)): &(usize, (u32, &GenerateResponse, Vec<&CallId>))| {
            *at == last || !calls.is_empty()
        };
        let replies = all
            .into_iter()
            .enumerate()
            .filter(counts)
            .map(|(_, reply)| reply)
            .collect();
        Self {
            turn,
            replies,
            verdicts,
            executed,
            results,
        }
    }

    /// Writes the messages of a turn with this end, or of an imported history. `fallback_id` names
    /// messages that no model call of the turn produced.
    fn write(
        &self,
        all: &[AgentMessage],
        end: Option<&TurnEnd>,
        fallback_id: impl Fn(usize) -> String,
        tools: &ToolRegistry,
        messages: &mut Vec<Message>,
    ) {
        let mut numbers = self.replies.iter().map(|(number, _, _)| *number);
        let mut hidden: HashSet<&CallId> = HashSet::new();
        // A structured answer is shown as the model wrote it.
        let end = end.filter(|end| end.output.is_none());
        let mut before = String::new();
        for (at, message) in all.iter().enumerate() {
            match message.role() {
                Role::System => {}
                // For the model only.
                Role::User if is_note(message) => {}
                Role::User => {
                    let id = self
                        .turn
                        .map_or_else(|| fallback_id(at), |turn| format!("{turn}-user"));
                    // Without the facts of automatic recall, which are attached to the recorded
                    // message.
                    messages.push(Message::User {
                        id,
                        content: recall_block::strip(&message.text()).to_owned(),
                    });
                }
                Role::Assistant => {
                    let text = message.text();
                    let number = numbers.next();
                    if let Some(end) = end
                        && message.tool_calls().next().is_none()
                    {
                        let final_text = &end.decision.text;
                        // The words of failed calls stand in the place of an answer.
                        let is_replaced = !end.failed_calls.is_empty()
                            && added_text(&text, final_text) == *final_text;
                        // A question by a control function, or descriptions of calls.
                        let is_end =
                            number.is_none() && final_text.trim_end().ends_with(text.trim());
                        if is_replaced || is_end {
                            continue;
                        }
                    }
                    // An answer that broke off has no recorded reply.
                    let number = number.or_else(|| Some(self.replies.last()?.0 + 1));
                    let id = match (self.turn, number) {
                        (Some(turn), number) => answer_id(turn, number.unwrap_or(1)),
                        (None, _) => fallback_id(at),
                    };
                    before.clone_from(&text);
                    let (shown, others): (Vec<_>, Vec<_>) = message
                        .tool_calls()
                        .partition(|call| self.shows(&call.id, &call.name, tools));
                    hidden.extend(others.iter().map(|call| &call.id));
                    let calls = shown
                        .iter()
                        .map(|call| self.call(&call.id, &call.name, &call.arguments))
                        .collect();
                    push_assistant(messages, id, text, calls);
                }
                Role::Tool => {
                    let Some((call, _, result)) = message
                        .tool_result()
                        .filter(|(call, ..)| !hidden.contains(call))
                    else {
                        continue;
                    };
                    messages.push(self.result_message(call, result));
                }
            }
        }
        if let Some(end) = end {
            let added = added_text(&before, &end.decision.text);
            push_assistant(messages, fallback_id(all.len()), added, Vec::new());
        }
    }

    /// Returns true if clients are shown the call: one of the agent's tools, or one that the client
    /// had to execute.
    fn shows(&self, id: &CallId, name: &str, tools: &ToolRegistry) -> bool {
        tools.has(name) || self.is_clients(id)
    }

    fn is_clients(&self, id: &CallId) -> bool {
        matches!(self.verdicts.get(id), Some(GateVerdict::Await { .. }))
    }

    fn result_message(&self, call: &CallId, result: &ToolResult) -> Message {
        let content = if self.is_clients(call) {
            result.to_text()
        } else {
            result_text(result)
        };
        result_message(call, content, result)
    }

    /// Writes the messages of a turn that has not ended, after the user's.
    fn write_open(&self, tools: &ToolRegistry, messages: &mut Vec<Message>) {
        let Some(turn) = self.turn else { return };
        for (number, reply, calls) in &self.replies {
            if calls.is_empty() {
                continue;
            }
            let asked = reply
                .tool_calls()
                .filter(|call| ![ASK_USER, DECLINE].contains(&call.name.as_str()));
            let pairs: Vec<_> = asked
                .zip(calls)
                .filter(|(call, id)| self.shows(id, &call.name, tools))
                .collect();
            let shown = pairs
                .iter()
                .map(|(call, id)| self.call(id, &call.name, &call.arguments))
                .collect();
            push_assistant(messages, answer_id(turn, *number), reply.text(), shown);
            for (_, id) in pairs {
                match (self.results.get(id), self.verdicts.get(id)) {
                    (Some(result), _) => messages.push(self.result_message(id, result)),
                    (None, Some(GateVerdict::Refuse { message, .. })) => {
                        messages
                            .push(self.result_message(id, &ToolResult::failed(message.clone())));
                    }
                    (None, Some(GateVerdict::Ask { question })) => {
                        messages.push(self.result_message(id, &ToolResult::asked(question)));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns a call with its most recent arguments: executed, confirmed, checked or requested.
    fn call(&self, id: &CallId, name: &str, asked: &Arguments) -> ToolCall {
        let arguments = match (self.executed.get(id), self.verdicts.get(id)) {
            (Some(executed), _) => executed,
            (None, Some(GateVerdict::Run { arguments })) => arguments,
            (None, Some(GateVerdict::Confirm { pending })) => &pending.arguments,
            _ => asked,
        };
        let arguments = serde_json::to_string(arguments).unwrap_or_default();
        ToolCall::new(id.to_string(), name.to_owned(), arguments)
    }
}

fn push_assistant(
    messages: &mut Vec<Message>,
    id: String,
    text: String,
    tool_calls: Vec<ToolCall>,
) {
    let content = Some(text).filter(|text| !text.is_empty());
    if content.is_some() || !tool_calls.is_empty() {
        messages.push(Message::Assistant {
            id,
            content,
            tool_calls,
        });
    }
}

/// Creates the message with a call's result.
pub(crate) fn result_message(call: &CallId, content: String, result: &ToolResult) -> Message {
    Message::Tool {
        id: result_id(call),
        content,
        tool_call_id: call.to_string(),
        error: result.error.clone().filter(|_| !result.success),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str, content: &str) -> Message {
        Message::User {
            id: id.to_owned(),
            content: content.to_owned(),
        }
    }

    fn assistant(id: &str) -> Message {
        Message::Assistant {
            id: id.to_owned(),
            content: Some(id.to_owned()),
            tool_calls: Vec::new(),
        }
    }

    fn theirs(id: &str, role: &str, content: &str) -> InputMessage {
        InputMessage {
            id: id.to_owned(),
            role: role.to_owned(),
            content: content.into(),
            tool_call_id: None,
            error: None,
        }
    }

    /// Returns the ids that a client is sent, and those it then has in its own order: it keeps
    /// known messages, drops missing ones and appends new ones.
    fn check(
        ours: Vec<Message>,
        client: &[InputMessage],
        sent: &[&str],
    ) -> (Vec<String>, Vec<String>) {
        let sent: HashSet<String> = sent.iter().map(|id| (*id).to_owned()).collect();
        let ids = Transcript(ours).for_client(client, &sent, "r");
        let ids: Vec<String> = ids.iter().map(|message| message.id().to_owned()).collect();
        let mut has: Vec<String> = client.iter().map(|message| message.id.clone()).collect();
        has.extend(
            sent.iter()
                .filter(|id| !client.iter().any(|message| message.id == **id))
                .cloned(),
        );
        has.retain(|id| ids.contains(id));
        has.extend(
            ids.iter()
                .filter(|id| !has.contains(id))
                .cloned()
                .collect::<Vec<_>>(),
        );
        (ids, has)
    }

    #[test]
    fn an_up_to_date_client_keeps_its_message_ids() {
        let ours = vec![
            user("1-user", "hi"),
            assistant("1-1"),
            user("2-user", "and now?"),
            assistant("2-1"),
        ];
        let client = [
            theirs("a", "user", "hi"),
            theirs("1-1", "assistant", ""),
            theirs("b", "user", "and now?"),
        ];
        let (ids, has) = check(ours, &client, &["2-1"]);
        assert_eq!(ids, ["a", "1-1", "b", "2-1"]);
        assert_eq!(has, ids);
    }

    #[test]
    fn messages_after_a_missing_one_get_new_ids() {
        // The first turn was made by another client; this one has the answers but not the
        // questions.
        let ours = vec![
            user("1-user", "hi"),
            assistant("1-1"),
            user("2-user", "and now?"),
            assistant("2-1"),
        ];
        let client = [
            theirs("1-1", "assistant", ""),
            theirs("b", "user", "and now?"),
        ];
        let (ids, has) = check(ours, &client, &["2-1"]);
        assert_eq!(has, ids, "the order of the one is the order of the other");
        assert_eq!(ids, ["1-user", "1-1~r", "b~r", "2-1~r"]);
    }

    #[test]
    fn the_same_words_twice_are_two_messages() {
        let ours = vec![
            user("1-user", "yes"),
            assistant("1-1"),
            user("2-user", "yes"),
        ];
        let client = [
            theirs("a", "user", "yes"),
            theirs("1-1", "assistant", ""),
            theirs("b", "user", "yes"),
        ];
        assert_eq!(check(ours, &client, &[]).0, ["a", "1-1", "b"]);
    }

    #[test]
    fn text_added_to_the_models_is_sent_alone() {
        for (said, text, added) in [
            ("Done. \n", "Done.\nNo such task.", "No such task."),
            ("Which one?", "Which one?", ""),
            ("That was it. ", "That was it. ", ""),
            ("Done. ", "Done. \nNo such task.", "No such task."),
            ("Which one?", "Added it.\nWhich one?", "Added it."),
            (
                "Now?",
                "Added it.\nNow?\nNo such task.",
                "Added it.\nNo such task.",
            ),
            ("Now?", "Now? Later.\nNow?", "Now? Later."),
            ("a\nb", "x\na\nb", "x"),
            ("", "Stopped.", "Stopped."),
            ("Add", "Added it.", "Added it."),
            ("ä", "ää", "ää"),
        ] {
            assert_eq!(added_text(said, text), added, "{said:?} in {text:?}");
        }
    }

    #[test]
    fn a_cut_message_matches_the_clients_message() {
        let cut = user(
            "1-user",
            "lon\n[The message was cut here: 3 of 4 characters.]",
        );
        assert_eq!(
            check(vec![cut], &[theirs("a", "user", "long")], &[]).0,
            ["a"]
        );
    }
}
