//! Writes what is new in a conversation by one call of one function
//! (`migrations/0008_functions.sql`, `migrations/0010_begin.sql`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::port::{self, Claim, Holder, Known, StoreError};
use adjutant_core::{ConversationKey, EVENT_VERSION};
use jiff::Timestamp;
use serde::Deserialize;

use super::PostgresDatabase;
use super::literal::Call;
use super::transaction::Transaction;
use crate::blob::{Blobs, references};
use crate::row::{self, DecisionRow, EventRow, InputRow, InvocationRow};
use crate::sql::append::{Change, NewEvent};
use crate::sql::appending::Appending;
use crate::sql::begin::{Arrival, Beginning, BegunRows, NewerRows, Start, newer};
use crate::sql::budget::BookingRow;
use crate::sql::journal::Writes;
use crate::sql::open_turns::{Open, OpenTurns};
use crate::sql::snapshot::{RestorableRows, SnapshotRow};
use crate::sql::{Backend as _, Columns, Failure, key_values};

/// Texts of a decision that is new.
const DECISION_COLUMNS: usize = 29;

/// The longest time of a claim: the server's calendar ends.
const LEASE_MAX: Duration = Duration::from_secs(7000 * 365 * 24 * 3600);

impl Writes for PostgresDatabase {
    fn tell_others(&self, change: &port::Change) {
        self.others.tell(change);
    }

    async fn submit(
        &self,
        data: (ConversationKey, Arrival, Option<Start>),
    ) -> Result<bool, Failure> {
        let (key, arrival, start) = data;
        let (turn, change) = start
            .as_ref()
            .map(|start| (&*start.turn, &start.change))
            .unzip();
        let call = beginning(&key, Some(&arrival), None).rows([]);
        let around = (&arrival.row.blobs, turn.unwrap_or_default());
        match self
            .begun(&key, call, around, (change, None))
            .await?
            .outcome
        {
            Outcome::Elsewhere => Ok(true),
            Outcome::Accepted => Ok(false),
            outcome => Err(outcome.refusal(Some(&arrival))),
        }
    }

    async fn begin(&self, data: Beginning) -> Result<BegunRows, Failure> {
        let Beginning {
            key,
            arrival,
            start,
            first,
            worker,
            epoch,
            lease,
            known,
        } = data;
        let Start { turn, change } = start;
        let arrival = arrival.as_ref();
        let mut blobs = arrival
            .map(|arrival| arrival.row.blobs.clone())
            .unwrap_or_default();
        first.iter().for_each(|(row, _)| blobs.extend(&row.blobs));
        self.note_worker(&worker);
        let call = || {
            beginning(&key, arrival, Some((&worker, Some(epoch), lease)))
                .rows(first.iter().map(event))
        };
        let begun = async || {
            self.begun(&key, call(), (&blobs, &turn), (Some(&change), known))
                .await
        };
        let mut answer = begun().await?;
        if matches!(answer.outcome, Outcome::Elsewhere) && self.end_claims_of_the_gone().await? {
            answer = begun().await?;
        }
        let claim = match answer.outcome {
            Outcome::Nothing => return Ok(BegunRows::Nothing),
            Outcome::Elsewhere => return Ok(BegunRows::Elsewhere),
            Outcome::Claimed(claim) => Some(claim),
            Outcome::Started => None,
            outcome @ (Outcome::Reused
            | Outcome::Deleted
            | Outcome::Accepted
            | Outcome::QueueFull) => {
                return Err(outcome.refusal(arrival));
            }
        };
        let (mut events, mut open) = (Vec::new(), None);
        if claim.is_none() {
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
            open = Some(Open {
                conversation: answer.conversation,
                next_seq,
                status,
                decisions,
            });
        }
        let created_at = row::read_time(&answer.created_at, "the beginning of a conversation")?;
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
            let begun = answer
                .newer
                .as_deref()
                .map(|newer| read_newer(newer, (answer.conversation, created_at)));
            match begun.transpose()?.flatten() {
                Some(newer) => newer,
                // The claim is held, so that nobody else goes on with it meanwhile.
                None => {
                    let read = self.read((key, known), |rows, (key, known)| {
                        Box::pin(newer(rows, key, *known))
                    });
                    read.await?.ok_or(StoreError::Conflict)?
                }
            }
        };
        Ok(match (claim, open) {
            (None, Some(open)) => BegunRows::Started(newer, open),
            (claim, _) => BegunRows::Claimed(claim.unwrap_or(Claim::Granted), newer),
        })
    }

    async fn append(&self, data: Appending) -> Result<(i64, i64), Failure> {
        let call = appending(&data)?.open();
        appended(self.calls.call(&self.pool, &data.key, call).await?)
    }

    async fn append_in(rows: &mut Transaction, data: &Appending) -> Result<(i64, i64), Failure> {
        appended(rows.call(appending(data)?).await?)
    }

    fn open_turns(&self) -> &OpenTurns {
        &self.open
    }

    async fn claim(
        &self,
        (key, worker, ttl): (ConversationKey, String, Duration),
    ) -> Result<Claim, Failure> {
        let call = beginning(&key, None, Some((&worker, None, ttl))).rows([]);
        match self
            .begun(&key, call, (&Blobs::default(), &[]), (None, None))
            .await?
            .outcome
        {
            Outcome::Nothing | Outcome::Elsewhere => Ok(Claim::Refused),
            Outcome::Claimed(claim) => Ok(claim),
            outcome => Err(outcome.refusal(None)),
        }
    }

    async fn holder(&self, key: ConversationKey) -> Result<Option<Holder>, Failure> {
        let found = self
            .fetch_first(
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
            worker: found.text()?,
            epoch: found.int()?,
        }))
    }

    async fn renew(
        &self,
        (key, (worker, epoch), ttl): (ConversationKey, (String, i64), Duration),
    ) -> Result<bool, Failure> {
        let renewed = self
            .execute(
                "UPDATE adjutant_conversation SET lease_until = adjutant_moment_1($5)
                 WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $6",
                key_values![key, &worker, micros(ttl), epoch],
            )
            .await?;
        Ok(renewed > 0)
    }
}

