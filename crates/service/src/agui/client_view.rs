//! The messages of a turn as the client has received them, and the events that it still needs.

use std::collections::HashSet;

use serde_json::json;

use super::event::{Event, Message, ToolCall};

/// The messages of one turn that a client has, assembled from the sent events as a client does it.
#[derive(Debug, Default)]
pub(super) struct ClientView {
    messages: Vec<Message>,
    ids: HashSet<String>,
}

/// An assistant's message with the results of its tool calls.
struct Group<'a> {
    id: &'a str,
    content: Option<&'a str>,
    calls: &'a [ToolCall],
    results: Vec<&'a Message>,
}

impl ClientView {
    /// Creates the view of a client that has these messages. User messages are left out: clients
    /// have their own.
    pub(super) fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        let messages: Vec<Message> = messages
            .into_iter()
            .filter(|message| !matches!(message, Message::User { .. }))
            .collect();
        Self {
            messages,
            ids: HashSet::new(),
        }
    }

    /// Applies an event that is sent to the client.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::TextMessageStart { message_id, .. } => drop(self.assistant(message_id)),
            Event::TextMessageContent { message_id, delta } => {
                if let Some((content, _)) = self.assistant(message_id) {
                    content.get_or_insert_default().push_str(delta);
                }
            }
            Event::ToolCallStart {
                tool_call_id,
                tool_call_name,
                parent_message_id,
            } => {
                // Clients name the message of a call without a parent after the call.
                let parent = parent_message_id.as_deref().unwrap_or(tool_call_id);
                if let Some((_, calls)) = self.assistant(parent) {
                    calls.push(ToolCall::new(
                        tool_call_id.clone(),
                        tool_call_name.clone(),
                        String::new(),
                    ));
                }
            }
            Event::ToolCallArgs {
                tool_call_id,
                delta,
            } => {
                if let Some(call) = self.call(tool_call_id) {
                    call.function.arguments.push_str(delta);
                }
            }
            Event::ToolCallResult {
                message_id,
                tool_call_id,
                content,
                ..
            } => {
                self.ids.insert(message_id.clone());
                self.messages.push(Message::Tool {
                    id: message_id.clone(),
                    content: content.clone(),
                    tool_call_id: tool_call_id.clone(),
                    error: None,
                });
            }
            _ => {}
        }
    }

    /// Returns the ids of the messages that were sent.
    pub(super) fn ids(&self) -> &HashSet<String> {
        &self.ids
    }

    /// Returns true if the client was sent the call.
    pub(super) fn has_call(&self, id: &str) -> bool {
        self.calls().any(|call| call.id == id)
    }

    /// Returns true if the client has the result of the call.
    pub(super) fn has_result(&self, id: &str) -> bool {
        self.messages.iter().any(
            |message| matches!(message, Message::Tool { tool_call_id, .. } if tool_call_id == id),
        )
    }

    /// Returns the events that bring the client up to date with `ours`, the messages of the turn.
    /// `None` if events cannot do that: the client has a message that is not ours, or one is
    /// missing in the middle.
    pub(super) fn missing_events(&self, ours: &[Message]) -> Option<Vec<Event>> {
        let (theirs, ours) = (groups(&self.messages)?, groups(ours)?);
        let mut events = Vec::new();
        for (at, ours) in ours.iter().enumerate() {
            match theirs.get(at) {
                Some(theirs_at) => {
                    let lacking = theirs_at.missing_events(ours)?;
                    // A client appends messages; it cannot insert one before those it has.
                    if !lacking.is_empty() && at + 1 < theirs.len() {
                        return None;
                    }
                    events.extend(lacking);
                }
                None => events.extend(ours.events()),
            }
        }
        // With more messages than ours, the client has one that the journal lacks.
        (theirs.len() <= ours.len()).then_some(events)
    }

    /// Returns content and calls of an assistant's message, which is created if necessary.
    fn assistant(&mut self, wanted: &str) -> Option<(&mut Option<String>, &mut Vec<ToolCall>)> {
        let at = self
            .messages
            .iter()
            .rposition(|message| message.id() == wanted)
            .unwrap_or_else(|| {
                self.ids.insert(wanted.to_owned());
                let (id, tool_calls) = (wanted.to_owned(), Vec::new());
                self.messages.push(Message::Assistant {
                    id,
                    content: None,
                    tool_calls,
                });
                self.messages.len() - 1
            });
        match self.messages.get_mut(at) {
            Some(Message::Assistant {
                content,
                tool_calls,
                ..
            }) => Some((content, tool_calls)),
            Some(Message::User { .. } | Message::Tool { .. }) | None => None,
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.messages
            .iter_mut()
            .rev()
            .find_map(|message| match message {
                Message::Assistant { tool_calls, .. } => {
                    tool_calls.iter_mut().find(|call| call.id == id)
                }
                Message::User { .. } | Message::Tool { .. } => None,
            })
    }

    fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.messages.iter().flat_map(|message| match message {
            Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
            Message::User { .. } | Message::Tool { .. } => &[],
        })
    }
}

/// Groups assistant messages with their results. `None` if a result comes before the first one.
fn groups(messages: &[Message]) -> Option<Vec<Group<'_>>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for message in messages {
        match message {
            Message::User { .. } => {}
            Message::Assistant {
                id,
                content,
                tool_calls,
            } => groups.push(Group {
                id,
                content: content.as_deref(),
                calls: tool_calls,
                results: Vec::new(),
            }),
            Message::Tool { .. } => groups.last_mut()?.results.push(message),
        }
    }
    Some(groups)
}

