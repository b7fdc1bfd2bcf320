//! Events of the journal, from which a turn can be rebuilt at every step.

mod step; // the steps of a conversation

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use step::StepId;

use crate::client_side::ClientSide;
use crate::confirmation::{Answer, PendingCall, Verdict, is_bare_answer};
use crate::cost::Cost;
use crate::decision::{AgentDecision, FailedCall, Notice, OutcomeCategory, TurnError};
use crate::error::ModelError;
use crate::given_history::GivenHistory;
use crate::id::{AgentName, CallId, IdempotencyKey, InputId, ModelId, TurnId};
use crate::limits::TurnLimits;
use crate::message::Message;
use crate::message::json::stored_messages;
use crate::model::{GenerateResponse, Usage};
use crate::summary::Summary;
use crate::tool::{Arguments, Effect, ToolInvocation, ToolResult};
use crate::tool_choice::ToolChoice;
use crate::trim::cut;

/// The version of the event format this code writes. Every stored event carries it.
// An event with a higher version ends the reading of its conversation with an error: a fold that
// skips it would give a wrong state.
pub const EVENT_VERSION: u32 = 1;

/// A request to a conversation that was accepted and waits until a turn takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Identifies the input: submitting the same id twice is one input.
    pub id: InputId,
    /// Time at which the input was accepted.
    pub at: Timestamp,
    /// Id of the HTTP request that brought the input, so that the log can be searched by the id
    /// that a client saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Hash of the request as its client sent it. An input with a known id and another fingerprint
    /// is refused instead of being taken for a repetition. `None`: not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Sequence number of the conversation's last event at that time: what the person can have
    /// seen. Filled in by the store. 0: there was none, or it was not recorded.
    #[serde(default)]
    pub after: u64,
    /// The content of the request.
    #[serde(flatten)]
    pub body: InputBody,
}

impl Input {
    /// Creates an input without an HTTP request and without a fingerprint.
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

    /// Returns true if the input is read as an answer to the calls that wait. A message is one if
    /// it says nothing but an answer, or if its sender had been asked about all of them.
    #[must_use]
    pub fn is_answer_to(&self, waiting: &[PendingCall]) -> bool {
        match &self.body {
            InputBody::Answers { .. } | InputBody::Cancel => true,
            InputBody::Call(_) => false,
            InputBody::Message { text, shown, .. } => {
                let mut asked = waiting
                    .iter()
                    .filter(|call| !call.awaits_result())
                    .peekable();
                // A text is never the result of a call.
                asked.peek().is_some()
                    && (is_bare_answer(text) || asked.all(|call| shown.contains(&call.digest)))
            }
        }
    }
}

/// The content of an input, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InputBody {
    /// A message from the person.
    Message {
        /// The message as it was received.
        text: String,
        /// JSON Schema that the final answer must fit. `None`: that of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Value>,
        /// Limits of the turn that answers the message. `None`: those of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Box<TurnLimits>>,
        /// Tools and context that the sending program provides. `None`: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<Box<ClientSide>>,
        /// Digests of the pending calls that the sender had been asked about. A text that answers
        /// none of them is an unclear answer; from a sender who was not asked it is a message of
        /// its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<String>,
        /// Name of the person's time zone in the IANA database, such as `Europe/Berlin`. `None`: not
        /// known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_zone: Option<String>,
        /// True if a program wrote it that may not answer in the person's place: it is text of
        /// others, and none of the person's own words.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_others: bool,
    },
    /// Answers to pending calls: approvals and denials by the person, or results that the caller's
    /// program computed.
    Answers {
        /// One answer for each call.
        answers: Vec<Answer>,
    },
    /// A cancellation of the running or waiting turn.
    Cancel,
    /// A tool call that a person, or a program on their behalf, makes without a model.
    Call(RequestedCall),
}

/// A tool call requested by a person, before the gate has checked it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// Name of the tool, which may be unknown.
    pub tool: String,
    /// Arguments as they were given, not validated yet.
    pub arguments: Arguments,
    /// True if a program requested it that may not answer in the person's place: its arguments are
    /// text of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_others: bool,
}

