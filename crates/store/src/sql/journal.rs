//! Inbox, events, and what has work to do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    self, AcceptedInput, Beat, Begin, Begun, Changes, Claim, Finished, Holder, Journal,
    JournaledChange, Known, Loaded, Newer, Relay, Running, StoreError, Take, Taken, Turns, Worker,
    Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, Event, Input, InputBody, InputId, Recorded, StoreId,
    TurnId, UserId,
};
use jiff::Timestamp;

use super::append::{Change, NewEvent, new_event, new_events};
use super::appending::{Added, Appending, append};
use super::begin::{Arrival, Beginning, BegunRows, Start, newer, start, submit};
use super::conversation_row::{conversation, save_conversation};
use super::open_turns::{Open, OpenTurns, open_turn};
use super::past::{self, event_rows, events, inbox, read_inbox};
use super::snapshot::SnapshotRow;
use super::work::{Beating, Taking, beat, free, lease_until, take};
use super::{
    Backend, Columns, Connection, Failure, SqlStore, Value, Work, key_values, to_static, values,
    with_change,
};
use crate::row::{self, EventRow, InputRow};
use crate::status::Status;

/// What has work to do, claimed or not.
pub(crate) const UNSETTLED: &str = concat!(
    "SELECT agent, user_id, id, lease_by, ",
    lease_until!(),
    " FROM adjutant_conversation
     WHERE agent = $1 AND unsettled = 1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) ORDER BY updated_at, key"
);

/// What waits for a human with something whose time has run out, claimed or not.
pub(crate) const EXPIRED: &str = concat!(
    "SELECT agent, user_id, id, lease_by, ",
    lease_until!(),
    " FROM adjutant_conversation
     WHERE agent = $1 AND wake_at <= $3 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) ORDER BY wake_at, key"
);

/// The first cancellation that was not taken.
pub(crate) const CANCELLATION: &str =
    "SELECT inbox.id FROM adjutant_inbox AS inbox JOIN adjutant_conversation AS conversation ON conversation.key = inbox.conversation
     WHERE agent = $1 AND user_id = $2 AND conversation.id = $3 AND taken_seq IS NULL AND body = $4
     ORDER BY accepted LIMIT 1";

/// What each of a user's turns that wait was parked with.
pub(crate) const PARKED: &str =
    "SELECT agent, user_id, conversation.id, event.seq, event.v, event.kind, event.turn, event.step,
            COALESCE(blob.body, event.body), event.at, event.conversation
     FROM adjutant_conversation AS conversation JOIN adjutant_event AS event ON event.conversation = conversation.key AND event.seq = parked_seq
     LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
     WHERE agent = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) AND parked_seq IS NOT NULL";

/// How a database writes what is new in a conversation: by these statements, unless it has
/// something shorter.
pub trait Writes: Backend {
    /// Tells other processes of a change that this one made, after its commit. Where they see by
    /// themselves that something was written, nothing is to be done.
    fn tell_others(&self, _change: &port::Change) {}

    /// Accepts an input. Returns whether a worker may have the conversation. Where it can be done
    /// in the same statement, its turn is started if nobody has the conversation and there is
    /// nothing else to do in it.
    fn submit(
        &self,
        data: (ConversationKey, Arrival, Option<Start>),
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        self.write(data, |rows, (key, arrival, _)| {
            Box::pin(submit(rows, key, arrival))
        })
    }

    /// Returns the state of conversations with open turns, as it was written last.
    fn open_turns(&self) -> &OpenTurns;

    /// Accepts an input, claims the conversation, and starts the turn if there is nothing else to
    /// do.
    fn begin(&self, data: Beginning) -> impl Future<Output = Result<BegunRows, Failure>> + Send {
        self.write(data, |rows, data| Box::pin(start(rows, data)))
    }

    /// Adds events at the places they name, if the worker has the conversation that is named, and
    /// gives the claim back if it is to be released and no inputs wait. Returns the conversation,
    /// and how many of its inputs nobody has taken.
    fn append(&self, data: Appending) -> impl Future<Output = Result<(i64, i64), Failure>> + Send {
        self.write(data, |rows, data| Box::pin(append(rows, data)))
    }

    /// The same inside a transaction that goes on.
    fn append_in(
        rows: &mut Self::Connection,
        data: &Appending,
    ) -> impl Future<Output = Result<(i64, i64), Failure>> + Send {
        append(rows, data)
    }

    /// Claims the conversation for a worker and a time, unless another one alive has it.
    fn claim(
        &self,
        data: (ConversationKey, String, Duration),
    ) -> impl Future<Output = Result<Claim, Failure>> + Send {
        self.write(data, |rows, (key, worker, ttl)| {
            Box::pin(claim(rows, key, worker, *ttl))
        })
    }

