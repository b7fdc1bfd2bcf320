//! The turn: a pure state machine that takes what arrived and returns what to do next.
//!
//! ```text
//! start -> CallModel -> on_model_result -> CallTools -> on_call_ends -> CallModel -> ...
//!                                       |            |-> AskUser -> on_call_ends (the user answered)
//!                                       '-> Finish   '-> Finish
//! ```
//! The same setup and the same arrivals lead to the same actions, so a turn can be rebuilt from its
//! journal at every step by feeding it what was recorded.

mod context_window;
mod decide;
mod exchange;
mod finish;
mod given_up;
mod reading;
mod replay;
mod reply;
mod request;
mod round;
mod round_end;
mod summarise;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

pub use context_window::{
    DoesNotFit, Fitted, Parts, READ_RESULT, WindowCapacity, declaration_tokens, estimate_tokens,
    fit, message_tokens, parts_of, request_tokens, text_of,
};
pub(crate) use decide::is_control;
pub use decide::{ASK_USER, DECLINE};
pub use exchange::{Action, OutOfOrder, StopReason, ToolStyle, TurnSetup};
pub use given_up::given_up;
pub(crate) use replay::replay;
pub use replay::said_in;
pub use summarise::{Summarise, Unsummarised};

use round::Round;

pub use crate::calibration::{Calibration, window_in};
pub use crate::call_end::CallEnd;
pub use crate::trim::{cut, trim};

use crate::call_words::name_in_words;
use crate::cost::Cost;
use crate::decision::{Notice, TurnError};
use crate::error::ModelError;
use crate::event::RequestedCall;
use crate::id::CallId;
use crate::limits::TurnLimits;
use crate::message::{Content, InvalidMessage, Message, Part};
use crate::model::{GenerateResponse, Usage};
use crate::recall_block;
use crate::result_words::result_in_words;
use crate::sent_at;
use crate::summary::{Summary, TurnHistory};
use crate::tool::{Arguments, ToolCall, ToolInvocation};
use crate::tool_choice::ToolChoice;
use crate::words;

/// One turn, from a submitted message to its outcome.
///
/// A `Turn` performs no I/O and reads no clock. Its driver performs each [`Action`] that it
/// returns, and passes its result to the next method:
///
/// 1. [`Turn::start`], once.
/// 2. After [`Action::CallModel`]: [`Turn::on_model_result`], or [`Turn::on_unsendable`] if the
///    request did not fit the context window and was not sent.
/// 3. After [`Action::CallTools`] and [`Action::AskUser`]: [`Turn::on_call_ends`], with the ends of
///    all calls at once.
/// 4. [`Turn::stop`] in place of 2 or 3, if the turn was cancelled or a limit was exceeded.
/// 5. [`Action::Finish`] is the last action.
///
/// A method that is called out of this order returns [`OutOfOrder`] and changes nothing. Methods
/// without an action may be called at any time: [`Turn::add_notice`], [`Turn::choose`],
/// [`Turn::on_partial_answer`], and [`Turn::on_summary`], whose summary shortens the next
/// [`Turn::request`]. All others only read.
#[derive(Debug, Clone)]
pub struct Turn {
    setup: TurnSetup,
    state: State,
    /// The messages that this turn adds to the history.
    messages: Vec<Message>,
    notices: Vec<Notice>,
    /// Messages behind the transcript of a request that asks again; they are not kept.
    reask_messages: Vec<Message>,
    iterations: u32,
    calls_minted: u32,
    reasks: u32,
    usage: Usage,
    /// `None`: the cost of some call is not known.
    cost: Option<Cost>,
    requested_calls: Vec<ToolCall>,
    // By tool and arguments with sorted keys.
    identical: HashMap<String, u32>,
    invocations: Vec<ToolInvocation>,
    summaries: Vec<CallSummary>,
    /// Failures that no later success has replaced; see `clear_failures`.
    failures: Vec<Failure>,
    succeeded: bool,
    approved: bool,
    denied: Vec<(String, Arguments)>,
    interrupted: Vec<(String, Arguments)>,
    expired: bool,
    /// True if a call may or may not have been carried out.
    in_doubt: bool,
    output: Option<Value>,
    /// Text of an answer that broke off, as far as the user has read it.
    partial_answer: String,
    /// True if the provider said that a request was too long; it was then sent again with less.
    was_too_long: bool,
    /// True if old turns could not be summarised in this turn.
    unsummarised: bool,
}

