//! Metrics of model calls: a log line, and a callback for programs that count.

use std::time::Duration;

use adjutant_core::{Cost, Delta, GenerateResponse, ModelError, ModelId, Usage};
use tokio::time::Instant;
use tracing::{debug, error};

/// The figures of a model call that has ended, all its attempts included, for an answer or a
/// summary. They contain no text of the conversation. See
/// [`Agent::on_model_call`](crate::Agent::on_model_call).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModelCall<'a> {
    /// The configured model. The provider may have answered with another one.
    pub model: &'a ModelId,
    /// `success`; `stopped`, if the call was cancelled or out of time; else the
    /// [code](ModelError::code) of its failure.
    pub result: &'static str,
    /// Number of times that the request was sent, at least 1.
    pub attempts: u32,
    /// Time until the first piece of the answer arrived. `None`: none did.
    pub first_piece: Option<Duration>,
    /// Duration of the call, pauses between attempts included.
    pub took: Duration,
    /// Tokens of the call, as far as the provider reported them.
    pub usage: Usage,
    /// Cost of the call, if it is known.
    pub cost: Option<Cost>,
}

/// The callback of [`Agent::on_model_call`](crate::Agent::on_model_call).
pub(crate) type OnModelCall = Box<dyn Fn(&ModelCall<'_>) + Send + Sync>;

/// The figures of a running model call.
pub(crate) struct CallMetrics {
    began: Instant,
    first_piece: Option<Duration>,
    pub(crate) attempts: u32,
}

impl CallMetrics {
    /// Starts to measure, with the first attempt.
    pub(crate) fn start() -> Self {
        Self {
            began: Instant::now(),
            first_piece: None,
            attempts: 1,
        }
    }

    /// Records a delta of the stream: a piece of the answer, or a new attempt.
    pub(crate) fn record(&mut self, delta: &Delta) {
        match delta {
            // Reading the prompt is not a piece of the answer.
            Delta::Reading(_) => {}
            Delta::Retrying { attempt, .. } => self.attempts = attempt + 1,
            _ if self.first_piece.is_none() => self.first_piece = Some(self.began.elapsed()),
            _ => {}
        }
    }

    /// Logs the end of the call, and passes its figures to the callback. `reply` is `None` if the
    /// call was stopped.
    pub(crate) fn record_end(
        &self,
        model: &ModelId,
        count: Option<&OnModelCall>,
        reply: Option<&Result<GenerateResponse, ModelError>>,
    ) {
        let took = self.began.elapsed();
        let (result, usage, cost) = match reply {
            None => ("stopped", Usage::default(), None),
            Some(Ok(reply)) => ("success", reply.usage, reply.cost),
            Some(Err(error)) => (error.code(), Usage::default(), None),
        };
        let attempts = self.attempts;
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match reply {
            Some(Err(error)) => {
                error!(%model, code = result, attempts, ms, %error, "the model call failed");
            }
            Some(Ok(_)) | None => {
                debug!(%model, result, attempts, ms, tokens = usage.total(), "the model call ended");
            }
        }
        if let Some(count) = count {
            let first_piece = self.first_piece;
            count(&ModelCall {
                model,
                result,
                attempts,
                first_piece,
                took,
                usage,
                cost,
            });
        }
    }
}
