//! Spending of users by day, and the blocks of a budget that workers have reserved.

use std::collections::HashMap;
use std::time::Duration;

use adjutant_core::port::{Ask, Booking, BudgetStore, Drawn, GrantRequest, Granted, StoreError};
use adjutant_core::{BoxFuture, Cost, Exceeded, Scope, Spending, UserId};
use jiff::Timestamp;
use jiff::civil::Date;

use super::{Backend, Connection, Failure, Row, SqlStore, Value, values};
use crate::record;

/// The user of the rows for all users together. User ids are never empty.
const EVERYONE: &str = "";

/// Bookings of a day at which a caller is asked to fold them, because they are added up at each
/// read.
const UNFOLDED_MANY: i64 = 256;

/// The columns of an amount that was spent, and of the part of a block that is booked.
const SPENT: [&str; 5] = ["tokens", "model_calls", "tool_calls", "ms", "cost"];
const BOOKED: [&str; 5] = [
    "booked_tokens",
    "booked_model_calls",
    "booked_tool_calls",
    "booked_ms",
    "booked_cost",
];

/// Selects the state of a day for all users or for one: the folded total (kind 0), every block
/// (kind 1), and the bookings since, by block (kind 2). It is one statement, so that a concurrent
/// booking is seen together with the block that it closes, or not at all.
// Sums are cast because PostgreSQL adds BIGINT to NUMERIC, and NULLs because it takes the types of
// a UNION from the first part.
macro_rules! day_use {
    ($block:literal, $closes:literal, $blocks:literal, $bookings:literal) => {
        concat!(
            "SELECT CAST(0 AS BIGINT) AS kind, CAST(NULL AS TEXT) AS id, CAST(NULL AS TEXT) AS worker, CAST(NULL AS TEXT) AS until,
                    CAST(0 AS BIGINT) AS is_closed, tokens, model_calls, tool_calls, ms, cost, CAST(0 AS BIGINT) AS bookings,
                    CAST(0 AS BIGINT) AS booked_tokens, CAST(0 AS BIGINT) AS booked_model_calls, CAST(0 AS BIGINT) AS booked_tool_calls,
                    CAST(0 AS BIGINT) AS booked_ms, CAST(0 AS BIGINT) AS booked_cost
             FROM adjutant_budget WHERE day = $1 AND user_id = $2
             UNION ALL
             SELECT CAST(1 AS BIGINT), id, worker, until, CAST(0 AS BIGINT), tokens, model_calls, tool_calls, ms, cost,
                    CAST(0 AS BIGINT), booked_tokens, booked_model_calls, booked_tool_calls, booked_ms, booked_cost
             FROM adjutant_budget_block WHERE ",
            $blocks,
            " UNION ALL
             SELECT CAST(2 AS BIGINT), ",
            $block,
            ", CAST(NULL AS TEXT), CAST(NULL AS TEXT), max(",
            $closes,
            "), CAST(sum(tokens) AS BIGINT), CAST(sum(model_calls) AS BIGINT), CAST(sum(tool_calls) AS BIGINT),
                    CAST(sum(ms) AS BIGINT), CAST(sum(cost) AS BIGINT), count(*), CAST(0 AS BIGINT), CAST(0 AS BIGINT),
                    CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT)
             FROM adjutant_budget_booking WHERE ",
            $bookings,
            " GROUP BY ",
            $block
        )
    };
}
pub(crate) const USE_BY_ALL: &str = day_use!(
    "everyone_block",
    "closes_everyone",
    "day = $1 AND user_id = $2",
    "day = $1"
);
pub(crate) const USE_BY_USER: &str = day_use!(
    "own_block",
    "closes_own",
    "day = $1 AND user_id = $2",
    "day = $1 AND user_id = $2"
);