impl Group<'_> {
    /// Returns the events that complete the client's group. The calls of one answer may end in any
    /// order.
    fn missing_events(&self, ours: &Self) -> Option<Vec<Event>> {
        let has_result =
            |result: &&Message| self.results.iter().any(|known| same_result(known, result));
        // Events only add to a message: a text or call that differs cannot be corrected by them.
        let is_ours = self.id == ours.id
            && self.content == ours.content
            && self.calls.iter().all(|call| ours.calls.contains(call))
            && self
                .results
                .iter()
                .all(|known| ours.results.iter().any(|result| same_result(known, result)));
        let calls = ours.calls.iter().filter(|call| !self.calls.contains(call));
        let mut events: Vec<Event> = calls.flat_map(|call| call.events(self.id)).collect();
        events.extend(
            ours.results
                .iter()
                .copied()
                .filter(|result| !has_result(result))
                .filter_map(result_event),
        );
        is_ours.then_some(events)
    }

    /// Returns the events of the whole group.
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(content) = self.content {
            events.extend(Event::text_message(self.id.to_owned(), content.to_owned()));
        }
        events.extend(self.calls.iter().flat_map(|call| call.events(self.id)));
        events.extend(self.results.iter().copied().filter_map(result_event));
        events
    }
}

impl ToolCall {
    /// Returns the events of the call.
    pub(super) fn events(&self, parent: &str) -> [Event; 3] {
        let tool_call_id = self.id.clone();
        [
            Event::ToolCallStart {
                tool_call_id: tool_call_id.clone(),
                tool_call_name: self.function.name.clone(),
                parent_message_id: Some(parent.to_owned()),
            },
            Event::ToolCallArgs {
                tool_call_id: tool_call_id.clone(),
                delta: self.function.arguments.clone(),
            },
            Event::ToolCallEnd { tool_call_id },
        ]
    }
}

/// Returns true if two results are the same for a client, which is not sent errors separately.
fn same_result(one: &Message, other: &Message) -> bool {
    let sent = |message: &Message| match message {
        Message::Tool {
            id,
            content,
            tool_call_id,
            ..
        } => Some([id, content, tool_call_id].map(String::clone)),
        Message::User { .. } | Message::Assistant { .. } => None,
    };
    sent(one) == sent(other)
}

fn result_event(message: &Message) -> Option<Event> {
    match message {
        Message::Tool {
            id,
            content,
            tool_call_id,
            error,
        } => Some(Event::ToolCallResult {
            message_id: id.clone(),
            tool_call_id: tool_call_id.clone(),
            content: content.clone(),
            role: "tool",
            metadata: json!({ "success": error.is_none() }),
        }),
        Message::User { .. } | Message::Assistant { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: &str, content: &str) -> Message {
        Message::Assistant {
            id: id.to_owned(),
            content: Some(content.to_owned()),
            tool_calls: Vec::new(),
        }
    }

    fn calls(id: &str, calls: &[&str]) -> Message {
        let call =
            |id: &&str| ToolCall::new((*id).to_owned(), "add_task".to_owned(), "{}".to_owned());
        Message::Assistant {
            id: id.to_owned(),
            content: None,
            tool_calls: calls.iter().map(call).collect(),
        }
    }

    fn result(call: &str, content: &str) -> Message {
        Message::Tool {
            id: format!("{call}-result"),
            content: content.to_owned(),
            tool_call_id: call.to_owned(),
            error: None,
        }
    }

    /// Returns true if a client that has `theirs` can be brought to `ours`.
    fn follows(theirs: &[Message], ours: &[Message]) -> bool {
        let mut view = ClientView::new(theirs.iter().cloned());
        let Some(events) = view.missing_events(ours) else {
            return false;
        };
        events.iter().for_each(|event| view.apply(event));
        assert_eq!(
            view.missing_events(ours),
            Some(Vec::new()),
            "{theirs:?} and {ours:?}"
        );
        true
    }

    #[test]
    fn missing_messages_are_sent_as_events_at_the_end() {
        let person = Message::User {
            id: "1-user".to_owned(),
            content: "hi".to_owned(),
        };
        let ours = [
            person,
            calls("1-1", &["a", "b"]),
            result("a", "1"),
            result("b", "2"),
            text("1-2", "Done."),
        ];
        for len in 0..=ours.len() {
            assert!(follows(&ours[..len], &ours), "{len}");
        }
        assert!(
            follows(&[calls("1-1", &["b"]), result("b", "2")], &ours),
            "another call of the same answer"
        );
        let other_order = [
            calls("1-1", &["b", "a"]),
            result("b", "2"),
            result("a", "1"),
            text("1-2", "Done."),
        ];
        assert!(
            follows(&other_order, &ours),
            "calls of one answer end in any order"
        );
    }

    #[test]
    fn a_client_with_other_messages_cannot_be_updated_by_events() {
        let ours = [calls("1-1", &["a"]), result("a", "1"), text("1-2", "Done.")];
        for theirs in [
            vec![text("1-1", "I will")],
            vec![calls("1-1", &["a"]), result("a", "another")],
            vec![calls("1-1", &["a", "b"])],
            vec![calls("1-1", &["a"]), text("1-2", "Done.")],
            vec![calls("1-1", &["a"]), result("a", "1"), text("1-2", "Don")],
            vec![
                calls("1-1", &["a"]),
                result("a", "1"),
                text("1-2", "Done."),
                text("1-3", "More."),
            ],
        ] {
            assert!(!follows(&theirs, &ours), "{theirs:?}");
        }
    }
}
