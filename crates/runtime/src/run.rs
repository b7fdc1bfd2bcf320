//! The driver: runs a leased conversation, turn by turn, until nothing is left to do or it waits
//! for a person.

use adjutant_core::conversation::Conversation;
use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::turn::{Action, ToolStyle, Turn, TurnSetup, cut, given_up};
use adjutant_core::{
    ActionScores, CancellationToken, ConversationKey, Event, GenerateRequest, GenerationConfig,
    GivenHistory, Input, InputBody, InputId, MaxTokens, ModelId, OutcomeCategory, OutputSchema,
    ToolChoice, TraceContext, TurnError, TurnHistory, TurnId, TurnLimits, conversation, words,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use tokio::sync::Notify;
use tracing::{Instrument as _, Span, error_span, info};
use uuid::Uuid;

use crate::event::RunEvent;
use crate::heartbeat::Lease;
use crate::inner::Inner;
use crate::lease::{OpenConversation, POLL_INTERVAL, Submission, WaitOptions, acquire};
use crate::log::Log;
use crate::steps::{AnswersOutcome, ModelReply, Step, Steps, StepsSetup};
use crate::stream::Emitter;
use crate::turn_tools::TurnTools;
use crate::{RunError, warning};

/// The instruction of turns without tools ([`TurnLimits::words_only`]).
const WORDS_ONLY: &str = include_str!("../../../prompts/words_only.md");
/// A turn whose worker was lost this often, without a new step in between, is ended: it probably
/// crashes the process.
const WORKERS_LOST_MAX: u32 = 3;

/// The caller of a run: receives its events, and may stop it.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) emitter: &'a Emitter,
    pub(crate) cancelled: &'a CancellationToken,
    /// The input that the caller waits for. `cancelled` stops the turn of this input only, and not
    /// turns of earlier inputs. `None`: it stops every turn.
    pub(crate) input: Option<&'a InputId>,
    /// The distributed trace of that input.
    pub(crate) trace: Option<&'a TraceContext>,
    /// Notified if the caller's turn is stopped while its calls go on. `None`: the caller waits
    /// for their ends.
    pub(crate) stopped: Option<&'a Notify>,
}

impl<'a> Caller<'a> {
    /// Returns a caller without an input of its own.
    pub(crate) fn new(emitter: &'a Emitter, cancelled: &'a CancellationToken) -> Self {
        Self {
            emitter,
            cancelled,
            input: None,
            trace: None,
            stopped: None,
        }
    }
}

/// Acquires a conversation and runs it until no input is left or it waits for a person.
/// `submission`: an input that is accepted first. Returns what `read` extracts from the final
/// state; `None`: there is no such conversation.
pub(crate) async fn run_conversation<T>(
    inner: &Inner,
    key: &ConversationKey,
    submission: Option<Submission<'_>>,
    caller: Caller<'_>,
    read: impl FnOnce(&Conversation) -> T,
) -> Result<Option<T>, RunError> {
    let waits = submission.map(|submission| WaitOptions {
        cancelled: caller.cancelled,
        input: &submission.input.id,
        is_cancellation: submission.input.body == InputBody::Cancel,
        emitter: Some(caller.emitter),
        poll_interval: POLL_INTERVAL,
    });
    let Some(open) = acquire(inner, key, submission, waits).await? else {
        return Ok(None);
    };
    let first = submission.and_then(|submission| submission.first);
    let caller = Caller {
        input: submission.map(|submission| &submission.input.id),
        trace: submission.and_then(|submission| submission.trace),
        ..caller
    };
    run_leased(inner, key, open, first, caller, read)
        .await
        .map(Some)
}

