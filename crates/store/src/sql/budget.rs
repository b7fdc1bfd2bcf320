//! Spending of users in a day, and the blocks that processes hold.

use std::collections::HashMap;
use std::time::Duration;

use adjutant_core::port::{Ask, Booking, BudgetStore, Drawn, GrantRequest, Granted, StoreError};
use adjutant_core::{BoxFuture, Cost, Exceeded, Scope, Spending, UserId};
use jiff::Timestamp;
use jiff::civil::Date;

use super::{Backend, Columns, Connection, Failure, SqlStore, Value, values};
use crate::row;

/// Nobody's name: user ids are never empty.
const EVERYONE: &str = "";

/// Bookings of a day that are added up each time it is read, before somebody adds them up for all.
const MANY: i64 = 256;

/// Selects the state of a day, of everybody or of one user: what is added up, every block, and what
/// is booked since, by the block it was taken from. One statement, so that what is booked meanwhile
/// is seen with the block it closes or not at all.
macro_rules! taken {
    ($block:literal, $closes:literal, $blocks:literal, $bookings:literal) => {
        concat!(
            "SELECT CAST(0 AS BIGINT), CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(0 AS BIGINT),
                    tokens, model_calls, tool_calls, ms, cost, CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT),
                    CAST(0 AS BIGINT), CAST(0 AS BIGINT)
             FROM adjutant_budget WHERE day = $1 AND user_id = $2
             UNION ALL
             SELECT CAST(1 AS BIGINT), id, worker, until, CAST(0 AS BIGINT), tokens, model_calls, tool_calls, ms, cost,
                    booked_tokens, booked_model_calls, booked_tool_calls, booked_ms, booked_cost
             FROM adjutant_budget_block WHERE ",
            $blocks,
            " UNION ALL
             SELECT CAST(2 AS BIGINT), ",
            $block,
            ", CAST(NULL AS TEXT), CAST(NULL AS TEXT), max(",
            $closes,
            "), CAST(sum(tokens) AS BIGINT), CAST(sum(model_calls) AS BIGINT), CAST(sum(tool_calls) AS BIGINT),
                    CAST(sum(ms) AS BIGINT), CAST(sum(cost) AS BIGINT), count(*), CAST(0 AS BIGINT), CAST(0 AS BIGINT),
                    CAST(0 AS BIGINT), CAST(0 AS BIGINT)
             FROM adjutant_budget_booking WHERE ",
            $bookings,
            " GROUP BY ",
            $block
        )
    };
}
pub(crate) const TAKEN_BY_ALL: &str = taken!(
    "everyone_block",
    "closes_everyone",
    "day = $1 AND user_id = $2",
    "day = $1"
);
pub(crate) const TAKEN_BY_USER: &str = taken!(
    "own_block",
    "closes_own",
    "day = $1 AND user_id = $2",
    "day = $1 AND user_id = $2"
);

/// Adds what is booked to the blocks it was taken from.
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
        self.run(async move {
            let data = Asking {
                day: request.day.to_string(),
                user: request.user.as_str().to_owned(),
                worker: request.worker.id.to_owned(),
                request: Numbers {
                    epoch: request.worker.epoch,
                    ttl: request.ttl,
                    need: request.need,
                    everyone: request.everyone,
                    own: request.own,
                },
            };
            self.0
                .write(data, |rows, asking| Box::pin(grant(rows, asking)))
                .await
        })
    }

    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            self.0
                .write(bookings.to_vec(), |rows, bookings| {
                    Box::pin(book(rows, bookings))
                })
                .await
        })
    }

    fn fold(&self, day: Date) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(async move {
            self.0
                .write(day.to_string(), |rows, day| Box::pin(fold(rows, day, None)))
                .await
        })
    }

    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>> {
        self.run(async move {
            let found = self.0.fetch(
                    "SELECT tokens, model_calls, tool_calls, ms, cost FROM adjutant_budget WHERE day = $1 AND user_id = $2
                     UNION ALL
                     SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(model_calls), 0) AS BIGINT),
                     CAST(coalesce(sum(tool_calls), 0) AS BIGINT), CAST(coalesce(sum(ms), 0) AS BIGINT),
                     CAST(coalesce(sum(cost), 0) AS BIGINT)
                     FROM adjutant_budget_booking WHERE day = $1 AND ($2 = '' OR user_id = $2)",
                    values![&day.to_string(), user.map_or(EVERYONE, UserId::as_str)],
                )
                .await?;
            let amounts = found.into_iter().map(|mut columns| spending(&mut columns));
            Ok(amounts.sum::<Result<Spending, StoreError>>()?)
        })
    }
}

