//! The turn: what arrived goes in, what to do next comes out. A pure state machine.
//!
//! ```text
//! start -> CallModel -> on_model_result -> CallTools -> on_call_ends -> CallModel -> ...
//!                                       |            |-> AskUser -> on_call_ends (after the person answered)
//!                                       '-> Finish   '-> Finish
//! ```
//! Given the same setup and the same arrivals it takes the same way, so a turn can be rebuilt from
//! its journal at every step by feeding it what was recorded.

mod context_window;
mod decide;
mod exchange;
mod given_up;
mod reading;
mod replay;
mod round;
mod summarise;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

pub use context_window::{
    DoesNotFit, Fitted, Parts, READ_RESULT, Room, estimate_tokens, fit, message_tokens, parts_of,
    request_tokens, text_of,
};
pub(crate) use decide::is_control;
pub use decide::{ASK_USER, DECLINE};
use decide::{Decision, Ending, Unusable, control_functions, decide};
pub use exchange::{Action, OutOfOrder, StopReason, ToolStyle, TurnSetup};
pub use given_up::given_up;
use reading::{Reading, read};
pub(crate) use replay::replay;
pub use replay::said_in;
use round::Round;
use serde_json::Value;
pub use summarise::{Summarise, Unsummarised};

pub use crate::calibration::{Calibration, window_in};
pub use crate::call_end::CallEnd;
use crate::confirmation::PendingCall;
use crate::cost::Cost;
use crate::decision::{
    AgentDecision, DecisionKind, Notice, OutcomeCategory, TurnError, UserIntent,
};
use crate::error::ModelError;
use crate::event::{Refusal, RequestedCall, TurnEnd};
use crate::fingerprint::sorted;
use crate::id::CallId;
use crate::limits::{OUTPUT_TOKENS_MAX, TurnLimits};
use crate::message::{Content, InvalidMessage, Message, Part};
use crate::model::{GenerateRequest, GenerateResponse, Usage};
use crate::summary::{Recalled, Summary, put_block};
use crate::told;
use crate::tool::{Arguments, ToolCall, ToolDefinition, ToolInvocation, ToolResult};
use crate::tool_choice::ToolChoice;
pub use crate::trim::{cut, trim};
use crate::words;

/// Characters of an unusable answer that are kept for the log.
const RAW_CHARS_MAX: usize = 64 * 1024;

/// One turn, from an accepted message to its outcome.
#[derive(Debug, Clone)]
pub struct Turn {
    setup: TurnSetup,
    state: State,
    /// What this turn adds to the history.
    messages: Vec<Message>,
    notices: Vec<Notice>,
    /// Behind the transcript of a request that asks again; not kept.
    again: Vec<Message>,
    iterations: u32,
    calls_minted: u32,
    reasks: u32,
    usage: Usage,
    /// `None`: not known of every call.
    cost: Option<Cost>,
    asked_for: Vec<ToolCall>,
    identical: HashMap<String, u32>,
    used: Vec<ToolInvocation>,
    summaries: Vec<Done>,
    /// What failed and was not made good.
    failures: Vec<Failure>,
    succeeded: bool,
    approved: bool,
    denied: Vec<(String, Arguments)>,
    interrupted: Vec<(String, Arguments)>,
    expired: bool,
    /// A call may or may not have been carried out.
    left_open: bool,
    output: Option<Value>,
    /// The provider said that a request was too long; it was asked again with less.
    was_too_long: bool,
    /// Old turns could not be put into few words in this turn.
    unsummarised: bool,
}

/// The end of a call, in words for the person.
#[derive(Debug, Clone)]
enum Done {
    Words(String),
    /// The answer of a tool that has no words for it. It may be large, and is written only if
    /// somebody reads it.
    Data(Arc<Value>),
}

impl Done {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Words(words) => Cow::Borrowed(words),
            Self::Data(data) => Cow::Owned(data.to_string()),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Words(words) if words.is_empty())
    }
}

/// A call that failed or was refused.
#[derive(Debug, Clone)]
struct Failure {
    tool: String,
    /// What the log says.
    message: String,
    /// What the person reads, if the model does not say it.
    told: String,
    /// In which round of the turn.
    round: u32,
    /// There is no such tool, so nothing can have come of it.
    is_unknown: bool,
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
    /// Takes the person's message.
    ///
    /// # Errors
    /// [`InvalidMessage`] if there is nothing in it.
    pub fn new(setup: TurnSetup) -> Result<Self, InvalidMessage> {
        let mut text = setup.message.clone();
        let kept = text.chars().count();
        let mut notices = Vec::new();
        if kept < setup.message_chars {
            // The model is told, so that it does not take half a request for a whole one.
            text.push_str(&format!(
                "\n[The message was cut here: {kept} of {} characters.]",
                setup.message_chars
            ));
            notices.push(Notice {
                code: "message_cut".to_owned(),
                text: words::message_cut(kept, setup.message_chars),
            });
        }
        if let Some(block) = told::block(&setup.told) {
            text.insert_str(0, &block);
        }
        let messages = vec![Message::user(text)?];
        Ok(Self {
            setup,
            state: State::New,
            messages,
            notices,
            again: Vec::new(),
            iterations: 0,
            calls_minted: 0,
            reasks: 0,
            usage: Usage::default(),
            cost: Some(Cost::default()),
            asked_for: Vec::new(),
            identical: HashMap::new(),
            used: Vec::new(),
            summaries: Vec::new(),
            failures: Vec::new(),
            succeeded: false,
            approved: false,
            denied: Vec::new(),
            interrupted: Vec::new(),
            expired: false,
            left_open: false,
            output: None,
            was_too_long: false,
            unsummarised: false,
        })
    }