impl PostgresDatabase {
    async fn begun(
        &self,
        key: &ConversationKey,
        call: Call,
        (blobs, events): (&Blobs, &[NewEvent]),
        (change, known): (Option<&Change>, Option<Known>),
    ) -> Result<Answer, Failure> {
        let known_created = known.map(|known| row::time_text(known.created_at));
        let known_seq = known.and_then(|known| i64::try_from(known.seq).ok());
        let call = with_change(call, blobs, events, change)?
            .value(known_created.as_deref())
            .value(known_seq)
            .open();
        let mut found = self.calls.call(&self.pool, key, call).await?;
        let outcome = Outcome::of(found.int()?)?;
        Ok(Answer {
            outcome,
            conversation: found.maybe_int()?.unwrap_or_default(),
            created_at: found.maybe_text()?.unwrap_or_default(),
            next_seq: found.maybe_int()?.unwrap_or_default(),
            waits: found.maybe_int()? == Some(1),
            newer: found.maybe_text()?,
        })
    }
}

/// The outcome of a call of `adjutant_begin_2`.
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
    fn of(number: i64) -> Result<Self, StoreError> {
        Ok(match number {
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
                return Err(row::unreadable(
                    "an answer of the database",
                    format!("outcome {other}"),
                ));
            }
        })
    }

    /// The error it is where nothing else can be made of it. `arrival`: what was to be accepted.
    fn refusal(self, arrival: Option<&Arrival>) -> Failure {
        match (self, arrival) {
            (Self::Reused, _) => StoreError::Reused.into(),
            (Self::Deleted, _) => StoreError::Conflict.into(),
            (Self::QueueFull, Some(arrival)) => arrival.refused(),
            (other, _) => {
                row::unreadable("an answer of the database", format!("outcome {other:?}")).into()
            }
        }
    }
}

struct Answer {
    outcome: Outcome,
    conversation: i64,
    created_at: String,
    /// The place of the next event, before the turn was started.
    next_seq: i64,
    /// Whether inputs wait, or a turn was open.
    waits: bool,
    /// [`NewerJson`], if the conversation was claimed, has something newer, and is no branch.
    newer: Option<String>,
}

/// The answer of `adjutant_newer_1`.
#[derive(Deserialize)]
struct NewerJson {
    snapshot: Option<(i64, i64, i64, String, String)>,
    said: Vec<EventJson>,
    after: i64,
    events: Vec<EventJson>,
    inbox: Vec<InputJson>,
}

/// Place, version, kind, turn, step, body and time of an event.
type EventJson = (
    i64,
    i64,
    String,
    Option<String>,
    Option<String>,
    String,
    String,
);

/// Id, version, body, time, request and fingerprint of an input, and the event behind which it
/// came.
type InputJson = (
    String,
    i64,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<i64>,
);

