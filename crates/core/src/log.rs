//! Rows of the decision log and the tool invocation log, derived from events alone.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cost::{self, Cost};
use crate::cursor::Cursor;
use crate::decision::{DecisionKind, Notice, OutcomeCategory, TurnError, UserIntent};
use crate::event::Event;
use crate::feedback::{Feedback, Rating};
use crate::id::{AgentName, CallId, ConversationId, ConversationKey, ModelId, TurnId, UserId};
use crate::model::Usage;
use crate::redact::LogContent;
use crate::tool::{Arguments, ToolResult};

/// A turn in the decision log. Created before the first model call, completed at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Id of the turn, which is also the decision's.
    pub id: TurnId,
    /// Agent that ran the turn.
    #[serde(default = "AgentName::adjutant")]
    pub agent: AgentName,
    /// Version of the agent at that time, as its developer numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Conversation that the turn belongs to.
    pub conversation: ConversationId,
    /// User who submitted the input.
    pub user: UserId,
    /// Id of the HTTP request that started the turn, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Time at which the turn started.
    pub started_at: Timestamp,
    /// Time at which the turn ended; `None` while it runs or waits.
    pub ended_at: Option<Timestamp>,
    /// The person's message as the model received it, as far as [`LogContent`] allows.
    pub message: String,
    /// Length of the original message, in Unicode characters.
    pub message_chars: usize,
    /// Intent of the person, once it is known.
    pub intent: Option<UserIntent>,
    /// Kind of the decision with the strongest effect, once it is known.
    pub kind: Option<DecisionKind>,
    /// Outcome of the turn, or that it waits.
    pub outcome: Option<OutcomeCategory>,
    /// Answer to the person, once there is one.
    pub content: Option<String>,
    /// Model that the turn started with.
    pub model: ModelId,
    /// Number of completed model calls in the turn.
    pub model_calls: u32,
    /// Number of rounds with tool calls.
    pub iterations: u32,
    /// Token usage of all model calls.
    pub usage: Usage,
    /// Cost of all answered model calls, in US dollars. `None`: unknown. Zero: free of charge.
    #[serde(rename = "cost_usd", with = "cost::in_usd")]
    pub cost: Option<Cost>,
    /// Total duration of model calls, in milliseconds.
    pub model_ms: u64,
    /// Total duration of tool calls, in milliseconds.
    pub tool_ms: u64,
    /// Duration of the turn in milliseconds, once it ended.
    pub total_ms: Option<u64>,
    /// Code of the error, unless the turn succeeded.
    pub error_code: Option<String>,
    /// Unreadable response of the model, truncated.
    pub raw_response: Option<String>,
    /// Notices to the person beside the answer, such as ignored settings and truncated texts.
    pub notices: Vec<Notice>,
    /// Rating of the answer, with the comment as far as [`LogContent`] allows. The only field that
    /// is not derived from events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