    /// Starts: the model is asked, or the call is made that a person asks for.
    ///
    /// # Errors
    /// [`OutOfOrder`] if it was started before.
    pub fn start(&mut self) -> Result<Action, OutOfOrder> {
        match &self.state {
            State::New => Ok(match self.setup.call.clone() {
                Some(call) => self.call_requested(call),
                None => self.call_model(),
            }),
            state @ (State::AwaitingModel
            | State::AwaitingTools(_)
            | State::AwaitingUser(_)
            | State::Finished) => Err(OutOfOrder {
                input: "a start",
                state: state.name(),
            }),
        }
    }

    /// The model answered, or failed.
    ///
    /// # Errors
    /// [`OutOfOrder`] unless the turn waits for the model.
    pub fn on_model_result(
        &mut self,
        result: Result<GenerateResponse, ModelError>,
    ) -> Result<Action, OutOfOrder> {
        match &self.state {
            State::AwaitingModel => Ok(match result {
                Ok(reply) => self.act_on(reply),
                // Once more, with less of the conversation: whoever sends it has learned how much
                // was too much.
                Err(ModelError::ContextTooLong { .. }) if !self.was_too_long => {
                    self.was_too_long = true;
                    self.call_model()
                }
                Err(error) => self.fail(error),
            }),
            state @ (State::New
            | State::AwaitingTools(_)
            | State::AwaitingUser(_)
            | State::Finished) => Err(OutOfOrder {
                input: "a model reply",
                state: state.name(),
            }),
        }
    }

    /// The request cannot be made to fit, so nobody was asked.
    ///
    /// # Errors
    /// [`OutOfOrder`] unless the turn waits for the model.
    pub fn on_unsendable(&mut self, error: ModelError) -> Result<Action, OutOfOrder> {
        self.was_too_long = true;
        self.on_model_result(Err(error))
    }

    /// Old turns were put into few words: they stand for them in [`Turn::request`] from now on.
    /// What that took counts as the turn's.
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

    /// Old turns could not be put into few words; that is not tried again in this turn.
    pub fn on_summary_failed(&mut self, usage: Usage, cost: Option<Cost>, notice: Notice) {
        self.usage = self.usage.plus(usage);
        self.cost = Cost::sum(self.cost, cost);
        self.unsummarised = true;
        self.add_notice(notice);
    }

    /// Whether old turns could not be put into few words in this turn.
    #[must_use]
    pub fn is_unsummarised(&self) -> bool {
        self.unsummarised
    }

    /// Whether the provider said that a request of this turn was too long.
    #[must_use]
    pub fn was_too_long(&self) -> bool {
        self.was_too_long
    }

    /// What it was given of the past.
    #[must_use]
    pub fn recalled(&self) -> &Recalled {
        &self.setup.recalled
    }

    /// How many messages at the end of [`Turn::request`] are its own.
    #[must_use]
    pub fn own_messages(&self) -> usize {
        self.messages.len() + self.again.len()
    }

    /// Calls ended: those of [`Action::CallTools`], or, after the person answered, those of
    /// [`Action::AskUser`].
    ///
    /// # Errors
    /// [`OutOfOrder`] unless the turn waits for them, or if one of them is missing or of another
    /// turn; then nothing has changed, and they can arrive again.
    pub fn on_call_ends(&mut self, ends: Vec<(CallId, CallEnd)>) -> Result<Action, OutOfOrder> {
        let mut round = match &self.state {
            State::AwaitingTools(round) | State::AwaitingUser(round) => round.clone(),
            state @ (State::New | State::AwaitingModel | State::Finished) => {
                return Err(OutOfOrder {
                    input: "the end of calls",
                    state: state.name(),
                });
            }
        };
        if !ends.iter().all(|(id, _)| round.has(id)) {
            return Err(OutOfOrder {
                input: "the end of another call",
                state: self.state.name(),
            });
        }
        let approved = round.take(ends);
        if !round.is_complete() {
            return Err(OutOfOrder {
                input: "the end of some calls only",
                state: "waiting for all of them",
            });
        }
        self.approved |= approved;
        self.state = State::Finished;
        let pending = round.pending();
        if pending.is_empty() {
            return Ok(self.after_round(round));
        }
        let content = round.words_while_waiting(&pending);
        self.state = State::AwaitingUser(round);
        Ok(Action::AskUser { pending, content })
    }

