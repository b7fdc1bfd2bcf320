//! [`Worker`]: the thread that owns the model, and the queue of requests to it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use adjutant_core::{
    ActionScores, Content, Counters, Delta, FinishReason, GenerateResponse, ModelError, ModelId,
    Part, PromptProgress, TimeBound, Usage, Utterance,
};

use tracing::{debug, error};

use crate::decode::{Answer, AnswerEnd, ChatRequest, Decoder, Listener};
use crate::error::{DecodeError, LoadError};
use crate::tokenizer::Tokenizer;

/// A request in the queue.
pub(super) struct Job {
    pub(super) chat: ChatRequest,
    pub(super) losses: Vec<String>,
    pub(super) deadline: Option<Deadline>,
    pub(super) deltas: tokio::sync::mpsc::Sender<Result<Delta, ModelError>>,
}

/// The time at which a request is given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    /// The caller's time for the whole request, for the error.
    pub(super) time: Duration,
}

/// A message to score in the queue, and where its scores go.
pub(super) struct Scoring {
    pub(super) message: String,
    pub(super) before: Option<String>,
    pub(super) earlier: Option<String>,
    pub(super) scores: tokio::sync::oneshot::Sender<Result<Option<ActionScores>, ModelError>>,
}

enum Command {
    Answer(Box<Job>),
    /// Scores the actions of a message.
    Score(Scoring),
    /// Loads the weights.
    WarmUp,
    /// Loads the weights and computes the head of this chat, until an answer is requested.
    Prepare(Box<ChatRequest>),
}

/// The state of the queue, which the thread reads while it computes.
#[derive(Debug, Default)]
struct Demand {
    /// The number of answers and scores that wait in the queue.
    answers: AtomicUsize,
    /// The worker was dropped, so nothing more will be requested.
    closed: AtomicBool,
}

/// The sending half of the queue of a running thread.
struct Queue {
    commands: Sender<Command>,
    demand: Arc<Demand>,
}

/// Starts the model's thread with the first command, and ends it when it is dropped.
pub(super) struct Worker {
    source: ModelSource,
    queue: Mutex<Option<Queue>>,
}

/// The files of a model, and the parts of it that the thread shares.
#[derive(Clone)]
struct ModelSource {
    id: ModelId,
    file: PathBuf,
    cache_dir: Option<PathBuf>,
    /// Set once the model is loaded.
    tokenizer: Arc<OnceLock<Arc<Tokenizer>>>,
}

impl Worker {
    pub(super) fn new(id: ModelId, file: PathBuf, cache_dir: Option<PathBuf>) -> Self {
        let source = ModelSource {
            id,
            file,
            cache_dir,
            tokenizer: Arc::default(),
        };
        Self {
            source,
            queue: Mutex::new(None),
        }
    }

    pub(super) fn submit(&self, job: Job) -> Result<(), ModelError> {
        self.send(Command::Answer(Box::new(job)))
    }

    pub(super) fn score(&self, scoring: Scoring) -> Result<(), ModelError> {
        self.send(Command::Score(scoring))
    }

    pub(super) fn warm_up(&self) {
        // An error here occurs again at the first request, and is reported there.
        let _ = self.send(Command::WarmUp);
    }

    pub(super) fn prepare(&self, chat: ChatRequest) {
        // As above.
        let _ = self.send(Command::Prepare(Box::new(chat)));
    }

    pub(super) fn count_tokens(&self, text: &str) -> Option<u32> {
        let tokens = self.source.tokenizer.get()?.encode(text).ok()?;
        u32::try_from(tokens.len()).ok()
    }

    fn send(&self, command: Command) -> Result<(), ModelError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let command = match queue.as_ref() {
            Some(running) => match running.send(command) {
                Ok(()) => return Ok(()),
                // The thread ended, which only a panic outside of an answer can cause; a new one
                // is started.
                Err(returned) => returned,
            },
            None => command,
        };
        let (sender, receiver) = channel();
        let started = Queue {
            commands: sender,
            demand: Arc::default(),
        };
        // The model is loaded by the thread itself, at its first command: the caller must not wait.
        let thread = WorkerThread {
            source: self.source.clone(),
            decoder: None,
            demand: started.demand.clone(),
        };
        let spawned = std::thread::Builder::new()
            .name("adjutant-embedded".into())
            .spawn(move || thread.run(&receiver));
        spawned.map_err(|error| {
            self.source
                .failed(format!("no thread for the model: {error}"))
        })?;
        let sent = started
            .send(command)
            // The error of a channel only holds the command.
            .map_err(|_| self.source.failed("the model's thread stopped".into()));
        *queue = Some(started);
        sent
    }
}

