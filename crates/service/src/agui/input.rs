//! The AG-UI request `RunAgentInput`, without the fields that an agent with its own history
//! ignores.

use adjutant_core::{
    Answer, CLIENT_CONTEXT_INTRODUCTION, ClientSide, ClientTool, InvalidClientSide, PendingCall,
    ToolResult, fingerprint,
};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::event::Message;

/// A request to run the agent. The server's history is authoritative: the last user message in
/// `messages` is the input. The other messages only show which ones the client has, as `state`
/// shows which tasks it has, and bring the results of called `tools`. Of `forwardedProps` only `time_zone` is
/// read.
///
/// A client whose messages or state are not up to date receives them in full; otherwise it receives
/// only what the run adds.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "threadId": "shopping",
    "runId": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11",
    "messages": [{"id": "m1", "role": "user", "content": "delete the milk"}],
}))]
pub(crate) struct RunAgentInput {
    /// Id of the conversation, or a name chosen by the client.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub(crate) thread_id: String,
    /// Name of the run, chosen by the client. A repeated name in the same conversation is the same
    /// run.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub(crate) run_id: String,
    /// The client's messages; the last one of the user is the input.
    pub(crate) messages: Vec<InputMessage>,
    /// The client's state. A client with the current one is not sent it again.
    #[serde(default)]
    pub(crate) state: Value,
    /// Tools that the client executes. A call of one ends the run, and the next run brings the
    /// result as a message of the role `tool`. Available for the whole turn that the run starts.
    #[serde(default)]
    pub(crate) tools: Vec<InputTool>,
    /// Context from the client. The model reads it in front of the user's message, in the turn that
    /// the run starts.
    #[serde(default)]
    pub(crate) context: Vec<InputContext>,
    /// Answers to all calls that are pending in the conversation.
    #[serde(default)]
    pub(crate) resume: Vec<ResumeEntry>,
    /// Properties for the agent. `time_zone` is the user's, by its name in the IANA database, and by
    /// default that of `/v1/settings`: the model reads the local time of the message in front of it.
    /// Others, and unknown names, are ignored.
    #[serde(default)]
    pub(crate) forwarded_props: Value,
}

impl RunAgentInput {
    /// Returns the user's time zone, if the client names a known one.
    pub(crate) fn time_zone(&self) -> Option<TimeZone> {
        let name = self.forwarded_props.get("time_zone")?.as_str()?;
        TimeZone::get(name).ok()
    }
}

/// A tool that the client executes.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputTool {
    /// Letters, digits, `_` and `-`; must differ from the names of the agent's tools.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    name: String,
    /// Description that the model reads.
    #[serde(default)]
    description: String,
    /// JSON Schema of the arguments, an object. Without it the tool takes no arguments.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Map<String, Value>>,
}

/// A piece of context from the client.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputContext {
    /// Description of the value; may be empty.
    #[serde(default)]
    description: String,
    /// A string; other values are shown as JSON.
    #[serde(default)]
    value: Value,
}

/// A message that the client has.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputMessage {
    /// Id of the message.
    pub(crate) id: String,
    /// `user`, `assistant`, `tool`, or another role, which is ignored.
    pub(crate) role: String,
    /// A string, or a list of parts, of which only text is used.
    #[serde(default)]
    pub(crate) content: Value,
    /// For the role `tool`: id of the call.
    #[serde(rename = "toolCallId")]
    pub(crate) tool_call_id: Option<String>,
    /// For the role `tool`: error message, if the call failed.
    pub(crate) error: Option<String>,
}

/// Answer to one interrupt.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeEntry {
    /// Id of the interrupt.
    pub(crate) interrupt_id: String,
    /// Answer or cancellation.
    pub(crate) status: ResumeStatus,
    /// The answer, in the form of the interrupt's `responseSchema`. Only with `resolved`.
    pub(crate) payload: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResumeStatus {
    /// The interrupt is answered.
    Resolved,
    /// A confirmation is denied; a call in doubt is left as it is.
    Cancelled,
}

/// Fingerprints by which a repeated request is compared with the one that started a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fingerprints {
    /// History and state of the client. The run's events suit only a client with the same.
    pub(crate) client: String,
    /// Message or answers of the request.
    pub(crate) request: String,
}

/// Content of a user's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserMessage {
    /// The text.
    pub(crate) text: String,
    /// Number of parts that are not text, which the model does not receive.
    pub(crate) left_out: usize,
}

