//! Leases, heartbeats, and taking over due work.

use std::time::Duration;

use adjutant_core::port::{Beat, Change, Claim, Due, Running, StoreError, Take, Taken, WorkPlace};
use adjutant_core::{AgentName, ConversationKey, UserId};
use jiff::Timestamp;

use super::{Backend, Connection, Failure, Row, Value, decode_all, values};
use crate::record::{self, ConversationRow};
use crate::worker::Presence;

/// The end of a lease: as it was taken, or as the worker's last heartbeat in the same epoch has
/// extended it.
macro_rules! lease_until {
    () => {
        "COALESCE((SELECT worker.seen_until FROM adjutant_worker AS worker WHERE worker.id = lease_by
         AND worker.epoch = adjutant_conversation.epoch AND worker.seen_until > lease_until), lease_until)"
    };
}
pub(super) use lease_until;

/// Work of one kind in the order in which it is taken, after a place: `$1` agent, `$2` user or
/// NULL, `$3` and `$4` the place, `$5` the time, `$6` the limit. `$due` selects conversations with
/// work to do, `$since` is the time since which they wait.
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
              AND worker.seen_until > $5)",
            $free,
            ") ORDER BY ",
            $since,
            ", key LIMIT $6",
            $lock
        )
    };
}

/// Finds work and takes its leases in one statement: `$7` worker, `$8` end of the lease, `$9`
/// epoch, `$10` the time for expiry. Rows that another worker is about to take are skipped, so
/// workers do not wait for each other.
macro_rules! take_locked {
    ($due:literal, $since:literal) => {
        concat!(
            "WITH found AS MATERIALIZED (",
            work!("key, lease_by", $due, $since, ")", " FOR UPDATE SKIP LOCKED"),
            ") UPDATE adjutant_conversation AS taken SET lease_by = $7, lease_until = $8, epoch = $9 FROM found WHERE taken.key = found.key
             RETURNING taken.agent, taken.user_id, taken.id, found.key, found.lease_by, taken.",
            $since,
            " AS since"
        )
    };
}

const TAKE_UNSETTLED: &str = take_locked!("unsettled = 1", "updated_at");
const TAKE_EXPIRED: &str = take_locked!("wake_at <= $10", "wake_at");

/// The same where one transaction writes at a time. SQLite's `RETURNING` cannot return the previous
/// holder, so the work is found first; `$7` and `$8` are JSON arrays of the holders that are dead,
/// and of those that live, each with its epoch.
macro_rules! find_exclusively {
    ($due:literal, $since:literal) => {
        work!(
            concat!(
                "agent, user_id, id, key, lease_by, epoch, ",
                $since,
                " AS since"
            ),
            $due,
            $since,
            " AND lease_by || ' ' || epoch NOT IN (SELECT value FROM json_each($8)))
             OR lease_by || ' ' || epoch IN (SELECT value FROM json_each($7))",
            ""
        )
    };
}

pub(crate) const FIND_UNSETTLED: &str = find_exclusively!("unsettled = 1", "updated_at");
pub(crate) const FIND_EXPIRED: &str = find_exclusively!("wake_at <= $9", "wake_at");

/// The workers that hold leases of the work.
const HOLDERS_OF_UNSETTLED: &str = "SELECT DISTINCT lease_by, epoch FROM adjutant_conversation
     WHERE agent = $1 AND unsettled = 1 AND lease_by IS NOT NULL";
const HOLDERS_OF_EXPIRED: &str = "SELECT DISTINCT lease_by, epoch FROM adjutant_conversation
     WHERE agent = $1 AND wake_at <= $2 AND lease_by IS NOT NULL";

/// Conversations of all agents with inputs that were not taken.
const WITH_INPUTS: &str = concat!(
    "SELECT agent, user_id, id, lease_by, epoch, ",
    lease_until!(),
    " AS lease_until FROM adjutant_conversation WHERE unsettled = 1 AND untaken > 0"
);

/// Finds the changes that subscribers of this process may have missed: whatever a caller waits for
/// has an input that was not taken. Returns one change for each such conversation.
pub(crate) async fn find_waiting<B: Backend>(backend: &B) -> Result<Vec<Change>, Failure> {
    let found = backend.read((), |tx, ()| {
        Box::pin(async move {
            let found = tx.fetch_all(WITH_INPUTS, &[]).await?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            let now = tx.now().await?;
            let change = |mut row: Row| {
                let key = record::read_key(&mut row)?;
                Ok(match is_free::<B::Connection>(&mut row, now)? {
                    true => Change::Free(key),
                    false => Change::Input(key),
                })
            };
            Ok(decode_all(found, change)?)
        })
    });
    found.await
}

/// A request for work as owned data.
pub(super) struct TakeRequest {
    agent: AgentName,
    user: Option<UserId>,
    due: Due,
    worker: String,
    epoch: i64,
    lease: Duration,
    after: Option<WorkPlace>,
    limit: i64,
}

impl From<Take<'_>> for TakeRequest {
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

