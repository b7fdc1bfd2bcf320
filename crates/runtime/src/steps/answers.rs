//! Answers to pending calls: verdicts of a person, results of client-side tools, and expiry.

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{CallEnd, StopReason, Turn};
use adjutant_core::{
    Answer, Arguments, CallId, EditedCall, Event, Input, InputBody, PendingCall, PendingKind,
    Recorded, ResolvedBy, ToolChoice, ToolResult, Verdict, read_message, words,
};

use tokio::time::Instant;

use super::calls::Call;
use super::{AnswersOutcome, Steps};
use crate::RunError;
use crate::clock::millis;
use crate::edited_call::preview_edited_call;
use crate::event::RunEvent;

impl Steps<'_> {
    /// Reads answers from the inbox, runs approved calls, or parks the turn.
    pub(crate) async fn answers(
        &self,
        turn: &Turn,
        pending: &[PendingCall],
        content: String,
    ) -> Result<AnswersOutcome, RunError> {
        loop {
            let waiting = self.unanswered(pending).await;
            if waiting.is_empty() {
                return self.run_answered(turn, pending).await;
            }
            // The deadline limits running steps, not the time that a person takes to answer.
            if self.early_end.reason() == Some(StopReason::Cancelled)
                && !self.early_end.only_settles()
            {
                return Ok(AnswersOutcome::Stopped(StopReason::Cancelled, Vec::new()));
            }
            let now = self.inner.now();
            // Expiry before answers: an answer that arrives after it has no effect.
            let late: Vec<Event> = waiting
                .iter()
                .filter(|call| call.has_expired(now))
                .flat_map(|call| match &call.doubt {
                    None => vec![self.answer_event(call, None, None, None, ToolChoice::Auto)],
                    Some(_) => {
                        self.resolution_events(call, ResolvedBy::Expiry, None, Verdict::Leave)
                    }
                })
                .collect();
            if !late.is_empty() {
                self.append(late).await?;
                continue;
            }
            match self.next_answer(&waiting).await? {
                Some(Input {
                    id,
                    body: InputBody::Cancel,
                    ..
                }) => {
                    self.stop(id);
                    return Ok(AnswersOutcome::Stopped(StopReason::Cancelled, Vec::new()));
                }
                Some(input) => {
                    let events = self.events_of_input(&waiting, input).await;
                    self.append(events).await?;
                }
                None => {
                    if self.park(&waiting, pending, &content).await? {
                        self.emitter
                            .emit(|| RunEvent::ConfirmationRequested { pending: waiting })
                            .await;
                        return Ok(AnswersOutcome::Parked);
                    }
                    // Not parked: an input was accepted meanwhile, and is read next.
                }
            }
        }
    }

    /// Writes that the turn waits, unless that is written, and releases the lease. Returns `false`
    /// if an input was accepted meanwhile, which may be an answer. `asked`: the calls as they were
    /// first shown; an edited one is a new question.
    async fn park(
        &self,
        waiting: &[PendingCall],
        asked: &[PendingCall],
        content: &str,
    ) -> Result<bool, RunError> {
        let mut log = self.log.lock().await;
        let last = log
            .conversation()
            .current()
            .and_then(|turn| turn.parked().last());
        let is_parked = last.is_some_and(|recorded| {
            let Event::TurnParked {
                pending: parked, ..
            } = &*recorded.event
            else {
                return false;
            };
            waiting.iter().all(|call| parked.contains(call))
        });
        let is_edited = waiting.iter().any(|call| !asked.contains(call));
        let parked = (!is_parked).then(|| Event::TurnParked {
            turn: self.turn,
            pending: waiting.to_vec(),
            content: if is_edited {
                words::questions(waiting)
            } else {
                content.to_owned()
            },
        });
        log.finish(self.inner, self.key, parked).await
    }

    /// Returns the first input that answers a pending call. Every other message stays in the inbox
    /// as the next one: it was accepted before the question was shown, its sender was not asked, or
    /// only results of client-side tools are pending.
    async fn next_answer(&self, waiting: &[PendingCall]) -> Result<Option<Input>, RunError> {
        let inbox = self.log.lock().await.inbox().to_vec();
        for input in inbox {
            let is_message = matches!(input.body, InputBody::Message { .. });
            if input.is_answer_to(waiting) && (!is_message || self.was_shown(waiting, &input).await)
            {
                return Ok(Some(input));
            }
            if !self.log.lock().await.conversation().is_queued(&input.id) {
                self.append(vec![Event::InputQueued {
                    turn: self.turn,
                    input: input.id,
                }])
                .await?;
            }
        }
        Ok(None)
    }

    /// Runs approved calls and those to be retried, once every call is answered.
    async fn run_answered(
        &self,
        turn: &Turn,
        pending: &[PendingCall],
    ) -> Result<AnswersOutcome, RunError> {
        let to_run = self.yet_to_run(pending).await;
        let reservation = match self.reserve_for_answered(&to_run).await {
            Ok(reservation) => reservation,
            Err(error) => {
                let reason = StopReason::Budget(error.into_exceeded()?);
                return Ok(AnswersOutcome::Stopped(reason, Vec::new()));
            }
        };
        let began = Instant::now();
        let mut ends = Vec::new();
        for shown in pending {
            let end = match (&shown.doubt, self.verdict(&shown.call_id).await) {
                (None, Some((Verdict::Approved, edited))) => {
                    let shown = &self.as_edited(shown).await;
                    let arguments = edited.unwrap_or_else(|| shown.arguments.clone());
                    self.run_unless_stopped(turn, shown, &arguments, 0).await?
                }
                (None, Some((Verdict::Provided, _))) => self.recorded_end(&shown.call_id).await,
                (None, None) if shown.awaits_result() => Some(CallEnd::NoResult {
                    arguments: shown.arguments.clone(),
                }),
                (None, Some(_)) => Some(CallEnd::Denied {
                    arguments: shown.arguments.clone(),
                }),
                (None, None) => Some(CallEnd::Expired {
                    arguments: shown.arguments.clone(),
                }),
                (Some(doubt), _) => {
                    self.run_unless_stopped(turn, shown, &shown.arguments, doubt.attempt)
                        .await?
                }
            };
            ends.extend(end.map(|end| (shown.call_id.clone(), end)));
        }
        reservation.settle_tools(&mut *self.log.lock().await, millis(began));
        match self.early_end.reason() {
            Some(reason) => Ok(AnswersOutcome::Stopped(reason, ends)),
            None => {
                let choice = self.find(|turn| turn.choice_after(pending).cloned()).await;
                Ok(AnswersOutcome::Ends(ends, choice))
            }
        }
    }

    /// Returns the calls that the answers approve and that have not been started since.
    async fn yet_to_run<'p>(&self, pending: &'p [PendingCall]) -> Vec<&'p PendingCall> {
        let mut yet = Vec::new();
        for shown in pending {
            let runs = match &shown.doubt {
                None => matches!(
                    self.verdict(&shown.call_id).await,
                    Some((Verdict::Approved, _))
                ),
                Some(doubt) => self.is_to_be_repeated(&shown.call_id, doubt.attempt).await,
            };
            if runs && !self.has_begun_since(shown).await {
                yet.push(shown);
            }
        }
        yet
    }

    /// Runs an answered call. `None`: the turn is being stopped, and the call has not started.
    async fn run_unless_stopped(
        &self,
        turn: &Turn,
        shown: &PendingCall,
        arguments: &Arguments,
        seen: u32,
    ) -> Result<Option<CallEnd>, RunError> {
        if self.early_end.reason().is_some()
            && !self.early_end.only_settles()
            && !self.is_under_way(&shown.call_id).await
        {
            return Ok(None);
        }
        let call = Call::of_pending(shown, arguments);
        match self.end_with_changed_tool(shown, call).await? {
            Some(end) => Ok(Some(end)),
            None => self.run(turn, call, seen, false).await.map(Some),
        }
    }

    /// Returns the events of an input that arrives while calls wait. Never empty: every input is
    /// taken by an event.
    async fn events_of_input(&self, waiting: &[PendingCall], input: Input) -> Vec<Event> {
        let mut events = Vec::new();
        match &input.body {
            InputBody::Cancel | InputBody::Call(_) => {}
            InputBody::Answers { answers } => {
                for (at, answer) in answers.iter().enumerate() {
                    // Of two answers to one call in the same input, the first counts.
                    let repeated = answers
                        .iter()
                        .take(at)
                        .any(|before| before.call_id == answer.call_id);
                    let shown = waiting.iter().find(|call| {
                        call.call_id == answer.call_id && call.digest == answer.digest
                    });
                    if let Some(call) = shown.filter(|_| !repeated) {
                        events.extend(self.events_of_answer(call, answer, &input).await);
                    }
                }
            }
            InputBody::Message { text, .. } => {
                for (call, verdict) in read_message(waiting, text) {
                    events.extend(
                        self.events_of_answer(call, &call.answer(verdict), &input)
                            .await,
                    );
                }
                if events.is_empty() {
                    let (input, text) = (input.id.clone(), text.clone());
                    events.push(Event::AnswerUnclear {
                        turn: self.turn,
                        input,
                        text,
                    });
                }
            }
        }
        if events.is_empty() {
            let reason = "answers nothing that waits as it was shown".to_owned();
            events.push(Event::InputIgnored {
                input: input.id,
                reason,
            });
        }
        events
    }

    /// Returns true if all of these questions were shown before an input was accepted. A message
    /// that was already on its way is not the answer to a later question. Sequence numbers decide;
    /// times are used only for inputs that were recorded without one.
    async fn was_shown(&self, waiting: &[PendingCall], input: &Input) -> bool {
        let before = |recorded: &Recorded| match input.after {
            0 => recorded.at <= input.at,
            after => recorded.seq <= after,
        };
        let shown = |turn: &CurrentTurn| {
            waiting.iter().all(|call| {
                turn.parked()
                    .filter(|recorded| before(recorded))
                    .any(|recorded| match &*recorded.event {
                        Event::TurnParked { pending, .. } => {
                            pending.iter().any(|shown| shown.digest == call.digest)
                        }
                        _ => false,
                    })
            })
        };
        self.with_turn(shown).await.unwrap_or_default()
    }

    /// Returns the events of the answer to one call.
    async fn events_of_answer(
        &self,
        call: &PendingCall,
        answer: &Answer,
        input: &Input,
    ) -> Vec<Event> {
        let refused = |reason: String| {
            let (call, input) = (call.call_id.clone(), input.id.clone());
            vec![Event::AnswerRefused {
                turn: self.turn,
                call,
                input,
                reason,
            }]
        };
        if !call.takes(answer.verdict) {
            return refused(words::wrong_verdict(call));
        }
        let runs = matches!(answer.verdict, Verdict::Approved | Verdict::Retry);
        if runs && self.tools.gate().registry.get(&call.tool).is_none() {
            // An approval that cannot be carried out now is not kept for later, when the person
            // does not expect the call any more.
            return refused(words::tool_away_waits(&call.preview));
        }
        if runs && let Some(reason) = self.refusal_after_loss(call).await {
            return refused(reason);
        }
        let edited = match &answer.edited {
            None if runs => match self.shown_otherwise(call).await {
                None => None,
                // The ids stand for something else than when the person was asked.
                Some(pending) => {
                    return vec![Event::CallEdited {
                        turn: self.turn,
                        input: input.id.clone(),
                        pending,
                    }];
                }
            },
            None => None,
            Some(_) if answer.verdict != Verdict::Approved => {
                return refused(words::EDITED_WITHOUT_YES.to_owned());
            }
            Some(arguments) => match self.preview_edited_call(call, arguments.clone()).await {
                Err(reason) => return refused(words::edited_unusable(&reason)),
                // The edited arguments are equivalent to those that were shown.
                Ok(question) if question.digest == call.digest => None,
                Ok(question) if answer.shown.as_ref() == Some(&question.digest) => {
                    Some(EditedCall {
                        arguments: question.arguments,
                        digest: question.digest,
                    })
                }
                // An approval of arguments that were never shown only makes them the new question.
                Ok(pending) => {
                    return vec![Event::CallEdited {
                        turn: self.turn,
                        input: input.id.clone(),
                        pending,
                    }];
                }
            },
        };
        let choice = answer.choice.clone();
        match (call.kind(), &answer.result) {
            (PendingKind::Confirmation, _) => {
                let answered = self.answer_event(
                    call,
                    Some(input),
                    Some(answer.verdict),
                    edited,
                    ToolChoice::Auto,
                );
                let is_approved = answer.verdict == Verdict::Approved;
                if answer.always && is_approved && call.always {
                    self.allow_always(call).await;
                }
                vec![
                    match answer.for_conversation && is_approved && call.for_conversation {
                        true => for_conversation(answered),
                        false => answered,
                    },
                ]
            }
            (PendingKind::Result, None) => refused(words::RESULT_MISSING.to_owned()),
            (PendingKind::Result, Some(_)) if !self.tools.client().has_choice(&choice) => {
                refused(words::CHOICE_UNKNOWN.to_owned())
            }
            (PendingKind::Result, Some(result)) => {
                let summary = Some(words::provided(&call.tool));
                let made = Call::of_pending(call, &call.arguments);
                let result = self.with_corrections(&call.call_id, result.clone()).await;
                // Whatever its program reads is unknown here.
                let result = result.marked(true);
                let ended = self.end_of(made, &result, summary.filter(|_| result.success), 0, 1);
                vec![
                    self.answer_event(call, Some(input), Some(answer.verdict), None, choice),
                    ended,
                ]
            }
            (PendingKind::Doubt, _) => {
                self.resolution_events(call, ResolvedBy::Person, Some(input), answer.verdict)
            }
        }
    }

    /// Returns the question about a pending call as it is now, if its description is another than
    /// the one that was shown. A call that cannot be described any more fails when it runs.
    async fn shown_otherwise(&self, call: &PendingCall) -> Option<PendingCall> {
        if call.kind() != PendingKind::Confirmation {
            return None;
        }
        let question = self.preview_edited_call(call, call.arguments.clone()).await;
        question
            .ok()
            .filter(|question| question.digest != call.digest)
    }

    /// Returns the question about a pending call with edited arguments.
    async fn preview_edited_call(
        &self,
        call: &PendingCall,
        arguments: Arguments,
    ) -> Result<PendingCall, String> {
        let interrupted = self
            .with_turn(CurrentTurn::interrupted)
            .await
            .unwrap_or_default();
        preview_edited_call(
            self.inner,
            &self.tool_context(&call.call_id),
            call,
            arguments,
            &interrupted,
        )
        .await
    }

    fn answer_event(
        &self,
        call: &PendingCall,
        input: Option<&Input>,
        verdict: Option<Verdict>,
        edited: Option<EditedCall>,
        choice: ToolChoice,
    ) -> Event {
        let (call, input) = (call.call_id.clone(), input.map(|input| input.id.clone()));
        Event::CallAnswered {
            turn: self.turn,
            call,
            input,
            verdict,
            edited,
            choice,
            for_conversation: false,
        }
    }

    /// Returns the events that resolve a doubt: with the call's end, unless it is to be retried.
    fn resolution_events(
        &self,
        shown: &PendingCall,
        by: ResolvedBy,
        input: Option<&Input>,
        verdict: Verdict,
    ) -> Vec<Event> {
        let attempt = shown.doubt.as_ref().map_or(1, |doubt| doubt.attempt);
        let call = Call::of_pending(shown, &shown.arguments);
        let mut events =
            vec![self.resolved(call.id, attempt, by, input.map(|input| &input.id), verdict)];
        match verdict {
            Verdict::Retry => {}
            Verdict::Done => {
                let summary = Some(words::CONFIRMED_DONE.to_owned());
                events.push(self.end_of(call, &ToolResult::taken_as_done(), summary, 0, attempt));
            }
            Verdict::Leave | Verdict::Approved | Verdict::Denied | Verdict::Provided => {
                events.push(self.end_of(call, &ToolResult::left_open(), None, 0, attempt));
            }
        }
        events
    }

    /// Returns the verdict on a call that waited for a confirmation, and its edited arguments if
    /// there are any.
    async fn verdict(&self, wanted: &CallId) -> Option<(Verdict, Option<Arguments>)> {
        let read = |turn: &CurrentTurn| {
            let (verdict, edited) = turn.answer(wanted)??;
            Some((verdict, edited.map(|edited| edited.arguments.clone())))
        };
        self.find(read).await
    }

    /// Returns the current question of a pending call: as it was first asked, or as edited since.
    async fn as_edited(&self, shown: &PendingCall) -> PendingCall {
        let read = |turn: &CurrentTurn| as_edited(turn, shown).clone();
        self.with_turn(read).await.unwrap_or_else(|| shown.clone())
    }

    async fn unanswered(&self, pending: &[PendingCall]) -> Vec<PendingCall> {
        let read = |turn: &CurrentTurn| {
            let is_answered = |shown: &&PendingCall| match &shown.doubt {
                None => turn.answer(&shown.call_id).is_some(),
                Some(doubt) => turn.is_resolved(&shown.call_id, doubt.attempt),
            };
            let waiting = pending.iter().filter(|shown| !is_answered(shown));
            waiting
                .map(|shown| as_edited(turn, shown).clone())
                .collect()
        };
        self.with_turn(read).await.unwrap_or_default()
    }
}

fn as_edited<'a>(turn: &'a CurrentTurn, shown: &'a PendingCall) -> &'a PendingCall {
    match &shown.doubt {
        None => turn.edited(&shown.call_id).unwrap_or(shown),
        Some(_) => shown,
    }
}

/// Makes an approval count for the rest of the conversation.
fn for_conversation(mut answered: Event) -> Event {
    if let Event::CallAnswered {
        for_conversation, ..
    } = &mut answered
    {
        *for_conversation = true;
    }
    answered
}