    /// Returns the worker that has the conversation, if it hears other processes.
    fn holder(
        &self,
        _key: ConversationKey,
    ) -> impl Future<Output = Result<Option<Holder>, Failure>> + Send {
        std::future::ready(Ok(None))
    }

    /// Extends the claim that a worker made in its epoch; `false` if it has none.
    fn renew(
        &self,
        data: (ConversationKey, (String, i64), Duration),
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        self.write(data, |rows, (key, worker, ttl)| {
            Box::pin(renew(rows, key, worker, *ttl))
        })
    }
}

impl<B: Writes> Journal for SqlStore<B> {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let arrival = Arrival::of(input, self.1.messages_queued_max)?;
            if self.0.submit((key.clone(), arrival, None)).await? {
                self.tell(port::Change::Input, key);
            }
            Ok(())
        })
    }

    fn submit_with_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
        turn: &'a Event,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let arrival = Arrival::of(input, self.1.messages_queued_max)?;
            let start = Start::of(key, vec![new_event(input.at, turn)?], self.1.log_content)?;
            if self.0.submit((key.clone(), arrival, Some(start))).await? {
                self.tell(port::Change::Input, key);
            }
            Ok(())
        })
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.run(async move {
            let (events, inbox) = self
                .0
                .read(key.clone(), |rows, key| Box::pin(stored(rows, key)))
                .await?;
            // The first that cannot be read fails the whole: a turn is never rebuilt from half a
            // journal.
            let mut loaded = Loaded::default();
            for event in events {
                loaded.events.push(event.read(key)?);
            }
            loaded.inbox = read_inbox(key, inbox)?;
            Ok(loaded)
        })
    }

    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>> {
        self.run(async move {
            let newer = self
                .0
                .read((key.clone(), known), |rows, (key, known)| {
                    Box::pin(newer(rows, key, *known))
                })
                .await?;
            Ok(newer.map(|newer| newer.read(key)).transpose()?)
        })
    }

    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        self.run(past::load_turns(&*self.0, key, before, turns))
    }

    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        self.run(past::load_turn(&*self.0, key, turn))
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>> {
        self.run(past::find_input(&*self.0, key, id))
    }

    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>> {
        self.run(async move {
            let arrival = begin
                .input
                .map(|input| Arrival::of(input, self.1.messages_queued_max));
            let turn: Vec<NewEvent> = begin
                .turn
                .iter()
                .map(|event| new_event(begin.at, event))
                .collect::<Result<_, _>>()?;
            let data = Beginning {
                key: key.clone(),
                arrival: arrival.transpose()?,
                start: Start::of(key, turn, self.1.log_content)?,
                first: begin
                    .first
                    .map(|event| new_event(begin.at, event))
                    .transpose()?,
                worker: begin.worker.id.to_owned(),
                epoch: begin.worker.epoch,
                lease: begin.lease,
                known: begin.known,
            };
            Ok(match self.0.begin(data).await? {
                BegunRows::Nothing => Begun::Nothing,
                BegunRows::Elsewhere => {
                    // Told again by each who asks again: whoever has the conversation may have
                    // missed it.
                    self.tell(port::Change::Input, key);
                    Begun::Elsewhere
                }
                BegunRows::Claimed(claim, newer) => {
                    let conversation = newer.conversation;
                    let newer = newer.read(key)?;
                    self.keep_open(key, conversation, &newer)?;
                    Begun::Claimed { claim, newer }
                }
                BegunRows::Started(newer, open) => {
                    self.0.open_turns().keep(key.clone(), open);
                    Begun::Started(newer.read(key)?)
                }
            })
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move { self.append_as(key, None, events, None).await.map(drop) })
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            self.append_as(key, Some(writer), events, None)
                .await
                .map(drop)
        })
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(self.id())
    }

    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        change: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        self.run(async move {
            let Some((added, behind)) = self.added(key, events).await? else {
                return Err(StoreError::Conflict.into());
            };
            let before = Appending {
                added: Some(added),
                ..Appending::of(key, Some(writer))
            };
            let content = self.1.log_content;
            let append: Work<B::Connection, _, _> = |rows, data| Box::pin(B::append_in(rows, data));
            let call = with_change::Call {
                before,
                behind,
                change,
                content,
                append,
            };
            let (ended, after) = self.0.write(call, with_change::append).await?;
            self.0.open_turns().keep(key.clone(), after);
            Ok(ended)
        })
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>> {
        self.run(async move {
            // Where no events are added, nothing says that the conversation is the one it was made
            // of.
            let snapshot = snapshot
                .filter(|_| !events.is_empty())
                .map(SnapshotRow::of)
                .transpose()?;
            let (conversation, untaken) = self
                .append_as(key, Some(writer), events, Some(snapshot))
                .await?;
            let kept = match untaken > 0 {
                true => Some(
                    self.0
                        .read(conversation, |rows, key| Box::pin(inbox(rows, *key)))
                        .await?,
                ),
                false => None,
            };
            Ok(match kept {
                Some(inbox) => Finished::Kept(read_inbox(key, inbox)?),
                None => {
                    self.tell(port::Change::Free, key);
                    Finished::Released
                }
            })
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.run(async move { self.0.claim((key.clone(), worker.to_owned(), ttl)).await })
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            self.0
                .renew((key.clone(), (worker.id.to_owned(), worker.epoch), ttl))
                .await
        })
    }

    fn beat<'a>(
        &'a self,
        given: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        self.run(async move {
            self.0
                .write(Beating::from(given), |rows, beating| {
                    Box::pin(beat(rows, beating))
                })
                .await
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            self.0
                .execute(
                    "UPDATE adjutant_conversation SET lease_by = NULL, lease_until = NULL
                     WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $5",
                    key_values![key, worker.id, worker.epoch],
                )
                .await?;
            self.tell(port::Change::Free, key);
            Ok(())
        })
    }

    fn holder<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, StoreError>> {
        self.run(async move { self.0.holder(key.clone()).await })
    }

    fn end_claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            // Another name: the lease of a worker holds as long as the worker of that name lives.
            let ended = self
                .0
                .execute(
                    "UPDATE adjutant_conversation SET lease_by = lease_by || ' (ended)', lease_until = created_at
                     WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $5",
                    key_values![key, worker.id, worker.epoch],
                )
                .await?;
            if ended > 0 {
                self.tell(port::Change::Free, key);
            }
            Ok(ended > 0)
        })
    }

    fn take<'a>(&'a self, taken: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        self.run(async move {
            self.0.note_worker(taken.worker.id);
            let take = || {
                self.0.write(Taking::from(taken), |rows, taking| {
                    Box::pin(take(rows, taking))
                })
            };
            let found = take().await?;
            // What nobody has comes first.
            match found.is_empty() && self.0.end_claims_of_the_gone().await? {
                true => take().await,
                false => Ok(found),
            }
        })
    }

    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.run(async move {
            self.0.end_claims_of_the_gone().await?;
            self.0
                .read((agent.clone(), user.cloned()), |rows, (agent, user)| {
                    Box::pin(async move {
                        let user = user.as_ref().map(UserId::as_str);
                        let found = rows.fetch(UNSETTLED, values![agent.as_str(), user]).await?;
                        free(rows, found).await
                    })
                })
                .await
        })
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.run(async move {
            self.0
                .read(
                    (agent.clone(), user.cloned(), now),
                    |rows, (agent, user, now)| {
                        Box::pin(async move {
                            let user = user.as_ref().map(UserId::as_str);
                            let now = row::time_text(*now);
                            let found = rows
                                .fetch(EXPIRED, values![agent.as_str(), user, &now])
                                .await?;
                            free(rows, found).await
                        })
                    },
                )
                .await
        })
    }

    fn changes(&self) -> Box<dyn Changes> {
        let changes = self.0.news().listen();
        self.0.watch();
        changes
    }

    fn relay(&self) -> Arc<dyn Relay> {
        self.0.relay()
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        self.run(async move {
            let body = InputRow::body_of(&InputBody::Cancel)?;
            let found = self
                .0
                .fetch_first(CANCELLATION, key_values![key, &body])
                .await?;
            let Some(mut found) = found else {
                return Ok(None);
            };
            let id =
                InputId::new(found.text()?).map_err(|error| row::unreadable("an input", error))?;
            Ok(Some(id))
        })
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        self.run(async move {
            let values = to_static(values![agent.as_str(), user.map(UserId::as_str)]);
            let (keys, events) = self
                .0
                .read(values, |rows, values| Box::pin(parked(rows, values)))
                .await?;
            let read =
                |(key, event): (ConversationKey, EventRow)| Ok((key.clone(), event.read(&key)?));
            let mut parked = keys
                .into_iter()
                .zip(events)
                .map(read)
                .collect::<Result<Vec<_>, StoreError>>()?;
            parked.sort_by_key(|(key, event)| (event.at, key.conversation));
            Ok(parked)
        })
    }
}

