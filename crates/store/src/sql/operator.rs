//! Queries over all users, for an operator.

use adjutant_core::port::{
    COUNTED_MAX, GroupBy, GroupTotal, OperatorStore, PeopleFilter, Person, StoreError, Totals,
    TotalsFilter, WaitingFilter, WaitingTurn, Which, WorkState, WorkerState,
};
use adjutant_core::{AgentName, BoxFuture, DecisionFilter, DecisionRecord, Rating};

use super::log::{read_decisions, select_decisions};
use super::{
    Backend, Connection, Failure, Row, SqlStore, Value, decode_all, to_static, user_page, values,
};
use crate::record;
use crate::status::WaitingCall;

/// Texts that sort before and after every time.
const FIRST: &str = "";
const LAST: &str = "~";

/// A page of all users' decisions: before the place `$1`, `$2`, and not earlier than `$3`.
macro_rules! decisions_of_all {
    ($which:literal) => {
        select_decisions!(
            "WHERE (started_at, id) < ($1, $2) AND started_at >= $3",
            $which,
            " AND (CAST($4 AS TEXT) IS NULL OR outcome = $4)
             AND (CAST($5 AS TEXT) IS NULL OR conversation_id = $5)
             AND (CAST($6 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM adjutant_tool_invocation AS tool_invocation
                  WHERE tool_invocation.user_id = decision.user_id
                  AND tool_invocation.decision = decision.id AND tool = $6))
             AND (CAST($7 AS TEXT) IS NULL OR agent = $7)
             AND (CAST($8 AS TEXT) IS NULL OR feedback = $8)
             ORDER BY started_at DESC, id DESC LIMIT $9"
        )
    };
}
pub(crate) const ALL: &str = decisions_of_all!("");
pub(crate) const FAILED: &str = decisions_of_all!(" AND error_code IS NOT NULL");
pub(crate) const RATED: &str = decisions_of_all!(" AND feedback IS NOT NULL");

/// Decisions by a part of their id. The inner query reads only the index that has both columns.
macro_rules! named {
    ($condition:literal) => {
        select_decisions!(
            "WHERE (started_at, id) IN (SELECT named.started_at, named.id FROM adjutant_decision AS named WHERE ",
            $condition,
            " ORDER BY named.started_at DESC, named.id DESC LIMIT $2) ORDER BY started_at DESC, decision.id DESC"
        )
    };
}
pub(crate) const NAMED: &str = named!("named.id = $1");
pub(crate) const NAMED_IN_PART: &str = named!("(named.id LIKE $1 OR named.id LIKE $3)");

pub(crate) const OF_REQUEST: &str =
    select_decisions!("WHERE request_id = $1 ORDER BY started_at DESC, id DESC LIMIT $2");