    /// Ends the turn from outside. `ends` are the calls that ended before; the others get a result
    /// that says why.
    pub fn stop(&mut self, reason: StopReason, ends: Vec<(CallId, CallEnd)>) -> Action {
        let (outcome, text, error) = match reason {
            StopReason::Cancelled => (OutcomeCategory::Cancelled, words::STOPPED, None),
            StopReason::Deadline => {
                let deadline = self.setup.limits.turn_deadline;
                let value = deadline
                    .map(|time| format!("{} s", time.as_secs_f64()))
                    .unwrap_or_default();
                let error = limit("turn deadline", value, "agent.turn_deadline");
                (OutcomeCategory::DeadlineLimit, words::DEADLINE, Some(error))
            }
            StopReason::Budget(exceeded) => (
                OutcomeCategory::BudgetLimit,
                words::budget(&exceeded),
                Some(exceeded.into()),
            ),
        };
        if let State::AwaitingTools(mut round) | State::AwaitingUser(mut round) =
            std::mem::replace(&mut self.state, State::Finished)
        {
            round.take(ends);
            self.close(round, "it was stopped before it ran");
        }
        let text = self.with_done(text);
        self.finish(self.plain_kind(), outcome, text, error)
    }

    /// Something the person should know beside the answer.
    pub fn add_notice(&mut self, notice: Notice) {
        notice.join(&mut self.notices);
    }

    /// Calls the person denied in this turn: tool and arguments. They are not asked again.
    #[must_use]
    pub fn denied(&self) -> &[(String, Arguments)] {
        &self.denied
    }

    /// Calls that were interrupted in this turn, and whose results nobody saw: tool and arguments.
    /// They are not made again.
    #[must_use]
    pub fn interrupted(&self) -> &[(String, Arguments)] {
        &self.interrupted
    }

    /// Returns the tool choice of the next model call.
    #[must_use]
    pub fn choice(&self) -> &ToolChoice {
        &self.setup.choice
    }

    /// Results of the caller's tools came, and with them what the model may call next.
    pub fn choose(&mut self, choice: ToolChoice) {
        self.setup.choice = choice;
    }

    /// The bounds it runs under.
    #[must_use]
    pub fn limits(&self) -> &TurnLimits {
        &self.setup.limits
    }

    /// How the model is trusted with tools.
    #[must_use]
    pub fn style(&self) -> ToolStyle {
        self.setup.style
    }

    /// Makes the one call of a turn that a person began without a model.
    fn call_requested(&mut self, requested: RequestedCall) -> Action {
        self.calls_minted += 1;
        let call = ToolCall {
            id: CallId::minted(self.setup.turn, self.calls_minted),
            ..ToolCall::from_object(0, None, requested.tool, requested.arguments)
        };
        let part = Part::ours(Content::ToolCall(call.clone()));
        self.messages.extend(Message::assistant(vec![part]).ok());
        self.asked_for.push(call.clone());
        self.state = State::AwaitingTools(Round::new(vec![call.clone()], None));
        Action::CallTools(vec![call])
    }

    fn act_on(&mut self, mut reply: GenerateResponse) -> Action {
        self.usage = self.usage.plus(reply.usage);
        self.cost = Cost::sum(self.cost, reply.cost);
        for loss in std::mem::take(&mut reply.losses) {
            self.add_notice(Notice::not_sent(loss));
        }
        // Where an answer has a form, that tells whether it can be used; one round of actions was
        // read before.
        let words_only = self.setup.output.is_some() || self.setup.style == ToolStyle::OneRound;
        let tools: &[ToolDefinition] = if words_only { &[] } else { &self.setup.tools };
        let read = decide(&reply, tools).and_then(|decision| self.as_chosen(decision));
        let decision = match read.and_then(|decision| self.in_form(decision)) {
            Ok(decision) => decision,
            Err(why) => return self.reask(&why, reply),
        };
        self.again.clear();
        self.reasks = 0;
        self.mint_call_ids(&mut reply.parts);
        let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
        // Only an empty list of parts is refused, and that was asked again above.
        self.messages.extend(Message::assistant(reply.parts).ok());
        self.asked_for
            .extend(calls.iter().filter(|call| !is_control(call)).cloned());
        match decision {
            Decision::Respond { text, cut, output } => self.respond(text, cut, output),
            Decision::End(ending) => {
                self.close(Round::new(calls, None), "");
                self.end(ending)
            }
            Decision::InvokeTools { ending } => self.invoke(calls, ending),
            Decision::Filtered { message } => {
                let provider = self.setup.model.provider.clone();
                self.fail(ModelError::Refused { provider, message })
            }
        }
    }

