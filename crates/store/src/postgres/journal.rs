//! The journal's writes, each as one call of a database function (`migrations/0008_functions.sql`,
//! `migrations/0010_begin.sql`).

use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::port::{self, Claim, Holder, Known, StoreError, Worker};
use adjutant_core::{ConversationKey, EVENT_VERSION, InputId};
use jiff::Timestamp;
use serde::Deserialize;

use super::PostgresDatabase;
use super::literal::Call;
use super::transaction::Transaction;
use crate::blob::{Blobs, references};
use crate::record::{self, DecisionRow, EventRow, InputRow};
use crate::sql::append::{AppendRequest, Appended};
use crate::sql::begin::{BeginRequest, BeginResult, NewInput, NewerRows, TurnStart, newer};
use crate::sql::budget::booking_values;
use crate::sql::journal::Writes;
use crate::sql::open_turn_cache::{OpenTurn, OpenTurnCache};
use crate::sql::projection::{NewEvent, Projection};
use crate::sql::snapshot::{RestorableRows, SnapshotRow};
use crate::sql::{Backend as _, Failure, Row, Value, key_values, values};

/// Columns of a new decision in the functions' parameter.
const DECISION_COLUMNS: usize = 29;

/// The longest lease: its end must have a year of four digits, because times are stored as text.
const LEASE_MAX: Duration = Duration::from_secs(7000 * 365 * 24 * 3600);

impl Writes for PostgresDatabase {
    fn notify_peers(&self, change: &port::Change) {
        self.peers.announce(change);
    }

    async fn submit(
        &self,
        key: &ConversationKey,
        arrival: NewInput,
        start: Option<TurnStart>,
    ) -> Result<bool, Failure> {
        let (turn, change) = start
            .as_ref()
            .map(|start| (&*start.turn, &start.change))
            .unzip();
        let call = begin_call(key, Some(&arrival), None).rows([]);
        let (blobs, turn) = (&arrival.row.blobs, turn.unwrap_or_default());
        let answer = self
            .call_begin(key, call, blobs, turn, change, None)
            .await?;
        match answer.outcome {
            Outcome::Elsewhere => Ok(true),
            Outcome::Accepted => Ok(false),
            outcome => Err(outcome.to_failure(Some(&arrival))),
        }
    }

    async fn begin(&self, data: BeginRequest) -> Result<BeginResult, Failure> {
        let BeginRequest {
            key,
            arrival,
            start,
            first,
            worker,
            epoch,
            lease,
            known,
        } = data;
        let TurnStart { turn, change } = start;
        let arrival = arrival.as_ref();
        let mut blobs = arrival
            .map(|arrival| arrival.row.blobs.clone())
            .unwrap_or_default();
        first.iter().for_each(|(row, _)| blobs.extend(&row.blobs));
        self.note_worker(&worker);
        let claimant = Claimant {
            worker: &worker,
            epoch: Some(epoch),
            ttl: lease,
        };
        let call = || begin_call(&key, arrival, Some(claimant)).rows(first.iter().map(event));
        let began = async || {
            self.call_begin(&key, call(), &blobs, &turn, Some(&change), known)
                .await
        };
        let mut answer = began().await?;
        // Only where another worker seems to hold the lease: the search for dead workers costs a
        // statement.
        if matches!(answer.outcome, Outcome::Elsewhere) && self.end_leases_of_dead_workers().await?
        {
            answer = began().await?;
        }
        let claim = match answer.outcome {
            Outcome::Nothing => return Ok(BeginResult::Nothing),
            Outcome::Elsewhere => return Ok(BeginResult::Elsewhere),
            Outcome::Claimed(claim) => Some(claim),
            Outcome::Started => None,
            outcome @ (Outcome::Reused
            | Outcome::Deleted
            | Outcome::Accepted
            | Outcome::QueueFull) => {
                return Err(outcome.to_failure(arrival));
            }
        };
        let (mut events, mut open) = (Vec::new(), None);
        if claim.is_none() {
            // The function has just written these events, so they are not read back.
            let first = first.filter(|_| answer.next_seq == 1);
            let start = answer.next_seq + i64::from(first.is_some());
            let rows = first.into_iter().chain(turn).map(|(row, _)| row);
            events.extend(
                (answer.next_seq..)
                    .zip(rows)
                    .map(|(seq, row)| EventRow { seq, ..row }),
            );
            let next_seq = events.last().map_or(start, |last| last.seq + 1);
            let mut status = change.status;
            status.parked_seq = status.parked_seq.map(|parked| start + parked);
            let decisions = change.logs.known;
            open = Some(OpenTurn {
                conversation: answer.conversation,
                next_seq,
                status,
                decisions,
            });
        }
        let created_at =
            record::parse_time(&answer.created_at, "the creation time of a conversation")?;
        let read = known
            .filter(|known| known.created_at == created_at)
            .map_or(0, |known| known.seq);
        let after = answer.next_seq - 1;
        let newer = if i64::try_from(read) == Ok(after) && !answer.waits {
            NewerRows {
                conversation: answer.conversation,
                created_at,
                restorable: None,
                after,
                events,
                inbox: Vec::new(),
            }
        } else {
            let began = answer
                .newer
                .as_deref()
                .map(|newer| read_newer(newer, answer.conversation, created_at));
            match began.transpose()?.flatten() {
                Some(newer) => newer,
                // This worker holds the lease by now, so no other process continues the
                // conversation between the two transactions.
                None => {
                    let read = self.read((key, known), |rows, (key, known)| {
                        Box::pin(newer(rows, key, *known))
                    });
                    read.await?.ok_or(StoreError::Conflict)?
                }
            }
        };
        Ok(match (claim, open) {
            (None, Some(open)) => BeginResult::Started(newer, open),
            (claim, _) => BeginResult::Claimed(claim.unwrap_or(Claim::Granted), newer),
        })
    }

