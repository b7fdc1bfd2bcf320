//! What happens in a turn, as events. Every message, call and step that is opened is closed before
//! the run ends.

use std::collections::HashSet;

use adjutant_core::{
    AgentResponse, CallId, Message as Said, ModelId, OutcomeCategory, PendingCall, ToolCall,
    ToolRegistry, ToolResult, TurnId, Usage,
};
use adjutant_runtime::RunEvent;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::event::{Event, Interrupt, Message, Outcome, PROTOCOL_VERSION, TokenUsage};
use super::told::Told;
use super::transcript::{added_to, answer_id, end_id, result_id, result_text};
use crate::problem::Problem;
use crate::wire::{Timing, Usage as TurnUsage};

/// Turns what happens in one turn into the events of one run. Knows no socket and no clock.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    thread_id: String,
    run_id: String,
    model: ModelId,
    /// The tools there are: calls of others are between the model and us.
    tools: &'a ToolRegistry,
    /// Of the turn, once it is known.
    turn: Option<TurnId>,
    /// The model call that goes on, or was the last.
    call: u32,
    step: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    /// What the model said in its last call.
    said: String,
    /// The messages of the turn that the client has.
    told: Told,
    /// Of the model calls of this run, not of the whole turn.
    usage: Option<Usage>,
}

impl<'a> Encoder<'a> {
    /// `known`: messages that the client was sent in an earlier run, which goes on here.
    pub(crate) fn new(
        thread_id: String,
        run_id: String,
        (model, tools): (ModelId, &'a ToolRegistry),
        known: impl IntoIterator<Item = Message>,
    ) -> Self {
        Self {
            thread_id,
            run_id,
            model,
            tools,
            turn: None,
            call: 0,
            step: None,
            text: None,
            thinking: None,
            said: String::new(),
            told: Told::of(known),
            usage: None,
        }
    }

    /// The first event.
    pub(crate) fn started(&self) -> Event {
        Event::RunStarted {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            protocol_version: PROTOCOL_VERSION,
        }
    }

    /// The messages that were sent.
    pub(crate) fn sent(&self) -> &HashSet<String> {
        self.told.ids()
    }

    /// Something happened in the turn.
    pub(crate) fn on(&mut self, event: &RunEvent) -> Vec<Event> {
        let events = self.events_of(event);
        events.iter().for_each(|event| self.told.on(event));
        events
    }

    fn events_of(&mut self, event: &RunEvent) -> Vec<Event> {
        let mut events = Vec::new();
        match event {
            RunEvent::TurnStarted { turn, memory, .. } => {
                self.turn = Some(*turn);
                if !memory.is_empty() {
                    events.push(Event::Custom {
                        name: "memory",
                        value: json!({ "told": memory }),
                    });
                }
            }
            RunEvent::ModelStarted { number } => {
                self.close(&mut events);
                self.call = *number;
                self.said.clear();
                let step_name = format!("model {number}");
                self.step = Some(step_name.clone());
                events.push(Event::StepStarted { step_name });
            }
            RunEvent::Text(delta) => self.on_text(delta, &mut events),
            RunEvent::Thinking(delta) => self.on_thinking(delta, &mut events),
            RunEvent::Retrying { attempt, wait, .. } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let value = json!({ "attempt": attempt, "wait_ms": wait_ms });
                events.push(Event::Custom {
                    name: "retrying",
                    value,
                });
            }
            RunEvent::Reading(progress) => {
                let left_ms = progress
                    .left
                    .and_then(|left| u64::try_from(left.as_millis()).ok());
                let value =
                    json!({ "done": progress.done, "total": progress.total, "left_ms": left_ms });
                events.push(Event::Custom {
                    name: "reading",
                    value,
                });
            }
            RunEvent::ModelFinished { usage, .. } => {
                self.usage = Some(self.usage.map_or(*usage, |sum| sum.plus(*usage)));
                self.close(&mut events);
            }
            RunEvent::ToolStarted { call } => self.show_call(call, &mut events),
            RunEvent::ToolProgress { call, progress, .. } => {
                let value = json!({
                    "tool_call_id": call, "done": progress.done, "total": progress.total, "text": progress.to_string(),
                });
                events.push(Event::Custom {
                    name: "progress",
                    value,
                });
            }
            RunEvent::ToolFinished {
                call,
                result,
                summary,
                ms,
                ..
            } => {
                events.push(self.result(call, result, summary.as_deref(), Some(*ms)));
            }
            RunEvent::ConfirmationRequested { pending } => {
                for waiting in pending {
                    let call = ToolCall {
                        id: waiting.call_id.clone(),
                        provider_id: None,
                        name: waiting.tool.clone(),
                        arguments: waiting.arguments.clone(),
                        malformed: None,
                    };
                    self.show_call(&call, &mut events);
                }
            }
            RunEvent::RoundEnded { messages } => self.show_round(messages, &mut events),
            // Notices are in the decision.
            _ => {}
        }
        events
    }

