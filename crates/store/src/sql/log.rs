//! The decision log and the tool-invocation log.

use adjutant_core::port::{LogStore, StoreError};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, DecisionFilter, DecisionRecord, LogContent, Recorded,
    ToolInvocationRecord, TurnId, UserId,
};

use super::{Backend, Columns, Connection, Failure, SqlStore, values};
use crate::row::{self, DecisionRow, InvocationRow};

/// The columns of a decision, in the order of [`decision_row`].
macro_rules! select_decisions {
    ($rest:literal) => {
        concat!(
            "SELECT id, agent, version, conversation_id, user_id, request_id, started_at, ended_at, message, message_chars, intent, kind, outcome,
             content, model_provider, model_name, model_calls, iterations, input_tokens, output_tokens, cached_tokens,
             thinking_tokens, cost_usd, cache_written_tokens, notices, model_ms, tool_ms, total_ms, error_code,
             raw_response FROM adjutant_decision AS decision ",
            $rest
        )
    };
}

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
     ORDER BY started_at DESC, id DESC LIMIT $10"
);

impl<B: Backend> LogStore for SqlStore<B> {
    fn content(&self) -> LogContent {
        self.1
    }

    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        self.run(async move {
            let conversation = filter.conversation.map(|conversation| conversation.to_string());
            let since = filter.since.map(row::time_text);
            let until = filter.until.map(row::time_text);
            let (after_at, after_id) = row::cursor_texts(filter.after);
            let rows = self
                .0
                .fetch(
                    DECISIONS,
                    values![
                        user.as_str(),
                        filter.outcome.map(|outcome| outcome.as_str()),
                        conversation.as_deref(),
                        since.as_deref(),
                        until.as_deref(),
                        filter.tool.as_deref(),
                        after_at.as_deref(),
                        after_id.as_deref(),
                        filter.agent.as_ref().map(AgentName::as_str),
                        filter.limit.map_or(i64::MAX, i64::from)
                    ],
                )
                .await?;
            let mut decisions = Vec::with_capacity(rows.len());
            for columns in rows {
                decisions.push(decision_row(columns)?.read()?);
            }
            Ok(decisions)
        })
    }

    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Result<Option<DecisionRecord>, StoreError>> {
        self.run(async move {
            let data = (user.clone(), id);
            let row = self.0.read(data, |rows, (user, id)| Box::pin(decision(rows, user, *id))).await?;
            Ok(row.map(DecisionRow::read).transpose()?)
        })
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>> {
        self.run(async move {
            let rows = self.0.fetch(
                    "SELECT id, decision, tool, arguments, success, data, error, ms, attempt, at FROM adjutant_tool_invocation
                     WHERE user_id = $1 AND decision = $2 ORDER BY number",
                    values![user.as_str(), &decision.to_string()],
                )
                .await?;
            let mut invocations = Vec::with_capacity(rows.len());
            for mut columns in rows {
                let row = InvocationRow {
                    id: columns.text()?,
                    decision: columns.text()?,
                    tool: columns.text()?,
                    arguments: columns.text()?,
                    success: columns.int()? != 0,
                    data: columns.maybe_text()?,
                    error: columns.maybe_text()?,
                    ms: columns.int()?,
                    attempt: columns.int()?,
                    at: columns.text()?,
                };
                invocations.push(row.read()?);
            }
            Ok(invocations)
        })
    }
}

/// Writes into both logs what events say that are written together: each row once.
pub(super) async fn follow<'e, C: Connection>(
    rows: &mut C,
    conversation: i64,
    key: &ConversationKey,
    events: impl Iterator<Item = &'e Recorded> + Send,
    content: LogContent,
) -> Result<(), Failure> {
    let mut current: Option<Changed> = None;
    for Recorded { at, event, .. } in events {
        if let Some(decision) = DecisionRecord::open(key, *at, event, content) {
            write_decision(rows, conversation, current.take()).await?;
            current = Some(Changed { before: None, decision });
        } else if let Some(turn) = event.turn().filter(|_| DecisionRecord::is_changed_by(event)) {
            if current.as_ref().is_none_or(|current| current.decision.id != turn) {
                write_decision(rows, conversation, current.take()).await?;
                let known = decision(rows, &key.user, turn).await?.map(DecisionRow::read).transpose()?;
                current = known.map(|known| Changed { before: Some(known.clone()), decision: known });
            }
            if let Some(current) = &mut current {
                current.decision.apply(*at, event, content);
            }
        }
        if let Some(invocation) = ToolInvocationRecord::of(*at, event, content) {
            insert_invocation(rows, Some(conversation), &key.user, &InvocationRow::of(&invocation)?).await?;
        }
    }
    write_decision(rows, conversation, current).await
}

/// A decision, and as it is stored. `None`: it is not stored yet.
struct Changed {
    before: Option<DecisionRecord>,
    decision: DecisionRecord,
}

