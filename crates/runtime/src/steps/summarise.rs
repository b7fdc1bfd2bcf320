//! Making room in a turn: the request is fitted, and old turns are put into few words before it is
//! full.

use std::time::Duration;

use adjutant_core::turn::{StopReason, Summarise, ToolStyle, Turn, fit};
use adjutant_core::{Cost, Event, GenerateRequest, TurnError, Usage, WindowShare};

use super::Steps;
use super::prepared::Prepared;
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;

impl Steps<'_> {
    /// Takes what is recorded of a summary before a model call. True if the request is another now.
    pub(super) async fn take_recorded_summary(&self, turn: &mut Turn, number: u32) -> bool {
        let log = self.log.lock().await;
        let call = usize::try_from(number).unwrap_or(usize::MAX);
        log.conversation()
            .current()
            .is_some_and(|current| turn.take_summary(current.summaries(), call))
    }

    /// Puts a request into the form of the model, and into its window.
    pub(super) async fn prepare(&self, turn: &Turn, native: GenerateRequest) -> Prepared {
        let weak = turn.style() == ToolStyle::OneRound;
        let mut references = Vec::new();
        let request = if weak {
            // Without the list the model can still add and talk; the gate resolves what it names.
            references = self
                .inner
                .gate
                .registry
                .references(&self.key.user)
                .await
                .unwrap_or_default();
            self.inner.weak_tools.encode(&native, &references)
        } else {
            native.clone()
        };
        let answer = request.config.max_tokens.map(|max| max.get());
        let room = self
            .inner
            .room(self.log.lock().await.conversation(), answer);
        // What a weak model is shown of the turn is one message.
        let own = if weak { 1 } else { turn.own_messages() };
        let room = room.for_turn(turn.summary_block(), own);
        let fitted = fit(request, &room, &|text| self.inner.count(text));
        Prepared {
            native,
            references,
            room,
            fitted,
        }
    }

    /// The old turns that are to be put into few words before this request is sent, if there are
    /// any.
    pub(super) async fn wants_summary(
        &self,
        turn: &Turn,
        prepared: &Prepared,
    ) -> Option<Summarise> {
        let share = turn.limits().summarize_at?;
        if turn.style() == ToolStyle::OneRound || turn.is_unsummarised() {
            return None;
        }
        let Prepared { room, fitted, .. } = prepared;
        let usable = room.usable();
        let (full, over) = match fitted {
            Ok(fitted) => {
                let tokens = f64::from(room.calibration().tokens(fitted.counted));
                (
                    tokens >= share.get() * f64::from(usable),
                    fitted.is_shortened,
                )
            }
            Err(_) => (true, true),
        };
        let over = over || turn.was_too_long();
        if !full && !over {
            return None;
        }
        if !over && !self.log.lock().await.conversation().is_time_to_summarize() {
            return None;
        }
        let keep = if over { 0 } else { usable / kept(share) };
        Summarise::plan(turn.recalled(), usable, keep, &|text| {
            self.inner.count(text)
        })
    }

    /// Puts old turns into few words, and records that, or that it could not be done. Gives why the
    /// turn has to stop, if it has to. What it takes is no part of the turn's time.
    pub(super) async fn summarise(
        &self,
        turn: &mut Turn,
        number: u32,
        plan: &Summarise,
        Prepared { native, room, .. }: &Prepared,
    ) -> Result<Option<StopReason>, RunError> {
        let request = self.inner.summary_request(plan, None, room);
        // A summary after which nothing is left for the answer would be worth nothing.
        let spent = [
            self.spent().await,
            self.inner.most_of(native, Duration::ZERO).0,
        ]
        .into_iter()
        .sum();
        let who = (&self.key.user, self.hold.worker());
        let event = match self
            .inner
            .set_aside_for_summary(who, Some(spent), &request)
            .await?
        {
            Err(exceeded) => Event::SummaryFailed {
                turn: Some(self.turn),
                number,
                reason: TurnError::from(exceeded).to_string(),
                asked: false,
                usage: Usage::default(),
                cost: Some(Cost::default()),
                ms: 0,
            },
            Ok(set_aside) => {
                let before = room.calibration().share_of(plan.counted);
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
                self.early_end.do_not_count(ms);
                let Some(written) = written else {
                    set_aside.settle_dropped(&mut *self.log.lock().await, ms);
                    return Ok(Some(StopReason::Cancelled));
                };
                boundary("old turns are summarised, not recorded");
                set_aside.settle_reply(&mut *self.log.lock().await, &written.reply, written.ms);
                written.event(Some(self.turn), number, (plan, room))
            }
        };
        self.append(vec![event.clone()]).await?;
        turn.take_summary(
            std::iter::once(&event),
            usize::try_from(number).unwrap_or(usize::MAX),
        );
        self.emitter.emit(|| shown(event)).await;
        Ok(None)
    }
}

fn shown(event: Event) -> RunEvent {
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

/// What of the usable window is left to old turns that stay as they are, as a part of it: well
/// below the share at which they are summarised, so that it is long until the next time.
fn kept(share: WindowShare) -> u32 {
    match share.get() {
        share if share < 0.3 => 32,
        share if share < 0.6 => 8,
        _ => 4,
    }
}
