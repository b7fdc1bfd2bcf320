//! A model that answers from a script, for tests, for experiments without a key, and for demos.
//!
//! A script is built in code from [`text`], [`call`] and [`fault`], or parsed from JSON lines with
//! [`ScriptedModel::from_jsonl`] (`-m scripted:FILE`; the format is in `docs/scripted.md`). Faults
//! pass through the same retries as a vendor's.

mod jsonl; // parses scripts of JSON lines
mod play; // turns a reply into deltas or an error
mod reply; // Reply and Fault
mod script; // chooses the next reply
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    BoxFuture, Capabilities, GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId,
    ProviderId, SchemaSupport,
};

pub use jsonl::ScriptError;
pub use reply::{Fault, Reply, call, fault, text};

use crate::retry::{self, Policy};
use script::Script;

/// The name of this provider in model ids, `scripted/NAME`.
pub const PROVIDER: &str = "scripted";

/// The shipped demo script.
const DEMO: &str = include_str!("demo.jsonl");

/// Attempts after the first, as with a vendor in the cloud.
const RETRIES: u32 = 1;

/// The first pause between retries. Short, because waiting does not change a script. A scripted
/// `retry_after_s` is waited for in full.
const PAUSE: Duration = Duration::from_millis(5);

/// The default number of requests that are kept for inspection: more than a test makes, and little
/// for a demo that runs for weeks.
const REQUESTS_KEPT: usize = 64;