    /// The turn ended or waits: everything closed, and what a client that follows lacks of `ours`,
    /// the messages of the turn. With `false` it does not follow, or cannot be led there by events,
    /// and needs all messages.
    pub(crate) fn said_all(
        &mut self,
        response: &AgentResponse,
        ours: Option<&[Message]>,
    ) -> (Vec<Event>, bool) {
        let mut events = self.closed();
        let lacking = ours.and_then(|ours| self.told.lacks(ours));
        let follows = lacking.is_some();
        events.extend(lacking.unwrap_or_else(|| self.last_words(response)));
        events.iter().for_each(|event| self.told.on(event));
        (events, follows)
    }

    /// The words a turn ended with, as far as no model said them.
    fn last_words(&self, response: &AgentResponse) -> Vec<Event> {
        let mut events = Vec::new();
        let text = added_to(&self.said, &response.decision.text);
        let waits = !response.decision.pending.is_empty();
        if !waits && !text.is_empty() {
            let message_id = end_id(response.turn);
            events.extend([
                Event::TextMessageStart {
                    message_id: message_id.clone(),
                    role: "assistant",
                },
                Event::TextMessageContent {
                    message_id: message_id.clone(),
                    delta: text,
                },
                Event::TextMessageEnd { message_id },
            ]);
        }
        events
    }

    /// Closes what is open.
    pub(crate) fn closed(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.close(&mut events);
        events
    }

    /// What was decided.
    pub(crate) fn decision(&self, response: &AgentResponse) -> Event {
        let value = json!({
            "decision_id": response.turn,
            "thread_id": response.conversation,
            "decision": response.decision.kind,
            "intent": response.decision.intent,
            "outcome": response.outcome,
            "content": response.content,
            "usage": TurnUsage::of(response, self.model.to_string()),
            "timing_ms": Timing::of(response),
            "notices": response.notices,
        });
        Event::Custom {
            name: "decision",
            value,
        }
    }

    /// The last event of a turn that ended or waits.
    pub(crate) fn finished(&self, response: &AgentResponse, now: Timestamp) -> Event {
        if let Some(problem) = Problem::of_turn(response, now) {
            return self.failed(&problem);
        }
        let (awaited, asked): (Vec<&PendingCall>, Vec<&PendingCall>) = response
            .decision
            .pending
            .iter()
            .partition(|call| call.awaits_result());
        let outcome = if !asked.is_empty() {
            // Calls of the client's tools beside them have no result, by which the client knows
            // them.
            Outcome::Interrupt {
                interrupts: asked.into_iter().map(interrupt).collect(),
            }
        } else if !awaited.is_empty() {
            Outcome::Success {
                pending_tool_call_ids: awaited
                    .into_iter()
                    .map(|call| call.call_id.to_string())
                    .collect(),
            }
        } else if response.outcome == OutcomeCategory::Cancelled {
            Outcome::Cancelled
        } else {
            Outcome::success()
        };
        let result = response
            .output
            .clone()
            .filter(|_| outcome == Outcome::success());
        self.ended(outcome, result)
    }

    /// The last event of a run that did not fail.
    pub(crate) fn ended(&self, outcome: Outcome, result: Option<Value>) -> Event {
        Event::RunFinished {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            result,
            outcome,
            usage: self.usage(),
        }
    }

    /// The last event of a run that failed.
    pub(crate) fn failed(&self, problem: &Problem) -> Event {
        let mut metadata = Map::new();
        if let Some(seconds) = problem.retry_after() {
            metadata.insert("retry_after".to_owned(), json!(seconds));
        }
        if let Some(budget) = problem.member("budget") {
            metadata.insert("budget".to_owned(), budget.clone());
        }
        Event::RunError {
            message: problem.detail().to_owned(),
            code: problem.code().to_owned(),
            metadata,
            usage: self.usage(),
        }
    }

