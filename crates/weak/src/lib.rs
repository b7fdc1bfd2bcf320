//! Constrained tool calling, for models that cannot be trusted to call tools freely.
//!
//! [`WeakTools::encode`] turns a request with tools into one that asks for a list of allowed
//! actions, with examples, and in which the user's entities are named by their labels.
//! [`WeakTools::decode`] turns the answer back into calls, and puts a question in the place of
//! every call that the user's message does not support.
//!
//! Everything here is a pure function of the tools and their schemas, the user's entities
//! ([`Reference`]) and the examples; nothing is sent. The caller allows one round of actions for
//! each message and shows results with [`adjutant_core::Tool::describe`]: such a model does not
//! stop calling once it has begun, and describes results poorly.

mod actions; // the schema of an answer
mod analysis; // words, numbers and clauses of a message
mod answer; // decoding of an answer
mod clarification; // questions instead of guesses
mod dialogue; // the end of the transcript
mod entities; // the user's entities, and which of them are shown
mod example; // examples for the model
mod false_claim; // text that claims a change without a call
mod guard; // checks of calls against the message
mod language; // word lists
mod offer; // the tools and entities a message allows
mod prompt; // the messages the model reads
mod quote; // texts that a tool takes verbatim
mod quoted_calls; // calls of such tools
mod resolve; // entity resolution
mod speech; // speech acts: statements, orders, questions
mod tool_kind; // classification of tools

pub use example::InvalidExamples;

use adjutant_core::{GenerateRequest, GenerateResponse, MaxTokens, Reference, ToolDefinition};
use dialogue::Dialogue;
use entities::Entities;
use example::Examples;
use guard::Guard;

/// Tokens for the frame of an answer, beside what it quotes of the message.
const OUTPUT_TOKENS_BASE: u32 = 320;

/// Instruction and examples with which a weak model calls the tools of one agent.
///
/// # Examples
///
/// ```
/// use adjutant_core::{GenerateRequest, Message};
/// use adjutant_weak::WeakTools;
///
/// let tools = WeakTools::from_jsonl(
///     r#"{"message": "hello", "answer": [{"tool": "small-talk", "args": {"text": "Hi!"}}]}"#,
/// )?;
/// let request = GenerateRequest::new(vec![Message::user("good morning")?]);
/// let encoded = tools.encode(&request, &[]);
/// assert!(encoded.response_schema.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WeakTools {
    examples: Examples,
    /// Examples of tools that only messages with a text for them are sent with.
    on_demand: Vec<Examples>,
}

impl WeakTools {
    /// Creates a policy without examples: it works with any tools, much less well than with some.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses examples from JSON lines.
    ///
    /// The first line may be `{"instruction": "..."}`, the sentence that the prompt begins with;
    /// without it, the request's instruction is taken. Each other line is one example:
    ///
    /// | field | meaning |
    /// |---|---|
    /// | `references` | optional: what the person has, as [`Reference`]s; shown with this example |
    /// | `before` | optional: what the assistant said just before |
    /// | `earlier` | optional, with `before`: what the person had said before that |
    /// | `message` | what the person says |
    /// | `answer` | the actions: `[{"tool": "...", "args": {...}}]`, or one `small-talk {text}`, `unclear {question}`, `off-topic {message}` |
    ///
    /// An example with a tool that a request does not offer is left out of that request.
    ///
    /// # Errors
    /// [`InvalidExamples`] with the number of the line.
    pub fn from_jsonl(text: &str) -> Result<Self, InvalidExamples> {
        Examples::from_jsonl(text).map(|examples| Self {
            examples,
            on_demand: Vec::new(),
        })
    }

    /// Adds the examples of further tools, which take a text of the user verbatim: a `fact`, an
    /// `activity` for a diary, a `query`.
    ///
    /// Only a message that has a text for one of them is sent with these tools and examples, behind
    /// the others. The requests of all other messages stay as they are without them, and their
    /// beginning stays the same for all messages, so that a prompt cache keeps it.
    #[must_use]
    pub fn with_on_demand(mut self, more: Self) -> Self {
        self.on_demand.push(more.examples);
        self.on_demand.extend(more.on_demand);
        self
    }

    /// Encodes a request for a weak model: no tools, a schema for the answer, and a transcript of
    /// instruction, examples and one last message that holds the user's entities and message.
    ///
    /// All messages but the last depend on the tools alone: they are the same bytes in every
    /// request of an agent, but for what [`WeakTools::with_on_demand`] adds behind them.
    #[must_use]
    pub fn encode(&self, request: &GenerateRequest, references: &[Reference]) -> GenerateRequest {
        let dialogue = Dialogue::from_messages(&request.messages);
        let tools = offered(request);
        let entities = Entities::new(references, &dialogue, &tools);
        let guard = Guard::new(&dialogue, references, &tools);
        let is_on_demand = |tool: &&ToolDefinition| {
            self.on_demand
                .iter()
                .any(|examples| examples.shows_tool(tool))
        };
        // The head is the same for every message, so that a prompt cache keeps it.
        let (more, always): (Vec<_>, Vec<_>) = tools.iter().copied().partition(is_on_demand);
        let mut messages = prompt::head(&self.examples, request, &always);
        if !guard.quotes.is_empty() || guard.is_off_topic() {
            let shown = |examples| prompt::on_demand(examples, &more, &tools);
            messages.extend(self.on_demand.iter().flat_map(shown));
        }
        messages.extend(prompt::last(&dialogue, &entities, &tools, &guard));
        let mut encoded = GenerateRequest::new(messages);
        encoded.config = request.config.clone();
        // An answer may quote the whole message, at about two characters a token.
        let wanted = OUTPUT_TOKENS_BASE
            + u32::try_from(dialogue.message.chars().count() / 2).unwrap_or(u32::MAX / 2);
        let allowed = request
            .config
            .max_tokens
            .map_or(wanted, |max| max.get().min(wanted));
        encoded.config.max_tokens = MaxTokens::new(allowed).ok();
        encoded.time_left = request.time_left;
        encoded.trace.clone_from(&request.trace);
        encoded.response_schema = Some(actions::schema(&tools, &entities, &dialogue, &guard));
        encoded
    }

    /// Decodes the answer to an encoded request, as if the model had called tools itself. `request`
    /// and `references` are those that were encoded.
    ///
    /// Its parts are calls with ids for references, at most one `ask_user` or `decline`, or text.
    /// An answer that is no list of actions becomes a question too: the same request would bring
    /// the same answer.
    #[must_use]
    pub fn decode(
        &self,
        response: GenerateResponse,
        request: &GenerateRequest,
        references: &[Reference],
    ) -> GenerateResponse {
        let dialogue = Dialogue::from_messages(&request.messages);
        let tools = offered(request);
        answer::decode(response, &dialogue, references, &tools)
    }
}

/// Returns the tools of a request without the turn's control functions, which are
/// [`actions::CONTROLS`] here.
fn offered(request: &GenerateRequest) -> Vec<&ToolDefinition> {
    request
        .tools
        .iter()
        .filter(|tool| !adjutant_core::RESERVED.contains(&tool.name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
