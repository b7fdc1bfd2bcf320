//! The decision log and the tool-invocation log.

use adjutant_core::port::{LogStore, Rated, StoreError};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, DecisionFilter, DecisionRecord, Event, Feedback,
    LogContent, Rating, Recorded, ToolInvocationRecord, TurnId, UserId,
};

use super::blob::{self, Wanted};
use super::{Backend, Columns, Connection, Failure, SqlStore, Value, to_static, values};
use crate::blob::Blobs;
use crate::row::{self, DecisionRow, FeedbackRow, InvocationRow};

/// The columns of a decision, in the order of [`decision_row`].
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
        self.1.log_content
    }

    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        self.run(async move {
            let conversation = filter
                .conversation
                .map(|conversation| conversation.to_string());
            let since = filter.since.map(row::time_text);
            let until = filter.until.map(row::time_text);
            let (after_at, after_id) = row::cursor_texts(filter.after);
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
            let found = self.0.read(values, |rows, values| {
                Box::pin(async move {
                    let found = rows.fetch(DECISIONS, values).await?;
                    decision_rows(rows, found).await
                })
            });
            let (decisions, blobs) = found.await?;
            Ok(decisions
                .into_iter()
                .map(|row| row.read(&blobs))
                .collect::<Result<_, _>>()?)
        })
    }

    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Result<Option<DecisionRecord>, StoreError>> {
        self.run(async move {
            let data = (user.clone(), id);
            self.0
                .read(data, |rows, (user, id)| Box::pin(decision(rows, user, *id)))
                .await
        })
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>> {
        self.run(async move {
            let values = to_static(values![user.as_str(), &decision.to_string()]);
            let found = self.0.read(values, |rows, values| {
                Box::pin(invocation_rows(rows, values))
            });
            let (invocations, blobs) = found.await?;
            Ok(invocations
                .into_iter()
                .map(|row| row.read(&blobs))
                .collect::<Result<_, _>>()?)
        })
    }

    fn rate<'a>(
        &'a self,
        user: &'a UserId,
        turn: TurnId,
        feedback: Option<&'a Feedback>,
    ) -> BoxFuture<'a, Result<Rated, StoreError>> {
        self.run(async move {
            let feedback =
                feedback.map(|feedback| FeedbackRow::of(&feedback.kept(self.1.log_content)));
            let data = (user.clone(), turn.to_string(), feedback);
            self.0
                .write(data, |rows, (user, turn, feedback)| {
                    Box::pin(rate(rows, user, turn, feedback.as_ref()))
                })
                .await
        })
    }

    fn feedback<'a>(
        &'a self,
        user: &'a UserId,
        turns: &'a [TurnId],
    ) -> BoxFuture<'a, Result<Vec<(TurnId, Feedback)>, StoreError>> {
        self.run(async move {
            // Ids of turns begin with the time, so that there is little between those of a page.
            let (Some(first), Some(last)) = (turns.iter().min(), turns.iter().max()) else {
                return Ok(Vec::new());
            };
            let (first, last) = (first.to_string(), last.to_string());
            let found = self
                .0
                .fetch(FEEDBACK, values![user.as_str(), &first, &last])
                .await?;
            let read = |mut columns: Columns| {
                let id = columns.text()?;
                let what = format!("decision {id}");
                let feedback = feedback_row(&mut columns)?
                    .map(|row| row.read(&what))
                    .transpose()?;
                let id = id.parse().map_err(|error| row::unreadable(&what, error))?;
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

/// The statement that reads a user's ratings of the answers of turns. `$2` and `$3`: the first and
/// the last id between which they are.
pub(crate) const FEEDBACK: &str =
    "SELECT id, feedback, feedback_comment, feedback_at FROM adjutant_decision
     WHERE user_id = $1 AND id >= $2 AND id <= $3 AND feedback IS NOT NULL";

/// What both logs get from events that are written together.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The decisions that the events are of, with what they change.
    pub(crate) known: Vec<DecisionRecord>,
    /// Those that change, and whether they are new.
    pub(crate) decisions: Vec<(DecisionRow, bool)>,
    pub(crate) invocations: Vec<InvocationRow>,
}

/// Returns the turns whose decisions must be known to follow the events: those that the events
/// change and do not begin.
pub(crate) fn changed_turns<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<TurnId> {
    let (mut begun, mut changed) = (Vec::new(), Vec::new());
    for event in events {
        let Some(turn) = event.turn() else { continue };
        match event {
            Event::TurnStarted { .. } => begun.push(turn),
            _ if begun.contains(&turn) || changed.contains(&turn) => {}
            _ if DecisionRecord::is_changed_by(event) => changed.push(turn),
            _ => {}
        }
    }
    changed
}

/// Reads the decisions of turns, as far as there are any.
pub(crate) async fn decisions<C: Connection>(
    rows: &mut C,
    user: &UserId,
    turns: Vec<TurnId>,
) -> Result<Vec<DecisionRecord>, Failure> {
    let mut known = Vec::with_capacity(turns.len());
    for turn in turns {
        known.extend(decision(rows, user, turn).await?);
    }
    Ok(known)
}

/// Returns what both logs get from events that are written together. `known`: the decisions of
/// [`changed_turns`].
pub(crate) fn follow<'e>(
    key: &ConversationKey,
    known: Vec<DecisionRecord>,
    events: impl Iterator<Item = &'e Recorded>,
    content: LogContent,
) -> Result<Rows, StoreError> {
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
        if let Some(invocation) = ToolInvocationRecord::of(*at, event, content) {
            invocations.push(InvocationRow::of(&invocation)?);
        }
    }
    let is_changed = |(before, decision): &&(Option<DecisionRecord>, DecisionRecord)| {
        before.as_ref() != Some(decision)
    };
    let row = |(before, decision): &(Option<DecisionRecord>, DecisionRecord)| {
        Ok((DecisionRow::of(decision)?, before.is_none()))
    };
    let decisions = changed
        .iter()
        .filter(is_changed)
        .map(row)
        .collect::<Result<_, StoreError>>()?;
    Ok(Rows {
        known: changed.into_iter().map(|(_, decision)| decision).collect(),
        decisions,
        invocations,
    })
}