    async fn append(&self, data: AppendRequest) -> Result<Appended, Failure> {
        let call = append_call(&data)?.without_wait();
        read_appended(self.calls.call(&self.pool, &data.key, call).await?)
    }

    fn committed(&self, conversation: i64, seq: i64, at: Timestamp) {
        self.pool.history.committed(conversation, seq, at);
    }

    fn restarts(&self) -> u64 {
        self.pool.history.restarts()
    }

    fn since_lost_commits(&self) -> Option<Duration> {
        self.pool.history.lost_at().map(|at| at.elapsed())
    }

    async fn append_in(rows: &mut Transaction, data: &AppendRequest) -> Result<Appended, Failure> {
        read_appended(rows.call(append_call(data)?).await?)
    }

    fn open_turn_cache(&self) -> &OpenTurnCache {
        &self.open
    }

    async fn claim(
        &self,
        key: &ConversationKey,
        worker: &str,
        ttl: Duration,
    ) -> Result<Claim, Failure> {
        let claimant = Claimant {
            worker,
            epoch: None,
            ttl,
        };
        let call = begin_call(key, None, Some(claimant)).rows([]);
        let blobs = Blobs::default();
        let answer = self.call_begin(key, call, &blobs, &[], None, None).await?;
        match answer.outcome {
            Outcome::Nothing | Outcome::Elsewhere => Ok(Claim::Refused),
            Outcome::Claimed(claim) => Ok(claim),
            outcome => Err(outcome.to_failure(None)),
        }
    }

    async fn holder(&self, key: &ConversationKey) -> Result<Option<Holder>, Failure> {
        let found = self
            .fetch_optional(
                "SELECT lease_by, epoch FROM adjutant_conversation
                 WHERE agent = $1 AND user_id = $2 AND id = $3
                   AND EXISTS (SELECT FROM adjutant_worker_session WHERE worker = lease_by)",
                key_values![key],
            )
            .await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        Ok(Some(Holder {
            worker: found.get("lease_by")?,
            epoch: found.get("epoch")?,
        }))
    }

    async fn renew(
        &self,
        key: &ConversationKey,
        worker: Worker<'_>,
        ttl: Duration,
    ) -> Result<bool, Failure> {
        let renewed = self
            .execute(
                "UPDATE adjutant_conversation SET lease_until = adjutant_moment_1($5)
                 WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $6",
                key_values![key, worker.id, to_micros(ttl), worker.epoch],
            )
            .await?;
        Ok(renewed > 0)
    }
}

impl PostgresDatabase {
    async fn call_begin(
        &self,
        key: &ConversationKey,
        call: Call,
        blobs: &Blobs,
        events: &[NewEvent],
        change: Option<&Projection>,
        known: Option<Known>,
    ) -> Result<Answer, Failure> {
        let known_created = known.map(|known| record::format_time(known.created_at));
        let known_seq = known.and_then(|known| i64::try_from(known.seq).ok());
        let call = with_change(call, blobs, events, change)?
            .value(known_created.as_deref())
            .value(known_seq)
            .without_wait();
        let mut found = self.calls.call(&self.pool, key, call).await?;
        let created_at: Option<String> = found.get("o_created_at")?;
        let number = |found: &mut Row, name| -> Result<i64, StoreError> {
            Ok(found.get::<Option<i64>>(name)?.unwrap_or_default())
        };
        Ok(Answer {
            outcome: Outcome::from_code(found.get("o_outcome")?)?,
            conversation: number(&mut found, "o_conversation")?,
            created_at: created_at.unwrap_or_default(),
            next_seq: number(&mut found, "o_next_seq")?,
            waits: number(&mut found, "o_waits")? == 1,
            newer: found.get("o_newer")?,
        })
    }
}

