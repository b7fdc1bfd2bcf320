//! The request, `RunAgentInput`: the fields that an agent with a history of its own can use.

use adjutant_core::{
    Answer, ClientSide, ClientTool, InvalidClientSide, PendingCall, ToolResult, fingerprint,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::event::Message;

/// The prompt's introduction to the context of the client.
const FROM_THE_APPLICATION: &str = include_str!("../../../../prompts/client_context.md");

/// A request to run the agent. The server's history is the truth: of `messages` the last one of the
/// user is the input, and the others only say which messages the client has, as `state` says which
/// tasks, and bring the results of `tools` that were called. `forwardedProps` is not read.
///
/// What the messages and the state show is missing is sent whole; else only what the run adds.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "threadId": "shopping",
    "runId": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11",
    "messages": [{"id": "m1", "role": "user", "content": "delete the milk"}],
}))]
pub(crate) struct RunAgentInput {
    /// The conversation: our id, or a name of the client's own.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub(crate) thread_id: String,
    /// The client's name for this run. The same one again in the same conversation is the same run.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub(crate) run_id: String,
    pub(crate) messages: Vec<InputMessage>,
    /// The state the client has. Whoever has that of the last run is not sent it again.
    #[serde(default)]
    pub(crate) state: Value,
    /// Tools that the client executes: a call of one ends the run, and the next run brings its
    /// result as a message of the role `tool`. They hold for the whole turn that the run begins.
    #[serde(default)]
    pub(crate) tools: Vec<InputTool>,
    /// The client's context. The model reads it as background in front of the user's message, in
    /// the turn that the run begins.
    #[serde(default)]
    pub(crate) context: Vec<InputContext>,
    /// Answers to what waits in the conversation: all of it.
    #[serde(default)]
    pub(crate) resume: Vec<ResumeEntry>,
}

/// A tool that the client executes.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputTool {
    /// Letters, digits, `_` and `-`; not the name of a tool of the agent's own.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    name: String,
    #[serde(default)]
    description: String,
    /// JSON Schema of an object. Without it the tool takes no arguments.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    parameters: Option<Map<String, Value>>,
}

/// Something that the client knows.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputContext {
    /// A description of the value; may be empty.
    #[serde(default)]
    description: String,
    /// A text; something else is read as JSON.
    #[serde(default)]
    value: Value,
}

/// A message the client has.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputMessage {
    pub(crate) id: String,
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) content: Value,
    /// Of a message of the role `tool`: the call whose result it is.
    #[serde(default)]
    #[serde(rename = "toolCallId")]
    pub(crate) tool_call_id: Option<String>,
    /// Of a message of the role `tool`: what went wrong, if the call failed.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// The answer to one interrupt.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeEntry {
    pub(crate) interrupt_id: String,
    pub(crate) status: ResumeStatus,
    /// As the interrupt's `responseSchema` says. Only with `resolved`.
    #[serde(default)]
    pub(crate) payload: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResumeStatus {
    /// It is answered.
    Resolved,
    /// It is given up: a confirmation is denied, a doubt left as it is.
    Cancelled,
}

/// What a user's message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserWords {
    pub(crate) text: String,
    /// Parts that are no text, and are not sent to the model.
    pub(crate) left_out: usize,
}