/// Writes them.
pub(super) async fn write<C: Connection>(
    rows: &mut C,
    conversation: i64,
    user: &UserId,
    logs: &Rows,
) -> Result<(), Failure> {
    for (row, is_new) in &logs.decisions {
        blob::insert(rows, conversation, &row.blobs).await?;
        match is_new {
            true => insert_decision(rows, conversation, row).await?,
            false => update_decision(rows, row).await?,
        }
    }
    for row in &logs.invocations {
        blob::insert(rows, conversation, &row.blobs).await?;
        insert_invocation(rows, conversation, user, row).await?;
    }
    Ok(())
}

async fn decision<C: Connection>(
    rows: &mut C,
    user: &UserId,
    id: TurnId,
) -> Result<Option<DecisionRecord>, Failure> {
    let found = rows
        .fetch(
            select_decisions!("WHERE user_id = $1 AND id = $2"),
            values![user.as_str(), &id.to_string()],
        )
        .await?;
    let (mut decisions, blobs) = decision_rows(rows, found).await?;
    Ok(decisions.pop().map(|row| row.read(&blobs)).transpose()?)
}

/// Reads rows of decisions, and what they refer to.
pub(super) async fn decision_rows<C: Connection>(
    rows: &mut C,
    found: Vec<Columns>,
) -> Result<(Vec<DecisionRow>, Blobs), Failure> {
    let mut wanted = Wanted::default();
    let mut decisions = Vec::with_capacity(found.len());
    for columns in found {
        let (row, conversation) = decision_row(columns)?;
        let texts = [
            Some(&row.message),
            row.content.as_ref(),
            row.raw_response.as_ref(),
        ];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| wanted.add_text(conversation, text));
        decisions.push(row);
    }
    Ok((decisions, wanted.read(rows).await?))
}

