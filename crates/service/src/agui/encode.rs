//! What happens in a turn, as events. Every message, call and step that is opened is closed before the run ends.

use std::collections::HashSet;

use adjutant_core::{
    AgentResponse, CallId, ModelId, OutcomeCategory, PendingCall, ToolCall, ToolResult, TurnId, Usage,
};
use adjutant_runtime::RunEvent;
use serde_json::{Map, Value, json};

use super::event::{Event, Interrupt, Outcome, PROTOCOL_VERSION, TokenUsage};
use super::transcript::{answer_id, end_id, result_id, result_text};
use crate::problem::Problem;
use crate::wire::{Timing, Usage as TurnUsage};

/// Turns what happens in one turn into the events of one run. Knows no socket and no clock.
#[derive(Debug)]
pub(crate) struct Encoder {
    thread_id: String,
    run_id: String,
    model: ModelId,
    /// Of the turn, once it is known.
    turn: Option<TurnId>,
    /// The model call that goes on, or was the last.
    call: u32,
    step: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    /// What the model said in its last call.
    said: String,
    /// Calls the client knows.
    calls: HashSet<CallId>,
    /// The messages the client was sent.
    sent: HashSet<String>,
    /// Of the model calls of this run, not of the whole turn.
    usage: Option<Usage>,
}

impl Encoder {
    /// `known`: calls that the client was shown in an earlier run, which goes on here.
    pub(crate) fn new(
        thread_id: String,
        run_id: String,
        model: ModelId,
        known: impl IntoIterator<Item = CallId>,
    ) -> Self {
        Self {
            thread_id,
            run_id,
            model,
            turn: None,
            call: 0,
            step: None,
            text: None,
            thinking: None,
            said: String::new(),
            calls: known.into_iter().collect(),
            sent: HashSet::new(),
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
        &self.sent
    }

    /// Something happened in the turn.
    pub(crate) fn on(&mut self, event: &RunEvent) -> Vec<Event> {
        let mut events = Vec::new();
        match event {
            RunEvent::TurnStarted { turn, .. } => self.turn = Some(*turn),
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
                events.push(Event::Custom { name: "retrying", value });
            }
            RunEvent::Reading(progress) => {
                let left_ms = progress.left.and_then(|left| u64::try_from(left.as_millis()).ok());
                let value = json!({ "done": progress.done, "total": progress.total, "left_ms": left_ms });
                events.push(Event::Custom { name: "reading", value });
            }
            RunEvent::ModelFinished { usage, .. } => {
                self.usage = Some(self.usage.map_or(*usage, |sum| sum.plus(*usage)));
                self.close(&mut events);
            }
            RunEvent::ToolStarted { call } => self.show_call(call, &mut events),
            RunEvent::ToolFinished { call, result, summary, ms, .. } => {
                events.push(self.result(call, result, summary.as_deref(), *ms));
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
            // A refused call is between the model and us; notices are in the decision.
            _ => {}
        }
        events
    }

    /// The turn ended or waits: what was not said yet, and everything closed.
    pub(crate) fn said_all(&mut self, response: &AgentResponse, failed: bool) -> Vec<Event> {
        let mut events = Vec::new();
        self.close(&mut events);
        let text = &response.decision.text;
        let waits = !response.decision.pending.is_empty();
        if !waits && !failed && !text.is_empty() && self.said != *text {
            let message_id = end_id(response.turn);
            self.sent.insert(message_id.clone());
            events.extend([
                Event::TextMessageStart { message_id: message_id.clone(), role: "assistant" },
                Event::TextMessageContent { message_id: message_id.clone(), delta: text.clone() },
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
        Event::Custom { name: "decision", value }
    }

    /// The last event of a turn that ended or waits.
    pub(crate) fn finished(&self, response: &AgentResponse) -> Event {
        if let Some(problem) = Problem::of_turn(response) {
            return self.failed(&problem);
        }
        let outcome = if !response.decision.pending.is_empty() {
            Outcome::Interrupt { interrupts: response.decision.pending.iter().map(interrupt).collect() }
        } else if response.outcome == OutcomeCategory::Cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Success
        };
        let result = response.output.clone().filter(|_| outcome == Outcome::Success);
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
        Event::RunError {
            message: problem.detail().to_owned(),
            code: problem.code().to_owned(),
            metadata,
            usage: self.usage(),
        }
    }

    fn usage(&self) -> Vec<TokenUsage> {
        let Some(usage) = self.usage else { return Vec::new() };
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
                self.sent.insert(id.clone());
                events.push(Event::TextMessageStart { message_id: id.clone(), role: "assistant" });
                id
            }
        };
        events.push(Event::TextMessageContent { message_id, delta: delta.to_owned() });
    }

    fn on_thinking(&mut self, delta: &str, events: &mut Vec<Event>) {
        let message_id = match &self.thinking {
            Some(id) => id.clone(),
            None => {
                let id = format!("{}-thinking", self.answer_id());
                self.thinking = Some(id.clone());
                events.extend([
                    Event::ReasoningStart { message_id: id.clone() },
                    Event::ReasoningMessageStart { message_id: id.clone(), role: "reasoning" },
                ]);
                id
            }
        };
        events.push(Event::ReasoningMessageContent { message_id, delta: delta.to_owned() });
    }

    /// A call, once: started again, or gone on with in another run, it is the same call.
    fn show_call(&mut self, call: &ToolCall, events: &mut Vec<Event>) {
        if !self.calls.insert(call.id.clone()) {
            return;
        }
        let parent = self.answer_id();
        self.sent.insert(parent.clone());
        let id = call.id.to_string();
        events.extend([
            Event::ToolCallStart {
                tool_call_id: id.clone(),
                tool_call_name: call.name.clone(),
                parent_message_id: Some(parent),
            },
            Event::ToolCallArgs {
                tool_call_id: id.clone(),
                delta: serde_json::to_string(&call.arguments).unwrap_or_default(),
            },
            Event::ToolCallEnd { tool_call_id: id },
        ]);
    }

    fn result(&mut self, call: &CallId, result: &ToolResult, summary: Option<&str>, ms: u64) -> Event {
        let message_id = result_id(call);
        self.sent.insert(message_id.clone());
        let mut metadata = Map::new();
        metadata.insert("success".to_owned(), json!(result.success));
        metadata.insert("ms".to_owned(), json!(ms));
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
        self.turn.map_or_else(|| format!("{}-{}", self.run_id, self.call), |turn| answer_id(turn, self.call))
    }

    fn close_thinking(&mut self, events: &mut Vec<Event>) {
        if let Some(message_id) = self.thinking.take() {
            events.extend([
                Event::ReasoningMessageEnd { message_id: message_id.clone() },
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
                    "editedArgs": { "type": "object", "description": "Other arguments to approve it with." }
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