    /// Words, a question or a refusal where the caller wants a call are no answer.
    fn as_chosen(&self, decision: Decision) -> Result<Decision, Unusable> {
        match decision {
            Decision::Respond { cut: false, .. } | Decision::End(_)
                if self.setup.choice.requires_call() =>
            {
                Err(Unusable::NoCall)
            }
            decision => Ok(decision),
        }
    }

    /// Words that are to be JSON of a certain form are read as that. An answer that was cut is
    /// none.
    fn in_form(&self, decision: Decision) -> Result<Decision, Unusable> {
        match (decision, &self.setup.output) {
            (
                Decision::Respond {
                    text, cut: false, ..
                },
                Some(schema),
            ) => {
                let read = schema.read(&text).map_err(Unusable::Misfit)?;
                Ok(Decision::Respond {
                    text: read.text,
                    cut: false,
                    output: Some(read.value),
                })
            }
            (decision, _) => Ok(decision),
        }
    }

    fn respond(&mut self, text: String, cut: bool, output: Option<Value>) -> Action {
        if cut {
            let max = self
                .setup
                .config
                .max_tokens
                .map_or(OUTPUT_TOKENS_MAX, |max| max.get());
            self.add_notice(Notice {
                code: "answer_cut".to_owned(),
                text: words::answer_cut(max),
            });
            let error = limit(
                "output tokens",
                max.to_string(),
                "llm.max_tokens, or LLM_MAX_TOKENS",
            );
            return self.finish(
                self.plain_kind(),
                OutcomeCategory::MaxTokensLimit,
                text,
                Some(error),
            );
        }
        if output.is_some() {
            return self.conclude(text, output);
        }
        match self.reading(&text) {
            Reading::Question | Reading::Offer => {
                return self.finish(
                    DecisionKind::AskClarification,
                    OutcomeCategory::UnclearIntent,
                    text,
                    None,
                );
            }
            Reading::Refusal => {
                return self.finish(self.plain_kind(), OutcomeCategory::OutOfScope, text, None);
            }
            Reading::Answer => {}
        }
        // A model may call a failed tool a success; the tool's own words stand beside its answer
        // then.
        let text = match self.failures.last() {
            Some(Failure { told, .. }) if !text.contains(told.as_str()) => {
                format!("{}\n{told}", text.trim_end())
            }
            Some(_) | None => text,
        };
        self.conclude(text, None)
    }

    /// What the words of the model amount to. After something was changed, was refused by the
    /// person or went wrong, that is what the turn is; after something was looked up, an offer is a
    /// courtesy.
    fn reading(&self, text: &str) -> Reading {
        let only_read = self
            .used
            .iter()
            .all(|used| used.result.success && !self.changes(&used.tool));
        let went_well = self.failures.iter().all(|failure| failure.is_unknown);
        if self.setup.style == ToolStyle::OneRound
            || !only_read
            || !went_well
            || self.expired
            || self.left_open
        {
            return Reading::Answer;
        }
        match read(text) {
            Reading::Offer if !self.used.is_empty() => Reading::Answer,
            reading => reading,
        }
    }

    /// Whether a known tool does more than read.
    fn changes(&self, tool: &str) -> bool {
        self.knows(tool)
            .is_some_and(|known| !known.annotations.read_only)
    }

    fn knows(&self, tool: &str) -> Option<&ToolDefinition> {
        self.setup
            .tools
            .iter()
            .find(|known| known.name.as_str() == tool)
    }

    fn invoke(&mut self, calls: Vec<ToolCall>, ending: Option<Ending>) -> Action {
        for call in calls.iter().filter(|call| !is_control(call)) {
            // Two that cannot be read are the same if their text is.
            let unread = call
                .malformed
                .as_ref()
                .map_or("", |malformed| malformed.text.as_str());
            let key = format!(
                "{} {unread} {}",
                call.name,
                sorted(&serde_json::Value::Object(call.arguments.clone()))
            );
            let count = self.identical.entry(key).or_insert(0);
            *count += 1;
            if *count > self.setup.limits.identical_calls_max {
                let malformed = call
                    .malformed
                    .as_ref()
                    .map(|malformed| malformed.text.clone());
                self.close(
                    Round::new(calls, None),
                    "it was not run: the same call was made too often in this turn",
                );
                if let Some(raw) = malformed {
                    return self.fail(ModelError::InvalidResponse {
                        provider: self.setup.model.provider.clone(),
                        reason: "the arguments of its call could not be read, again and again"
                            .to_owned(),
                        raw: cut(&raw, RAW_CHARS_MAX).unwrap_or(raw),
                    });
                }
                let value = self.setup.limits.identical_calls_max.to_string();
                let error = limit("identical calls", value, "agent.identical_calls_max");
                let text = self.with_done(words::TOO_COMPLEX);
                return self.finish(
                    self.plain_kind(),
                    OutcomeCategory::IdenticalCallsLimit,
                    text,
                    Some(error),
                );
            }
        }
        let run = calls
            .iter()
            .filter(|call| !is_control(call))
            .cloned()
            .collect();
        self.state = State::AwaitingTools(Round::new(calls, ending));
        Action::CallTools(run)
    }