/// Runs a leased conversation until no input is left or it waits for a person. `first`: an event
/// that is recorded if the conversation has none yet. Returns what `read` extracts from the final
/// state.
pub(crate) async fn run_leased<T>(
    inner: &Inner,
    key: &ConversationKey,
    open: OpenConversation,
    first: Option<&Event>,
    caller: Caller<'_>,
    read: impl FnOnce(&Conversation) -> T,
) -> Result<T, RunError> {
    let OpenConversation {
        leased,
        log,
        taken_over,
    } = open;
    let lease = leased.lease();
    // Boxed, once per turn: the future holds everything that a turn awaits.
    let work = Box::pin(async {
        let log = run_turns(inner, key, log, first, taken_over, caller, &lease).await?;
        Ok((read(log.conversation()), log))
    });
    let done = leased.run(work).await;
    if let Some(on_idle) = inner.on_idle.get() {
        on_idle(key);
    }
    done
}

/// Runs turns until no input is left. `taken_over`: the previous worker was lost, so its open turn
/// may be what killed it.
async fn run_turns(
    inner: &Inner,
    key: &ConversationKey,
    mut log: Log,
    first: Option<&Event>,
    mut taken_over: bool,
    caller: Caller<'_>,
    lease: &Lease,
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
                match record_recovery(inner, key, turn, &mut log).await? {
                    Recovered::GivenUp => {
                        caller.emitter.emit_turn_state(log.conversation()).await;
                        continue;
                    }
                    Recovered::Continues => turn,
                    Recovered::Suspect => {
                        // Suspects run one at a time: if this process is lost too, the turn that
                        // did it is known.
                        alone = Some(inner.suspects.lock().await);
                        turn
                    }
                }
            }
            Some(turn) => turn,
            None => match start_next_turn(inner, key, &mut log).await? {
                Some(turn) => turn,
                // The first input was ignored, and more wait behind it.
                None if !log.inbox().is_empty() => continue,
                None if log.finish(inner, key, None).await? => return Ok(log),
                None => continue,
            },
        };
        let span = turn_span(key, turn, log.conversation());
        log = drive_turn(inner, key, turn, log, caller, lease)
            .instrument(span)
            .await?;
        caller.emitter.emit_turn_state(log.conversation()).await;
        drop(alone);
        if log.is_released() {
            return Ok(log);
        }
    }
}

/// The decision on an open turn whose worker was lost.
enum Recovered {
    /// It continues as any other.
    Continues,
    /// It lost more than one worker without a new step in between, and continues alone.
    Suspect,
    /// It lost too many workers, and was ended.
    GivenUp,
}

/// Records in the journal that a turn is recovered, before any step of it runs. A turn that lost
/// [`WORKERS_LOST_MAX`] workers without a new step in between is ended instead.
async fn record_recovery(
    inner: &Inner,
    key: &ConversationKey,
    turn: TurnId,
    log: &mut Log,
) -> Result<Recovered, RunError> {
    if !log.conversation().pending().is_empty() {
        // It waits for a person, so no step of it can have crashed the worker.
        return Ok(Recovered::Continues);
    }
    let before = conversation::times_taken_up(log.conversation().recent());
    let times = before + 1;
    if times >= WORKERS_LOST_MAX {
        let (error, outcome) = (TurnError::Poisoned { times }, OutcomeCategory::Poisoned);
        let recent = log.conversation().recent();
        let end = given_up(recent, turn, outcome, words::POISONED, Some(error));
        log.append_turn_end(inner, key, turn, end).await?;
        return Ok(Recovered::GivenUp);
    }
    info!(%turn, times, "recovering a turn whose worker was lost");
    let worker = inner.worker.clone();
    log.append(inner, key, vec![Event::TurnTakenUp { turn, worker }])
        .await?;
    Ok(match before {
        0 => Recovered::Continues,
        _ => Recovered::Suspect,
    })
}