/// Reads the rows of a decision's calls, and what they refer to.
async fn invocation_rows<C: Connection>(
    rows: &mut C,
    values: &[Value<'_>],
) -> Result<(Vec<InvocationRow>, Blobs), Failure> {
    let found = rows
        .fetch(
            "SELECT conversation, id, decision, tool, arguments, success, data, error, ms, attempt, at
             FROM adjutant_tool_invocation WHERE user_id = $1 AND decision = $2 ORDER BY number",
            values,
        )
        .await?;
    let mut wanted = Wanted::default();
    let mut invocations = Vec::with_capacity(found.len());
    for mut columns in found {
        let conversation = columns.maybe_int()?;
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
            blobs: Blobs::default(),
        };
        if let Some(conversation) = conversation {
            wanted.add(conversation, &row.arguments);
            row.data
                .iter()
                .for_each(|data| wanted.add(conversation, data));
            row.error
                .iter()
                .for_each(|error| wanted.add_text(conversation, error));
        }
        invocations.push(row);
    }
    Ok((invocations, wanted.read(rows).await?))
}

async fn insert_decision<C: Connection>(
    rows: &mut C,
    conversation: i64,
    row: &DecisionRow,
) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_decision (conversation, conversation_id, user_id, id, agent, version, request_id, started_at,
         ended_at, message, message_chars, intent, kind, outcome, content, model_provider, model_name, model_calls,
         iterations, input_tokens, output_tokens, cached_tokens, cache_written_tokens, thinking_tokens, cost_usd, notices,
         model_ms, tool_ms, total_ms, error_code, raw_response)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
         $25, $26, $27, $28, $29, $30, $31)",
        values![
            conversation,
            &row.conversation_id,
            &row.user_id,
            &row.id,
            &row.agent,
            row.version.as_deref(),
            row.request_id.as_deref(),
            &row.started_at,
            row.ended_at.as_deref(),
            &row.message,
            row.message_chars,
            row.intent.as_deref(),
            row.kind.as_deref(),
            row.outcome.as_deref(),
            row.content.as_deref(),
            &row.model_provider,
            &row.model_name,
            row.model_calls,
            row.iterations,
            row.input_tokens,
            row.output_tokens,
            row.cached_tokens,
            row.cache_written_tokens,
            row.thinking_tokens,
            row.cost_usd,
            &row.notices,
            row.model_ms,
            row.tool_ms,
            row.total_ms,
            row.error_code.as_deref(),
            row.raw_response.as_deref()
        ],
    )
    .await?;
    Ok(())
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

/// Keeps what a user thinks of the answer of a turn that has ended.
async fn rate<C: Connection>(
    rows: &mut C,
    user: &UserId,
    turn: &str,
    feedback: Option<&FeedbackRow>,
) -> Result<Rated, Failure> {
    let found = rows
        .fetch_first(
            "SELECT ended_at, feedback FROM adjutant_decision WHERE user_id = $1 AND id = $2",
            values![user.as_str(), turn],
        )
        .await?;
    let Some(mut found) = found else {
        return Ok(Rated::NoSuchTurn);
    };
    if found.maybe_text()?.is_none() {
        return Ok(Rated::Open);
    }
    let unreadable = |error| row::unreadable(&format!("decision {turn}"), error);
    let before = found
        .maybe_text()?
        .map(|word| word.parse())
        .transpose()
        .map_err(unreadable)?;
    rows.execute(
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

/// Reads rating, comment and time.
fn feedback_row(columns: &mut Columns) -> Result<Option<FeedbackRow>, StoreError> {
    let (rating, comment, at) = (
        columns.maybe_text()?,
        columns.maybe_text()?,
        columns.maybe_text()?,
    );
    Ok(rating.zip(at).map(|(rating, at)| FeedbackRow {
        rating,
        comment,
        at,
    }))
}

/// The same row twice is one row.
async fn insert_invocation<C: Connection>(
    rows: &mut C,
    conversation: i64,
    user: &UserId,
    row: &InvocationRow,
) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_tool_invocation (conversation, user_id, decision, id, tool, arguments, success, data, error, ms,
         attempt, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
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

/// Reads the row of a decision, and which conversation it is of.
fn decision_row(mut columns: Columns) -> Result<(DecisionRow, i64), StoreError> {
    let row = DecisionRow {
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
        feedback: feedback_row(&mut columns)?,
        blobs: Blobs::default(),
    };
    Ok((row, columns.int()?))
}