/// Takes the leases of conversations with work to do.
pub(super) async fn take<C: Connection>(
    tx: &mut C,
    request: &TakeRequest,
) -> Result<Vec<Taken>, Failure> {
    let now = tx.now().await?;
    let until = record::format_time(lease_end(request.lease, now));
    let mut taken = if C::LOCKS_ROWS {
        take_locked(tx, request, now, &until).await?
    } else {
        take_exclusively(tx, request, now, &until).await?
    };
    if !taken.is_empty() {
        C::grant(&request.worker, request.epoch, request.lease);
    }
    // `RETURNING` has no defined order.
    taken.sort_unstable_by_key(|taken| taken.place);
    Ok(taken)
}

/// Returns the place to begin after as two columns. Every time sorts after the empty text.
fn after(request: &TakeRequest) -> (String, i64) {
    request.after.map_or_else(Default::default, |place| {
        (record::format_time(place.since), place.number)
    })
}

async fn take_locked<C: Connection>(
    tx: &mut C,
    request: &TakeRequest,
    now: Timestamp,
    until: &str,
) -> Result<Vec<Taken>, Failure> {
    let (since, number) = after(request);
    let mut values = values![
        request.agent.as_str(),
        request.user.as_ref().map(UserId::as_str),
        &since,
        number,
        record::format_time(now),
        request.limit,
        &request.worker,
        until,
        request.epoch
    ]
    .to_vec();
    let statement = match request.due {
        Due::Unsettled => TAKE_UNSETTLED,
        Due::Expired(at) => {
            values.push(record::format_time(at).into());
            TAKE_EXPIRED
        }
    };
    let found = tx.fetch_all(statement, &values).await?;
    Ok(decode_all(found, |row| {
        read_taken(row, &request.worker).map(|(taken, _)| taken)
    })?)
}

async fn take_exclusively<C: Connection>(
    tx: &mut C,
    request: &TakeRequest,
    now: Timestamp,
    until: &str,
) -> Result<Vec<Taken>, Failure> {
    let (since, number) = after(request);
    let agent = request.agent.as_str();
    let expired = match request.due {
        Due::Unsettled => None,
        Due::Expired(at) => Some(Value::from(record::format_time(at))),
    };
    let (holders, statement) = match expired {
        None => (HOLDERS_OF_UNSETTLED, FIND_UNSETTLED),
        Some(_) => (HOLDERS_OF_EXPIRED, FIND_EXPIRED),
    };
    let mut values = values![agent].to_vec();
    values.extend(expired.clone());
    // The operating system knows which workers live, not the database: their names are looked up
    // between the two statements.
    let holders = Holders::classify::<C>(tx.fetch_all(holders, &values).await?, request)?;
    let (dead, living) = (
        record::to_json(&holders.dead)?,
        record::to_json(&holders.living)?,
    );
    let mut values = values![
        agent,
        request.user.as_ref().map(UserId::as_str),
        &since,
        number,
        record::format_time(now),
        request.limit,
        &dead,
        &living
    ]
    .to_vec();
    values.extend(expired);
    let found = tx.fetch_all(statement, &values).await?;
    let mut taken = Vec::with_capacity(found.len());
    for mut row in found {
        let epoch = row.get("epoch")?;
        let (one, holder) = read_taken(row, &request.worker)?;
        if let Some(holder) = holder {
            C::end(&holder, epoch);
        }
        tx.execute(
            "UPDATE adjutant_conversation SET lease_by = $1, lease_until = $2, epoch = $3 WHERE key = $4",
            values![&request.worker, until, request.epoch, one.place.number],
        )
        .await?;
        taken.push(one);
    }
    Ok(taken)
}

/// The holders of leases whose presence is known, each as its name, a space, and its epoch.
#[derive(Default)]
struct Holders {
    dead: Vec<String>,
    living: Vec<String>,
}

impl Holders {
    fn classify<C: Connection>(
        holders: Vec<Row>,
        request: &TakeRequest,
    ) -> Result<Self, StoreError> {
        let mut known = Self::default();
        for mut row in holders {
            let (holder, epoch): (String, i64) = (row.get("lease_by")?, row.get("epoch")?);
            let name = format!("{holder} {epoch}");
            match C::presence(&holder, Some(epoch)) {
                Presence::Unknown => {}
                // A worker that was suspended finds its epoch run out before its next heartbeat,
                // and must not take what it runs itself.
                _ if holder == request.worker && epoch == request.epoch => known.living.push(name),
                presence if presence.is_dead() => known.dead.push(name),
                _ => known.living.push(name),
            }
        }
        Ok(known)
    }
}

/// Decodes a conversation whose lease was taken, with the previous holder (`lease_by`) if that was
/// another worker.
fn read_taken(mut columns: Row, worker: &str) -> Result<(Taken, Option<String>), StoreError> {
    let key = record::read_key(&mut columns)?;
    let number = columns.get("key")?;
    let holder: Option<String> = columns.get("lease_by")?;
    let holder = holder.filter(|holder| holder != worker);
    let since = columns.parse("since", "the time since which work waits")?;
    let claim = if holder.is_some() {
        Claim::TakenOver
    } else {
        Claim::Granted
    };
    let place = WorkPlace { since, number };
    Ok((Taken { key, claim, place }, holder))
}

