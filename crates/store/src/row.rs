//! Records as plain columns, and back: what every database stores alike.
//!
//! Numbers are `i64` and times are text, because that is what all databases hold exactly.

use adjutant_core::port::{BranchPoint, ConversationSummary, Cursor, StoreError};
use adjutant_core::{
    AgentName, CallId, ConversationKey, Cost, DecisionRecord, EVENT_VERSION, Event, FactLine,
    Feedback, IdempotencyKey, Input, InputBody, InputId, MemoryChange, MemoryEffect, MemoryScope,
    ModelId, Recorded, Task, TaskChanged, TaskId, ToolInvocationRecord, ToolResult, Usage, UserId,
};
use jiff::Timestamp;

use crate::blob::Blobs;
use crate::digest::hash;
use crate::status::{Status, Waiting};

/// RFC 3339 in UTC with nine decimals: exact, and in order as text.
pub(crate) fn time_text(at: Timestamp) -> String {
    format!("{at:.9}")
}

pub(crate) fn read_time(text: &str, what: &str) -> Result<Timestamp, StoreError> {
    text.parse().map_err(|error| unreadable(what, error))
}

/// A conversation with what is known of it without reading its events.
#[derive(Debug, Clone)]
pub(crate) struct ConversationRow {
    /// The database's own name for it.
    pub(crate) key: i64,
    /// Empty until there are words.
    pub(crate) title: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) next_seq: i64,
    /// Inputs accepted and not taken.
    pub(crate) untaken: i64,
    /// Turns that were begun.
    pub(crate) turns: i64,
    pub(crate) status: Status,
    /// The worker that has it, and until when without a sign of life.
    pub(crate) lease_by: Option<String>,
    pub(crate) lease_until: Option<Timestamp>,
    /// The worker's epoch at the claim.
    pub(crate) epoch: i64,
    /// The place at which it branches off another.
    pub(crate) branched_from_seq: Option<i64>,
}

impl ConversationRow {
    /// Returns the row of a conversation in which nothing has happened.
    pub(crate) fn new(key: i64, at: Timestamp) -> Self {
        Self {
            key,
            title: String::new(),
            created_at: at,
            updated_at: at,
            next_seq: 1,
            untaken: 0,
            turns: 0,
            status: Status::default(),
            lease_by: None,
            lease_until: None,
            epoch: 0,
            branched_from_seq: None,
        }
    }
}

pub(crate) fn conversation_key(
    agent: String,
    user: String,
    id: &str,
) -> Result<ConversationKey, StoreError> {
    let what = format!("conversation {id} of {user:?}");
    Ok(ConversationKey {
        agent: AgentName::new(agent).map_err(|error| unreadable(&what, error))?,
        user: UserId::new(user).map_err(|error| unreadable(&what, error))?,
        conversation: id.parse().map_err(|error| unreadable(&what, error))?,
    })
}

/// A conversation in a list, as it is stored.
#[derive(Debug)]
pub(crate) struct SummaryRow {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) named: bool,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) pending: bool,
    pub(crate) turns: i64,
    /// Of the last event, if there is one.
    pub(crate) last_kind: Option<String>,
    pub(crate) last_at: Option<String>,
    /// The conversation it branches off, and where.
    pub(crate) branched_from: Option<(String, i64)>,
}

impl SummaryRow {
    pub(crate) fn read(self) -> Result<ConversationSummary, StoreError> {
        let what = format!("conversation {}", self.id);
        let updated_at = read_time(&self.updated_at, &what)?;
        let last_at = self.last_at.map(|at| read_time(&at, &what)).transpose()?;
        // An input that came after the end opens the session again, although nobody has taken it
        // yet.
        let ended = self
            .last_kind
            .is_some_and(|kind| kind == Event::SessionEnded {}.kind());
        Ok(ConversationSummary {
            id: self.id.parse().map_err(|error| unreadable(&what, error))?,
            title: self.title,
            named: self.named,
            created_at: read_time(&self.created_at, &what)?,
            updated_at,
            pending: self.pending,
            last_activity: last_at.map_or(updated_at, |at| at.max(updated_at)),
            turns: u64::try_from(self.turns).map_err(|error| unreadable(&what, error))?,
            ended: ended && last_at.is_some_and(|at| at >= updated_at),
            branched_from: self
                .branched_from
                .map(|(from, seq)| branch_point(&from, seq))
                .transpose()?,
        })
    }
}

