//! Putting old turns into few words: the model call, and doing it because a person asks.

use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::turn::{Room, Summarise};
use adjutant_core::{
    ConversationKey, Cost, Delta, Event, GenerateRequest, GenerateResponse, ModelError, Summary,
    TimeBound, Usage,
};
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::held::{Opened, open};
use crate::inner::Inner;
use crate::log::Log;
use crate::model_call::Calling;
use crate::stream::{Emitter, QUEUE};
use crate::{Agent, RunError};

/// What whoever summarises is told.
const PROMPT: &str = include_str!("../../../prompts/summary.md");

/// What came of putting old turns into few words because a person asked for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Compaction {
    /// The summary stands for them from now on.
    Done {
        /// It.
        summary: Summary,
        /// How many messages no earlier summary stood for.
        messages: usize,
        /// What it stands for took of a request, in tokens.
        before: u32,
        /// What it takes.
        after: u32,
        /// Tokens of the model call that wrote it.
        usage: Usage,
        /// Money of it, if it is known.
        cost: Option<Cost>,
    },
    /// Nothing was said that no summary stands for, or the window is too small for a summary.
    NothingToDo,
    /// It could not be done; the conversation is as it was.
    Failed {
        /// Why, in plain words, without internals of the provider.
        reason: String,
        /// The typed cause, if it was the model that failed.
        error: Option<ModelError>,
    },
}

/// What a model made of old turns.
pub(crate) struct Written {
    pub(crate) result: Result<(Summary, u32), String>,
    /// As the provider gave it, for whoever books it.
    pub(crate) reply: Result<GenerateResponse, ModelError>,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Cost>,
    pub(crate) ms: u64,
}

