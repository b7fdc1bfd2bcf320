//! Claims, and the taking of work.

use std::time::Duration;

use adjutant_core::port::{Beat, Change, Claim, Due, Running, StoreError, Take, Taken, WorkPlace};
use adjutant_core::{AgentName, ConversationKey, UserId};
use jiff::Timestamp;

use super::{Backend, Columns, Connection, Failure, values};
use crate::row::{self, ConversationRow};

/// The end of a claim: as it was made, or as the last sign of life says that its worker gave in the
/// same epoch.
macro_rules! lease_until {
    () => {
        "COALESCE((SELECT worker.seen_until FROM adjutant_worker AS worker WHERE worker.id = lease_by
         AND worker.epoch = adjutant_conversation.epoch AND worker.seen_until > lease_until), lease_until)"
    };
}
pub(super) use lease_until;

/// Work of one kind in the order it is taken, behind a place: `$1` agent, `$2` user or NULL, `$3`
/// and `$4` the place, `$5` the time, `$6` how many. `$due` has them with something to do, `$since`
/// is the time they wait since.
macro_rules! work {
    ($columns:expr, $due:literal, $since:literal, $free:literal, $lock:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM adjutant_conversation WHERE agent = $1 AND ",
            $due,
            " AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) AND (",
            $since,
            ", key) > ($3, $4) AND (lease_by IS NULL OR lease_until IS NULL OR (lease_until <= $5 AND NOT EXISTS
             (SELECT 1 FROM adjutant_worker AS worker WHERE worker.id = lease_by AND worker.epoch = adjutant_conversation.epoch
              AND worker.seen_until > $5))",
            $free,
            ") ORDER BY ",
            $since,
            ", key LIMIT $6",
            $lock
        )
    };
}

/// Finds work and claims it in one statement: `$7` the worker, `$8` the end of its claim, `$9` its
/// epoch, `$10` the time before which it expired. Rows that another worker is about to claim are
/// passed over, so that nobody waits for anybody.
macro_rules! take_locked {
    ($due:literal, $since:literal) => {
        concat!(
            "WITH found AS MATERIALIZED (",
            work!("key, lease_by", $due, $since, "", " FOR UPDATE SKIP LOCKED"),
            ") UPDATE adjutant_conversation AS taken SET lease_by = $7, lease_until = $8, epoch = $9 FROM found WHERE taken.key = found.key
             RETURNING taken.agent, taken.user_id, taken.id, found.key, found.lease_by, taken.",
            $since
        )
    };
}

const TAKE_UNSETTLED: &str = take_locked!("unsettled = 1", "updated_at");
const TAKE_EXPIRED: &str = take_locked!("wake_at <= $10", "wake_at");

/// The same where one transaction writes at a time. SQLite's `RETURNING` cannot say who had a row
/// before, so it is found first; `$7` are the workers that are gone, as a JSON array.
macro_rules! find_alone {
    ($due:literal, $since:literal) => {
        work!(
            concat!("agent, user_id, id, key, lease_by, ", $since),
            $due,
            $since,
            " OR lease_by IN (SELECT value FROM json_each($7))",
            ""
        )
    };
}

pub(crate) const FIND_UNSETTLED: &str = find_alone!("unsettled = 1", "updated_at");
pub(crate) const FIND_EXPIRED: &str = find_alone!("wake_at <= $8", "wake_at");

/// Who has claimed something of the work there is.
const HOLDERS_OF_UNSETTLED: &str = "SELECT DISTINCT lease_by FROM adjutant_conversation
     WHERE agent = $1 AND unsettled = 1 AND lease_by IS NOT NULL";
const HOLDERS_OF_EXPIRED: &str = "SELECT DISTINCT lease_by FROM adjutant_conversation
     WHERE agent = $1 AND wake_at <= $2 AND lease_by IS NOT NULL";

/// Conversations with inputs that nobody has taken, whatever their agent.
const WITH_INPUTS: &str = concat!(
    "SELECT agent, user_id, id, lease_by, ",
    lease_until!(),
    " FROM adjutant_conversation WHERE unsettled = 1 AND untaken > 0"
);

/// Looks once for all who wait in this process, where what other processes did may not have been
/// told: whatever somebody waits for has an input that was not taken. Returns one change for each
/// such conversation.
pub(crate) async fn look<B: Backend>(backend: &B) -> Result<Vec<Change>, Failure> {
    let found = backend.read((), |rows, ()| {
        Box::pin(async move {
            let found = rows.fetch(WITH_INPUTS, &[]).await?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            let now = rows.now().await?;
            let mut changes = Vec::with_capacity(found.len());
            for mut columns in found {
                let key =
                    row::conversation_key(columns.text()?, columns.text()?, &columns.text()?)?;
                let is_free = is_free::<B::Connection>(&mut columns, None, now)?;
                changes.push(if is_free {
                    Change::Free(key)
                } else {
                    Change::Input(key)
                });
            }
            Ok(changes)
        })
    });
    found.await
}