/// The outcome of a call, as the user reads it.
#[derive(Debug, Clone)]
enum CallSummary {
    Text(String),
    /// The result of a tool that describes none. It may be large, and is formatted only if it is
    /// shown.
    Data {
        tool: String,
        data: Arc<Value>,
    },
}

impl CallSummary {
    /// Returns the text where it is the answer to a message.
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Data { data, .. } => Cow::Owned(result_in_words(data)),
        }
    }

    /// Returns the text where it is the answer to a call by a program: data as JSON.
    fn text_for_program(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Data { data, .. } => Cow::Owned(data.to_string()),
        }
    }

    /// Returns the text in front of words that end the turn early.
    fn mention(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Data { tool, .. } => Cow::Owned(words::carried_out(&name_in_words(tool))),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

/// A call that failed or was refused.
#[derive(Debug, Clone)]
struct Failure {
    tool: String,
    /// The message for the log.
    message: String,
    /// The message for the user, unless the model says the same.
    user_message: String,
    /// The round of the turn in which it failed.
    round: u32,
    /// True if there is no such tool, so that the call had no effect.
    is_unknown: bool,
}

impl Failure {
    fn error(&self) -> TurnError {
        TurnError::Tool {
            tool: self.tool.clone(),
            message: self.message.clone(),
        }
    }
}

#[derive(Debug, Clone)]
enum State {
    New,
    AwaitingModel,
    AwaitingTools(Round),
    AwaitingUser(Round),
    Finished,
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::New => "not started",
            Self::AwaitingModel => "waiting for the model",
            Self::AwaitingTools(_) => "waiting for tools",
            Self::AwaitingUser(_) => "waiting for a human",
            Self::Finished => "finished",
        }
    }
}

impl Turn {
    /// Creates a turn for the user's message.
    ///
    /// # Errors
    /// [`InvalidMessage`] if the message is empty.
    pub fn new(setup: TurnSetup) -> Result<Self, InvalidMessage> {
        let mut text = setup.message.clone();
        let kept = text.chars().count();
        let mut notices = Vec::new();
        if kept < setup.message_chars {
            // A note for the model too, so that it does not take half a request for a whole one.
            text.push_str(&format!(
                "\n[The message was cut here: {kept} of {} characters.]",
                setup.message_chars
            ));
            let text = words::message_cut(kept, setup.message_chars);
            notices.push(Notice::new("message_cut", text));
        }
        if let Some(local_time) = &setup.sent_at {
            text.insert_str(0, &sent_at::format(local_time));
        }
        if let Some(block) = recall_block::format(&setup.recalled_texts) {
            // Part of the message from here on: later requests repeat it with the same bytes, so
            // that prompt caches hold.
            text.insert_str(0, &block);
        }
        let messages = vec![Message::user(text)?];
        Ok(Self {
            setup,
            state: State::New,
            messages,
            notices,
            reask_messages: Vec::new(),
            iterations: 0,
            calls_minted: 0,
            reasks: 0,
            usage: Usage::default(),
            cost: Some(Cost::default()),
            requested_calls: Vec::new(),
            identical: HashMap::new(),
            invocations: Vec::new(),
            summaries: Vec::new(),
            failures: Vec::new(),
            succeeded: false,
            approved: false,
            denied: Vec::new(),
            interrupted: Vec::new(),
            expired: false,
            in_doubt: false,
            output: None,
            partial_answer: String::new(),
            was_too_long: false,
            unsummarised: false,
        })
    }