/// A [`GrantRequest`] that owns what is in it.
struct Asking {
    day: String,
    user: String,
    worker: String,
    request: Numbers,
}

struct Numbers {
    epoch: i64,
    ttl: Duration,
    need: Spending,
    everyone: Option<Ask>,
    own: Option<Ask>,
}

/// Grants what fits, or leaves each block what is kept of it.
async fn grant<C: Connection>(rows: &mut C, asking: &Asking) -> Result<Granted, Failure> {
    let Asking {
        day, user, request, ..
    } = asking;
    let (mut found, mut exceeded, mut many) = (Vec::new(), None, false);
    let mut now = None;
    // Whoever asks for a part of everybody's waits here for the others first, then for the user:
    // always in this order.
    let asks = [
        (Scope::Everyone, EVERYONE, request.everyone),
        (Scope::Day, user, request.own),
    ];
    for (scope, name, ask) in asks
        .into_iter()
        .filter_map(|(scope, name, ask)| Some((scope, name, ask?)))
    {
        take_turns(rows, name, day).await?;
        // After the lock was waited for.
        let now = *now.insert(rows.now().await?);
        let taken = taken(rows, (scope, name), (day, now), &ask).await?;
        many |= taken.bookings >= MANY;
        match ask.grant(scope, taken.others, request.need) {
            Ok(granted) => found.push((scope, name, ask, taken, granted)),
            Err(refused) => {
                exceeded = Some(refused);
                found.push((scope, name, ask, taken, ask.kept));
                break;
            }
        }
    }
    if let Some(exceeded) = exceeded {
        return refuse(
            rows,
            exceeded,
            found.into_iter().map(|(.., ask, taken, _)| (ask, taken)),
        )
        .await;
    }
    let until = now
        .unwrap_or_default()
        .checked_add(request.ttl)
        .unwrap_or(Timestamp::MAX);
    let (mut everyone, mut own) = (Spending::default(), Spending::default());
    for (scope, name, ask, taken, granted) in found {
        let until = taken.until.map_or(until, |other| other.max(until));
        save(rows, (asking, name), (&ask, granted), until).await?;
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

/// Leaves of the blocks there are what is kept of them, so that others may have the rest.
async fn refuse<C: Connection>(
    rows: &mut C,
    exceeded: Exceeded,
    blocks: impl Iterator<Item = (Ask, Taken)> + Send,
) -> Result<Granted, Failure> {
    let mut is_changed = false;
    for (ask, taken) in blocks {
        let kept = Amount::of(ask.kept);
        if taken.held.is_some_and(|held| Amount::of(held) != kept) {
            rows.execute(
                "UPDATE adjutant_budget_block SET tokens = $1, model_calls = $2, tool_calls = $3, ms = $4, cost = $5 WHERE id = $6",
                &[&kept.values()[..], values![&ask.block.to_string()]].concat(),
            )
            .await?;
            is_changed = true;
        }
    }
    if !is_changed {
        rows.undo();
    }
    Ok(Granted::Exceeded(exceeded))
}

async fn save<C: Connection>(
    rows: &mut C,
    (
        Asking {
            day,
            worker,
            request,
            ..
        },
        name,
    ): (&Asking, &str),
    (ask, granted): (&Ask, Spending),
    until: Timestamp,
) -> Result<(), Failure> {
    let (block, until) = (ask.block.to_string(), row::time_text(until));
    let named: &[Value<'_>] = values![&block, day, name, worker, request.epoch, &until];
    let values = [named, &Amount::of(granted).values()].concat();
    rows.execute(
        "INSERT INTO adjutant_budget_block (id, day, user_id, worker, epoch, until, tokens, model_calls, tool_calls, ms, cost)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (id) DO UPDATE SET until = excluded.until, tokens = excluded.tokens,
         model_calls = excluded.model_calls, tool_calls = excluded.tool_calls, ms = excluded.ms, cost = excluded.cost",
        &values,
    )
    .await?;
    Ok(())
}

/// Of those who count up to the same bound, one at a time: the row is locked until the end of this
/// transaction.
async fn take_turns<C: Connection>(rows: &mut C, user: &str, day: &str) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_budget AS budget (user_id, day) VALUES ($1, $2)
         ON CONFLICT (day, user_id) DO UPDATE SET tokens = budget.tokens",
        values![user, day],
    )
    .await?;
    Ok(())
}

/// Room of a day that is taken, apart from what is kept of the block that is asked for.
struct Taken {
    others: Spending,
    /// The room that the block holds. `None`: it is not known yet.
    held: Option<Spending>,
    until: Option<Timestamp>,
    /// Number of bookings that were added up.
    bookings: i64,
}

/// A block: the room it holds, and the part of it that is booked and added up.
struct Block {
    id: String,
    worker: String,
    until: Timestamp,
    holds: Spending,
    booked: Spending,
}

async fn taken<C: Connection>(
    rows: &mut C,
    (scope, name): (Scope, &str),
    (day, now): (&str, Timestamp),
    ask: &Ask,
) -> Result<Taken, Failure> {
    let statement = match scope {
        Scope::Everyone => TAKEN_BY_ALL,
        Scope::Day | Scope::Turn => TAKEN_BY_USER,
    };
    let (mut all, mut blocks, mut booked, mut bookings) =
        (Spending::default(), Vec::new(), HashMap::new(), 0);
    for mut columns in rows.fetch(statement, values![day, name]).await? {
        let kind = columns.int()?;
        let (id, worker, until) = (
            columns.maybe_text()?,
            columns.maybe_text()?,
            columns.maybe_text()?,
        );
        let is_closed = columns.int()? > 0;
        let amount = spending(&mut columns)?;
        match (kind, id, worker.zip(until)) {
            (1, Some(id), Some((worker, until))) => {
                let until = row::read_time(&until, "a block of a budget")?;
                let booked = spending(&mut columns)?;
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
                bookings += columns.int()?;
                if let Some(id) = id {
                    booked.insert(id, (amount, is_closed));
                }
            }
            _ => all = all + amount,
        }
    }
    let asked = ask.block.to_string();
    let mut taken = Taken {
        others: all,
        held: None,
        until: None,
        bookings,
    };
    let mut own_booked = Spending::default();
    for block in blocks {
        let (since, is_closed) = booked.get(&block.id).copied().unwrap_or_default();
        let booked = block.booked + since;
        if block.id == asked {
            (taken.held, taken.until, own_booked) = (Some(block.holds), Some(block.until), booked);
        } else if !is_closed && block.until > now && !C::is_gone(&block.worker) {
            taken.others = taken.others + (block.holds - booked);
        }
    }
    // It is a part of what is kept.
    taken.others = taken.others - own_booked;
    Ok(taken)
}

/// Books what was used. What is booked before, by its id, is passed over.
pub(crate) async fn book<C: Connection>(rows: &mut C, bookings: &[Booking]) -> Result<(), Failure> {
    if bookings.is_empty() {
        return Ok(());
    }
    let lists: Vec<Vec<Value<'static>>> = bookings
        .iter()
        .map(|booking| BookingRow::of(booking).values())
        .collect();
    rows.execute_each(
        "INSERT INTO adjutant_budget_booking (id, day, user_id, everyone_block, own_block, closes_everyone, closes_own,
           tokens, model_calls, tool_calls, ms, cost)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING",
        &lists,
    )
    .await
}

