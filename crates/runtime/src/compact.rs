//! Compaction: summarising old turns with a model call, and doing so at a user's request.

use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::turn::{Summarise, WindowCapacity};
use adjutant_core::{
    ConversationKey, Cost, Delta, Event, GenerateRequest, GenerateResponse, ModelError, Summary,
    TimeBound, Usage,
};
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::inner::Inner;
use crate::lease::{OpenConversation, acquire};
use crate::log::Log;
use crate::model_call::CallMetrics;
use crate::stream::{Emitter, QUEUE};
use crate::{Agent, RunError};

/// The instruction of the model call that writes a summary.
const PROMPT: &str = include_str!("../../../prompts/summary.md");

/// The result of [`Agent::compact`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Compaction {
    /// The summary replaces the old turns in requests from now on.
    Done {
        /// The summary as it was recorded.
        summary: Summary,
        /// Number of messages that no earlier summary replaced.
        messages: usize,
        /// Tokens that the replaced messages took of a request.
        before: u32,
        /// Tokens that the summary takes of a request.
        after: u32,
        /// Tokens of the model call that wrote it.
        usage: Usage,
        /// Cost of that model call, if it is known.
        cost: Option<Cost>,
    },
    /// A summary replaces everything already, or the context window is too small for one.
    NothingToDo,
    /// No summary could be written; the conversation is unchanged.
    Failed {
        /// The cause for the user, without internals of the provider.
        reason: String,
        /// The typed cause, if it was the model that failed.
        error: Option<ModelError>,
    },
}

/// The result of the model call that summarises old turns.
pub(crate) struct WrittenSummary {
    pub(crate) result: Result<(Summary, u32), String>,
    /// The reply as the provider sent it, for the budgets.
    pub(crate) reply: Result<GenerateResponse, ModelError>,
    pub(crate) ms: u64,
}

impl WrittenSummary {
    /// Returns the event that records the summary or its failure.
    pub(crate) fn event(
        &self,
        turn: Option<adjutant_core::TurnId>,
        number: u32,
        plan: &Summarise,
        capacity: &WindowCapacity,
    ) -> Event {
        let ms = self.ms;
        let (usage, cost) = match &self.reply {
            Ok(reply) => (reply.usage, reply.cost),
            Err(_) => (Usage::default(), Some(Cost::default())),
        };
        match &self.result {
            Ok((summary, after)) => Event::ConversationSummarized {
                turn,
                number,
                summary: summary.clone(),
                before: capacity.calibration().share_of(plan.counted),
                after: capacity.calibration().share_of(*after),
                usage,
                cost,
                ms,
            },
            Err(reason) => Event::SummaryFailed {
                turn,
                number,
                reason: reason.clone(),
                asked: true,
                usage,
                cost,
                ms,
            },
        }
    }
}

impl Inner {
    /// Returns the time limit of a summary, which is that of a turn.
    pub(crate) fn summary_time(&self) -> Option<Duration> {
        self.limits.turn_deadline
    }

    /// Returns the request for a summary.
    pub(crate) fn summary_request(
        &self,
        plan: &Summarise,
        focus: Option<&str>,
        capacity: &WindowCapacity,
    ) -> GenerateRequest {
        let within = capacity.window().saturating_sub(plan.tokens_max);
        let within = capacity.calibration().counted_within(within);
        plan.request(PROMPT.trim_end(), focus, within, &self.config, &|text| {
            self.count(text)
        })
    }

