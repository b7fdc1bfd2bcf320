//! The driver: takes what arrived for a conversation and runs its turn until it ends or waits for a human.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::port::{Claim, Journal};
use adjutant_core::turn::{Action, ToolStyle, Turn, TurnSetup, cut, given_up};
use adjutant_core::{
    CancellationToken, ConversationKey, Event, GenerateRequest, GenerationConfig, InputBody, InputId,
    MaxTokens, Message, ModelId, OutcomeCategory, OutputSchema, Recalled, TurnError, TurnId, TurnLimits,
    conversation, recalled, words,
};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use uuid::Uuid;

use crate::RunError;
use crate::agent::Inner;
use crate::event::{Emitter, RunEvent};
use crate::faults::lease;
use crate::steps::{Answered, Log, Replied, Step, Steps};

/// The instruction of turns that are words and nothing else.
const WORDS_ONLY: &str = include_str!("../../../prompts/words_only.md");
/// A claim is good for this long without a sign of life. Source: `durability.md` 3.3.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// A running turn gives so many signs of life in that time.
const HEARTBEATS: u32 = 3;
/// A turn whose worker was lost so often, without a step in between, is not tried again.
const WORKERS_LOST_MAX: u32 = 3;
/// How often we look whether another process has let go of the conversation.
const LEASE_POLL: Duration = Duration::from_millis(200);

/// How far a turn came.
enum Advance {
    /// It ended.
    Finished,
    /// It waits for a human.
    Parked,
}

/// Runs a conversation until nothing is left to do or it waits for a human. Whoever calls this again after a crash
/// goes on where the journal ends.
pub(crate) async fn advance(
    inner: &Inner,
    key: &ConversationKey,
    history: &[Message],
    emitter: &Emitter,
    cancelled: &CancellationToken,
) -> Result<(), RunError> {
    holding(inner, key, async |claim| {
        // Whoever had it was lost; what was open then is suspect until it gets further.
        let mut taken_over = claim == Claim::TakenOver;
        loop {
            let loaded = inner.journal.load(key).await?;
            let mut log = Log { events: loaded.events, inbox: loaded.inbox };
            if log.events.is_empty() && !history.is_empty() {
                log.append(inner, key, vec![Event::HistorySet { messages: history.to_vec() }]).await?;
            }
            let turn = match conversation::open_turn(&log.events) {
                Some(turn) if std::mem::take(&mut taken_over) => {
                    match take_up(inner, key, turn, &mut log).await? {
                        TakenUp::GivenUp => continue,
                        TakenUp::GoesOn => turn,
                        TakenUp::Suspect => {
                            // One at a time: if this process is lost too, it is known which of them did it.
                            let _alone = inner.suspects.lock().await;
                            match drive(inner, key, turn, log, (emitter, cancelled)).await? {
                                Advance::Finished => continue,
                                Advance::Parked => return Ok(()),
                            }
                        }
                    }
                }
                Some(turn) => turn,
                None => match start(inner, key, &mut log).await? {
                    Some(turn) => turn,
                    None if log.inbox.is_empty() => return Ok(()),
                    None => continue,
                },
            };
            match drive(inner, key, turn, log, (emitter, cancelled)).await? {
                Advance::Finished => {}
                Advance::Parked => return Ok(()),
            }
        }
    })
    .await
}

/// How a turn goes on whose worker was lost.
enum TakenUp {
    /// As usual.
    GoesOn,
    /// Its workers were lost before, and it got no further since.
    Suspect,
    /// Not at all: it was ended.
    GivenUp,
}