    fn after_round(&mut self, round: Round) -> Action {
        // Each round with a call of the caller's is one that the caller asked for by bringing the
        // result of the last.
        self.iterations += u32::from(!round.was_handed_over());
        let ending = round.ending.clone();
        let question = round.question();
        let was_left = round.has_no_result();
        self.close(round, "");
        if was_left {
            // Whoever would hear the answer has left, so nobody is asked for one.
            let text = self.with_done(words::NO_RESULT);
            return self.finish(self.plain_kind(), OutcomeCategory::NoResult, text, None);
        }
        match question.map(Ending::Ask).or(ending) {
            Some(ending) => self.end(ending),
            None if self.setup.style == ToolStyle::OneRound || self.setup.call.is_some() => {
                let done: Vec<Cow<'_, str>> = self.summaries.iter().map(Done::text).collect();
                let text = done.join("\n");
                self.conclude(text, None)
            }
            None if self.iterations >= self.setup.limits.tool_iterations_max => {
                let (bound, value, key) = words::iterations_bound(&self.setup.limits);
                let text = self.with_done(words::TOO_COMPLEX);
                let error = TurnError::Limit { bound, value, key };
                self.finish(
                    self.plain_kind(),
                    OutcomeCategory::IterationsLimit,
                    text,
                    Some(error),
                )
            }
            None => self.call_model(),
        }
    }

    /// Gives every call of a round its one result, and keeps what the rest of the turn needs of it.
    fn close(&mut self, round: Round, unrun: &str) {
        for (call, end) in round.calls {
            if let Some(begun) = end.as_ref().and_then(CallEnd::interrupted) {
                self.interrupted.push((call.name.clone(), begun.clone()));
            }
            let result = match end {
                None if is_control(&call) => ToolResult::ok("shown to the person".into()),
                Some(CallEnd::InDoubt { arguments }) => {
                    let preview = round.doubted.iter().find(|(id, _)| *id == call.id);
                    self.note_left_open(
                        &call.name,
                        arguments,
                        preview.map(|(_, preview)| preview.as_str()),
                    )
                }
                Some(CallEnd::Waiting(PendingCall {
                    arguments,
                    preview,
                    doubt: Some(_),
                    ..
                })) => self.note_left_open(&call.name, arguments, Some(&preview)),
                Some(CallEnd::Waiting(PendingCall {
                    awaits: Some(_), ..
                })) => ToolResult::failed(
                    "it was stopped before the program that was to do this brought a result; it is not known whether it was done",
                ),
                None | Some(CallEnd::Waiting(_)) => ToolResult::failed(unrun),
                Some(CallEnd::Executed {
                    arguments,
                    result,
                    summary,
                }) => {
                    self.note_executed(&call.name, &result, summary);
                    let told = if round.edited.contains(&call.id) {
                        result.clone().of_edited(&arguments)
                    } else {
                        result.clone()
                    };
                    self.note_used(&call.name, arguments, result);
                    told
                }
                Some(CallEnd::TakenAsDone { arguments }) => {
                    let result = ToolResult::taken_as_done();
                    self.note_executed(&call.name, &result, Some(words::CONFIRMED_DONE.to_owned()));
                    self.note_used(&call.name, arguments, result)
                }
                Some(CallEnd::Refused { refusal, message }) => {
                    self.note_refused(&call, refusal, message)
                }
                Some(CallEnd::Asked { question }) => {
                    ToolResult::failed(format!("not done; the person was asked: {question}"))
                }
                Some(CallEnd::Denied { arguments }) => {
                    self.denied.push((call.name.clone(), arguments.clone()));
                    self.summaries
                        .push(Done::Words(words::NOTHING_CHANGED.to_owned()));
                    let result = ToolResult::failed("the person refused this; it was not done");
                    self.note_used(&call.name, arguments, result)
                }
                Some(CallEnd::Expired { arguments }) => {
                    self.expired = true;
                    self.summaries.push(Done::Words(words::EXPIRED.to_owned()));
                    let result =
                        ToolResult::failed("nobody confirmed this in time; it was not done");
                    self.note_used(&call.name, arguments, result)
                }
                Some(CallEnd::NoResult { arguments }) => {
                    let result = ToolResult::failed(
                        "the program that was to do this brought no result in time; it is not known whether it was done",
                    );
                    self.note_used(&call.name, arguments, result)
                }
            };
            self.messages
                .extend(Message::tool(call.id, call.name, result).ok());
        }
    }

