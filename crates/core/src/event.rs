//! What happened: the events of the journal. A turn can be rebuilt from them at every step.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client_side::ClientSide;
use crate::confirmation::{Answer, PendingCall, Verdict};
use crate::cost::Cost;
use crate::decision::{AgentDecision, Notice, OutcomeCategory, TurnError};
use crate::error::ModelError;
use crate::id::{AgentName, CallId, IdempotencyKey, InputId, ModelId, TurnId};
use crate::limits::TurnLimits;
use crate::message::Message;
use crate::model::{GenerateResponse, Usage};
use crate::past::Past;
use crate::summary::Summary;
use crate::tool::{Arguments, Effect, ToolInvocation, ToolResult};
use crate::tool_choice::ToolChoice;
use crate::trim::cut;

/// The version of the event format this code writes. Every stored event carries it.
pub const EVENT_VERSION: u32 = 1;

/// Something that arrived for a conversation and waits to be taken by a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The same id twice is one input.
    pub id: InputId,
    /// When it was accepted.
    pub at: Timestamp,
    /// The HTTP request it came with, if it came with one: the log names it, so that what a client
    /// saw can be found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// A hash of the request as its client sent it, where the client named the request itself: the
    /// same id with another fingerprint is refused instead of being taken for a repeat. `None`: not
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The place of the conversation's last event when it was accepted: what the person can have
    /// seen. The store fills it in. 0: there was none, or it was not written down.
    #[serde(default)]
    pub after: u64,
    /// What arrived.
    #[serde(flatten)]
    pub body: InputBody,
}

impl Input {
    /// Makes an input that came with no HTTP request and has no fingerprint.
    #[must_use]
    pub fn new(id: InputId, at: Timestamp, body: InputBody) -> Self {
        Self {
            id,
            at,
            request_id: None,
            fingerprint: None,
            after: 0,
            body,
        }
    }
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InputBody {
    /// The person said something.
    Message {
        /// Their words, as they came.
        text: String,
        /// JSON Schema the final answer to them must fit. `None`: what the agent asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Value>,
        /// The bounds of the turn that answers them. `None`: those of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Box<TurnLimits>>,
        /// The tools and context that the program that sends them adds. `None`: nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<Box<ClientSide>>,
    },
    /// Pending calls were answered: by the person, or by whoever brings their results.
    Answers {
        /// One per call.
        answers: Vec<Answer>,
    },
    /// The person wants the running or waiting turn to stop.
    Cancel,
    /// A person, or a program for them, asks for a tool without a model.
    Call(RequestedCall),
}

/// A call that a person asks for, before the gate has looked at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments, as they were given.
    pub arguments: Arguments,
}

impl RequestedCall {
    /// Returns a hash of the call, the same for arguments in another order: see
    /// [`Input::fingerprint`].
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let arguments = Value::Object(self.arguments.clone());
        crate::fingerprint::fingerprint(&serde_json::json!([self.tool, arguments]))
    }

    /// Returns the call as one line, for logs: the tool and its arguments, at most 500 characters.
    #[must_use]
    pub fn line(&self) -> String {
        const CHARS_MAX: usize = 500;
        let line = format!("{} {}", self.tool, Value::Object(self.arguments.clone()));
        cut(&line, CHARS_MAX).unwrap_or(line)
    }
}

impl InputBody {
    /// Words, answered as the agent usually answers.
    #[must_use]
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message {
            text: text.into(),
            output_schema: None,
            limits: None,
            client: None,
        }
    }

    /// Returns what the program that sent a message brought along, if it brought something.
    #[must_use]
    pub fn client(&self) -> Option<&ClientSide> {
        match self {
            Self::Message { client, .. } => client.as_deref(),
            Self::Answers { .. } | Self::Cancel | Self::Call(_) => None,
        }
    }

    /// Returns whether a turn of its own answers it where none is open: words and calls, not what
    /// answers or stops a turn.
    #[must_use]
    pub fn starts_turn(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::Call(_))
    }
}

/// One event together with its place and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Place in the conversation, from 1 without gaps.
    pub seq: u64,
    /// When it happened, by the clock of whoever wrote it.
    pub at: Timestamp,
    /// The event. Never changed, so that copies share it.
    pub event: Arc<Event>,
}

