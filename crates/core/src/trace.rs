//! Traces: the steps of a turn with their durations, requests and responses, derived from its
//! events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conversation::given_history;
use crate::cost::{self, Cost};
use crate::decision::OutcomeCategory;
use crate::error::ModelError;
use crate::event::{Event, GateVerdict, Recorded, Refusal};
use crate::given_history::Loading;
use crate::id::TurnId;
use crate::message::{Content, Message};
use crate::model::{FinishReason, GenerateResponse, Usage};
use crate::redact::LogContent;
use crate::tool::ToolResult;
use crate::transcript::TranscriptMessage;
use crate::turn::replay;

/// The kind of a [`Step`], by what the time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Waiting in the queue, from the acceptance of the input to the beginning of its turn.
    Queue,
    /// Acquiring the lease and reading the state of the conversation.
    Load,
    /// A model call, including retries.
    Model,
    /// A tool call, executed or refused.
    Tool,
    /// Waiting for a person's answer or the caller's result.
    Wait,
    /// Everything else: the gate, the journal, the database.
    Engine,
}

/// A step of a turn: what happened, when, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Category of the time that was spent.
    pub kind: StepKind,
    /// Name of the model or tool, or what the turn waited for.
    pub name: String,
    /// Time at which the step began.
    pub started_at: Timestamp,
    /// Start in milliseconds after the input was accepted or, in older journals, after the turn
    /// started.
    pub offset_ms: u64,
    /// Duration in milliseconds. `None`: the step still runs.
    pub ms: Option<u64>,
    /// Number of requests of a model call, or of starts of a tool call, including retries and
    /// crashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Token usage of the model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Reason for which the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Cost of the model call. `None`: unknown, or not a model call.
    #[serde(rename = "cost_usd", default, with = "cost::in_usd")]
    pub cost: Option<Cost>,
    /// The request: messages of a model call (without the agent's instruction and tools), arguments
    /// of a tool, or the question to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The response: a model's answer, a tool's result, or a person's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The failure, if there is no usable response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// The steps of a turn in the order they began. Together they cover its time without a gap: those
/// that run side by side overlap, everything else adds up. Empty only if the turn has no beginning
/// among the events.
///
/// Of what was recorded before the turn, those events are enough that have what its first request
/// was given, if the turn says which ([`GivenHistory`](crate::GivenHistory)); else everything is needed.
#[must_use]
pub fn trace(events: &[Recorded], turn: TurnId, content: LogContent) -> Vec<Step> {
    let of_turn: Vec<&Recorded> = events
        .iter()
        .filter(|recorded| recorded.event.turn() == Some(turn))
        .collect();
    let Some(first) = of_turn.first() else {
        return Vec::new();
    };
    let Event::TurnStarted { accepted_at, .. } = &*first.event else {
        return Vec::new();
    };
    // The process that accepted the input may have a clock that is ahead of the worker's.
    let accepted = accepted_at.unwrap_or(first.at).min(first.at);
    let requests = replay(events, turn)
        .map(|replay| replay.requests)
        .unwrap_or_default();
    let reader = Reader {
        origin: accepted,
        content,
        of_turn: &of_turn,
        requests: &requests,
    };
    reader.read(first.at)
}

/// The events of a turn while its steps are derived.
struct Reader<'a> {
    origin: Timestamp,
    content: LogContent,
    of_turn: &'a [&'a Recorded],
    requests: &'a [Vec<Message>],
}

