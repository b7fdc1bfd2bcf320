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
mod claim_language; // word lists of claims
mod clarification; // questions instead of guesses
mod constrained_model; // constrained tool calling for any model
mod detect; // the language of a text
mod dialogue; // the end of the transcript
mod entities; // the user's entities, and which of them are shown
mod example; // examples for the model
mod false_claim; // text that claims a change without a call
mod features; // hashed features of texts
mod general; // tools that act on no entities
mod guard; // checks of calls against the message
mod language; // word lists of English
mod lexicon; // word lists of five languages
mod linear; // linear units over hashed features
mod offer; // the tools and entities a message allows
mod prompt; // the messages the model reads
mod quote; // texts that a tool takes verbatim
mod quoted_calls; // calls of such tools
mod resolve; // entity resolution
mod scored; // decisions about messages with scores
mod sentences; // sentences to the person
mod speech; // speech acts: statements, orders, questions
mod text_classifier; // texts that entries may get
mod tool_kind; // classification of tools
mod word_classifier; // scores of actions by words
mod words; // words of any language, folded

pub use constrained_model::{ConstrainedModel, is_small_model};
pub use example::InvalidExamples;
pub use false_claim::{claims_a_change, claims_understanding};
#[cfg(feature = "training")]
pub use scored::TextChoices;
pub use text_classifier::TextClassifier;
pub use word_classifier::WordClassifier;

use actions::CONTROLS;
use adjutant_core::{
    ActionScores, GenerateRequest, GenerateResponse, MaxTokens, Message, Reference, ToolDefinition,
    Utterance,
};
use dialogue::Dialogue;
use entities::Entities;
use example::Examples;
use general::Tools;
use guard::Guard;
use scored::Scored;
use serde_json::Value;

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
/// let encoded = tools.encode(&request, &[], None);
/// assert!(encoded.response_schema.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WeakTools {
    examples: Examples,
    /// Examples of tools that only messages with a text for them are sent with.
    on_demand: Vec<Examples>,
    /// Examples for messages whose actions were scored.
    scored: Option<Examples>,
    lexicons: lexicon::Lexicons,
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
            ..Self::default()
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

    /// Sets the examples for messages whose actions were scored: of what is left to the model then,
    /// which are the texts of new entities, other words for known ones, and small talk. Default: the
    /// same as for all messages.
    #[must_use]
    pub fn with_scored(mut self, scored: Self) -> Self {
        self.scored = Some(scored.examples);
        self
    }

    /// Encodes a request for a weak model: no tools, a schema for the answer, and a transcript of
    /// instruction, examples and one last message that holds the user's entities and message.
    ///
    /// All messages but the last depend on the tools alone: they are the same bytes in every
    /// request of an agent, but for what [`WeakTools::with_on_demand`] adds behind them.
    ///
    /// With the `scores` of the message's actions ([`LastExchange`] has what is scored), words and
    /// scores decide as much as they can, and the model is asked only for the rest.
    #[must_use]
    pub fn encode(
        &self,
        request: &GenerateRequest,
        references: &[Reference],
        scores: Option<&ActionScores>,
    ) -> GenerateRequest {
        let dialogue = Dialogue::from_messages(&request.messages);
        let tools = offered(request);
        let all = Tools::new(&tools);
        if let Some(general) = all.for_message(&dialogue, scores) {
            let is_alone = all.of_entities.is_empty();
            let messages =
                general::messages(request, &self.examples, &dialogue, &general, is_alone);
            let schema = general::schema(&dialogue, &general);
            return encoded(request, &dialogue, messages, schema);
        }
        let tools = all.of_entities;
        let scored = scores
            .and_then(|scores| Scored::new(&dialogue, references, &tools, *scores, self.lexicons));
        let is_on_demand = |tool: &&ToolDefinition| {
            self.on_demand
                .iter()
                .any(|examples| examples.shows_tool(tool))
        };
        // The head is the same for every message, so that a prompt cache keeps it.
        let (more, always): (Vec<_>, Vec<_>) = tools.iter().copied().partition(is_on_demand);
        let mut messages = match (&self.scored, &scored) {
            (Some(examples), Some(_)) => {
                let tools: Vec<_> = always
                    .into_iter()
                    .filter(|tool| scored::asks_model(tool))
                    .collect();
                prompt::head(examples, request, &tools, &CONTROLS[..1])
            }
            _ => prompt::head(&self.examples, request, &always, &CONTROLS),
        };
        let schema = if let Some(scored) = &scored {
            let decision = scored.decide();
            messages.extend(prompt::last_scored(&dialogue));
            scored.schema(&decision)
        } else {
            let entities = Entities::new(references, &dialogue, &tools);
            let guard = Guard::new(&dialogue, references, &tools);
            if !guard.quotes.is_empty() || guard.is_off_topic() {
                let shown = |examples| prompt::on_demand(examples, &more, &tools);
                messages.extend(self.on_demand.iter().flat_map(shown));
            }
            messages.extend(prompt::last(&dialogue, &entities, &tools, &guard));
            actions::schema(&tools, &entities, &dialogue, &guard)
        };
        encoded(request, &dialogue, messages, schema)
    }

    /// Decodes the answer to an encoded request, as if the model had called tools itself.
    /// `request`, `references` and `scores` are those that were encoded.
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
        scores: Option<&ActionScores>,
    ) -> GenerateResponse {
        let dialogue = Dialogue::from_messages(&request.messages);
        let tools = offered(request);
        let all = Tools::new(&tools);
        if let Some(general) = all.for_message(&dialogue, scores) {
            return answer::decode(response, |actions| {
                general::contents(actions.as_deref().unwrap_or_default(), &dialogue, &general)
            });
        }
        let tools = all.of_entities;
        let scored = scores
            .and_then(|scores| Scored::new(&dialogue, references, &tools, *scores, self.lexicons));
        let certainty = response.certainty;
        answer::decode(response, |actions| match &scored {
            Some(scored) => answer::decided(scored, &actions.unwrap_or_default(), certainty),
            None => answer::guarded(actions, &Guard::new(&dialogue, references, &tools), &tools),
        })
    }
}

