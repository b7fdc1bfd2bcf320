//! What is asked: `RunAgentInput`, of which we read what an agent can use that keeps its own history and tools.

use adjutant_core::fingerprint;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::event::Message;

/// A request to run the agent. The server's history is the truth: of `messages` the last one of the user is the input, and
/// the others only say which messages the client has, as `state` says which tasks. `forwardedProps` is not read; that `tools` and `context`
/// are not used is said in a notice.
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
    #[serde(default)]
    pub(crate) tools: Vec<Value>,
    #[serde(default)]
    pub(crate) context: Vec<Value>,
    /// Answers to what waits in the conversation: all of it.
    #[serde(default)]
    pub(crate) resume: Vec<ResumeEntry>,
}

/// A message the client has.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct InputMessage {
    pub(crate) id: String,
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) content: Value,
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
        self.messages.iter().rev().find(|message| message.role == "user").map(InputMessage::words)
    }

    /// Returns a mark of what is asked, the same as long as the same is said or answered.
    pub(crate) fn asks(&self) -> String {
        let said = self.resume.is_empty().then(|| self.words().map(|words| words.text)).flatten();
        let answered: Vec<Value> = self
            .resume
            .iter()
            .map(|entry| json!([entry.interrupt_id, entry.status == ResumeStatus::Resolved, entry.payload]))
            .collect();
        fingerprint(&json!([said, answered]))
    }

    /// Returns a mark of what the client has, the same as long as it has the same messages and the same state.
    pub(crate) fn has(&self) -> String {
        let ids: Vec<&str> = self.messages.iter().map(|message| message.id.as_str()).collect();
        fingerprint(&json!([ids, self.state]))
    }

    /// Returns whether the client has the conversation up to its end, as its messages say: the last of them, beside the new one
    /// of the user, is the last that we have. `last`: the messages of the last turn.
    pub(crate) fn follows(&self, last: &[Message]) -> bool {
        let said = ["user", "assistant", "tool"];
        let mut theirs: Vec<&InputMessage> =
            self.messages.iter().filter(|message| said.contains(&message.role.as_str())).collect();
        if self.resume.is_empty() && theirs.pop_if(|message| message.role == "user").is_none() {
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
            Message::User { content, .. } => self.role == "user" && same_words(&self.words().text, content),
            Message::Assistant { id, .. } | Message::Tool { id, .. } => own_id(&self.id) == id,
        }
    }

    /// Its text: the words alone, or the text of its parts, one below the other.
    pub(crate) fn words(&self) -> UserWords {
        match &self.content {
            Value::String(text) => UserWords { text: text.clone(), left_out: 0 },
            Value::Array(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect();
                UserWords { text: texts.join("\n"), left_out: parts.len() - texts.len() }
            }
            _ => UserWords { text: String::new(), left_out: 0 },
        }
    }
}

/// Returns the name under which a message was made that a client may have under another one.
pub(super) fn own_id(id: &str) -> &str {
    id.split_once('~').map_or(id, |(own, _)| own)
}

/// Returns whether a message is the client's: a long one was cut, and a cut one says so.
pub(super) fn same_words(theirs: &str, ours: &str) -> bool {
    theirs == ours
        || ours.split_once("\n[The message was cut here:").is_some_and(|(kept, _)| theirs.starts_with(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(messages: Value) -> Option<UserWords> {
        let input = json!({"threadId": "t", "runId": "r", "messages": messages});
        serde_json::from_value::<RunAgentInput>(input).unwrap().words()
    }

    #[test]
    fn the_last_message_of_the_user_is_the_input() {
        let said = words(json!([
            {"id": "1", "role": "user", "content": "first"},
            {"id": "2", "role": "user", "content": "second"},
            {"id": "3", "role": "assistant"},
        ]));
        assert_eq!(said, Some(UserWords { text: "second".to_owned(), left_out: 0 }));
        assert_eq!(words(json!([{"id": "1", "role": "assistant", "content": "x"}])), None);
    }

    #[test]
    fn a_client_follows_whose_last_message_is_ours() {
        let answer = |id: &str| Message::Assistant {
            id: id.to_owned(),
            content: Some("Hello.".to_owned()),
            tool_calls: Vec::new(),
        };
        let asked = Message::User { id: "1-user".to_owned(), content: "hi".to_owned() };
        let theirs = |id: &str, role: &str| json!({"id": id, "role": role, "content": "hi"});
        let (new, old) = (theirs("b", "user"), theirs("1-1", "assistant"));
        for (messages, last, follows) in [
            (json!([new]), vec![], true),
            (json!([old, new]), vec![], false),
            (json!([new]), vec![asked.clone(), answer("1-1")], false),
            (json!([old, new]), vec![asked.clone(), answer("1-1")], true),
            (json!([theirs("1-1~r", "assistant"), new]), vec![answer("1-1")], true),
            (json!([old, theirs("1-1-thinking", "reasoning"), new]), vec![answer("1-1")], true),
            // Behind it something else was said, here or there.
            (json!([old, new]), vec![answer("2-1")], false),
            (json!([old, theirs("2-1", "assistant"), new]), vec![answer("1-1")], false),
            (json!([old, theirs("a", "user"), new]), vec![answer("1-1")], false),
            // What was not answered is known by its words.
            (json!([theirs("a", "user"), new]), vec![asked.clone()], true),
            (json!([]), vec![], false),
        ] {
            let input = json!({"threadId": "t", "runId": "r", "messages": messages});
            let input = serde_json::from_value::<RunAgentInput>(input).unwrap();
            assert_eq!(input.follows(&last), follows, "{messages} beside {last:?}");
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
        assert_eq!(said, UserWords { text: "look:\nnice".to_owned(), left_out: 1 });
    }
}
