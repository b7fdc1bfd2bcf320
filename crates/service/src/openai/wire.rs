//! Responses of the Chat Completions API: a completion, or its chunks.

use adjutant_core::{
    AgentResponse, DecisionKind, Disposition, FailedCall, Notice, OutcomeCategory, PendingCall,
    TurnId, Usage,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::wire::Pending;

/// A complete answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Completion {
    /// Id of the completion.
    id: String,
    /// Always `chat.completion`.
    object: &'static str,
    /// Time of creation, in seconds since 1970.
    created: i64,
    /// Name of the model.
    model: String,
    /// The answer.
    choices: [Choice; 1],
    /// Tokens; absent if the provider did not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    /// Details of the turn.
    adjutant: TurnInfo,
}

/// The single answer.
#[derive(Debug, Serialize, ToSchema)]
struct Choice {
    /// Always 0.
    index: u32,
    /// The answer's message.
    message: AnswerMessage,
    /// Always `null`: log probabilities are not available.
    logprobs: Option<()>,
    /// Reason for which the answer ends.
    finish_reason: FinishReason,
}

/// Message with the agent's answer.
#[derive(Debug, Serialize, ToSchema)]
struct AnswerMessage {
    /// Always `assistant`.
    role: &'static str,
    /// The text; `null` if there are only `tool_calls`.
    content: Option<String>,
    /// Always `null`: a refusal is part of the text.
    refusal: Option<()>,
    /// Activity before the answer: thinking and tool calls of the agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    /// Calls of the client's tools. The next request must have a `tool` message for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallAsked>,
}

/// A call that the client has to execute.
#[derive(Debug, Serialize, ToSchema)]
struct CallAsked {
    /// Id of the call, which the result names.
    id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The function to call.
    function: FunctionAsked,
}

/// Name and arguments of a call.
#[derive(Debug, Serialize, ToSchema)]
struct FunctionAsked {
    /// Name of the client's tool.
    name: String,
    /// Arguments as JSON text.
    arguments: String,
}

/// Returns the calls that the client has to execute.
fn client_calls(response: &AgentResponse) -> impl Iterator<Item = CallAsked> + '_ {
    response
        .decision
        .pending
        .iter()
        .filter(|call| call.awaits_result())
        .map(|call| CallAsked {
            id: call.call_id.to_string(),
            kind: "function",
            function: FunctionAsked {
                name: call.tool.clone(),
                arguments: Value::Object(call.arguments.clone()).to_string(),
            },
        })
}

/// A part of a call.
#[derive(Debug, Default, Serialize)]
pub(super) struct CallPiece {
    /// Index of the call in the answer, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: FunctionPiece,
}

/// A part of a call's name or arguments.
#[derive(Debug, Default, Serialize)]
struct FunctionPiece {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    arguments: String,
}

/// A chunk of a streamed answer.
#[derive(Debug, Serialize)]
pub(super) struct Chunk {
    /// Id of the completion, the same in all chunks.
    id: String,
    /// Always `chat.completion.chunk`.
    object: &'static str,
    /// Time of creation, in seconds since 1970.
    created: i64,
    /// Name of the model.
    model: String,
    /// The new part of the answer; empty in the chunk with the token counts.
    choices: Vec<ChunkChoice>,
    /// Only with `include_usage`: `null`, and in the last chunk the token counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    // Two options: the member is absent, or `null` in the chunks before the one with the counts.
    usage: Option<Option<TokenUsage>>,
    /// Details of the turn, in the last chunk of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjutant: Option<TurnInfo>,
}

/// A part of the single answer.
#[derive(Debug, Serialize)]
struct ChunkChoice {
    index: u32,
    delta: Delta,
    logprobs: Option<()>,
    finish_reason: Option<FinishReason>,
}

impl ChunkChoice {
    fn new(delta: Delta, finish_reason: Option<FinishReason>) -> Self {
        Self {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
        }
    }
}

/// The new part of the message.
#[derive(Debug, Default, Serialize)]
pub(super) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<[CallPiece; 1]>,
}

/// Reason for which an answer ends.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The provider's filter cut it.
    ContentFilter,
    /// The client has to execute tool calls.
    ToolCalls,
}

impl FinishReason {
    pub(super) fn from_response(response: &AgentResponse) -> Self {
        // Before the outcome, which of a turn that waits for results would be mapped to `Stop`.
        if response
            .decision
            .pending
            .iter()
            .any(PendingCall::awaits_result)
        {
            return Self::ToolCalls;
        }
        match response.outcome {
            OutcomeCategory::MaxTokensLimit => Self::Length,
            OutcomeCategory::ContentFilter => Self::ContentFilter,
            _ => Self::Stop,
        }
    }
}

/// Token counts, as the Chat Completions API names them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenUsage {
    /// Input tokens.
    prompt_tokens: u64,
    /// Output tokens.
    completion_tokens: u64,
    /// Sum of both.
    total_tokens: u64,
    /// Details of the input tokens.
    prompt_tokens_details: PromptTokens,
    /// Details of the output tokens.
    completion_tokens_details: CompletionTokens,
}

/// Details of the input tokens.
#[derive(Debug, Serialize, ToSchema)]
struct PromptTokens {
    /// Tokens that the provider read from its cache.
    cached_tokens: u64,
}