async fn write_decision<C: Connection>(
    rows: &mut C,
    conversation: i64,
    changed: Option<Changed>,
) -> Result<(), Failure> {
    let Some(Changed { before, decision }) = changed else { return Ok(()) };
    match before {
        Some(before) if before == decision => Ok(()),
        Some(_) => update_decision(rows, &DecisionRow::of(&decision)?).await,
        None => {
            let opened = DecisionRow::of(&decision)?;
            insert_decision(rows, conversation, &opened).await?;
            // What happened since it was opened is no part of the first statement.
            match decision.model_calls > 0 || decision.outcome.is_some() || decision.tool_ms > 0 {
                true => update_decision(rows, &opened).await,
                false => Ok(()),
            }
        }
    }
}

async fn decision<C: Connection>(
    rows: &mut C,
    user: &UserId,
    id: TurnId,
) -> Result<Option<DecisionRow>, Failure> {
    let columns = rows
        .fetch_first(
            select_decisions!("WHERE user_id = $1 AND id = $2"),
            values![user.as_str(), &id.to_string()],
        )
        .await?;
    Ok(columns.map(decision_row).transpose()?)
}

async fn insert_decision<C: Connection>(
    rows: &mut C,
    conversation: i64,
    row: &DecisionRow,
) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_decision (conversation, conversation_id, user_id, id, started_at, message, message_chars,
         model_provider, model_name, request_id, agent, version, model_calls, iterations, model_ms, tool_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, 0, 0)",
        values![
            conversation,
            &row.conversation_id,
            &row.user_id,
            &row.id,
            &row.started_at,
            &row.message,
            row.message_chars,
            &row.model_provider,
            &row.model_name,
            row.request_id.as_deref(),
            &row.agent,
            row.version.as_deref()
        ],
    )
    .await?;
    // An open decision is empty otherwise today; should that change, nothing of it is lost.
    update_decision(rows, row).await
}

/// Writes what an open decision may still change.
async fn update_decision<C: Connection>(rows: &mut C, row: &DecisionRow) -> Result<(), Failure> {
    rows.execute(
        "UPDATE adjutant_decision SET ended_at = $1, intent = $2, kind = $3, outcome = $4, content = $5, model_calls = $6,
         iterations = $7, input_tokens = $8, output_tokens = $9, cached_tokens = $10, thinking_tokens = $11,
         cost_usd = $12, cache_written_tokens = $13, notices = $14, model_ms = $15, tool_ms = $16, total_ms = $17,
         error_code = $18, raw_response = $19 WHERE user_id = $20 AND id = $21",
        values![
            row.ended_at.as_deref(),
            row.intent.as_deref(),
            row.kind.as_deref(),
            row.outcome.as_deref(),
            row.content.as_deref(),
            row.model_calls,
            row.iterations,
            row.input_tokens,
            row.output_tokens,
            row.cached_tokens,
            row.thinking_tokens,
            row.cost_usd,
            row.cache_written_tokens,
            &row.notices,
            row.model_ms,
            row.tool_ms,
            row.total_ms,
            row.error_code.as_deref(),
            row.raw_response.as_deref(),
            &row.user_id,
            &row.id
        ],
    )
    .await?;
    Ok(())
}

/// The same row twice is one row; without a conversation it belongs to that of its decision, if there is one.
async fn insert_invocation<C: Connection>(
    rows: &mut C,
    conversation: Option<i64>,
    user: &UserId,
    row: &InvocationRow,
) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_tool_invocation (conversation, user_id, decision, id, tool, arguments, success, data, error, ms,
         attempt, at)
         VALUES (coalesce($1, (SELECT conversation FROM adjutant_decision WHERE user_id = $2 AND id = $3)), $2, $3, $4, $5, $6,
         $7, $8, $9, $10, $11, $12)
         ON CONFLICT (user_id, decision, id) DO NOTHING",
        values![
            conversation,
            user.as_str(),
            &row.decision,
            &row.id,
            &row.tool,
            &row.arguments,
            i64::from(row.success),
            row.data.as_deref(),
            row.error.as_deref(),
            row.ms,
            row.attempt,
            &row.at
        ],
    )
    .await?;
    Ok(())
}

fn decision_row(mut columns: Columns) -> Result<DecisionRow, StoreError> {
    Ok(DecisionRow {
        id: columns.text()?,
        agent: columns.text()?,
        version: columns.maybe_text()?,
        conversation_id: columns.text()?,
        user_id: columns.text()?,
        request_id: columns.maybe_text()?,
        started_at: columns.text()?,
        ended_at: columns.maybe_text()?,
        message: columns.text()?,
        message_chars: columns.int()?,
        intent: columns.maybe_text()?,
        kind: columns.maybe_text()?,
        outcome: columns.maybe_text()?,
        content: columns.maybe_text()?,
        model_provider: columns.text()?,
        model_name: columns.text()?,
        model_calls: columns.int()?,
        iterations: columns.int()?,
        input_tokens: columns.maybe_int()?,
        output_tokens: columns.maybe_int()?,
        cached_tokens: columns.maybe_int()?,
        thinking_tokens: columns.maybe_int()?,
        cost_usd: columns.maybe_real()?,
        cache_written_tokens: columns.maybe_int()?,
        notices: columns.text()?,
        model_ms: columns.int()?,
        tool_ms: columns.int()?,
        total_ms: columns.maybe_int()?,
        error_code: columns.maybe_text()?,
        raw_response: columns.maybe_text()?,
    })
}