    fn note_left_open(
        &mut self,
        tool: &str,
        arguments: Arguments,
        preview: Option<&str>,
    ) -> ToolResult {
        self.left_open = true;
        let text = words::in_doubt(preview);
        self.summaries.push(Done::Words(text.clone()));
        self.add_notice(Notice {
            code: "in_doubt".to_owned(),
            text,
        });
        self.note_used(tool, arguments, ToolResult::left_open())
    }

    /// Adds a call to those that the answer lists, and returns its result.
    fn note_used(&mut self, tool: &str, arguments: Arguments, result: ToolResult) -> ToolResult {
        self.used.push(ToolInvocation {
            tool: tool.to_owned(),
            arguments,
            result: result.clone(),
        });
        result
    }

    fn note_refused(&mut self, call: &ToolCall, refusal: Refusal, message: String) -> ToolResult {
        let told = match refusal {
            // The tool's own words are for the person too; the others are for the model.
            Refusal::Failed => Some(message.clone()),
            // Where nothing may be called nobody has asked for a step.
            Refusal::UnknownTool if !self.may_call() => None,
            Refusal::UnknownTool | Refusal::InvalidArguments => {
                Some(words::CALL_NOT_DONE.to_owned())
            }
            Refusal::Forbidden => Some(words::NOT_ALLOWED.to_owned()),
            // The call that was made before says how the turn ended.
            Refusal::DeniedBefore | Refusal::InDoubt => None,
            // It is made again, one by one.
            Refusal::OneAtATime => None,
        };
        if let Some(told) = told {
            // The same model may try the same thing again and again; a person reads it once.
            if !matches!(self.summaries.last(), Some(Done::Words(last)) if *last == told) {
                self.summaries.push(Done::Words(told.clone()));
            }
            self.note_failure(
                &call.name,
                message.clone(),
                told,
                refusal == Refusal::UnknownTool,
            );
        }
        let result = ToolResult::failed(message);
        if matches!(
            refusal,
            Refusal::Forbidden | Refusal::DeniedBefore | Refusal::Failed
        ) {
            return self.note_used(&call.name, call.arguments.clone(), result);
        }
        result
    }

    /// Returns whether tools may be called: not if the limits or the tool choice allow words only.
    fn may_call(&self) -> bool {
        !self.setup.limits.words_only && self.setup.choice != ToolChoice::None
    }

    fn note_failure(&mut self, tool: &str, message: String, told: String, is_unknown: bool) {
        let (tool, round) = (tool.to_owned(), self.iterations);
        self.failures.push(Failure {
            tool,
            message,
            told,
            round,
            is_unknown,
        });
    }

    /// Forgets what a success of this tool makes good: what failed in earlier rounds, of this tool,
    /// or of tools that only read. Another change does not stand in for one that failed.
    fn make_good(&mut self, tool: &str) {
        let round = self.iterations;
        let mut failures = std::mem::take(&mut self.failures);
        failures.retain(|failure| {
            failure.round == round || (failure.tool != tool && self.changes(&failure.tool))
        });
        self.failures = failures;
    }

    fn note_executed(&mut self, tool: &str, result: &ToolResult, summary: Option<String>) {
        if result.success {
            self.succeeded = true;
            self.make_good(tool);
            self.summaries.push(match (summary, &result.data) {
                (None, Some(data)) => Done::Data(data.clone()),
                (summary, _) => Done::Words(summary.unwrap_or_default()),
            });
        } else {
            let message = result.error.clone().unwrap_or_default();
            let told = summary.unwrap_or_else(|| message.clone());
            self.summaries.push(Done::Words(told.clone()));
            self.note_failure(tool, message, told, false);
        }
    }

    /// The turn ends with a question or a refusal of the model.
    fn end(&mut self, ending: Ending) -> Action {
        let (kind, outcome, text) = match ending {
            Ending::Ask(text) => (
                DecisionKind::AskClarification,
                OutcomeCategory::UnclearIntent,
                text,
            ),
            Ending::Decline(text) => (self.plain_kind(), OutcomeCategory::OutOfScope, text),
        };
        let text = if text.is_empty() {
            words::SAY_MORE.to_owned()
        } else {
            text
        };
        let text = self.with_done(&text);
        self.finish(kind, outcome, text, None)
    }

    /// The turn ends as it was meant to.
    fn conclude(&mut self, text: String, output: Option<Value>) -> Action {
        if self.setup.output.is_some() && output.is_none() {
            // One round of constrained actions leaves no answer of the model that could have the
            // form.
            return self.fail(ModelError::InvalidResponse {
                provider: self.setup.model.provider.clone(),
                reason:
                    "it was given one round of actions, and the answer has to fit a JSON Schema"
                        .to_owned(),
                raw: text,
            });
        }
        let error = self.failures.last().map(|failure| TurnError::Tool {
            tool: failure.tool.clone(),
            message: failure.message.clone(),
        });
        let outcome = if self.left_open {
            OutcomeCategory::InDoubt
        } else if error.is_some() {
            OutcomeCategory::ToolFailure
        } else if self.succeeded {
            OutcomeCategory::TaskCompleted
        } else if !self.denied.is_empty() {
            OutcomeCategory::ConfirmationDenied
        } else if self.expired {
            OutcomeCategory::ConfirmationExpired
        } else {
            OutcomeCategory::ResponseGiven
        };
        self.output = output;
        self.finish(self.plain_kind(), outcome, text, error)
    }