/// Adds the bookings to the blocks that they were reserved in.
macro_rules! add_to_blocks {
    ($block:literal) => {
        concat!(
            "UPDATE adjutant_budget_block SET booked_tokens = booked_tokens + used.tokens,
               booked_model_calls = booked_model_calls + used.model_calls, booked_tool_calls = booked_tool_calls + used.tool_calls,
               booked_ms = booked_ms + used.ms, booked_cost = booked_cost + used.cost
             FROM (SELECT ",
            $block,
            " AS block, sum(tokens) AS tokens, sum(model_calls) AS model_calls, sum(tool_calls) AS tool_calls, sum(ms) AS ms,
                     sum(cost) AS cost
                   FROM adjutant_budget_booking WHERE day = $1 AND folding = 1 GROUP BY ",
            $block,
            ") AS used WHERE used.block = id"
        )
    };
}

impl<B: Backend> BudgetStore for SqlStore<B> {
    fn grant<'a>(
        &'a self,
        request: GrantRequest<'a>,
    ) -> BoxFuture<'a, Result<Granted, StoreError>> {
        let data = OwnedGrantRequest {
            day: request.day.to_string(),
            user: request.user.as_str().to_owned(),
            worker: request.worker.id.to_owned(),
            epoch: request.worker.epoch,
            ttl: request.ttl,
            need: request.need,
            everyone: request.everyone,
            own: request.own,
        };
        self.write(data, |tx, request| Box::pin(grant(tx, request)))
    }

    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.write(bookings.to_vec(), |tx, bookings| {
            Box::pin(book(tx, bookings))
        })
    }

    fn fold(&self, day: Date) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(day.to_string(), |tx, day| Box::pin(fold(tx, day, None)))
    }

    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>> {
        self.explained(async move {
            let found = self.backend.fetch_all(
                    "SELECT tokens, model_calls, tool_calls, ms, cost FROM adjutant_budget WHERE day = $1 AND user_id = $2
                     UNION ALL
                     SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(model_calls), 0) AS BIGINT),
                     CAST(coalesce(sum(tool_calls), 0) AS BIGINT), CAST(coalesce(sum(ms), 0) AS BIGINT),
                     CAST(coalesce(sum(cost), 0) AS BIGINT)
                     FROM adjutant_budget_booking WHERE day = $1 AND ($2 = '' OR user_id = $2)",
                    values![&day.to_string(), user.map_or(EVERYONE, UserId::as_str)],
                )
                .await?;
            let amounts = found.into_iter().map(|mut row| spending(&mut row, SPENT));
            Ok(amounts.sum::<Result<Spending, StoreError>>()?)
        })
    }
}

/// A [`GrantRequest`] as owned data.
struct OwnedGrantRequest {
    day: String,
    user: String,
    worker: String,
    epoch: i64,
    ttl: Duration,
    need: Spending,
    everyone: Option<Ask>,
    own: Option<Ask>,
}

/// Grants a block if it fits the budget. Otherwise each existing block shrinks to what is kept of
/// it.
async fn grant<C: Connection>(tx: &mut C, request: &OwnedGrantRequest) -> Result<Granted, Failure> {
    let OwnedGrantRequest { day, user, .. } = request;
    let (mut found, mut exceeded, mut many) = (Vec::new(), None, false);
    let mut now = None;
    // Always in this order, so that two requests do not deadlock: first the row of all users, then
    // the user's.
    let asks = [
        (Scope::Everyone, EVERYONE, request.everyone),
        (Scope::Day, user, request.own),
    ];
    for (scope, name, ask) in asks
        .into_iter()
        .filter_map(|(scope, name, ask)| Some((scope, name, ask?)))
    {
        lock_day(tx, name, day).await?;
        // Read after the lock was waited for.
        let now = *now.insert(tx.now().await?);
        let used = day_use(tx, scope, name, day, now, &ask).await?;
        many |= used.bookings >= UNFOLDED_MANY;
        match ask.grant(scope, used.others, request.need) {
            Ok(granted) => found.push((scope, name, ask, used, granted)),
            Err(refused) => {
                exceeded = Some(refused);
                found.push((scope, name, ask, used, ask.kept));
                break;
            }
        }
    }
    if let Some(exceeded) = exceeded {
        return refuse_grant(
            tx,
            exceeded,
            found.into_iter().map(|(.., ask, used, _)| (ask, used)),
        )
        .await;
    }
    let until = now
        .unwrap_or_default()
        .checked_add(request.ttl)
        .unwrap_or(Timestamp::MAX);
    let (mut everyone, mut own) = (Spending::default(), Spending::default());
    for (scope, name, ask, used, granted) in found {
        let until = used.until.map_or(until, |other| other.max(until));
        save(tx, request, name, &ask, granted, until).await?;
        match scope {
            Scope::Everyone => everyone = granted,
            Scope::Day | Scope::Turn => own = granted,
        }
    }
    Ok(Granted::Blocks {
        everyone,
        own,
        many,
    })
}

