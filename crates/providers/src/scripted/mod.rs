//! A model that answers from a script: for tests, for trying things without a key, for labelled
//! demos.
//!
//! Built in code from [`text`], [`call`] and [`fault`], or read from JSON lines with
//! [`ScriptedModel::from_jsonl`] (`-m scripted:FILE`; the format is in `docs/scripted.md`). Faults
//! go through the same retries as a vendor's.
//!
//! ```
//! use adjutant_providers::scripted::{ScriptedModel, call, text};
//! use serde_json::json;
//!
//! let model = ScriptedModel::new([
//!     call("weather", json!({ "city": "Oslo" })),
//!     text("It is raining in Oslo."),
//! ]);
//! assert_eq!(model.calls_made(), 0);
//! ```

mod jsonl; // a script as text
mod play; // a reply as deltas or an error
mod reply; // one answer of a script
mod script; // which answer is next
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

/// The provider's name.
pub const PROVIDER: &str = "scripted";

/// The shipped demo script.
const DEMO: &str = include_str!("demo.jsonl");

/// Attempts after the first, as with a vendor in the cloud.
const RETRIES: u32 = 1;

/// A script does not get well by waiting, so the pause is short. A scripted `retry_after_s` is
/// waited for in full.
const PAUSE: Duration = Duration::from_millis(5);

/// Requests that are kept for whoever looks at them: more than a test makes, and nothing for a demo
/// that runs for weeks.
const REQUESTS_KEPT: usize = 64;

/// A model that answers from a script. A clone plays the same script: keep one to look at what was
/// asked.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    id: ModelId,
    capabilities: Capabilities,
    retries: u32,
    silence: Option<Duration>,
    shared: Arc<Mutex<Shared>>,
}

/// What clones share.
#[derive(Debug)]
struct Shared {
    script: Script,
    /// The last ones.
    requests: VecDeque<GenerateRequest>,
    kept_max: usize,
    calls: usize,
    attempts: usize,
}

impl ScriptedModel {
    /// Answers with these, in order. Once they are used up every request fails, saying so.
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

    /// Reads a script of JSON lines; `docs/scripted.md` has the format.
    ///
    /// # Errors
    /// [`ScriptError`] with the line that cannot be used and why.
    pub fn from_jsonl(script: &str) -> Result<Self, ScriptError> {
        let (config, replies) = jsonl::parse(script)?;
        let mut model = Self::new(replies);
        if let Some(name) = config.model {
            model.id.name = name;
        }
        if let Some(retries) = config.retries {
            model.retries = retries;
        }
        if let Some(weak_tools) = config.weak_tools {
            model.capabilities.weak_tools = weak_tools;
        }
        if let Some(context_window) = config.context_window {
            model.capabilities.context_window = context_window;
        }
        Ok(model)
    }

    /// The shipped demo: reacts to a few words, says in every reply that it is a demo.
    ///
    /// # Errors
    /// None in a released build: the shipped script is a test.
    pub fn demo() -> Result<Self, ScriptError> {
        Self::from_jsonl(DEMO)
    }

    /// Adds a reply at the end.
    #[must_use]
    pub fn then(self, reply: Reply) -> Self {
        self.lock().script.push(reply);
        self
    }

    /// Attempts after the first, for faults that a vendor might get over. Default 1.
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

    /// The same script, said to have these capabilities.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sets how many requests are kept for [`ScriptedModel::requests`], of those made from now on;
    /// the oldest go first. Default 64.
    #[must_use]
    pub fn with_requests_kept(self, most: usize) -> Self {
        self.lock().kept_max = most;
        self
    }

    /// How often an answer was asked for, retries not counted.
    #[must_use]
    pub fn calls_made(&self) -> usize {
        self.lock().calls
    }

    /// How often the script was consulted, retries counted.
    #[must_use]
    pub fn attempts_made(&self) -> usize {
        self.lock().attempts
    }

    /// Returns what was asked, in order, retries not repeated: the last requests, as many as are
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
        }
    }

    fn record(&self, request: &GenerateRequest) {
        let mut shared = self.lock();
        shared.calls += 1;
        shared.requests.push_back(request.clone());
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
            .map(Reply::spoilt)
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
                let time = play::Time::starts(left, self.silence);
                Ok(time.bounds(&self.id, play::whole(reply, &self.id)).await?)
            },
        ))
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        self.record(request);
        let (model, asked) = (self.clone(), request.clone());
        let open: retry::Open = Box::new(move |left| {
            let time = play::Time::starts(left, model.silence);
            let opened = model
                .next_reply(&asked)
                .map(|reply| play::pieces(reply, model.id.clone(), time));
            Box::pin(std::future::ready(opened.map_err(Into::into)))
        });
        let policy = self.policy();
        let time_left = request.time_left;
        Box::pin(async move {
            Ok(
                Box::pin(retry::stream(policy, time_left, open, Box::new(|error| error)).await?)
                    as DeltaStream,
            )
        })
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