impl DecisionRecord {
    /// Returns the row for an [`Event::TurnStarted`], and `None` for other events. `content`
    /// decides how much text it contains.
    #[must_use]
    pub fn open(
        key: &ConversationKey,
        at: Timestamp,
        event: &Event,
        content: LogContent,
    ) -> Option<Self> {
        let Event::TurnStarted {
            turn,
            version,
            request_id,
            message,
            message_chars,
            model,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            id: *turn,
            agent: key.agent.clone(),
            version: version.clone(),
            conversation: key.conversation,
            user: key.user.clone(),
            request_id: request_id.clone(),
            started_at: at,
            ended_at: None,
            message: content.text(message),
            message_chars: *message_chars,
            intent: None,
            kind: None,
            outcome: None,
            content: None,
            model: model.clone(),
            model_calls: 0,
            iterations: 0,
            usage: Usage::default(),
            cost: Some(Cost::default()),
            model_ms: 0,
            tool_ms: 0,
            total_ms: None,
            error_code: None,
            raw_response: None,
            notices: Vec::new(),
            feedback: None,
        })
    }

    /// Returns the key of the turn's conversation.
    #[must_use]
    pub fn key(&self) -> ConversationKey {
        ConversationKey {
            agent: self.agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }

    /// Returns the cursor from which the next page of the log begins.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor {
            at: self.started_at,
            id: self.id.0,
        }
    }

    /// Returns true if [`DecisionRecord::apply`] uses this event; otherwise a store need not load
    /// the row.
    #[must_use]
    pub fn is_changed_by(event: &Event) -> bool {
        matches!(
            event,
            Event::ModelReplied { .. }
                | Event::ConversationSummarized { .. }
                | Event::SummaryFailed { .. }
                | Event::CallFinished { .. }
                | Event::TurnParked { .. }
                | Event::TurnFinished { .. }
        )
    }

    /// Adds the model call that summarised old turns.
    fn summarised(&mut self, usage: Usage, cost: Option<Cost>, ms: u64) {
        self.model_calls += 1;
        self.model_ms += ms;
        self.usage = self.usage.plus(usage);
        self.cost = Cost::sum(self.cost, cost);
    }

    /// Updates the row by an event of its turn. `log` decides how much text it contains.
    pub fn apply(&mut self, at: Timestamp, event: &Event, log: LogContent) {
        let text = |text: &str| Some(log.text(text)).filter(|_| log != LogContent::None);
        match event {
            Event::ModelReplied { reply, ms, .. } => {
                self.model_calls += 1;
                self.model_ms += ms;
                match reply {
                    Ok(response) => {
                        self.usage = self.usage.plus(response.usage);
                        self.cost = Cost::sum(self.cost, response.cost);
                        // Seen while the turn runs; the end brings all of its notices.
                        for loss in &response.losses {
                            Notice::not_sent(loss).join(&mut self.notices);
                        }
                    }
                    Err(error) => {
                        self.error_code = Some(error.code().to_owned());
                        self.raw_response = error.raw().and_then(text);
                    }
                }
            }
            Event::ConversationSummarized {
                usage, cost, ms, ..
            } => self.summarised(*usage, *cost, *ms),
            Event::SummaryFailed {
                asked: true,
                usage,
                cost,
                ms,
                ..
            } => {
                self.summarised(*usage, *cost, *ms);
            }
            Event::SummaryFailed { asked: false, .. } => {}
            Event::CallFinished { ms, .. } => self.tool_ms += ms,
            Event::TurnParked {
                pending, content, ..
            } => {
                self.kind = Some(DecisionKind::waiting_for(pending));
                self.outcome = Some(OutcomeCategory::waiting_for(pending));
                self.intent = pending.first().map(UserIntent::from);
                self.content = text(content);
            }
            Event::TurnFinished { end, .. } => {
                self.kind = Some(end.decision.kind);
                self.outcome = Some(end.outcome);
                self.intent = Some(end.decision.intent.clone());
                self.content = text(&end.decision.text);
                self.iterations = end.iterations;
                // The end holds the sums of the whole turn; those that were added so far were for
                // readers of an open turn.
                self.usage = end.usage;
                self.cost = end.cost;
                self.notices = end.notices.clone();
                // A failed call may have been made again with success: the end decides.
                self.error_code = end.error.as_ref().map(|error| error.code().to_owned());
                if let Some(TurnError::Model { error }) = &end.error
                    && let Some(raw) = error.raw()
                {
                    self.raw_response = text(raw);
                }
                self.ended_at = Some(at);
                // Another worker may have ended the turn, with a clock that is behind.
                self.total_ms =
                    u64::try_from((at.as_millisecond() - self.started_at.as_millisecond()).max(0))
                        .ok();
            }
            // `is_changed_by` names every event, so no other one gets here.
            _ => debug_assert!(
                !Self::is_changed_by(event),
                "{} is not written down",
                event.kind()
            ),
        }
    }
}

/// An executed call in the tool invocation log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvocationRecord {
    /// Id of the call; there is one row for each.
    pub id: CallId,
    /// Turn that the call belongs to.
    pub decision: TurnId,
    /// Name of the executed tool.
    pub tool: String,
    /// Arguments, as far as [`LogContent`] allows.
    pub arguments: Arguments,
    /// Result, as far as [`LogContent`] allows.
    pub result: ToolResult,
    /// Duration of the call, in milliseconds.
    pub ms: u64,
    /// Number of starts, including those before crashes.
    pub attempt: u32,
    /// Time at which the call ended.
    pub at: Timestamp,
}

impl ToolInvocationRecord {
    /// Returns the row for an [`Event::CallFinished`], and `None` for other events. `log` decides
    /// how much text it contains.
    #[must_use]
    pub fn from_event(at: Timestamp, event: &Event, log: LogContent) -> Option<Self> {
        let Event::CallFinished {
            turn,
            call,
            tool,
            arguments,
            result,
            ms,
            attempt,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            id: call.clone(),
            decision: *turn,
            tool: tool.clone(),
            arguments: log.arguments(arguments),
            result: log.result(result),
            ms: *ms,
            attempt: *attempt,
            at,
        })
    }
}

/// A filter of the decision log, which is listed newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecisionFilter {
    /// Agent that ran the turn. `None`: every agent.
    pub agent: Option<AgentName>,
    /// Outcome that the turn must have.
    pub outcome: Option<OutcomeCategory>,
    /// Conversation that the turn must belong to.
    pub conversation: Option<ConversationId>,
    /// Tool that must have been executed in the turn.
    pub tool: Option<String>,
    /// Rating that the answer must have.
    pub feedback: Option<Rating>,
    /// Earliest start of the turn, inclusive.
    pub since: Option<Timestamp>,
    /// Latest start of the turn, exclusive.
    pub until: Option<Timestamp>,
    /// Cursor of the last entry of the previous page.
    pub after: Option<Cursor>,
    /// Maximum number of entries. `None`: all.
    pub limit: Option<u32>,
}