/// Returns the place at which a branch begins.
pub(crate) fn branch_point(from: &str, seq: i64) -> Result<BranchPoint, StoreError> {
    let what = format!("the beginning of a branch of conversation {from}");
    Ok(BranchPoint {
        conversation: from.parse().map_err(|error| unreadable(&what, error))?,
        seq: u64::try_from(seq).map_err(|error| unreadable(&what, error))?,
    })
}

/// The two columns a list is ordered by, as they are where somebody has stopped reading.
pub(crate) fn cursor_texts(cursor: Option<Cursor>) -> (Option<String>, Option<String>) {
    (
        cursor.map(|cursor| time_text(cursor.at)),
        cursor.map(|cursor| cursor.id.to_string()),
    )
}

/// The status column `waiting`: the calls nobody has answered.
pub(crate) fn waiting_text(status: &Status) -> Result<String, StoreError> {
    json(&status.waiting)
}

pub(crate) fn read_waiting(text: &str, what: &str) -> Result<Vec<Waiting>, StoreError> {
    serde_json::from_str(text).map_err(|error| unreadable(what, error))
}

/// An event as it is stored.
#[derive(Debug)]
pub(crate) struct EventRow {
    pub(crate) seq: i64,
    pub(crate) v: i64,
    pub(crate) kind: String,
    pub(crate) turn: Option<String>,
    pub(crate) step: Option<String>,
    pub(crate) body: String,
    /// Long values that the body refers to.
    pub(crate) blobs: Blobs,
    pub(crate) at: String,
}

impl EventRow {
    pub(crate) fn of(seq: i64, at: Timestamp, event: &Event) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            seq,
            v: EVENT_VERSION.into(),
            kind: event.kind().to_owned(),
            turn: event.turn().map(|turn| turn.to_string()),
            step: event.step().map(|step| step.to_string()),
            body: blobs.json(event)?,
            blobs,
            at: time_text(at),
        })
    }

    pub(crate) fn read(self, key: &ConversationKey) -> Result<Recorded, StoreError> {
        let what = format!(
            "event {} ({}) of conversation {}",
            self.seq, self.kind, key.conversation
        );
        check_version(self.v, &what)?;
        let body = self
            .blobs
            .whole(self.body)
            .map_err(|error| unreadable(&what, error))?;
        let event: Event = serde_json::from_str(&body).map_err(|error| unreadable(&what, error))?;
        if event.kind() != self.kind {
            return Err(unreadable(
                &what,
                format!("its body says it is {}", event.kind()),
            ));
        }
        let seq = u64::try_from(self.seq).map_err(|error| unreadable(&what, error))?;
        Ok(Recorded {
            seq,
            at: read_time(&self.at, &what)?,
            event: event.into(),
        })
    }
}

/// An input as it is stored.
#[derive(Debug)]
pub(crate) struct InputRow {
    pub(crate) id: String,
    pub(crate) v: i64,
    pub(crate) body: String,
    pub(crate) at: String,
    pub(crate) request_id: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) after: Option<i64>,
    /// Long values that the body refers to.
    pub(crate) blobs: Blobs,
}

impl InputRow {
    pub(crate) fn body_of(body: &InputBody) -> Result<String, StoreError> {
        json(body)
    }

    pub(crate) fn of(input: &Input) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            id: input.id.to_string(),
            v: EVENT_VERSION.into(),
            body: blobs.json(&input.body)?,
            at: time_text(input.at),
            request_id: input.request_id.clone(),
            fingerprint: input.fingerprint.clone(),
            after: None,
            blobs,
        })
    }

    pub(crate) fn read(self, key: &ConversationKey) -> Result<Input, StoreError> {
        let what = format!("input {} of conversation {}", self.id, key.conversation);
        check_version(self.v, &what)?;
        let body = self
            .blobs
            .whole(self.body)
            .map_err(|error| unreadable(&what, error))?;
        let body: InputBody =
            serde_json::from_str(&body).map_err(|error| unreadable(&what, error))?;
        let at = read_time(&self.at, &what)?;
        let id = InputId::new(self.id).map_err(|error| unreadable(&what, error))?;
        let after = self
            .after
            .map_or(Ok(0), u64::try_from)
            .map_err(|error| unreadable(&what, error))?;
        Ok(Input {
            id,
            at,
            request_id: self.request_id,
            fingerprint: self.fingerprint,
            after,
            body,
        })
    }
}

