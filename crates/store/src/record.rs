//! Records as columns, and back: the encoding that every database shares.
//!
//! Numbers are `i64` and times are text, because all databases hold those exactly.

use adjutant_core::port::{BranchPoint, ConversationSummary, Cursor, StoreError, VersionCount};
use adjutant_core::{
    ConversationKey, Cost, DecisionRecord, EVENT_VERSION, Event, Feedback, Input, MemoryChange,
    MemoryScope, ModelId, Recorded, ToolInvocationRecord, ToolResult, Usage, UserId, first_words,
};
use adjutant_tools::{Task, TaskId};
use jiff::Timestamp;

use crate::blob::Blobs;
pub(crate) use crate::decode_error::{parse, unreadable};
use crate::digest::hash;
use crate::sql::{FromRow, Row, Value, from_row, value_array};
use crate::status::Status;

/// Formats a time as RFC 3339 in UTC with nine decimals, which is exact and sorts as text.
pub(crate) fn format_time(at: Timestamp) -> String {
    format!("{at:.9}")
}

pub(crate) fn parse_time(text: &str, what: &str) -> Result<Timestamp, StoreError> {
    parse(text, what)
}

/// Converts a stored value, `what` being its name in the error.
pub(crate) fn convert<T, V>(value: V, what: &str) -> Result<T, StoreError>
where
    V: TryInto<T, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    value.try_into().map_err(|error| unreadable(what, error))
}

/// A conversation without its events.
#[derive(Debug, Clone)]
pub(crate) struct ConversationRow {
    /// The primary key.
    pub(crate) key: i64,
    /// Empty until the first message.
    pub(crate) title: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) next_seq: i64,
    /// Inputs that were accepted and not taken by a turn yet.
    pub(crate) untaken: i64,
    /// Turns that were started.
    pub(crate) turns: i64,
    pub(crate) status: Status,
    /// The worker that holds the lease.
    pub(crate) lease_by: Option<String>,
    pub(crate) lease_until: Option<Timestamp>,
    /// The worker's epoch when it took the lease.
    pub(crate) epoch: i64,
    /// The event after which it branches off another conversation.
    pub(crate) branched_from_seq: Option<i64>,
}

impl ConversationRow {
    /// Returns the row of a new conversation without events.
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
        agent: convert(agent, &what)?,
        user: convert(user, &what)?,
        conversation: parse(id, &what)?,
    })
}

/// Reads the columns that identify a conversation: `agent`, `user_id` and `id`.
pub(crate) fn read_key(row: &mut Row) -> Result<ConversationKey, StoreError> {
    let id: String = row.get("id")?;
    conversation_key(row.get("agent")?, row.get("user_id")?, &id)
}

/// Reads a conversation in a list.
pub(crate) fn read_summary(row: &mut Row) -> Result<ConversationSummary, StoreError> {
    let id: String = row.get("id")?;
    let what = format!("conversation {id}");
    let updated_at = row.parse("updated_at", &what)?;
    let last_at: Option<Timestamp> = row.parse_optional("last_at", &what)?;
    let last_kind: Option<String> = row.get("last_kind")?;
    // An input that came after the end of the session opens it again, although no turn has taken it
    // yet.
    let ended = last_kind.is_some_and(|kind| kind == Event::SessionEnded {}.kind())
        && last_at.is_some_and(|at| at >= updated_at);
    let mut title: String = row.get("title")?;
    let first_message: Option<String> = row.get("first_message")?;
    if let Some(body) = first_message.filter(|_| title.is_empty()) {
        // The list does without the words of a message that cannot be read; `check` finds it.
        let words = serde_json::from_str(&body).ok();
        title = words
            .and_then(|body| first_words(&body))
            .unwrap_or_default();
    }
    let root: Option<String> = row.get("root")?;
    let versions: Option<i64> = row.get("versions")?;
    let versions = root
        .zip(versions)
        .map(|(root, count)| {
            Ok::<_, StoreError>(VersionCount {
                root: parse(&root, &what)?,
                count: convert(count, &what)?,
            })
        })
        .transpose()?;
    let branched_from: Option<String> = row.get("branched_from")?;
    let branched_from_seq: Option<i64> = row.get("branched_from_seq")?;
    Ok(ConversationSummary {
        id: parse(&id, &what)?,
        title,
        named: row.get("named")?,
        created_at: row.parse("created_at", &what)?,
        updated_at,
        pending: row.get::<Option<i64>>("parked_seq")?.is_some(),
        last_activity: last_at.map_or(updated_at, |at| at.max(updated_at)),
        turns: convert(row.get::<i64>("turns")?, &what)?,
        ended,
        running: row.get("running")?,
        versions,
        branched_from: branched_from
            .zip(branched_from_seq)
            .map(|(from, seq)| branch_point(&from, seq))
            .transpose()?,
    })
}

