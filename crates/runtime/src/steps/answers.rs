//! Answers to the calls that wait, from a person or from whoever brings their results, and what
//! follows from them.

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{CallEnd, StopReason, Turn};
use adjutant_core::{
    Answer, Arguments, CallId, EditedCall, Event, Input, InputBody, PendingCall, PendingKind,
    Recorded, ResolvedBy, ToolChoice, ToolResult, Verdict, read_message, words,
};

use tokio::time::Instant;

use super::call::Call;
use super::{Answered, Steps};
use crate::RunError;
use crate::clock::millis;
use crate::edited::question_with;
use crate::event::RunEvent;

impl Steps<'_> {
    /// Takes what the person answered from the inbox, runs what may run, or parks the turn.
    pub(crate) async fn answers(
        &self,
        turn: &Turn,
        pending: &[PendingCall],
        content: String,
    ) -> Result<Answered, RunError> {
        loop {
            let waiting = self.unanswered(pending).await;
            if waiting.is_empty() {
                return self.run_answered(turn, pending).await;
            }
            // Time is up for what runs, not for what waits for a person.
            if self.early_end.reason() == Some(StopReason::Cancelled) {
                return Ok(Answered::Stopped(StopReason::Cancelled, Vec::new()));
            }
            let now = self.inner.now();
            let late: Vec<Event> = waiting
                .iter()
                .filter(|call| call.has_expired(now))
                .flat_map(|call| match &call.doubt {
                    None => vec![self.answered(call, None, None, None, ToolChoice::Auto)],
                    Some(_) => self.settled(call, ResolvedBy::Expiry, None, Verdict::Leave),
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
                    return Ok(Answered::Stopped(StopReason::Cancelled, Vec::new()));
                }
                Some(input) => {
                    let events = self.read_input(&waiting, input).await;
                    self.append(events).await?;
                }
                None => {
                    if self.park(&waiting, pending, &content).await? {
                        self.emitter
                            .emit(|| RunEvent::ConfirmationRequested { pending: waiting })
                            .await;
                        return Ok(Answered::Parked);
                    }
                    // An input came meanwhile.
                }
            }
        }
    }

    /// Writes that the turn waits, unless that is written, and gives the conversation back. Returns
    /// `false` if an input came meanwhile, which may be an answer. `asked`: what waited at first;
    /// of that, what was edited is another question.
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

    /// Takes the first input that can be an answer to what waits. A message that was accepted
    /// before the person could see the question stays in the inbox: it is the next message. So does
    /// any message while nothing but results is awaited: no words are the result of a call.
    async fn next_answer(&self, waiting: &[PendingCall]) -> Result<Option<Input>, RunError> {
        let inbox = self.log.lock().await.inbox().to_vec();
        for input in inbox {
            let can_answer = match &input.body {
                InputBody::Answers { .. } | InputBody::Cancel => true,
                InputBody::Message { .. } if waiting.iter().all(PendingCall::awaits_result) => {
                    false
                }
                InputBody::Message { .. } => self.was_shown(waiting, &input).await,
                InputBody::Call(_) => false,
            };
            if can_answer {
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

    /// Everything was answered: approved calls run, and those that are to be tried again.
    async fn run_answered(
        &self,
        turn: &Turn,
        pending: &[PendingCall],
    ) -> Result<Answered, RunError> {
        let set_aside = match self
            .set_aside_for_answered(&self.yet_to_run(pending).await)
            .await?
        {
            Ok(set_aside) => set_aside,
            Err(exceeded) => {
                return Ok(Answered::Stopped(StopReason::Budget(exceeded), Vec::new()));
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
        set_aside.settle_tools(&mut *self.log.lock().await, millis(began));
        match self.early_end.reason() {
            Some(reason) => Ok(Answered::Stopped(reason, ends)),
            None => {
                let choice = self
                    .look(|turn| turn.choice_after(pending).cloned())
                    .await
                    .flatten();
                Ok(Answered::Ends(ends, choice))
            }
        }
    }

    /// Those that the answers have run, and that nobody has begun since.
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

    /// `None`: the turn is being stopped, and the call has not begun.
    async fn run_unless_stopped(
        &self,
        turn: &Turn,
        shown: &PendingCall,
        arguments: &Arguments,
        seen: u32,
    ) -> Result<Option<CallEnd>, RunError> {
        if self.early_end.reason().is_some() && !self.is_under_way(&shown.call_id).await {
            return Ok(None);
        }
        let call = Call {
            id: &shown.call_id,
            tool: &shown.tool,
            arguments,
            is_followed: false,
        };
        match self.end_with_changed_tool(shown, call).await? {
            Some(end) => Ok(Some(end)),
            None => self.run(turn, call, seen, false).await.map(Some),
        }
    }

    /// What an input says while calls wait. Never empty: every input is taken.
    async fn read_input(&self, waiting: &[PendingCall], input: Input) -> Vec<Event> {
        let mut events = Vec::new();
        match &input.body {
            InputBody::Cancel | InputBody::Call(_) => {}
            InputBody::Answers { answers } => {
                for (at, answer) in answers.iter().enumerate() {
                    // Said twice at once is said once: the first counts.
                    let repeated = answers
                        .iter()
                        .take(at)
                        .any(|before| before.call_id == answer.call_id);
                    let shown = waiting.iter().find(|call| {
                        call.call_id == answer.call_id && call.digest == answer.digest
                    });
                    if let Some(call) = shown.filter(|_| !repeated) {
                        events.extend(self.take_answer(call, answer, &input).await);
                    }
                }
            }
            InputBody::Message { text, .. } => {
                for (call, verdict) in read_message(waiting, text) {
                    events.extend(self.take_answer(call, &call.answer(verdict), &input).await);
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

    /// Whether the person was asked about all of these before they said something: words that were
    /// on their way already are no answer to a question that came behind them. Places in the
    /// journal decide it, and times only for inputs whose place was not written down.
    async fn was_shown(&self, waiting: &[PendingCall], said: &Input) -> bool {
        let before = |recorded: &Recorded| match said.after {
            0 => recorded.at <= said.at,
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
        self.look(shown).await.unwrap_or_default()
    }

    /// What follows from the answer to one call.
    async fn take_answer(&self, call: &PendingCall, answer: &Answer, input: &Input) -> Vec<Event> {
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
            // A yes that cannot be carried out now is not kept for later: nobody would be there to
            // see it done.
            return refused(words::tool_away_waits(&call.preview));
        }
        let edited = match &answer.edited {
            None => None,
            Some(_) if answer.verdict != Verdict::Approved => {
                return refused(words::EDITED_WITHOUT_YES.to_owned());
            }
            Some(arguments) => match self.question_with(call, arguments.clone()).await {
                Err(reason) => return refused(words::edited_unusable(&reason)),
                // It is what was shown, in other words.
                Ok(question) if question.digest == call.digest => None,
                Ok(question) if answer.shown.as_ref() == Some(&question.digest) => {
                    Some(EditedCall {
                        arguments: question.arguments,
                        digest: question.digest,
                    })
                }
                // A yes to what nobody has seen is no yes.
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
                vec![self.answered(
                    call,
                    Some(input),
                    Some(answer.verdict),
                    edited,
                    ToolChoice::Auto,
                )]
            }
            (PendingKind::Result, None) => refused(words::RESULT_MISSING.to_owned()),
            (PendingKind::Result, Some(_)) if !self.tools.client().has_choice(&choice) => {
                refused(words::CHOICE_UNKNOWN.to_owned())
            }
            (PendingKind::Result, Some(result)) => {
                let told = Some(words::provided(&call.tool));
                let made = Call {
                    id: &call.call_id,
                    tool: &call.tool,
                    arguments: &call.arguments,
                    is_followed: false,
                };
                let ended = self.end_of(made, result, told.filter(|_| result.success), 0, 1);
                vec![
                    self.answered(call, Some(input), Some(answer.verdict), None, choice),
                    ended,
                ]
            }
            (PendingKind::Doubt, _) => {
                self.settled(call, ResolvedBy::Person, Some(input), answer.verdict)
            }
        }
    }

    /// The question that a call is with other arguments.
    async fn question_with(
        &self,
        call: &PendingCall,
        arguments: Arguments,
    ) -> Result<PendingCall, String> {
        let interrupted = self
            .look(CurrentTurn::interrupted)
            .await
            .unwrap_or_default();
        question_with(
            self.inner,
            &self.tool_context(&call.call_id),
            call,
            arguments,
            &interrupted,
        )
        .await
    }

    fn answered(
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
        }
    }

    /// A doubt is settled: with its end, unless the call is to be tried again.
    fn settled(
        &self,
        shown: &PendingCall,
        by: ResolvedBy,
        input: Option<&Input>,
        verdict: Verdict,
    ) -> Vec<Event> {
        let attempt = shown.doubt.as_ref().map_or(1, |doubt| doubt.attempt);
        let call = Call {
            id: &shown.call_id,
            tool: &shown.tool,
            arguments: &shown.arguments,
            is_followed: false,
        };
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

    /// What was said to a call that waited for a yes, and the arguments that were put in the place
    /// of its own.
    async fn verdict(&self, wanted: &CallId) -> Option<(Verdict, Option<Arguments>)> {
        let read = |turn: &CurrentTurn| {
            let (verdict, edited) = turn.answer(wanted)??;
            Some((verdict, edited.map(|edited| edited.arguments.clone())))
        };
        self.look(read).await.flatten()
    }

    /// The question that a call waits as: as it was asked, or as a person has edited it since.
    async fn as_edited(&self, shown: &PendingCall) -> PendingCall {
        let read = |turn: &CurrentTurn| as_edited(turn, shown).clone();
        self.look(read).await.unwrap_or_else(|| shown.clone())
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
        self.look(read).await.unwrap_or_default()
    }
}

fn as_edited<'a>(turn: &'a CurrentTurn, shown: &'a PendingCall) -> &'a PendingCall {
    match &shown.doubt {
        None => turn.edited(&shown.call_id).unwrap_or(shown),
        Some(_) => shown,
    }
}