/// A task as it is stored. It is done if it has a time of that.
#[derive(Debug)]
pub(crate) struct TaskRow {
    pub(crate) id: i64,
    pub(crate) description: String,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) completed_at: Option<String>,
}

impl TaskRow {
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            id: number(task.id.get()),
            description: task.description.to_string(),
            created_at: time_text(task.created_at),
            updated_at: time_text(task.updated_at),
            completed_at: task.completed_at.map(time_text),
        }
    }

    pub(crate) fn read(self, user: &UserId) -> Result<Task, StoreError> {
        let what = format!("task {} of {user}", self.id);
        let id = u64::try_from(self.id).ok().and_then(TaskId::new);
        Ok(Task {
            id: id.ok_or_else(|| unreadable(&what, "task ids start at 1"))?,
            user_id: user.clone(),
            description: self
                .description
                .try_into()
                .map_err(|error| unreadable(&what, error))?,
            completed: self.completed_at.is_some(),
            created_at: read_time(&self.created_at, &what)?,
            updated_at: read_time(&self.updated_at, &what)?,
            completed_at: self
                .completed_at
                .map(|at| read_time(&at, &what))
                .transpose()?,
        })
    }
}

pub(crate) fn outcome_text(outcome: &TaskChanged) -> Result<String, StoreError> {
    json(outcome)
}

pub(crate) fn read_outcome(text: &str, key: &IdempotencyKey) -> Result<TaskChanged, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| unreadable(&format!("the outcome of change {key}"), error))
}

/// A decision as it is stored.
#[derive(Debug)]
pub(crate) struct DecisionRow {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) version: Option<String>,
    pub(crate) conversation_id: String,
    pub(crate) user_id: String,
    pub(crate) request_id: Option<String>,
    pub(crate) started_at: String,
    pub(crate) ended_at: Option<String>,
    pub(crate) message: String,
    pub(crate) message_chars: i64,
    pub(crate) intent: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) model_provider: String,
    pub(crate) model_name: String,
    pub(crate) model_calls: i64,
    pub(crate) iterations: i64,
    pub(crate) input_tokens: Option<i64>,
    pub(crate) output_tokens: Option<i64>,
    pub(crate) cached_tokens: Option<i64>,
    pub(crate) cache_written_tokens: Option<i64>,
    pub(crate) thinking_tokens: Option<i64>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model_ms: i64,
    pub(crate) tool_ms: i64,
    pub(crate) total_ms: Option<i64>,
    pub(crate) error_code: Option<String>,
    pub(crate) raw_response: Option<String>,
    /// JSON.
    pub(crate) notices: String,
    pub(crate) feedback: Option<FeedbackRow>,
    /// Long values that the texts refer to.
    pub(crate) blobs: Blobs,
}