/// The person's last message and what was said just before it: what a model scores the actions of.
///
/// # Examples
///
/// ```
/// use adjutant_core::{GenerateRequest, Message};
/// use adjutant_weak::LastExchange;
///
/// let request = GenerateRequest::new(vec![Message::user("buy milk")?]);
/// assert_eq!(LastExchange::of(&request).utterance().message, "buy milk");
/// # Ok::<(), adjutant_core::InvalidMessage>(())
/// ```
#[derive(Debug)]
pub struct LastExchange {
    message: String,
    before: Option<String>,
    earlier: Option<String>,
}

impl LastExchange {
    /// Reads the messages of a request. An answer to the question which entity is meant is joined
    /// with the message that the question was about: that one says what to do.
    #[must_use]
    pub fn of(request: &GenerateRequest) -> Self {
        let Dialogue {
            message,
            assistant_before: before,
            user_before: earlier,
        } = Dialogue::from_messages(&request.messages);
        match (&before, &earlier) {
            (Some(question), Some(order)) if dialogue::asks_which(question) => Self {
                message: format!("{order}: {message}"),
                before: None,
                earlier: None,
            },
            _ => Self {
                message,
                before,
                earlier,
            },
        }
    }

    /// Returns the exchange in the form that [`adjutant_core::LanguageModel::score_actions`] takes.
    #[must_use]
    pub fn utterance(&self) -> Utterance<'_> {
        Utterance {
            message: &self.message,
            before: self.before.as_deref(),
            earlier: self.earlier.as_deref(),
        }
    }
}

/// Returns a request of these messages for an answer of this schema, with all else as it was.
fn encoded(
    request: &GenerateRequest,
    dialogue: &Dialogue,
    messages: Vec<Message>,
    schema: Value,
) -> GenerateRequest {
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
    encoded.response_schema = Some(schema);
    encoded
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
