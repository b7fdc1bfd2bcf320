//! One call of the model: what is recorded is not asked again, and room is made for what is asked.

use std::sync::atomic::Ordering;

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{DoesNotFit, Fitted, StopReason, ToolStyle, Turn};
use adjutant_core::{Delta, Event, GenerateRequest, GenerateResponse, ModelError, Notice, Past};
use futures::StreamExt as _;
use tokio::time::Instant;

use super::prepared::Prepared;
use super::{Replied, Step, Steps};
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::model_call::Calling;

impl Steps<'_> {
    /// Asks the model, unless its answer is recorded. Before that, room is made for the request.
    pub(crate) async fn generate(
        &self,
        turn: &mut Turn,
        request: GenerateRequest,
    ) -> Result<Step<Replied>, RunError> {
        let number = self.model_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let summarised = self.take_recorded_summary(turn, number).await;
        if let Some((replied, notices)) = self.recorded_reply(number).await {
            notices
                .into_iter()
                .for_each(|notice| turn.add_notice(notice));
            return Ok(Step::Done(replied));
        }
        if let Some(reason) = self.early_end.reason() {
            return Ok(Step::Stopped(reason, Vec::new()));
        }
        let request = if summarised { turn.request() } else { request };
        let mut prepared = self.prepare(turn, request).await;
        if !summarised && let Some(plan) = self.wants_summary(turn, &prepared).await {
            if let Some(reason) = Box::pin(self.summarise(turn, number, &plan, &prepared)).await? {
                return Ok(Step::Stopped(reason, Vec::new()));
            }
            prepared = self.prepare(turn, turn.request()).await;
        }
        let Prepared {
            native,
            references,
            fitted,
            ..
        } = prepared;
        let Fitted {
            mut request,
            notices,
            counted,
            ..
        } = match fitted {
            Ok(fitted) => fitted,
            Err(error) => {
                return Box::pin(self.too_long(number, &error))
                    .await
                    .map(Step::Done);
            }
        };
        let set_aside = match self
            .set_aside_for_model(&request, self.early_end.time_left())
            .await?
        {
            Ok(set_aside) => set_aside,
            Err(exceeded) => return Ok(Step::Stopped(StopReason::Budget(exceeded), Vec::new())),
        };
        self.emitter
            .emit(|| RunEvent::ModelStarted { number })
            .await;
        boundary("before the model is asked");
        let began = Instant::now();
        request.time_left = self.early_end.time_left();
        request.trace = self.operation();
        let mut calling = Calling::begin();
        let weak = turn.style() == ToolStyle::OneRound;
        let reply = tokio::select! {
            // In this order: an adapter that was given what is left of the turn runs out of time
            // together with it.
            biased;
            () = self.early_end.cancelled().cancelled() => Err(StopReason::Cancelled),
            () = self.early_end.out_of_time() => Err(StopReason::Deadline),
            reply = self.drain(&request, !weak, &mut calling) => Ok(reply),
        };
        let ms = millis(began);
        let reply = match reply {
            Ok(Ok(reply)) => {
                let weak = weak.then_some(&self.inner.weak_tools);
                let reply = match weak {
                    Some(weak) => weak.decode(reply, &native, &references),
                    None => reply,
                };
                Ok(GenerateResponse {
                    cost: self.inner.cost_of(&reply),
                    ..reply
                })
            }
            Ok(Err(error)) => Err(error),
            Err(reason) => {
                self.inner.model_call_ended(&calling, None);
                set_aside.settle_dropped(&mut *self.log.lock().await, ms);
                return Ok(Step::Stopped(reason, Vec::new()));
            }
        };
        boundary("the model answered, not recorded");
        self.inner.model_call_ended(&calling, Some(&reply));
        set_aside.settle_reply(&mut *self.log.lock().await, &reply, ms);
        self.record(Event::ModelReplied {
            turn: self.turn,
            number,
            reply: reply.clone(),
            ms,
            attempts: calling.attempts,
            counted: Some(counted),
            notices: notices.clone(),
            past: self.past_before(number),
        })
        .await;
        notices
            .into_iter()
            .for_each(|notice| turn.add_notice(notice));
        if let Ok(reply) = &reply {
            self.emitter
                .emit(|| RunEvent::ModelFinished {
                    number,
                    usage: reply.usage,
                })
                .await;
        }
        Ok(Step::Done(Replied::Sent(reply)))
    }

    /// Records that a request cannot be made to fit: nobody is asked.
    async fn too_long(&self, number: u32, error: &DoesNotFit) -> Result<Replied, RunError> {
        let before = number.saturating_sub(1);
        let said =
            self.look(
                |turn| match (1..=before).rev().find_map(|number| turn.reply(number)) {
                    Some(Event::ModelReplied {
                        reply: Err(error @ ModelError::ContextTooLong { .. }),
                        ..
                    }) => Some(error.clone()),
                    _ => None,
                },
            );
        // The provider's words, if it was asked before: there is no way to send less.
        let error = said
            .await
            .flatten()
            .unwrap_or_else(|| ModelError::ContextTooLong {
                provider: self.inner.model.id().provider.clone(),
                message: error.to_string(),
            });
        self.record(Event::ModelReplied {
            turn: self.turn,
            number,
            reply: Err(error.clone()),
            ms: 0,
            attempts: 0,
            counted: None,
            notices: Vec::new(),
            past: self.past_before(number),
        })
        .await;
        Ok(Replied::TooLong(error))
    }

    /// Returns what is recorded of the past with a model call: that the turn was given it, with the
    /// first.
    fn past_before(&self, number: u32) -> Option<Box<Past>> {
        (number == 1).then(|| Box::new(self.past.clone()))
    }

    /// Reads a model's stream to its end, showing what a person can read of it.
    async fn drain(
        &self,
        request: &GenerateRequest,
        show: bool,
        calling: &mut Calling,
    ) -> Result<GenerateResponse, ModelError> {
        let mut stream = self.inner.model.stream(request).await?;
        while let Some(delta) = stream.next().await {
            let delta = delta?;
            calling.came(&delta);
            match delta {
                Delta::Finished(reply) => return Ok(reply),
                Delta::Reading(progress) => self.emitter.emit(|| RunEvent::Reading(progress)).await,
                Delta::Text(text) if show => self.emitter.emit(|| RunEvent::Text(text)).await,
                Delta::Thinking(text) if show => {
                    self.emitter.emit(|| RunEvent::Thinking(text)).await
                }
                Delta::Retrying {
                    attempt,
                    wait,
                    reason,
                } => {
                    self.emitter
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
            provider: self.inner.model.id().provider.clone(),
            reason: "its stream ended without a last event".to_owned(),
        })
    }

    async fn recorded_reply(&self, wanted: u32) -> Option<(Replied, Vec<Notice>)> {
        let read = |turn: &CurrentTurn| match turn.reply(wanted)? {
            Event::ModelReplied {
                reply: Err(error),
                attempts: 0,
                ..
            } => Some((Replied::TooLong(error.clone()), Vec::new())),
            Event::ModelReplied { reply, notices, .. } => {
                Some((Replied::Sent(reply.clone()), notices.clone()))
            }
            _ => None,
        };
        self.look(read).await.flatten()
    }
}