    /// Asks the model for a summary and parses its answer. Nothing is recorded.
    pub(crate) async fn write_summary(
        &self,
        plan: &Summarise,
        request: GenerateRequest,
        emitter: &Emitter,
    ) -> WrittenSummary {
        let began = Instant::now();
        let reply = self
            .generate_silently(request, self.summary_time(), emitter)
            .await;
        let ms = millis(began);
        let result = match &reply {
            Ok(reply) => plan
                .read(reply, &|text| self.count(text))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        WrittenSummary { result, reply, ms }
    }

    /// Returns the answer of the model with its cost. Of its text, only the progress is emitted.
    pub(crate) async fn generate_silently(
        &self,
        mut request: GenerateRequest,
        time: Option<Duration>,
        emitter: &Emitter,
    ) -> Result<GenerateResponse, ModelError> {
        let mut metrics = CallMetrics::start(self.model.id());
        // The adapter gets the limit too, so that it does not wait for a retry which would come too
        // late.
        request.time_left = time;
        let span = metrics.span.clone();
        let answer = self
            .generate_streamed(&request, emitter, &mut metrics, Shown::Progress)
            .instrument(span);
        let reply = match time {
            None => answer.await,
            Some(time) => tokio::time::timeout(time, answer)
                .await
                .unwrap_or_else(|_| {
                    let (provider, bound) = (self.model.id().provider.clone(), TimeBound::Total);
                    Err(ModelError::Timeout {
                        provider,
                        waited: time,
                        bound,
                    })
                }),
        };
        let reply = reply.map(|reply| GenerateResponse {
            cost: self.cost_of(&reply),
            ..reply
        });
        self.record_model_call_end(&metrics, Some(&reply));
        reply
    }

    /// Reads the answer of the model as a stream, so that the timeouts of adapters bound its
    /// silences instead of its length.
    pub(crate) async fn generate_streamed(
        &self,
        request: &GenerateRequest,
        emitter: &Emitter,
        metrics: &mut CallMetrics,
        shown: Shown,
    ) -> Result<GenerateResponse, ModelError> {
        let mut stream = self.model.stream(request).await?;
        while let Some(delta) = stream.next().await {
            let delta = delta?;
            metrics.record(&delta);
            let event = match (delta, shown) {
                (Delta::Finished(reply), _) => return Ok(reply),
                (Delta::Reading(progress), _) => RunEvent::Reading(progress),
                (Delta::Text(text), Shown::Text) => {
                    metrics.shown_text.push_str(&text);
                    RunEvent::Text(text)
                }
                (Delta::Thinking(text), Shown::Text) => RunEvent::Thinking(text),
                (Delta::Text(text) | Delta::Thinking(text), Shown::Progress) => {
                    RunEvent::SummaryProgress { bytes: text.len() }
                }
                (
                    Delta::Retrying {
                        attempt,
                        wait,
                        reason,
                    },
                    _,
                ) => RunEvent::Retrying {
                    attempt,
                    wait,
                    reason,
                },
                _ => continue,
            };
            emitter.emit(|| event).await;
        }
        Err(ModelError::Truncated {
            provider: self.model.id().provider.clone(),
            reason: "its stream ended without a last event".to_owned(),
            source: None,
        })
    }
}

/// The part of a model's answer that is emitted while it is streamed.
#[derive(Clone, Copy)]
pub(crate) enum Shown {
    /// Text and thinking.
    Text,
    /// The sizes of the pieces.
    Progress,
    /// Nothing of the answer: it is not text for a person.
    Nothing,
}

/// Summarises every turn that has ended, after the running one.
pub(crate) async fn compact(
    inner: &Inner,
    key: &ConversationKey,
    focus: Option<&str>,
    emitter: &Emitter,
) -> Result<Compaction, RunError> {
    let Some(OpenConversation {
        leased, mut log, ..
    }) = acquire(inner, key, None, None).await?
    else {
        return Ok(Compaction::NothingToDo);
    };
    leased
        .run(async {
            let compaction = compact_leased(inner, key, focus, &mut log, emitter).await?;
            Ok((compaction, log))
        })
        .await
}

async fn compact_leased(
    inner: &Inner,
    key: &ConversationKey,
    focus: Option<&str>,
    log: &mut Log,
    emitter: &Emitter,
) -> Result<Compaction, RunError> {
    let Some((plan, capacity)) = plan(inner, log.conversation()) else {
        return Ok(Compaction::NothingToDo);
    };
    let request = inner.summary_request(&plan, focus, &capacity);
    let who = (&key.user, log.worker(inner));
    let time = inner.summary_time();
    let reservation = match inner.reserve_for_request(who, None, &request, time).await {
        Ok(reservation) => reservation,
        Err(error) => {
            let reason = adjutant_core::words::budget(&error.into_exceeded()?).to_owned();
            return Ok(Compaction::Failed {
                reason,
                error: None,
            });
        }
    };
    let tokens = capacity.calibration().share_of(plan.counted);
    emitter
        .emit(|| RunEvent::SummaryStarted {
            messages: plan.messages,
            tokens,
        })
        .await;
    boundary("before old turns are summarised");
    let written = inner.write_summary(&plan, request, emitter).await;
    boundary("old turns are summarised, not recorded");
    reservation.settle_reply(log, &written.reply, written.ms);
    let event = written.event(None, 0, &plan, &capacity);
    log.append(inner, key, vec![event.clone()]).await?;
    Ok(match event {
        Event::ConversationSummarized {
            summary,
            before,
            after,
            usage,
            cost,
            ..
        } => Compaction::Done {
            summary,
            messages: plan.messages,
            before,
            after,
            usage,
            cost,
        },
        _ => Compaction::Failed {
            reason: failure_message(&written),
            error: written.reply.err(),
        },
    })
}

/// Returns the cause of a failed summary, for the user.
fn failure_message(written: &WrittenSummary) -> String {
    match &written.reply {
        Err(error) => adjutant_core::words::for_model_error(error).into_owned(),
        Ok(_) => written.result.as_ref().err().cloned().unwrap_or_default(),
    }
}

fn plan(inner: &Inner, conversation: &Conversation) -> Option<(Summarise, WindowCapacity)> {
    let capacity =
        inner.window_capacity(conversation, inner.config.max_tokens.map(|max| max.get()));
    let plan = Summarise::plan(
        &conversation.turn_history_now(),
        0,
        capacity.usable(),
        0,
        &|text| inner.count(text),
    )?;
    Some((plan, capacity))
}

impl Agent {
    /// Summarises every turn of a conversation that has ended. The summary replaces them in
    /// requests from now on; the turns stay in the journal. `focus`: what the summary should keep,
    /// in the user's own text. Waits for a running turn. Dropping the future cancels the
    /// compaction.
    ///
    /// # Errors
    /// [`RunError`] if the summary could not be journaled. A failure of the model is
    /// [`Compaction::Failed`].
    pub async fn compact(
        &self,
        key: &ConversationKey,
        focus: Option<&str>,
    ) -> Result<Compaction, RunError> {
        compact(
            self.inner().for_user(&key.user),
            key,
            focus,
            &Emitter::Silent,
        )
        .await
    }

    /// Summarises as [`Agent::compact`] does, and calls `progress` meanwhile:
    /// [`RunEvent::SummaryStarted`], then [`RunEvent::Reading`], [`RunEvent::SummaryProgress`] and
    /// [`RunEvent::Retrying`]. The result is what is returned.
    ///
    /// # Errors
    /// [`RunError`] as [`Agent::compact`].
    pub async fn compact_with_progress(
        &self,
        key: &ConversationKey,
        focus: Option<&str>,
        mut progress: impl FnMut(&RunEvent),
    ) -> Result<Compaction, RunError> {
        let (sender, mut events) = mpsc::channel(QUEUE);
        let emitter = Emitter::Stream(sender);
        let mut work = std::pin::pin!(compact(
            self.inner().for_user(&key.user),
            key,
            focus,
            &emitter
        ));
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => progress(&event),
                done = &mut work => return done,
            }
        }
    }
}