impl RunAgentInput {
    /// Returns the last message of the user, which is the input.
    pub(crate) fn last_user_message(&self) -> Option<UserMessage> {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role == "user")
            .map(InputMessage::user_message)
    }

    /// Returns the fingerprints that recognise a repeated request: of its message or answers, and
    /// of the client's messages and state.
    pub(crate) fn fingerprints(&self) -> Fingerprints {
        let ids: Vec<&str> = self
            .messages
            .iter()
            .map(|message| message.id.as_str())
            .collect();
        Fingerprints {
            client: fingerprint(&json!([ids, self.state])),
            request: self.request_fingerprint(),
        }
    }

    fn request_fingerprint(&self) -> String {
        // With answers to interrupts, the last user message is that of an earlier run.
        let message = self
            .resume
            .is_empty()
            .then(|| self.last_user_message().map(|message| message.text))
            .flatten();
        let answered: Vec<Value> = self
            .resume
            .iter()
            .map(|entry| {
                json!([
                    entry.interrupt_id,
                    entry.status == ResumeStatus::Resolved,
                    entry.payload
                ])
            })
            .collect();
        fingerprint(&json!([message, answered]))
    }

    /// Returns the answers to those of these calls whose results are among the messages.
    pub(crate) fn results(&self, pending: &[PendingCall]) -> Vec<Answer> {
        let awaited = pending.iter().filter(|call| call.awaits_result());
        awaited
            .filter_map(|call| Some(call.provided(self.result_for(call.call_id.as_str())?)))
            .collect()
    }

    /// Returns true if the last message is a tool result.
    pub(crate) fn ends_with_result(&self) -> bool {
        self.messages.last().is_some_and(|last| last.role == "tool")
    }

    fn result_for(&self, call: &str) -> Option<ToolResult> {
        let message = self
            .messages
            .iter()
            .rev()
            .find(|message| message.is_result_of(call))?;
        Some(match message.error.as_deref().map(str::trim) {
            Some(error) if !error.is_empty() => ToolResult::failed(error),
            _ => ToolResult::verbatim(Value::String(message.user_message().text)),
        })
    }

    /// Returns the tools and the context of the client for a turn; `None` without any.
    pub(crate) fn client(&self) -> Result<Option<Box<ClientSide>>, InvalidClientSide> {
        let tool = |tool: &InputTool| {
            let parameters = tool.parameters.clone().map(Value::Object);
            ClientTool::new(tool.name.clone(), &tool.description, parameters)
        };
        let tools = self.tools.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        let known: Vec<String> = self
            .context
            .iter()
            .filter_map(InputContext::to_prompt)
            .collect();
        let context = match known.is_empty() {
            true => String::new(),
            false => format!(
                "{}\n\n{}",
                CLIENT_CONTEXT_INTRODUCTION.trim_end(),
                known.join("\n\n")
            ),
        };
        let client = ClientSide {
            tools,
            context,
            ..ClientSide::default()
        };
        Ok((client != ClientSide::default()).then(|| Box::new(client)))
    }

    /// Returns true if the client has the conversation up to its end: its last message, apart from
    /// the new one of the user, is the last one of the conversation. `last` has the messages of the
    /// last turn, `results` those that the request brings.
    pub(crate) fn is_up_to_date(&self, last: &[Message], results: &[Answer]) -> bool {
        // Others, such as `reasoning`, are no messages of the conversation here.
        let roles = ["user", "assistant", "tool"];
        let mut theirs: Vec<&InputMessage> = self
            .messages
            .iter()
            .filter(|message| roles.contains(&message.role.as_str()))
            .collect();
        theirs.retain(|message| {
            !results
                .iter()
                .any(|answer| message.is_result_of(answer.call_id.as_str()))
        });
        let goes_on = !self.resume.is_empty() || !results.is_empty();
        // The last message of the user is the input, which the conversation does not have yet.
        if !goes_on && theirs.pop_if(|message| message.role == "user").is_none() {
            return false;
        }
        match (theirs.last(), last.last()) {
            (None, None) => true,
            (Some(theirs), Some(ours)) => theirs.is_same(ours),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl InputMessage {
    /// Returns true if it is this message of ours. User messages have ids of the client, so they
    /// are compared by their text.
    fn is_same(&self, ours: &Message) -> bool {
        match ours {
            Message::User { content, .. } => {
                self.role == "user" && same_text(&self.user_message().text, content)
            }
            Message::Assistant { id, .. } => base_id(&self.id) == id,
            // The result of a call that the client executed has the client's id.
            Message::Tool {
                id, tool_call_id, ..
            } => base_id(&self.id) == id || self.is_result_of(tool_call_id),
        }
    }

    /// Returns true if it is the result of the call.
    fn is_result_of(&self, call: &str) -> bool {
        self.role == "tool" && self.tool_call_id.as_deref() == Some(call)
    }

    /// Returns its text: the string, or the text parts joined by newlines.
    pub(crate) fn user_message(&self) -> UserMessage {
        match &self.content {
            Value::String(text) => UserMessage {
                text: text.clone(),
                left_out: 0,
            },
            // Parts of other types are counted, so that the user learns that they were not read.
            Value::Array(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect();
                UserMessage {
                    text: texts.join("\n"),
                    left_out: parts.len() - texts.len(),
                }
            }
            _ => UserMessage {
                text: String::new(),
                left_out: 0,
            },
        }
    }
}

impl InputContext {
    /// Returns the text for the prompt; `None` if it is empty.
    fn to_prompt(&self) -> Option<String> {
        let value = match &self.value {
            Value::Null => String::new(),
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        let text = match (self.description.trim(), value.as_str()) {
            ("", value) => value.to_owned(),
            (description, "") => description.to_owned(),
            (description, value) => format!("{description}:\n{value}"),
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

/// Returns the original id of a message; a copy sent to a client may have a suffix `~run`.
pub(super) fn base_id(id: &str) -> &str {
    id.split_once('~').map_or(id, |(own, _)| own)
}

/// Returns true if a user message is the client's: an overlong one was cut when it was recorded.
pub(super) fn same_text(theirs: &str, ours: &str) -> bool {
    theirs == ours
        || ours
            .split_once("\n[The message was cut here:")
            .is_some_and(|(kept, _)| theirs.starts_with(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_message(messages: Value) -> Option<UserMessage> {
        let input = json!({"threadId": "t", "runId": "r", "messages": messages});
        serde_json::from_value::<RunAgentInput>(input)
            .unwrap()
            .last_user_message()
    }

    #[test]
    fn the_last_message_of_the_user_is_the_input() {
        let said = last_message(json!([
            {"id": "1", "role": "user", "content": "first"},
            {"id": "2", "role": "user", "content": "second"},
            {"id": "3", "role": "assistant"},
        ]));
        assert_eq!(
            said,
            Some(UserMessage {
                text: "second".to_owned(),
                left_out: 0
            })
        );
        assert_eq!(
            last_message(json!([{"id": "1", "role": "assistant", "content": "x"}])),
            None
        );
    }

    #[test]
    fn a_client_is_up_to_date_if_its_last_message_is_the_conversations() {
        let answer = |id: &str| Message::Assistant {
            id: id.to_owned(),
            content: Some("Hello.".to_owned()),
            tool_calls: Vec::new(),
        };
        let asked = Message::User {
            id: "1-user".to_owned(),
            content: "hi".to_owned(),
        };
        let theirs = |id: &str, role: &str| json!({"id": id, "role": role, "content": "hi"});
        let (new, old) = (theirs("b", "user"), theirs("1-1", "assistant"));
        for (messages, last, is_up_to_date) in [
            (json!([new]), vec![], true),
            (json!([old, new]), vec![], false),
            (json!([new]), vec![asked.clone(), answer("1-1")], false),
            (json!([old, new]), vec![asked.clone(), answer("1-1")], true),
            (
                json!([theirs("1-1~r", "assistant"), new]),
                vec![answer("1-1")],
                true,
            ),
            (
                json!([old, theirs("1-1-thinking", "reasoning"), new]),
                vec![answer("1-1")],
                true,
            ),
            // Another message is the last one, in the client or here.
            (json!([old, new]), vec![answer("2-1")], false),
            (
                json!([old, theirs("2-1", "assistant"), new]),
                vec![answer("1-1")],
                false,
            ),
            (
                json!([old, theirs("a", "user"), new]),
                vec![answer("1-1")],
                false,
            ),
            // An unanswered message is recognised by its text.
            (json!([theirs("a", "user"), new]), vec![asked.clone()], true),
            (json!([]), vec![], false),
        ] {
            let input = json!({"threadId": "t", "runId": "r", "messages": messages});
            let input = serde_json::from_value::<RunAgentInput>(input).unwrap();
            assert_eq!(
                input.is_up_to_date(&last, &[]),
                is_up_to_date,
                "{messages} beside {last:?}"
            );
        }
    }

    #[test]
    fn text_parts_are_joined_and_other_parts_are_counted() {
        let parts = json!([
            {"type": "text", "text": "look:"},
            {"type": "image", "source": {"type": "url", "value": "https://pictures.example/1.png"}},
            {"type": "text", "text": "nice"},
        ]);
        let said = last_message(json!([{"id": "1", "role": "user", "content": parts}])).unwrap();
        assert_eq!(
            said,
            UserMessage {
                text: "look:\nnice".to_owned(),
                left_out: 1
            }
        );
    }
}