impl Written {
    /// What is recorded of it. `before`: what the old turns took.
    pub(crate) fn event(
        &self,
        turn: Option<adjutant_core::TurnId>,
        number: u32,
        (plan, room): (&Summarise, &Room),
    ) -> Event {
        let Self {
            usage, cost, ms, ..
        } = *self;
        match &self.result {
            Ok((summary, after)) => Event::ConversationSummarized {
                turn,
                number,
                summary: summary.clone(),
                before: room.calibration().share_of(plan.counted),
                after: room.calibration().share_of(*after),
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
    /// Returns the time for a summary: that of a turn.
    pub(crate) fn summary_time(&self) -> Option<Duration> {
        self.limits.turn_deadline
    }

    /// What the model is asked for.
    pub(crate) fn summary_request(
        &self,
        plan: &Summarise,
        focus: Option<&str>,
        room: &Room,
    ) -> GenerateRequest {
        let within = room.window().saturating_sub(plan.tokens_max);
        let within = room.calibration().counted_within(within);
        plan.request(PROMPT.trim_end(), focus, within, &self.config, &|text| {
            self.count(text)
        })
    }

    /// Asks the model, and reads its answer. Nothing is recorded.
    pub(crate) async fn write_summary(
        &self,
        plan: &Summarise,
        request: GenerateRequest,
        emitter: &Emitter,
    ) -> Written {
        let began = Instant::now();
        let reply = self
            .whole_answer(request, self.summary_time(), emitter)
            .await;
        let ms = millis(began);
        let (usage, cost) = match &reply {
            Ok(reply) => (reply.usage, reply.cost),
            Err(_) => (Usage::default(), Some(Cost::default())),
        };
        let result = match &reply {
            Ok(reply) => plan
                .read(reply, &|text| self.count(text))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        Written {
            result,
            reply,
            usage,
            cost,
            ms,
        }
    }
}

impl Inner {
    /// Returns the whole answer of the model with what it cost, if it comes in time.
    pub(crate) async fn whole_answer(
        &self,
        mut request: GenerateRequest,
        time: Option<Duration>,
        emitter: &Emitter,
    ) -> Result<GenerateResponse, ModelError> {
        let mut calling = Calling::begin();
        request.time_left = time;
        let reply = match time {
            None => self.asked(&request, emitter, &mut calling).await,
            Some(time) => tokio::time::timeout(time, self.asked(&request, emitter, &mut calling))
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
        self.model_call_ended(&calling, Some(&reply));
        reply
    }

    /// The whole answer of the model, read as a stream, as all answers are: what is bounded is the
    /// silence in it. How far it is is told, and not what it says.
    async fn asked(
        &self,
        request: &GenerateRequest,
        emitter: &Emitter,
        calling: &mut Calling,
    ) -> Result<GenerateResponse, ModelError> {
        let mut stream = self.model.stream(request).await?;
        while let Some(delta) = stream.next().await {
            let delta = delta?;
            calling.came(&delta);
            match delta {
                Delta::Finished(reply) => return Ok(reply),
                Delta::Reading(progress) => emitter.emit(|| RunEvent::Reading(progress)).await,
                Delta::Text(text) | Delta::Thinking(text) => {
                    emitter
                        .emit(|| RunEvent::SummaryProgress { bytes: text.len() })
                        .await;
                }
                Delta::Retrying {
                    attempt,
                    wait,
                    reason,
                } => {
                    emitter
                        .emit(|| RunEvent::Retrying {
                            attempt,
                            wait,
                            reason,
                        })
                        .await;
                }
                _ => {}
            }
        }
        Err(ModelError::Truncated {
            provider: self.model.id().provider.clone(),
            reason: "its stream ended without a last event".to_owned(),
        })
    }
}

/// Puts every turn that has ended into few words, because a person asks for it. A running turn is
/// waited for.
pub(crate) async fn compact(
    inner: &Inner,
    key: &ConversationKey,
    focus: Option<&str>,
    emitter: &Emitter,
) -> Result<Compaction, RunError> {
    let Some(Opened { held, mut log, .. }) = open(inner, key, None, None).await? else {
        return Ok(Compaction::NothingToDo);
    };
    held.run(async {
        let compaction = compact_held(inner, key, focus, (&mut log, emitter)).await?;
        Ok((compaction, log))
    })
    .await
}

async fn compact_held(
    inner: &Inner,
    key: &ConversationKey,
    focus: Option<&str>,
    (log, emitter): (&mut Log, &Emitter),
) -> Result<Compaction, RunError> {
    let Some((plan, room)) = plan(inner, log.conversation()) else {
        return Ok(Compaction::NothingToDo);
    };
    let request = inner.summary_request(&plan, focus, &room);
    let who = (&key.user, log.worker(inner));
    let set_aside = match inner.set_aside_for_summary(who, None, &request).await? {
        Ok(set_aside) => set_aside,
        Err(exceeded) => {
            let reason = adjutant_core::words::budget(&exceeded).to_owned();
            return Ok(Compaction::Failed {
                reason,
                error: None,
            });
        }
    };
    let tokens = room.calibration().share_of(plan.counted);
    emitter
        .emit(|| RunEvent::SummaryStarted {
            messages: plan.messages,
            tokens,
        })
        .await;
    boundary("before old turns are summarised");
    let written = inner.write_summary(&plan, request, emitter).await;
    boundary("old turns are summarised, not recorded");
    set_aside.settle_reply(log, &written.reply, written.ms);
    let event = written.event(None, 0, (&plan, &room));
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
            reason: words_for(&written),
            error: written.reply.err(),
        },
    })
}

/// Why it could not be done, for the person.
fn words_for(written: &Written) -> String {
    match &written.reply {
        Err(error) => adjutant_core::words::for_model_error(error).into_owned(),
        Ok(_) => written.result.as_ref().err().cloned().unwrap_or_default(),
    }
}

fn plan(inner: &Inner, conversation: &Conversation) -> Option<(Summarise, Room)> {
    let room = inner.room(conversation, inner.config.max_tokens.map(|max| max.get()));
    let plan = Summarise::plan(&conversation.recalled_now(), room.usable(), 0, &|text| {
        inner.count(text)
    })?;
    Some((plan, room))
}

impl Agent {
    /// Puts every turn of a conversation that has ended into few words, which stand for them in
    /// requests from now on; nothing is lost, the turns stay in the journal. `focus`: what matters
    /// most to the person, in their words. A running turn is waited for. Dropping the future gives
    /// it up, and nothing has happened then.
    ///
    /// # Errors
    /// [`RunError`] if it could not be written. That the model wrote no summary is
    /// [`Compaction::Failed`].
    pub async fn compact(
        &self,
        key: &ConversationKey,
        focus: Option<&str>,
    ) -> Result<Compaction, RunError> {
        compact(self.inner().of(&key.user), key, focus, &Emitter::Nobody).await
    }

    /// Does the same as [`Agent::compact`], and tells how far the model is:
    /// [`RunEvent::SummaryStarted`], then [`RunEvent::Reading`], [`RunEvent::SummaryProgress`] and
    /// [`RunEvent::Retrying`]. The end is what is returned.
    ///
    /// # Errors
    /// As [`Agent::compact`].
    pub async fn compact_telling(
        &self,
        key: &ConversationKey,
        focus: Option<&str>,
        mut tell: impl FnMut(&RunEvent),
    ) -> Result<Compaction, RunError> {
        let (sender, mut events) = mpsc::channel(QUEUE);
        let emitter = Emitter::One(sender);
        let mut work = std::pin::pin!(compact(self.inner().of(&key.user), key, focus, &emitter));
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => tell(&event),
                done = &mut work => return done,
            }
        }
    }
}
