//! The decision log and the log of tool invocations.

use adjutant_core::port::{LogStore, Rated, StoreError};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, DecisionFilter, DecisionRecord, Event, Feedback,
    LogContent, Rating, Recorded, ToolInvocationRecord, TurnId, UserId,
};

use super::blob::{self, References};
use super::{
    Backend, Connection, Failure, FromRow as _, Row, SqlStore, Value, decode_all, to_static,
    value_array, values,
};
use crate::record::{self, DecisionRow, FeedbackRow, InvocationRow};

/// Selects the columns of a [`DecisionRow`], and the conversation it belongs to.
macro_rules! select_decisions {
    ($($rest:literal),+) => {
        concat!(
            "SELECT id, agent, version, conversation_id, user_id, request_id, started_at, ended_at, message, message_chars, intent, kind, outcome,
             content, model_provider, model_name, model_calls, iterations, input_tokens, output_tokens, cached_tokens,
             thinking_tokens, cost_usd, cache_written_tokens, notices, model_ms, tool_ms, total_ms, error_code,
             raw_response, feedback, feedback_comment, feedback_at, decision.conversation FROM adjutant_decision AS decision ",
            $($rest),+
        )
    };
}
pub(super) use select_decisions;

/// A page of a user's decisions.
pub(crate) const DECISIONS: &str = select_decisions!(
    "WHERE user_id = $1 AND (CAST($2 AS TEXT) IS NULL OR outcome = $2)
     AND (CAST($3 AS TEXT) IS NULL OR conversation_id = $3)
     AND (CAST($4 AS TEXT) IS NULL OR started_at >= $4)
     AND (CAST($5 AS TEXT) IS NULL OR started_at < $5)
     AND (CAST($6 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM adjutant_tool_invocation AS tool_invocation
          WHERE tool_invocation.user_id = decision.user_id
          AND tool_invocation.decision = decision.id AND tool = $6))
     AND (CAST($7 AS TEXT) IS NULL OR (started_at, id) < ($7, $8))
     AND (CAST($9 AS TEXT) IS NULL OR agent = $9)
     AND (CAST($10 AS TEXT) IS NULL OR feedback = $10)
     ORDER BY started_at DESC, id DESC LIMIT $11"
);

impl<B: Backend> LogStore for SqlStore<B> {
    fn content(&self) -> LogContent {
        self.options.log_content
    }

    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        let conversation = filter
            .conversation
            .map(|conversation| conversation.to_string());
        let since = filter.since.map(record::format_time);
        let until = filter.until.map(record::format_time);
        let (after_at, after_id) = record::cursor_columns(filter.after);
        let values = to_static(values![
            user.as_str(),
            filter.outcome.map(|outcome| outcome.as_str()),
            conversation.as_deref(),
            since.as_deref(),
            until.as_deref(),
            filter.tool.as_deref(),
            after_at.as_deref(),
            after_id.as_deref(),
            filter.agent.as_ref().map(AgentName::as_str),
            filter.feedback.map(Rating::as_str),
            filter.limit.map_or(i64::MAX, i64::from)
        ]);
        self.decisions_by(DECISIONS, values)
    }

    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Result<Option<DecisionRecord>, StoreError>> {
        let data = (user.clone(), id);
        self.read(data, |tx, (user, id)| Box::pin(decision(tx, user, *id)))
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>> {
        let values = to_static(values![user.as_str(), &decision.to_string()]);
        self.read(values, |tx, values| Box::pin(read_invocations(tx, values)))
    }

    fn rate<'a>(
        &'a self,
        user: &'a UserId,
        turn: TurnId,
        feedback: Option<&'a Feedback>,
    ) -> BoxFuture<'a, Result<Rated, StoreError>> {
        let feedback = feedback
            .map(|feedback| FeedbackRow::from_feedback(&feedback.kept(self.options.log_content)));
        let data = (user.clone(), turn.to_string(), feedback);
        self.write(data, |tx, (user, turn, feedback)| {
            Box::pin(rate(tx, user, turn, feedback.as_ref()))
        })
    }

    fn feedback<'a>(
        &'a self,
        user: &'a UserId,
        turns: &'a [TurnId],
    ) -> BoxFuture<'a, Result<Vec<(TurnId, Feedback)>, StoreError>> {
        self.explained(async move {
            // Ids of turns begin with the time, so few rows lie between those of a page.
            let (Some(first), Some(last)) = (turns.iter().min(), turns.iter().max()) else {
                return Ok(Vec::new());
            };
            let (first, last) = (first.to_string(), last.to_string());
            let found = self
                .backend
                .fetch_all(FEEDBACK, values![user.as_str(), &first, &last])
                .await?;
            let read = |mut columns: Row| {
                let id: String = columns.get("id")?;
                let what = format!("decision {id}");
                let feedback = Option::<FeedbackRow>::from_row(&mut columns)?
                    .map(|row| row.decode(&what))
                    .transpose()?;
                let id = record::parse(&id, &what)?;
                Ok(feedback
                    .filter(|_| turns.contains(&id))
                    .map(|feedback| (id, feedback)))
            };
            Ok(found
                .into_iter()
                .filter_map(|columns| read(columns).transpose())
                .collect::<Result<_, StoreError>>()?)
        })
    }
}