impl RequestedCall {
    /// Creates a call that the person requests.
    #[must_use]
    pub fn new(tool: impl Into<String>, arguments: Arguments) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            from_others: false,
        }
    }

    /// Returns a hash of the call that does not depend on the order of arguments, for
    /// [`Input::fingerprint`].
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let arguments = Value::Object(self.arguments.clone());
        crate::fingerprint::fingerprint(&serde_json::json!([self.tool, arguments]))
    }

    /// Returns the call as one line for logs: the tool and its arguments, at most 500 characters.
    #[must_use]
    pub fn line(&self) -> String {
        const CHARS_MAX: usize = 500;
        let line = format!("{} {}", self.tool, Value::Object(self.arguments.clone()));
        cut(&line, CHARS_MAX).unwrap_or(line)
    }
}

impl InputBody {
    /// Creates a message without a schema, limits or tools of its own.
    #[must_use]
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message {
            text: text.into(),
            output_schema: None,
            limits: None,
            client: None,
            shown: Vec::new(),
            time_zone: None,
            from_others: false,
        }
    }

    /// Marks a message or a call as written by a program that may not answer in the person's place.
    pub fn mark_from_others(&mut self) {
        match self {
            Self::Message { from_others, .. } | Self::Call(RequestedCall { from_others, .. }) => {
                *from_others = true
            }
            Self::Answers { .. } | Self::Cancel => {}
        }
    }

    /// Returns the tools and context that the sending program provided with a message, if any.
    #[must_use]
    pub fn client(&self) -> Option<&ClientSide> {
        match self {
            Self::Message { client, .. } => client.as_deref(),
            Self::Answers { .. } | Self::Cancel | Self::Call(_) => None,
        }
    }

    /// Returns true for messages and calls, which start a turn if none is open; false for inputs
    /// that answer or stop one.
    #[must_use]
    pub fn starts_turn(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::Call(_))
    }
}

/// An event with its sequence number and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Sequence number in the conversation, from 1 without gaps.
    pub seq: u64,
    /// Time of the event by the clock of the worker that wrote it.
    pub at: Timestamp,
    /// The event, shared between copies because it never changes.
    pub event: Arc<Event>,
}

impl Recorded {
    /// Numbers events consecutively from `first` and gives all of them the same time.
    #[must_use]
    pub fn sequence(first: u64, at: Timestamp, events: &[Event]) -> Vec<Self> {
        // One time for all of them, because they are written in one commit.
        let place = |(behind, event): (usize, &Event)| Self {
            seq: first.saturating_add(behind as u64),
            at,
            event: Arc::new(event.clone()),
        };
        events.iter().enumerate().map(place).collect()
    }
}

