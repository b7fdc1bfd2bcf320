//! Fits a request into the context window, and compacts the conversation before the window is full.

use std::time::Duration;

use adjutant_core::turn::{
    DoesNotFit, Fitted, StopReason, Summarise, ToolStyle, Turn, WindowCapacity, fit,
};
use adjutant_core::{
    ActionScores, Cost, Event, GenerateRequest, Reference, TurnError, Usage, WindowShare,
};
use adjutant_weak::LastExchange;
use tracing::warn;

use super::Steps;
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::run::earlier_history;

/// Messages that the limit of messages has to leave out before they are summarised. The default
/// limit leaves out at least as many at once; with a smaller one a summary is not made for each turn.
const LEFT_OUT_MIN: usize = 10;
/// Turns that are read to summarise what was left out. Older ones are only in a conversation that
/// was not summarised for so long.
const LEFT_OUT_TURNS_MAX: u32 = 200;

/// A request in the form of the model, fitted into its window.
pub(super) struct Prepared {
    /// The request as the turn made it.
    pub(super) native: GenerateRequest,
    /// The user's items (tasks, notes) that a weak model may refer to by number.
    pub(super) references: Vec<Reference>,
    /// Probabilities of the actions of the message, if a weak model has them.
    pub(super) scores: Option<ActionScores>,
    pub(super) capacity: WindowCapacity,
    pub(super) fitted: Result<Fitted, DoesNotFit>,
}