impl<B: Writes> SqlStore<B> {
    /// Adds events, and gives the claim back unless inputs wait if there is an answer to what the
    /// snapshot is, if any. Returns the conversation, and how many of its inputs nobody has taken.
    async fn append_as(
        &self,
        key: &ConversationKey,
        writer: Option<Writer<'_>>,
        events: &[Recorded],
        finish: Option<Option<SnapshotRow>>,
    ) -> Result<(i64, i64), Failure> {
        let (releases, snapshot) = (finish.is_some(), finish.flatten());
        let (added, after) = self.added(key, events).await?.unzip();
        let written = self
            .0
            .append(Appending {
                added,
                releases,
                snapshot,
                ..Appending::of(key, writer)
            })
            .await?;
        if let Some(after) = after {
            self.0.open_turns().keep(key.clone(), after);
        }
        Ok(written)
    }

    /// Keeps the state of the open turn, if all of its events are among those that were just read:
    /// then nothing is read when the next one is written.
    fn keep_open(
        &self,
        key: &ConversationKey,
        conversation: i64,
        newer: &Newer,
    ) -> Result<(), StoreError> {
        let started = |recorded: &Recorded| matches!(*recorded.event, Event::TurnStarted { .. });
        let at = newer
            .events
            .iter()
            .rposition(started)
            .unwrap_or(newer.events.len());
        let turn = newer.events.iter().skip(at);
        let (Some(first), Some(last)) = (turn.clone().next(), newer.events.last()) else {
            return Ok(());
        };
        let place = |event: &Recorded| i64::try_from(event.seq).map_err(|_| StoreError::Conflict);
        let (first, next_seq) = (place(first)?, place(last)? + 1);
        let before = (Status::default(), Vec::new());
        let change = Change::of(key, first, before, turn, self.1.log_content)?;
        let (status, decisions) = (change.status, change.logs.known);
        self.0.open_turns().keep(
            key.clone(),
            Open {
                conversation,
                next_seq,
                status,
                decisions,
            },
        );
        Ok(())
    }

