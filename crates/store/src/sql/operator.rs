//! Reads over all users, for whoever runs the store.

use adjutant_core::port::{
    COUNTED_MAX, GroupBy, GroupTotal, OperatorStore, PeopleFilter, Person, StoreError, Totals,
    TotalsFilter, WaitingFilter, WaitingTurn, Which, WorkState, WorkerState,
};
use adjutant_core::{AgentName, BoxFuture, DecisionFilter, DecisionRecord, Rating};
use jiff::Timestamp;

use super::log::{decision_rows, select_decisions};
use super::{
    Backend, Columns, Connection, Failure, SqlStore, Value, count, people, to_static, values,
};
use crate::row;

/// Texts before and behind every time.
const FIRST: &str = "";
const LAST: &str = "~";

/// A page of everybody's decisions. `$1` and `$2`: the place before which it begins; `$3`: the
/// earliest moment.
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

/// Decisions by a part of their id. It is looked for in the index that has both columns, and the
/// rows are read then.
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

/// Adds up turns. `$1` and `$2`: from when to when they began; `$3`: how many of them; `$4`: how
/// many groups.
macro_rules! totals {
    ($group:literal, $order:literal, $which:literal) => {
        concat!(
            "SELECT grp, turns, failed, input, output, cost, unknown, up, down, CAST(sum(turns) OVER () AS BIGINT),
                    CAST(sum(failed) OVER () AS BIGINT), CAST(sum(input) OVER () AS BIGINT),
                    CAST(sum(output) OVER () AS BIGINT), sum(cost) OVER (), CAST(sum(unknown) OVER () AS BIGINT),
                    CAST(sum(up) OVER () AS BIGINT), CAST(sum(down) OVER () AS BIGINT)
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

/// The statements that add up, of everybody's turns and of one user's.
macro_rules! both {
    ($group:literal, $order:literal, $which:literal) => {
        (
            totals!($group, $order, $which),
            totals!($group, $order, " AND user_id = $5"),
        )
    };
}

/// Returns the statement for everybody's turns, and the one for a user's.
pub(crate) fn totals_statements(by: GroupBy) -> (&'static str, &'static str) {
    match by {
        GroupBy::User => both!("user_id", "turns DESC, grp", ""),
        GroupBy::Model => both!("model_provider || '/' || model_name", "turns DESC, grp", ""),
        GroupBy::Day => both!("substr(started_at, 1, 10)", "grp DESC", ""),
        GroupBy::Outcome => both!("coalesce(outcome, '')", "turns DESC, grp", ""),
        GroupBy::Error => (
            totals!(
                "error_code",
                "turns DESC, grp",
                " AND error_code IS NOT NULL"
            ),
            totals!(
                "error_code",
                "turns DESC, grp",
                " AND error_code IS NOT NULL AND user_id = $5"
            ),
        ),
    }
}

/// Conversations that wait for a person, the longest first. `$1` and `$2`: the place to begin
/// behind; `$3`: only what waited before it.
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
        // The earlier of the two is where it begins.
        let until = filter
            .until
            .map(|until| (row::time_text(until), String::new()));
        let after = filter
            .after
            .map(|place| (row::time_text(place.at), place.id.to_string()));
        let before = until.into_iter().chain(after).min();
        let (at, id) = before.unwrap_or_else(|| (LAST.to_owned(), String::new()));
        let since = filter
            .since
            .map_or_else(|| FIRST.to_owned(), row::time_text);
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
            // Anything else is no part of an id, and some of it means something in a pattern.
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
        self.run(async move {
            let (of_all, of_user) = totals_statements(asked.by);
            let since = asked.since.map_or_else(|| FIRST.to_owned(), row::time_text);
            let until = asked.until.map_or_else(|| LAST.to_owned(), row::time_text);
            // One more tells whether there are more.
            let (turns, groups) = (i64::from(COUNTED_MAX) + 1, i64::from(asked.limit) + 1);
            let mut values = values![&since, &until, turns, groups].to_vec();
            values.extend(asked.user.as_ref().map(|user| Value::from(user.as_str())));
            let statement = if asked.user.is_some() {
                of_user
            } else {
                of_all
            };
            let mut totals = Totals::default();
            for mut columns in self.0.fetch(statement, &values).await? {
                let group = columns.text()?;
                let total = people::total(&mut columns)?;
                totals.all = people::total(&mut columns)?;
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
        self.run(async move {
            self.0
                .read(filter.clone(), |rows, filter| {
                    Box::pin(people::page(rows, filter))
                })
                .await
        })
    }

    fn waiting<'a>(
        &'a self,
        filter: &'a WaitingFilter,
    ) -> BoxFuture<'a, Result<Vec<WaitingTurn>, StoreError>> {
        self.run(async move {
            let (after, key) = filter.after.map_or_else(
                || (FIRST.to_owned(), 0),
                |(at, key)| (row::time_text(at), key),
            );
            let before = row::time_text(filter.before);
            let values = values![&after, key, &before, i64::from(filter.limit)];
            let found = self.0.fetch(WAITING, values).await?;
            Ok(found
                .into_iter()
                .map(waiting_turn)
                .collect::<Result<_, _>>()?)
        })
    }

    fn work(&self) -> BoxFuture<'_, Result<WorkState, StoreError>> {
        self.run(async move { self.0.read((), |rows, ()| Box::pin(work(rows))).await })
    }
}

impl<B: Backend> SqlStore<B> {
    fn decisions_by(
        &self,
        statement: &'static str,
        values: Vec<Value<'static>>,
    ) -> BoxFuture<'_, Result<Vec<DecisionRecord>, StoreError>> {
        self.run(async move {
            let found = self
                .0
                .read((statement, values), |rows, (statement, values)| {
                    Box::pin(async move {
                        let found = rows.fetch(statement, values).await?;
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
}

fn waiting_turn(mut columns: Columns) -> Result<WaitingTurn, StoreError> {
    let what = "a conversation that waits";
    let (since, place) = (row::read_time(&columns.text()?, what)?, columns.int()?);
    let user = columns.text()?;
    let mut waiting = WaitingTurn {
        agent: AgentName::new(columns.text()?).map_err(|error| row::unreadable(what, error))?,
        conversation: columns
            .text()?
            .parse()
            .map_err(|error| row::unreadable(what, error))?,
        turn: columns.maybe_text()?,
        since,
        expires_at: None,
        calls: 0,
        place: (since, place),
        user,
    };
    for asked in row::read_waiting(&columns.text()?, what)?
        .iter()
        .filter(|waiting| waiting.is_asked())
    {
        waiting.calls += 1;
        waiting.expires_at = waiting.expires_at.into_iter().chain(asked.until()).min();
    }
    Ok(waiting)
}

async fn work<C: Connection>(rows: &mut C) -> Result<WorkState, Failure> {
    let now = row::time_text(rows.now().await?);
    let counted = rows
        .fetch_first(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM adjutant_conversation WHERE unsettled = 1 LIMIT $1) AS counted),
                    (SELECT count(*) FROM (SELECT 1 FROM adjutant_conversation WHERE asks = 1 LIMIT $1) AS counted),
                    (SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM adjutant_migration)",
            values![i64::from(WorkState::COUNTED_MAX)],
        )
        .await?;
    let (mut unsettled, mut waiting, mut schema_version) = (0, 0, 0);
    if let Some(mut counted) = counted {
        unsettled = count(counted.int()?);
        waiting = count(counted.int()?);
        schema_version = count(counted.int()?);
    }
    let found = rows
        .fetch(
            "SELECT id, max(seen_until) FROM adjutant_worker WHERE seen_until > $1 GROUP BY id ORDER BY 2 DESC LIMIT 100",
            values![&now],
        )
        .await?;
    let worker = |mut columns: Columns| {
        let id = columns.text()?;
        let seen_until: Timestamp = row::read_time(&columns.text()?, "a worker")?;
        Ok::<_, StoreError>(WorkerState { id, seen_until })
    };
    let workers = found.into_iter().map(worker).collect::<Result<_, _>>()?;
    Ok(WorkState {
        unsettled,
        waiting,
        workers,
        schema_version,
    })
}
