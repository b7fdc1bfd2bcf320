//! [`FallbackModel`]: other models that answer if the first one is unavailable. Only those that
//! were configured for it are asked, and the answer says so.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    ActionScores, BoxFuture, Capabilities, Delta, GenerateRequest, GenerateResponse, LanguageModel,
    ModelError, ModelId, SchemaSupport, Utterance,
};
use futures::{StreamExt as _, stream};
use tokio::time::Instant;
use tracing::warn;

/// A model with fallbacks. It has the first one's id; a response says in its `losses` which model
/// answered instead, and a stream in a [`Delta::Retrying`].
///
/// The next model is asked if the one before cannot be reached, is overloaded, out of quota, or too
/// late, after its own retries and before it emitted anything. Only the last one is waited for if it
/// is overloaded. A request that one model rejects is
/// not sent to the others, because they would reject it too.
///
/// # Examples
/// ```
/// # #[cfg(feature = "scripted")] {
/// use std::sync::Arc;
///
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_providers::FallbackModel;
/// use adjutant_providers::scripted::{Fault, ScriptedModel, fault, text};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let down = ScriptedModel::new([fault(Fault::Server { status: 503 })]).with_retries(0);
/// let up = ScriptedModel::new([text("Hello.")]);
/// let model = FallbackModel::new(Arc::new(down), vec![Arc::new(up)])?;
///
/// let request = GenerateRequest::new(vec![Message::user("Hi!")?]);
/// let response = model.generate(&request).await?;
/// assert_eq!(response.text(), "Hello.");
/// assert!(response.losses[0].ends_with("answered instead"));
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
pub struct FallbackModel {
    first: Arc<dyn LanguageModel>,
    others: Vec<Arc<dyn LanguageModel>>,
    capabilities: Capabilities,
}

/// Two models that cannot be each other's fallback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{other} cannot answer in the place of {first}: one of them calls tools freely and the other from a list only"
)]
pub struct CannotStandIn {
    /// The model that is asked first.
    pub first: ModelId,
    /// The fallback that differs from it.
    pub other: ModelId,
}

impl FallbackModel {
    /// Combines `first` with the fallbacks `others`, asked in this order. Its capabilities are
    /// those that all of them have.
    ///
    /// # Errors
    /// [`CannotStandIn`] if some take tools freely and others from a constrained list.
    pub fn new(
        first: Arc<dyn LanguageModel>,
        others: Vec<Arc<dyn LanguageModel>>,
    ) -> Result<Self, CannotStandIn> {
        let mut capabilities = first.capabilities().clone();
        for other in &others {
            let also = other.capabilities();
            if also.weak_tools != capabilities.weak_tools {
                return Err(CannotStandIn {
                    first: first.id().clone(),
                    other: other.id().clone(),
                });
            }
            capabilities = Capabilities {
                // The runtime fits a request once, before it is known which model answers.
                context_window: capabilities.context_window.min(also.context_window),
                weak_tools: capabilities.weak_tools,
                response_schema: weaker(capabilities.response_schema, also.response_schema),
                local: capabilities.local && also.local,
                thinking_allowance: capabilities.thinking_allowance.max(also.thinking_allowance),
                // The runtime grants more time to self-hosted models, which any of them may need.
                self_hosted: capabilities.self_hosted || also.self_hosted,
            };
        }
        Ok(Self {
            first,
            others,
            capabilities,
        })
    }
}

fn weaker(one: SchemaSupport, other: SchemaSupport) -> SchemaSupport {
    match (one, other) {
        (SchemaSupport::Prompted, _) | (_, SchemaSupport::Prompted) => SchemaSupport::Prompted,
        (SchemaSupport::WithoutTools, _) | (_, SchemaSupport::WithoutTools) => {
            SchemaSupport::WithoutTools
        }
        (SchemaSupport::Native, SchemaSupport::Native) => SchemaSupport::Native,
    }
}

/// Returns true if another model may succeed where this one failed.
fn is_unavailable(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::RateLimited { .. }
            | ModelError::Quota { .. }
            | ModelError::Timeout { .. }
            | ModelError::Network { .. }
            | ModelError::Server { .. }
    )
}

/// One request on its way through the models.
struct Attempts {
    request: GenerateRequest,
    deadline: Option<Instant>,
    /// A message per model that failed.
    failed: Vec<String>,
}

impl Attempts {
    fn new(request: &GenerateRequest) -> Self {
        let deadline = request.time_left.map(|left| Instant::now() + left);
        Self {
            request: request.clone(),
            deadline,
            failed: Vec::new(),
        }
    }