/// An event of a conversation. Variants and fields are only ever added, because journals are read
/// for ever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A library user replaced the conversation's history by messages of their own.
    HistorySet {
        /// The messages that replace the history, without an instruction.
        messages: Vec<Message>,
        /// True if some of them are, or were written after reading, text of others beside results
        /// that are marked so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_others: bool,
    },
    /// A turn took an input and started.
    TurnStarted {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Agent that started the turn. `None` in older journals, where it was `adjutant`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// Version of the agent, as its developer numbers them. `None`: without a version, or an
        /// older journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// JSON that the caller attached to the input for readers of the journal. Never sent to a
        /// model.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
        /// Facts and notes that automatic recall attached to the message.
        // `told` is the name in journals, which are read for ever.
        #[serde(rename = "told", default, skip_serializing_if = "Vec::is_empty")]
        recalled_texts: Vec<RecalledText>,
        /// Input that the turn answers.
        input: InputId,
        /// Time at which the input was accepted. `None` in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted_at: Option<Timestamp>,
        /// Id of the HTTP request that brought the input, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// The person's message as the model receives it.
        message: String,
        /// Length of the original message, in Unicode characters.
        message_chars: usize,
        /// Local time at which the person sent the message, with its zone, as the model reads it in
        /// front of the message. `None`: the zone is not known, or an older journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent_at: Option<String>,
        /// Model that the turn started with and stays with.
        model: ModelId,
        /// True if that model ran on the person's own machine, so that nothing left it. `None` in
        /// older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        local: Option<bool>,
        /// Limits that the turn runs under.
        limits: TurnLimits,
        /// JSON Schema that the final answer must fit, if one was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Value>,
        /// Call that a person requested: the turn makes it and asks no model. `None`: the turn
        /// answers a message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<RequestedCall>,
        /// Tools and context that came with the message. `None`: none, or an older journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<Box<ClientSide>>,
        /// True if a program wrote the message that may not answer in the person's place. A call
        /// that it requested says so itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_others: bool,
    },
    /// A model call ended with a response or an error.
    ModelReplied {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Number of the model call in the turn, from 1.
        number: u32,
        /// The response, or the error after all retries.
        reply: Result<GenerateResponse, ModelError>,
        /// Duration of the call, in milliseconds.
        ms: u64,
        /// Number of requests sent, including retries. 0: none, because the request could not be
        /// made to fit.
        attempts: u32,
        /// Estimated size of the request in tokens, before it was sent. `None` in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counted: Option<u32>,
        /// Notices about what was left out so that the request fits.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<Notice>,
        /// Part of the conversation that the turn started from, recorded with its first call.
        /// `None` in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        // Boxed, like the limits and tools of a message: an event is as large as its largest
        // variant.
        past: Option<Box<GivenHistory>>,
    },
    /// Old turns were summarised; the summary replaces them in later requests. The turns themselves
    /// stay in the journal.
    ConversationSummarized {
        /// Turn that ran out of context window. `None`: a person asked for the summary between
        /// turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// Number of the model call that the summary precedes, from 1. 0: between turns.
        number: u32,
        /// The summary and the turns that it replaces.
        summary: Summary,
        /// Estimated size of the replaced turns, in tokens.
        before: u32,
        /// Estimated size of the summary, in tokens.
        after: u32,
        /// Token usage of the model call that wrote the summary.
        usage: Usage,
        /// Cost of that model call, if it is known.
        #[serde(default)]
        cost: Option<Cost>,
        /// Duration of the call, in milliseconds.
        ms: u64,
    },
    /// Summarising old turns failed; the conversation continues without a summary.
    SummaryFailed {
        /// Turn that ran out of context window. `None`: a person asked for the summary between
        /// turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// Number of the model call that the summary precedes, from 1. 0: between turns.
        number: u32,
        /// Cause of the failure, for the log.
        reason: String,
        /// True if the model was called; false if there was no budget for it.
        asked: bool,
        /// Token usage of the model call; empty without a response.
        usage: Usage,
        /// Cost of that model call, if it is known.
        #[serde(default)]
        cost: Option<Cost>,
        /// Duration of the call, in milliseconds.
        ms: u64,
    },
    /// The gate checked a call and decided about it.
    CallChecked {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// The gate's decision.
        verdict: GateVerdict,
        /// The corrections of the arguments, as a note for the model; see [`CheckedCall`]. `None`:
        /// the arguments were used as the model wrote them.
        ///
        /// [`CheckedCall`]: crate::CheckedCall
        #[serde(default, skip_serializing_if = "Option::is_none")]
        corrections: Option<String>,
    },
    /// The intent: the call is about to be executed. Durable before the tool runs.
    CallStarted {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// Name of the tool that is called.
        tool: String,
        /// Arguments of the call, with references resolved.
        arguments: Arguments,
        /// Idempotency key, which makes a repetition harmless if the receiver honours it.
        key: IdempotencyKey,
        /// Effect class, which decides whether the call may be repeated after a crash.
        effect: Effect,
    },
    /// A call was executed, and its result is known.
    CallFinished {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// Name of the tool that is called.
        tool: String,
        /// Arguments of the call, with references resolved.
        arguments: Arguments,
        /// Result as the model receives it.
        result: ToolResult,
        /// Description for the person: the tool's own after a success; after an interruption, a
        /// text that replaces the error.
        summary: Option<String>,
        /// Duration of the call, in milliseconds.
        ms: u64,
        /// Number of times the call was started, including starts before a crash.
        attempt: u32,
    },
    /// It is unknown whether the call had its effect. It is not repeated.
    CallInDoubt {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// Name of the tool that is called.
        tool: String,
        /// Arguments of the call, with references resolved.
        arguments: Arguments,
        /// Question for the person about it. `None` in older journals, where no person was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doubt: Option<PendingCall>,
    },
    /// A call in doubt was resolved, or stays unknown for good.
    DoubtResolved {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// Number of the start that was in doubt, as in [`crate::Doubt::attempt`].
        attempt: u32,
        /// Source of the resolution.
        by: ResolvedBy,
        /// Input with the person's answer, if a person gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<InputId>,
        /// [`Verdict::Done`], [`Verdict::Retry`] or [`Verdict::Leave`].
        verdict: Verdict,
    },
    /// The turn waits for confirmations, or for results that the caller computes.
    TurnParked {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Calls that wait for a person or for the caller.
        pending: Vec<PendingCall>,
        /// Text that the person was shown.
        content: String,
    },
    /// A pending call was answered or expired.
    CallAnswered {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// Input with the answer; `None` if the call expired.
        input: Option<InputId>,
        /// The answer; `None` if the call expired.
        verdict: Option<Verdict>,
        /// Arguments that the person entered instead of those shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<EditedCall>,
        /// Tool choice for the next model call, sent with the result of a call. The result itself
        /// is in its [`Event::CallFinished`].
        #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
        choice: ToolChoice,
        /// True if the person approved such calls of the tool for the rest of the conversation, as
        /// [`Answer::for_conversation`] says.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        for_conversation: bool,
    },
    /// A person approved a call without having seen what it does now: with other arguments, or after
    /// what its arguments stand for has changed. Nothing was executed; the call waits for
    /// confirmation as it is described here.
    CallEdited {
        /// The turn that waits for an answer.
        turn: TurnId,
        /// Input with the new arguments.
        input: InputId,
        /// The pending call, which replaces the previous one of the same call.
        pending: PendingCall,
    },
    /// An answer was invalid, such as an approval with arguments that do not fit the schema.
    /// Nothing was executed; the call keeps waiting.
    AnswerRefused {
        /// The turn that waits for an answer.
        turn: TurnId,
        /// The call that the event is about.
        call: CallId,
        /// Input that the event is about.
        input: InputId,
        /// Cause, as a message for the person.
        reason: String,
    },
    /// A message arrived while calls waited and was neither an approval nor a denial. The question
    /// is asked again; nothing was executed.
    AnswerUnclear {
        /// The turn that waits for an answer.
        turn: TurnId,
        /// Input that the event is about.
        input: InputId,
        /// The message as it was received.
        text: String,
    },
    /// The turn was stopped while calls with an effect were under way. The process that began them
    /// waits for their ends, records them, and then ends the turn. Until then they are in doubt: if
    /// that process is lost, a person is asked.
    TurnStopped {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Input that stopped the turn, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<InputId>,
        /// The calls that go on.
        calls: Vec<CallId>,
        /// Text for the person who stopped the turn.
        content: String,
    },
    /// A worker recovered the turn after the one that ran it was lost. Recorded before anything is
    /// repeated, so that a turn that brings down its worker each time is recognised.
    TurnTakenUp {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Worker that recovers the turn.
        worker: String,
    },
    /// A message is queued until the turn ends: it was accepted before the question that the turn
    /// waits with, so it is not an answer to it. It stays in the inbox.
    InputQueued {
        /// The turn that waits for an answer.
        turn: TurnId,
        /// Input that the event is about.
        input: InputId,
    },
    /// An input had nothing to act on, such as a cancellation without a turn.
    InputIgnored {
        /// Input that the event is about.
        input: InputId,
        /// Cause, for the log.
        reason: String,
    },
    /// A policy or an extension made a decision. Recorded for explanation; the turn does not depend
    /// on it.
    Decided {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Name of the policy or extension.
        by: String,
        /// Point in the turn at which it was asked.
        point: String,
        /// The decision, as JSON of its own form.
        value: Value,
    },
    /// The person left the terminal session. The next input continues the conversation.
    SessionEnded {},
    /// The turn ended with an outcome.
    TurnFinished {
        /// The turn that the event belongs to.
        turn: TurnId,
        /// Cancellation that ended the turn, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<InputId>,
        /// Outcome, answer and totals of the turn.
        end: TurnEnd,
    },
}