    fn usage(&self) -> Vec<TokenUsage> {
        let Some(usage) = self.usage else {
            return Vec::new();
        };
        vec![TokenUsage {
            provider: self.model.provider.to_string(),
            model: self.model.name.clone(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total(),
            reasoning_tokens: usage.thinking_tokens,
            cached_input_tokens: usage.cached_tokens,
        }]
    }

    fn on_text(&mut self, delta: &str, events: &mut Vec<Event>) {
        self.close_thinking(events);
        self.said.push_str(delta);
        let message_id = match &self.text {
            Some(id) => id.clone(),
            None => {
                let id = self.answer_id();
                self.text = Some(id.clone());
                events.push(Event::TextMessageStart {
                    message_id: id.clone(),
                    role: "assistant",
                });
                id
            }
        };
        events.push(Event::TextMessageContent {
            message_id,
            delta: delta.to_owned(),
        });
    }

    fn on_thinking(&mut self, delta: &str, events: &mut Vec<Event>) {
        let message_id = match &self.thinking {
            Some(id) => id.clone(),
            None => {
                let id = format!("{}-thinking", self.answer_id());
                self.thinking = Some(id.clone());
                events.extend([
                    Event::ReasoningStart {
                        message_id: id.clone(),
                    },
                    Event::ReasoningMessageStart {
                        message_id: id.clone(),
                        role: "reasoning",
                    },
                ]);
                id
            }
        };
        events.push(Event::ReasoningMessageContent {
            message_id,
            delta: delta.to_owned(),
        });
    }

    /// A call, once: started again, or gone on with in another run, it is the same call.
    fn show_call(&self, call: &ToolCall, events: &mut Vec<Event>) {
        let id = call.id.to_string();
        let is_shown = |event: &Event| matches!(event, Event::ToolCallStart { tool_call_id, .. } if *tool_call_id == id);
        if !self.told.has_call(&id) && !events.iter().any(is_shown) {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            let call = super::event::ToolCall::new(id, call.name.clone(), arguments);
            events.extend(call.events(&self.answer_id()));
        }
    }

    /// The calls and results of a round that were not told while it went on: those that were
    /// refused, denied or in doubt.
    fn show_round(&self, messages: &[Said], events: &mut Vec<Event>) {
        for call in messages
            .iter()
            .flat_map(Said::tool_calls)
            .filter(|call| self.tools.has(&call.name))
        {
            self.show_call(call, events);
        }
        for (call, tool, result) in messages.iter().filter_map(Said::tool_result) {
            if self.tools.has(tool) && !self.told.has_result(call.as_str()) {
                events.push(self.result(call, result, None, None));
            }
        }
    }

    fn result(
        &self,
        call: &CallId,
        result: &ToolResult,
        summary: Option<&str>,
        ms: Option<u64>,
    ) -> Event {
        let message_id = result_id(call);
        let mut metadata = Map::new();
        metadata.insert("success".to_owned(), json!(result.success));
        if let Some(ms) = ms {
            metadata.insert("ms".to_owned(), json!(ms));
        }
        if let Some(summary) = summary {
            metadata.insert("summary".to_owned(), json!(summary));
        }
        Event::ToolCallResult {
            message_id,
            tool_call_id: call.to_string(),
            content: result_text(result),
            role: "tool",
            metadata,
        }
    }

    fn answer_id(&self) -> String {
        self.turn.map_or_else(
            || format!("{}-{}", self.run_id, self.call),
            |turn| answer_id(turn, self.call),
        )
    }

    fn close_thinking(&mut self, events: &mut Vec<Event>) {
        if let Some(message_id) = self.thinking.take() {
            events.extend([
                Event::ReasoningMessageEnd {
                    message_id: message_id.clone(),
                },
                Event::ReasoningEnd { message_id },
            ]);
        }
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        self.close_thinking(events);
        if let Some(message_id) = self.text.take() {
            events.push(Event::TextMessageEnd { message_id });
        }
        if let Some(step_name) = self.step.take() {
            events.push(Event::StepFinished { step_name });
        }
    }
}

/// What waits, as the person is asked, with the form of the answer.
fn interrupt(call: &PendingCall) -> Interrupt {
    let (reason, kind, schema) = match &call.doubt {
        None => (
            "confirmation",
            "confirmation",
            json!({
                "type": "object",
                "properties": {
                    "approved": { "type": "boolean", "description": "Only true is a yes." },
                    "editedArgs": { "type": "object", "description": "Other arguments to approve it with." },
                    "shown": {
                        "type": "string",
                        "description": "The id of the preview of editedArgs that the person was shown; without it they are asked about."
                    }
                },
                "required": ["approved"],
                "additionalProperties": false
            }),
        ),
        Some(_) => (
            "in_doubt",
            "doubt",
            json!({
                "type": "object",
                "properties": { "verdict": { "type": "string", "enum": ["done", "retry", "leave"] } },
                "required": ["verdict"],
                "additionalProperties": false
            }),
        ),
    };
    let mut metadata = Map::new();
    metadata.insert("tool".to_owned(), json!(call.tool));
    metadata.insert("args".to_owned(), Value::Object(call.arguments.clone()));
    metadata.insert("kind".to_owned(), json!(kind));
    if let Some(doubt) = &call.doubt {
        metadata.insert("since".to_owned(), json!(doubt.since));
    }
    Interrupt {
        id: call.digest.clone(),
        reason,
        message: call.preview.clone(),
        tool_call_id: call.call_id.to_string(),
        response_schema: schema,
        expires_at: call.expires_at,
        metadata,
    }
}