/// The result code of `adjutant_begin_2`.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Nothing,
    Elsewhere,
    Claimed(Claim),
    Started,
    Reused,
    Deleted,
    Accepted,
    QueueFull,
}

impl Outcome {
    fn from_code(code: i64) -> Result<Self, StoreError> {
        Ok(match code {
            0 => Self::Nothing,
            1 => Self::Elsewhere,
            2 => Self::Claimed(Claim::Granted),
            3 => Self::Claimed(Claim::TakenOver),
            4 => Self::Started,
            5 => Self::Reused,
            6 => Self::Deleted,
            8 => Self::Accepted,
            9 => Self::QueueFull,
            other => {
                return Err(record::unreadable(
                    "an answer of the database",
                    format!("outcome {other}"),
                ));
            }
        })
    }

    /// Converts a result that the caller has no other use for into an error. `arrival` is the input
    /// that was to be accepted.
    fn to_failure(self, arrival: Option<&NewInput>) -> Failure {
        match (self, arrival) {
            (Self::Reused, _) => StoreError::Reused.into(),
            (Self::Deleted, _) => StoreError::Conflict.into(),
            (Self::QueueFull, Some(arrival)) => arrival.queue_full(),
            (other, _) => {
                record::unreadable("an answer of the database", format!("outcome {other:?}")).into()
            }
        }
    }
}

struct Answer {
    outcome: Outcome,
    conversation: i64,
    created_at: String,
    /// The sequence number of the next event, before the turn was started.
    next_seq: i64,
    /// True if inputs wait, or a turn was open.
    waits: bool,
    /// [`NewerJson`], if the lease was taken, there are newer events, and the conversation is no
    /// branch.
    newer: Option<String>,
}

/// The result of `adjutant_newer_1`: each row is an array of its columns in the order of the
/// struct's fields.
#[derive(Deserialize)]
struct NewerJson {
    snapshot: Option<SnapshotRow>,
    said: Vec<EventRow>,
    after: i64,
    events: Vec<EventRow>,
    inbox: Vec<InputRow>,
}

/// Decodes the newer events of a conversation. `None` if a long value is stored elsewhere, or the
/// snapshot is not usable: then they are read by statements.
fn read_newer(
    json: &str,
    conversation: i64,
    created_at: Timestamp,
) -> Result<Option<NewerRows>, StoreError> {
    let newer: NewerJson = serde_json::from_str(json)
        .map_err(|error| record::unreadable("an answer of the database", error))?;
    let NewerJson {
        snapshot,
        said,
        after,
        events,
        inbox,
    } = newer;
    let bodies = said
        .iter()
        .chain(&events)
        .map(|row| &row.body)
        .chain(inbox.iter().map(|row| &row.body));
    if bodies
        .into_iter()
        .any(|body| references(body).next().is_some())
    {
        return Ok(None);
    }
    if snapshot
        .as_ref()
        .is_some_and(|snapshot| !snapshot.is_usable())
    {
        return Ok(None);
    }
    let restorable = snapshot.map(|snapshot| RestorableRows {
        snapshot,
        messages: said,
    });
    Ok(Some(NewerRows {
        conversation,
        created_at,
        restorable,
        after,
        events,
        inbox,
    }))
}

/// A worker that is to get the lease.
#[derive(Clone, Copy)]
struct Claimant<'a> {
    worker: &'a str,
    /// `None`: a lease that the worker has already stays in its epoch.
    epoch: Option<i64>,
    ttl: Duration,
}

/// Returns the first parameters of `adjutant_begin_2`.
fn begin_call(
    key: &ConversationKey,
    arrival: Option<&NewInput>,
    claimant: Option<Claimant<'_>>,
) -> Call {
    let call = Call::new("adjutant_begin_2", key);
    let call = match arrival {
        Some(NewInput { input, row, .. }) => call.texts(values![
            &row.id,
            &row.body,
            &row.at,
            row.request_id.as_deref(),
            row.fingerprint.as_deref(),
            adjutant_core::title(&input.body),
        ]),
        None => call.rows([]),
    };
    let call = call.value(arrival.and_then(NewInput::queue_limit));
    call.value(claimant.map(|claimant| claimant.worker))
        .value(claimant.and_then(|claimant| claimant.epoch))
        .value(claimant.map(|claimant| to_micros(claimant.ttl)))
}