    /// Starts the turn: with a model call, or with the tool call that the user asks for.
    ///
    /// # Errors
    /// [`OutOfOrder`] if the turn was started before.
    pub fn start(&mut self) -> Result<Action, OutOfOrder> {
        let State::New = self.state else {
            return Err(self.out_of_order("a start"));
        };
        Ok(match self.setup.call.clone() {
            Some(call) => self.call_requested(call),
            None => self.call_model(),
        })
    }

    /// Takes the reply of the model, or its failure.
    ///
    /// # Errors
    /// [`OutOfOrder`] unless the turn waits for the model.
    pub fn on_model_result(
        &mut self,
        result: Result<GenerateResponse, ModelError>,
    ) -> Result<Action, OutOfOrder> {
        let State::AwaitingModel = self.state else {
            return Err(self.out_of_order("a model reply"));
        };
        Ok(match result {
            Ok(reply) => self.act_on(reply),
            // Once more, with less of the conversation: the sender has learned how much was too
            // much.
            Err(ModelError::ContextTooLong { .. }) if !self.was_too_long => {
                self.was_too_long = true;
                self.call_model()
            }
            Err(error) => self.fail(error),
        })
    }

    /// Takes the failure of a request that cannot be made to fit, so that it was never sent.
    ///
    /// # Errors
    /// [`OutOfOrder`] unless the turn waits for the model.
    pub fn on_unsendable(&mut self, error: ModelError) -> Result<Action, OutOfOrder> {
        // No request was sent, and no smaller one can be made: it is not tried once more.
        self.was_too_long = true;
        self.on_model_result(Err(error))
    }

    /// Takes a summary of old turns, which replaces them in [`Turn::request`] from now on. Usage
    /// and cost of making it count as the turn's.
    pub fn on_summary(
        &mut self,
        summary: Summary,
        usage: Usage,
        cost: Option<Cost>,
        notice: Notice,
    ) {
        self.usage = self.usage.plus(usage);
        self.cost = Cost::sum(self.cost, cost);
        self.setup.recalled.summarise(summary);
        self.add_notice(notice);
    }

    /// Takes the failure of a summary; it is not tried again in this turn.
    pub fn on_summary_failed(&mut self, usage: Usage, cost: Option<Cost>, notice: Notice) {
        self.usage = self.usage.plus(usage);
        self.cost = Cost::sum(self.cost, cost);
        self.unsummarised = true;
        self.add_notice(notice);
    }

    /// Returns true if old turns could not be summarised in this turn.
    #[must_use]
    pub fn is_unsummarised(&self) -> bool {
        self.unsummarised
    }

    /// Returns true if the provider said that a request of this turn was too long.
    #[must_use]
    pub fn was_too_long(&self) -> bool {
        self.was_too_long
    }

    /// Returns the part of the history that the turn was given.
    #[must_use]
    pub fn turn_history(&self) -> &TurnHistory {
        &self.setup.recalled
    }

    /// Returns how many messages at the end of [`Turn::request`] are the turn's.
    #[must_use]
    pub fn own_messages(&self) -> usize {
        self.messages.len() + self.reask_messages.len()
    }

    /// Takes the ends of calls: those of [`Action::CallTools`], or, after the user answered, those
    /// of [`Action::AskUser`].
    ///
    /// # Errors
    /// [`OutOfOrder`] unless the turn waits for them, or if one of them is missing or belongs to
    /// another turn; then nothing has changed, and they can arrive again.
    pub fn on_call_ends(&mut self, ends: Vec<(CallId, CallEnd)>) -> Result<Action, OutOfOrder> {
        let mut round = match &self.state {
            // A copy: an arrival that is refused below leaves the turn as it was.
            State::AwaitingTools(round) | State::AwaitingUser(round) => round.clone(),
            State::New | State::AwaitingModel | State::Finished => {
                return Err(self.out_of_order("the end of calls"));
            }
        };
        if !ends.iter().all(|(id, _)| round.has(id)) {
            return Err(self.out_of_order("the end of another call"));
        }
        let approved = round.take(ends);
        if !round.is_complete() {
            return Err(OutOfOrder {
                input: "the end of some calls only",
                state: "waiting for all of them",
            });
        }
        self.approved |= approved;
        // Unless something below goes on: no state is left in which the same ends could be taken
        // twice.
        self.state = State::Finished;
        let pending = round.pending();
        if pending.is_empty() {
            return Ok(self.after_round(round));
        }
        let content = round.words_while_waiting(&pending);
        self.state = State::AwaitingUser(round);
        Ok(Action::AskUser { pending, content })
    }

