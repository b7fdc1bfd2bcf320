//! Calls of the model that ended: an event for the log, and figures for whoever counts.

use std::time::Duration;

use adjutant_core::{Cost, Delta, GenerateResponse, ModelError, ModelId, Usage};
use tokio::time::Instant;
use tracing::{debug, error};

/// A call of the model that ended, its repeats included: in a turn, or for a summary. Nothing of
/// what was said is in it. See [`Agent::on_model_call`](crate::Agent::on_model_call).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModelCall<'a> {
    /// The model that was asked, as it is configured. Another one may have answered in its place.
    pub model: &'a ModelId,
    /// `success`; `stopped`, if nobody waited for the answer any more; else the
    /// [code](ModelError::code) of its failure.
    pub result: &'static str,
    /// The number of times that it was sent, at least 1.
    pub attempts: u32,
    /// Time until the first piece of the answer came. `None`: none came.
    pub first_piece: Option<Duration>,
    /// Time until it ended.
    pub took: Duration,
    /// Its tokens, as far as the provider said.
    pub usage: Usage,
    /// Its cost, if it is known.
    pub cost: Option<Cost>,
}

/// Whoever counts the calls of an agent's model.
pub(crate) type CountModelCall = Box<dyn Fn(&ModelCall<'_>) + Send + Sync>;

/// A call that has not ended.
pub(crate) struct Calling {
    began: Instant,
    first_piece: Option<Duration>,
    pub(crate) attempts: u32,
}

impl Calling {
    /// Begins now, with the first attempt.
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            first_piece: None,
            attempts: 1,
        }
    }

    /// Notes what came: a piece of the answer, or that it is sent again.
    pub(crate) fn came(&mut self, delta: &Delta) {
        match delta {
            Delta::Reading(_) => {}
            Delta::Retrying { attempt, .. } => self.attempts = attempt + 1,
            _ if self.first_piece.is_none() => self.first_piece = Some(self.began.elapsed()),
            _ => {}
        }
    }

    /// Tells the log and whoever counts that the call of `model` ended. `None`: nobody waited for
    /// it any more.
    pub(crate) fn ended(
        &self,
        model: &ModelId,
        count: Option<&CountModelCall>,
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
