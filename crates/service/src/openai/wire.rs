//! What this API answers: a completion, or its chunks.

use adjutant_core::{
    AgentResponse, DecisionKind, Notice, OutcomeCategory, PendingCall, TurnId, Usage,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::wire::Pending;

/// An answer as a whole.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Completion {
    id: String,
    object: &'static str,
    /// In seconds since 1970.
    created: i64,
    model: String,
    choices: [Choice; 1],
    /// Left out where the provider did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    adjutant: TurnInfo,
}

/// The one answer.
#[derive(Debug, Serialize, ToSchema)]
struct Choice {
    index: u32,
    message: AnswerMessage,
    /// Always `null`: it is not known how likely a token was.
    logprobs: Option<()>,
    finish_reason: FinishReason,
}

/// What is answered.
#[derive(Debug, Serialize, ToSchema)]
struct AnswerMessage {
    role: &'static str,
    /// `null` if nothing is said beside `tool_calls`.
    content: Option<String>,
    /// Always `null`: a refusal is words like any other.
    refusal: Option<()>,
    /// What went on before the answer: thinking, and what the tools did.
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    /// Calls of the client's tools. The next request has a `tool` message for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallAsked>,
}

/// A call that the client is to execute.
#[derive(Debug, Serialize, ToSchema)]
struct CallAsked {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionAsked,
}

/// Its tool and arguments.
#[derive(Debug, Serialize, ToSchema)]
struct FunctionAsked {
    name: String,
    /// JSON as text.
    arguments: String,
}

/// The calls that the client is to execute.
fn asked(response: &AgentResponse) -> impl Iterator<Item = CallAsked> + '_ {
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

/// A piece of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallPiece {
    /// Index of the call in the answer, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: FunctionPiece,
}

/// A piece of its function.
#[derive(Debug, Serialize, ToSchema)]
struct FunctionPiece {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    arguments: String,
}

/// A piece of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Chunk {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Vec<ChunkChoice>,
    /// Only if it was asked for: `null`, and the tokens in the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TokenUsage>)]
    usage: Option<Option<TokenUsage>>,
    /// In the last chunk of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjutant: Option<TurnInfo>,
}

/// A piece of the one answer.
#[derive(Debug, Serialize, ToSchema)]
struct ChunkChoice {
    index: u32,
    delta: Delta,
    logprobs: Option<()>,
    finish_reason: Option<FinishReason>,
}

/// What is new.
#[derive(Debug, Default, Serialize, ToSchema)]
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

/// Why the answer ends.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishReason {
    /// It is complete.
    Stop,
    /// It was cut at a bound of tokens.
    Length,
    /// The provider filtered it.
    ContentFilter,
    /// The client is to execute calls.
    ToolCalls,
}

impl FinishReason {
    pub(super) fn of(response: &AgentResponse) -> Self {
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

/// Tokens, in this API's words.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokens,
    completion_tokens_details: CompletionTokens,
}

/// Of the prompt.
#[derive(Debug, Serialize, ToSchema)]
struct PromptTokens {
    cached_tokens: u64,
}

/// Of the completion.
#[derive(Debug, Serialize, ToSchema)]
struct CompletionTokens {
    reasoning_tokens: u64,
}

impl TokenUsage {
    /// `None`: the provider did not say.
    pub(super) fn of(usage: Usage) -> Option<Self> {
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

/// What the turn came to, for clients that know this agent. Others do not look here.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct TurnInfo {
    /// Its decision is in the log.
    #[schema(value_type = String)]
    run_id: TurnId,
    #[schema(value_type = String)]
    decision: DecisionKind,
    #[schema(value_type = String)]
    outcome: OutcomeCategory,
    /// Calls that wait for a yes or no in the next message, or for their result.
    pending: Vec<Pending>,
    /// What of the request had no effect, and what else there is to know.
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
}

impl TurnInfo {
    pub(super) fn of(response: &AgentResponse, notices: &[Notice]) -> Self {
        let pending = response.decision.pending.iter().cloned().map(Pending::of);
        Self {
            run_id: response.turn,
            decision: response.decision.kind,
            outcome: response.outcome,
            pending: pending.collect(),
            notices: notices.iter().chain(&response.notices).cloned().collect(),
        }
    }
}

/// What all pieces of an answer have in common.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
    /// Whether the tokens were asked for.
    pub(super) with_usage: bool,
    /// What of the request had no effect.
    pub(super) notices: Vec<Notice>,
}

impl Envelope {
    /// The whole answer.
    pub(super) fn completion(
        self,
        content: String,
        reasoning: String,
        response: &AgentResponse,
    ) -> Completion {
        let tool_calls: Vec<CallAsked> = asked(response).collect();
        let message = AnswerMessage {
            role: "assistant",
            content: Some(content).filter(|content| tool_calls.is_empty() || !content.is_empty()),
            refusal: None,
            reasoning_content: reasoning,
            tool_calls,
        };
        Completion {
            adjutant: TurnInfo::of(response, &self.notices),
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: [Choice {
                index: 0,
                message,
                logprobs: None,
                finish_reason: FinishReason::of(response),
            }],
            usage: TokenUsage::of(response.usage),
        }
    }

    /// A piece of the answer.
    pub(super) fn chunk(&self, delta: Delta) -> Chunk {
        self.of(
            vec![ChunkChoice {
                index: 0,
                delta,
                logprobs: None,
                finish_reason: None,
            }],
            None,
        )
    }

    /// The calls that the client is to execute, each in two pieces: which it is, and its arguments.
    pub(super) fn call_chunks(&self, response: &AgentResponse) -> Vec<Chunk> {
        let pieces = asked(response).enumerate().flat_map(|(index, call)| {
            let CallAsked {
                id,
                kind,
                function: FunctionAsked { name, arguments },
            } = call;
            let begun = FunctionPiece {
                name: Some(name),
                arguments: String::new(),
            };
            let whole = FunctionPiece {
                name: None,
                arguments,
            };
            [
                CallPiece {
                    index,
                    id: Some(id),
                    kind: Some(kind),
                    function: begun,
                },
                CallPiece {
                    index,
                    id: None,
                    kind: None,
                    function: whole,
                },
            ]
        });
        pieces
            .map(|piece| {
                self.chunk(Delta {
                    tool_calls: Some([piece]),
                    ..Delta::default()
                })
            })
            .collect()
    }

    /// The end of the answer.
    pub(super) fn last_chunk(&self, response: &AgentResponse) -> Chunk {
        let finish_reason = Some(FinishReason::of(response));
        let choice = ChunkChoice {
            index: 0,
            delta: Delta::default(),
            logprobs: None,
            finish_reason,
        };
        Chunk {
            adjutant: Some(TurnInfo::of(response, &self.notices)),
            ..self.of(vec![choice], None)
        }
    }

    /// What stands behind the end, if it was asked for: the tokens.
    pub(super) fn usage_chunk(&self, response: &AgentResponse) -> Option<Chunk> {
        self.with_usage
            .then(|| self.of(Vec::new(), TokenUsage::of(response.usage)))
    }

    fn of(&self, choices: Vec<ChunkChoice>, usage: Option<TokenUsage>) -> Chunk {
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
