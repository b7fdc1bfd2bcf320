//! The scripted model: its answer is a function of the conversation, so that every worker gets the
//! same.

use adjutant_core::{ConversationId, Effect};
use adjutant_durability::{EFFECTS, Style, tool_name};
use serde_json::{Value, json};

use crate::scene::BROUGHT_TOOL;

/// The answer to a request for a summary of old turns.
pub(crate) fn summary(request: &Value) -> Option<String> {
    let instruction = request["messages"][0]["content"].as_str()?;
    instruction
        .starts_with("You keep the record")
        .then(|| text_reply("Questions were answered."))
}

/// A request to the model.
pub(crate) struct ModelRequest {
    pub(crate) conversation: ConversationId,
    scene: String,
    effect: Effect,
    /// Results of tools since the last user message.
    results: usize,
}

impl ModelRequest {
    pub(crate) fn parse(request: &Value) -> Self {
        let messages = request["messages"].as_array().unwrap();
        let said = messages
            .iter()
            .rposition(|message| message["role"] == "user")
            .unwrap();
        // A summary precedes the user's own text, which is the last line.
        let content = messages[said]["content"].as_str().unwrap();
        let own = content.lines().last().unwrap_or_default();
        let words: Vec<&str> = own.split_whitespace().collect();
        let [scene, effect, conversation] = words[..] else {
            panic!("not from a scene: {words:?}")
        };
        Self {
            conversation: conversation.parse().unwrap(),
            scene: scene.to_owned(),
            effect: EFFECTS
                .into_iter()
                .find(|known| format!("{known:?}") == effect)
                .unwrap(),
            results: messages[said..]
                .iter()
                .filter(|message| message["role"] == "tool")
                .count(),
        }
    }

    /// Returns true if the first such request is refused with a rate limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.scene == "limited"
    }

    /// Returns the answer as server-sent events.
    pub(crate) fn answer(&self) -> String {
        let work = |n: i64| (tool_name(self.effect, Style::Beside), json!({"n": n}));
        let in_order = |n: i64| (tool_name(self.effect, Style::InOrder), json!({"n": n}));
        match (self.scene.as_str(), self.results) {
            ("one", 0) => calls(&[work(1)]),
            ("two", 0) => calls(&[work(1), work(2)]),
            ("brought", 0) => calls(&[(BROUGHT_TOOL.to_owned(), json!({})), work(1)]),
            ("order", 0) => calls(&[in_order(1), in_order(2), in_order(3)]),
            ("chain", done @ (0 | 1)) => calls(&[work(i64::try_from(done).unwrap() + 1)]),
            ("careful", 0) => calls(&[(tool_name(self.effect, Style::Careful), json!({"n": 1}))]),
            ("task", 0) => calls(&[("add_task".to_owned(), json!({"description": "buy milk"}))]),
            ("ask", _) => calls(&[("ask_user".to_owned(), json!({"question": "Which one?"}))]),
            (scene, _) => text_reply(&format!("That was {scene}.")),
        }
    }
}

fn text_reply(words: &str) -> String {
    events(json!({"content": words}), "stop")
}

fn calls(calls: &[(String, Value)]) -> String {
    let calls = calls.iter().enumerate().map(|(index, (name, arguments))| {
        json!({
            "index": index, "id": format!("p{index}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()},
        })
    });
    events(
        json!({"tool_calls": calls.collect::<Vec<_>>()}),
        "tool_calls",
    )
}

fn events(delta: Value, finish: &str) -> String {
    let chunk = json!({
        "id": "x", "object": "chat.completion.chunk", "model": "mock",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    });
    let last = json!({
        "id": "x", "object": "chat.completion.chunk", "model": "mock",
        "choices": [{"index": 0, "delta": {}, "finish_reason": finish}],
    });
    format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n")
}
