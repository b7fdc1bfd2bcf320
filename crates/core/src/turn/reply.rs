//! Acting on a reply of the model: an answer, calls, or a request for another reply.

use serde_json::Value;

use super::decide::{Decision, Ending, Unusable, decide, is_control};
use super::finish::limit;
use super::reading::{Reading, read};
use super::round::Round;
use super::{Action, CallSummary, Failure, State, ToolStyle, Turn};
use crate::cost::Cost;
use crate::decision::{DecisionKind, Notice, OutcomeCategory, TurnError};
use crate::error::ModelError;
use crate::fingerprint::sorted;
use crate::id::CallId;
use crate::limit_name::LimitName;
use crate::limits::OUTPUT_TOKENS_MAX;
use crate::message::{Content, Message, Part};
use crate::model::GenerateResponse;
use crate::tool::{ToolCall, ToolDefinition};
use crate::tool_choice::ToolChoice;
use crate::words;

impl Turn {
    pub(super) fn act_on(&mut self, mut reply: GenerateResponse) -> Action {
        // First of all: an answer that turns out to be unusable was paid for, too.
        self.usage = self.usage.plus(reply.usage);
        self.cost = Cost::sum(self.cost, reply.cost);
        for loss in std::mem::take(&mut reply.losses) {
            self.add_notice(Notice::not_sent(loss));
        }
        // With an output schema the schema decides whether a text is usable; constrained tool calls
        // were decoded before.
        let words_only = self.setup.output.is_some() || self.setup.style == ToolStyle::OneRound;
        let tools: &[ToolDefinition] = if words_only { &[] } else { &self.setup.tools };
        let read = decide(&reply, tools).and_then(|decision| self.check_tool_choice(decision));
        let decision = match read.and_then(|decision| self.parse_output(decision)) {
            Ok(decision) => decision,
            Err(why) => return self.reask(&why, reply),
        };
        self.reask_messages.clear();
        // The bound is one of unusable answers in a row.
        self.reasks = 0;
        // Providers leave ids out or repeat them. These are unique in the conversation, and a
        // replay makes the same ones.
        self.mint_call_ids(&mut reply.parts);
        let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
        // Blank parts alone are refused: nothing is kept of a filtered answer without words.
        self.messages.extend(Message::assistant(reply.parts).ok());
        self.requested_calls
            .extend(calls.iter().filter(|call| !is_control(call)).cloned());
        match decision {
            Decision::Respond { text, cut, output } => self.respond(text, cut, output),
            Decision::End(ending) => {
                self.record_results(Round::new(calls, None), "");
                self.keep_words(&ending);
                self.end(ending)
            }
            Decision::InvokeTools { ending } => self.invoke(calls, ending),
            Decision::Filtered { message } => {
                let provider = self.setup.model.provider.clone();
                self.fail(ModelError::Refused { provider, message })
            }
        }
    }

    /// Checks the decision against the tool choice: text, a question or a refusal is no answer
    /// where the caller requires a call.
    pub(super) fn check_tool_choice(&self, decision: Decision) -> Result<Decision, Unusable> {
        match decision {
            Decision::Respond { cut: false, .. } | Decision::End(_)
                if self.setup.choice.requires_call() =>
            {
                Err(Unusable::NoCall(match &self.setup.choice {
                    ToolChoice::Named(tool) => Some(tool.clone()),
                    ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => None,
                }))
            }
            decision => Ok(decision),
        }
    }

