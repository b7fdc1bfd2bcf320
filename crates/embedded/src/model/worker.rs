//! The thread that owns the model.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use adjutant_core::{
    Content, Counters, Delta, FinishReason, GenerateResponse, ModelError, ModelId, Part,
    PromptProgress, TimeBound, Usage,
};

use super::Deadline;
use crate::decode::{Answer, AnswerEnd, ChatRequest, Decoder, Listener};
use crate::error::{DecodeError, LoadError};
use crate::tokenizer::Tokenizer;

/// One request on its way to the thread.
pub(super) struct Job {
    pub(super) chat: ChatRequest,
    pub(super) losses: Vec<String>,
    pub(super) deadline: Deadline,
    pub(super) deltas: tokio::sync::mpsc::Sender<Result<Delta, ModelError>>,
}

enum Order {
    Answer(Box<Job>),
    /// Load the weights.
    WarmUp,
    /// Load the weights and read the head of this chat, until somebody wants an answer.
    Prepare(Box<ChatRequest>),
}

/// Requests to the thread while it works.
#[derive(Debug, Default)]
struct Demand {
    /// Answers that wait in the queue.
    answers: AtomicUsize,
    /// Nobody will want anything any more.
    closed: AtomicBool,
}

/// The way to a running thread.
struct Queue {
    orders: Sender<Order>,
    demand: Arc<Demand>,
}

/// The queue in front of the model's thread, which starts with the first order and ends with this
/// value.
pub(super) struct Worker {
    setup: Setup,
    queue: Mutex<Option<Queue>>,
}

/// What the thread needs to begin.
#[derive(Clone)]
struct Setup {
    id: ModelId,
    file: PathBuf,
    cache_dir: Option<PathBuf>,
    tokenizer: Arc<OnceLock<Arc<Tokenizer>>>,
}

impl Worker {
    pub(super) fn new(id: ModelId, file: PathBuf, cache_dir: Option<PathBuf>) -> Self {
        let setup = Setup {
            id,
            file,
            cache_dir,
            tokenizer: Arc::default(),
        };
        Self {
            setup,
            queue: Mutex::new(None),
        }
    }

    pub(super) fn submit(&self, job: Job) -> Result<(), ModelError> {
        self.order(Order::Answer(Box::new(job)))
    }

    pub(super) fn warm_up(&self) {
        // Whatever goes wrong will go wrong again, and be told, at the first request.
        let _ = self.order(Order::WarmUp);
    }

    pub(super) fn prepare(&self, chat: ChatRequest) {
        // As above.
        let _ = self.order(Order::Prepare(Box::new(chat)));
    }

    pub(super) fn count_tokens(&self, text: &str) -> Option<u32> {
        let tokens = self.setup.tokenizer.get()?.encode(text).ok()?;
        u32::try_from(tokens.len()).ok()
    }

    fn order(&self, order: Order) -> Result<(), ModelError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let order = match queue.as_ref() {
            Some(running) => match running.send(order) {
                Ok(()) => return Ok(()),
                // The thread is gone, which only a panic outside of an answer can do; a new one
                // begins afresh.
                Err(returned) => returned,
            },
            None => order,
        };
        let (sender, receiver) = channel();
        let started = Queue {
            orders: sender,
            demand: Arc::default(),
        };
        let host = Host {
            setup: self.setup.clone(),
            decoder: None,
            demand: started.demand.clone(),
        };
        let spawned = std::thread::Builder::new()
            .name("adjutant-embedded".into())
            .spawn(move || host.run(&receiver));
        spawned.map_err(|error| {
            self.setup
                .failed(format!("no thread for the model: {error}"))
        })?;
        let sent = started
            .send(order)
            .map_err(|_| self.setup.failed("the model's thread stopped".into()));
        *queue = Some(started);
        sent
    }
}