/// Decodes the place at which a branch begins.
pub(crate) fn branch_point(from: &str, seq: i64) -> Result<BranchPoint, StoreError> {
    let what = format!("the beginning of a branch of conversation {from}");
    Ok(BranchPoint {
        conversation: parse(from, &what)?,
        seq: convert(seq, &what)?,
    })
}

/// Returns the values of the two columns that a list is ordered by, for the entry that the cursor
/// points to.
pub(crate) fn cursor_columns(cursor: Option<Cursor>) -> (Option<String>, Option<String>) {
    (
        cursor.map(|cursor| format_time(cursor.at)),
        cursor.map(|cursor| cursor.id.to_string()),
    )
}

/// Decodes JSON, `what` being its name in the error.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    json: &str,
    what: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|error| unreadable(what, error))
}

/// Decodes JSON whose long values are in `blobs`.
fn from_split_json<T: serde::de::DeserializeOwned>(
    json: String,
    blobs: &Blobs,
    what: &str,
) -> Result<T, StoreError> {
    let whole = blobs.whole(json).map_err(|error| unreadable(what, error))?;
    from_json(&whole, what)
}

/// An event as it is stored.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct EventRow {
    pub(crate) seq: i64,
    pub(crate) v: i64,
    pub(crate) kind: String,
    pub(crate) turn: Option<String>,
    pub(crate) step: Option<String>,
    pub(crate) body: String,
    /// The long values that the body refers to.
    #[serde(skip)]
    pub(crate) blobs: Blobs,
    pub(crate) at: String,
}
from_row! { EventRow { seq, v, kind, turn, step, body, at } default { blobs } }

impl EventRow {
    pub(crate) fn from_event(seq: i64, at: Timestamp, event: &Event) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            seq,
            v: EVENT_VERSION.into(),
            kind: event.kind().to_owned(),
            turn: event.turn().map(|turn| turn.to_string()),
            step: event.step().map(|step| step.to_string()),
            body: blobs.json(event)?,
            blobs,
            at: format_time(at),
        })
    }

    pub(crate) fn decode(self, key: &ConversationKey) -> Result<Recorded, StoreError> {
        let what = format!(
            "event {} ({}) of conversation {}",
            self.seq, self.kind, key.conversation
        );
        check_version(self.v, &what)?;
        let event: Event = from_split_json(self.body, &self.blobs, &what)?;
        // Statements search by the column, so it must say what the body says.
        if event.kind() != self.kind {
            return Err(unreadable(
                &what,
                format!("its body says it is {}", event.kind()),
            ));
        }
        Ok(Recorded {
            seq: convert(self.seq, &what)?,
            at: parse_time(&self.at, &what)?,
            event: event.into(),
        })
    }
}