impl Queue {
    /// Returns the command if the thread has ended.
    fn send(&self, command: Command) -> Result<(), Command> {
        if matches!(command, Command::Answer(_) | Command::Score(_)) {
            // Counted before it is sent, so that a `Prepare` under way is interrupted.
            self.demand.answers.fetch_add(1, Ordering::Relaxed);
        }
        self.commands.send(command).map_err(|returned| returned.0)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queue {
            // Stops a `Prepare` under way; the thread ends when the channel closes.
            queue.demand.closed.store(true, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("file", &self.source.file)
            .finish_non_exhaustive()
    }
}

impl ModelSource {
    fn failed(&self, reason: String) -> ModelError {
        ModelError::InvalidResponse {
            provider: self.id.provider.clone(),
            reason,
            raw: String::new(),
            source: None,
        }
    }

    fn load(&self) -> Result<Decoder, ModelError> {
        let started = Instant::now();
        let mut decoder = Decoder::load(&self.file).map_err(|error| self.not_loaded(&error))?;
        if let Some(dir) = &self.cache_dir {
            decoder.set_prefix_cache_dir(dir.clone());
        }
        // Set once: a model file that is loaded again has the same vocabulary.
        let _ = self.tokenizer.set(decoder.tokenizer());
        debug!(model = %self.id, load_ms = started.elapsed().as_millis() as u64, "the model is loaded");
        Ok(decoder)
    }

    /// Returns the error for a file that cannot be loaded: the user has to pull it or choose
    /// another.
    fn not_loaded(&self, error: &LoadError) -> ModelError {
        ModelError::NotFound {
            provider: self.id.provider.clone(),
            model: self.id.name.clone(),
            message: error.to_string(),
        }
    }

    /// Returns the error for a failed answer; `None` if the caller has cancelled it.
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
                let Deadline { time, .. } = job.deadline?;
                ModelError::Timeout {
                    provider,
                    waited: time,
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
            certainty: answer.certainty,
        }
    }
}

/// The state of the thread.
struct WorkerThread {
    source: ModelSource,
    decoder: Option<Decoder>,
    demand: Arc<Demand>,
}

impl WorkerThread {
    fn run(mut self, commands: &Receiver<Command>) {
        while let Ok(command) = commands.recv() {
            match command {
                Command::Answer(job) => {
                    self.demand.answers.fetch_sub(1, Ordering::Relaxed);
                    self.answer(&job);
                }
                Command::Score(scoring) => {
                    self.demand.answers.fetch_sub(1, Ordering::Relaxed);
                    self.score(scoring);
                }
                // An error here occurs again at the first request, and is reported there.
                Command::WarmUp => {
                    let _ = self.catch_panic(|thread| thread.decoder().map(|_| ()));
                }
                Command::Prepare(chat) => self.prepare(&chat),
            }
        }
    }

    fn prepare(&mut self, chat: &ChatRequest) {
        let mut listener = self.demand.clone();
        let _ = self.catch_panic(|thread| {
            let decoder = thread.decoder()?;
            // If it is interrupted, the answer continues with the state that was computed.
            let _ = decoder.prepare(chat, &mut listener);
            Ok::<_, ModelError>(())
        });
    }

    fn score(&mut self, scoring: Scoring) {
        // The caller gave up while the message was in the queue.
        if scoring.scores.is_closed() {
            return;
        }
        let utterance = Utterance {
            message: &scoring.message,
            before: scoring.before.as_deref(),
            earlier: scoring.earlier.as_deref(),
        };
        let scored = self.catch_panic(|thread| {
            let source = thread.source.clone();
            let decoder = thread.decoder()?;
            let scores = decoder.score_actions(utterance);
            scores.map_err(|error| source.failed(error.to_string()))
        });
        // Fails only if the caller is gone by now.
        let _ = scoring.scores.send(scored.and_then(|scored| scored));
    }

    fn answer(&mut self, job: &Job) {
        let mut listener = DeltaListener { job, reports: 0 };
        // The caller gave up while the job was in the queue.
        if job.deltas.is_closed() {
            return;
        }
        let answered = self.catch_panic(|thread| {
            let source = thread.source.clone();
            let decoder = thread.decoder().map_err(Some)?;
            decoder
                .generate(&job.chat, &mut listener)
                .map_err(|error| source.not_answered(error, job))
        });
        let last = match answered {
            Ok(Ok(answer)) => Ok(Delta::Finished(
                self.source.response(answer, job.losses.clone()),
            )),
            Ok(Err(Some(error))) | Err(error) => Err(error),
            Ok(Err(None)) => return,
        };
        // The channel has room for it, so it only fails if the receiver is gone.
        let _ = job.deltas.try_send(last);
    }

    /// Returns the loaded model. Loading is tried again after a failure: the file may exist by now.
    fn decoder(&mut self) -> Result<&mut Decoder, ModelError> {
        if self.decoder.is_none() {
            self.decoder = Some(self.source.load()?);
        }
        self.decoder
            .as_mut()
            .ok_or_else(|| self.source.failed("the model is not loaded".into()))
    }

    /// Runs `work`. A panic of the engine costs this answer and the loaded model, not the process.
    fn catch_panic<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, ModelError> {
        // Sound, because the decoder, which may be inconsistent after a panic, is dropped below.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        outcome.map_err(|panic| {
            self.decoder = None;
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            error!(model = %self.source.id, message, "the engine panicked");
            self.source
                .failed("the engine failed on this request; the model will be loaded again".into())
        })
    }
}

/// Listens while the head of a prompt is computed, which is cancelled for an answer.
impl Listener for Arc<Demand> {
    fn on_text(&mut self, _piece: &str) {}

    fn is_cancelled(&self) -> bool {
        self.answers.load(Ordering::Relaxed) > 0 || self.closed.load(Ordering::Relaxed)
    }
}

/// Sends an answer's pieces as deltas.
struct DeltaListener<'a> {
    job: &'a Job,
    /// The number of progress reports so far: one before each chunk.
    reports: usize,
}

impl Listener for DeltaListener<'_> {
    fn on_text(&mut self, piece: &str) {
        // Fails only if the receiver is gone, which `is_cancelled` notices.
        let _ = self.job.deltas.try_send(Ok(Delta::Text(piece.to_owned())));
    }

    fn on_prompt_progress(&mut self, progress: PromptProgress) {
        let _ = self.job.deltas.try_send(Ok(Delta::Reading(progress)));
        self.reports += 1;
    }

    fn is_cancelled(&self) -> bool {
        let is_late = self
            .job
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline.at);
        // At least one chunk is computed, so that retries after a time-out make progress.
        let made_progress = self.reports != 1;
        self.job.deltas.is_closed() || (made_progress && is_late)
    }
}
