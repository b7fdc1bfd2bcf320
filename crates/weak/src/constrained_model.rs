//! A model that gets constrained tool calling although its adapter does not ask for it.

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    ActionScores, BoxFuture, Capabilities, Content, GenerateRequest, GenerateResponse,
    LanguageModel, Message, ModelError, ModelId, Part, Role, Utterance,
};
use serde_json::{Value, json};

/// The member of the answer that holds the list of actions; the decoder finds the list anywhere.
const ACTIONS: &str = "actions";

/// Billions of parameters up to which a model counts as small.
const SMALL_BILLIONS: f64 = 3.0;

/// Wraps a model that cannot be trusted to call tools freely, such as a small one on a server: an
/// agent gives it constrained tool calling then, as it does to the model inside the process.
///
/// The server has to follow a JSON Schema of the answer, as llama.cpp, vLLM, Ollama and LM Studio
/// do. The model gets one round of actions for each message, and results are told by
/// [`Tool::describe`](adjutant_core::Tool::describe).
///
/// # Examples
///
/// ```
/// use adjutant_core::LanguageModel;
/// use adjutant_weak::ConstrainedModel;
///
/// fn with_constrained_tools(model: impl LanguageModel) -> impl LanguageModel {
///     ConstrainedModel::new(model)
/// }
/// ```
#[derive(Debug)]
pub struct ConstrainedModel<M> {
    model: M,
    capabilities: Capabilities,
}

impl<M: LanguageModel> ConstrainedModel<M> {
    /// Gives a model constrained tool calling; all else stays as it is.
    pub fn new(model: M) -> Self {
        let capabilities = Capabilities {
            weak_tools: true,
            ..model.capabilities().clone()
        };
        Self {
            model,
            capabilities,
        }
    }
}

impl<M: LanguageModel> LanguageModel for ConstrainedModel<M> {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move { self.model.generate(&as_object(request)).await })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move { self.model.stream(&as_object(request)).await })
    }

    fn prepare(&self, request: &GenerateRequest) {
        self.model.prepare(&as_object(request));
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        self.model.count_tokens(text)
    }

    fn score_actions<'a>(
        &'a self,
        utterance: Utterance<'a>,
    ) -> BoxFuture<'a, Result<Option<ActionScores>, ModelError>> {
        self.model.score_actions(utterance)
    }
}

/// Returns a request whose answer is an object with the list of actions, because most servers take no
/// schema of a list. The answers of the examples become such objects too.
fn as_object(request: &GenerateRequest) -> GenerateRequest {
    let mut request = request.clone();
    let Some(schema) = request.response_schema.take() else {
        return request;
    };
    if schema["type"] == "object" {
        request.response_schema = Some(schema);
        return request;
    }
    request.response_schema = Some(json!({
        "type": "object",
        "properties": { ACTIONS: schema },
        "required": [ACTIONS],
        "additionalProperties": false
    }));
    for message in &mut request.messages {
        if message.role() == Role::Assistant
            && let Ok(answer @ Value::Array(_)) = serde_json::from_str(&message.text())
        {
            let text = json!({ ACTIONS: answer }).to_string();
            let part = Part::ours(Content::Text { text });
            // A message with a text is never refused.
            if let Ok(wrapped) = Message::assistant(vec![part]) {
                *message = wrapped;
            }
        }
    }
    request
}

/// Returns true if the name of a model says that it has at most three billion parameters, as
/// `qwen2.5:1.5b` and `gemma-3-270m-it` do. Such a model chooses wrong tools too often.
///
/// # Examples
///
/// ```
/// use adjutant_weak::is_small_model;
///
/// assert!(is_small_model("llama3.2:3b"));
/// assert!(!is_small_model("qwen3:30b-a3b"));
/// assert!(!is_small_model("gpt-4.1-mini"));
/// ```
#[must_use]
pub fn is_small_model(name: &str) -> bool {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    // The largest counts: a mixture of experts names its active parameters too.
    let largest = parts.filter_map(billions).max_by(f64::total_cmp);
    largest.is_some_and(|billions| billions <= SMALL_BILLIONS)
}

/// Parses a number of parameters, such as `1.5b` or `270M`.
fn billions(part: &str) -> Option<f64> {
    let lower = part.to_ascii_lowercase();
    let (number, unit) = match lower.strip_suffix('b') {
        Some(number) => (number, 1.0),
        None => (lower.strip_suffix('m')?, 0.001),
    };
    let begins_with_digit = number.starts_with(|c: char| c.is_ascii_digit());
    let number: f64 = number.parse().ok().filter(|_| begins_with_digit)?;
    Some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_object_for_servers_and_is_found_in_it() {
        let examples =
            r#"{"message": "hello", "answer": [{"tool": "small-talk", "args": {"text": "Hi!"}}]}"#;
        let tools = crate::WeakTools::from_jsonl(examples).unwrap();
        let request = GenerateRequest::new(vec![Message::user("good morning").unwrap()]);
        let encoded = as_object(&tools.encode(&request, &[], None));
        let schema = encoded.response_schema.clone().unwrap();
        assert_eq!(schema["properties"]["actions"]["type"], "array");
        let example = encoded
            .messages
            .iter()
            .find(|one| one.role() == Role::Assistant);
        assert_eq!(
            example.unwrap().text(),
            r#"{"actions":[{"small-talk":{"text":"Hi!"}}]}"#
        );
        assert_eq!(as_object(&encoded), encoded);
    }

    #[test]
    fn the_size_stands_in_the_name() {
        for small in [
            "qwen2.5:1.5b",
            "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
            "llama-3.2-1b-instruct",
            "smollm2:135m",
            "granite3.1-moe:3b",
            "hf.co/unsloth/gemma-3-270m-it-GGUF:Q8_0",
        ] {
            assert!(is_small_model(small), "{small}");
        }
        for other in [
            "qwen3:8b",
            "qwen3:30b-a3b",
            "gpt-4.1-mini",
            "llama3.2",
            "mixtral:8x7b",
            "command-r7b",
            "b",
            "claude-haiku-4-5",
            "",
        ] {
            assert!(!is_small_model(other), "{other}");
        }
    }
}