/// Extends all leases of a worker's epoch, and returns those with work to do. `None` if the epoch
/// is over.
pub(super) async fn heartbeat<C: Connection>(
    tx: &mut C,
    beat: Beat<'_>,
) -> Result<Option<Vec<Running>>, Failure> {
    let (worker, epoch) = (beat.worker.id, beat.worker.epoch);
    let now = tx.now().await?;
    let (until, now) = (
        record::format_time(lease_end(beat.lease, now)),
        record::format_time(now),
    );
    if beat.is_first {
        C::grant(worker, epoch, beat.lease);
    }
    let kept = C::extend(worker, epoch, beat.lease);
    let updated = if kept == Some(false) {
        0
    } else if beat.is_first || kept.is_some() {
        if beat.is_first {
            // Rows that have expired hold no lease, or one of a worker that is known to live.
            tx.execute(
                "DELETE FROM adjutant_worker WHERE seen_until <= $1 AND NOT (id = $2 AND epoch = $3)",
                values![&now, worker, epoch],
            )
            .await?;
        }
        // Our own row exists already if the answer to the first heartbeat was lost. Another process
        // whose clock has stepped may have deleted it.
        tx.execute(
            "INSERT INTO adjutant_worker (id, epoch, seen_until) VALUES ($1, $2, $3) ON CONFLICT (id, epoch)
             DO UPDATE SET seen_until = excluded.seen_until WHERE adjutant_worker.seen_until > $4 OR $5 = 1",
            values![worker, epoch, &until, &now, i64::from(kept.is_some())],
        )
        .await?
    } else {
        tx.execute(
            "UPDATE adjutant_worker SET seen_until = $3 WHERE id = $1 AND epoch = $2 AND seen_until > $4",
            values![worker, epoch, &until, &now],
        )
        .await?
    };
    // An epoch that has run out is not extended: other workers may have taken its conversations.
    if updated == 0 {
        return Ok(None);
    }
    let claimed = tx
        .fetch_all(
            "SELECT agent, user_id, id, untaken FROM adjutant_conversation
             WHERE agent = $1 AND unsettled = 1 AND lease_by = $2 AND epoch = $3",
            values![beat.agent.as_str(), worker, epoch],
        )
        .await?;
    let read = |mut row: Row| {
        Ok(Running {
            key: record::read_key(&mut row)?,
            has_inputs: row.get::<i64>("untaken")? > 0,
        })
    };
    Ok(Some(decode_all(claimed, read)?))
}

/// Returns the end of a lease; one that overflows ends at the maximum.
fn lease_end(lease: Duration, now: Timestamp) -> Timestamp {
    now.checked_add(lease).unwrap_or(Timestamp::MAX)
}

impl ConversationRow {
    /// Takes the lease for a worker, unless another live worker holds it. Without an epoch, a lease
    /// that the worker holds already stays in its epoch.
    pub(super) fn claim<C: Connection>(
        &mut self,
        worker: &str,
        epoch: Option<i64>,
        ttl: Duration,
        now: Timestamp,
    ) -> Claim {
        let is_of_another = self
            .lease_by
            .as_ref()
            .is_some_and(|holder| holder != worker);
        if let Some(holder) = self.lease_by.as_deref().filter(|_| is_of_another) {
            if is_held::<C>(holder, self.epoch, self.lease_until, now) {
                return Claim::Refused;
            }
            C::end(holder, self.epoch);
        }
        let is_own = self.lease_by.is_some() && !is_of_another;
        self.epoch = epoch.unwrap_or(if is_own { self.epoch } else { 0 });
        self.lease_by = Some(worker.to_owned());
        self.lease_until = Some(lease_end(ttl, now));
        C::grant(worker, self.epoch, ttl);
        if is_of_another {
            Claim::TakenOver
        } else {
            Claim::Granted
        }
    }
}

/// Returns the conversations whose lease no live worker holds.
pub(super) async fn keep_free<C: Connection>(
    tx: &mut C,
    found: Vec<Row>,
) -> Result<Vec<ConversationKey>, Failure> {
    let now = tx.now().await?;
    let mut keys = Vec::new();
    for mut columns in found {
        if is_free::<C>(&mut columns, now)? {
            keys.push(record::read_key(&mut columns)?);
        }
    }
    Ok(keys)
}

/// Returns true if the worker lives that holds a lease until a time.
fn is_held<C: Connection>(
    worker: &str,
    epoch: i64,
    until: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    match C::presence(worker, Some(epoch)) {
        Presence::Unknown => until.is_some_and(|until| now < until),
        presence => !presence.is_dead(),
    }
}

/// Returns true if no live worker holds the lease in the columns `lease_by`, `epoch` and
/// `lease_until`.
pub(super) fn is_free<C: Connection>(row: &mut Row, now: Timestamp) -> Result<bool, StoreError> {
    let by: Option<String> = row.get("lease_by")?;
    let until: Option<Timestamp> = row.parse_optional("lease_until", "the end of a lease")?;
    let epoch = row.get("epoch")?;
    Ok(!by.is_some_and(|by| is_held::<C>(&by, epoch, until, now)))
}