/// Sums up to `$3` turns that started from `$1` to `$2`, in up to `$4` groups.
// The windows add up all groups, also those that LIMIT cuts off, so one statement has both.
macro_rules! totals {
    ($group:literal, $order:literal, $which:expr) => {
        concat!(
            "SELECT grp, turns, failed, input, output, cost, unknown, up, down,
                    CAST(sum(turns) OVER () AS BIGINT) AS all_turns, CAST(sum(failed) OVER () AS BIGINT) AS all_failed,
                    CAST(sum(input) OVER () AS BIGINT) AS all_input, CAST(sum(output) OVER () AS BIGINT) AS all_output,
                    sum(cost) OVER () AS all_cost, CAST(sum(unknown) OVER () AS BIGINT) AS all_unknown,
                    CAST(sum(up) OVER () AS BIGINT) AS all_up, CAST(sum(down) OVER () AS BIGINT) AS all_down
             FROM (
               SELECT ",
            $group,
            " AS grp, count(*) AS turns, count(error_code) AS failed,
                 CAST(coalesce(sum(input_tokens), 0) AS BIGINT) AS input,
                 CAST(coalesce(sum(output_tokens), 0) AS BIGINT) AS output,
                 coalesce(sum(cost_usd), 0.0) AS cost, count(*) - count(cost_usd) AS unknown,
                 count(CASE WHEN feedback = 'up' THEN 1 END) AS up, count(CASE WHEN feedback = 'down' THEN 1 END) AS down
               FROM (
                 SELECT user_id, model_provider, model_name, started_at, outcome, error_code, input_tokens, output_tokens, cost_usd, feedback
                 FROM adjutant_decision WHERE started_at >= $1 AND started_at < $2",
            $which,
            " ORDER BY started_at DESC LIMIT $3
               ) AS counted GROUP BY ",
            $group,
            ") AS grouped ORDER BY ",
            $order,
            " LIMIT $4"
        )
    };
}

/// Returns the statements for all users' turns and for one user's.
pub(crate) fn totals_statements(by: GroupBy) -> (&'static str, &'static str) {
    macro_rules! both {
        ($group:literal, $order:literal, $which:literal) => {
            (
                totals!($group, $order, $which),
                totals!($group, $order, concat!($which, " AND user_id = $5")),
            )
        };
    }
    match by {
        GroupBy::User => both!("user_id", "turns DESC, grp", ""),
        GroupBy::Model => both!("model_provider || '/' || model_name", "turns DESC, grp", ""),
        GroupBy::Day => both!("substr(started_at, 1, 10)", "grp DESC", ""),
        GroupBy::Outcome => both!("coalesce(outcome, '')", "turns DESC, grp", ""),
        GroupBy::Error => both!(
            "error_code",
            "turns DESC, grp",
            " AND error_code IS NOT NULL"
        ),
    }
}

/// Conversations that wait for a person, the longest first: after the place `$1`, `$2`, and waiting
/// since before `$3`.
pub(crate) const WAITING: &str =
    "SELECT updated_at, key, user_id, agent, id, turn, waiting FROM adjutant_conversation
     WHERE asks = 1 AND (updated_at, key) > ($1, $2) AND updated_at < $3
     ORDER BY updated_at, key LIMIT $4";

impl<B: Backend> OperatorStore for SqlStore<B> {
    fn decisions_of_all<'a>(
        &'a self,
        filter: &'a DecisionFilter,
        which: Which,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        // The earlier of the two is where the page begins.
        let until = filter
            .until
            .map(|until| (record::format_time(until), String::new()));
        let after = filter
            .after
            .map(|place| (record::format_time(place.at), place.id.to_string()));
        let before = until.into_iter().chain(after).min();
        let (at, id) = before.unwrap_or_else(|| (LAST.to_owned(), String::new()));
        let since = filter
            .since
            .map_or_else(|| FIRST.to_owned(), record::format_time);
        let conversation = filter
            .conversation
            .map(|conversation| conversation.to_string());
        let values = values![
            &at,
            &id,
            &since,
            filter.outcome.map(|outcome| outcome.as_str()),
            conversation.as_deref(),
            filter.tool.as_deref(),
            filter.agent.as_ref().map(AgentName::as_str),
            filter.feedback.map(Rating::as_str),
            filter.limit.map_or(i64::MAX, i64::from)
        ];
        let statement = match which {
            Which::All if filter.feedback.is_some() => RATED,
            Which::All => ALL,
            Which::Failed => FAILED,
        };
        self.decisions_by(statement, to_static(values))
    }

    fn decisions_named<'a>(
        &'a self,
        id: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        Box::pin(async move {
            let id = id.trim().to_ascii_lowercase();
            // Other characters cannot be part of an id, and some are wildcards of LIKE.
            if id.is_empty()
                || !id
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            {
                return Ok(Vec::new());
            }
            let limit = i64::from(limit);
            let exact = self
                .decisions_by(NAMED, to_static(values![&id, limit]))
                .await?;
            if !exact.is_empty() {
                return Ok(exact);
            }
            let parts = to_static(values![&format!("{id}%"), limit, &format!("%{id}")]);
            self.decisions_by(NAMED_IN_PART, parts).await
        })
    }

    fn decisions_of_request<'a>(
        &'a self,
        request_id: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        self.decisions_by(OF_REQUEST, to_static(values![request_id, i64::from(limit)]))
    }

    fn totals<'a>(&'a self, asked: &'a TotalsFilter) -> BoxFuture<'a, Result<Totals, StoreError>> {
        self.explained(async move {
            let (of_all, of_user) = totals_statements(asked.by);
            let since = asked
                .since
                .map_or_else(|| FIRST.to_owned(), record::format_time);
            let until = asked
                .until
                .map_or_else(|| LAST.to_owned(), record::format_time);
            // One more than asked for shows if there are more.
            let (turns, groups) = (i64::from(COUNTED_MAX) + 1, i64::from(asked.limit) + 1);
            let mut values = values![&since, &until, turns, groups].to_vec();
            values.extend(asked.user.as_ref().map(|user| Value::from(user.as_str())));
            let statement = if asked.user.is_some() {
                of_user
            } else {
                of_all
            };
            let mut totals = Totals::default();
            for mut columns in self.backend.fetch_all(statement, &values).await? {
                let group = columns.get("grp")?;
                let total = user_page::total(&mut columns, "")?;
                totals.all = user_page::total(&mut columns, "all_")?;
                totals.groups.push(GroupTotal { group, total });
            }
            totals.is_cut = totals.all.turns > u64::from(COUNTED_MAX);
            let fit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
            totals.more_groups = totals.groups.len() > fit;
            totals.groups.truncate(fit);
            Ok(totals)
        })
    }

    fn people<'a>(
        &'a self,
        filter: &'a PeopleFilter,
    ) -> BoxFuture<'a, Result<Vec<Person>, StoreError>> {
        self.read(filter.clone(), |tx, filter| {
            Box::pin(user_page::page(tx, filter))
        })
    }

    fn waiting<'a>(
        &'a self,
        filter: &'a WaitingFilter,
    ) -> BoxFuture<'a, Result<Vec<WaitingTurn>, StoreError>> {
        self.explained(async move {
            let (after, key) = filter.after.map_or_else(
                || (FIRST.to_owned(), 0),
                |(at, key)| (record::format_time(at), key),
            );
            let before = record::format_time(filter.before);
            let values = values![&after, key, &before, i64::from(filter.limit)];
            let found = self.backend.fetch_all(WAITING, values).await?;
            Ok(decode_all(found, waiting_turn)?)
        })
    }

    fn work(&self) -> BoxFuture<'_, Result<WorkState, StoreError>> {
        self.explained(async move { self.backend.read((), |tx, ()| Box::pin(work(tx))).await })
    }
}