impl DecisionRow {
    pub(crate) fn of(record: &DecisionRecord) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            id: record.id.to_string(),
            agent: record.agent.to_string(),
            version: record.version.clone(),
            conversation_id: record.conversation.to_string(),
            user_id: record.user.to_string(),
            request_id: record.request_id.clone(),
            started_at: time_text(record.started_at),
            ended_at: record.ended_at.map(time_text),
            message: blobs.text(record.message.clone())?,
            message_chars: number(record.message_chars),
            intent: record.intent.clone().map(String::from),
            kind: record.kind.map(|kind| kind.to_string()),
            outcome: record.outcome.map(|outcome| outcome.to_string()),
            content: record
                .content
                .clone()
                .map(|text| blobs.text(text))
                .transpose()?,
            model_provider: record.model.provider.to_string(),
            model_name: record.model.name.clone(),
            model_calls: record.model_calls.into(),
            iterations: record.iterations.into(),
            input_tokens: record.usage.input_tokens.map(number),
            output_tokens: record.usage.output_tokens.map(number),
            cached_tokens: record.usage.cached_tokens.map(number),
            cache_written_tokens: record.usage.cache_written_tokens.map(number),
            thinking_tokens: record.usage.thinking_tokens.map(number),
            cost_usd: record.cost.map(Cost::usd),
            model_ms: number(record.model_ms),
            tool_ms: number(record.tool_ms),
            total_ms: record.total_ms.map(number),
            error_code: record.error_code.clone(),
            raw_response: record
                .raw_response
                .clone()
                .map(|text| blobs.text(text))
                .transpose()?,
            notices: json(&record.notices)?,
            feedback: record.feedback.as_ref().map(FeedbackRow::of),
            blobs,
        })
    }

    /// `blobs`: what the row refers to.
    pub(crate) fn read(self, blobs: &Blobs) -> Result<DecisionRecord, StoreError> {
        let what = format!("decision {}", self.id);
        let count = |value: i64| u64::try_from(value).map_err(|error| unreadable(&what, error));
        let tokens = |value: Option<i64>| value.map(count).transpose();
        let small = |value: i64| u32::try_from(value).map_err(|error| unreadable(&what, error));
        let text = |text: String| {
            blobs
                .whole_text(text)
                .map_err(|error| unreadable(&what, error))
        };
        Ok(DecisionRecord {
            id: self.id.parse().map_err(|error| unreadable(&what, error))?,
            agent: AgentName::new(self.agent).map_err(|error| unreadable(&what, error))?,
            version: self.version,
            conversation: self
                .conversation_id
                .parse()
                .map_err(|error| unreadable(&what, error))?,
            user: UserId::new(self.user_id).map_err(|error| unreadable(&what, error))?,
            request_id: self.request_id,
            started_at: read_time(&self.started_at, &what)?,
            ended_at: self.ended_at.map(|at| read_time(&at, &what)).transpose()?,
            message: text(self.message)?,
            message_chars: usize::try_from(self.message_chars)
                .map_err(|error| unreadable(&what, error))?,
            intent: self.intent.map(Into::into),
            kind: self
                .kind
                .map(|word| word.parse().map_err(|error| unreadable(&what, error)))
                .transpose()?,
            outcome: self
                .outcome
                .map(|word| word.parse().map_err(|error| unreadable(&what, error)))
                .transpose()?,
            content: self.content.map(text).transpose()?,
            model: ModelId::new(self.model_provider, self.model_name)
                .map_err(|error| unreadable(&what, error))?,
            model_calls: small(self.model_calls)?,
            iterations: small(self.iterations)?,
            usage: Usage {
                input_tokens: tokens(self.input_tokens)?,
                output_tokens: tokens(self.output_tokens)?,
                cached_tokens: tokens(self.cached_tokens)?,
                cache_written_tokens: tokens(self.cache_written_tokens)?,
                thinking_tokens: tokens(self.thinking_tokens)?,
            },
            cost: self.cost_usd.and_then(Cost::from_usd),
            model_ms: count(self.model_ms)?,
            tool_ms: count(self.tool_ms)?,
            total_ms: tokens(self.total_ms)?,
            error_code: self.error_code,
            raw_response: self.raw_response.map(text).transpose()?,
            notices: serde_json::from_str(&self.notices)
                .map_err(|error| unreadable(&what, error))?,
            feedback: self
                .feedback
                .map(|feedback| feedback.read(&what))
                .transpose()?,
        })
    }
}

/// A rating of an answer, as it is stored.
#[derive(Debug)]
pub(crate) struct FeedbackRow {
    pub(crate) rating: String,
    pub(crate) comment: Option<String>,
    pub(crate) at: String,
}

impl FeedbackRow {
    pub(crate) fn of(feedback: &Feedback) -> Self {
        Self {
            rating: feedback.rating.to_string(),
            comment: feedback.comment.clone(),
            at: time_text(feedback.at),
        }
    }

    pub(crate) fn read(self, what: &str) -> Result<Feedback, StoreError> {
        Ok(Feedback {
            rating: self
                .rating
                .parse()
                .map_err(|error| unreadable(what, error))?,
            comment: self.comment,
            at: read_time(&self.at, what)?,
        })
    }
}

/// A tool invocation as it is stored.
#[derive(Debug)]
pub(crate) struct InvocationRow {
    pub(crate) id: String,
    pub(crate) decision: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) success: bool,
    pub(crate) data: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) ms: i64,
    pub(crate) attempt: i64,
    pub(crate) at: String,
    /// Long values that the texts refer to.
    pub(crate) blobs: Blobs,
}