/// Starts the turn of the first input in the inbox. `None`: the inbox is empty, or the input was
/// ignored.
async fn start_next_turn(
    inner: &Inner,
    key: &ConversationKey,
    log: &mut Log,
) -> Result<Option<TurnId>, RunError> {
    let Some(input) = log.inbox().first().cloned() else {
        return Ok(None);
    };
    crate::faults::boundary("input accepted, turn not started");
    match turn_started(inner, &input) {
        Some((turn, mut started)) => {
            if let Event::TurnStarted {
                message,
                call: None,
                recalled_texts,
                ..
            } = &mut started
            {
                *recalled_texts = inner
                    .recall_for(key, message, || log.conversation().turn_history().messages)
                    .await;
            }
            log.append(inner, key, vec![started]).await?;
            Ok(Some(turn))
        }
        None => {
            let reason = "nothing waits for it".to_owned();
            let input = input.id;
            log.append(inner, key, vec![Event::InputIgnored { input, reason }])
                .await?;
            Ok(None)
        }
    }
}

/// Returns the first event of the turn that an input starts. `None`: answers and cancellations
/// belong to the open turn.
pub(crate) fn turn_started(inner: &Inner, input: &Input) -> Option<(TurnId, Event)> {
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
    let (sent_at, from_others) = match &input.body {
        InputBody::Message {
            time_zone,
            from_others,
            ..
        } => (time_zone.as_deref(), *from_others),
        _ => (None, false),
    };
    // With constrained tool calling the model reads the person's words only.
    let sent_at = sent_at
        .filter(|_| !inner.model.capabilities().weak_tools && !limits.words_only)
        .and_then(|zone| local_time(input.at, zone));
    let started = Event::TurnStarted {
        turn,
        agent: Some(inner.name.clone()),
        version: inner.version.clone(),
        metadata: serde_json::Map::new(),
        recalled_texts: Vec::new(),
        input: input.id.clone(),
        accepted_at: Some(input.at),
        request_id: input.request_id.clone(),
        message,
        message_chars,
        sent_at,
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
        from_others,
    };
    Some((turn, started))
}

/// Returns the time in a zone with the zone's name and offset. `None`: the zone is not in this system's
/// database.
fn local_time(at: Timestamp, zone: &str) -> Option<String> {
    let local = at.to_zoned(TimeZone::get(zone).ok()?);
    let time = local.strftime("%A, %Y-%m-%d, %H:%M");
    Some(format!("{time} ({zone}, UTC{})", local.strftime("%:z")))
}

/// Returns the tracing span of a turn, with its user and the request that started it. It has the
/// level of errors, so that log filters keep it for all events inside the turn.
fn turn_span(key: &ConversationKey, turn: TurnId, conversation: &Conversation) -> Span {
    let request_id = || match conversation.current().and_then(|current| current.started()) {
        Some(Event::TurnStarted { request_id, .. }) => request_id.as_deref(),
        _ => None,
    };
    error_span!("turn", user = key.user.as_str(), conversation = %key.conversation, %turn, request_id = request_id())
}

