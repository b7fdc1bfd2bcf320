//! The driver: takes what arrived for a conversation and runs its turn until it ends or waits for a
//! human.

use adjutant_core::conversation::Conversation;
use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::turn::{Action, ToolStyle, Turn, TurnSetup, cut, given_up};
use adjutant_core::{
    CancellationToken, ConversationKey, Event, GenerateRequest, GenerationConfig, Input, InputBody,
    InputId, MaxTokens, ModelId, OutcomeCategory, OutputSchema, Past, PendingCall, Recalled,
    ToolChoice, TraceContext, TurnError, TurnId, TurnLimits, conversation, words,
};
use serde_json::Value;
use tracing::{Instrument as _, Span, error_span};
use uuid::Uuid;

use crate::event::RunEvent;
use crate::heart::Hold;
use crate::held::{Arrival, LOOK, Opened, Waits, open};
use crate::inner::Inner;
use crate::log::Log;
use crate::steps::{Answered, Replied, Step, Steps};
use crate::stream::Emitter;
use crate::turn_tools::TurnTools;
use crate::{RunError, warning};

/// The instruction of turns that are words and nothing else.
const WORDS_ONLY: &str = include_str!("../../../prompts/words_only.md");
/// A turn whose worker was lost so often, without a step in between, is not tried again.
const WORKERS_LOST_MAX: u32 = 3;

/// Whoever has a conversation go on.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) emitter: &'a Emitter,
    pub(crate) cancelled: &'a CancellationToken,
    /// The input they wait for: only its turn is stopped by `cancelled`, and not those of others
    /// which run on the way. `None`: every turn is.
    pub(crate) input: Option<&'a InputId>,
    /// The trace of that input.
    pub(crate) trace: Option<&'a TraceContext>,
}

/// Runs a conversation until nothing is left to do or it waits for a human. Whoever calls this
/// again after a crash goes on where the journal ends. `arrival`: what is accepted first. Returns
/// what `read` makes of the state it ended in; `None`: there is no such conversation.
pub(crate) async fn advance<T>(
    inner: &Inner,
    key: &ConversationKey,
    arrival: Option<Arrival<'_>>,
    (emitter, cancelled): (&Emitter, &CancellationToken),
    read: impl FnOnce(&Conversation) -> T,
) -> Result<Option<T>, RunError> {
    let waits = arrival.map(|arrival| Waits {
        cancelled,
        input: &arrival.input.id,
        emitter: Some(emitter),
        look: LOOK,
    });
    let Some(opened) = open(inner, key, arrival, waits).await? else {
        return Ok(None);
    };
    let first = arrival.and_then(|arrival| arrival.first);
    let trace = arrival.and_then(|arrival| arrival.trace);
    let caller = Caller {
        emitter,
        cancelled,
        input: arrival.map(|arrival| &arrival.input.id),
        trace,
    };
    go_on(inner, key, opened, first, caller, read)
        .await
        .map(Some)
}

/// Runs a conversation that is held until nothing is left to do or it waits for a human. `first`:
/// what is recorded if nothing has happened in it yet. Returns what `read` makes of the state it
/// ended in.
pub(crate) async fn go_on<T>(
    inner: &Inner,
    key: &ConversationKey,
    Opened {
        held,
        log,
        taken_over,
    }: Opened,
    first: Option<&Event>,
    caller: Caller<'_>,
    read: impl FnOnce(&Conversation) -> T,
) -> Result<T, RunError> {
    // On the heap, once a turn: everything a turn awaits is in it.
    let hold = held.hold();
    let work = Box::pin(async {
        let log = settle(inner, key, log, (first, taken_over), (caller, &*hold)).await?;
        Ok((read(log.conversation()), log))
    });
    let done = held.run(work).await;
    if let Some(tell) = inner.on_rest.get() {
        tell(key);
    }
    done
}