/// A request for work, as owned data.
pub(super) struct Taking {
    agent: AgentName,
    user: Option<UserId>,
    due: Due,
    worker: String,
    epoch: i64,
    lease: Duration,
    after: Option<WorkPlace>,
    limit: i64,
}

impl From<Take<'_>> for Taking {
    fn from(take: Take<'_>) -> Self {
        Self {
            agent: take.agent.clone(),
            user: take.user.cloned(),
            due: take.due,
            worker: take.worker.id.to_owned(),
            epoch: take.worker.epoch,
            lease: take.lease,
            after: take.after,
            limit: i64::try_from(take.limit).unwrap_or(i64::MAX),
        }
    }
}

/// Claims conversations with something to do for a worker.
pub(super) async fn take<C: Connection>(
    rows: &mut C,
    taking: &Taking,
) -> Result<Vec<Taken>, Failure> {
    let now = rows.now().await?;
    let until = row::time_text(end_of(taking.lease, now));
    let mut taken = if C::LOCKS_ROWS {
        take_locked(rows, taking, now, &until).await?
    } else {
        take_alone(rows, taking, now, &until).await?
    };
    taken.sort_unstable_by_key(|taken| taken.place);
    Ok(taken)
}

/// The place to begin behind, as two columns: every time is behind the empty text.
fn after(taking: &Taking) -> (String, i64) {
    taking.after.map_or_else(Default::default, |place| {
        (row::time_text(place.since), place.number)
    })
}

async fn take_locked<C: Connection>(
    rows: &mut C,
    taking: &Taking,
    now: Timestamp,
    until: &str,
) -> Result<Vec<Taken>, Failure> {
    let user = taking.user.as_ref().map(UserId::as_str);
    let (since, number) = after(taking);
    let now = row::time_text(now);
    let (agent, worker) = (taking.agent.as_str(), &taking.worker);
    let found = match taking.due {
        Due::Unsettled => {
            let values = values![
                agent,
                user,
                &since,
                number,
                &now,
                taking.limit,
                worker,
                until,
                taking.epoch
            ];
            rows.fetch(TAKE_UNSETTLED, values).await?
        }
        Due::Expired(at) => {
            let at = row::time_text(at);
            let (limit, epoch) = (taking.limit, taking.epoch);
            let values = values![
                agent, user, &since, number, &now, limit, worker, until, epoch, &at
            ];
            rows.fetch(TAKE_EXPIRED, values).await?
        }
    };
    Ok(found
        .into_iter()
        .map(|columns| read_taken(columns, worker))
        .collect::<Result<_, _>>()?)
}

async fn take_alone<C: Connection>(
    rows: &mut C,
    taking: &Taking,
    now: Timestamp,
    until: &str,
) -> Result<Vec<Taken>, Failure> {
    let user = taking.user.as_ref().map(UserId::as_str);
    let (since, number) = after(taking);
    let now = row::time_text(now);
    let agent = taking.agent.as_str();
    let found = match taking.due {
        Due::Unsettled => {
            let gone = gone(
                rows.fetch(HOLDERS_OF_UNSETTLED, values![agent]).await?,
                C::is_gone,
            )?;
            let values = values![agent, user, &since, number, &now, taking.limit, &gone];
            rows.fetch(FIND_UNSETTLED, values).await?
        }
        Due::Expired(at) => {
            let at = row::time_text(at);
            let gone = gone(
                rows.fetch(HOLDERS_OF_EXPIRED, values![agent, &at]).await?,
                C::is_gone,
            )?;
            let values = values![agent, user, &since, number, &now, taking.limit, &gone, &at];
            rows.fetch(FIND_EXPIRED, values).await?
        }
    };
    let mut taken = Vec::with_capacity(found.len());
    for columns in found {
        let one = read_taken(columns, &taking.worker)?;
        rows.execute(
            "UPDATE adjutant_conversation SET lease_by = $1, lease_until = $2, epoch = $3 WHERE key = $4",
            values![&taking.worker, until, taking.epoch, one.place.number],
        )
        .await?;
        taken.push(one);
    }
    Ok(taken)
}

/// Those of the workers that certainly do not run any more, as a JSON array.
fn gone(holders: Vec<Columns>, is_gone: fn(&str) -> bool) -> Result<String, StoreError> {
    let mut gone = Vec::new();
    for mut columns in holders {
        let holder = columns.text()?;
        if is_gone(&holder) {
            gone.push(holder);
        }
    }
    row::json(&gone)
}

/// The columns are `agent`, `user_id`, `id`, `key`, `lease_by` as it was before, and the time it
/// waits since.
fn read_taken(mut columns: Columns, worker: &str) -> Result<Taken, StoreError> {
    let key = row::conversation_key(columns.text()?, columns.text()?, &columns.text()?)?;
    let number = columns.int()?;
    let is_anothers = columns.maybe_text()?.is_some_and(|holder| holder != worker);
    let since = row::read_time(&columns.text()?, "the time since which work waits")?;
    let claim = if is_anothers {
        Claim::TakenOver
    } else {
        Claim::Granted
    };
    Ok(Taken {
        key,
        claim,
        place: WorkPlace { since, number },
    })
}