/// Adds up the bookings of a day: into the users' rows and that of everybody, and into the blocks
/// they were taken from. A block that was closed goes.
///
/// `user`: only those of this user; `None`: of everybody.
pub(super) async fn fold<C: Connection>(
    rows: &mut C,
    day: &str,
    user: Option<&str>,
) -> Result<(), Failure> {
    take_turns(rows, EVERYONE, day).await?;
    // Those that are written from here on wait for the next time.
    let marked = rows
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
        // In the order of names, so that two who add up do not wait for each other.
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
        rows.execute(statement, values![day]).await?;
    }
    Ok(())
}

/// A booking as it is stored.
pub(crate) struct BookingRow {
    pub(crate) id: String,
    pub(crate) day: String,
    pub(crate) user: String,
    pub(crate) everyone_block: Option<String>,
    pub(crate) own_block: Option<String>,
    /// Closes everybody's, the user's, then the amounts.
    pub(crate) numbers: [i64; 7],
}

impl BookingRow {
    pub(crate) fn of(booking: &Booking) -> Self {
        let block = |drawn: Option<Drawn>| drawn.map(|drawn| drawn.block.to_string());
        let closes = |drawn: Option<Drawn>| i64::from(drawn.is_some_and(|drawn| drawn.closes));
        let used = Amount::of(booking.used);
        Self {
            id: booking.id.to_string(),
            day: booking.day.to_string(),
            user: booking.user.as_str().to_owned(),
            everyone_block: block(booking.everyone),
            own_block: block(booking.own),
            numbers: [
                closes(booking.everyone),
                closes(booking.own),
                used.tokens,
                used.model_calls,
                used.tool_calls,
                used.ms,
                used.cost,
            ],
        }
    }