impl<B: Backend> SqlStore<B> {
    /// Reads the decisions that a statement selects, with the long values that they refer to.
    pub(super) fn decisions_by(
        &self,
        statement: &'static str,
        values: Vec<Value<'static>>,
    ) -> BoxFuture<'_, Result<Vec<DecisionRecord>, StoreError>> {
        self.read((statement, values), |tx, (statement, values)| {
            Box::pin(read_decisions(tx, statement, values))
        })
    }
}

fn waiting_turn(mut row: Row) -> Result<WaitingTurn, StoreError> {
    let what = "a conversation that waits";
    let since = row.parse("updated_at", what)?;
    let calls: Vec<WaitingCall> = record::from_json(&row.get::<String>("waiting")?, what)?;
    let asked = || calls.iter().filter(|call| call.asks_person());
    Ok(WaitingTurn {
        agent: record::convert(row.get::<String>("agent")?, what)?,
        conversation: row.parse("id", what)?,
        turn: row.get("turn")?,
        since,
        expires_at: asked().filter_map(WaitingCall::expires_at).min(),
        calls: asked().count() as u64,
        place: (since, row.get("key")?),
        user: row.get("user_id")?,
    })
}

async fn work<C: Connection>(tx: &mut C) -> Result<WorkState, Failure> {
    let now = record::format_time(tx.now().await?);
    let counted = tx
        .fetch_optional(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM adjutant_conversation WHERE unsettled = 1 LIMIT $1) AS counted) AS unsettled,
                    (SELECT count(*) FROM (SELECT 1 FROM adjutant_conversation WHERE asks = 1 LIMIT $1) AS counted) AS waiting,
                    (SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM adjutant_migration) AS schema_version",
            values![i64::from(WorkState::COUNTED_MAX)],
        )
        .await?;
    let (mut unsettled, mut waiting, mut schema_version) = (0, 0, 0);
    if let Some(mut counted) = counted {
        unsettled = counted.get("unsettled")?;
        waiting = counted.get("waiting")?;
        schema_version = counted.get("schema_version")?;
    }
    let found = tx
        .fetch_all(
            "SELECT id, max(seen_until) AS seen_until FROM adjutant_worker WHERE seen_until > $1 GROUP BY id ORDER BY 2 DESC LIMIT 100",
            values![&now],
        )
        .await?;
    let worker = |mut row: Row| {
        Ok(WorkerState {
            id: row.get("id")?,
            seen_until: row.parse("seen_until", "a worker")?,
        })
    };
    let workers = decode_all(found, worker)?;
    Ok(WorkState {
        unsettled,
        waiting,
        workers,
        schema_version,
    })
}