impl Queue {
    /// Gives the order back if the thread is gone.
    fn send(&self, order: Order) -> Result<(), Order> {
        if matches!(order, Order::Answer(_)) {
            // Counted first: what is read ahead is interrupted by it.
            self.demand.answers.fetch_add(1, Ordering::Relaxed);
        }
        self.orders.send(order).map_err(|returned| returned.0)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queue {
            queue.demand.closed.store(true, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("file", &self.setup.file)
            .finish_non_exhaustive()
    }
}

impl Setup {
    fn failed(&self, reason: String) -> ModelError {
        ModelError::InvalidResponse {
            provider: self.id.provider.clone(),
            reason,
            raw: String::new(),
        }
    }

    fn load(&self) -> Result<Decoder, ModelError> {
        let mut decoder = Decoder::load(&self.file).map_err(|error| self.not_loaded(&error))?;
        if let Some(dir) = &self.cache_dir {
            decoder.keep_heads_in(dir.clone());
        }
        // Set once: the file of a model does not change its vocabulary.
        let _ = self.tokenizer.set(decoder.tokenizer());
        Ok(decoder)
    }

    /// There is no usable model under this name: the person has to fetch it or choose another one.
    fn not_loaded(&self, error: &LoadError) -> ModelError {
        ModelError::NotFound {
            provider: self.id.provider.clone(),
            model: self.id.name.clone(),
            message: error.to_string(),
        }
    }

    /// `None` if nobody is left to tell.
    fn not_answered(&self, error: DecodeError, job: &Job) -> Option<ModelError> {
        let provider = self.id.provider.clone();
        Some(match error {
            DecodeError::ContextTooLong { .. } => ModelError::ContextTooLong {
                provider,
                message: error.to_string(),
            },
            DecodeError::Schema { .. } => ModelError::BadRequest {
                provider,
                message: error.to_string(),
            },
            DecodeError::Compute { .. } => self.failed(error.to_string()),
            DecodeError::Cancelled => {
                let (_, waited) = job.deadline?;
                ModelError::Timeout {
                    provider,
                    waited,
                    bound: TimeBound::default(),
                }
            }
        })
    }

    fn response(&self, answer: Answer, losses: Vec<String>) -> GenerateResponse {
        let count = |tokens: usize| u64::try_from(tokens).ok();
        let parts = match answer.text.is_empty() {
            true => Vec::new(),
            false => vec![Part::from_provider(
                Content::Text { text: answer.text },
                None,
            )],
        };
        GenerateResponse {
            parts,
            finish: match answer.end {
                AnswerEnd::Stop => FinishReason::Stop,
                AnswerEnd::TokensMax => FinishReason::MaxTokens,
            },
            usage: Usage {
                input_tokens: count(answer.input_tokens),
                output_tokens: count(answer.output_tokens),
                cached_tokens: count(answer.cached_tokens),
                ..Usage::default()
            },
            model: self.id.clone(),
            counters: Counters::default(),
            cost: None,
            losses,
        }
    }
}

/// The thread's own state.
struct Host {
    setup: Setup,
    decoder: Option<Decoder>,
    demand: Arc<Demand>,
}

impl Host {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Answer(job) => {
                    self.demand.answers.fetch_sub(1, Ordering::Relaxed);
                    self.serve(&job);
                }
                // What fails here will fail again, and be told, at the first request.
                Order::WarmUp => drop(self.guarded(|host| host.decoder().map(|_| ()))),
                Order::Prepare(chat) => self.prepare(&chat),
            }
        }
    }

    fn prepare(&mut self, chat: &ChatRequest) {
        let mut listener = Idle {
            demand: self.demand.clone(),
        };
        let _ = self.guarded(|host| {
            let decoder = host.decoder()?;
            // What was read until somebody wanted an answer is where that answer begins.
            let _ = decoder.prepare(chat, &mut listener);
            Ok::<_, ModelError>(())
        });
    }

    fn serve(&mut self, job: &Job) {
        let mut listener = Deltas { job, reports: 0 };
        if job.deltas.is_closed() {
            return;
        }
        let answered = self.guarded(|host| {
            let setup = host.setup.clone();
            let decoder = host.decoder().map_err(Some)?;
            decoder
                .generate(&job.chat, &mut listener)
                .map_err(|error| setup.not_answered(error, job))
        });
        let last = match answered {
            Ok(Ok(answer)) => Ok(Delta::Finished(
                self.setup.response(answer, job.losses.clone()),
            )),
            Ok(Err(Some(error))) | Err(error) => Err(error),
            Ok(Err(None)) => return,
        };
        // The channel has room for it; the only failure is that nobody listens any more.
        let _ = job.deltas.try_send(last);
    }

    /// The loaded model; a file that could not be loaded before may be there now.
    fn decoder(&mut self) -> Result<&mut Decoder, ModelError> {
        if self.decoder.is_none() {
            self.decoder = Some(self.setup.load()?);
        }
        self.decoder
            .as_mut()
            .ok_or_else(|| self.setup.failed("the model is not loaded".into()))
    }

    /// A panic inside of the engine costs this answer and the loaded state, not the process.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, ModelError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        outcome.map_err(|_| {
            self.decoder = None;
            self.setup
                .failed("the engine failed on this request; the model will be loaded again".into())
        })
    }
}

/// Reads as long as nobody wants an answer.
struct Idle {
    demand: Arc<Demand>,
}

impl Listener for Idle {
    fn text(&mut self, _piece: &str) {}

    fn is_gone(&self) -> bool {
        self.demand.answers.load(Ordering::Relaxed) > 0
            || self.demand.closed.load(Ordering::Relaxed)
    }
}

/// Passes an answer's pieces on.
struct Deltas<'a> {
    job: &'a Job,
    /// Number of progress reports so far: one before each chunk.
    reports: usize,
}

impl Listener for Deltas<'_> {
    fn text(&mut self, piece: &str) {
        let _ = self.job.deltas.try_send(Ok(Delta::Text(piece.to_owned())));
    }

    fn reading(&mut self, progress: PromptProgress) {
        let _ = self.job.deltas.try_send(Ok(Delta::Reading(progress)));
        self.reports += 1;
    }

    fn is_gone(&self) -> bool {
        let late = |(end, _): (Option<Instant>, _)| end.is_some_and(|end| Instant::now() >= end);
        // Before the first chunk nothing was gained: whoever tries again after a time-out gets
        // further every time.
        let gained = self.reports != 1;
        self.job.deltas.is_closed() || (gained && self.job.deadline.is_some_and(late))
    }
}
