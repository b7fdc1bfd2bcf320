//! Turns a reply into a whole answer, a stream of deltas, or the error it stands for.

use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    Content, Counters, Delta, FinishReason, GenerateResponse, ModelError, ModelId, Part, TimeBound,
    ToolCall,
};
use futures::StreamExt;
use futures::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::reply::{Fault, Reply, ScriptedArguments};

/// The time that a scripted time-out reports.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the reply as a whole answer, or its error.
pub(super) async fn whole(reply: Reply, model: &ModelId) -> Result<GenerateResponse, ModelError> {
    sleep(reply.delay).await;
    match &reply.fault {
        Some(Fault::Stall) => std::future::pending().await,
        Some(fault) => failure(fault, model).map_or_else(|| Ok(response(&reply, model)), Err),
        None => Ok(response(&reply, model)),
    }
}

/// Returns the reply as a stream of deltas that ends with [`Delta::Finished`] or an error.
pub(super) fn stream_reply(reply: Reply, model: ModelId, bounds: Bounds) -> DeltaStream {
    let (pause, pausing) = (reply.pause, model.clone());
    let deltas = stream::iter(deltas(&reply)).then(move |delta| {
        let model = pausing.clone();
        async move {
            if pause.is_zero() {
                return Ok(delta);
            }
            let wait = async {
                sleep(pause).await;
                Ok(delta)
            };
            bounds.apply(&model, wait).await
        }
    });
    let (delay, delayed) = (reply.delay, model.clone());
    let wait = async move {
        sleep(delay).await;
        Ok(())
    };
    let begin = async move { bounds.apply(&delayed, wait).await.err().map(Err) };
    let end = async move {
        let rest = Reply {
            // The delay was waited for before the first delta.
            delay: Duration::ZERO,
            ..reply
        };
        bounds
            .apply(&model, whole(rest, &model))
            .await
            .map(Delta::Finished)
    };
    let begin = stream::once(begin).filter_map(std::future::ready);
    Box::pin(begin.chain(deltas).chain(stream::once(end)))
}

/// Bounds on the wait for an answer: the caller's time, and the model's silence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    deadline: Option<(Instant, Duration)>,
    silence: Option<Duration>,
}

impl Bounds {
    pub(super) fn start(left: Option<Duration>, silence: Option<Duration>) -> Self {
        let deadline = left.and_then(|left| Some((Instant::now().checked_add(left)?, left)));
        Self { deadline, silence }
    }

    /// Awaits a silence; fails once a bound is reached.
    pub(super) async fn apply<T>(
        self,
        model: &ModelId,
        silence: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        let whole = self.deadline.map(|(at, whole)| {
            (
                at.saturating_duration_since(Instant::now()),
                whole,
                TimeBound::Total,
            )
        });
        let longest = self
            .silence
            .map(|silence| (silence, silence, TimeBound::Silence));
        let Some((bound, waited, reached)) =
            whole.into_iter().chain(longest).min_by_key(|bound| bound.0)
        else {
            return silence.await;
        };
        let provider = model.provider.clone();
        timeout(bound, silence)
            .await
            .unwrap_or(Err(ModelError::Timeout {
                provider,
                waited,
                bound: reached,
            }))
    }
}

fn deltas(reply: &Reply) -> Vec<Delta> {
    let mut deltas: Vec<Delta> = Vec::new();
    let cut = |text: &Option<String>| {
        text.as_deref()
            .map(|text| cut(text, reply.piece_chars))
            .unwrap_or_default()
    };
    deltas.extend(cut(&reply.thinking).into_iter().map(Delta::Thinking));
    deltas.extend(cut(&reply.text).into_iter().map(Delta::Text));
    for (index, call) in reply.calls.iter().enumerate() {
        let name = call.name.clone();
        for arguments in cut(&Some(call.arguments_text())) {
            deltas.push(Delta::ToolCall {
                index,
                name: name.clone(),
                arguments,
            });
        }
    }
    deltas
}

fn cut(text: &str, piece_chars: Option<usize>) -> Vec<String> {
    match piece_chars {
        None => text.split_inclusive(' ').map(str::to_owned).collect(),
        Some(size) => {
            let chars: Vec<char> = text.chars().collect();
            chars
                .chunks(size)
                .map(|piece| piece.iter().collect())
                .collect()
        }
    }
}

fn response(reply: &Reply, model: &ModelId) -> GenerateResponse {
    let mut parts = Vec::new();
    if let Some(text) = reply.thinking.clone() {
        parts.push(Part::from_provider(Content::Thinking { text }, None));
    }
    if let Some(text) = reply.text.clone() {
        parts.push(Part::from_provider(Content::Text { text }, None));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let call = match &call.arguments {
            ScriptedArguments::Json(Value::Object(map)) => {
                ToolCall::from_object(index, None, call.name.clone(), map.clone())
            }
            ScriptedArguments::Json(_) | ScriptedArguments::Text(_) => {
                ToolCall::from_json_text(index, None, call.name.clone(), &call.arguments_text())
            }
        };
        parts.push(Part::from_provider(Content::ToolCall(call), None));
    }
    let default = if reply.calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    };
    GenerateResponse {
        parts,
        finish: reply.finish.unwrap_or(default),
        usage: reply.usage,
        model: model.clone(),
        counters: Counters::default(),
        cost: None,
        losses: Vec::new(),
        certainty: None,
    }
}

/// Returns the error a fault stands for; `None` for faults that alter the answer instead.
fn failure(fault: &Fault, model: &ModelId) -> Option<ModelError> {
    let provider = model.provider.clone();
    let scripted = |what: &str| format!("{what} (scripted)");
    Some(match fault {
        Fault::RateLimit { retry_after } => ModelError::RateLimited {
            provider,
            message: String::new(),
            retry_after: *retry_after,
        },
        Fault::Quota => ModelError::Quota {
            provider,
            message: scripted("out of credit"),
        },
        Fault::Server { status } => ModelError::Server {
            provider,
            status: *status,
            message: scripted("internal error"),
            retry_after: None,
        },
        Fault::Timeout => ModelError::Timeout {
            provider,
            waited: TIMEOUT,
            bound: TimeBound::Silence,
        },
        Fault::Network => ModelError::Network {
            provider,
            message: scripted("connection refused"),
            source: None,
        },
        Fault::Reset => ModelError::Network {
            provider,
            message: scripted("connection reset"),
            source: None,
        },
        Fault::Authentication => ModelError::Authentication {
            provider,
            message: scripted("the key is not valid"),
        },
        Fault::NotFound => ModelError::NotFound {
            provider,
            model: model.name.clone(),
            message: scripted("no such model"),
        },
        Fault::BadRequest => ModelError::BadRequest {
            provider,
            message: scripted("invalid request"),
        },
        Fault::ContextTooLong => ModelError::ContextTooLong {
            provider,
            message: scripted("too many tokens"),
        },
        Fault::Refused => ModelError::Refused {
            provider,
            message: scripted("blocked"),
        },
        Fault::InvalidResponse { raw } => ModelError::InvalidResponse {
            provider,
            reason: scripted("not JSON"),
            raw: raw.clone(),
            source: None,
        },
        Fault::Truncated => ModelError::Truncated {
            provider,
            reason: scripted("the stream broke off"),
            source: None,
        },
        Fault::Stall
        | Fault::Empty
        | Fault::ThinkingOnly
        | Fault::SplitUtf8
        | Fault::TruncatedJson
        | Fault::UnknownTool
        | Fault::WrongType => return None,
    })
}