    /// Returns what events add to a conversation, and the state behind them. `None`: there are no
    /// events.
    async fn added(
        &self,
        key: &ConversationKey,
        events: &[Recorded],
    ) -> Result<Option<(Added, Open)>, Failure> {
        let events = new_events(events)?;
        let Some((first, _)) = events.first() else {
            return Ok(None);
        };
        let open = open_turn(&*self.0, self.0.open_turns(), key, first.seq, &events).await?;
        Ok(Some(Added::behind(open, key, events, self.1.log_content)?))
    }

    /// Tells whoever waits, here and in other processes, of a change that was committed.
    fn tell(&self, change: fn(ConversationKey) -> port::Change, key: &ConversationKey) {
        let change = change(key.clone());
        self.0.tell_others(&change);
        self.0.news().tell(|| change);
    }
}

/// The conversations of [`PARKED`], and the event of each.
async fn parked<C: Connection>(
    rows: &mut C,
    values: &[Value<'_>],
) -> Result<(Vec<ConversationKey>, Vec<EventRow>), Failure> {
    let mut found = rows.fetch(PARKED, values).await?;
    let key = |columns: &mut Columns| {
        row::conversation_key(columns.text()?, columns.text()?, &columns.text()?)
    };
    let keys = found.iter_mut().map(key).collect::<Result<_, _>>()?;
    Ok((keys, event_rows(rows, found).await?))
}

/// The events of a conversation and its inputs that were not taken, as they are stored.
async fn stored<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
) -> Result<(Vec<EventRow>, Vec<InputRow>), Failure> {
    let found = rows
        .fetch_first(
            "SELECT key, branched_from_seq FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3",
            key_values![key],
        )
        .await?;
    let Some(mut found) = found else {
        return Ok((Vec::new(), Vec::new()));
    };
    let (conversation, from) = (found.int()?, found.maybe_int()?);
    Ok((
        events(rows, (conversation, from), 0).await?,
        inbox(rows, conversation).await?,
    ))
}

async fn claim<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    worker: &str,
    ttl: Duration,
) -> Result<Claim, Failure> {
    let Some(mut conversation) = conversation(rows, key).await? else {
        return Ok(Claim::Refused);
    };
    let now = rows.now().await?;
    let claim = conversation.claim::<C>((worker, None), ttl, now);
    if claim.is_held() {
        save_conversation(rows, &conversation).await?;
    }
    Ok(claim)
}

async fn renew<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    (worker, epoch): &(String, i64),
    ttl: Duration,
) -> Result<bool, Failure> {
    let until = rows.now().await?.checked_add(ttl).unwrap_or(Timestamp::MAX);
    let renewed = rows
        .execute(
            "UPDATE adjutant_conversation SET lease_until = $5
             WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $6",
            key_values![key, worker, &row::time_text(until), *epoch],
        )
        .await?;
    Ok(renewed > 0)
}