/// Returns the parameters of `adjutant_append_1`.
fn append_call(data: &AppendRequest) -> Result<Call, StoreError> {
    let AppendRequest {
        key,
        added,
        worker,
        releases,
        snapshot,
        spent,
    } = data;
    let (worker, epoch) = worker
        .as_ref()
        .map(|(worker, epoch)| (worker.as_str(), *epoch))
        .unzip();
    let place = added
        .as_ref()
        .map(|added| (added.conversation, added.seq))
        .unzip();
    let call = Call::new("adjutant_append_1", key)
        .value(place.0)
        .value(place.1);
    let call = call.value(worker).value(epoch).value(i64::from(*releases));
    let (events, change) = added
        .as_ref()
        .map(|added| (added.events.as_slice(), &added.change))
        .unzip();
    let call = with_change(call, &Blobs::default(), events.unwrap_or_default(), change)?;
    Ok(call
        .rows(snapshot.iter().map(SnapshotRow::values))
        .rows(spent.iter().map(booking_values)))
}

/// Reads the result of `adjutant_append_1`.
fn read_appended(mut found: Row) -> Result<Appended, Failure> {
    match found.get::<i64>("o_outcome")? {
        1 => Ok(Appended {
            conversation: found.get("o_conversation")?,
            untaken: found.get("o_untaken")?,
        }),
        // The conversation was deleted, belongs to another user or agent, or the place is taken: in
        // each case this writer has lost it.
        _ => Err(StoreError::Conflict.into()),
    }
}

fn to_micros(time: Duration) -> i64 {
    i64::try_from(time.min(LEASE_MAX).as_micros()).unwrap_or(i64::MAX)
}

/// Adds the parameters that both functions share, except the last. `blobs` are the long values that
/// earlier parameters refer to.
fn with_change(
    call: Call,
    blobs: &Blobs,
    events: &[NewEvent],
    change: Option<&Projection>,
) -> Result<Call, StoreError> {
    let call = call.value(i64::from(EVENT_VERSION));
    let Some(change) = change.filter(|_| !events.is_empty()) else {
        let call = call
            .rows(blobs.iter().map(blob))
            .rows(events.iter().map(event));
        return Ok(call.ints(&[]).rows([]).value(None::<i64>).rows([]).rows([]));
    };
    let Projection {
        turns,
        queued,
        counts_again,
        status,
        logs,
    } = change;
    let of_events = events.iter().map(|(row, _)| &row.blobs);
    let of_decisions = logs.decisions.iter().map(|(row, _)| &row.blobs);
    let of_invocations = logs.invocations.iter().map(|row| &row.blobs);
    // Each value is sent once, however many rows refer to it.
    let blobs: BTreeMap<&str, &str> = std::iter::once(blobs)
        .chain(of_events)
        .chain(of_decisions)
        .chain(of_invocations)
        .flat_map(Blobs::iter)
        .collect();
    let call = call
        .rows(blobs.into_iter().map(blob))
        .rows(events.iter().map(event));
    Ok(call
        .ints(&[*turns, *queued, i64::from(*counts_again)])
        .texts(values![
            status.turn.as_deref(),
            record::to_json(&status.waiting)?,
            status.wake_at().map(record::format_time),
        ])
        .value(status.parked_seq)
        .rows(
            logs.decisions
                .iter()
                .map(|(row, is_new)| decision(row, *is_new)),
        )
        .rows(logs.invocations.iter().map(|row| row.values().to_vec())))
}

fn blob<'a>((hash, body): (&'a str, &'a str)) -> Vec<Value<'a>> {
    values![hash, body].to_vec()
}

fn event((row, recorded): &NewEvent) -> Vec<Value<'_>> {
    values![
        &row.kind,
        row.turn.as_deref(),
        row.step.as_deref(),
        &row.body,
        &row.at,
        recorded.event.takes_input().map(InputId::as_str),
    ]
    .to_vec()
}

/// Returns all columns of a new decision, or those that may still change of one that is stored
/// already.
fn decision(row: &DecisionRow, is_new: bool) -> Vec<Value<'_>> {
    let mut values = values![if is_new { "new" } else { "changed" }, &row.id].to_vec();
    values.extend(row.open_values());
    if is_new {
        values.extend(row.fixed_values());
    } else {
        // PostgreSQL's arrays are rectangular.
        values.resize(DECISION_COLUMNS, Value::Text(None));
    }
    values
}