impl Recorded {
    /// Gives events consecutive places from `first` on, and all of them the same time.
    #[must_use]
    pub fn sequence(first: u64, at: Timestamp, events: &[Event]) -> Vec<Self> {
        let place = |(behind, event): (usize, &Event)| Self {
            seq: first.saturating_add(behind as u64),
            at,
            event: Arc::new(event.clone()),
        };
        events.iter().enumerate().map(place).collect()
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The conversation's history was set from outside (a library user's context); it replaces what
    /// was before.
    HistorySet {
        /// The messages, without an instruction.
        messages: Vec<Message>,
    },
    /// A turn took an input and opens its decision.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// The agent that started it. `None` in journals of before that was written down:
        /// `adjutant`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// The agent's version, as its developer numbers them. `None`: it has none, or it was not
        /// written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// JSON that the caller gave with the input, for readers of the journal. No model reads it.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
        /// Texts that memory put before the words of this message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        told: Vec<Told>,
        /// The input it took.
        input: InputId,
        /// When that was accepted. `None` in journals of before that was written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted_at: Option<Timestamp>,
        /// The HTTP request it came with, if it came with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// The person's words as the model gets them.
        message: String,
        /// How many Unicode characters they had originally.
        message_chars: usize,
        /// The model the turn was started with.
        model: ModelId,
        /// Whether that model ran on the person's own machine then, so that nothing left it. `None`
        /// in journals of before that was written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        local: Option<bool>,
        /// The bounds it runs under.
        limits: TurnLimits,
        /// JSON Schema its final answer must fit, if it must.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Value>,
        /// The call a person asked for: the turn makes this one call and asks no model. `None`: the
        /// turn answers a message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<RequestedCall>,
        /// The tools and context that came with the message. `None`: nothing, or the journal is
        /// older than this field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<Box<ClientSide>>,
    },
    /// A model call ended.
    ModelReplied {
        /// The turn.
        turn: TurnId,
        /// Which call of the turn, from 1.
        number: u32,
        /// The answer or the failure.
        reply: Result<GenerateResponse, ModelError>,
        /// How long it took.
        ms: u64,
        /// How often it was sent, retries included. 0: never, because it cannot be made to fit.
        attempts: u32,
        /// What the request was counted as before it was sent, in tokens. `None` in journals of
        /// before that was written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counted: Option<u32>,
        /// What was taken away so that it fits.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<Notice>,
        /// The part of its conversation that the turn was given, with the first call. `None` in
        /// journals of before that was written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        past: Option<Box<Past>>,
    },
    /// Old turns were put into few words, which stand for them in requests from now on. The turns
    /// stay in the journal.
    ConversationSummarized {
        /// The turn that needed the room. `None`: a person asked for it between turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// Before which model call of the turn, from 1. 0: between turns.
        number: u32,
        /// The words, and what they stand for.
        summary: Summary,
        /// What they stand for took, in tokens.
        before: u32,
        /// What they take.
        after: u32,
        /// Tokens of the model call that wrote them.
        usage: Usage,
        /// Money of it, if it is known.
        #[serde(default)]
        cost: Option<Cost>,
        /// How long it took.
        ms: u64,
    },
    /// Old turns were to be put into few words, and could not be: the conversation goes on without.
    SummaryFailed {
        /// The turn that needed the room. `None`: a person asked for it between turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// Before which model call of the turn, from 1. 0: between turns.
        number: u32,
        /// Why, for the log.
        reason: String,
        /// Whether the model was asked: not, if there was no budget for it.
        asked: bool,
        /// Tokens of the model call, if there was an answer.
        usage: Usage,
        /// Money of it, if it is known.
        #[serde(default)]
        cost: Option<Cost>,
        /// How long it took.
        ms: u64,
    },
    /// The gate looked at a call.
    CallChecked {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The verdict.
        verdict: GateVerdict,
    },
    /// The intent: the call is about to be executed. Durable before the effect.
    CallStarted {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What it is called with.
        arguments: Arguments,
        /// The key that makes a repeat harmless where the receiver honours it.
        key: IdempotencyKey,
        /// What a repeat may do.
        effect: Effect,
    },
    /// A call was executed.
    CallFinished {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What it was called with.
        arguments: Arguments,
        /// What came out.
        result: ToolResult,
        /// Words for the person about it: of a success the tool's own; of a call that broke off
        /// those in the place of its error.
        summary: Option<String>,
        /// How long it took.
        ms: u64,
        /// How often it was started, crashes included.
        attempt: u32,
    },
    /// It is not known whether the call did its work; it is not repeated.
    CallInDoubt {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What it was called with.
        arguments: Arguments,
        /// What the person is asked about it. `None` in journals of before that was asked: it is
        /// left open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doubt: Option<PendingCall>,
    },
    /// It is known what became of a call in doubt, or settled that it stays unknown.
    DoubtResolved {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// Which start of it, as in [`crate::Doubt::attempt`].
        attempt: u32,
        /// Who said so.
        by: ResolvedBy,
        /// The input that said so, if a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<InputId>,
        /// [`Verdict::Done`], [`Verdict::Retry`] or [`Verdict::Leave`].
        verdict: Verdict,
    },
    /// The turn waits: for a human, or for results that others bring.
    TurnParked {
        /// The turn.
        turn: TurnId,
        /// What waits.
        pending: Vec<PendingCall>,
        /// The words the person was shown.
        content: String,
    },
    /// A pending call was answered.
    CallAnswered {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The input that answered it; `None` if its time ran out.
        input: Option<InputId>,
        /// What was said; `None` if its time ran out.
        verdict: Option<Verdict>,
        /// The arguments the person put in the place of those that were shown, if they did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<EditedCall>,
        /// The next tool choice, sent with the result of a call; the result itself is in its
        /// [`Event::CallFinished`].
        #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
        choice: ToolChoice,
    },
    /// A person said yes to a call with other arguments, and had not been shown what it does with
    /// them: nothing executed, the call waits as the question that it is with these arguments.
    CallEdited {
        /// The turn that waits.
        turn: TurnId,
        /// The input that has the arguments.
        input: InputId,
        /// The question, in the place of the one before it of the same call.
        pending: PendingCall,
    },
    /// An answer could not be what it was meant to be, such as a yes with arguments that do not
    /// fit: nothing executed, the call keeps waiting.
    AnswerRefused {
        /// The turn that waits.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The input.
        input: InputId,
        /// Why, for the person.
        reason: String,
    },
    /// A message arrived while something waited and was neither yes nor no: asked again, nothing
    /// executed.
    AnswerUnclear {
        /// The turn that waits.
        turn: TurnId,
        /// The input.
        input: InputId,
        /// What was said.
        text: String,
    },
    /// A worker takes the turn up after the one that ran it was lost. Recorded before anything of
    /// it is done again, so that a turn that takes its worker down each time can be told.
    TurnTakenUp {
        /// The turn.
        turn: TurnId,
        /// Who takes it up.
        worker: String,
    },
    /// A message waits for the end of the turn, because it was accepted before the question that
    /// the turn waits with: it is no answer to it. It stays in the inbox.
    InputQueued {
        /// The turn that waits.
        turn: TurnId,
        /// The input.
        input: InputId,
    },
    /// An input that had nothing left to do: an answer to nothing, a cancel of nothing.
    InputIgnored {
        /// The input.
        input: InputId,
        /// Why.
        reason: String,
    },
    /// A layer or a policy decided something. It is kept for whoever asks why; the turn itself does
    /// not depend on it.
    Decided {
        /// The turn.
        turn: TurnId,
        /// The name of what decided.
        by: String,
        /// The point at which it was asked.
        point: String,
        /// The decision.
        value: Value,
    },
    /// The person ended the session in which they talked. The conversation can be taken up again:
    /// the next input does.
    SessionEnded {},
    /// The turn ended.
    TurnFinished {
        /// The turn.
        turn: TurnId,
        /// The cancellation it takes, if that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<InputId>,
        /// How.
        end: TurnEnd,
    },
}