/// Counts in the journal that a turn is taken up, before anything of it is done again. One that was no further each time its
/// worker was lost is ended instead.
async fn take_up(
    inner: &Inner,
    key: &ConversationKey,
    turn: TurnId,
    log: &mut Log,
) -> Result<TakenUp, RunError> {
    if !conversation::pending(&log.events).is_empty() {
        // It waits for a person: nothing of it ran.
        return Ok(TakenUp::GoesOn);
    }
    let before = conversation::times_taken_up(&log.events);
    let lost = before + 1;
    if lost >= WORKERS_LOST_MAX {
        let error = Some(TurnError::Poisoned { times: lost });
        let end = given_up(&log.events, turn, OutcomeCategory::Poisoned, words::POISONED, error);
        log.append(inner, key, vec![Event::TurnFinished { turn, input: None, end }]).await?;
        return Ok(TakenUp::GivenUp);
    }
    let worker = inner.worker.clone();
    log.append(inner, key, vec![Event::TurnTakenUp { turn, worker }]).await?;
    Ok(if before == 0 { TakenUp::GoesOn } else { TakenUp::Suspect })
}

/// Does something with a conversation that nobody else works on meanwhile. The work is told whether the conversation was taken
/// from a worker that was lost.
///
/// What runs in this process is waited for to its end: each turn in front has a deadline of its own, and one of them is the
/// caller's. What runs in another process is waited for as long as one turn may take.
///
/// # Errors
/// [`RunError::Busy`] if another process still works on it by then, the store's errors, and those of the work.
pub(crate) async fn holding<T, F: Future<Output = Result<T, RunError>>>(
    inner: &Inner,
    key: &ConversationKey,
    work: impl FnOnce(Claim) -> F,
) -> Result<T, RunError> {
    let alone_in_this_process = inner.lock_of(key).lock_owned().await;
    let (claimed, held) = claim(inner, key, alone_in_this_process).await?;
    let beat = async {
        loop {
            tokio::time::sleep(lease(LEASE) / HEARTBEATS).await;
            // A claim that cannot be renewed is a cost, not a danger: the journal refuses a second writer.
            let _ = inner.journal.claim(key, &inner.worker, lease(LEASE)).await;
        }
    };
    let result = tokio::select! {
        result = work(claimed) => result,
        never = beat => never,
    };
    held.release().await;
    result
}

/// The claim on a conversation, and the lock that keeps others in this process from it.
///
/// Dropped, it is released in the background: whoever is cancelled half-way does not keep others waiting until the claim
/// runs out.
struct Held {
    journal: Arc<dyn Journal>,
    key: ConversationKey,
    worker: String,
    alone_in_this_process: Option<OwnedMutexGuard<()>>,
}

impl Held {
    async fn release(mut self) {
        Self::give_back(&*self.journal, &self.key, &self.worker, self.alone_in_this_process.take()).await;
    }

    /// The lock goes last: the next one in this process claims under the same name, and its claim must not be released.
    async fn give_back(
        journal: &dyn Journal,
        key: &ConversationKey,
        worker: &str,
        alone_in_this_process: Option<OwnedMutexGuard<()>>,
    ) {
        // Best effort: a claim that is not released runs out by itself.
        let _ = journal.release(key, worker).await;
        drop(alone_in_this_process);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(alone) = self.alone_in_this_process.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (journal, key, worker) = (self.journal.clone(), self.key.clone(), self.worker.clone());
            runtime.spawn(async move { Self::give_back(&*journal, &key, &worker, Some(alone)).await });
        }
    }
}

/// Takes the first input of the inbox. `None`: it started no turn.
async fn start(inner: &Inner, key: &ConversationKey, log: &mut Log) -> Result<Option<TurnId>, RunError> {
    let Some(input) = log.inbox.first().cloned() else { return Ok(None) };
    let (text, output_schema, limits, call) = match input.body {
        InputBody::Message { text, output_schema, limits } => {
            let own = || inner.output.as_ref().map(|schema| schema.as_json().clone());
            (text, output_schema.or_else(own), limits, None)
        }
        InputBody::Call(call) => (call.line(), None, None, Some(call)),
        InputBody::Answers { .. } | InputBody::Cancel => {
            let reason = "nothing waits for it".to_owned();
            log.append(inner, key, vec![Event::InputIgnored { input: input.id, reason }]).await?;
            return Ok(None);
        }
    };
    let turn = TurnId(Uuid::now_v7());
    let message_chars = text.chars().count();
    let limits = limits.map_or_else(|| inner.limits.clone(), |limits| *limits);
    let message = match &call {
        Some(_) => text,
        None => limits.message_chars_max.and_then(|max| cut(&text, max)).unwrap_or(text),
    };
    let started = Event::TurnStarted {
        turn,
        agent: Some(inner.name.clone()),
        version: inner.version.clone(),
        metadata: serde_json::Map::new(),
        told: Vec::new(),
        input: input.id,
        accepted_at: Some(input.at),
        request_id: input.request_id,
        message,
        message_chars,
        model: if call.is_some() { ModelId::none() } else { inner.model.id().clone() },
        limits,
        output_schema,
        call,
    };
    crate::faults::boundary("input accepted, turn not started");
    log.append(inner, key, vec![started]).await?;
    Ok(Some(turn))
}

