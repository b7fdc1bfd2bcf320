use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;

use crate::BoxFuture;
use crate::action_scores::{ActionScores, Utterance};
use crate::error::ModelError;
use crate::id::ModelId;
use crate::model::{Capabilities, Delta, GenerateRequest, GenerateResponse};

/// A response as it arrives. Ends after [`Delta::Finished`] or an error; dropping it cancels the
/// call.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// A language model. Each provider has one adapter that implements it.
///
/// An adapter retries by itself, only before the first delta and only errors that a retry can cure;
/// nothing above it retries. Dropping the future or the stream cancels the call.
pub trait LanguageModel: Send + Sync + 'static {
    /// Returns the provider and name of the model.
    fn id(&self) -> &ModelId;

    /// Returns the model's limits and features.
    fn capabilities(&self) -> &Capabilities;

    /// Requests a complete response.
    ///
    /// # Errors
    ///
    /// [`ModelError`] of the last attempt, after all retries.
    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>>;

    /// Requests a response as a stream of deltas. The last item is [`Delta::Finished`] with the
    /// response that [`LanguageModel::generate`] would return.
    ///
    /// # Errors
    ///
    /// [`ModelError`] if no response began; later failures are items of the stream.
    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>>;

    /// Starts to process the messages that the requests of an agent have in common, all of
    /// `request` but the last one, so that the first response arrives sooner. Returns at once and
    /// never delays a request. Does nothing by default: only a model that computes in this process
    /// benefits.
    fn prepare(&self, request: &GenerateRequest) {
        let _ = request;
    }

    /// Returns the number of tokens of `text`, if the adapter has the model's tokenizer.
    fn count_tokens(&self, text: &str) -> Option<u32> {
        let _ = text;
        None
    }

    /// Returns the probability of every kind of action that a message may ask for. `None`, the
    /// default: the model has no measure of it.
    ///
    /// # Errors
    ///
    /// [`ModelError`] as for a request; the caller goes on without scores.
    fn score_actions<'a>(
        &'a self,
        utterance: Utterance<'a>,
    ) -> BoxFuture<'a, Result<Option<ActionScores>, ModelError>> {
        let _ = utterance;
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn id(&self) -> &ModelId {
        (**self).id()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        (**self).generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        (**self).stream(request)
    }

    fn prepare(&self, request: &GenerateRequest) {
        (**self).prepare(request);
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        (**self).count_tokens(text)
    }

    fn score_actions<'a>(
        &'a self,
        utterance: Utterance<'a>,
    ) -> BoxFuture<'a, Result<Option<ActionScores>, ModelError>> {
        (**self).score_actions(utterance)
    }
}