/// Does what there is to do. `first`: what is recorded if nothing has happened in the conversation
/// yet. `taken_over`: whoever had it was lost; what was open then is suspect until it gets further.
async fn settle(
    inner: &Inner,
    key: &ConversationKey,
    mut log: Log,
    (first, mut taken_over): (Option<&Event>, bool),
    around: (Caller<'_>, &Hold),
) -> Result<Log, RunError> {
    if log.conversation().seq() == 0
        && let Some(first) = first
    {
        log.append(inner, key, vec![first.clone()]).await?;
    }
    loop {
        let mut alone = None;
        let turn = match log.conversation().open_turn() {
            Some(turn) if std::mem::take(&mut taken_over) => {
                match take_up(inner, key, turn, &mut log).await? {
                    TakenUp::GivenUp => {
                        around.0.emitter.emit_turn(log.conversation()).await;
                        continue;
                    }
                    TakenUp::GoesOn => turn,
                    TakenUp::Suspect => {
                        // One at a time: if this process is lost too, it is known which of them did
                        // it.
                        alone = Some(inner.suspects.lock().await);
                        turn
                    }
                }
            }
            Some(turn) => turn,
            None => match start(inner, key, &mut log).await? {
                Some(turn) => turn,
                None if !log.inbox().is_empty() => continue,
                None if log.finish(inner, key, None).await? => return Ok(log),
                None => continue,
            },
        };
        let span = turn_span(key, turn, log.conversation());
        log = drive(inner, key, turn, log, around)
            .instrument(span)
            .await?;
        around.0.emitter.emit_turn(log.conversation()).await;
        drop(alone);
        if log.is_released() {
            return Ok(log);
        }
    }
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

/// Counts in the journal that a turn is taken up, before anything of it is done again. One that was
/// no further each time its worker was lost is ended instead.
async fn take_up(
    inner: &Inner,
    key: &ConversationKey,
    turn: TurnId,
    log: &mut Log,
) -> Result<TakenUp, RunError> {
    if !log.conversation().pending().is_empty() {
        // It waits for a person: nothing of it ran.
        return Ok(TakenUp::GoesOn);
    }
    let before = conversation::times_taken_up(log.conversation().recent());
    let lost = before + 1;
    if lost >= WORKERS_LOST_MAX {
        let error = Some(TurnError::Poisoned { times: lost });
        let recent = log.conversation().recent();
        let end = given_up(
            recent,
            turn,
            OutcomeCategory::Poisoned,
            words::POISONED,
            error,
        );
        log.append(
            inner,
            key,
            vec![Event::TurnFinished {
                turn,
                input: None,
                end,
            }],
        )
        .await?;
        return Ok(TakenUp::GivenUp);
    }
    let worker = inner.worker.clone();
    log.append(inner, key, vec![Event::TurnTakenUp { turn, worker }])
        .await?;
    Ok(if before == 0 {
        TakenUp::GoesOn
    } else {
        TakenUp::Suspect
    })
}

/// Takes the first input of the inbox. `None`: it started no turn, or there is none.
async fn start(
    inner: &Inner,
    key: &ConversationKey,
    log: &mut Log,
) -> Result<Option<TurnId>, RunError> {
    let Some(input) = log.inbox().first().cloned() else {
        return Ok(None);
    };
    crate::faults::boundary("input accepted, turn not started");
    match turn_of(inner, &input) {
        Some((turn, mut started)) => {
            if let Event::TurnStarted {
                message,
                call: None,
                told,
                ..
            } = &mut started
            {
                *told = inner
                    .told_with(key, message, || log.conversation().recalled().messages)
                    .await;
            }
            log.append(inner, key, vec![started]).await?;
            Ok(Some(turn))
        }
        None => {
            let reason = "nothing waits for it".to_owned();
            log.append(
                inner,
                key,
                vec![Event::InputIgnored {
                    input: input.id,
                    reason,
                }],
            )
            .await?;
            Ok(None)
        }
    }
}

/// Makes the first event of the turn that answers an input. `None`: it is answered by no turn of
/// its own.
pub(crate) fn turn_of(inner: &Inner, input: &Input) -> Option<(TurnId, Event)> {
    let (text, output_schema, limits, call) = match &input.body {
        InputBody::Message {
            text,
            output_schema,
            limits,
            ..
        } => {
            let own = || inner.output.as_ref().map(|schema| schema.as_json().clone());
            (
                text.clone(),
                output_schema.clone().or_else(own),
                limits.clone(),
                None,
            )
        }
        InputBody::Call(call) => (call.line(), None, None, Some(call.clone())),
        InputBody::Answers { .. } | InputBody::Cancel => return None,
    };
    let turn = TurnId(Uuid::now_v7());
    let message_chars = text.chars().count();
    let limits = limits.map_or_else(|| inner.limits.clone(), |limits| *limits);
    let message = match &call {
        Some(_) => text,
        None => limits
            .message_chars_max
            .and_then(|max| cut(&text, max))
            .unwrap_or(text),
    };
    let started = Event::TurnStarted {
        turn,
        agent: Some(inner.name.clone()),
        version: inner.version.clone(),
        metadata: serde_json::Map::new(),
        told: Vec::new(),
        input: input.id.clone(),
        accepted_at: Some(input.at),
        request_id: input.request_id.clone(),
        message,
        message_chars,
        model: if call.is_some() {
            ModelId::none()
        } else {
            inner.model.id().clone()
        },
        local: call.is_none().then(|| inner.model.capabilities().local),
        limits,
        output_schema,
        call,
        client: input.body.client().cloned().map(Box::new),
    };
    Some((turn, started))
}

/// Returns the span of a turn: whose it is, and the request that began it. At the level of errors,
/// so that no filter takes it away from what happens in it.
fn turn_span(key: &ConversationKey, turn: TurnId, conversation: &Conversation) -> Span {
    let request_id = || match conversation.current().and_then(|current| current.started()) {
        Some(Event::TurnStarted { request_id, .. }) => request_id.as_deref(),
        _ => None,
    };
    error_span!("turn", user = key.user.as_str(), conversation = %key.conversation, %turn, request_id = request_id())
}

/// All awaits of a turn. Each runs inside a journaled step; a recorded step is not done again.
async fn drive(
    inner: &Inner,
    key: &ConversationKey,
    id: TurnId,
    mut log: Log,
    (caller, hold): (Caller<'_>, &Hold),
) -> Result<Log, RunError> {
    let emitter = caller.emitter;
    let loading = log.take_loading();
    let Some(Event::TurnStarted {
        input,
        model,
        message,
        message_chars,
        told,
        limits,
        output_schema,
        call,
        client,
        ..
    }) = log
        .conversation()
        .current()
        .and_then(|current| current.started())
    else {
        return Err(RunError::CannotContinue(format!(
            "turn {id} has no beginning"
        )));
    };
    // A turn that asks no model needs no instruction, and reads nothing to make one.
    let asks_model = call.is_none();
    if asks_model && model != inner.model.id() {
        warning::other_model(model, inner.model.id());
    }
    let (instruction, notices) = if asks_model {
        inner.instruction_for(&key.user).await
    } else {
        Default::default()
    };
    let recalled = past_of(inner, key, log.conversation(), limits).await?;
    let past = Past {
        from: recalled.from,
        messages: recalled.messages.len(),
        summary: log.conversation().summary_at(),
        loading,
    };
    let client = client.as_deref();
    let tools = TurnTools::of(inner, limits, client)?;
    let turn = Turn::new(TurnSetup {
        turn: id,
        model: model.clone(),
        recalled,
        told: told.clone(),
        call: call.clone(),
        output: output_schema
            .as_ref()
            .map(|schema| compiled(inner, schema))
            .transpose()?,
        choice: client
            .map(|client| client.choice.clone())
            .unwrap_or_default(),
        context: client
            .map(|client| client.context.clone())
            .unwrap_or_default(),
        ..setup(
            inner,
            limits,
            &tools,
            instruction,
            (message.clone(), *message_chars),
        )
    })?;
    let mut turn = Box::new(turn);
    if asks_model && !limits.words_only {
        notices
            .into_iter()
            .for_each(|notice| turn.add_notice(notice));
    }
    let (input, memory, deadline) = (input.clone(), told.clone(), limits.turn_deadline);
    let never = CancellationToken::new();
    let (cancelled, trace) = if is_of(caller, &log) {
        (caller.cancelled, caller.trace.cloned())
    } else {
        (&never, None)
    };
    let runs = log.conversation().pending().is_empty();
    let stop = log
        .inbox()
        .iter()
        .find(|input| runs && input.body == InputBody::Cancel);
    let stop = stop.map(|input| input.id.clone());
    let steps = Steps::new(
        inner,
        key,
        (id, past, trace),
        tools,
        log,
        (emitter, cancelled, hold),
        deadline,
    );
    // While it waits, what came before the cancellation is read first.
    if let Some(input) = stop {
        steps.stop(input);
    }
    let started = || RunEvent::TurnStarted {
        turn: id,
        input,
        model: inner.model.id().clone(),
        memory,
    };
    emitter.emit_begun(hold.worker(), started).await;
    tokio::select! {
        biased;
        result = follow(&steps, turn) => result?,
        never = steps.watch() => match never {},
    }
    Ok(steps.into_log())
}

/// Returns whether the open turn is the caller's: it took their input, or waits for a person and
/// will read it as the answer.
fn is_of(caller: Caller<'_>, log: &Log) -> bool {
    let Some(input) = caller.input else {
        return true;
    };
    let (conversation, inbox) = (log.conversation(), log.inbox());
    if conversation
        .recent()
        .iter()
        .any(|recorded| recorded.event.takes_input() == Some(input))
    {
        return true;
    }
    let parked = conversation.status().parked_seq;
    // The first that can be an answer is read.
    let read = inbox.iter().find(|waiting| match &waiting.body {
        InputBody::Answers { .. } | InputBody::Cancel => parked.is_some(),
        // One from before the question is the next message.
        InputBody::Message { .. } => {
            parked.is_some_and(|parked| waiting.after >= parked)
                && !conversation
                    .pending()
                    .iter()
                    .all(PendingCall::awaits_result)
        }
        InputBody::Call(_) => false,
    });
    read.is_some_and(|read| read.id == *input)
}

/// Returns what the open turn is given of the past. For a turn with another bound than its agent's
/// as many turns before it are read as it may be given messages, and for one without a bound the
/// whole past.
async fn past_of(
    inner: &Inner,
    key: &ConversationKey,
    conversation: &Conversation,
    limits: &TurnLimits,
) -> Result<Recalled, RunError> {
    if limits.history_messages_max == conversation.messages_max() {
        return Ok(conversation.recalled());
    }
    let started = conversation
        .recent()
        .first()
        .map_or(0, |recorded| recorded.seq);
    // A turn has a message of a person at least.
    let turns = limits
        .history_messages_max
        .map_or(u32::MAX, |max| u32::try_from(max).unwrap_or(u32::MAX));
    let read = inner.journal.load_turns(key, Some(started), turns).await?;
    let events = read.map(|read| read.events).unwrap_or_default();
    Ok(conversation.recalled_within(limits.history_messages_max, &events))
}

/// Does what the turn asks for until it ends or waits.
async fn follow(steps: &Steps<'_>, mut turn: Box<Turn>) -> Result<(), RunError> {
    let mut action = turn.start()?;
    loop {
        action = match action {
            Action::CallModel(request) => {
                steps.tell_round(&request).await;
                match steps.generate(&mut turn, *request).await? {
                    Step::Done(Replied::Sent(reply)) => turn.on_model_result(reply)?,
                    Step::Done(Replied::TooLong(error)) => turn.on_unsendable(error)?,
                    Step::Stopped(reason, ends) => turn.stop(reason, ends),
                }
            }
            Action::CallTools(calls) => match steps.call_tools(&turn, calls).await? {
                Step::Done(ends) => turn.on_call_ends(ends)?,
                Step::Stopped(reason, ends) => turn.stop(reason, ends),
            },
            // On the heap, as everything that few turns come to.
            Action::AskUser { pending, content } => {
                match Box::pin(steps.answers(&turn, &pending, content)).await? {
                    Answered::Ends(ends, choice) => {
                        if let Some(choice) = choice {
                            turn.choose(choice);
                        }
                        turn.on_call_ends(ends)?
                    }
                    Answered::Stopped(reason, ends) => turn.stop(reason, ends),
                    Answered::Parked => return Ok(()),
                }
            }
            Action::Finish(end) => return steps.finish(*end).await,
        }
    }
}

/// A turn of this agent, as the first of a conversation.
fn setup(
    inner: &Inner,
    limits: &TurnLimits,
    tools: &TurnTools<'_>,
    instruction: String,
    (message, message_chars): (String, usize),
) -> TurnSetup {
    let capabilities = inner.model.capabilities();
    let instruction = if limits.words_only {
        WORDS_ONLY.trim_end().to_owned()
    } else {
        instruction
    };
    let tools = tools.offered();
    let one_round = capabilities.weak_tools && !tools.is_empty();
    TurnSetup {
        turn: TurnId(Uuid::nil()),
        model: inner.model.id().clone(),
        instruction,
        recalled: Recalled::default(),
        call: None,
        message,
        message_chars,
        told: Vec::new(),
        tools,
        choice: ToolChoice::Auto,
        context: String::new(),
        control_functions: inner.control_functions,
        config: config_within(inner, limits),
        limits: limits.clone(),
        style: if one_round {
            ToolStyle::OneRound
        } else {
            ToolStyle::Native
        },
        output: inner.output.clone(),
        schema_support: capabilities.response_schema,
    }
}

/// A request that begins like those of all turns of this agent, made as a turn makes it. Only its
/// last message differs. Context that is made anew every turn is not in it.
pub(crate) fn opening(inner: &Inner) -> Result<GenerateRequest, RunError> {
    let message = "…".to_owned();
    let tools = TurnTools::of(inner, &inner.limits, None)?;
    let turn = Turn::new(setup(
        inner,
        &inner.limits,
        &tools,
        inner.instruction.clone(),
        (message, 1),
    ))?;
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