    fn values(self) -> Vec<Value<'static>> {
        let text = |text: Option<String>| Value::Text(text.map(Into::into));
        let texts = [
            Some(self.id),
            Some(self.day),
            Some(self.user),
            self.everyone_block,
            self.own_block,
        ];
        texts
            .into_iter()
            .map(text)
            .chain(self.numbers.map(Value::from))
            .collect()
    }
}

/// A spending as columns. What no budget could ever hold is cut to what still can be added up.
#[derive(PartialEq, Eq)]
struct Amount {
    tokens: i64,
    model_calls: i64,
    tool_calls: i64,
    ms: i64,
    cost: i64,
}

impl Amount {
    fn of(spending: Spending) -> Self {
        const MOST: i64 = 1 << 53;
        let cut = |number: u64| i64::try_from(number).unwrap_or(MOST).min(MOST);
        Self {
            tokens: cut(spending.tokens),
            model_calls: cut(spending.model_calls),
            tool_calls: cut(spending.tool_calls),
            ms: cut(spending.ms),
            cost: cut(spending.cost.nano_usd()),
        }
    }

    fn values(&self) -> [Value<'static>; 5] {
        [
            self.tokens,
            self.model_calls,
            self.tool_calls,
            self.ms,
            self.cost,
        ]
        .map(Value::from)
    }
}

/// The next five columns.
fn spending(columns: &mut Columns) -> Result<Spending, StoreError> {
    let mut number =
        || u64::try_from(columns.int()?).map_err(|error| row::unreadable("what was spent", error));
    Ok(Spending {
        tokens: number()?,
        model_calls: number()?,
        tool_calls: number()?,
        ms: number()?,
        cost: Cost::from_nano_usd(number()?),
    })
}
