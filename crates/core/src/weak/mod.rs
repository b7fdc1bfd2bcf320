//! Tool calling for models that cannot be trusted to call tools freely.
//!
//! [`WeakTools::encode`] turns a request with tools into one that asks for a constrained list of
//! actions, with examples, and in which the user's things are named by their own words.
//! [`WeakTools::decode`] turns the answer back into calls, and puts a question in the place of
//! every call that what the person said does not bear out.
//!
//! Pure functions over data: the tools and their schemas, the user's things ([`Reference`]) and the
//! examples. The caller allows one round of actions for each message and shows results with
//! [`crate::Tool::describe`]: such a model does not stop calling once it has begun, and describes
//! results poorly.

mod actions; // what the answer may be
mod answer; // reading the answer
mod claim; // what words to the person say was done
mod doubt; // questions instead of guesses
mod english; // what words show
mod example; // how it is done, shown
mod guard; // what a call has to show for itself
mod nature; // what a tool does
mod offer; // what a message can mean
mod prompt; // what the model reads
mod quote; // words of the person for tools that take them as they are
mod quoting; // the calls of those tools
mod said; // what the person said
mod speech; // what a message does: state, ask, order to keep
mod things; // what the person has
mod which; // which of them is meant

pub use example::InvalidExamples;

use crate::model::{GenerateRequest, GenerateResponse, MaxTokens};
use crate::tool::{Reference, ToolDefinition};
use example::Examples;
use guard::Guard;
use said::Said;
use things::Things;

/// Tokens for the frame of an answer; what it quotes of the message comes on top.
const OUTPUT_TOKENS_BASE: u32 = 320;

/// The policy for weak models: an instruction and examples for the tools of one agent.
#[derive(Debug, Clone, Default)]
pub struct WeakTools {
    examples: Examples,
    /// Of tools that are shown only to messages which have words for them.
    on_demand: Vec<Examples>,
}

impl WeakTools {
    /// Without examples: works with any tools, much less well than with some.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads examples from JSON lines.
    ///
    /// The first line may be `{"instruction": "..."}`, the sentence the prompt begins with; without
    /// it, the request's own instruction is taken. Each other line is one example:
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
    /// [`InvalidExamples`] names the line.
    pub fn from_jsonl(text: &str) -> Result<Self, InvalidExamples> {
        Examples::from_jsonl(text).map(|examples| Self {
            examples,
            on_demand: Vec::new(),
        })
    }

    /// Adds the examples of further tools, which take words of the person as they are: a `fact`, an
    /// `activity` for a diary, a `query`.
    ///
    /// Only a message that has words for one of them is sent with these tools and examples, behind
    /// the others. So the requests of all other messages are what they are without them, and what
    /// they begin with is the same for all messages.
    #[must_use]
    pub fn with_on_demand(mut self, more: Self) -> Self {
        self.on_demand.push(more.examples);
        self.on_demand.extend(more.on_demand);
        self
    }

    /// The same request for a weak model: no tools, a schema for the answer, and a transcript of
    /// instruction, examples and one last message that holds what the person has and says.
    ///
    /// All messages but the last depend on the tools alone: they are the same bytes in every
    /// request of an agent, but for what [`WeakTools::with_on_demand`] adds behind them.
    #[must_use]
    pub fn encode(&self, request: &GenerateRequest, references: &[Reference]) -> GenerateRequest {
        let said = Said::read(&request.messages);
        let tools = offered(request);
        let things = Things::new(references, &said, &tools);
        let guard = Guard::new(&said, references, &tools);
        let is_on_demand =
            |tool: &&ToolDefinition| self.on_demand.iter().any(|examples| examples.show(tool));
        let (more, always): (Vec<_>, Vec<_>) = tools.iter().copied().partition(is_on_demand);
        let mut messages = prompt::head(&self.examples, request, &always);
        if !guard.quotes.is_empty() || guard.only_declines() {
            let shown = |examples| prompt::on_demand(examples, &more, &tools);
            messages.extend(self.on_demand.iter().flat_map(shown));
        }
        messages.extend(prompt::last(&said, &things, &tools, &guard));
        let mut encoded = GenerateRequest::new(messages);
        encoded.config = request.config.clone();
        let wanted = OUTPUT_TOKENS_BASE
            + u32::try_from(said.message.chars().count() / 2).unwrap_or(u32::MAX / 2);
        let allowed = request
            .config
            .max_tokens
            .map_or(wanted, |max| max.get().min(wanted));
        encoded.config.max_tokens = MaxTokens::new(allowed).ok();
        encoded.time_left = request.time_left;
        encoded.trace.clone_from(&request.trace);
        encoded.response_schema = Some(actions::schema(&tools, &things, &said, &guard));
        encoded
    }

    /// The answer to an encoded request, as if the model had called tools itself. `request` and
    /// `references` are those that were encoded.
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
        let said = Said::read(&request.messages);
        let tools = offered(request);
        answer::decode(response, &said, references, &tools)
    }
}

/// The tools of a request, without the control functions of the turn: those have their own form
/// here.
fn offered(request: &GenerateRequest) -> Vec<&ToolDefinition> {
    request
        .tools
        .iter()
        .filter(|tool| !crate::RESERVED.contains(&tool.name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