/// Shrinks existing blocks to what is kept of them, so that others may use the rest.
async fn refuse_grant<C: Connection>(
    tx: &mut C,
    exceeded: Exceeded,
    blocks: impl Iterator<Item = (Ask, DayUse)> + Send,
) -> Result<Granted, Failure> {
    let mut is_changed = false;
    for (ask, day_use) in blocks {
        let kept = amounts(ask.kept);
        if day_use.held.is_some_and(|held| amounts(held) != kept) {
            let mut values = kept.map(Value::from).to_vec();
            values.push(ask.block.to_string().into());
            tx.execute(
                "UPDATE adjutant_budget_block SET tokens = $1, model_calls = $2, tool_calls = $3, ms = $4, cost = $5 WHERE id = $6",
                &values,
            )
            .await?;
            is_changed = true;
        }
    }
    // Only the row of the day was locked; without a commit nothing is written to the disk.
    if !is_changed {
        tx.undo();
    }
    Ok(Granted::Exceeded(exceeded))
}

async fn save<C: Connection>(
    tx: &mut C,
    request: &OwnedGrantRequest,
    name: &str,
    ask: &Ask,
    granted: Spending,
    until: Timestamp,
) -> Result<(), Failure> {
    let (block, until) = (ask.block.to_string(), record::format_time(until));
    let mut values = values![
        &block,
        &request.day,
        name,
        &request.worker,
        request.epoch,
        &until
    ]
    .to_vec();
    values.extend(amounts(granted).map(Value::from));
    tx.execute(
        "INSERT INTO adjutant_budget_block (id, day, user_id, worker, epoch, until, tokens, model_calls, tool_calls, ms, cost)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (id) DO UPDATE SET until = excluded.until, tokens = excluded.tokens,
         model_calls = excluded.model_calls, tool_calls = excluded.tool_calls, ms = excluded.ms, cost = excluded.cost",
        &values,
    )
    .await?;
    Ok(())
}

/// Locks the row of a user's day until the end of the transaction, so that requests against the
/// same limit are handled one after the other.
async fn lock_day<C: Connection>(tx: &mut C, user: &str, day: &str) -> Result<(), Failure> {
    tx.execute(
        // An update that changes nothing locks the row, and the insert makes one that can be
        // locked.
        "INSERT INTO adjutant_budget AS budget (user_id, day) VALUES ($1, $2)
         ON CONFLICT (day, user_id) DO UPDATE SET tokens = budget.tokens",
        values![user, day],
    )
    .await?;
    Ok(())
}

/// The part of a day's budget that is used or reserved, without the kept part of the block that is
/// asked for.
struct DayUse {
    others: Spending,
    /// The amount that the block reserves. `None` if it does not exist yet.
    held: Option<Spending>,
    until: Option<Timestamp>,
    /// Number of bookings that were not folded yet.
    bookings: i64,
}