impl Reader<'_> {
    fn read(&self, started: Timestamp) -> Vec<Step> {
        let load = self.loading().map(|loading| self.load(loading));
        // An input that waited for its conversation: that was claimed and read before the turn
        // began.
        let until = load
            .as_ref()
            .map_or(started, |load| started.min(load.started_at));
        let mut steps = vec![self.step(StepKind::Queue, "queue", self.origin, Some(until))];
        steps.extend(load);
        for (at, recorded) in self.of_turn.iter().enumerate() {
            steps.extend(self.step_of(at, recorded));
        }
        steps.extend(self.model_without_reply());
        // Stable: steps that began in the same millisecond stay in the order of their events.
        steps.sort_by_key(|step| step.offset_ms);
        self.with_gaps(steps)
    }

    fn step_of(&self, place: usize, recorded: &Recorded) -> Option<Step> {
        let at = recorded.at;
        match &*recorded.event {
            Event::ModelReplied {
                number,
                reply,
                ms,
                attempts,
                ..
            } => {
                // A fallback model may have answered in the place of the turn's own.
                let name = match reply {
                    Ok(reply) => reply.model.to_string(),
                    Err(_) => self.model(),
                };
                let mut step = self.lasting(StepKind::Model, &name, at, *ms);
                step.attempt = Some(*attempts);
                step.request = self.request(*number);
                match reply {
                    Ok(reply) => {
                        step.usage = Some(reply.usage);
                        step.cost = reply.cost;
                        step.finish_reason = Some(reply.finish);
                        step.response = Some(self.response(reply));
                    }
                    Err(error) => step.error = Some(self.model_error(error)),
                }
                Some(step)
            }
            Event::ConversationSummarized {
                summary,
                usage,
                cost,
                ms,
                ..
            } => {
                let mut step = self.lasting(StepKind::Model, &self.model(), at, *ms);
                (step.usage, step.cost) = (Some(*usage), *cost);
                step.request = Some(json!({ "summary_of": summary.summarized_at }));
                step.response =
                    Some(json!({ "content": self.content.text(&summary.text), "tool_calls": [] }));
                Some(step)
            }
            Event::SummaryFailed {
                reason,
                asked: true,
                usage,
                cost,
                ms,
                ..
            } => {
                let mut step = self.lasting(StepKind::Model, &self.model(), at, *ms);
                (step.usage, step.cost) = (Some(*usage), *cost);
                step.error = Some(self.error("summary_failed", reason));
                Some(step)
            }
            Event::CallFinished {
                tool,
                arguments,
                result,
                ms,
                attempt,
                ..
            } => {
                let mut step = self.lasting(StepKind::Tool, tool, at, *ms);
                step.attempt = Some(*attempt);
                step.request = Some(json!({ "args": self.content.arguments(arguments) }));
                step.response = Some(json!(self.result(result)));
                step.error = result
                    .error
                    .as_ref()
                    .filter(|_| !result.success)
                    .map(|error| self.error("tool_failure", error));
                Some(step)
            }
            Event::CallChecked { call, verdict, .. } => {
                let (code, words) = match verdict {
                    GateVerdict::Refuse {
                        refusal: Refusal::UnknownTool,
                        message,
                    } => ("unknown_tool", message),
                    GateVerdict::Refuse { message, .. } => ("refused", message),
                    GateVerdict::Ask { question } => ("asked", question),
                    GateVerdict::Run { .. }
                    | GateVerdict::Confirm { .. }
                    | GateVerdict::Await { .. } => {
                        return None;
                    }
                };
                let mut step = self.lasting(StepKind::Tool, &self.tool_of(call.as_str()), at, 0);
                step.error = Some(self.error(code, words));
                Some(step)
            }
            Event::TurnParked {
                pending, content, ..
            } => {
                let name = match OutcomeCategory::waiting_for(pending) {
                    OutcomeCategory::InDoubt => "in_doubt",
                    OutcomeCategory::PendingResult => "result",
                    _ => "confirmation",
                };
                let answers = self.answers(place);
                let mut step = self.step(StepKind::Wait, name, at, answers.1);
                let calls: Vec<Value> = pending
                    .iter()
                    .map(|call| {
                        json!({
                            "call_id": call.call_id,
                            "tool": call.tool,
                            "args": self.content.arguments(&call.arguments),
                            "preview": self.content.text(&call.preview),
                            "expires_at": call.expires_at,
                        })
                    })
                    .collect();
                step.request =
                    Some(json!({ "content": self.content.text(content), "pending": calls }));
                step.response = (!answers.0.is_empty()).then(|| json!({ "answers": answers.0 }));
                Some(step)
            }
            _ => None,
        }
    }

    fn loading(&self) -> Option<Loading> {
        given_history(self.of_turn.iter().map(|recorded| &*recorded.event))
            .and_then(|past| past.loading)
    }

    fn load(&self, loading: Loading) -> Step {
        let mut step = self.lasting(StepKind::Load, "load", loading.at, loading.ms);
        step.response = Some(json!({ "events": loading.events }));
        step
    }

    /// Returns the answers that came after the turn parked with sequence number `parked`, and the
    /// time at which it continued or ended.
    fn answers(&self, parked: usize) -> (Vec<Value>, Option<Timestamp>) {
        let (mut answers, mut until) = (Vec::new(), None);
        for recorded in self.of_turn.iter().skip(parked + 1) {
            match &*recorded.event {
                Event::CallAnswered { call, verdict, .. } => {
                    let answer = verdict.map_or_else(|| json!("expired"), |verdict| json!(verdict));
                    answers.push(json!({ "call_id": call, "verdict": answer, "at": recorded.at }));
                    until = Some(recorded.at);
                }
                Event::DoubtResolved {
                    call, verdict, by, ..
                } => {
                    answers.push(
                        json!({ "call_id": call, "verdict": verdict, "by": by, "at": recorded.at }),
                    );
                    until = Some(recorded.at);
                }
                Event::AnswerUnclear { text, .. } => {
                    answers.push(json!({ "unclear": self.content.text(text), "at": recorded.at }));
                }
                Event::CallEdited { pending, .. } => {
                    answers.push(
                        json!({ "call_id": pending.call_id, "edited": true, "at": recorded.at }),
                    );
                    until = Some(recorded.at);
                }
                Event::AnswerRefused { call, reason, .. } => {
                    answers.push(
                        json!({ "call_id": call, "refused": self.content.text(reason), "at": recorded.at }),
                    );
                }
                Event::TurnFinished { .. } => {
                    until = until.or(Some(recorded.at));
                    break;
                }
                // The question was repeated, or the turn continued.
                Event::TurnParked { .. }
                | Event::ModelReplied { .. }
                | Event::CallStarted { .. } => break,
                _ => {}
            }
        }
        // An answer to one of several lets the turn wait for the others.
        let all = self
            .of_turn
            .get(parked)
            .is_some_and(|recorded| match &*recorded.event {
                Event::TurnParked { pending, .. } => pending.iter().all(|call| {
                    let id = json!(call.call_id);
                    answers
                        .iter()
                        .any(|answer| answer["call_id"] == id && answer["verdict"] != Value::Null)
                }),
                _ => false,
            });
        let ended = self
            .of_turn
            .last()
            .is_some_and(|last| matches!(*last.event, Event::TurnFinished { .. }));
        (answers, until.filter(|_| all || ended))
    }

    /// Returns the model call that is running, or was given up with the turn.
    fn model_without_reply(&self) -> Option<Step> {
        let number = u32::try_from(self.requests.len()).ok()?;
        let replied = self.of_turn.iter().any(
            |recorded| matches!(&*recorded.event, Event::ModelReplied { number: known, .. } if *known == number),
        );
        let last = self.of_turn.last()?;
        if replied || number == 0 {
            return None;
        }
        let (until, words) = match &*last.event {
            Event::TurnFinished { end, .. } => match end.outcome {
                OutcomeCategory::Cancelled => (Some(last.at), "it was stopped before it answered"),
                OutcomeCategory::DeadlineLimit => (
                    Some(last.at),
                    "the time of the turn was up before it answered",
                ),
                // No model call was started.
                _ => return None,
            },
            _ => (None, ""),
        };
        let ends = self.of_turn.len() - usize::from(until.is_some());
        let began = self.of_turn.get(..ends)?.last()?.at;
        let mut step = self.step(StepKind::Model, &self.model(), began, until);
        step.request = self.request(number);
        step.error = until.map(|_| json!({ "code": "stopped", "message": words }));
        Some(step)
    }

    /// Fills gaps between steps by engine steps of at least a millisecond.
    fn with_gaps(&self, steps: Vec<Step>) -> Vec<Step> {
        let ended = self
            .of_turn
            .last()
            .filter(|last| matches!(*last.event, Event::TurnFinished { .. }));
        let end = ended.map(|last| self.offset(last.at));
        let mut covered = Some(0);
        let mut all = Vec::with_capacity(steps.len());
        for step in steps {
            // A step that still runs covers everything behind it.
            if let Some(until) = covered {
                all.extend(self.gap(until, step.offset_ms));
                covered = step.ms.map(|ms| until.max(step.offset_ms + ms));
            }
            all.push(step);
        }
        if let (Some(until), Some(end)) = (covered, end) {
            all.extend(self.gap(until, end));
        }
        all
    }

    fn gap(&self, from: u64, to: u64) -> Option<Step> {
        let ms = to.checked_sub(from).filter(|ms| *ms > 0)?;
        let started = i64::try_from(from)
            .ok()
            .map(jiff::SignedDuration::from_millis);
        let started = started
            .and_then(|from| self.origin.checked_add(from).ok())
            .unwrap_or(self.origin);
        let mut step = self.step(StepKind::Engine, "engine", started, None);
        (step.offset_ms, step.ms) = (from, Some(ms));
        Some(step)
    }

    /// Returns a step from its end and duration.
    fn lasting(&self, kind: StepKind, name: &str, ended: Timestamp, ms: u64) -> Step {
        let end = self.offset(ended);
        let lasted = jiff::SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
        let started = ended
            .checked_sub(lasted)
            .unwrap_or(self.origin)
            .max(self.origin);
        let mut step = self.step(kind, name, started, None);
        (step.offset_ms, step.ms) = (end.saturating_sub(ms), Some(ms));
        step
    }

    fn step(
        &self,
        kind: StepKind,
        name: &str,
        started: Timestamp,
        until: Option<Timestamp>,
    ) -> Step {
        let offset = self.offset(started);
        Step {
            kind,
            name: name.to_owned(),
            started_at: started,
            offset_ms: offset,
            ms: until.map(|until| self.offset(until).saturating_sub(offset)),
            attempt: None,
            usage: None,
            finish_reason: None,
            cost: None,
            request: None,
            response: None,
            error: None,
        }
    }

    fn offset(&self, at: Timestamp) -> u64 {
        u64::try_from(at.as_millisecond() - self.origin.as_millisecond()).unwrap_or(0)
    }

    /// Returns the messages of a model call. Leading messages that the previous call had too are
    /// counted and not repeated.
    fn request(&self, number: u32) -> Option<Value> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let messages = self.requests.get(at)?;
        let before = at
            .checked_sub(1)
            .and_then(|before| self.requests.get(before));
        let repeated = before.map_or(0, |before| {
            before
                .iter()
                .zip(messages)
                .take_while(|(before, now)| before == now)
                .count()
        });
        let new: Vec<TranscriptMessage> = messages
            .iter()
            .skip(repeated)
            .map(|message| self.message(message))
            .collect();
        Some(json!({ "repeated": repeated, "messages": new }))
    }

    fn message(&self, message: &Message) -> TranscriptMessage {
        let mut shown = TranscriptMessage::from_message(message);
        shown.content = self.content.text(&shown.content);
        for call in &mut shown.tool_calls {
            call.arguments = self.content.arguments(&call.arguments);
        }
        shown.result = shown.result.map(|result| self.result(&result));
        shown
    }

    fn response(&self, reply: &GenerateResponse) -> Value {
        let thinking: String = reply
            .parts
            .iter()
            .filter_map(|part| match &part.content {
                Content::Thinking { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let calls: Vec<Value> = reply
            .tool_calls()
            .map(|call| json!({ "tool": call.name, "args": self.content.arguments(&call.arguments) }))
            .collect();
        let mut response =
            json!({ "content": self.content.text(&reply.text()), "tool_calls": calls });
        if !thinking.is_empty() {
            response["thinking"] = json!(self.content.text(&thinking));
        }
        if !reply.losses.is_empty() {
            response["losses"] = json!(reply.losses);
        }
        response
    }

    fn model_error(&self, error: &ModelError) -> Value {
        let mut shown = self.error(error.code(), &error.to_string());
        if let Some(raw) = error.raw() {
            shown["raw"] = json!(self.content.text(raw));
        }
        shown
    }

    fn error(&self, code: &str, words: &str) -> Value {
        json!({ "code": code, "message": self.content.text(words) })
    }

    fn result(&self, result: &ToolResult) -> ToolResult {
        self.content.result(result)
    }

    /// Returns the model that the turn started with.
    fn model(&self) -> String {
        match self.of_turn.first().map(|first| &*first.event) {
            Some(Event::TurnStarted { model, .. }) => model.to_string(),
            _ => String::new(),
        }
    }

    /// Returns the tool of a call that did not run, as the model wrote it.
    fn tool_of(&self, wanted: &str) -> String {
        // A call that did not run has no event with its tool, only the answer that asked for it.
        let calls = self.requests.iter().flatten().flat_map(Message::tool_calls);
        let ended = self
            .of_turn
            .iter()
            .find_map(|recorded| match &*recorded.event {
                Event::TurnFinished { end, .. } => {
                    Some(end.messages.iter().flat_map(Message::tool_calls))
                }
                _ => None,
            });
        let mut all = calls.chain(ended.into_iter().flatten());
        all.find(|call| call.id.as_str() == wanted)
            .map_or_else(|| "unknown".to_owned(), |call| call.name.clone())
    }
}