    /// Parses the answer with the output schema, if there is one. An answer that was cut is not
    /// parsed.
    pub(super) fn parse_output(&self, decision: Decision) -> Result<Decision, Unusable> {
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

    pub(super) fn respond(&mut self, text: String, cut: bool, output: Option<Value>) -> Action {
        if output.is_none() && self.claims_falsely(&text) {
            let is_said = self.setup.reports_failed_calls && !self.unsaid_failures("").is_empty();
            let failure = self.failures.last().filter(|_| is_said);
            match failure.map(Failure::error) {
                Some(failure) => return self.conclude_failed(failure),
                None => self.note_false_claim(),
            }
        }
        if cut {
            let max = self.output_tokens_max();
            self.add_notice(Notice::new("answer_cut", words::answer_cut(max)));
            let error = limit(LimitName::OutputTokens, max.to_string());
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
        let (kind, outcome) = match self.classify(&text) {
            Reading::Question | Reading::Offer => (
                DecisionKind::AskClarification,
                OutcomeCategory::UnclearIntent,
            ),
            Reading::Refusal => (self.plain_kind(), OutcomeCategory::OutOfScope),
            Reading::Answer => {
                let text = self.with_failures(text);
                return self.conclude(text, None);
            }
        };
        self.finish(kind, outcome, text, None)
    }

    /// Returns an answer of the model with the messages of failed calls behind it, or in its place
    /// if no call succeeded: a model may call a failure a success. A question or a refusal claims
    /// nothing and stays.
    fn with_failures(&self, text: String) -> String {
        let unsaid = self.unsaid_failures(&text);
        if unsaid.is_empty() || !self.setup.reports_failed_calls {
            text
        } else if self.succeeded
            || self.in_doubt
            || matches!(read(&text), Reading::Question | Reading::Refusal)
        {
            format!("{}\n{}", text.trim_end(), unsaid.join("\n"))
        } else {
            let said: Vec<_> = self.summaries.iter().map(CallSummary::text).collect();
            said.join("\n")
        }
    }

    /// Returns the messages of failed calls that a text does not have, each once. The model may quote
    /// them.
    pub(super) fn unsaid_failures(&self, text: &str) -> Vec<&str> {
        let mut unsaid: Vec<&str> = Vec::new();
        for Failure { user_message, .. } in &self.failures {
            if !text.contains(user_message.as_str()) && !unsaid.contains(&user_message.as_str()) {
                unsaid.push(user_message);
            }
        }
        unsaid
    }

    /// Returns true if a text of the model says that something was changed, and nothing was in this
    /// turn. With constrained tool calls such a text is replaced where the answer is decoded.
    pub(super) fn claims_falsely(&self, text: &str) -> bool {
        let may_be_false =
            self.setup.style == ToolStyle::Native && !self.in_doubt && !self.has_changed();
        may_be_false && self.setup.claims_change.is_some_and(|claims| claims(text))
    }

    /// Returns true if a call that does more than read succeeded in this turn.
    pub(super) fn has_changed(&self) -> bool {
        // A tool that is not known any more may have changed something.
        let only_reads = |tool: &str| {
            self.tool(tool)
                .is_some_and(|known| known.annotations.read_only)
        };
        self.invocations
            .iter()
            .any(|used| used.result.success && !only_reads(&used.tool))
    }

    /// Adds the notice that nothing was changed, whatever the answer says.
    pub(super) fn note_false_claim(&mut self) {
        self.add_notice(Notice::new("nothing_changed", words::CLAIMED_CHANGE));
    }

    /// Classifies a text of the model. After something was changed, denied or failed, the turn is
    /// about that and the text is an answer; after something was read, an offer is a courtesy.
    pub(super) fn classify(&self, text: &str) -> Reading {
        let only_read = self
            .invocations
            .iter()
            .all(|used| used.result.success && !self.changes(&used.tool));
        let went_well = self.failures.iter().all(|failure| failure.is_unknown);
        if self.setup.style == ToolStyle::OneRound
            || !only_read
            || !went_well
            || self.expired
            || self.in_doubt
        {
            return Reading::Answer;
        }
        match read(text) {
            Reading::Offer if !self.invocations.is_empty() => Reading::Answer,
            reading => reading,
        }
    }

    /// Returns true if a known tool does more than read.
    pub(super) fn changes(&self, tool: &str) -> bool {
        self.tool(tool)
            .is_some_and(|known| !known.annotations.read_only)
    }

    /// Returns the tool of that name, if the turn has it.
    pub(super) fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        let mut tools = self.setup.tools.iter();
        tools.find(|tool| tool.name.as_str() == name)
    }

    pub(super) fn invoke(&mut self, calls: Vec<ToolCall>, ending: Option<Ending>) -> Action {
        for call in calls.iter().filter(|call| !is_control(call)) {
            // Two malformed calls are the same if their text is: neither has arguments.
            let malformed = call.malformed.as_ref().map(|malformed| &malformed.text);
            let key = format!(
                "{} {} {}",
                call.name,
                malformed.map_or("", String::as_str),
                sorted(&Value::Object(call.arguments.clone()))
            );
            let count = self.identical.entry(key).or_insert(0);
            *count += 1;
            // The same call with the same arguments brings the same result, and costs time and
            // money again.
            if *count > self.setup.limits.identical_calls_max {
                let malformed = malformed.cloned();
                self.record_results(
                    Round::new(calls, None),
                    "it was not run: the same call was made too often in this turn",
                );
                let reason = "the arguments of its call could not be read, again and again";
                return match malformed {
                    Some(raw) => self.fail_unusable(reason.to_owned(), raw),
                    None => self.finish_at(
                        LimitName::IdenticalCalls,
                        self.setup.limits.identical_calls_max,
                        OutcomeCategory::IdenticalCallsLimit,
                    ),
                };
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

    /// Asks once more for an answer that cannot be used; the answer is not kept in the history.
    pub(super) fn reask(&mut self, why: &Unusable, reply: GenerateResponse) -> Action {
        if self.reasks < self.setup.limits.reasks_max {
            self.reasks += 1;
            self.reask_messages.clear();
            if let Unusable::Misfit(_) = why {
                // The paths in the note mean something only beside the answer they are about.
                self.reask_messages
                    .extend(Message::assistant(reply.parts).ok());
            }
            self.reask_messages
                .extend(Message::user(format!("[{}]", why.note())).ok());
            return self.call_model();
        }
        let reason = match why {
            Unusable::CutInCall | Unusable::CutInThought => {
                return self.finish_at(
                    LimitName::OutputTokens,
                    self.output_tokens_max(),
                    OutcomeCategory::MaxTokensLimit,
                );
            }
            Unusable::Empty => "the answer was empty, again".to_owned(),
            Unusable::MalformedCall => "the call in it was malformed, again".to_owned(),
            Unusable::NoCall(tool) => {
                let error = self.unusable(
                    "it calls no tool, again, and the caller wants a call".to_owned(),
                    reply.text(),
                );
                return self.finish(
                    self.plain_kind(),
                    OutcomeCategory::LlmFailure,
                    self.with_summaries(&words::no_call(tool.as_deref())),
                    Some(TurnError::Model { error }),
                );
            }
            Unusable::Misfit(places) => format!("it does not fit the JSON Schema, again: {places}"),
        };
        let raw = match why {
            Unusable::Misfit(_) => reply.text(),
            Unusable::NoCall(_)
            | Unusable::Empty
            | Unusable::CutInCall
            | Unusable::CutInThought
            | Unusable::MalformedCall => serde_json::to_string(&reply.parts).unwrap_or_default(),
        };
        self.fail_unusable(reason, raw)
    }

    /// Returns the bound of one answer, in tokens.
    fn output_tokens_max(&self) -> u32 {
        let max = self.setup.config.max_tokens;
        max.map_or(OUTPUT_TOKENS_MAX, |max| max.get())
    }

    pub(super) fn mint_call_ids(&mut self, parts: &mut [Part]) {
        for part in parts {
            if let Content::ToolCall(call) = &mut part.content {
                self.calls_minted += 1;
                call.id = CallId::minted(self.setup.turn, self.calls_minted);
            }
        }
    }
}