/// A block: the reserved amount, and the part of it that is booked and folded.
struct Block {
    id: String,
    worker: String,
    until: Timestamp,
    holds: Spending,
    booked: Spending,
}

async fn day_use<C: Connection>(
    tx: &mut C,
    scope: Scope,
    name: &str,
    day: &str,
    now: Timestamp,
    ask: &Ask,
) -> Result<DayUse, Failure> {
    let statement = match scope {
        Scope::Everyone => USE_BY_ALL,
        Scope::Day | Scope::Turn => USE_BY_USER,
    };
    let (mut all, mut blocks, mut booked, mut bookings) =
        (Spending::default(), Vec::new(), HashMap::new(), 0);
    for mut row in tx.fetch_all(statement, values![day, name]).await? {
        let (kind, is_closed): (i64, bool) = (row.get("kind")?, row.get("is_closed")?);
        let (id, worker) = (
            row.get::<Option<String>>("id")?,
            row.get::<Option<String>>("worker")?,
        );
        let until: Option<String> = row.get("until")?;
        let amount = spending(&mut row, SPENT)?;
        match (kind, id, worker.zip(until)) {
            (1, Some(id), Some((worker, until))) => {
                let until = record::parse_time(&until, "a block of a budget")?;
                let booked = spending(&mut row, BOOKED)?;
                blocks.push(Block {
                    id,
                    worker,
                    until,
                    holds: amount,
                    booked,
                });
            }
            (2, id, _) => {
                all = all + amount;
                bookings += row.get::<i64>("bookings")?;
                if let Some(id) = id {
                    booked.insert(id, (amount, is_closed));
                }
            }
            _ => all = all + amount,
        }
    }
    let asked = ask.block.to_string();
    let mut day_use = DayUse {
        others: all,
        held: None,
        until: None,
        bookings,
    };
    let mut own_booked = Spending::default();
    // Of a block that is closed, has run out or belongs to a dead worker, only the bookings count.
    for block in blocks {
        let (since, is_closed) = booked.get(&block.id).copied().unwrap_or_default();
        let booked = block.booked + since;
        if block.id == asked {
            (day_use.held, day_use.until, own_booked) =
                (Some(block.holds), Some(block.until), booked);
        } else if !is_closed && block.until > now && !C::presence(&block.worker, None).is_dead() {
            day_use.others = day_use.others + (block.holds - booked);
        }
    }
    // It is a part of what is kept.
    day_use.others = day_use.others - own_booked;
    Ok(day_use)
}

/// Books what was used. A booking whose id exists is ignored.
pub(crate) async fn book<C: Connection>(tx: &mut C, bookings: &[Booking]) -> Result<(), Failure> {
    if bookings.is_empty() {
        return Ok(());
    }
    let lists: Vec<_> = bookings.iter().map(booking_values).collect();
    tx.execute_each(
        "INSERT INTO adjutant_budget_booking (id, day, user_id, everyone_block, own_block, closes_everyone, closes_own,
           tokens, model_calls, tool_calls, ms, cost)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING",
        &lists,
    )
    .await
}