impl Steps<'_> {
    /// Applies a summary that was recorded before a model call. Returns true if the request
    /// changed.
    pub(super) async fn take_recorded_summary(&self, turn: &mut Turn, number: u32) -> bool {
        let log = self.log.lock().await;
        let call = usize::try_from(number).unwrap_or(usize::MAX);
        log.conversation()
            .current()
            .is_some_and(|current| turn.take_summary(current.summaries(), call))
    }

    /// Encodes a request for the model, and fits it into the context window.
    pub(super) async fn prepare(&self, turn: &Turn, native: GenerateRequest) -> Prepared {
        let weak = turn.style() == ToolStyle::OneRound;
        let mut references = Vec::new();
        let mut scores = None;
        let request = if weak {
            // Best effort: without the list the gate still resolves names that the model writes.
            references = self
                .inner
                .gate
                .registry
                .references(&self.key.user)
                .await
                .unwrap_or_default();
            scores = self.score_actions(&native).await;
            let weak_tools = &self.inner.weak_tools;
            weak_tools.encode(&native, &references, scores.as_ref())
        } else {
            native.clone()
        };
        let answer = request.config.max_tokens.map(|max| max.get());
        let capacity = self
            .inner
            .window_capacity(self.log.lock().await.conversation(), answer);
        // A weak model gets the turn as one message.
        let own = if weak { 1 } else { turn.own_messages() };
        let capacity = capacity.for_turn(turn.summary_block(), own);
        let fitted = fit(request, &capacity, &|text| self.inner.count(text));
        Prepared {
            native,
            references,
            scores,
            capacity,
            fitted,
        }
    }

    /// Returns the probabilities of the actions that the message asks for, if the model has them.
    async fn score_actions(&self, request: &GenerateRequest) -> Option<ActionScores> {
        let exchange = LastExchange::of(request);
        let scores = self.inner.model.score_actions(exchange.utterance());
        let scored = tokio::select! {
            biased;
            () = self.early_end.cancelled().cancelled() => return None,
            () = self.early_end.deadline_passed() => return None,
            scored = scores => scored,
        };
        // Best effort: without scores the words of the message decide.
        scored
            .inspect_err(|error| warn!(%error, "the actions of a message were not scored"))
            .ok()
            .flatten()
    }

    /// Returns the old turns to summarise before this request is sent, if it is time for that:
    /// because the context window is nearly full, or because the limit of messages left turns out.
    pub(super) async fn plan_summary(
        &self,
        turn: &Turn,
        prepared: &Prepared,
    ) -> Result<Option<Summarise>, RunError> {
        let Some(share) = turn.limits().summarize_at else {
            return Ok(None);
        };
        if turn.style() == ToolStyle::OneRound || turn.is_unsummarised() {
            return Ok(None);
        }
        let Prepared {
            capacity, fitted, ..
        } = prepared;
        let usable = capacity.usable();
        let (full, over) = match fitted {
            Ok(fitted) => {
                let tokens = f64::from(capacity.calibration().tokens(fitted.counted));
                (
                    tokens >= share.get() * f64::from(usable),
                    fitted.is_shortened,
                )
            }
            Err(_) => (true, true),
        };
        let over = over || turn.was_too_long();
        let recalled = turn.turn_history();
        let is_left_out = recalled.left_out() >= LEFT_OUT_MIN;
        if !full && !over && !is_left_out {
            return Ok(None);
        }
        let log = self.log.lock().await;
        if !over && !log.conversation().is_time_to_summarize() {
            return Ok(None);
        }
        let keep = match (full, over) {
            (_, true) => 0,
            (true, false) => usable / kept_divisor(share),
            (false, false) => u32::MAX,
        };
        let count = |text: &str| self.inner.count(text);
        if recalled.left_out() == 0 {
            return Ok(Summarise::plan(recalled, 0, usable, keep, &count));
        }
        let whole = earlier_history(
            self.inner,
            self.key,
            log.conversation(),
            None,
            LEFT_OUT_TURNS_MAX,
        )
        .await?;
        let left_out = whole.messages.len().saturating_sub(recalled.messages.len());
        Ok(Summarise::plan(&whole, left_out, usable, keep, &count))
    }

    /// Summarises old turns, and records the summary or its failure. Returns the reason to stop the
    /// turn, if there is one. The time it takes does not count as the turn's.
    pub(super) async fn summarise(
        &self,
        turn: &mut Turn,
        number: u32,
        plan: &Summarise,
        Prepared {
            native, capacity, ..
        }: &Prepared,
    ) -> Result<Option<StopReason>, RunError> {
        let request = self.inner.summary_request(plan, None, capacity);
        // The request itself is counted as spent: a summary that leaves no budget for the answer
        // would be useless.
        let spent = [
            self.spent().await,
            self.inner.request_limit(native, Duration::ZERO).most,
        ]
        .into_iter()
        .sum();
        let who = (&self.key.user, self.lease.worker());
        let event = match self
            .inner
            .reserve_for_request(who, Some(spent), &request, self.inner.summary_time())
            .await
        {
            Err(error) => Event::SummaryFailed {
                turn: Some(self.turn),
                number,
                reason: TurnError::from(error.into_exceeded()?).to_string(),
                asked: false,
                usage: Usage::default(),
                cost: Some(Cost::default()),
                ms: 0,
            },
            Ok(reservation) => {
                let before = capacity.calibration().share_of(plan.counted);
                self.emitter
                    .emit(|| RunEvent::SummaryStarted {
                        messages: plan.messages,
                        tokens: before,
                    })
                    .await;
                boundary("before old turns are summarised");
                let began = tokio::time::Instant::now();
                let written = tokio::select! {
                    biased;
                    () = self.early_end.cancelled().cancelled() => None,
                    written = self.inner.write_summary(plan, request, self.emitter) => Some(written),
                };
                let ms = millis(began);
                self.early_end.extend(ms);
                let Some(written) = written else {
                    reservation.settle_dropped(&mut *self.log.lock().await, ms);
                    return Ok(Some(StopReason::Cancelled));
                };
                boundary("old turns are summarised, not recorded");
                reservation.settle_reply(&mut *self.log.lock().await, &written.reply, written.ms);
                written.event(Some(self.turn), number, plan, capacity)
            }
        };
        self.append(vec![event.clone()]).await?;
        turn.take_summary(
            std::iter::once(&event),
            usize::try_from(number).unwrap_or(usize::MAX),
        );
        self.emitter.emit(|| to_run_event(event)).await;
        Ok(None)
    }
}

fn to_run_event(event: Event) -> RunEvent {
    match event {
        Event::ConversationSummarized {
            summary,
            before,
            after,
            usage,
            ..
        } => RunEvent::SummaryFinished {
            messages: summary.summarized_at,
            before,
            after,
            usage,
        },
        Event::SummaryFailed { reason, .. } => RunEvent::SummaryFailed { reason },
        other => RunEvent::SummaryFailed {
            reason: other.kind().to_owned(),
        },
    }
}

/// Returns the divisor of the usable window that gives the part in which old turns stay
/// unsummarised: well below the share at which compaction starts, so that the next one is far away.
fn kept_divisor(share: WindowShare) -> u32 {
    match share.get() {
        share if share < 0.3 => 32,
        share if share < 0.6 => 8,
        _ => 4,
    }
}