/// An input as it is stored.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct InputRow {
    pub(crate) id: String,
    pub(crate) v: i64,
    pub(crate) body: String,
    pub(crate) at: String,
    pub(crate) request_id: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) after: Option<i64>,
    /// The long values that the body refers to.
    #[serde(skip)]
    pub(crate) blobs: Blobs,
}
from_row! { InputRow { id, v, body, at, request_id, fingerprint, after } default { blobs } }

impl InputRow {
    pub(crate) fn from_input(input: &Input) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            id: input.id.to_string(),
            v: EVENT_VERSION.into(),
            body: blobs.json(&input.body)?,
            at: format_time(input.at),
            request_id: input.request_id.clone(),
            fingerprint: input.fingerprint.clone(),
            after: None,
            blobs,
        })
    }

    pub(crate) fn decode(self, key: &ConversationKey) -> Result<Input, StoreError> {
        let what = format!("input {} of conversation {}", self.id, key.conversation);
        check_version(self.v, &what)?;
        Ok(Input {
            id: convert(self.id, &what)?,
            at: parse_time(&self.at, &what)?,
            request_id: self.request_id,
            fingerprint: self.fingerprint,
            after: convert(self.after.unwrap_or(0), &what)?,
            body: from_split_json(self.body, &self.blobs, &what)?,
        })
    }
}

/// A task as it is stored. It is completed if it has a time of completion.
#[derive(Debug)]
pub(crate) struct TaskRow {
    pub(crate) id: i64,
    pub(crate) description: String,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) completed_at: Option<String>,
    /// 1 if a program wrote the description.
    pub(crate) from_others: i64,
}
from_row! { TaskRow { id, description, created_at, updated_at, completed_at, from_others } }

impl TaskRow {
    pub(crate) fn from_task(task: &Task) -> Self {
        Self {
            id: saturate(task.id.get()),
            description: task.description.to_string(),
            created_at: format_time(task.created_at),
            updated_at: format_time(task.updated_at),
            completed_at: task.completed_at.map(format_time),
            from_others: task.from_others.into(),
        }
    }

    pub(crate) fn decode(self, user: &UserId) -> Result<Task, StoreError> {
        let what = format!("task {} of {user}", self.id);
        let id = u64::try_from(self.id).ok().and_then(TaskId::new);
        Ok(Task {
            id: id.ok_or_else(|| unreadable(&what, "task ids start at 1"))?,
            user_id: user.clone(),
            description: convert(self.description, &what)?,
            completed: self.completed_at.is_some(),
            created_at: parse_time(&self.created_at, &what)?,
            updated_at: parse_time(&self.updated_at, &what)?,
            completed_at: self
                .completed_at
                .map(|at| parse_time(&at, &what))
                .transpose()?,
            from_others: self.from_others != 0,
        })
    }
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
    /// The notices as JSON.
    pub(crate) notices: String,
    pub(crate) feedback: Option<FeedbackRow>,
    /// The long values that the texts refer to.
    pub(crate) blobs: Blobs,
}
from_row! {
    DecisionRow {
        id, agent, version, conversation_id, user_id, request_id, started_at, ended_at, message,
        message_chars, intent, kind, outcome, content, model_provider, model_name, model_calls,
        iterations, input_tokens, output_tokens, cached_tokens, cache_written_tokens,
        thinking_tokens, cost_usd, model_ms, tool_ms, total_ms, error_code, raw_response,
        notices
    } nested { feedback } default { blobs }
}