/// All awaits of a turn. Each runs inside a journaled step; a recorded step is not done again.
async fn drive(
    inner: &Inner,
    key: &ConversationKey,
    id: TurnId,
    log: Log,
    (emitter, cancelled): (&Emitter, &CancellationToken),
) -> Result<Advance, RunError> {
    // A turn that asks no model needs no instruction, and reads nothing to make one.
    let asks_model = !makes_requested_call(&log, id);
    let (instruction, notices) =
        if asks_model { inner.instruction_for(&key.user).await } else { Default::default() };
    let (mut turn, limits, taken) = rebuild(inner, id, &log, instruction)?;
    if asks_model && !limits.words_only {
        notices.into_iter().for_each(|notice| turn.add_notice(notice));
    }
    let runs = conversation::pending(&log.events).is_empty();
    let stop = log.inbox.iter().find(|input| runs && input.body == InputBody::Cancel);
    let stop = stop.map(|input| input.id.clone());
    let steps = Steps::new(inner, key, id, log, (emitter, cancelled), limits.turn_deadline);
    // While it waits, what came before the cancellation is read first.
    if let Some(input) = stop {
        steps.stop(input);
    }
    emitter.emit(RunEvent::TurnStarted { turn: id, input: taken, model: inner.model.id().clone() }).await;
    tokio::select! {
        result = follow(&steps, turn) => result,
        never = steps.watch() => match never {},
    }
}

/// Does what the turn asks for until it ends or waits.
async fn follow(steps: &Steps<'_>, mut turn: Turn) -> Result<Advance, RunError> {
    let mut action = turn.start()?;
    loop {
        action = match action {
            Action::CallModel(request) => match steps.generate(&mut turn, request).await? {
                Step::Done(Replied::Sent(reply)) => turn.on_model_result(reply)?,
                Step::Done(Replied::TooLong(error)) => turn.on_unsendable(error)?,
                Step::Stopped(reason, ends) => turn.stop(reason, ends),
            },
            Action::CallTools(calls) => match steps.call_tools(&turn, calls).await? {
                Step::Done(ends) => turn.on_call_ends(ends)?,
                Step::Stopped(reason, ends) => turn.stop(reason, ends),
            },
            Action::AskUser { pending, content } => match steps.answers(&turn, &pending, content).await? {
                Answered::Ends(ends) => turn.on_call_ends(ends)?,
                Answered::Stopped(reason, ends) => turn.stop(reason, ends),
                Answered::Parked => return Ok(Advance::Parked),
            },
            Action::Finish(end) => {
                steps.finish(*end).await?;
                return Ok(Advance::Finished);
            }
        }
    }
}

/// Whether the turn makes a call that a person asked for, instead of answering a message.
fn makes_requested_call(log: &Log, id: TurnId) -> bool {
    log.events.iter().any(
        |recorded| matches!(&recorded.event, Event::TurnStarted { turn, call: Some(_), .. } if *turn == id),
    )
}