/// A text that automatic recall attached to a message. It is sent in front of the message, with the
/// same bytes in every later request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecalledText {
    /// Id of the fact, note or conversation that the text comes from, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text as the model receives it.
    pub text: String,
}

/// The gate's decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum GateVerdict {
    /// The call may be executed now.
    Run {
        /// Arguments with references resolved to ids.
        arguments: Arguments,
    },
    /// A person has to approve the call first.
    Confirm {
        /// The question that the person is shown.
        pending: PendingCall,
    },
    /// The caller executes the tool and submits its result.
    Await {
        /// The call as the caller receives it.
        pending: PendingCall,
    },
    /// A reference is ambiguous: the person has to say what is meant.
    Ask {
        /// Question that the person is asked.
        question: String,
    },
    /// The call does not run, and the model gets the reason as its result.
    Refuse {
        /// Reason as a value for programs.
        refusal: Refusal,
        /// Explanation for the model.
        message: String,
    },
}

/// Arguments that a person edited, after they passed the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditedCall {
    /// Arguments that are used, with references resolved to ids.
    pub arguments: Arguments,
    /// Hash over turn, call, tool and these arguments, by which an approval names exactly this
    /// call.
    pub digest: String,
}

/// The source that resolved a call in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedBy {
    /// The person who was asked.
    Person,
    /// The tool itself, by [`Tool::probe`](crate::Tool::probe).
    Probe,
    /// The expiry of the question without an answer.
    Expiry,
}