    fn fail(&mut self, error: ModelError) -> Action {
        let outcome = match &error {
            ModelError::RateLimited { .. } | ModelError::Quota { .. } => {
                OutcomeCategory::RateLimited
            }
            ModelError::ContextTooLong { .. } => OutcomeCategory::ContextLimit,
            ModelError::Refused { .. } => OutcomeCategory::ContentFilter,
            ModelError::Timeout { .. }
            | ModelError::Network { .. }
            | ModelError::Server { .. }
            | ModelError::Authentication { .. }
            | ModelError::BadRequest { .. }
            | ModelError::NotFound { .. }
            | ModelError::InvalidResponse { .. }
            | ModelError::Truncated { .. } => OutcomeCategory::LlmFailure,
        };
        let text = self.with_done(&words::for_model_error(&error));
        self.finish(
            self.plain_kind(),
            outcome,
            text,
            Some(TurnError::Model { error }),
        )
    }

    /// Asks once more for an answer that cannot be used; nothing of it is kept.
    fn reask(&mut self, why: &Unusable, reply: GenerateResponse) -> Action {
        if self.reasks < self.setup.limits.reasks_max {
            self.reasks += 1;
            self.again.clear();
            if let Unusable::Misfit(_) = why {
                // The paths in the note mean something only beside what they are about.
                self.again.extend(Message::assistant(reply.parts).ok());
            }
            self.again
                .extend(Message::user(format!("[{}]", why.note())).ok());
            return self.call_model();
        }
        let reason = match why {
            Unusable::CutInCall | Unusable::CutInThought => {
                let max = self
                    .setup
                    .config
                    .max_tokens
                    .map_or(OUTPUT_TOKENS_MAX, |max| max.get());
                let error = limit(
                    "output tokens",
                    max.to_string(),
                    "llm.max_tokens, or LLM_MAX_TOKENS",
                );
                let text = self.with_done(words::TOO_COMPLEX);
                return self.finish(
                    self.plain_kind(),
                    OutcomeCategory::MaxTokensLimit,
                    text,
                    Some(error),
                );
            }
            Unusable::Empty => "the answer was empty, again".to_owned(),
            Unusable::MalformedCall => "the call in it was malformed, again".to_owned(),
            Unusable::NoCall => "it calls no tool, again, and the caller wants a call".to_owned(),
            Unusable::Misfit(places) => format!("it does not fit the JSON Schema, again: {places}"),
        };
        let raw = match why {
            Unusable::Misfit(_) | Unusable::NoCall => reply.text(),
            Unusable::Empty
            | Unusable::CutInCall
            | Unusable::CutInThought
            | Unusable::MalformedCall => serde_json::to_string(&reply.parts).unwrap_or_default(),
        };
        self.fail(ModelError::InvalidResponse {
            provider: self.setup.model.provider.clone(),
            reason,
            raw: cut(&raw, RAW_CHARS_MAX).unwrap_or(raw),
        })
    }

    fn call_model(&mut self) -> Action {
        self.state = State::AwaitingModel;
        Action::CallModel(Box::new(self.request()))
    }

    /// What the model is asked next, before it is fitted into a window.
    ///
    /// The same prefix gives the same bytes: instruction, tools and history change within a turn
    /// only where old turns are summarised, and what is new grows at the end.
    #[must_use]
    pub fn request(&self) -> GenerateRequest {
        let setup = &self.setup;
        let asks = setup.control_functions && !setup.tools.is_empty() && setup.choice.is_auto();
        let tools = match asks {
            true => setup.tools.with_controls(control_functions),
            false => &setup.tools,
        };
        let (native, prompted) = match &setup.output {
            Some(schema)
                if schema.is_of_an_object() && setup.schema_support.covers(!tools.is_empty()) =>
            {
                (Some(schema.as_json().clone()), None)
            }
            Some(schema) => (None, Some(schema.instruction())),
            None => (None, None),
        };
        let instruction = match prompted {
            Some(prompted) => format!("{}\n\n{prompted}", setup.instruction.trim_end()),
            None => setup.instruction.clone(),
        };
        let said = setup.recalled.messages.len() + self.messages.len() + self.again.len();
        let mut messages = Vec::with_capacity(1 + said);
        messages.extend(Message::system(instruction));
        messages.extend(setup.recalled.messages.iter().cloned());
        messages.extend(
            self.messages
                .iter()
                .take(1)
                .map(|message| self.with_context(message)),
        );
        messages.extend(self.messages.iter().skip(1).cloned());
        messages.extend(self.again.iter().cloned());
        if let Some(block) = self.summary_block() {
            put_block(&mut messages, &block);
        }
        GenerateRequest {
            tools: tools.clone(),
            config: setup.config.clone(),
            response_schema: native,
            tool_choice: setup.choice.clone(),
            ..GenerateRequest::new(messages)
        }
    }