/// A piece of memory that is sent before the words of one message, with the same bytes in every
/// later request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The id of the fact, note or conversation it comes from, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text as the model reads it.
    pub text: String,
}

/// What the gate said to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum GateVerdict {
    /// It may run, with these arguments.
    Run {
        /// References resolved.
        arguments: Arguments,
    },
    /// A human has to say yes first.
    Confirm {
        /// What they are shown.
        pending: PendingCall,
    },
    /// Somebody else executes it and brings the result.
    Await {
        /// The call as they receive it.
        pending: PendingCall,
    },
    /// It is not clear what is meant.
    Ask {
        /// The question for the person.
        question: String,
    },
    /// It does not run; the model is told why.
    Refuse {
        /// Why.
        refusal: Refusal,
        /// The words for the model.
        message: String,
    },
}

/// What a person made of a call's arguments, as it passed the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditedCall {
    /// What runs, references resolved to ids.
    pub arguments: Arguments,
    /// Hash over turn, call, tool and these arguments.
    pub digest: String,
}

/// Who knew what became of a call in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedBy {
    /// A human said so.
    Person,
    /// The tool found out.
    Probe,
    /// Nobody said anything in time.
    Expiry,
}

/// Why the gate refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No such tool.
    UnknownTool,
    /// The arguments do not fit the schema.
    InvalidArguments,
    /// The policy forbids it.
    Forbidden,
    /// A human denied the same call in this turn.
    DeniedBefore,
    /// The same call was interrupted in this turn and may have been carried out.
    InDoubt,
    /// The tool could not even look.
    Failed,
    /// The caller takes one call of its tools at a time, and this is another.
    OneAtATime,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// What was decided.
    pub decision: AgentDecision,
    /// The category.
    pub outcome: OutcomeCategory,
    /// The answer as JSON that fits its schema, if one was asked for and given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// Money of all model calls that were answered, if it is known of each.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Tool rounds.
    pub iterations: u32,
    /// The typed cause, if it did not simply succeed.
    pub error: Option<TurnError>,
    /// What else the person should know.
    pub notices: Vec<Notice>,
    /// Calls of known tools whose arguments fitted.
    #[serde(default)]
    pub tools_used: Vec<ToolInvocation>,
    /// What the turn adds to the conversation's history: the person's message first, every call
    /// with its result.
    #[serde(default)]
    pub messages: Vec<Message>,
}