impl RunAgentInput {
    /// The last message of the user.
    pub(crate) fn words(&self) -> Option<UserWords> {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role == "user")
            .map(InputMessage::words)
    }

    /// Returns a mark of what is asked, the same as long as the same is said or answered.
    pub(crate) fn asks(&self) -> String {
        let said = self
            .resume
            .is_empty()
            .then(|| self.words().map(|words| words.text))
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
        fingerprint(&json!([said, answered]))
    }

    /// Returns the answers to those of these calls that await a result and have one among the
    /// messages.
    pub(crate) fn results(&self, pending: &[PendingCall]) -> Vec<Answer> {
        let awaited = pending.iter().filter(|call| call.awaits_result());
        awaited
            .filter_map(|call| Some(call.provided(self.result_of(call.call_id.as_str())?)))
            .collect()
    }

    /// Returns whether the last that was said is the result of a call.
    pub(crate) fn ends_with_result(&self) -> bool {
        self.messages.last().is_some_and(|last| last.role == "tool")
    }

    fn result_of(&self, call: &str) -> Option<ToolResult> {
        let message = self
            .messages
            .iter()
            .rev()
            .find(|message| message.is_result_of(call))?;
        Some(match message.error.as_deref().map(str::trim) {
            Some(error) if !error.is_empty() => ToolResult::failed(error),
            _ => ToolResult::verbatim(Value::String(message.words().text)),
        })
    }

    /// Returns what the client brings along for a turn. `None`: nothing.
    pub(crate) fn client(&self) -> Result<Option<Box<ClientSide>>, InvalidClientSide> {
        let tool = |tool: &InputTool| {
            let parameters = tool.parameters.clone().map(Value::Object);
            ClientTool::new(tool.name.clone(), &tool.description, parameters)
        };
        let tools = self.tools.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        let known: Vec<String> = self.context.iter().filter_map(InputContext::text).collect();
        let context = match known.is_empty() {
            true => String::new(),
            false => format!(
                "{}\n\n{}",
                FROM_THE_APPLICATION.trim_end(),
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

    /// Returns a mark of what the client has, the same as long as it has the same messages and the
    /// same state.
    pub(crate) fn has(&self) -> String {
        let ids: Vec<&str> = self
            .messages
            .iter()
            .map(|message| message.id.as_str())
            .collect();
        fingerprint(&json!([ids, self.state]))
    }

    /// Returns whether the client has the conversation up to its end, as its messages say: the last
    /// of them, beside the new one of the user, is the last that we have. `last`: the messages of
    /// the last turn. `results`: what it brings of calls that await it.
    pub(crate) fn follows(&self, last: &[Message], results: &[Answer]) -> bool {
        let said = ["user", "assistant", "tool"];
        let mut theirs: Vec<&InputMessage> = self
            .messages
            .iter()
            .filter(|message| said.contains(&message.role.as_str()))
            .collect();
        theirs.retain(|message| {
            !results
                .iter()
                .any(|answer| message.is_result_of(answer.call_id.as_str()))
        });
        let goes_on = !self.resume.is_empty() || !results.is_empty();
        if !goes_on && theirs.pop_if(|message| message.role == "user").is_none() {
            return false;
        }
        match (theirs.last(), last.last()) {
            (None, None) => true,
            (Some(theirs), Some(ours)) => theirs.is(ours),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl InputMessage {
    /// Returns whether it is this message of ours. The client's own messages have its own ids.
    fn is(&self, ours: &Message) -> bool {
        match ours {
            Message::User { content, .. } => {
                self.role == "user" && same_words(&self.words().text, content)
            }
            Message::Assistant { id, .. } => own_id(&self.id) == id,
            // Of a call that the client executed the message is its own.
            Message::Tool {
                id, tool_call_id, ..
            } => own_id(&self.id) == id || self.is_result_of(tool_call_id),
        }
    }

    /// Returns whether it is the result of a call.
    fn is_result_of(&self, call: &str) -> bool {
        self.role == "tool" && self.tool_call_id.as_deref() == Some(call)
    }

    /// Its text: the words alone, or the text of its parts, one below the other.
    pub(crate) fn words(&self) -> UserWords {
        match &self.content {
            Value::String(text) => UserWords {
                text: text.clone(),
                left_out: 0,
            },
            Value::Array(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect();
                UserWords {
                    text: texts.join("\n"),
                    left_out: parts.len() - texts.len(),
                }
            }
            _ => UserWords {
                text: String::new(),
                left_out: 0,
            },
        }
    }
}

impl InputContext {
    /// Its words. `None`: it says nothing.
    fn text(&self) -> Option<String> {
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

/// Returns the name under which a message was made that a client may have under another one.
pub(super) fn own_id(id: &str) -> &str {
    id.split_once('~').map_or(id, |(own, _)| own)
}

/// Returns whether a message is the client's: a long one was cut, and a cut one says so.
pub(super) fn same_words(theirs: &str, ours: &str) -> bool {
    theirs == ours
        || ours
            .split_once("\n[The message was cut here:")
            .is_some_and(|(kept, _)| theirs.starts_with(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(messages: Value) -> Option<UserWords> {
        let input = json!({"threadId": "t", "runId": "r", "messages": messages});
        serde_json::from_value::<RunAgentInput>(input)
            .unwrap()
            .words()
    }

    #[test]
    fn the_last_message_of_the_user_is_the_input() {
        let said = words(json!([
            {"id": "1", "role": "user", "content": "first"},
            {"id": "2", "role": "user", "content": "second"},
            {"id": "3", "role": "assistant"},
        ]));
        assert_eq!(
            said,
            Some(UserWords {
                text: "second".to_owned(),
                left_out: 0
            })
        );
        assert_eq!(
            words(json!([{"id": "1", "role": "assistant", "content": "x"}])),
            None
        );
    }

    #[test]
    fn a_client_follows_whose_last_message_is_ours() {
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
        for (messages, last, follows) in [
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
            // Behind it something else was said, here or there.
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
            // What was not answered is known by its words.
            (json!([theirs("a", "user"), new]), vec![asked.clone()], true),
            (json!([]), vec![], false),
        ] {
            let input = json!({"threadId": "t", "runId": "r", "messages": messages});
            let input = serde_json::from_value::<RunAgentInput>(input).unwrap();
            assert_eq!(
                input.follows(&last, &[]),
                follows,
                "{messages} beside {last:?}"
            );
        }
    }

    #[test]
    fn of_parts_the_text_is_read_and_the_rest_is_counted() {
        let parts = json!([
            {"type": "text", "text": "look:"},
            {"type": "image", "source": {"type": "url", "value": "https://pictures.example/1.png"}},
            {"type": "text", "text": "nice"},
        ]);
        let said = words(json!([{"id": "1", "role": "user", "content": parts}])).unwrap();
        assert_eq!(
            said,
            UserWords {
                text: "look:\nnice".to_owned(),
                left_out: 1
            }
        );
    }
}