impl DecisionRow {
    pub(crate) fn from_decision(record: &DecisionRecord) -> Result<Self, StoreError> {
        let mut blobs = Blobs::default();
        Ok(Self {
            id: record.id.to_string(),
            agent: record.agent.to_string(),
            version: record.version.clone(),
            conversation_id: record.conversation.to_string(),
            user_id: record.user.to_string(),
            request_id: record.request_id.clone(),
            started_at: format_time(record.started_at),
            ended_at: record.ended_at.map(format_time),
            message: blobs.text(record.message.clone())?,
            message_chars: saturate(record.message_chars),
            intent: record.intent.clone().map(String::from),
            kind: record.kind.map(|kind| kind.to_string()),
            outcome: record.outcome.map(|outcome| outcome.to_string()),
            content: blobs.optional_text(record.content.as_ref())?,
            model_provider: record.model.provider.to_string(),
            model_name: record.model.name.clone(),
            model_calls: record.model_calls.into(),
            iterations: record.iterations.into(),
            input_tokens: record.usage.input_tokens.map(saturate),
            output_tokens: record.usage.output_tokens.map(saturate),
            cached_tokens: record.usage.cached_tokens.map(saturate),
            cache_written_tokens: record.usage.cache_written_tokens.map(saturate),
            thinking_tokens: record.usage.thinking_tokens.map(saturate),
            cost_usd: record.cost.map(Cost::usd),
            model_ms: saturate(record.model_ms),
            tool_ms: saturate(record.tool_ms),
            total_ms: record.total_ms.map(saturate),
            error_code: record.error_code.clone(),
            raw_response: blobs.optional_text(record.raw_response.as_ref())?,
            notices: to_json(&record.notices)?,
            feedback: record.feedback.as_ref().map(FeedbackRow::from_feedback),
            blobs,
        })
    }

    /// Returns the values of the columns that may change until the turn has ended, in the order in
    /// which PostgreSQL's function takes them.
    pub(crate) fn open_values(&self) -> [Value<'_>; 19] {
        value_array![
            self.ended_at.as_deref(),
            self.intent.as_deref(),
            self.kind.as_deref(),
            self.outcome.as_deref(),
            self.content.as_deref(),
            self.model_calls,
            self.iterations,
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.cache_written_tokens,
            self.thinking_tokens,
            self.cost_usd,
            &self.notices,
            self.model_ms,
            self.tool_ms,
            self.total_ms,
            self.error_code.as_deref(),
            self.raw_response.as_deref(),
        ]
    }

    /// Returns the values of the columns that stay as they are inserted, without those that
    /// identify the decision, in the order in which PostgreSQL's function takes them.
    pub(crate) fn fixed_values(&self) -> [Value<'_>; 8] {
        value_array![
            &self.agent,
            self.version.as_deref(),
            self.request_id.as_deref(),
            &self.started_at,
            &self.message,
            self.message_chars,
            &self.model_provider,
            &self.model_name,
        ]
    }