    /// Records a failure. Returns false if no other model is to be asked.
    fn try_next(&mut self, model: &ModelId, error: &ModelError, is_last: bool) -> bool {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Only failures of the model itself: what is wrong with a request is wrong with it
        // anywhere.
        if is_last || !is_unavailable(error) || left == Some(Duration::ZERO) {
            return false;
        }
        // The next model only gets the time that is left.
        self.request.time_left = left;
        warn!(%model, code = error.code(), %error, "the model did not answer; another is asked in its place");
        self.failed
            .push(format!("{model} did not answer ({error})"));
        true
    }

    /// Adds the failures so far to the losses of an answer by `model`.
    fn with_losses(&self, mut response: GenerateResponse, model: &ModelId) -> GenerateResponse {
        response.losses.extend(
            self.failed
                .iter()
                .map(|failed| format!("{failed}; {model} answered instead")),
        );
        response
    }
}

impl FallbackModel {
    /// Returns every model with the id of the one after it.
    fn with_next(&self) -> impl Iterator<Item = (&Arc<dyn LanguageModel>, Option<&ModelId>)> {
        let next = self
            .others
            .iter()
            .map(|model| Some(model.id()))
            .chain([None]);
        std::iter::once(&self.first).chain(&self.others).zip(next)
    }

    async fn answer(&self, request: &GenerateRequest) -> Result<GenerateResponse, ModelError> {
        let mut attempts = Attempts::new(request);
        for (model, next) in self.with_next() {
            attempts.request.has_fallback = request.has_fallback || next.is_some();
            match model.generate(&attempts.request).await {
                Ok(response) => return Ok(attempts.with_losses(response, model.id())),
                Err(error) if attempts.try_next(model.id(), &error, next.is_none()) => {}
                Err(error) => return Err(error),
            }
        }
        Err(no_model_asked(self.id()))
    }

    async fn begin(&self, request: &GenerateRequest) -> Result<DeltaStream, ModelError> {
        let mut attempts = Attempts::new(request);
        // Deltas that announce retries and fallbacks; the answer follows them.
        let mut announced = Vec::new();
        for (attempt, (model, next)) in (1..).zip(self.with_next()) {
            attempts.request.has_fallback = request.has_fallback || next.is_some();
            let error = match model.stream(&attempts.request).await {
                Ok(mut answer) => loop {
                    match answer.next().await {
                        Some(Ok(retrying @ Delta::Retrying { .. })) => announced.push(retrying),
                        // Not part of an answer: the next model may still be asked, and would read
                        // the prompt from its beginning.
                        Some(Ok(Delta::Reading(_))) => {}
                        Some(Err(error)) => break error,
                        first => {
                            let id = model.id().clone();
                            let before = stream::iter(announced).map(Ok);
                            // The first delta was taken off to see if the model answers at all, so
                            // it is put back.
                            let rest =
                                stream::iter(first)
                                    .chain(answer)
                                    .map(move |delta| match delta {
                                        Ok(Delta::Finished(response)) => {
                                            Ok(Delta::Finished(attempts.with_losses(response, &id)))
                                        }
                                        other => other,
                                    });
                            return Ok(before.chain(rest).boxed());
                        }
                    }
                },
                Err(error) => error,
            };
            let Some(next) = next.filter(|_| attempts.try_next(model.id(), &error, next.is_none()))
            else {
                return Err(error);
            };
            let reason = format!("{error}; {next} is asked instead");
            announced.push(Delta::Retrying {
                attempt,
                wait: Duration::ZERO,
                reason,
            });
        }
        Err(no_model_asked(self.id()))
    }
}

/// Returns an error for the end of the loops above, which is never reached: there is always a first
/// model, and the last one's error is returned.
fn no_model_asked(model: &ModelId) -> ModelError {
    ModelError::Network {
        provider: model.provider.clone(),
        message: "no model was asked".to_owned(),
        source: None,
    }
}

impl LanguageModel for FallbackModel {
    fn id(&self) -> &ModelId {
        self.first.id()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(self.answer(request))
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(self.begin(request))
    }

    fn prepare(&self, request: &GenerateRequest) {
        self.first.prepare(request);
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        self.first.count_tokens(text)
    }