/// Folds the bookings of a day into the users' totals, the total of all users, and the blocks that
/// they were reserved in. Closed blocks are deleted.
///
/// `user`: only this user's bookings; `None` for all.
pub(super) async fn fold<C: Connection>(
    tx: &mut C,
    day: &str,
    user: Option<&str>,
) -> Result<(), Failure> {
    // The first lock of `grant`, too, so that the two do not deadlock.
    lock_day(tx, EVERYONE, day).await?;
    // Bookings that are written from here on are folded the next time.
    let marked = tx
        .execute(
            "UPDATE adjutant_budget_booking SET folding = 1 WHERE day = $1 AND folding = 0
             AND (CAST($2 AS TEXT) IS NULL OR user_id = $2)",
            values![day, user],
        )
        .await?;
    if marked == 0 {
        return Ok(());
    }
    for statement in [
        // In the order of user ids, so that two concurrent folds do not deadlock.
        "INSERT INTO adjutant_budget AS budget (user_id, day, tokens, model_calls, tool_calls, ms, cost)
         SELECT user_id, day, sum(tokens), sum(model_calls), sum(tool_calls), sum(ms), sum(cost)
         FROM adjutant_budget_booking WHERE day = $1 AND folding = 1 GROUP BY day, user_id ORDER BY user_id
         ON CONFLICT (day, user_id) DO UPDATE SET tokens = budget.tokens + excluded.tokens,
         model_calls = budget.model_calls + excluded.model_calls, tool_calls = budget.tool_calls + excluded.tool_calls,
         ms = budget.ms + excluded.ms, cost = budget.cost + excluded.cost",
        "INSERT INTO adjutant_budget AS budget (user_id, day, tokens, model_calls, tool_calls, ms, cost)
         SELECT '', day, sum(tokens), sum(model_calls), sum(tool_calls), sum(ms), sum(cost)
         FROM adjutant_budget_booking WHERE day = $1 AND folding = 1 GROUP BY day
         ON CONFLICT (day, user_id) DO UPDATE SET tokens = budget.tokens + excluded.tokens,
         model_calls = budget.model_calls + excluded.model_calls, tool_calls = budget.tool_calls + excluded.tool_calls,
         ms = budget.ms + excluded.ms, cost = budget.cost + excluded.cost",
        add_to_blocks!("everyone_block"),
        add_to_blocks!("own_block"),
        "DELETE FROM adjutant_budget_block WHERE day = $1 AND id IN (
           SELECT everyone_block FROM adjutant_budget_booking WHERE day = $1 AND folding = 1 AND closes_everyone = 1
           UNION ALL SELECT own_block FROM adjutant_budget_booking WHERE day = $1 AND folding = 1 AND closes_own = 1)",
        "DELETE FROM adjutant_budget_booking WHERE day = $1 AND folding = 1",
    ] {
        tx.execute(statement, values![day]).await?;
    }
    Ok(())
}

/// Returns the values of a booking's columns, in the order in which PostgreSQL's function takes them.
pub(crate) fn booking_values(booking: &Booking) -> Vec<Value<'static>> {
    let block = |drawn: Option<Drawn>| drawn.map(|drawn| drawn.block.to_string());
    let closes = |drawn: Option<Drawn>| i64::from(drawn.is_some_and(|drawn| drawn.closes));
    let mut values = values![
        booking.id.to_string(),
        booking.day.to_string(),
        booking.user.to_string(),
        block(booking.everyone),
        block(booking.own),
        closes(booking.everyone),
        closes(booking.own),
    ]
    .to_vec();
    values.extend(amounts(booking.used).map(Value::from));
    values
}

/// Returns the values of the columns [`SPENT`], cut at a value whose sums do not overflow.
fn amounts(spending: Spending) -> [i64; 5] {
    const MOST: i64 = 1 << 53;
    [
        spending.tokens,
        spending.model_calls,
        spending.tool_calls,
        spending.ms,
        spending.cost.nano_usd(),
    ]
    .map(|number| i64::try_from(number).unwrap_or(MOST).min(MOST))
}

/// Reads a spending from the columns of these names.
fn spending(
    row: &mut Row,
    [tokens, model_calls, tool_calls, ms, cost]: [&str; 5],
) -> Result<Spending, StoreError> {
    let mut amount = |name| {
        u64::try_from(row.get::<i64>(name)?)
            .map_err(|error| record::unreadable("a spending", error))
    };
    Ok(Spending {
        tokens: amount(tokens)?,
        model_calls: amount(model_calls)?,
        tool_calls: amount(tool_calls)?,
        ms: amount(ms)?,
        cost: Cost::from_nano_usd(amount(cost)?),
    })
}
