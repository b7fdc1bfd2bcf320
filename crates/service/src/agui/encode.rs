//! Encoding of a turn's events as AG-UI events. Every message, call and step that is opened is
//! closed before the run ends.

use std::collections::HashSet;

use adjutant_core::{
    AgentResponse, CallId, Message as AgentMessage, ModelId, OutcomeCategory, PendingCall,
    ToolCall, ToolRegistry, ToolResult, TurnId, Usage,
};
use adjutant_runtime::{Agent, RunEvent};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::client_view::ClientView;
use super::event::{Event, Interrupt, Message, Outcome, PROTOCOL_VERSION, TokenUsage};
use super::transcript::{added_text, answer_id, end_id, result_id, result_text};
use crate::problem::Problem;
use crate::wire::{Timing, Usage as TurnUsage};

/// The agent whose turn is encoded.
#[derive(Debug)]
pub(crate) struct AgentInfo<'a> {
    model: ModelId,
    tools: &'a ToolRegistry,
}

impl<'a> AgentInfo<'a> {
    pub(crate) fn new(agent: &'a Agent) -> Self {
        Self {
            model: agent.model().id().clone(),
            tools: agent.tools(),
        }
    }
}

/// Encoder of one run's events. Does no I/O and reads no clock.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    thread_id: String,
    run_id: String,
    model: ModelId,
    /// The agent's tools. Calls of others, such as `ask_user`, are internal and not shown.
    tools: &'a ToolRegistry,
    /// The turn, once it is known.
    turn: Option<TurnId>,
    /// Number of the current or last model call.
    call: u32,
    step: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    /// Text of the last model call.
    model_text: String,
    /// The messages of the turn as the client has them.
    client: ClientView,
    /// Usage of the model calls of this run, which may be a part of the turn.
    usage: Option<Usage>,
}

