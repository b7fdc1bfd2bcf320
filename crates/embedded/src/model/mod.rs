//! The embedded model behind core's [`LanguageModel`] port.

mod transcript;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::port::DeltaStream;
use adjutant_core::{
    BoxFuture, Capabilities, Delta, GenerateRequest, GenerateResponse, GenerationConfig,
    LanguageModel, ModelError, ModelId, SchemaSupport,
};
use futures::StreamExt;

use crate::decode::{ChatRequest, WINDOW_TOKENS_MAX};
use crate::pace::CHUNK_TOKENS;
use crate::sample::Sampling;
use worker::{Job, Worker};

/// Reports of reading one prompt at most: one before each chunk, of which two may be cut short, and
/// one at the end.
const READING_DELTAS_MAX: usize = WINDOW_TOKENS_MAX / CHUNK_TOKENS + 4;

/// The adapter's name in a [`ModelId`].
pub const PROVIDER: &str = "embedded";

/// A model that runs in this process.
///
/// Making one is cheap: the file is opened at the first request, on a thread of the model's own
/// that answers one request after the other. Clones share that thread and its memory, which are
/// freed with the last clone.
#[derive(Debug, Clone)]
pub struct EmbeddedModel {
    id: ModelId,
    capabilities: Capabilities,
    worker: Arc<Worker>,
}

impl EmbeddedModel {
    /// A model named `name` in the GGUF file at `file`; neither is looked at yet.
    ///
    /// # Errors
    /// [`adjutant_core::Empty`] if `name` is blank.
    pub fn new(name: &str, file: impl Into<PathBuf>) -> Result<Self, adjutant_core::Empty> {
        Self::build(name, file.into(), None)
    }

    /// Like [`new`](Self::new), and keeps what the model has read of the constant head of prompts
    /// in `cache_dir`, see [`Decoder::keep_heads_in`](crate::Decoder::keep_heads_in), so that the
    /// next process goes on there, also if this one is killed.
    ///
    /// # Errors
    /// [`adjutant_core::Empty`] if `name` is blank.
    pub fn with_prefix_cache(
        name: &str,
        file: impl Into<PathBuf>,
        cache_dir: impl Into<PathBuf>,
    ) -> Result<Self, adjutant_core::Empty> {
        Self::build(name, file.into(), Some(cache_dir.into()))
    }

    fn build(
        name: &str,
        file: PathBuf,
        cache_dir: Option<PathBuf>,
    ) -> Result<Self, adjutant_core::Empty> {
        let id = ModelId::new(PROVIDER, name)?;
        let capabilities = Capabilities {
            context_window: u32::try_from(WINDOW_TOKENS_MAX).unwrap_or(u32::MAX),
            weak_tools: true,
            response_schema: SchemaSupport::Native,
            local: true,
            thinking_allowance: 0,
            self_hosted: true,
        };
        let worker = Arc::new(Worker::new(id.clone(), file, cache_dir));
        Ok(Self {
            id,
            capabilities,
            worker,
        })
    }

    /// Starts reading the model file, so that the first request does not wait for it.
    pub fn warm_up(&self) {
        self.worker.warm_up();
    }
}

impl LanguageModel for EmbeddedModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move {
            let mut stream = self.stream(request).await?;
            while let Some(delta) = stream.next().await {
                if let Delta::Finished(response) = delta? {
                    return Ok(response);
                }
            }
            Err(self.stopped())
        })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move {
            let (turns, losses) = transcript::turns(request);
            let mut chat = ChatRequest::new(turns);
            chat.schema = request.response_schema.clone();
            chat.sampling = sampling(&request.config);
            let output_tokens_max = request
                .config
                .max_tokens
                .map_or(OUTPUT_TOKENS_MAX, |bound| bound.get());
            chat.output_tokens_max = usize::try_from(output_tokens_max)
                .unwrap_or(usize::MAX)
                .min(WINDOW_TOKENS_MAX);

            // A delta for each token and each chunk of the prompt at most, and the end: a slow
            // reader never holds up whoever waits in the queue.
            let (sender, mut receiver) =
                tokio::sync::mpsc::channel(chat.output_tokens_max + READING_DELTAS_MAX + 2);
            let started = Instant::now();
            let deadline = request
                .time_left
                .map(|left| (started.checked_add(left), left));
            self.worker.submit(Job {
                chat,
                losses,
                deadline,
                deltas: sender,
            })?;
            let first = match receiver.recv().await {
                Some(first) => first?,
                None => return Err(self.stopped()),
            };
            let rest = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
            let stream: DeltaStream = Box::pin(futures::stream::iter([Ok(first)]).chain(rest));
            Ok(stream)
        })
    }

    fn prepare(&self, request: &GenerateRequest) {
        let (turns, _) = transcript::turns(request);
        self.worker.prepare(ChatRequest::new(turns));
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        self.worker.count_tokens(text)
    }
}

impl EmbeddedModel {
    fn stopped(&self) -> ModelError {
        ModelError::Truncated {
            provider: self.id.provider.clone(),
            reason: "its thread stopped".into(),
        }
    }
}

fn sampling(config: &GenerationConfig) -> Sampling {
    let mut sampling = Sampling::default();
    if let Some(temperature) = config.temperature {
        sampling.temperature = temperature.get() as f32;
    }
    if let Some(top_p) = config.top_p {
        sampling.top_p = top_p.get() as f32;
    }
    sampling.top_k = config
        .top_k
        .and_then(|top_k| usize::try_from(top_k.get()).ok());
    sampling
}

/// When to give up, and how long that was after the request came.
type Deadline = Option<(Option<Instant>, Duration)>;