impl Event {
    /// The turn it belongs to, if it belongs to one.
    #[must_use]
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::HistorySet { .. } | Self::InputIgnored { .. } | Self::SessionEnded {} => None,
            Self::TurnStarted { turn, .. }
            | Self::ModelReplied { turn, .. }
            | Self::CallChecked { turn, .. }
            | Self::CallStarted { turn, .. }
            | Self::CallFinished { turn, .. }
            | Self::CallInDoubt { turn, .. }
            | Self::DoubtResolved { turn, .. }
            | Self::TurnParked { turn, .. }
            | Self::CallAnswered { turn, .. }
            | Self::CallEdited { turn, .. }
            | Self::AnswerRefused { turn, .. }
            | Self::AnswerUnclear { turn, .. }
            | Self::InputQueued { turn, .. }
            | Self::TurnTakenUp { turn, .. }
            | Self::Decided { turn, .. }
            | Self::TurnFinished { turn, .. } => Some(*turn),
            Self::ConversationSummarized { turn, .. } | Self::SummaryFailed { turn, .. } => *turn,
        }
    }

    /// Returns whether it adds messages to what a later request is sent.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        matches!(self, Self::HistorySet { .. } | Self::TurnFinished { .. })
    }

    /// The input it takes out of the inbox, in the same transaction.
    #[must_use]
    pub fn takes_input(&self) -> Option<&InputId> {
        match self {
            Self::TurnStarted { input, .. }
            | Self::CallEdited { input, .. }
            | Self::AnswerRefused { input, .. }
            | Self::AnswerUnclear { input, .. }
            | Self::InputIgnored { input, .. } => Some(input),
            Self::CallAnswered { input, .. }
            | Self::DoubtResolved { input, .. }
            | Self::TurnFinished { input, .. } => input.as_ref(),
            Self::HistorySet { .. }
            | Self::ModelReplied { .. }
            | Self::ConversationSummarized { .. }
            | Self::SummaryFailed { .. }
            | Self::CallChecked { .. }
            | Self::CallStarted { .. }
            | Self::CallFinished { .. }
            | Self::CallInDoubt { .. }
            | Self::SessionEnded {}
            | Self::InputQueued { .. }
            | Self::TurnTakenUp { .. }
            | Self::Decided { .. }
            | Self::TurnParked { .. } => None,
        }
    }

    /// Returns the step it belongs to. A conversation has one event of a kind for each step.
    ///
    /// `CallStarted` has none: a repeated attempt is recorded again.
    #[must_use]
    pub fn step(&self) -> Option<StepId> {
        match self {
            Self::TurnStarted { turn, .. } | Self::TurnFinished { turn, .. } => {
                Some(StepId::Turn(*turn))
            }
            Self::ModelReplied { turn, number, .. } => Some(StepId::Model(*turn, *number)),
            Self::ConversationSummarized {
                turn: Some(turn),
                number,
                ..
            }
            | Self::SummaryFailed {
                turn: Some(turn),
                number,
                ..
            } => Some(StepId::Summary(*turn, *number)),
            Self::CallChecked { call, .. }
            | Self::CallFinished { call, .. }
            | Self::CallInDoubt {
                call, doubt: None, ..
            }
            | Self::CallAnswered { call, .. } => Some(StepId::Call(call.clone(), 1)),
            Self::CallInDoubt {
                call,
                doubt: Some(PendingCall { doubt, .. }),
                ..
            } => Some(StepId::Call(
                call.clone(),
                doubt.as_ref().map_or(1, |doubt| doubt.attempt),
            )),
            Self::DoubtResolved { call, attempt, .. } => Some(StepId::Call(call.clone(), *attempt)),
            Self::InputQueued { input, .. } => Some(StepId::Queued(input.clone())),
            Self::CallStarted { .. }
            | Self::Decided { .. }
            | Self::TurnTakenUp { .. }
            | Self::ConversationSummarized { turn: None, .. }
            | Self::SummaryFailed { turn: None, .. }
            | Self::CallEdited { .. }
            | Self::AnswerRefused { .. }
            | Self::HistorySet { .. }
            | Self::TurnParked { .. }
            | Self::AnswerUnclear { .. }
            | Self::SessionEnded {}
            | Self::InputIgnored { .. } => None,
        }
    }

    /// The kind, as its serialised tag.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::HistorySet { .. } => "history_set",
            Self::TurnStarted { .. } => "turn_started",
            Self::ModelReplied { .. } => "model_replied",
            Self::ConversationSummarized { .. } => "conversation_summarized",
            Self::SummaryFailed { .. } => "summary_failed",
            Self::CallChecked { .. } => "call_checked",
            Self::CallStarted { .. } => "call_started",
            Self::CallFinished { .. } => "call_finished",
            Self::CallInDoubt { .. } => "call_in_doubt",
            Self::DoubtResolved { .. } => "doubt_resolved",
            Self::TurnParked { .. } => "turn_parked",
            Self::CallAnswered { .. } => "call_answered",
            Self::CallEdited { .. } => "call_edited",
            Self::AnswerRefused { .. } => "answer_refused",
            Self::AnswerUnclear { .. } => "answer_unclear",
            Self::InputIgnored { .. } => "input_ignored",
            Self::InputQueued { .. } => "input_queued",
            Self::TurnTakenUp { .. } => "turn_taken_up",
            Self::Decided { .. } => "decided",
            Self::SessionEnded {} => "session_ended",
            Self::TurnFinished { .. } => "turn_finished",
        }
    }
}

/// Names what an event is about: a name and not a position, so that the same thing recorded twice
/// is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StepId {
    /// A turn, from its start to its end.
    Turn(TurnId),
    /// A model call of a turn, counted from 1.
    Model(TurnId, u32),
    /// A summary before a model call of a turn, counted from 1.
    Summary(TurnId, u32),
    /// A start of a tool call, counted from 1. The first is the call's own step.
    Call(CallId, u32),
    /// An input that waits for the end of a turn.
    Queued(InputId),
}

/// Writes it as stores keep it.
impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(f, "{turn}"),
            Self::Model(turn, number) => write!(f, "{turn}/model/{number}"),
            Self::Summary(turn, number) => write!(f, "{turn}/summary/{number}"),
            Self::Call(call, 1) => write!(f, "{call}"),
            Self::Call(call, attempt) => write!(f, "{call}#{attempt}"),
            Self::Queued(input) => write!(f, "queued/{input}"),
        }
    }
}