/// Rebuilds the open turn from the journal and drives it until it ends or waits. A step that is
/// recorded is not executed again.
async fn drive_turn(
    inner: &Inner,
    key: &ConversationKey,
    id: TurnId,
    mut log: Log,
    caller: Caller<'_>,
    lease: &Lease,
) -> Result<Log, RunError> {
    let emitter = caller.emitter;
    // Taken by the first turn under this lease; later ones find the state in memory.
    let loading = log.take_loading();
    let Some(Event::TurnStarted {
        input,
        model,
        message,
        message_chars,
        sent_at,
        recalled_texts,
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
    // Calls without a model need no instruction; reading one (files, notes) would only delay them.
    let asks_model = call.is_none();
    if asks_model && model != inner.model.id() {
        warning::other_model(model, inner.model.id());
    }
    let (instruction, notices) = if asks_model {
        inner.instruction_for(&key.user).await
    } else {
        Default::default()
    };
    let recalled = history_of(inner, key, log.conversation(), limits).await?;
    let past = GivenHistory {
        from: recalled.from,
        messages: recalled.messages.len(),
        summary: log.conversation().summary_at(),
        loading,
    };
    let client = client.as_deref();
    let tools = TurnTools::new(inner, limits, client)?;
    let turn = Turn::new(TurnSetup {
        turn: id,
        model: model.clone(),
        recalled,
        sent_at: sent_at.clone(),
        recalled_texts: recalled_texts.clone(),
        call: call.clone(),
        output: output_schema
            .as_ref()
            .map(|schema| compile_output(inner, schema))
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
            message.clone(),
            *message_chars,
        )
    })?;
    let mut turn = Box::new(turn);
    if asks_model && !limits.words_only {
        notices
            .into_iter()
            .for_each(|notice| turn.add_notice(notice));
    }
    let (input, memory, deadline) = (input.clone(), recalled_texts.clone(), limits.turn_deadline);
    // The turn of another caller's input must not be stopped by this one.
    let never = CancellationToken::new();
    let (cancelled, trace, stopped) = if is_callers_turn(caller, &log) {
        (caller.cancelled, caller.trace.cloned(), caller.stopped)
    } else {
        (&never, None, None)
    };
    let runs = log.conversation().pending().is_empty();
    let stop = log
        .inbox()
        .iter()
        .find(|input| runs && input.body == InputBody::Cancel);
    let stop = stop.map(|input| input.id.clone());
    let steps = Steps::new(StepsSetup {
        inner,
        key,
        turn: id,
        past,
        trace,
        tools,
        log,
        emitter,
        cancelled,
        lease,
        deadline,
        stopped,
    });
    // A turn that waits for a person reads its inbox in order instead: an answer that was accepted
    // before the cancellation counts.
    if let Some(input) = stop {
        steps.stop(input);
    }
    let started = || RunEvent::TurnStarted {
        turn: id,
        input,
        model: inner.model.id().clone(),
        memory,
    };
    emitter.emit_turn_started(lease.worker(), started).await;
    tokio::select! {
        biased;
        // In this order: a cancellation that arrives together with the end changes nothing.
        result = run_actions(&steps, turn) => result?,
        never = steps.watch() => match never {},
    }
    Ok(steps.into_log())
}

/// Returns true if the open turn is the caller's: it took their input, or waits for a person and
/// will read the input as the answer.
fn is_callers_turn(caller: Caller<'_>, log: &Log) -> bool {
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
    // The turn reads the first input that can be an answer.
    let read = inbox.iter().find(|waiting| {
        // A message from before the question is the next message, not the answer.
        let is_late_enough = parked.is_some_and(|parked| {
            !matches!(waiting.body, InputBody::Message { .. }) || waiting.after >= parked
        });
        is_late_enough && waiting.is_answer_to(conversation.pending())
    });
    read.is_some_and(|read| read.id == *input)
}

/// Returns the history that the open turn gets. The state holds as many messages as the agent's
/// limit allows; a turn with another limit reads earlier turns from the journal, and one without a
/// limit the whole conversation.
async fn history_of(
    inner: &Inner,
    key: &ConversationKey,
    conversation: &Conversation,
    limits: &TurnLimits,
) -> Result<TurnHistory, RunError> {
    if limits.history_messages_max == conversation.messages_max() {
        return Ok(conversation.turn_history());
    }
    // A turn has at least one message, so this many turns have enough messages.
    let turns = limits
        .history_messages_max
        .map_or(u32::MAX, |max| u32::try_from(max).unwrap_or(u32::MAX));
    let max = limits.history_messages_max;
    earlier_history(inner, key, conversation, max, turns).await
}

/// Returns the history before the open turn since the last summary, read from the journal: at most
/// `messages_max` messages, of at most `turns` turns.
pub(crate) async fn earlier_history(
    inner: &Inner,
    key: &ConversationKey,
    conversation: &Conversation,
    messages_max: Option<usize>,
    turns: u32,
) -> Result<TurnHistory, RunError> {
    let started = conversation
        .recent()
        .first()
        .map_or(0, |recorded| recorded.seq);
    let read = inner.journal.load_turns(key, Some(started), turns).await?;
    let events = read.map(|read| read.events).unwrap_or_default();
    Ok(conversation.turn_history_within(messages_max, &events))
}

/// Carries out the actions of the turn machine until the turn ends or waits.
async fn run_actions(steps: &Steps<'_>, mut turn: Box<Turn>) -> Result<(), RunError> {
    let mut action = turn.start()?;
    loop {
        action = match action {
            Action::CallModel(request) => {
                steps.emit_round_end(&request).await;
                match steps.generate(&mut turn, *request).await? {
                    Step::Done(ModelReply::Sent(reply)) => turn.on_model_result(reply)?,
                    Step::Done(ModelReply::TooLong(error)) => turn.on_unsendable(error)?,
                    Step::Stopped(reason, ends) => turn.stop(reason, ends),
                }
            }
            Action::CallTools(calls) => match steps
                .answering_when_stopped(&turn, steps.call_tools(&turn, calls))
                .await?
            {
                Step::Done(ends) => turn.on_call_ends(ends)?,
                Step::Stopped(reason, ends) => turn.stop(reason, ends),
            },
            // Boxed, because few turns need it and it would enlarge the future of all.
            Action::AskUser { pending, content } => {
                let answers = steps.answers(&turn, &pending, content);
                match Box::pin(steps.answering_when_stopped(&turn, answers)).await? {
                    AnswersOutcome::Ends(ends, choice) => {
                        if let Some(choice) = choice {
                            turn.choose(choice);
                        }
                        turn.on_call_ends(ends)?
                    }
                    AnswersOutcome::Stopped(reason, ends) => turn.stop(reason, ends),
                    AnswersOutcome::Parked => return Ok(()),
                }
            }
            Action::Finish(end) => return steps.finish(*end).await,
        }
    }
}

/// Returns the setup of a turn of this agent with an empty history.
pub(crate) fn setup(
    inner: &Inner,
    limits: &TurnLimits,
    tools: &TurnTools<'_>,
    instruction: String,
    message: String,
    message_chars: usize,
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
        recalled: TurnHistory::default(),
        call: None,
        message,
        message_chars,
        sent_at: None,
        recalled_texts: Vec::new(),
        tools,
        choice: ToolChoice::Auto,
        context: String::new(),
        control_functions: inner.control_functions,
        reports_failed_calls: inner.reports_failed_calls,
        claims_change: inner.claims_change,
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

/// The message of the request that is prepared ahead of the first one.
pub(crate) const OPENING_MESSAGE: &str = "…";

/// Returns a request that begins as those of all turns of this agent do; only its last message
/// differs. Text that is made for every turn is not in it.
pub(crate) fn opening_request(
    inner: &Inner,
    scores: Option<&ActionScores>,
) -> Result<GenerateRequest, RunError> {
    let message = OPENING_MESSAGE.to_owned();
    let tools = TurnTools::new(inner, &inner.limits, None)?;
    let turn = Turn::new(setup(
        inner,
        &inner.limits,
        &tools,
        inner.instruction.clone(),
        message,
        1,
    ))?;
    let request = turn.request();
    Ok(match turn.style() {
        // The user's references are in the last message, too, so none are needed here.
        ToolStyle::OneRound => inner.weak_tools.encode(&request, &[], scores),
        ToolStyle::Native => request,
    })
}

/// Returns the generation settings of a turn, whose visible output may be limited further.
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

/// Compiles the recorded output schema, unless it is the agent's own or that of this handle, which
/// are compiled already and know their type.
fn compile_output(inner: &Inner, schema: &Value) -> Result<OutputSchema, RunError> {
    let known = inner.requested_output.iter().chain(&inner.output);
    match known.into_iter().find(|known| known.as_json() == schema) {
        Some(known) => Ok(known.clone()),
        None => OutputSchema::new(schema.clone())
            .map_err(|error| RunError::CannotContinue(format!("its output schema: {error}"))),
    }
}
