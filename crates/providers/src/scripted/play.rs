//! A reply as an answer, as pieces of one, or as the error it stands for.

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

/// What a scripted time-out says it waited, if the caller set no time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The whole answer.
pub(super) async fn whole(reply: Reply, model: &ModelId) -> Result<GenerateResponse, ModelError> {
    sleep(reply.delay).await;
    match &reply.fault {
        Some(Fault::Stall) => std::future::pending().await,
        Some(fault) => failure(fault, model).map_or_else(|| Ok(response(&reply, model)), Err),
        None => Ok(response(&reply, model)),
    }
}

/// The answer piece by piece, ended by [`Delta::Finished`] or by an error. Nothing follows an
/// error.
pub(super) fn pieces(reply: Reply, model: ModelId, time: Time) -> DeltaStream {
    let (pause, asker) = (reply.pause, model.clone());
    let deltas = stream::iter(deltas(&reply)).then(move |delta| {
        let model = asker.clone();
        async move {
            if pause.is_zero() {
                return Ok(delta);
            }
            let wait = async {
                sleep(pause).await;
                Ok(delta)
            };
            time.bounds(&model, wait).await
        }
    });
    let (delay, asked) = (reply.delay, model.clone());
    let wait = async move {
        sleep(delay).await;
        Ok(())
    };
    let begin = async move { time.bounds(&asked, wait).await.err().map(Err) };
    let end = async move {
        let rest = Reply {
            delay: Duration::ZERO,
            ..reply
        };
        time.bounds(&model, whole(rest, &model))
            .await
            .map(Delta::Finished)
    };
    let begin = stream::once(begin).filter_map(std::future::ready);
    Box::pin(begin.chain(deltas).chain(stream::once(end)))
}

/// Bounds on the wait for an answer: the caller's time, and the model's silence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    deadline: Option<(Instant, Duration)>,
    silence: Option<Duration>,
}

impl Time {
    pub(super) fn starts(left: Option<Duration>, silence: Option<Duration>) -> Self {
        let deadline = left.and_then(|left| Some((Instant::now().checked_add(left)?, left)));
        Self { deadline, silence }
    }

    /// Waits for something, during which nothing comes.
    pub(super) async fn bounds<T>(
        self,
        model: &ModelId,
        coming: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        let whole = self.deadline.map(|(at, whole)| {
            (
                at.saturating_duration_since(Instant::now()),
                whole,
                TimeBound::Total,
            )
        });
        let silence = self
            .silence
            .map(|silence| (silence, silence, TimeBound::Silence));
        let Some((bound, waited, reached)) =
            whole.into_iter().chain(silence).min_by_key(|bound| bound.0)
        else {
            return coming.await;
        };
        let provider = model.provider.clone();
        timeout(bound, coming)
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
    let cut = |words: &Option<String>| {
        words
            .as_deref()
            .map(|words| cut(words, reply.piece_chars))
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

fn cut(words: &str, piece_chars: Option<usize>) -> Vec<String> {
    match piece_chars {
        None => words.split_inclusive(' ').map(str::to_owned).collect(),
        Some(size) => {
            let chars: Vec<char> = words.chars().collect();
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
    let usual = if reply.calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    };
    GenerateResponse {
        parts,
        finish: reply.finish.unwrap_or(usual),
        usage: reply.usage,
        model: model.clone(),
        counters: Counters::default(),
        cost: None,
        losses: Vec::new(),
    }
}

/// The error a fault stands for; none for those that are no error.
fn failure(fault: &Fault, model: &ModelId) -> Option<ModelError> {
    let provider = model.provider.clone();
    let said = |what: &str| format!("{what} (scripted)");
    Some(match fault {
        Fault::RateLimit { retry_after } => ModelError::RateLimited {
            provider,
            retry_after: *retry_after,
        },
        Fault::Quota => ModelError::Quota {
            provider,
            message: said("out of credit"),
        },
        Fault::Server { status } => ModelError::Server {
            provider,
            status: *status,
            message: said("internal error"),
            retry_after: None,
        },
        Fault::Timeout => ModelError::Timeout {
            provider,
            waited: TIMEOUT,
            bound: TimeBound::Silence,
        },
        Fault::Network => ModelError::Network {
            provider,
            message: said("connection refused"),
        },
        Fault::Reset => ModelError::Network {
            provider,
            message: said("connection reset"),
        },
        Fault::Authentication => ModelError::Authentication {
            provider,
            message: said("the key is not valid"),
        },
        Fault::NotFound => ModelError::NotFound {
            provider,
            model: model.name.clone(),
            message: said("no such model"),
        },
        Fault::BadRequest => ModelError::BadRequest {
            provider,
            message: said("invalid request"),
        },
        Fault::ContextTooLong => ModelError::ContextTooLong {
            provider,
            message: said("too many tokens"),
        },
        Fault::Refused => ModelError::Refused {
            provider,
            message: said("blocked"),
        },
        Fault::InvalidResponse { raw } => ModelError::InvalidResponse {
            provider,
            reason: said("not JSON"),
            raw: raw.clone(),
        },
        Fault::Truncated => ModelError::Truncated {
            provider,
            reason: said("the stream broke off"),
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
