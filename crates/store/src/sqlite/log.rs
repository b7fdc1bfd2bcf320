//! The decision log and the tool-invocation log.

use adjutant_core::port::{LogStore, StoreError};
use adjutant_core::{BoxFuture, DecisionFilter, DecisionRecord, ToolInvocationRecord, TurnId, UserId};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row as _, Sqlite, SqliteConnection};

use super::Store;
use super::error::Failure;
use crate::row::{self, DecisionRow, InvocationRow};

impl LogStore for Store {
    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        self.run(async move {
            let mut query = QueryBuilder::<Sqlite>::new("SELECT * FROM decision WHERE user_id = ");
            query.push_bind(user.as_str());
            if let Some(outcome) = filter.outcome {
                query.push(" AND outcome = ").push_bind(outcome.as_str());
            }
            if let Some(conversation) = filter.conversation {
                query.push(" AND conversation_id = ").push_bind(conversation.to_string());
            }
            if let Some(since) = filter.since {
                query.push(" AND started_at >= ").push_bind(row::time_text(since));
            }
            query.push(" ORDER BY started_at DESC, number DESC");
            if let Some(limit) = filter.limit {
                query.push(" LIMIT ").push_bind(i64::from(limit));
            }
            let rows = query.build().fetch_all(&mut *self.read().await?).await?;
            let mut decisions = Vec::with_capacity(rows.len());
            for row in &rows {
                decisions.push(decision_row(row)?.read()?);
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
            let row = decision(&mut *self.read().await?, user, id).await?;
            Ok(row.map(DecisionRow::read).transpose()?)
        })
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>> {
        self.run(async move {
            let rows: Vec<InvocationColumns> = sqlx::query_as(
                "SELECT id, decision, tool, arguments, success, data, error, ms, attempt, at FROM tool_invocation
                 WHERE user_id = ? AND decision = ? ORDER BY number",
            )
            .bind(user.as_str())
            .bind(decision.to_string())
            .fetch_all(&mut *self.read().await?)
            .await?;
            let mut invocations = Vec::with_capacity(rows.len());
            for (id, decision, tool, arguments, success, data, error, ms, attempt, at) in rows {
                let row =
                    InvocationRow { id, decision, tool, arguments, success, data, error, ms, attempt, at };
                invocations.push(row.read()?);
            }
            Ok(invocations)
        })
    }

    fn record_invocation<'a>(
        &'a self,
        user: &'a UserId,
        row: &'a ToolInvocationRecord,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            insert_invocation(&mut rows, None, user, &InvocationRow::of(row)?).await?;
            Ok(rows.commit().await?)
        })
    }
}

type InvocationColumns =
    (String, String, String, String, bool, Option<String>, Option<String>, i64, i64, String);

pub(super) async fn decision(
    rows: &mut SqliteConnection,
    user: &UserId,
    id: TurnId,
) -> Result<Option<DecisionRow>, Failure> {
    let row = sqlx::query("SELECT * FROM decision WHERE user_id = ? AND id = ?")
        .bind(user.as_str())
        .bind(id.to_string())
        .fetch_optional(rows)
        .await?;
    Ok(row.as_ref().map(decision_row).transpose()?)
}

pub(super) async fn insert_decision(
    rows: &mut SqliteConnection,
    conversation: i64,
    row: &DecisionRow,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO decision (conversation, conversation_id, user_id, id, started_at, message, message_chars,
         model_provider, model_name, model_calls, iterations, model_ms, tool_ms)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0)",
    )
    .bind(conversation)
    .bind(row.conversation_id.as_str())
    .bind(row.user_id.as_str())
    .bind(row.id.as_str())
    .bind(row.started_at.as_str())
    .bind(row.message.as_str())
    .bind(row.message_chars)
    .bind(row.model_provider.as_str())
    .bind(row.model_name.as_str())
    .execute(&mut *rows)
    .await?;
    // An open decision is empty otherwise today; should that change, nothing of it is lost.
    update_decision(rows, row).await
}

pub(super) async fn update_decision(rows: &mut SqliteConnection, row: &DecisionRow) -> Result<(), Failure> {
    sqlx::query(
        "UPDATE decision SET ended_at = ?, intent = ?, kind = ?, outcome = ?, content = ?, model_calls = ?,
         iterations = ?, input_tokens = ?, output_tokens = ?, cached_tokens = ?, thinking_tokens = ?, cost_usd = ?,
         model_ms = ?, tool_ms = ?, total_ms = ?, error_code = ?, raw_response = ? WHERE user_id = ? AND id = ?",
    )
    .bind(row.ended_at.as_deref())
    .bind(row.intent.as_deref())
    .bind(row.kind.as_deref())
    .bind(row.outcome.as_deref())
    .bind(row.content.as_deref())
    .bind(row.model_calls)
    .bind(row.iterations)
    .bind(row.input_tokens)
    .bind(row.output_tokens)
    .bind(row.cached_tokens)
    .bind(row.thinking_tokens)
    .bind(row.cost_usd)
    .bind(row.model_ms)
    .bind(row.tool_ms)
    .bind(row.total_ms)
    .bind(row.error_code.as_deref())
    .bind(row.raw_response.as_deref())
    .bind(row.user_id.as_str())
    .bind(row.id.as_str())
    .execute(rows)
    .await?;
    Ok(())
}

/// The same row twice is one row; without a conversation it belongs to that of its decision, if there is one.
pub(super) async fn insert_invocation(
    rows: &mut SqliteConnection,
    conversation: Option<i64>,
    user: &UserId,
    row: &InvocationRow,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO tool_invocation (conversation, user_id, decision, id, tool, arguments, success, data, error, ms,
         attempt, at)
         VALUES (coalesce(?1, (SELECT conversation FROM decision WHERE user_id = ?2 AND id = ?3)), ?2, ?3, ?4, ?5, ?6,
         ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (user_id, decision, id) DO NOTHING",
    )
    .bind(conversation)
    .bind(user.as_str())
    .bind(row.decision.as_str())
    .bind(row.id.as_str())
    .bind(row.tool.as_str())
    .bind(row.arguments.as_str())
    .bind(row.success)
    .bind(row.data.as_deref())
    .bind(row.error.as_deref())
    .bind(row.ms)
    .bind(row.attempt)
    .bind(row.at.as_str())
    .execute(rows)
    .await?;
    Ok(())
}

fn decision_row(row: &SqliteRow) -> Result<DecisionRow, sqlx::Error> {
    Ok(DecisionRow {
        id: row.try_get("id")?,
        conversation_id: row.try_get("conversation_id")?,
        user_id: row.try_get("user_id")?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        message: row.try_get("message")?,
        message_chars: row.try_get("message_chars")?,
        intent: row.try_get("intent")?,
        kind: row.try_get("kind")?,
        outcome: row.try_get("outcome")?,
        content: row.try_get("content")?,
        model_provider: row.try_get("model_provider")?,
        model_name: row.try_get("model_name")?,
        model_calls: row.try_get("model_calls")?,
        iterations: row.try_get("iterations")?,
        input_tokens: row.try_get("input_tokens")?,
        output_tokens: row.try_get("output_tokens")?,
        cached_tokens: row.try_get("cached_tokens")?,
        thinking_tokens: row.try_get("thinking_tokens")?,
        cost_usd: row.try_get("cost_usd")?,
        model_ms: row.try_get("model_ms")?,
        tool_ms: row.try_get("tool_ms")?,
        total_ms: row.try_get("total_ms")?,
        error_code: row.try_get("error_code")?,
        raw_response: row.try_get("raw_response")?,
    })
}