    /// Decodes the record. `blobs` has the long values that the row refers to.
    pub(crate) fn decode(self, blobs: &Blobs) -> Result<DecisionRecord, StoreError> {
        let what = format!("decision {}", self.id);
        let count = |value: i64| convert::<u64, _>(value, &what);
        let tokens = |value: Option<i64>| value.map(count).transpose();
        let small = |value: i64| convert::<u32, _>(value, &what);
        let text = |text: String| {
            blobs
                .whole_text(text)
                .map_err(|error| unreadable(&what, error))
        };
        Ok(DecisionRecord {
            id: parse(&self.id, &what)?,
            agent: convert(self.agent, &what)?,
            version: self.version,
            conversation: parse(&self.conversation_id, &what)?,
            user: convert(self.user_id, &what)?,
            request_id: self.request_id,
            started_at: parse_time(&self.started_at, &what)?,
            ended_at: self.ended_at.map(|at| parse_time(&at, &what)).transpose()?,
            message: text(self.message)?,
            message_chars: convert(self.message_chars, &what)?,
            intent: self.intent.map(Into::into),
            kind: self.kind.map(|word| parse(&word, &what)).transpose()?,
            outcome: self.outcome.map(|word| parse(&word, &what)).transpose()?,
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
            notices: from_json(&self.notices, &what)?,
            feedback: self
                .feedback
                .map(|feedback| feedback.decode(&what))
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

/// A rating's three columns are all `NULL` if the answer was not rated.
impl FromRow for Option<FeedbackRow> {
    fn from_row(row: &mut Row) -> Result<Self, StoreError> {
        let rating: Option<String> = row.get("feedback")?;
        let comment = row.get("feedback_comment")?;
        let at: Option<String> = row.get("feedback_at")?;
        Ok(rating.zip(at).map(|(rating, at)| FeedbackRow {
            rating,
            comment,
            at,
        }))
    }
}

impl FeedbackRow {
    pub(crate) fn from_feedback(feedback: &Feedback) -> Self {
        Self {
            rating: feedback.rating.to_string(),
            comment: feedback.comment.clone(),
            at: format_time(feedback.at),
        }
    }

    pub(crate) fn decode(self, what: &str) -> Result<Feedback, StoreError> {
        Ok(Feedback {
            rating: parse(&self.rating, what)?,
            comment: self.comment,
            at: parse_time(&self.at, what)?,
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
    /// The long values that the texts refer to.
    pub(crate) blobs: Blobs,
}
from_row! {
    InvocationRow {
        id, decision, tool, arguments, success, data, error, ms, attempt, at
    } default { blobs }
}

impl InvocationRow {
    pub(crate) fn from_invocation(record: &ToolInvocationRecord) -> Result<Self, StoreError> {
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
            error: blobs.optional_text(record.result.error.as_ref())?,
            ms: saturate(record.ms),
            attempt: record.attempt.into(),
            at: format_time(record.at),
            blobs,
        })
    }

    /// Returns the values of the columns, in the order in which PostgreSQL's function takes them.
    pub(crate) fn values(&self) -> [Value<'_>; 10] {
        value_array![
            &self.decision,
            &self.id,
            &self.tool,
            &self.arguments,
            i64::from(self.success),
            self.data.as_deref(),
            self.error.as_deref(),
            self.ms,
            self.attempt,
            &self.at,
        ]
    }

    /// Decodes the record. `blobs` has the long values that the row refers to.
    pub(crate) fn decode(self, blobs: &Blobs) -> Result<ToolInvocationRecord, StoreError> {
        let what = format!("the invocation {} of decision {}", self.id, self.decision);
        let data = self.data.map(|data| from_split_json(data, blobs, &what));
        let error = self.error.map(|text| blobs.whole_text(text)).transpose();
        Ok(ToolInvocationRecord {
            decision: parse(&self.decision, &what)?,
            tool: self.tool,
            arguments: from_split_json(self.arguments, blobs, &what)?,
            result: ToolResult {
                success: self.success,
                data: data.transpose()?,
                error: error.map_err(|error| unreadable(&what, error))?,
                // The log has the result itself, not how it was shown to the model.
                verbatim: false,
                note: None,
                from_others: false,
            },
            ms: convert(self.ms, &what)?,
            attempt: convert(self.attempt, &what)?,
            at: parse_time(&self.at, &what)?,
            id: convert(self.id, &what)?,
        })
    }
}

/// Format version of stored memory changes.
pub(crate) const MEMORY_VERSION: i64 = 1;

pub(crate) fn decode_memory_change(
    id: &str,
    v: i64,
    body: &str,
) -> Result<MemoryChange, StoreError> {
    let what = format!("the memory's change {id}");
    if v != MEMORY_VERSION {
        let reason = format!("it has format version {v}, this program reads {MEMORY_VERSION}");
        return Err(unreadable(&what, reason));
    }
    from_json(body, &what)
}

/// Hashes user and vault into one key. The length keeps `a` + `bc` and `ab` + `c` apart.
pub(crate) fn scope_hash(scope: &MemoryScope) -> String {
    let user = scope.user.as_str();
    hash(&format!("{} {user}{}", user.len(), scope.vault))
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

pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| {
        StoreError::unusable(format!("cannot be written as JSON: {error}")).with_source(error)
    })
}

/// Converts a count to `i64`. Counts beyond that do not occur; should one, the highest number is
/// the least wrong.
pub(crate) fn saturate(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