/// Selects a user's ratings with ids from `$2` to `$3`.
pub(crate) const FEEDBACK: &str =
    "SELECT id, feedback, feedback_comment, feedback_at FROM adjutant_decision
     WHERE user_id = $1 AND id >= $2 AND id <= $3 AND feedback IS NOT NULL";

/// The changes of both logs that follow from events.
#[derive(Debug)]
pub(crate) struct LogChanges {
    /// The decisions of the events' turns, with the changes applied.
    pub(crate) known: Vec<DecisionRecord>,
    /// The rows that changed, and true for those that are new.
    pub(crate) decisions: Vec<(DecisionRow, bool)>,
    pub(crate) invocations: Vec<InvocationRow>,
}

/// Returns the turns whose decisions must be read before the changes can be computed: those that
/// the events change and do not start.
pub(crate) fn changed_turns<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<TurnId> {
    let (mut started, mut changed) = (Vec::new(), Vec::new());
    for event in events {
        let Some(turn) = event.turn() else { continue };
        match event {
            Event::TurnStarted { .. } => started.push(turn),
            _ if started.contains(&turn) || changed.contains(&turn) => {}
            _ if DecisionRecord::is_changed_by(event) => changed.push(turn),
            _ => {}
        }
    }
    changed
}

/// Reads the decisions of turns, as far as they exist.
pub(crate) async fn decisions<C: Connection>(
    tx: &mut C,
    user: &UserId,
    turns: Vec<TurnId>,
) -> Result<Vec<DecisionRecord>, Failure> {
    let mut known = Vec::with_capacity(turns.len());
    for turn in turns {
        known.extend(decision(tx, user, turn).await?);
    }
    Ok(known)
}

/// Computes the changes of both logs that follow from events. `known` are the decisions of
/// [`changed_turns`].
pub(crate) fn compute<'e>(
    key: &ConversationKey,
    known: Vec<DecisionRecord>,
    events: impl Iterator<Item = &'e Recorded>,
    content: LogContent,
) -> Result<LogChanges, StoreError> {
    // With the state before, to find out which have changed.
    let mut changed: Vec<(Option<DecisionRecord>, DecisionRecord)> = known
        .into_iter()
        .map(|known| (Some(known.clone()), known))
        .collect();
    let mut invocations = Vec::new();
    for Recorded { at, event, .. } in events {
        if let Some(decision) = DecisionRecord::open(key, *at, event, content) {
            changed.push((None, decision));
        } else if let Some(turn) = event
            .turn()
            .filter(|_| DecisionRecord::is_changed_by(event))
        {
            let found = changed.iter_mut().find(|(_, decision)| decision.id == turn);
            if let Some((_, decision)) = found {
                decision.apply(*at, event, content);
            }
        }
        if let Some(invocation) = ToolInvocationRecord::from_event(*at, event, content) {
            invocations.push(InvocationRow::from_invocation(&invocation)?);
        }
    }
    // A decision that the events leave as it was needs no write.
    let is_changed = |(before, decision): &&(Option<DecisionRecord>, DecisionRecord)| {
        before.as_ref() != Some(decision)
    };
    let row = |(before, decision): &(Option<DecisionRecord>, DecisionRecord)| {
        Ok((DecisionRow::from_decision(decision)?, before.is_none()))
    };
    let decisions = changed
        .iter()
        .filter(is_changed)
        .map(row)
        .collect::<Result<_, StoreError>>()?;
    Ok(LogChanges {
        known: changed.into_iter().map(|(_, decision)| decision).collect(),
        decisions,
        invocations,
    })
}

/// Writes the changes of both logs.
pub(super) async fn write<C: Connection>(
    tx: &mut C,
    conversation: i64,
    user: &UserId,
    logs: &LogChanges,
) -> Result<(), Failure> {
    for (row, is_new) in &logs.decisions {
        blob::insert(tx, conversation, &row.blobs).await?;
        match is_new {
            true => insert_decision(tx, conversation, row).await?,
            false => update_decision(tx, row).await?,
        }
    }
    for row in &logs.invocations {
        blob::insert(tx, conversation, &row.blobs).await?;
        insert_invocation(tx, conversation, user, row).await?;
    }
    Ok(())
}

async fn decision<C: Connection>(
    tx: &mut C,
    user: &UserId,
    id: TurnId,
) -> Result<Option<DecisionRecord>, Failure> {
    let mut found = read_decisions(
        tx,
        select_decisions!("WHERE user_id = $1 AND id = $2"),
        values![user.as_str(), &id.to_string()],
    )
    .await?;
    Ok(found.pop())
}

/// Reads decisions and the long values that they refer to.
pub(super) async fn read_decisions<C: Connection>(
    tx: &mut C,
    statement: &'static str,
    values: &[Value<'_>],
) -> Result<Vec<DecisionRecord>, Failure> {
    let found = tx.fetch_all(statement, values).await?;
    let mut references = References::default();
    let mut decisions = Vec::with_capacity(found.len());
    for mut row in found {
        let conversation = row.get("conversation")?;
        let row = DecisionRow::from_row(&mut row)?;
        let texts = [
            Some(&row.message),
            row.content.as_ref(),
            row.raw_response.as_ref(),
        ];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| references.add_text(conversation, text));
        decisions.push(row);
    }
    let blobs = references.read(tx).await?;
    Ok(decode_all(decisions, |row| row.decode(&blobs))?)
}