/// Reasons for which the gate refuses a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The agent has no tool of that name.
    UnknownTool,
    /// The arguments do not fit the tool's JSON Schema.
    InvalidArguments,
    /// The policy denies the tool.
    Forbidden,
    /// The person denied the same call earlier in this turn.
    DeniedBefore,
    /// The same call was interrupted in this turn and may have had its effect.
    InDoubt,
    /// Preparing the call failed in the tool ([`Tool::prepare`](crate::Tool::prepare)).
    Failed,
    /// The caller executes one call at a time, and this is a second one.
    OneAtATime,
}

/// The outcome of a turn with its answer and totals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The decision that ended the turn.
    pub decision: AgentDecision,
    /// The named category of the outcome.
    pub outcome: OutcomeCategory,
    /// The structured answer, if a schema was given and the answer fits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Token usage of all model calls.
    pub usage: Usage,
    /// Cost of all answered model calls, if it is known of each.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Number of rounds with tool calls.
    pub iterations: u32,
    /// The typed cause, unless the turn succeeded.
    pub error: Option<TurnError>,
    /// Notices for the person beside the answer, such as a truncated message.
    pub notices: Vec<Notice>,
    /// Calls of known tools with valid arguments, whether they ran, failed or were denied.
    #[serde(default)]
    pub tools_used: Vec<ToolInvocation>,
    /// Calls that failed and that no later success replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_calls: Vec<FailedCall>,
    /// Messages of the turn as they were stored: the person's first, and every call with its
    /// result. [`TurnEnd::history`] returns those for later requests.
    #[serde(default, deserialize_with = "stored_messages")]
    pub messages: Vec<Message>,
    /// True if the turn holds text of others, or the model had read some when it wrote the answer.
    /// False in journals of older versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_others: bool,
}

impl Event {
    /// Returns the turn that the event belongs to, if it belongs to one.
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
            | Self::TurnStopped { turn, .. }
            | Self::TurnTakenUp { turn, .. }
            | Self::Decided { turn, .. }
            | Self::TurnFinished { turn, .. } => Some(*turn),
            // A person may also ask for a summary between turns.
            Self::ConversationSummarized { turn, .. } | Self::SummaryFailed { turn, .. } => *turn,
        }
    }

    /// Returns the call that the event records the end of.
    pub(crate) fn invocation(&self) -> Option<ToolInvocation> {
        match self {
            Self::CallFinished {
                tool,
                arguments,
                result,
                ..
            } => Some(ToolInvocation {
                tool: tool.clone(),
                arguments: arguments.clone(),
                result: result.clone(),
            }),
            _ => None,
        }
    }

    /// Returns true if the event adds messages to later requests.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        matches!(self, Self::HistorySet { .. } | Self::TurnFinished { .. })
    }

    /// Returns the input that the event takes out of the inbox, in the transaction that records it.
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
            | Self::TurnStopped { input, .. }
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

    /// Returns the kind of the event as its serialised tag, such as `turn_started`.
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
            Self::TurnStopped { .. } => "turn_stopped",
            Self::TurnTakenUp { .. } => "turn_taken_up",
            Self::Decided { .. } => "decided",
            Self::SessionEnded {} => "session_ended",
            Self::TurnFinished { .. } => "turn_finished",
        }
    }
}
