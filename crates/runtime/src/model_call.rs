//! Metrics of model calls: a span, a log line, and a callback for programs that count.
//!
//! The span has the attribute names of OpenTelemetry's semantic conventions for generative AI
//! (`gen_ai.*`), and never a prompt or an answer.

use std::time::Duration;

use adjutant_core::{Cost, Delta, GenerateResponse, ModelError, ModelId, Usage};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, debug, debug_span, error};

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
    /// Text of the answer that was emitted so far.
    pub(crate) shown_text: String,
    pub(crate) attempts: u32,
    /// The span of the call. Its caller runs the call in it.
    pub(crate) span: Span,
}

impl CallMetrics {
    /// Starts to measure, with the first attempt.
    pub(crate) fn start(model: &ModelId) -> Self {
        // Fields that are recorded later have to be declared with the span.
        let span = debug_span!(
            "model",
            %model,
            number = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = convention_name(model.provider.as_str()),
            gen_ai.request.model = model.name,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            error.type = Empty,
        );
        Self {
            began: Instant::now(),
            first_piece: None,
            shown_text: String::new(),
            attempts: 1,
            span,
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
        self.record_outcome(reply);
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

    /// Records the outcome of the call on its span.
    fn record_outcome(&self, reply: Option<&Result<GenerateResponse, ModelError>>) {
        // Formatting the values takes longer than the rest, and most programs have no subscriber.
        if self.span.is_disabled() {
            return;
        }
        match reply {
            Some(Ok(reply)) => {
                let reason = serde_json::to_value(reply.finish).unwrap_or_default();
                self.span
                    .record("gen_ai.response.model", reply.model.name.as_str())
                    // A list with one reason per requested answer; `tracing` has no lists, so it is
                    // recorded as JSON.
                    .record("gen_ai.response.finish_reasons", format!("[{reason}]"))
                    .record("gen_ai.usage.input_tokens", reply.usage.input_tokens)
                    .record("gen_ai.usage.output_tokens", reply.usage.output_tokens);
            }
            Some(Err(error)) => {
                self.span.record("error.type", error.code());
            }
            // A call that was stopped has no outcome, and is no error of the provider.
            None => {}
        }
    }
}

/// Returns the name that the conventions require for a provider that has another name here.
fn convention_name(provider: &str) -> &str {
    match provider {
        "azure" => "azure.ai.openai",
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "openai-chat" => "openai",
        "vertex" => "gcp.vertex_ai",
        "xai" => "x_ai",
        other => other,
    }
}
