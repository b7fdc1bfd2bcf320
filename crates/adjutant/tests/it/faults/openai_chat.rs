//! Chat Completions: OpenAI's own, and everybody else's, who add `reasoning_content`.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, TaskCompleted};
use serde_json::json;

use super::dialect::Dialect;
use super::reply::Reply;
use super::table::{Row, add_milk, ends, fine, recovers, undone};
use super::wire::said::{End, Said, Trouble, text};
use super::wire::{Form, openai_chat};

/// A provider that speaks it.
pub(super) struct OpenAiChat {
    pub(super) provider: &'static str,
}

impl Dialect for OpenAiChat {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn form(&self) -> &dyn Form {
        &openai_chat::OpenAiChat {
            model: "gpt-4.1",
            thinking: Some("reasoning_content"),
        }
    }

    fn error_event(&self) -> String {
        self.form().error(500, Trouble::Plain)
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let declined = Said {
            refusal: "I won't.",
            ..Said::default()
        };
        let choiceless =
            json!({ "id": "x", "object": "chat.completion", "model": "m", "choices": [] });
        let mut rows = vec![
            Row::new(
                "content_filter",
                [Said::default().end(End::Filtered).into(), fine()],
                filtered(),
            ),
            Row::new(
                "content_filter behind a call",
                [add_milk().end(End::Filtered).into(), fine()],
                filtered(),
            ),
            Row::new(
                "a refusal",
                [declined.into(), fine()],
                ends(ContentFilter, "refused").cause(&["I won't."]),
            ),
            Row::new(
                "no choices",
                [
                    Reply::Own {
                        whole: choiceless.to_string(),
                        events: vec![choiceless.to_string(), "[DONE]".to_owned()],
                    },
                    fine(),
                ],
                recovers(),
            )
            .whole(ends(LlmFailure, "invalid_response"))
            .drained(recovers()),
        ];
        if ["llama-cpp", "lm-studio", "vllm"].contains(&self.provider) {
            let tagged = "{\"name\": \"add_note\", \"arguments\": {\"text\": \"milk\"}}";
            let cut = "<tool_call>\n{\"name\": \"add_note\", \"arguments\": {\"text\": \"mi";
            rows.extend([
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
            ]);
        }
        rows
    }
}