    /// Takes the text of a model's answer that did not get to its end, as far as the user has read
    /// it. It is kept in the history if [`Turn::stop`] or the failure of the call ends the turn.
    pub fn on_partial_answer(&mut self, text: String) {
        self.partial_answer = text;
    }

    /// Returns true if an answer without calls would be replaced by the words of failed calls, unless
    /// it has them, so that it is not shown while it comes.
    #[must_use]
    pub fn withholds_answer(&self) -> bool {
        let has_failed = self.setup.reports_failed_calls && !self.failures.is_empty();
        let may_be_false = self.setup.claims_change.is_some() && !self.has_changed();
        has_failed
            && (!self.succeeded || may_be_false)
            && !self.in_doubt
            && self.setup.output.is_none()
    }

    /// Adds a notice, which the user reads beside the answer.
    pub fn add_notice(&mut self, notice: Notice) {
        notice.join(&mut self.notices);
    }

    /// Returns true if the turn makes a call that a person requested, and asks no model.
    #[must_use]
    pub fn is_requested_call(&self) -> bool {
        self.setup.call.is_some()
    }

    /// Returns the calls that the user denied in this turn, with their arguments. They are not
    /// asked again.
    #[must_use]
    pub fn denied(&self) -> &[(String, Arguments)] {
        &self.denied
    }

    /// Returns the calls that were interrupted in this turn and whose results are unknown, with
    /// their arguments. They are not made again.
    #[must_use]
    pub fn interrupted(&self) -> &[(String, Arguments)] {
        &self.interrupted
    }

    /// Returns the tool choice of the next model call.
    #[must_use]
    pub fn choice(&self) -> &ToolChoice {
        &self.setup.choice
    }

    /// Sets the tool choice of the next model call, as it came with the results of the caller's
    /// tools.
    pub fn choose(&mut self, choice: ToolChoice) {
        self.setup.choice = choice;
    }

    /// Returns the bounds of the turn.
    #[must_use]
    pub fn limits(&self) -> &TurnLimits {
        &self.setup.limits
    }

    /// Returns the style in which the model calls tools.
    #[must_use]
    pub fn style(&self) -> ToolStyle {
        self.setup.style
    }

    /// Makes the one call of a turn that a user began without a model.
    fn call_requested(&mut self, requested: RequestedCall) -> Action {
        // From here on it is a call like those of models: gate, journal and replay know no other
        // kind.
        self.calls_minted += 1;
        let call = ToolCall {
            id: CallId::minted(self.setup.turn, self.calls_minted),
            ..ToolCall::from_object(0, None, requested.tool, requested.arguments)
        };
        let part = Part::ours(Content::ToolCall(call.clone()));
        self.messages.extend(Message::assistant(vec![part]).ok());
        self.requested_calls.push(call.clone());
        self.state = State::AwaitingTools(Round::new(vec![call.clone()], None));
        Action::CallTools(vec![call])
    }

    fn out_of_order(&self, input: &'static str) -> OutOfOrder {
        OutOfOrder {
            input,
            state: self.state.name(),
        }
    }

    fn call_model(&mut self) -> Action {
        self.state = State::AwaitingModel;
        self.partial_answer.clear();
        Action::CallModel(Box::new(self.request()))
    }
}
