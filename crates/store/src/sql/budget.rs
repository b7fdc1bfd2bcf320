//! What users spend in a day, and what running steps set aside.

use adjutant_core::port::{BudgetStore, Reservation, StoreError};
use adjutant_core::{Allowance, BoxFuture, Cost, Exceeded, Scope, Spending, UserId};
use jiff::Timestamp;
use jiff::civil::Date;

use super::{Backend, Columns, Connection, Failure, SqlStore, values};
use crate::row;

/// Nobody's name: user ids are never empty.
const EVERYONE: &str = "";

impl<B: Backend> BudgetStore for SqlStore<B> {
    fn reserve<'a>(
        &'a self,
        reservation: &'a Reservation,
        per_day: &'a Allowance,
        everyone_per_day: &'a Allowance,
    ) -> BoxFuture<'a, Result<Option<Exceeded>, StoreError>> {
        self.run(async move {
            let data = (reservation.clone(), *per_day, *everyone_per_day);
            self.0
                .write(data, |rows, (reservation, per_day, everyone_per_day)| {
                    Box::pin(async move {
                        let exceeded = reserve(rows, reservation, per_day, everyone_per_day).await?;
                        if exceeded.is_some() {
                            rows.undo();
                        }
                        Ok(exceeded)
                    })
                })
                .await
        })
    }

    fn settle<'a>(
        &'a self,
        reservation: &'a Reservation,
        used: Spending,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let data = (reservation.clone(), used);
            self.0.write(data, |rows, (reservation, used)| Box::pin(settle(rows, reservation, *used))).await
        })
    }

    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>> {
        self.run(async move {
            let found = self.0.fetch_first(
                    "SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(model_calls), 0) AS BIGINT),
                     CAST(coalesce(sum(tool_calls), 0) AS BIGINT), CAST(coalesce(sum(ms), 0) AS BIGINT),
                     CAST(coalesce(sum(cost), 0) AS BIGINT)
                     FROM adjutant_budget WHERE day = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2)",
                    values![&day.to_string(), user.map(UserId::as_str)],
                )
                .await?;
            Ok(found.map(|mut columns| spending(&mut columns)).transpose()?.unwrap_or_default())
        })
    }
}

/// Sets aside what fits. The caller undoes it all if something was exceeded.
async fn reserve<C: Connection>(
    rows: &mut C,
    reservation: &Reservation,
    per_day: &Allowance,
    everyone_per_day: &Allowance,
) -> Result<Option<Exceeded>, Failure> {
    // Whoever reserves for everybody waits here for the others first, then for the user: always in this order.
    if !everyone_per_day.is_unlimited() {
        take_turns(rows, EVERYONE, reservation.day).await?;
        let taken = taken(rows, None, reservation).await?;
        if let Some(exceeded) = everyone_per_day.exceeded(Scope::Everyone, taken, reservation.amount) {
            return Ok(Some(exceeded));
        }
    }
    take_turns(rows, reservation.user.as_str(), reservation.day).await?;
    let taken = taken(rows, Some(&reservation.user), reservation).await?;
    if let Some(exceeded) = per_day.exceeded(Scope::Day, taken, reservation.amount) {
        return Ok(Some(exceeded));
    }
    let now = rows.now().await?;
    let until = now.checked_add(reservation.ttl).unwrap_or(Timestamp::MAX);
    let amount = Amount::of(reservation.amount);
    rows.execute(
        "INSERT INTO adjutant_reservation (user_id, day, step, tokens, model_calls, tool_calls, ms, cost, worker, until)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (day, user_id, step) DO UPDATE SET tokens = excluded.tokens, model_calls = excluded.model_calls,
         tool_calls = excluded.tool_calls, ms = excluded.ms, cost = excluded.cost, worker = excluded.worker,
         until = excluded.until",
        values![
            reservation.user.as_str(),
            &reservation.day.to_string(),
            &reservation.step,
            amount.tokens,
            amount.model_calls,
            amount.tool_calls,
            amount.ms,
            amount.cost,
            &reservation.worker,
            &row::time_text(until)
        ],
    )
    .await?;
    Ok(None)
}

/// Of those who count up to the same bound, one at a time: the row is locked until the end of this transaction.
async fn take_turns<C: Connection>(rows: &mut C, user: &str, day: Date) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_budget AS budget (user_id, day) VALUES ($1, $2)
         ON CONFLICT (day, user_id) DO UPDATE SET tokens = budget.tokens",
        values![user, &day.to_string()],
    )
    .await?;
    Ok(())
}

/// What a user, or everybody, has spent and set aside on the day of a reservation, the same step's own not counted.
async fn taken<C: Connection>(
    rows: &mut C,
    user: Option<&UserId>,
    reservation: &Reservation,
) -> Result<Spending, Failure> {
    let now = rows.now().await?;
    // One statement, so that a step which is settled meanwhile is seen either as set aside or as spent.
    let found = rows
        .fetch(
            "SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(model_calls), 0) AS BIGINT),
             CAST(coalesce(sum(tool_calls), 0) AS BIGINT), CAST(coalesce(sum(ms), 0) AS BIGINT),
             CAST(coalesce(sum(cost), 0) AS BIGINT), CAST(NULL AS TEXT)
             FROM adjutant_budget WHERE day = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2)
             UNION ALL
             SELECT tokens, model_calls, tool_calls, ms, cost, worker FROM adjutant_reservation
             WHERE day = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) AND NOT (user_id = $3 AND step = $4)
             AND until > $5",
            values![
                &reservation.day.to_string(),
                user.map(UserId::as_str),
                reservation.user.as_str(),
                &reservation.step,
                &row::time_text(now)
            ],
        )
        .await?;
    let mut taken = Spending::default();
    for mut columns in found {
        let amount = spending(&mut columns)?;
        if !columns.maybe_text()?.is_some_and(|worker| C::is_gone(&worker)) {
            taken = taken + amount;
        }
    }
    Ok(taken)
}

/// Books what was used.
async fn settle<C: Connection>(
    rows: &mut C,
    reservation: &Reservation,
    used: Spending,
) -> Result<(), Failure> {
    let (user, day, used) = (reservation.user.as_str(), reservation.day.to_string(), Amount::of(used));
    rows.execute(
        "INSERT INTO adjutant_budget AS budget (user_id, day, tokens, model_calls, tool_calls, ms, cost)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (day, user_id) DO UPDATE SET tokens = budget.tokens + excluded.tokens,
         model_calls = budget.model_calls + excluded.model_calls, tool_calls = budget.tool_calls + excluded.tool_calls,
         ms = budget.ms + excluded.ms, cost = budget.cost + excluded.cost",
        values![user, &day, used.tokens, used.model_calls, used.tool_calls, used.ms, used.cost],
    )
    .await?;
    rows.execute(
        "DELETE FROM adjutant_reservation WHERE day = $1 AND user_id = $2 AND step = $3",
        values![&day, user, &reservation.step],
    )
    .await?;
    Ok(())
}

/// A spending as columns. What no budget could ever hold is cut to what still can be added up.
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