/// Reads a decision's invocations and the long values that they refer to.
async fn read_invocations<C: Connection>(
    tx: &mut C,
    values: &[Value<'_>],
) -> Result<Vec<ToolInvocationRecord>, Failure> {
    let found = tx
        .fetch_all(
            "SELECT conversation, id, decision, tool, arguments, success, data, error, ms, attempt, at
             FROM adjutant_tool_invocation WHERE user_id = $1 AND decision = $2 ORDER BY number",
            values,
        )
        .await?;
    let mut references = References::default();
    let mut invocations = Vec::with_capacity(found.len());
    for mut columns in found {
        let row = InvocationRow::from_row(&mut columns)?;
        if let Some(conversation) = columns.get("conversation")? {
            references.add(conversation, &row.arguments);
            row.data
                .iter()
                .for_each(|data| references.add(conversation, data));
            row.error
                .iter()
                .for_each(|error| references.add_text(conversation, error));
        }
        invocations.push(row);
    }
    let blobs = references.read(tx).await?;
    Ok(decode_all(invocations, |row| row.decode(&blobs))?)
}

async fn insert_decision<C: Connection>(
    tx: &mut C,
    conversation: i64,
    row: &DecisionRow,
) -> Result<(), Failure> {
    let key = value_array![conversation, &row.conversation_id, &row.user_id, &row.id];
    let columns = row.open_values().into_iter().chain(row.fixed_values());
    let values: Vec<_> = key.into_iter().chain(columns).collect();
    tx.execute(
        "INSERT INTO adjutant_decision (conversation, conversation_id, user_id, id, ended_at, intent, kind, outcome, content,
         model_calls, iterations, input_tokens, output_tokens, cached_tokens, cache_written_tokens, thinking_tokens, cost_usd,
         notices, model_ms, tool_ms, total_ms, error_code, raw_response, agent, version, request_id, started_at, message,
         message_chars, model_provider, model_name)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
         $25, $26, $27, $28, $29, $30, $31)",
        &values,
    )
    .await?;
    Ok(())
}

/// Updates the columns that may still change while a decision is open.
async fn update_decision<C: Connection>(tx: &mut C, row: &DecisionRow) -> Result<(), Failure> {
    let key = value_array![&row.user_id, &row.id];
    let values: Vec<_> = row.open_values().into_iter().chain(key).collect();
    tx.execute(
        "UPDATE adjutant_decision SET ended_at = $1, intent = $2, kind = $3, outcome = $4, content = $5, model_calls = $6,
         iterations = $7, input_tokens = $8, output_tokens = $9, cached_tokens = $10, cache_written_tokens = $11,
         thinking_tokens = $12, cost_usd = $13, notices = $14, model_ms = $15, tool_ms = $16, total_ms = $17,
         error_code = $18, raw_response = $19 WHERE user_id = $20 AND id = $21",
        &values,
    )
    .await?;
    Ok(())
}

/// Stores a user's rating of the answer of a turn that has ended.
async fn rate<C: Connection>(
    tx: &mut C,
    user: &UserId,
    turn: &str,
    feedback: Option<&FeedbackRow>,
) -> Result<Rated, Failure> {
    let found = tx
        .fetch_optional(
            "SELECT ended_at, feedback FROM adjutant_decision WHERE user_id = $1 AND id = $2",
            values![user.as_str(), turn],
        )
        .await?;
    let Some(mut found) = found else {
        return Ok(Rated::NoSuchTurn);
    };
    if found.get::<Option<String>>("ended_at")?.is_none() {
        return Ok(Rated::Open);
    }
    let before = found.parse_optional("feedback", &format!("decision {turn}"))?;
    tx.execute(
        "UPDATE adjutant_decision SET feedback = $1, feedback_comment = $2, feedback_at = $3
         WHERE user_id = $4 AND id = $5",
        values![
            feedback.map(|feedback| feedback.rating.as_str()),
            feedback.and_then(|feedback| feedback.comment.as_deref()),
            feedback.map(|feedback| feedback.at.as_str()),
            user.as_str(),
            turn
        ],
    )
    .await?;
    Ok(Rated::Kept { before })
}

/// Inserts an invocation. A repeated one is ignored.
async fn insert_invocation<C: Connection>(
    tx: &mut C,
    conversation: i64,
    user: &UserId,
    row: &InvocationRow,
) -> Result<(), Failure> {
    let key = value_array![conversation, user.as_str()];
    let values: Vec<_> = key.into_iter().chain(row.values()).collect();
    tx.execute(
        "INSERT INTO adjutant_tool_invocation (conversation, user_id, decision, id, tool, arguments, success, data, error, ms,
         attempt, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (user_id, decision, id) DO NOTHING",
        &values,
    )
    .await?;
    Ok(())
}