/// Reads what is newer in a conversation. `None`: a long value lies elsewhere, or the snapshot is
/// not usable.
fn read_newer(
    json: &str,
    (conversation, created_at): (i64, Timestamp),
) -> Result<Option<NewerRows>, StoreError> {
    let newer: NewerJson = serde_json::from_str(json)
        .map_err(|error| row::unreadable("an answer of the database", error))?;
    let event = |(seq, v, kind, turn, step, body, at)| EventRow {
        seq,
        v,
        kind,
        turn,
        step,
        body,
        blobs: Blobs::default(),
        at,
    };
    let input = |(id, v, body, at, request_id, fingerprint, after)| InputRow {
        id,
        v,
        body,
        at,
        request_id,
        fingerprint,
        after,
        blobs: Blobs::default(),
    };
    let said: Vec<EventRow> = newer.said.into_iter().map(event).collect();
    let events: Vec<EventRow> = newer.events.into_iter().map(event).collect();
    let inbox: Vec<InputRow> = newer.inbox.into_iter().map(input).collect();
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
    let snapshot = newer
        .snapshot
        .map(|(seq, messages_from, v, digest, body)| SnapshotRow {
            seq,
            messages_from,
            v,
            digest,
            body,
        });
    if snapshot
        .as_ref()
        .is_some_and(|snapshot| !snapshot.is_usable())
    {
        return Ok(None);
    }
    let restorable = snapshot.map(|snapshot| RestorableRows { snapshot, said });
    let after = newer.after;
    Ok(Some(NewerRows {
        conversation,
        created_at,
        restorable,
        after,
        events,
        inbox,
    }))
}

/// The first parameters of `adjutant_begin_2`.
fn beginning(
    key: &ConversationKey,
    arrival: Option<&Arrival>,
    claim: Option<(&str, Option<i64>, Duration)>,
) -> Call {
    let call = Call::of("adjutant_begin_2", key);
    let call = match arrival {
        Some(Arrival { input, row, .. }) => call.texts(&[
            Some(row.id.as_str().into()),
            Some(row.body.as_str().into()),
            Some(row.at.as_str().into()),
            row.request_id.as_deref().map(Cow::from),
            row.fingerprint.as_deref().map(Cow::from),
            adjutant_core::title(&input.body).map(Cow::from),
        ]),
        None => call.rows([]),
    };
    let call = call.value(arrival.and_then(Arrival::room));
    let call = call
        .value(claim.map(|(worker, ..)| worker))
        .value(claim.and_then(|(_, epoch, _)| epoch));
    call.value(claim.map(|(.., lease)| micros(lease)))
}

/// The parameters of `adjutant_append_1`.
fn appending(data: &Appending) -> Result<Call, StoreError> {
    let Appending {
        key,
        added,
        worker,
        releases,
        snapshot,
        spent,
    } = data;
    let spent: Vec<BookingRow> = spent.iter().map(BookingRow::of).collect();
    let (worker, epoch) = worker
        .as_ref()
        .map(|(worker, epoch)| (worker.as_str(), *epoch))
        .unzip();
    let place = added
        .as_ref()
        .map(|added| (added.conversation, added.seq))
        .unzip();
    let call = Call::of("adjutant_append_1", key)
        .value(place.0)
        .value(place.1);
    let call = call.value(worker).value(epoch).value(i64::from(*releases));
    let (events, change) = added
        .as_ref()
        .map(|added| (added.events.as_slice(), &added.change))
        .unzip();
    let call = with_change(call, &Blobs::default(), events.unwrap_or_default(), change)?;
    Ok(call
        .rows(snapshot.iter().map(snapshot_texts))
        .rows(spent.iter().map(booking)))
}

/// Reads the answer of `adjutant_append_1`: the conversation, and how many of its inputs nobody has
/// taken.
fn appended(mut found: Columns) -> Result<(i64, i64), Failure> {
    match found.int()? {
        1 => Ok((found.int()?, found.int()?)),
        // It was deleted, is another user's or agent's, or the place is taken: either way not this
        // writer's any more.
        _ => Err(StoreError::Conflict.into()),
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.min(LEASE_MAX).as_micros()).unwrap_or(i64::MAX)
}

/// The other parameters that both functions have, but the last. `blobs`: what other parameters
/// refer to.
fn with_change(
    call: Call,
    blobs: &Blobs,
    events: &[NewEvent],
    change: Option<&Change>,
) -> Result<Call, StoreError> {
    let call = call.value(i64::from(EVENT_VERSION));
    let Some(change) = change.filter(|_| !events.is_empty()) else {
        let call = call
            .rows(blobs.iter().map(blob))
            .rows(events.iter().map(event));
        return Ok(call.ints(&[]).rows([]).value(None::<i64>).rows([]).rows([]));
    };
    let Change {
        turns,
        queued,
        counts_again,
        status,
        logs,
    } = change;
    let of_events = events.iter().map(|(row, _)| &row.blobs);
    let of_decisions = logs.decisions.iter().map(|(row, _)| &row.blobs);
    let of_invocations = logs.invocations.iter().map(|row| &row.blobs);
    // Each is sent once, however many rows refer to it.
    let blobs: BTreeMap<&str, &str> = std::iter::once(blobs)
        .chain(of_events)
        .chain(of_decisions)
        .chain(of_invocations)
        .flat_map(Blobs::iter)
        .collect();
    let call = call
        .rows(blobs.into_iter().map(blob))
        .rows(events.iter().map(event));
    let status_texts = [
        status.turn.as_deref().map(Cow::from),
        Some(row::waiting_text(status)?.into()),
        status.wake_at().map(|at| row::time_text(at).into()),
    ];
    Ok(call
        .ints(&[*turns, *queued, i64::from(*counts_again)])
        .texts(&status_texts)
        .value(status.parked_seq)
        .rows(
            logs.decisions
                .iter()
                .map(|(row, is_new)| decision(row, *is_new)),
        )
        .rows(logs.invocations.iter().map(invocation)))
}