/// The turn as it was when it started: from its first event, the history before it, and this agent.
fn rebuild(
    inner: &Inner,
    id: TurnId,
    log: &Log,
    instruction: String,
) -> Result<(Turn, TurnLimits, InputId), RunError> {
    let missing = || RunError::CannotContinue(format!("turn {id} has no beginning"));
    let at = log
        .events
        .iter()
        .position(|recorded| matches!(&recorded.event, Event::TurnStarted { turn, .. } if *turn == id))
        .ok_or_else(missing)?;
    let (before, rest) = log.events.split_at(at);
    let Some(Event::TurnStarted {
        input, message, message_chars, model, limits, output_schema, call, ..
    }) = rest.first().map(|recorded| &recorded.event)
    else {
        return Err(missing());
    };
    let turn = Turn::new(TurnSetup {
        turn: id,
        model: model.clone(),
        recalled: recalled(before, limits.history_messages_max),
        call: call.clone(),
        output: output_schema.as_ref().map(|schema| compiled(inner, schema)).transpose()?,
        ..setup(inner, limits, instruction, (message.clone(), *message_chars))
    })?;
    Ok((turn, limits.clone(), input.clone()))
}

/// A turn of this agent, as the first of a conversation.
fn setup(
    inner: &Inner,
    limits: &TurnLimits,
    instruction: String,
    (message, message_chars): (String, usize),
) -> TurnSetup {
    let capabilities = inner.model.capabilities();
    let (instruction, tools) = match limits.words_only {
        true => (WORDS_ONLY.trim_end().to_owned(), Vec::new()),
        false => (instruction, inner.gate.registry.definitions(None)),
    };
    let one_round = capabilities.weak_tools && !tools.is_empty();
    TurnSetup {
        turn: TurnId(Uuid::nil()),
        model: inner.model.id().clone(),
        instruction,
        recalled: Recalled::default(),
        call: None,
        message,
        message_chars,
        tools,
        control_functions: inner.control_functions,
        config: config_within(inner, limits),
        limits: limits.clone(),
        style: if one_round { ToolStyle::OneRound } else { ToolStyle::Native },
        output: inner.output.clone(),
        schema_support: capabilities.response_schema,
    }
}

/// A request that begins like those of all turns of this agent, made as a turn makes it. Only its last message differs.
/// Context that is made anew every turn is not in it.
pub(crate) fn opening(inner: &Inner) -> Result<GenerateRequest, RunError> {
    let message = "…".to_owned();
    let turn = Turn::new(setup(inner, &inner.limits, inner.instruction.clone(), (message, 1)))?;
    let request = turn.request();
    Ok(match turn.style() {
        // What the person has is in the last message too.
        ToolStyle::OneRound => inner.weak_tools.encode(&request, &[]),
        ToolStyle::Native => request,
    })
}

/// How answers are generated, with no more visible output than the turn may have.
fn config_within(inner: &Inner, limits: &TurnLimits) -> GenerationConfig {
    let mut config = inner.config.clone();
    if let Some(max) = limits.output_tokens_max {
        let own = config.max_tokens.map_or(OUTPUT_TOKENS_MAX, MaxTokens::get);
        if max.get() < own {
            config.max_tokens = Some(max);
        }
    }
    config
}

/// The recorded schema of the answer; usually it is the agent's own, which is compiled already.
fn compiled(inner: &Inner, schema: &Value) -> Result<OutputSchema, RunError> {
    match &inner.output {
        Some(own) if own.as_json() == schema => Ok(own.clone()),
        Some(_) | None => OutputSchema::new(schema.clone())
            .map_err(|error| RunError::CannotContinue(format!("its output schema: {error}"))),
    }
}

/// Waits for the conversation to be ours. Another worker's turn is waited for as long as a turn may take; without a deadline, as
/// long as its claim is renewed.
async fn claim(
    inner: &Inner,
    key: &ConversationKey,
    alone_in_this_process: OwnedMutexGuard<()>,
) -> Result<(Claim, Held), RunError> {
    let until = inner.limits.turn_deadline.map(|time| Instant::now() + time);
    // Made before the first claim: whoever is cancelled in the middle of one may have it.
    let held = Held {
        journal: inner.journal.clone(),
        key: key.clone(),
        worker: inner.worker.clone(),
        alone_in_this_process: Some(alone_in_this_process),
    };
    loop {
        let claim = inner.journal.claim(key, &inner.worker, lease(LEASE)).await?;
        if claim.is_held() {
            return Ok((claim, held));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(RunError::Busy);
        }
        tokio::time::sleep(LEASE_POLL).await;
    }
}
