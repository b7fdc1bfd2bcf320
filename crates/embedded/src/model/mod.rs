//! [`EmbeddedModel`]: the engine as an implementation of core's [`LanguageModel`].

mod transcript; // converts a request to a chat
mod worker; // the thread that owns the model

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::port::DeltaStream;
use adjutant_core::{
    ActionScores, BoxFuture, Capabilities, Delta, GenerateRequest, GenerateResponse,
    GenerationConfig, LanguageModel, ModelError, ModelId, SchemaSupport, Utterance,
};
use futures::StreamExt;

use crate::decode::{ChatRequest, WINDOW_TOKENS_MAX};
use crate::prefill::CHUNK_TOKENS;
use crate::sample::Sampling;
use worker::{Deadline, Job, Scoring, Worker};

/// The most progress reports for one prompt: one before each chunk, of which two may be shorter,
/// and one at the end.
const READING_DELTAS_MAX: usize = WINDOW_TOKENS_MAX / CHUNK_TOKENS + 4;

/// The name of this provider in model ids, `embedded/NAME`.
pub const PROVIDER: &str = "embedded";

/// A language model that runs inside this process.
///
/// Creating one is cheap: the file is opened at the first request, by a thread that the model
/// starts and that answers one request after the other. Clones share the thread and its memory,
/// which are freed with the last clone.
///
/// # Examples
/// ```no_run
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_embedded::EmbeddedModel;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let model = EmbeddedModel::new("qwen2.5-coder-1.5b", "models/qwen2.5-coder-1.5b.gguf")?;
///
/// let request = GenerateRequest::new(vec![Message::user("Hello!")?]);
/// println!("{}", model.generate(&request).await?.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EmbeddedModel {
    id: ModelId,
    capabilities: Capabilities,
    worker: Arc<Worker>,
}

impl EmbeddedModel {
    /// Creates a model named `name` from the GGUF file at `file`, which is not opened yet.
    ///
    /// # Errors
    /// [`adjutant_core::Empty`] if `name` is blank.
    pub fn new(name: &str, file: impl Into<PathBuf>) -> Result<Self, adjutant_core::Empty> {
        Self::build(name, file.into(), None)
    }

    /// Creates a model like [`new`](Self::new), whose state of the constant head of prompts is kept
    /// in `cache_dir`, see [`Decoder::set_prefix_cache_dir`](crate::Decoder::set_prefix_cache_dir).
    /// The next process continues with that state, even if this one is killed.
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

    /// Starts loading the model file, so that the first request does not wait for it.
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
            // The channel below has space for every token, so the bound must not be a caller's
            // 4,000,000,000.
            chat.output_tokens_max = usize::try_from(output_tokens_max)
                .unwrap_or(usize::MAX)
                .min(WINDOW_TOKENS_MAX);

            // Room for a delta per token and per chunk of the prompt, and the end: the worker never
            // waits for a slow reader, which would delay the requests in the queue.
            let (sender, mut receiver) =
                tokio::sync::mpsc::channel(chat.output_tokens_max + READING_DELTAS_MAX + 2);
            let started = Instant::now();
            let deadline = request.time_left.and_then(|time| {
                let at = started.checked_add(time)?;
                Some(Deadline { at, time })
            });
            self.worker.submit(Job {
                chat,
                losses,
                deadline,
                deltas: sender,
            })?;
            // An error before the first delta is one of the call, as with every model.
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

    fn score_actions<'a>(
        &'a self,
        utterance: Utterance<'a>,
    ) -> BoxFuture<'a, Result<Option<ActionScores>, ModelError>> {
        Box::pin(async move {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            self.worker.score(Scoring {
                message: utterance.message.to_owned(),
                before: utterance.before.map(str::to_owned),
                earlier: utterance.earlier.map(str::to_owned),
                scores: sender,
            })?;
            receiver.await.map_err(|_| self.stopped())?
        })
    }
}

impl EmbeddedModel {
    fn stopped(&self) -> ModelError {
        ModelError::Truncated {
            provider: self.id.provider.clone(),
            reason: "its thread stopped".into(),
            source: None,
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