impl InvocationRow {
    pub(crate) fn of(record: &ToolInvocationRecord) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            id: record.id.to_string(),
            decision: record.decision.to_string(),
            tool: record.tool.clone(),
            arguments: blobs.value(&record.arguments)?,
            success: record.result.success,
            data: record
                .result
                .data
                .as_deref()
                .map(|data| blobs.value(data))
                .transpose()?,
            error: record
                .result
                .error
                .clone()
                .map(|text| blobs.text(text))
                .transpose()?,
            ms: number(record.ms),
            attempt: record.attempt.into(),
            at: time_text(record.at),
            blobs,
        })
    }

    /// `blobs`: what the row refers to.
    pub(crate) fn read(self, blobs: &Blobs) -> Result<ToolInvocationRecord, StoreError> {
        let what = format!("the invocation {} of decision {}", self.id, self.decision);
        let json = |json: String| blobs.whole(json).map_err(|error| unreadable(&what, error));
        let data = self
            .data
            .map(json)
            .transpose()?
            .map(|text| serde_json::from_str(&text))
            .transpose();
        let error = self.error.map(|text| blobs.whole_text(text)).transpose();
        Ok(ToolInvocationRecord {
            decision: self
                .decision
                .parse()
                .map_err(|error| unreadable(&what, error))?,
            tool: self.tool,
            arguments: serde_json::from_str(&json(self.arguments)?)
                .map_err(|error| unreadable(&what, error))?,
            result: ToolResult {
                success: self.success,
                data: data.map_err(|error| unreadable(&what, error))?,
                error: error.map_err(|error| unreadable(&what, error))?,
                // The log says what came out, not how the model read it.
                verbatim: false,
            },
            ms: u64::try_from(self.ms).map_err(|error| unreadable(&what, error))?,
            attempt: u32::try_from(self.attempt).map_err(|error| unreadable(&what, error))?,
            at: read_time(&self.at, &what)?,
            id: CallId::new(self.id).map_err(|error| unreadable(&what, error))?,
        })
    }
}

/// The form in which changes of a memory are written.
const MEMORY_VERSION: i64 = 1;

/// A change of a memory as it is stored.
#[derive(Debug)]
pub(crate) struct MemoryRow {
    pub(crate) id: String,
    pub(crate) at: String,
    pub(crate) call_key: Option<String>,
    pub(crate) state: String,
    pub(crate) before_hash: Option<String>,
    pub(crate) after_hash: Option<String>,
    pub(crate) v: i64,
    /// JSON, all of it.
    pub(crate) body: String,
}

impl MemoryRow {
    pub(crate) fn of(change: &MemoryChange) -> Result<Self, StoreError> {
        let hash_of = |line: &Option<FactLine>| line.as_ref().map(|line| hash(&line.text));
        let (before_hash, after_hash) = match &change.effect {
            MemoryEffect::Fact { before, after } => (hash_of(before), hash_of(after)),
            MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => (None, None),
        };
        Ok(Self {
            id: change.id.to_string(),
            at: time_text(change.at),
            call_key: change.key.clone().map(String::from),
            state: json(&change.state)?.trim_matches('"').to_owned(),
            before_hash,
            after_hash,
            v: MEMORY_VERSION,
            body: json(change)?,
        })
    }
}

pub(crate) fn read_memory_change(id: &str, v: i64, body: &str) -> Result<MemoryChange, StoreError> {
    let what = format!("the memory's change {id}");
    if v != MEMORY_VERSION {
        let reason = format!("it has format version {v}, this program reads {MEMORY_VERSION}");
        return Err(unreadable(&what, reason));
    }
    serde_json::from_str(body).map_err(|error| unreadable(&what, error))
}

/// One name for user and vault. The length keeps `a` + `bc` and `ab` + `c` apart.
pub(crate) fn scope_hash(scope: &MemoryScope) -> String {
    let user = scope.user.as_str();
    hash(&format!("{} {user}{}", user.len(), scope.vault))
}

pub(crate) fn unreadable(what: &str, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unreadable {
        message: format!("{what}: {reason}; it is left as it is"),
    }
}

fn check_version(v: i64, what: &str) -> Result<(), StoreError> {
    if v == i64::from(EVENT_VERSION) {
        return Ok(());
    }
    Err(unreadable(
        what,
        format!(
            "it has format version {v}, this program reads {EVENT_VERSION}; use the version that wrote it"
        ),
    ))
}

pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unusable {
        message: format!("cannot be written as JSON: {error}"),
    })
}

/// Counts beyond `i64` do not occur; should one, the highest number is the least wrong.
pub(crate) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