impl<'a> Encoder<'a> {
    /// Creates an encoder. `known` are messages of the turn that the client has from an earlier
    /// run.
    pub(crate) fn new(
        thread_id: String,
        run_id: String,
        AgentInfo { model, tools }: AgentInfo<'a>,
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
            model_text: String::new(),
            client: ClientView::new(known),
            usage: None,
        }
    }

    /// Returns the first event of the run.
    pub(crate) fn run_started(&self) -> Event {
        Event::RunStarted {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            protocol_version: PROTOCOL_VERSION,
        }
    }

    /// Returns the client's name of the run.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the ids of the messages that were sent.
    pub(crate) fn sent(&self) -> &HashSet<String> {
        self.client.ids()
    }

    /// Encodes an event of the turn.
    pub(crate) fn encode(&mut self, event: &RunEvent) -> Vec<Event> {
        let events = self.encode_event(event);
        events.iter().for_each(|event| self.client.apply(event));
        events
    }

    fn encode_event(&mut self, event: &RunEvent) -> Vec<Event> {
        let mut events = Vec::new();
        match event {
            RunEvent::TurnStarted { turn, memory, .. } => {
                self.turn = Some(*turn);
                if !memory.is_empty() {
                    events.push(Event::custom("memory", json!({ "told": memory })));
                }
            }
            RunEvent::ModelStarted { number } => {
                self.close(&mut events);
                self.call = *number;
                self.model_text.clear();
                let step_name = format!("model {number}");
                self.step = Some(step_name.clone());
                events.push(Event::StepStarted { step_name });
            }
            RunEvent::Text(delta) => self.on_text(delta, &mut events),
            RunEvent::Thinking(delta) => self.on_thinking(delta, &mut events),
            RunEvent::Retrying { attempt, wait, .. } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let value = json!({ "attempt": attempt, "wait_ms": wait_ms });
                events.push(Event::custom("retrying", value));
            }
            RunEvent::Reading(progress) => {
                let left_ms = progress
                    .left
                    .and_then(|left| u64::try_from(left.as_millis()).ok());
                let value =
                    json!({ "done": progress.done, "total": progress.total, "left_ms": left_ms });
                events.push(Event::custom("reading", value));
            }
            RunEvent::ModelFinished { usage, .. } => {
                // Summed here and not taken from the turn: after a confirmation the turn's usage
                // contains the calls of the run before, which has reported them.
                self.usage = Some(self.usage.map_or(*usage, |sum| sum.plus(*usage)));
                self.close(&mut events);
            }
            RunEvent::ToolStarted { call } => self.show_call(call, &mut events),
            RunEvent::ToolProgress { call, progress, .. } => {
                let value = json!({
                    "tool_call_id": call, "done": progress.done, "total": progress.total, "text": progress.to_string(),
                });
                events.push(Event::custom("progress", value));
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
                // A waiting call was not started, so no event has named it yet.
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
            // Notices are part of the decision.
            _ => {}
        }
        events
    }

    /// Closes everything, and adds the messages of the turn (`ours`) that the client lacks. Returns
    /// `false` if events cannot bring the client up to date, or `ours` is `None` because its
    /// history differs: then it needs a snapshot.
    pub(crate) fn finish_messages(
        &mut self,
        response: &AgentResponse,
        ours: Option<&[Message]>,
    ) -> (Vec<Event>, bool) {
        let mut events = self.close_all();
        let lacking = ours.and_then(|ours| self.client.missing_events(ours));
        let is_up_to_date = lacking.is_some();
        events.extend(lacking.unwrap_or_else(|| self.final_text(response)));
        events.iter().for_each(|event| self.client.apply(event));
        (events, is_up_to_date)
    }

    /// Returns the message with the text that the turn ended with, as far as the model did not
    /// write it.
    fn final_text(&self, response: &AgentResponse) -> Vec<Event> {
        let text = added_text(&self.model_text, &response.decision.text);
        if text.is_empty() || !response.decision.pending.is_empty() {
            return Vec::new();
        }
        Event::text_message(end_id(response.turn), text).into()
    }

    /// Closes open messages and steps.
    pub(crate) fn close_all(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.close(&mut events);
        events
    }

    /// Returns the event with the agent's decision.
    pub(crate) fn decision(&self, response: &AgentResponse) -> Event {
        let value = json!({
            "decision_id": response.turn,
            "thread_id": response.conversation,
            "decision": response.decision.kind,
            "intent": response.decision.intent,
            "outcome": response.outcome,
            "disposition": response.disposition,
            "content": response.content,
            "usage": TurnUsage::from_response(response, self.model.to_string()),
            "timing_ms": Timing::from_response(response),
            "notices": response.notices,
            "failed_calls": response.failed_calls,
        });
        Event::custom("decision", value)
    }

    /// Returns the last event of a turn that ended or waits.
    pub(crate) fn finish(&self, response: &AgentResponse, now: Timestamp) -> Event {
        // In AG-UI a run that failed ends with an error event and has no outcome.
        if let Some(problem) = Problem::for_turn(response, now) {
            return self.run_error(&problem);
        }
        let (awaited, asked): (Vec<&PendingCall>, Vec<&PendingCall>) = response
            .decision
            .pending
            .iter()
            .partition(|call| call.awaits_result());
        let outcome = if !asked.is_empty() {
            // Calls that await a result are named by a success only. Beside an interrupt they stay
            // pending, and the next run names them.
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
            // Only a run that needs nothing more has a result.
            .filter(|_| outcome == Outcome::success());
        self.run_finished(outcome, result)
    }

    /// Returns the last event of a run that did not fail.
    pub(crate) fn run_finished(&self, outcome: Outcome, result: Option<Value>) -> Event {
        Event::RunFinished {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            result,
            outcome,
            usage: self.usage(),
        }
    }

    /// Returns the last event of a run that failed.
    pub(crate) fn run_error(&self, problem: &Problem) -> Event {
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
        self.model_text.push_str(delta);
        let message_id = self.text.clone().unwrap_or_else(|| {
            let message_id = self.answer_id();
            events.push(Event::TextMessageStart {
                message_id: message_id.clone(),
                role: "assistant",
            });
            message_id
        });
        self.text = Some(message_id.clone());
        events.push(Event::TextMessageContent {
            message_id,
            delta: delta.to_owned(),
        });
    }

    fn on_thinking(&mut self, delta: &str, events: &mut Vec<Event>) {
        let message_id = self.thinking.clone().unwrap_or_else(|| {
            let id = || format!("{}-thinking", self.answer_id());
            events.extend([
                Event::ReasoningStart { message_id: id() },
                Event::ReasoningMessageStart {
                    message_id: id(),
                    role: "reasoning",
                },
            ]);
            id()
        });
        self.thinking = Some(message_id.clone());
        events.push(Event::ReasoningMessageContent {
            message_id,
            delta: delta.to_owned(),
        });
    }

    /// Encodes a call, unless it was sent before: a repeated or continued call is the same one.
    fn show_call(&self, call: &ToolCall, events: &mut Vec<Event>) {
        let id = call.id.to_string();
        // Also among the events of this step, which are not applied to the view yet.
        let is_shown = |event: &Event| matches!(event, Event::ToolCallStart { tool_call_id, .. } if *tool_call_id == id);
        if !self.client.has_call(&id) && !events.iter().any(is_shown) {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            let call = super::event::ToolCall::new(id, call.name.clone(), arguments);
            events.extend(call.events(&self.answer_id()));
        }
    }

    /// Encodes calls and results of a round that caused no event: refused, denied or in doubt.
    fn show_round(&self, messages: &[AgentMessage], events: &mut Vec<Event>) {
        for call in messages
            .iter()
            .flat_map(AgentMessage::tool_calls)
            .filter(|call| self.tools.has(&call.name))
        {
            self.show_call(call, events);
        }
        for (call, tool, result) in messages.iter().filter_map(AgentMessage::tool_result) {
            if self.tools.has(tool) && !self.client.has_result(call.as_str()) {
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
        let mut metadata = json!({ "success": result.success });
        if let Some(ms) = ms {
            metadata["ms"] = json!(ms);
        }
        if let Some(summary) = summary {
            metadata["summary"] = json!(summary);
        }
        Event::ToolCallResult {
            message_id: result_id(call),
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

/// Converts a pending call, with the JSON Schema of its answer.
fn interrupt(call: &PendingCall) -> Interrupt {
    let (reason, kind, mut schema) = match &call.doubt {
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
    if call.for_conversation {
        schema["properties"]["for_conversation"] = json!({
            "type": "boolean",
            "description": "True if the approval counts for later calls of the tool in this conversation too."
        });
    }
    if call.always {
        schema["properties"]["always"] = json!({
            "type": "boolean",
            "description": "True if the approval counts for all later calls of the tool too."
        });
    }
    let mut metadata = json!({ "tool": call.tool, "args": call.arguments, "kind": kind });
    if call.for_conversation {
        metadata["for_conversation"] = json!(true);
    }
    if call.always {
        metadata["always"] = json!(true);
    }
    if let Some(doubt) = &call.doubt {
        metadata["since"] = json!(doubt.since);
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