    /// The person's message with what the caller knows in front of it.
    fn with_context(&self, message: &Message) -> Message {
        if self.setup.context.trim().is_empty() {
            return message.clone();
        }
        let context = Part::ours(Content::Text {
            text: format!("{}\n\n", self.setup.context.trim_end()),
        });
        let parts = std::iter::once(context)
            .chain(message.parts().iter().cloned())
            .collect();
        Message::new(message.role(), parts).unwrap_or_else(|_| message.clone())
    }

    /// What stands for old turns in its requests. A model that is given one round of actions reads
    /// only what was said last.
    #[must_use]
    pub fn summary_block(&self) -> Option<String> {
        let summary = self
            .setup
            .recalled
            .summary
            .as_ref()
            .filter(|_| self.setup.style == ToolStyle::Native);
        summary.map(Summary::block)
    }

    fn mint_call_ids(&mut self, parts: &mut [Part]) {
        for part in parts {
            if let Content::ToolCall(call) = &mut part.content {
                self.calls_minted += 1;
                call.id = CallId::minted(self.setup.turn, self.calls_minted);
            }
        }
    }

    /// Puts what was done before an unhappy end in front of it: an effect is never left unsaid.
    fn with_done(&self, text: &str) -> String {
        let done: Vec<Cow<'_, str>> = self
            .summaries
            .iter()
            .filter(|done| !done.is_empty())
            .map(Done::text)
            .collect();
        if done.is_empty() {
            text.to_owned()
        } else {
            format!("{}\n{text}", done.join("\n"))
        }
    }

    /// The kind of a turn that ends neither waiting nor asking.
    fn plain_kind(&self) -> DecisionKind {
        if self.approved {
            DecisionKind::ExecutePending
        } else if !self.denied.is_empty() || self.expired || self.left_open {
            DecisionKind::CancelPending
        } else if self.succeeded || !self.used.is_empty() {
            DecisionKind::InvokeTool
        } else {
            DecisionKind::RespondOnly
        }
    }

    fn intent(&self, kind: DecisionKind, outcome: OutcomeCategory) -> UserIntent {
        match (kind, outcome) {
            (DecisionKind::ExecutePending, _) => UserIntent::ConfirmYes,
            (DecisionKind::CancelPending, _) => UserIntent::ConfirmNo,
            (DecisionKind::AskClarification, _) => UserIntent::Ambiguous,
            (_, OutcomeCategory::OutOfScope) => UserIntent::OutOfScope,
            (
                DecisionKind::RespondOnly
                | DecisionKind::InvokeTool
                | DecisionKind::RequestConfirmation
                | DecisionKind::AwaitResult,
                _,
            ) => {
                self.used
                    .first()
                    .map(|used| UserIntent::of_tool(&used.tool))
                    .or_else(|| {
                        // What a model makes up is nothing that the person wanted.
                        let is_known = |call: &&ToolCall| {
                            self.setup.call.is_some() || self.knows(&call.name).is_some()
                        };
                        self.asked_for
                            .iter()
                            .find(is_known)
                            .map(|call| UserIntent::of_tool(&call.name))
                    })
                    .unwrap_or(UserIntent::GeneralChat)
            }
        }
    }

    fn finish(
        &mut self,
        kind: DecisionKind,
        outcome: OutcomeCategory,
        text: String,
        error: Option<TurnError>,
    ) -> Action {
        self.state = State::Finished;
        let text = if text.trim().is_empty() {
            words::DONE.to_owned()
        } else {
            text
        };
        // The next turn's model has to know what this one said, also where no model wrote it.
        let said = |last: &Message| last.text() == text || self.output.is_some();
        let last_said = self.messages.last().is_some_and(said);
        if !last_said {
            self.messages.extend(
                Message::assistant(vec![Part::ours(Content::Text { text: text.clone() })]).ok(),
            );
        }
        Action::Finish(Box::new(TurnEnd {
            decision: AgentDecision {
                kind,
                intent: self.intent(kind, outcome),
                text,
                tool_calls: std::mem::take(&mut self.asked_for),
                pending: Vec::new(),
            },
            outcome,
            output: self.output.take(),
            usage: self.usage,
            cost: self.cost,
            iterations: self.iterations,
            error,
            notices: std::mem::take(&mut self.notices),
            tools_used: std::mem::take(&mut self.used),
            messages: std::mem::take(&mut self.messages),
        }))
    }
}

fn limit(bound: &str, value: String, key: &str) -> TurnError {
    TurnError::Limit {
        bound: bound.to_owned(),
        value,
        key: key.to_owned(),
    }
}
