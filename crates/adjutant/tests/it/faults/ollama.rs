//! Ollama.

use adjutant::OutcomeCategory::{LlmFailure, TaskCompleted};
use serde_json::json;

use super::dialect::Dialect;
use super::reply::Reply;
use super::table::{Row, ends, fine, recovers, undone};
use super::wire::said::{End, text};
use super::wire::{Form, ollama};

pub(super) struct Ollama;

impl Dialect for Ollama {
    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn form(&self) -> &dyn Form {
        &ollama::Ollama
    }

    fn quota_status(&self) -> u16 {
        402
    }

    fn error_event(&self) -> String {
        json!({ "error": "llama runner process has terminated: exit status 2" }).to_string()
    }

    fn own(&self) -> Vec<Row> {
        let tagged = "<tool_call>\n{\"name\": \"add_note\", \"arguments\": {\"text\": \"milk\"}}\n</tool_call>";
        let cut = "<tool_call>\n{\"name\": \"add_note\", \"arguments\": {\"text\": \"mi";
        let missing =
            json!({ "error": "model \"qwen3:4b\" not found, try pulling it first" }).to_string();
        let toolless = json!({ "error": "qwen3:4b does not support tools" }).to_string();
        vec![
            Row::new(
                "a call that comes as text",
                [text(tagged).into(), fine()],
                ends(TaskCompleted, None)
                    .asked(2)
                    .effects(1)
                    .model_reads(&["milk added"]),
            ),
            Row::new(
                "a cut call that comes as text",
                [text(cut).into(), fine()],
                undone().model_reads(&["not a JSON object"]),
            ),
            Row::new(
                "max_tokens inside a call that comes as text",
                [text(cut).end(End::MaxTokens).into(), fine()],
                recovers(),
            ),
            Row::new(
                "a model that was not pulled",
                [
                    Reply::OwnStatus {
                        status: 404,
                        body: missing,
                    },
                    fine(),
                ],
                ends(LlmFailure, "not_found").cause(&["ollama pull qwen3:4b"]),
            ),
            Row::new(
                "a model without tools",
                [
                    Reply::OwnStatus {
                        status: 400,
                        body: toolless,
                    },
                    fine(),
                ],
                ends(LlmFailure, "bad_request").cause(&["does not support tools"]),
            ),
        ]
    }
}