    fn score_actions<'a>(
        &'a self,
        utterance: Utterance<'a>,
    ) -> BoxFuture<'a, Result<Option<ActionScores>, ModelError>> {
        self.first.score_actions(utterance)
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::Message;

    use super::*;
    use crate::scripted::{Fault, Reply, ScriptedModel, fault, text};

    fn model(reply: Reply) -> ScriptedModel {
        ScriptedModel::new([reply]).with_retries(0)
    }

    fn with(models: &[&ScriptedModel]) -> FallbackModel {
        let mut models = models
            .iter()
            .map(|model| Arc::new((*model).clone()) as Arc<dyn LanguageModel>);
        FallbackModel::new(models.next().unwrap(), models.collect()).unwrap()
    }

    fn request() -> GenerateRequest {
        GenerateRequest::new(vec![Message::user("hello").unwrap()])
    }

    async fn streamed(
        model: &FallbackModel,
    ) -> Result<(Vec<String>, GenerateResponse), ModelError> {
        let mut answer = model.stream(&request()).await?;
        let mut announced = Vec::new();
        while let Some(delta) = answer.next().await {
            match delta? {
                Delta::Retrying { reason, .. } => announced.push(reason),
                Delta::Finished(response) => return Ok((announced, response)),
                _ => {}
            }
        }
        panic!("no end");
    }

    #[tokio::test]
    async fn who_cannot_be_had_is_replaced_by_whom_was_named_and_it_is_said() {
        for unavailable in [Fault::Server { status: 503 }, Fault::Reset] {
            let all = [
                model(fault(unavailable.clone())),
                model(fault(unavailable.clone())),
                model(text("Hello.")),
            ];
            let (announced, response) = streamed(&with(&all.each_ref())).await.unwrap();
            assert_eq!(response.text(), "Hello.");
            assert_eq!(
                (announced.len(), response.losses.len()),
                (2, 2),
                "{announced:?} {response:?}"
            );
            assert!(announced[1].ends_with("is asked instead"), "{announced:?}");

            let all = [model(fault(unavailable)), model(text("Hello."))];
            let response = with(&all.each_ref()).generate(&request()).await.unwrap();
            assert!(
                response.losses[0].ends_with("answered instead"),
                "{response:?}"
            );
        }
    }

    #[tokio::test]
    async fn who_answers_is_not_replaced_and_what_began_is_not_asked_again() {
        let all = [model(text("Hello.")), model(text("never"))];
        let (announced, response) = streamed(&with(&all.each_ref())).await.unwrap();
        assert!(announced.is_empty() && response.losses.is_empty());
        let all = [
            model(text("a long answer").failing(Fault::Truncated)),
            model(text("never")),
        ];
        assert!(streamed(&with(&all.each_ref())).await.is_err());
        assert_eq!(all[1].calls_made(), 0);
    }

    #[tokio::test]
    async fn only_the_last_model_is_told_that_none_stands_by() {
        let all = [model(fault(Fault::Reset)), model(text("Hello."))]
            .map(|model| model.with_requests_kept(1));
        streamed(&with(&all.each_ref())).await.unwrap();
        let told = all.map(|model| model.requests()[0].has_fallback);
        assert_eq!(told, [true, false]);
    }

    #[tokio::test]
    async fn the_last_failure_is_the_failure() {
        let all = [
            model(fault(Fault::Reset)),
            model(fault(Fault::Server { status: 500 })),
        ];
        let error = streamed(&with(&all.each_ref())).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Server { status: 500, .. }),
            "{error:?}"
        );
        // What is wrong with the request is wrong everywhere.
        let (wrong, other) = (ScriptedModel::new([]), model(text("never")));
        let error = with(&[&wrong, &other])
            .generate(&request())
            .await
            .unwrap_err();
        assert!(matches!(error, ModelError::BadRequest { .. }) && other.calls_made() == 0);
    }

    #[test]
    fn together_they_can_what_all_of_them_can() {
        let small = model(text("a"));
        let capabilities = Capabilities {
            context_window: 4096,
            response_schema: SchemaSupport::Prompted,
            local: false,
            ..small.capabilities().clone()
        };
        let small = small.with_capabilities(capabilities);
        let both = with(&[&model(text("b")), &small]);
        assert_eq!(
            (
                both.capabilities().context_window,
                both.capabilities().local
            ),
            (4096, false)
        );
        assert_eq!(both.capabilities().response_schema, SchemaSupport::Prompted);
        let weak = Capabilities {
            weak_tools: true,
            ..small.capabilities().clone()
        };
        let (strong, weak) = (
            Arc::new(model(text("a"))),
            Arc::new(model(text("b")).with_capabilities(weak)),
        );
        assert!(FallbackModel::new(strong, vec![weak]).is_err());
    }
}