/// A model that answers from a script. A clone plays the same script, so tests can keep one to
/// inspect the requests.
///
/// # Examples
/// ```
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_providers::scripted::{ScriptedModel, call, text};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([
///     call("weather", json!({ "city": "Oslo" })),
///     text("It is raining in Oslo."),
/// ]);
/// let request = GenerateRequest::new(vec![Message::user("How is the weather?")?]);
///
/// let first = model.generate(&request).await?;
/// assert_eq!(first.tool_calls().count(), 1);
/// let second = model.generate(&request).await?;
/// assert_eq!(second.text(), "It is raining in Oslo.");
/// assert_eq!(model.calls_made(), 2);
/// # Ok(())
/// # }
/// # main().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    id: ModelId,
    capabilities: Capabilities,
    retries: u32,
    silence: Option<Duration>,
    shared: Arc<Mutex<Shared>>,
}

/// The state that clones share.
#[derive(Debug)]
struct Shared {
    script: Script,
    /// The most recent requests, the oldest first.
    requests: VecDeque<GenerateRequest>,
    kept_max: usize,
    calls: usize,
    attempts: usize,
}

impl ScriptedModel {
    /// Creates a model that gives these replies, in order. Once they are used up, every request
    /// fails with an error that says so.
    #[must_use]
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let shared = Shared {
            script: Script::new(replies.into_iter().collect()),
            requests: VecDeque::new(),
            kept_max: REQUESTS_KEPT,
            calls: 0,
            attempts: 0,
        };
        Self {
            id: named("script"),
            capabilities: Capabilities {
                context_window: 131_072,
                weak_tools: false,
                response_schema: SchemaSupport::Native,
                local: true,
                thinking_allowance: 0,
                self_hosted: true,
            },
            retries: RETRIES,
            silence: None,
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// Creates a model from a script of JSON lines; `docs/scripted.md` has the format.
    ///
    /// # Examples
    /// ```
    /// use adjutant_providers::scripted::ScriptedModel;
    ///
    /// let script = r#"
    /// {"match": "weather", "calls": [{"name": "weather", "args": {"city": "Oslo"}}]}
    /// {"text": "Hello!", "repeat": true}
    /// "#;
    /// let model = ScriptedModel::from_jsonl(script)?;
    /// # Ok::<(), adjutant_providers::scripted::ScriptError>(())
    /// ```
    ///
    /// # Errors
    /// [`ScriptError`] with the number of the invalid line and the reason.
    pub fn from_jsonl(script: &str) -> Result<Self, ScriptError> {
        let (config, replies) = jsonl::parse(script)?;
        let mut model = Self::new(replies);
        let Capabilities {
            weak_tools,
            context_window,
            ..
        } = &mut model.capabilities;
        *weak_tools = config.weak_tools.unwrap_or(*weak_tools);
        *context_window = config.context_window.unwrap_or(*context_window);
        model.retries = config.retries.unwrap_or(model.retries);
        model.id.name = config.model.unwrap_or(model.id.name);
        Ok(model)
    }

    /// Creates the shipped demo, which reacts to a few words and says in every reply that it is a
    /// demo.
    ///
    /// # Errors
    /// None in a released build, because a test parses the shipped script.
    pub fn demo() -> Result<Self, ScriptError> {
        Self::from_jsonl(DEMO)
    }

    /// Adds a reply at the end of the script.
    #[must_use]
    pub fn then(self, reply: Reply) -> Self {
        self.lock().script.push(reply);
        self
    }

    /// Sets the number of attempts after the first, for faults that may pass. Default 1.
    #[must_use]
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the longest silence: a scripted delay or stall that lasts longer is a time-out.
    /// Default: unbounded.
    #[must_use]
    pub fn with_timeout(mut self, silence: Duration) -> Self {
        self.silence = Some(silence);
        self
    }

    /// Sets the capabilities that the model reports.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sets the number of requests that are kept for [`ScriptedModel::requests`], of those made
    /// from now on; the oldest are dropped first. Default 64.
    #[must_use]
    pub fn with_requests_kept(self, most: usize) -> Self {
        self.lock().kept_max = most;
        self
    }

    /// Returns the number of requests so far, not counting retries.
    #[must_use]
    pub fn calls_made(&self) -> usize {
        self.lock().calls
    }

    /// Returns the number of attempts so far, counting retries.
    #[must_use]
    pub fn attempts_made(&self) -> usize {
        self.lock().attempts
    }

    /// Returns the most recent requests in order, retries not repeated, up to the number that is
    /// kept.
    #[must_use]
    pub fn requests(&self) -> Vec<GenerateRequest> {
        self.lock().requests.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn policy(&self) -> Policy {
        Policy {
            retries: self.retries,
            pause: PAUSE,
            after_silence: true,
            // Waiting does not change a script.
            delay: None,
        }
    }

    fn record(&self, request: &GenerateRequest) {
        let mut shared = self.lock();
        shared.calls += 1;
        shared.requests.push_back(request.clone());
        // A demo that serves for weeks must not keep every request.
        while shared.requests.len() > shared.kept_max {
            shared.requests.pop_front();
        }
    }

    fn next_reply(&self, request: &GenerateRequest) -> Result<Reply, ModelError> {
        let mut shared = self.lock();
        shared.attempts += 1;
        shared
            .script
            .next(request)
            .map(Reply::with_fault_applied)
            .map_err(|message| ModelError::BadRequest {
                provider: self.id.provider.clone(),
                message,
            })
    }
}

impl LanguageModel for ScriptedModel {
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
        self.record(request);
        Box::pin(retry::generate(
            self.policy(),
            request.time_left,
            async |left| {
                let reply = self.next_reply(request)?;
                let bounds = play::Bounds::start(left, self.silence);
                Ok(bounds.apply(&self.id, play::whole(reply, &self.id)).await?)
            },
        ))
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        self.record(request);
        let (model, owned_request) = (self.clone(), request.clone());
        let open: retry::Open = Box::new(move |left| {
            let bounds = play::Bounds::start(left, model.silence);
            let opened = model
                .next_reply(&owned_request)
                .map(|reply| play::stream_reply(reply, model.id.clone(), bounds));
            Box::pin(std::future::ready(opened.map_err(Into::into)))
        });
        let policy = self.policy();
        let time_left = request.time_left;
        Box::pin(retry::stream(
            policy,
            time_left,
            open,
            Box::new(|error| error),
        ))
    }
}

fn named(model: &str) -> ModelId {
    #[expect(clippy::expect_used, reason = "two literals that are not blank")]
    let provider = ProviderId::new(PROVIDER).expect("a name");
    ModelId {
        provider,
        name: model.to_owned(),
    }
}
