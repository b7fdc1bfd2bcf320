//! One model call: a recorded reply is reused, else the request is fitted, sent and recorded.

use std::sync::atomic::Ordering;

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{DoesNotFit, Fitted, StopReason, ToolStyle, Turn};
use adjutant_core::{Event, GenerateRequest, GenerateResponse, GivenHistory, ModelError, Notice};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::prepare::Prepared;
use super::{ModelReply, Step, Steps};
use crate::RunError;
use crate::clock::millis;
use crate::compact::Shown;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::model_call::CallMetrics;

impl Steps<'_> {
    /// Calls the model, unless its reply is recorded. The request is first fitted into the context
    /// window, by compaction if needed.
    pub(crate) async fn generate(
        &self,
        turn: &mut Turn,
        request: GenerateRequest,
    ) -> Result<Step<ModelReply>, RunError> {
        // Calls are numbered in the order in which the turn machine makes them, which is the same
        // in a replay: so the number finds the recorded reply.
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
        if !summarised && let Some(plan) = self.plan_summary(turn, &prepared).await? {
            if let Some(reason) = Box::pin(self.summarise(turn, number, &plan, &prepared)).await? {
                return Ok(Step::Stopped(reason, Vec::new()));
            }
            prepared = self.prepare(turn, turn.request()).await;
        }
        let Prepared {
            native,
            references,
            scores,
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
        let time_left = self.early_end.time_left();
        let reservation = match self.reserve_for_model(&request, time_left).await {
            Ok(reservation) => reservation,
            Err(error) => {
                let reason = StopReason::Budget(error.into_exceeded()?);
                return Ok(Step::Stopped(reason, Vec::new()));
            }
        };
        self.emitter
            .emit(|| RunEvent::ModelStarted { number })
            .await;
        boundary("before the model is asked");
        let began = Instant::now();
        request.time_left = self.early_end.time_left();
        request.trace = self.operation();
        let mut metrics = CallMetrics::start(self.inner.model.id());
        let weak = turn.style() == ToolStyle::OneRound;
        // The constrained output of a weak model is not text for a person.
        let shown = match weak || turn.withholds_answer() {
            true => Shown::Nothing,
            false => Shown::Text,
        };
        let span = metrics.span.clone();
        span.record("number", number);
        let call = self
            .inner
            .generate_streamed(&request, self.emitter, &mut metrics, shown)
            .instrument(span);
        let reply = tokio::select! {
            // In this order: an adapter whose timeout is the rest of the turn fails at the same
            // moment as the deadline, which must win.
            biased;
            () = self.early_end.cancelled().cancelled() => Err(StopReason::Cancelled),
            () = self.early_end.deadline_passed() => Err(StopReason::Deadline),
            reply = call => Ok(reply),
        };
        let ms = millis(began);
        if !matches!(reply, Ok(Ok(_))) {
            turn.on_partial_answer(std::mem::take(&mut metrics.shown_text));
        }
        let reply = match reply {
            Ok(Ok(reply)) => {
                let weak = weak.then_some(&self.inner.weak_tools);
                let reply = match weak {
                    Some(weak) => weak.decode(reply, &native, &references, scores.as_ref()),
                    None => reply,
                };
                Ok(GenerateResponse {
                    cost: self.inner.cost_of(&reply),
                    ..reply
                })
            }
            Ok(Err(error)) => Err(error),
            Err(reason) => {
                self.inner.record_model_call_end(&metrics, None);
                reservation.settle_dropped(&mut *self.log.lock().await, ms);
                return Ok(Step::Stopped(reason, Vec::new()));
            }
        };
        boundary("the model answered, not recorded");
        self.inner.record_model_call_end(&metrics, Some(&reply));
        reservation.settle_reply(&mut *self.log.lock().await, &reply, ms);
        // Recorded, not appended: the reply is written with the intents of its calls, or with the
        // end of the turn. If a crash loses it, the model is asked again, which is harmless.
        self.record(Event::ModelReplied {
            turn: self.turn,
            number,
            reply: reply.clone(),
            ms,
            attempts: metrics.attempts,
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
        Ok(Step::Done(ModelReply::Sent(reply)))
    }

    /// Records that a request cannot be made to fit, and is not sent.
    async fn too_long(&self, number: u32, error: &DoesNotFit) -> Result<ModelReply, RunError> {
        let before = number.saturating_sub(1);
        let refused =
            self.with_turn(
                |turn| match (1..=before).rev().find_map(|number| turn.reply(number)) {
                    Some(Event::ModelReplied {
                        reply: Err(error @ ModelError::ContextTooLong { .. }),
                        ..
                    }) => Some(error.clone()),
                    _ => None,
                },
            );
        // If the provider refused an earlier request as too long, its error is more precise.
        let error = refused
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
        Ok(ModelReply::TooLong(error))
    }

    /// Returns the history to record with a model call: that of the turn, with its first call.
    fn past_before(&self, number: u32) -> Option<Box<GivenHistory>> {
        (number == 1).then(|| Box::new(self.past.clone()))
    }

    async fn recorded_reply(&self, wanted: u32) -> Option<(ModelReply, Vec<Notice>)> {
        let read = |turn: &CurrentTurn| match turn.reply(wanted)? {
            Event::ModelReplied {
                reply: Err(error),
                attempts: 0,
                ..
            } => Some((ModelReply::TooLong(error.clone()), Vec::new())),
            Event::ModelReplied { reply, notices, .. } => {
                Some((ModelReply::Sent(reply.clone()), notices.clone()))
            }
            _ => None,
        };
        self.find(read).await
    }
}