/// Details of the output tokens.
#[derive(Debug, Serialize, ToSchema)]
struct CompletionTokens {
    /// Tokens used for thinking.
    reasoning_tokens: u64,
}

impl TokenUsage {
    /// Converts a usage; `None` if the provider did not report it.
    pub(super) fn from_usage(usage: Usage) -> Option<Self> {
        Some(Self {
            prompt_tokens: usage.input_tokens?,
            completion_tokens: usage.output_tokens?,
            total_tokens: usage.total()?,
            prompt_tokens_details: PromptTokens {
                cached_tokens: usage.cached_tokens.unwrap_or_default(),
            },
            completion_tokens_details: CompletionTokens {
                reasoning_tokens: usage.thinking_tokens.unwrap_or_default(),
            },
        })
    }
}

/// Details of the turn, for clients that know this service.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct TurnInfo {
    /// Id of the turn, whose decision is in the log.
    #[schema(value_type = String)]
    run_id: TurnId,
    /// Kind of the agent's decision.
    #[schema(value_type = String)]
    decision: DecisionKind,
    /// Outcome of the turn.
    #[schema(value_type = String)]
    outcome: OutcomeCategory,
    /// Fate of the last message: `ran`, `queued`, `answered` or `dropped`.
    #[schema(value_type = String)]
    disposition: Disposition,
    /// Calls that wait for a confirmation by the next message, or for their result.
    pending: Vec<Pending>,
    /// Calls that failed, with the reason for the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    failed_calls: Vec<FailedCall>,
    /// Notices, among them those about ignored parts of the request.
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
}

impl TurnInfo {
    pub(super) fn from_response(response: &AgentResponse, notices: &[Notice]) -> Self {
        let pending = response
            .decision
            .pending
            .iter()
            .cloned()
            .map(Pending::from_call);
        Self {
            run_id: response.turn,
            decision: response.decision.kind,
            outcome: response.outcome,
            disposition: response.disposition,
            pending: pending.collect(),
            failed_calls: response.failed_calls.clone(),
            notices: notices.iter().chain(&response.notices).cloned().collect(),
        }
    }
}

/// Fields that all chunks of an answer share.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
    /// True if the client asked for token counts.
    pub(super) with_usage: bool,
    /// Notices about ignored parts of the request.
    pub(super) notices: Vec<Notice>,
}

impl Envelope {
    /// Builds a complete answer.
    pub(super) fn completion(
        self,
        content: String,
        reasoning: String,
        response: &AgentResponse,
    ) -> Completion {
        let tool_calls: Vec<CallAsked> = client_calls(response).collect();
        let message = AnswerMessage {
            role: "assistant",
            // Beside calls an empty text is `null`, as in OpenAI's API.
            content: Some(content).filter(|content| tool_calls.is_empty() || !content.is_empty()),
            refusal: None,
            reasoning_content: reasoning,
            tool_calls,
        };
        Completion {
            adjutant: TurnInfo::from_response(response, &self.notices),
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: [Choice {
                index: 0,
                message,
                logprobs: None,
                finish_reason: FinishReason::from_response(response),
            }],
            usage: TokenUsage::from_usage(response.usage),
        }
    }

    /// Builds a chunk with a part of the answer.
    pub(super) fn chunk(&self, delta: Delta) -> Chunk {
        self.chunk_with(vec![ChunkChoice::new(delta, None)], None)
    }

    /// Builds the chunks of the client's calls, two for each: id and name, then the arguments.
    pub(super) fn call_chunks(&self, response: &AgentResponse) -> Vec<Chunk> {
        let pieces = client_calls(response)
            .enumerate()
            .flat_map(|(index, call)| {
                // OpenAI sends the name first and the arguments after it; client libraries join the
                // pieces.
                let (name, arguments) = (Some(call.function.name), String::new());
                let head = CallPiece {
                    index,
                    id: Some(call.id),
                    kind: Some(call.kind),
                    function: FunctionPiece { name, arguments },
                };
                let (name, arguments) = (None, call.function.arguments);
                let rest = CallPiece {
                    index,
                    function: FunctionPiece { name, arguments },
                    ..CallPiece::default()
                };
                [head, rest]
            });
        let chunk = |piece| {
            self.chunk(Delta {
                tool_calls: Some([piece]),
                ..Delta::default()
            })
        };
        pieces.map(chunk).collect()
    }

    /// Builds the chunk that ends the answer.
    pub(super) fn last_chunk(&self, response: &AgentResponse) -> Chunk {
        let reason = FinishReason::from_response(response);
        let choice = ChunkChoice::new(Delta::default(), Some(reason));
        Chunk {
            adjutant: Some(TurnInfo::from_response(response, &self.notices)),
            ..self.chunk_with(vec![choice], None)
        }
    }

    /// Builds the chunk with the token counts, if the client asked for them.
    pub(super) fn usage_chunk(&self, response: &AgentResponse) -> Option<Chunk> {
        self.with_usage
            .then(|| self.chunk_with(Vec::new(), TokenUsage::from_usage(response.usage)))
    }

    fn chunk_with(&self, choices: Vec<ChunkChoice>, usage: Option<TokenUsage>) -> Chunk {
        Chunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices,
            usage: self.with_usage.then_some(usage),
            adjutant: None,
        }
    }
}