/// A sign of life, as owned data.
pub(super) struct Beating {
    agent: AgentName,
    worker: String,
    epoch: i64,
    lease: Duration,
    is_first: bool,
}

impl From<Beat<'_>> for Beating {
    fn from(
        Beat {
            agent,
            worker,
            lease,
            is_first,
        }: Beat<'_>,
    ) -> Self {
        Self {
            agent: agent.clone(),
            worker: worker.id.to_owned(),
            epoch: worker.epoch,
            lease,
            is_first,
        }
    }
}

/// Extends all claims of a worker's epoch, and returns those with something to do. `None`: the
/// epoch is over.
pub(super) async fn beat<C: Connection>(
    rows: &mut C,
    Beating {
        agent,
        worker,
        epoch,
        lease,
        is_first,
    }: &Beating,
) -> Result<Option<Vec<Running>>, Failure> {
    let now = rows.now().await?;
    let (until, now) = (row::time_text(end_of(*lease, now)), row::time_text(now));
    let beats = if *is_first {
        // What is over holds nothing. Its own row is there if the answer to the first sign of life
        // was lost.
        rows.execute(
            "DELETE FROM adjutant_worker WHERE seen_until <= $1 AND NOT (id = $2 AND epoch = $3)",
            values![&now, worker, *epoch],
        )
        .await?;
        rows.execute(
            "INSERT INTO adjutant_worker (id, epoch, seen_until) VALUES ($1, $2, $3) ON CONFLICT (id, epoch)
             DO UPDATE SET seen_until = excluded.seen_until WHERE adjutant_worker.seen_until > $4",
            values![worker, *epoch, &until, &now],
        )
        .await?
    } else {
        rows.execute(
            "UPDATE adjutant_worker SET seen_until = $3 WHERE id = $1 AND epoch = $2 AND seen_until > $4",
            values![worker, *epoch, &until, &now],
        )
        .await?
    };
    if beats == 0 {
        return Ok(None);
    }
    let claimed = rows
        .fetch(
            "SELECT agent, user_id, id, untaken FROM adjutant_conversation
             WHERE agent = $1 AND unsettled = 1 AND lease_by = $2 AND epoch = $3",
            values![agent.as_str(), worker, *epoch],
        )
        .await?;
    let read = |mut columns: Columns| {
        let key = row::conversation_key(columns.text()?, columns.text()?, &columns.text()?)?;
        Ok::<_, StoreError>(Running {
            key,
            has_inputs: columns.int()? > 0,
        })
    };
    Ok(Some(
        claimed.into_iter().map(read).collect::<Result<_, _>>()?,
    ))
}

/// A claim nobody could outwait ends with time itself.
fn end_of(lease: Duration, now: Timestamp) -> Timestamp {
    now.checked_add(lease).unwrap_or(Timestamp::MAX)
}

impl ConversationRow {
    /// Claims it for a worker, unless another one alive has it. Without an epoch, the worker's own
    /// claim stays in the one it is of.
    pub(super) fn claim<C: Connection>(
        &mut self,
        (worker, epoch): (&str, Option<i64>),
        ttl: Duration,
        now: Timestamp,
    ) -> Claim {
        let is_anothers = self
            .lease_by
            .as_ref()
            .is_some_and(|holder| holder != worker);
        let is_over = self.lease_until.is_none_or(|until| until <= now);
        if is_anothers && !is_over && !self.lease_by.as_deref().is_some_and(C::is_gone) {
            return Claim::Refused;
        }
        let is_own = self.lease_by.is_some() && !is_anothers;
        self.epoch = epoch.unwrap_or(if is_own { self.epoch } else { 0 });
        self.lease_by = Some(worker.to_owned());
        self.lease_until = Some(end_of(ttl, now));
        if is_anothers {
            Claim::TakenOver
        } else {
            Claim::Granted
        }
    }
}

/// Those of the conversations that nobody alive has. The columns are `agent`, `user_id`, `id`,
/// `lease_by`, `lease_until`.
pub(super) async fn free<C: Connection>(
    rows: &mut C,
    found: Vec<Columns>,
) -> Result<Vec<ConversationKey>, Failure> {
    let now = rows.now().await?;
    let mut keys = Vec::new();
    for mut columns in found {
        let (agent, user, id) = (columns.text()?, columns.text()?, columns.text()?);
        if is_free::<C>(&mut columns, None, now)? {
            keys.push(row::conversation_key(agent, user, &id)?);
        }
    }
    Ok(keys)
}

/// Nobody alive has it, or `worker` itself does. The next two columns are `lease_by` and
/// `lease_until`.
pub(super) fn is_free<C: Connection>(
    lease: &mut Columns,
    worker: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (Some(by), Some(until)) = (lease.maybe_text()?, lease.maybe_text()?) else {
        return Ok(true);
    };
    let is_over = row::read_time(&until, "the end of a claim")? <= now;
    Ok(worker == Some(by.as_str()) || is_over || C::is_gone(&by))
}