type Texts<'a> = Vec<Option<Cow<'a, str>>>;

fn blob<'a>((hash, body): (&'a str, &'a str)) -> Texts<'a> {
    vec![Some(hash.into()), Some(body.into())]
}

fn event((row, recorded): &NewEvent) -> Texts<'_> {
    vec![
        Some(row.kind.as_str().into()),
        row.turn.as_deref().map(Cow::from),
        row.step.as_deref().map(Cow::from),
        Some(row.body.as_str().into()),
        Some(row.at.as_str().into()),
        recorded
            .event
            .takes_input()
            .map(|input| input.as_str().into()),
    ]
}

/// All of it, or where it was stored before, what an open decision may still change.
fn decision(row: &DecisionRow, is_new: bool) -> Texts<'_> {
    let number = |number: i64| Some(Cow::from(number.to_string()));
    let mut texts: Texts<'_> = vec![
        Some(if is_new { "new" } else { "changed" }.into()),
        Some(row.id.as_str().into()),
        row.ended_at.as_deref().map(Cow::from),
        row.intent.as_deref().map(Cow::from),
        row.kind.as_deref().map(Cow::from),
        row.outcome.as_deref().map(Cow::from),
        row.content.as_deref().map(Cow::from),
        number(row.model_calls),
        number(row.iterations),
        row.input_tokens.and_then(number),
        row.output_tokens.and_then(number),
        row.cached_tokens.and_then(number),
        row.cache_written_tokens.and_then(number),
        row.thinking_tokens.and_then(number),
        // The shortest digits that are read as this very number.
        row.cost_usd.map(|cost| cost.to_string().into()),
        Some(row.notices.as_str().into()),
        number(row.model_ms),
        number(row.tool_ms),
        row.total_ms.and_then(number),
        row.error_code.as_deref().map(Cow::from),
        row.raw_response.as_deref().map(Cow::from),
    ];
    if is_new {
        texts.extend([
            Some(row.agent.as_str().into()),
            row.version.as_deref().map(Cow::from),
            row.request_id.as_deref().map(Cow::from),
            Some(row.started_at.as_str().into()),
            Some(row.message.as_str().into()),
            number(row.message_chars),
            Some(row.model_provider.as_str().into()),
            Some(row.model_name.as_str().into()),
        ]);
    } else {
        // Rows of an array are as long as each other.
        texts.resize(DECISION_COLUMNS, None);
    }
    texts
}

fn snapshot_texts(row: &SnapshotRow) -> Texts<'_> {
    let number = |number: i64| Some(Cow::from(number.to_string()));
    vec![
        number(row.seq),
        number(row.messages_from),
        number(row.v),
        Some(row.digest.as_str().into()),
        Some(row.body.as_str().into()),
    ]
}

fn booking(row: &BookingRow) -> Texts<'_> {
    let texts = [
        Some(&row.id),
        Some(&row.day),
        Some(&row.user),
        row.everyone_block.as_ref(),
        row.own_block.as_ref(),
    ];
    let texts = texts
        .into_iter()
        .map(|text| text.map(|text| Cow::from(text.as_str())));
    texts
        .chain(
            row.numbers
                .iter()
                .map(|number| Some(Cow::from(number.to_string()))),
        )
        .collect()
}

fn invocation(row: &InvocationRow) -> Texts<'_> {
    vec![
        Some(row.decision.as_str().into()),
        Some(row.id.as_str().into()),
        Some(row.tool.as_str().into()),
        Some(row.arguments.as_str().into()),
        Some(i64::from(row.success).to_string().into()),
        row.data.as_deref().map(Cow::from),
        row.error.as_deref().map(Cow::from),
        Some(row.ms.to_string().into()),
        Some(row.attempt.to_string().into()),
        Some(row.at.as_str().into()),
    ]
}
