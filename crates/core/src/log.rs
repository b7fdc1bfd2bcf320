//! The decision log and the tool-invocation log: rows that follow from events, and from nothing
//! else.

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

/// One turn in the decision log. Opens before the first model call and closes at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The turn's id.
    pub id: TurnId,
    /// The agent that made it.
    #[serde(default = "AgentName::adjutant")]
    pub agent: AgentName,
    /// The agent's version then, as its developer numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Whose turn it was.
    pub user: UserId,
    /// The HTTP request that started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, if it did.
    pub ended_at: Option<Timestamp>,
    /// The person's words, as the model got them, as far as [`LogContent`] lets them in.
    pub message: String,
    /// How many Unicode characters they had before any cut.
    pub message_chars: usize,
    /// What the person wanted, once it is known.
    pub intent: Option<UserIntent>,
    /// The strongest thing that happened, once it is known.
    pub kind: Option<DecisionKind>,
    /// How it ended, or that it waits.
    pub outcome: Option<OutcomeCategory>,
    /// The words the person got, once there are some.
    pub content: Option<String>,
    /// The model it was started with.
    pub model: ModelId,
    /// Model calls made.
    pub model_calls: u32,
    /// Tool rounds made.
    pub iterations: u32,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// Money of all model calls that were answered, in US dollars. `None`: not known. Zero: nothing
    /// was paid.
    #[serde(rename = "cost_usd", with = "cost::in_usd")]
    pub cost: Option<Cost>,
    /// Time in model calls.
    pub model_ms: u64,
    /// Time in tools.
    pub tool_ms: u64,
    /// From start to end, once it ended.
    pub total_ms: Option<u64>,
    /// The error's code, if it did not simply succeed.
    pub error_code: Option<String>,
    /// The model's answer if it was unreadable, bounded.
    pub raw_response: Option<String>,
    /// What the person was told beside the answer: settings left out, room added for thinking,
    /// cuts.
    pub notices: Vec<Notice>,
    /// The person's opinion of the answer, as far as [`LogContent`] lets their words in. It follows
    /// from no event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

impl DecisionRecord {
    /// The row a `TurnStarted` opens. `None` for any other event. `content`: how much of what was
    /// said is written down.
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

    /// Returns the key of its conversation.
    #[must_use]
    pub fn key(&self) -> ConversationKey {
        ConversationKey {
            agent: self.agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }

    /// Its place in the list, to go on behind it.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor {
            at: self.started_at,
            id: self.id.0,
        }
    }

    /// Whether [`DecisionRecord::apply`] does anything with this event: a store need not look for
    /// the row otherwise.
    #[must_use]
    pub fn is_changed_by(event: &Event) -> bool {
        match event {
            Event::ModelReplied { .. }
            | Event::ConversationSummarized { .. }
            | Event::SummaryFailed { .. }
            | Event::CallFinished { .. }
            | Event::TurnParked { .. }
            | Event::TurnFinished { .. } => true,
            Event::TurnStarted { .. }
            | Event::CallChecked { .. }
            | Event::CallStarted { .. }
            | Event::CallInDoubt { .. }
            | Event::DoubtResolved { .. }
            | Event::CallAnswered { .. }
            | Event::CallEdited { .. }
            | Event::AnswerRefused { .. }
            | Event::AnswerUnclear { .. }
            | Event::InputIgnored { .. }
            | Event::InputQueued { .. }
            | Event::TurnTakenUp { .. }
            | Event::Decided { .. }
            | Event::SessionEnded {}
            | Event::HistorySet { .. } => false,
        }
    }

    /// Counts the model call that put old turns into few words.
    fn summarised(&mut self, usage: Usage, cost: Option<Cost>, ms: u64) {
        self.model_calls += 1;
        self.model_ms += ms;
        self.usage = self.usage.plus(usage);
        self.cost = Cost::sum(self.cost, cost);
    }

    /// Follows one event of its turn. `log`: how much of what was said is written down.
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
                self.intent = pending.first().map(|call| UserIntent::of_tool(&call.tool));
                self.content = text(content);
            }
            Event::TurnFinished { end, .. } => {
                self.kind = Some(end.decision.kind);
                self.outcome = Some(end.outcome);
                self.intent = Some(end.decision.intent.clone());
                self.content = text(&end.decision.text);
                self.iterations = end.iterations;
                self.usage = end.usage;
                self.cost = end.cost;
                self.notices = end.notices.clone();
                self.error_code = end.error.as_ref().map(|error| error.code().to_owned());
                if let Some(TurnError::Model { error }) = &end.error
                    && let Some(raw) = error.raw()
                {
                    self.raw_response = text(raw);
                }
                self.ended_at = Some(at);
                self.total_ms =
                    u64::try_from((at.as_millisecond() - self.started_at.as_millisecond()).max(0))
                        .ok();
            }
            // The others are those of `is_changed_by`, which names every event.
            _ => debug_assert!(
                !Self::is_changed_by(event),
                "{} is not written down",
                event.kind()
            ),
        }
    }
}

/// One executed call in the tool-invocation log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvocationRecord {
    /// The call's id; one row per call.
    pub id: CallId,
    /// The decision it belongs to.
    pub decision: TurnId,
    /// The tool.
    pub tool: String,
    /// What it was called with.
    pub arguments: Arguments,
    /// What came out.
    pub result: ToolResult,
    /// How long it took.
    pub ms: u64,
    /// How often it was started, crashes included.
    pub attempt: u32,
    /// When it ended.
    pub at: Timestamp,
}

impl ToolInvocationRecord {
    /// The row a `CallFinished` writes. `None` for any other event. `log`: how much of what was
    /// said is written down.
    #[must_use]
    pub fn of(at: Timestamp, event: &Event, log: LogContent) -> Option<Self> {
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

/// Which decisions to list, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecisionFilter {
    /// Only those of this agent.
    pub agent: Option<AgentName>,
    /// Only this outcome.
    pub outcome: Option<OutcomeCategory>,
    /// Only this conversation.
    pub conversation: Option<ConversationId>,
    /// Only those in which this tool was executed.
    pub tool: Option<String>,
    /// Only those whose answer was rated so.
    pub feedback: Option<Rating>,
    /// Only those started at or after this moment.
    pub since: Option<Timestamp>,
    /// Only those started before this moment.
    pub until: Option<Timestamp>,
    /// Only those behind this place.
    pub after: Option<Cursor>,
    /// At most so many; `None`: all.
    pub limit: Option<u32>,
}
