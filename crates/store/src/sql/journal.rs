//! Inbox, events, and what has work to do.

use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    self, AcceptedInput, Beat, Begin, Begun, Changes, Claim, Finished, Holder, Journal, JournaledChange,
    Known, Loaded, Newer, Relay, Running, StoreError, Take, Taken, Turns, Worker, Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, Event, Input, InputBody, InputId, LogContent, Recorded, StoreId,
    TurnId, UserId,
};
use jiff::Timestamp;

use super::append::{Change, NewEvent, new_event, new_events, take_inputs, write_events};
use super::appending::{Added, Appending, append};
use super::conversation_row::{
    CONVERSATION, conversation, create_conversation, read_conversation, save_conversation,
};
use super::open_turns::{Open, OpenTurns, open_turn};
use super::past::{self, event_rows, events, inbox, read_inbox};
use super::snapshot::{self, RestorableRows, SnapshotRow};
use super::work::{Beating, Taking, beat, free, lease_until, take};
use super::{
    Backend, Columns, Connection, Failure, SqlStore, Value, Work, blob, key_values, log, to_static, values,
    with_change,
};
use crate::row::{self, ConversationRow, EventRow, InputRow};
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

/// The number of inputs that start a turn and were not taken ([`InputBody::starts_turn`], by how their JSON begins).
pub(crate) const QUEUED: &str = r#"SELECT count(*) FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL
     AND (body LIKE '{"kind":"message"%' OR body LIKE '{"kind":"call"%')"#;

/// What each of a user's turns that wait was parked with.
pub(crate) const PARKED: &str =
    "SELECT agent, user_id, conversation.id, event.seq, event.v, event.kind, event.turn, event.step,
            COALESCE(blob.body, event.body), event.at, event.conversation
     FROM adjutant_conversation AS conversation JOIN adjutant_event AS event ON event.conversation = conversation.key AND event.seq = parked_seq
     LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
     WHERE agent = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) AND parked_seq IS NOT NULL";

/// How a database writes what is new in a conversation: by these statements, unless it has something shorter.
pub trait Writes: Backend {
    /// Tells other processes of a change that this one made, after its commit. Where they see by themselves that something was
    /// written, nothing is to be done.
    fn tell_others(&self, _change: &port::Change) {}

    /// Accepts an input. Returns whether a worker may have the conversation. Where it can be done in the same statement, its turn is
    /// started if nobody has the conversation and there is nothing else to do in it.
    fn submit(
        &self,
        data: (ConversationKey, Arrival, Option<Start>),
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        self.write(data, |rows, (key, arrival, _)| Box::pin(submit(rows, key, arrival)))
    }

    /// Returns the state of conversations with open turns, as it was written last.
    fn open_turns(&self) -> &OpenTurns;

    /// Accepts an input, claims the conversation, and starts the turn if there is nothing else to do.
    fn begin(&self, data: Beginning) -> impl Future<Output = Result<BegunRows, Failure>> + Send {
        self.write(data, |rows, data| Box::pin(start(rows, data)))
    }

    /// Adds events at the places they name, if the worker has the conversation that is named, and gives the claim back if it is to
    /// be released and no inputs wait. Returns the conversation, and how many of its inputs nobody has taken.
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
        self.write(data, |rows, (key, worker, ttl)| Box::pin(claim(rows, key, worker, *ttl)))
    }

    /// Returns the worker that has the conversation, if it hears other processes.
    fn holder(&self, _key: ConversationKey) -> impl Future<Output = Result<Option<Holder>, Failure>> + Send {
        std::future::ready(Ok(None))
    }

    /// Extends the claim that a worker made in its epoch; `false` if it has none.
    fn renew(
        &self,
        data: (ConversationKey, (String, i64), Duration),
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        self.write(data, |rows, (key, worker, ttl)| Box::pin(renew(rows, key, worker, *ttl)))
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
            let (events, inbox) = self.0.read(key.clone(), |rows, key| Box::pin(stored(rows, key))).await?;
            // The first that cannot be read fails the whole: a turn is never rebuilt from half a journal.
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
                .read((key.clone(), known), |rows, (key, known)| Box::pin(newer(rows, key, *known)))
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
            let arrival = begin.input.map(|input| Arrival::of(input, self.1.messages_queued_max));
            let turn: Vec<NewEvent> =
                begin.turn.iter().map(|event| new_event(begin.at, event)).collect::<Result<_, _>>()?;
            let data = Beginning {
                key: key.clone(),
                arrival: arrival.transpose()?,
                start: Start::of(key, turn, self.1.log_content)?,
                first: begin.first.map(|event| new_event(begin.at, event)).transpose()?,
                worker: begin.worker.id.to_owned(),
                epoch: begin.worker.epoch,
                lease: begin.lease,
                known: begin.known,
            };
            Ok(match self.0.begin(data).await? {
                BegunRows::Nothing => Begun::Nothing,
                BegunRows::Elsewhere => {
                    // Told again by each who asks again: whoever has the conversation may have missed it.
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
        self.run(async move { self.append_as(key, Some(writer), events, None).await.map(drop) })
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
            let before = Appending { added: Some(added), ..Appending::of(key, Some(writer)) };
            let content = self.1.log_content;
            let append: Work<B::Connection, _, _> = |rows, data| Box::pin(B::append_in(rows, data));
            let call = with_change::Call { before, behind, change, content, append };
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
            // Where no events are added, nothing says that the conversation is the one it was made of.
            let snapshot = snapshot.filter(|_| !events.is_empty()).map(SnapshotRow::of).transpose()?;
            let (conversation, untaken) = self.append_as(key, Some(writer), events, Some(snapshot)).await?;
            let kept = match untaken > 0 {
                true => Some(self.0.read(conversation, |rows, key| Box::pin(inbox(rows, *key))).await?),
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
        self.run(async move { self.0.renew((key.clone(), (worker.id.to_owned(), worker.epoch), ttl)).await })
    }

    fn beat<'a>(&'a self, given: Beat<'a>) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        self.run(async move {
            self.0.write(Beating::from(given), |rows, beating| Box::pin(beat(rows, beating))).await
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

    fn holder<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Option<Holder>, StoreError>> {
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
            let take = || self.0.write(Taking::from(taken), |rows, taking| Box::pin(take(rows, taking)));
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
                .read((agent.clone(), user.cloned(), now), |rows, (agent, user, now)| {
                    Box::pin(async move {
                        let user = user.as_ref().map(UserId::as_str);
                        let now = row::time_text(*now);
                        let found = rows.fetch(EXPIRED, values![agent.as_str(), user, &now]).await?;
                        free(rows, found).await
                    })
                })
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
            let found = self.0.fetch_first(CANCELLATION, key_values![key, &body]).await?;
            let Some(mut found) = found else { return Ok(None) };
            let id = InputId::new(found.text()?).map_err(|error| row::unreadable("an input", error))?;
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
            let (keys, events) = self.0.read(values, |rows, values| Box::pin(parked(rows, values))).await?;
            let read = |(key, event): (ConversationKey, EventRow)| Ok((key.clone(), event.read(&key)?));
            let mut parked =
                keys.into_iter().zip(events).map(read).collect::<Result<Vec<_>, StoreError>>()?;
            parked.sort_by_key(|(key, event)| (event.at, key.conversation));
            Ok(parked)
        })
    }
}

impl<B: Writes> SqlStore<B> {
    /// Adds events, and gives the claim back unless inputs wait if there is an answer to what the snapshot is, if any. Returns the
    /// conversation, and how many of its inputs nobody has taken.
    async fn append_as(
        &self,
        key: &ConversationKey,
        writer: Option<Writer<'_>>,
        events: &[Recorded],
        finish: Option<Option<SnapshotRow>>,
    ) -> Result<(i64, i64), Failure> {
        let (releases, snapshot) = (finish.is_some(), finish.flatten());
        let (added, after) = self.added(key, events).await?.unzip();
        let written =
            self.0.append(Appending { added, releases, snapshot, ..Appending::of(key, writer) }).await?;
        if let Some(after) = after {
            self.0.open_turns().keep(key.clone(), after);
        }
        Ok(written)
    }

    /// Keeps the state of the open turn, if all of its events are among those that were just read: then nothing is read when the
    /// next one is written.
    fn keep_open(&self, key: &ConversationKey, conversation: i64, newer: &Newer) -> Result<(), StoreError> {
        let started = |recorded: &Recorded| matches!(*recorded.event, Event::TurnStarted { .. });
        let at = newer.events.iter().rposition(started).unwrap_or(newer.events.len());
        let turn = newer.events.iter().skip(at);
        let (Some(first), Some(last)) = (turn.clone().next(), newer.events.last()) else { return Ok(()) };
        let place = |event: &Recorded| i64::try_from(event.seq).map_err(|_| StoreError::Conflict);
        let (first, next_seq) = (place(first)?, place(last)? + 1);
        let before = (Status::default(), Vec::new());
        let change = Change::of(key, first, before, turn, self.1.log_content)?;
        let (status, decisions) = (change.status, change.logs.known);
        self.0.open_turns().keep(key.clone(), Open { conversation, next_seq, status, decisions });
        Ok(())
    }

    /// Returns what events add to a conversation, and the state behind them. `None`: there are no events.
    async fn added(
        &self,
        key: &ConversationKey,
        events: &[Recorded],
    ) -> Result<Option<(Added, Open)>, Failure> {
        let events = new_events(events)?;
        let Some((first, _)) = events.first() else { return Ok(None) };
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
    let key =
        |columns: &mut Columns| row::conversation_key(columns.text()?, columns.text()?, &columns.text()?);
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
    let Some(mut found) = found else { return Ok((Vec::new(), Vec::new())) };
    let (conversation, from) = (found.int()?, found.maybe_int()?);
    Ok((events(rows, (conversation, from), 0).await?, inbox(rows, conversation).await?))
}

/// An input to accept.
#[derive(Debug)]
pub struct Arrival {
    pub(crate) input: Input,
    /// The input as it is stored.
    pub(crate) row: InputRow,
    /// Inputs that start a turn which may wait in the conversation.
    pub(crate) queued_max: NonZeroU32,
}

impl Arrival {
    fn of(input: &Input, queued_max: NonZeroU32) -> Result<Self, StoreError> {
        Ok(Self { input: input.clone(), row: InputRow::of(input)?, queued_max })
    }

    /// Returns how many may wait with it. `None`: it starts no turn, and is always accepted.
    pub(crate) fn room(&self) -> Option<i64> {
        self.input.body.starts_turn().then(|| self.queued_max.get().into())
    }

    /// Returns the error that it is if there is no room.
    pub(crate) fn refused(&self) -> Failure {
        StoreError::QueueFull { limit: self.queued_max }.into()
    }
}

/// Accepts an input. Returns whether a worker may have the conversation.
async fn submit<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    arrival: &Arrival,
) -> Result<bool, Failure> {
    let mut conversation = match conversation(rows, key).await? {
        Some(conversation) => conversation,
        None => create_conversation(rows, key, arrival.input.at).await?,
    };
    if accept(rows, &mut conversation, arrival, None).await? {
        conversation.untaken += 1;
        save_conversation(rows, &conversation).await?;
    }
    Ok(conversation.lease_by.is_some())
}

/// Puts an input into the inbox. `taken`: the place of the event that takes it at once. Returns `false` if it was there before.
async fn accept<C: Connection>(
    rows: &mut C,
    conversation: &mut ConversationRow,
    arrival: &Arrival,
    taken: Option<i64>,
) -> Result<bool, Failure> {
    let Arrival { input, row, .. } = arrival;
    let inserted = rows
        .execute(
            "INSERT INTO adjutant_inbox (conversation, id, v, body, at, request_id, fingerprint, after_seq, taken_seq)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (conversation, id) DO NOTHING",
            values![
                conversation.key,
                &row.id,
                row.v,
                &row.body,
                &row.at,
                row.request_id.as_deref(),
                row.fingerprint.as_deref(),
                conversation.next_seq - 1,
                taken
            ],
        )
        .await?;
    if inserted == 0 {
        is_repeat(rows, conversation.key, row).await?;
        return Ok(false);
    }
    if let Some(room) = arrival.room().filter(|_| taken.is_none())
        && !has_room(rows, conversation, room).await?
    {
        return Err(arrival.refused());
    }
    blob::insert(rows, conversation.key, &row.blobs).await?;
    conversation.updated_at = conversation.updated_at.max(input.at);
    if conversation.title.is_empty() {
        conversation.title = adjutant_core::title(&input.body).unwrap_or_default();
    }
    Ok(true)
}

/// Returns whether no more inputs that start a turn wait than may, with the one that was just put there.
async fn has_room<C: Connection>(
    rows: &mut C,
    conversation: &ConversationRow,
    room: i64,
) -> Result<bool, Failure> {
    // Those that wait for the end of an open turn are not counted in the row.
    if conversation.status.turn.is_none() && conversation.untaken < room {
        return Ok(true);
    }
    let found = rows.fetch_first(QUEUED, values![conversation.key]).await?;
    let queued = found.map(|mut columns| columns.int()).transpose()?.unwrap_or_default();
    Ok(queued <= room)
}

/// The first events of a turn, as they are stored; none: no turn is started.
#[derive(Debug)]
pub struct Start {
    pub(crate) turn: Vec<NewEvent>,
    /// The change that follows from them, if the first of them has the place 0.
    pub(crate) change: Change,
}

impl Start {
    fn of(key: &ConversationKey, turn: Vec<NewEvent>, content: LogContent) -> Result<Self, StoreError> {
        // A turn is begun only where none is open; places are counted from its first event.
        let events = turn.iter().map(|(_, recorded)| recorded);
        let change = Change::of(key, 0, (Status::default(), Vec::new()), events, content)?;
        Ok(Self { turn, change })
    }
}

/// A request to go on with a conversation, as it is stored.
#[derive(Debug)]
pub struct Beginning {
    pub(crate) key: ConversationKey,
    pub(crate) arrival: Option<Arrival>,
    pub(crate) start: Start,
    pub(crate) first: Option<NewEvent>,
    pub(crate) worker: String,
    pub(crate) epoch: i64,
    pub(crate) lease: Duration,
    pub(crate) known: Option<Known>,
}

/// The answer to [`Beginning`], as it is stored.
#[derive(Debug)]
pub enum BegunRows {
    Nothing,
    Elsewhere,
    Claimed(Claim, NewerRows),
    Started(NewerRows, Open),
}

/// Accepts an input, claims the conversation, and starts the turn if there is nothing else to do.
async fn start<C: Connection>(rows: &mut C, begin: &Beginning) -> Result<BegunRows, Failure> {
    let mut conversation = match (conversation(rows, &begin.key).await?, &begin.arrival) {
        (Some(conversation), _) => conversation,
        (None, Some(arrival)) => create_conversation(rows, &begin.key, arrival.input.at).await?,
        (None, None) => return Ok(BegunRows::Nothing),
    };
    let now = rows.now().await?;
    let claim = conversation.claim::<C>((&begin.worker, Some(begin.epoch)), begin.lease, now);
    let is_idle = conversation.untaken == 0 && conversation.status.turn.is_none();
    let first = begin.first.as_ref().filter(|_| conversation.next_seq == 1);
    let mut starts = claim.is_held() && is_idle && !begin.start.turn.is_empty();
    let start = conversation.next_seq + i64::from(first.is_some());
    if let Some(arrival) = &begin.arrival {
        let taken = starts.then_some(start);
        if accept(rows, &mut conversation, arrival, taken).await? {
            conversation.untaken += i64::from(!starts);
        } else {
            // What it led to before is what it leads to.
            starts = false;
        }
    }
    let mut open = None;
    if starts {
        let Beginning { key, start: Start { turn, change }, .. } = begin;
        if let Some(first) = first {
            write_events(rows, conversation.key, conversation.next_seq, std::slice::from_ref(first)).await?;
        }
        write_events(rows, conversation.key, start, turn).await?;
        if begin.arrival.is_none() {
            conversation.untaken -= take_inputs(rows, conversation.key, start, turn).await?;
        }
        log::write(rows, conversation.key, &key.user, &change.logs).await?;
        conversation.next_seq = i64::try_from(turn.len()).map_or(i64::MAX, |turn| start + turn);
        conversation.turns += change.turns;
        conversation.status = change.status.clone();
        conversation.status.parked_seq = change.status.parked_seq.map(|parked| start + parked);
        open = Some(Open {
            conversation: conversation.key,
            next_seq: conversation.next_seq,
            status: conversation.status.clone(),
            decisions: change.logs.known.clone(),
        });
    }
    save_conversation(rows, &conversation).await?;
    if !claim.is_held() {
        return Ok(BegunRows::Elsewhere);
    }
    let newer = newer_rows(rows, &conversation, begin.known).await?;
    Ok(match open {
        Some(open) => BegunRows::Started(newer, open),
        None => BegunRows::Claimed(claim, newer),
    })
}

/// The rows behind a known place.
#[derive(Debug)]
pub struct NewerRows {
    /// The row of the conversation.
    pub(crate) conversation: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) restorable: Option<RestorableRows>,
    pub(crate) after: i64,
    pub(crate) events: Vec<EventRow>,
    pub(crate) inbox: Vec<InputRow>,
}

impl NewerRows {
    fn read(self, key: &ConversationKey) -> Result<Newer, StoreError> {
        Ok(Newer {
            created_at: self.created_at,
            restorable: self.restorable.map(|rows| rows.read(key)).transpose()?.flatten(),
            after: u64::try_from(self.after).unwrap_or_default(),
            events: self.events.into_iter().map(|event| event.read(key)).collect::<Result<_, _>>()?,
            inbox: read_inbox(key, self.inbox)?,
        })
    }
}

/// The rows of a conversation behind a known place. `None`: there is no such conversation.
pub(crate) async fn newer<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    known: Option<Known>,
) -> Result<Option<NewerRows>, Failure> {
    let found = rows.fetch_first(CONVERSATION, key_values![key]).await?;
    let Some(found) = found else { return Ok(None) };
    let conversation = read_conversation(found, key)?;
    newer_rows(rows, &conversation, known).await.map(Some)
}

async fn newer_rows<C: Connection>(
    rows: &mut C,
    conversation: &ConversationRow,
    known: Option<Known>,
) -> Result<NewerRows, Failure> {
    let known = known.filter(|known| known.created_at == conversation.created_at);
    let seq = known.and_then(|known| i64::try_from(known.seq).ok());
    let seq = seq.filter(|seq| *seq < conversation.next_seq);
    let place = (conversation.key, conversation.branched_from_seq);
    let restorable = match seq {
        // Before its first turn has ended, it has none.
        None if conversation.turns > 1 => snapshot::restorable(rows, place, conversation.next_seq).await?,
        Some(_) | None => None,
    };
    let after = seq.unwrap_or_else(|| restorable.as_ref().map_or(0, |found| found.snapshot.seq));
    let is_new = after + 1 < conversation.next_seq;
    let events = if is_new { events(rows, place, after).await? } else { Vec::new() };
    // Those that wait for the end of the open turn are not counted.
    let waits = conversation.untaken > 0 || conversation.status.turn.is_some();
    let inbox = if waits { inbox(rows, conversation.key).await? } else { Vec::new() };
    let (conversation, created_at) = (conversation.key, conversation.created_at);
    Ok(NewerRows { conversation, created_at, restorable, after, events, inbox })
}

/// Fails with [`StoreError::Reused`] if the input of this id was made from another request.
async fn is_repeat<C: Connection>(rows: &mut C, conversation: i64, row: &InputRow) -> Result<(), Failure> {
    let Some(fingerprint) = &row.fingerprint else { return Ok(()) };
    let known = rows
        .fetch_first(
            "SELECT fingerprint FROM adjutant_inbox WHERE conversation = $1 AND id = $2",
            values![conversation, &row.id],
        )
        .await?;
    match known.map(|mut columns| columns.maybe_text()).transpose()?.flatten() {
        Some(known) if known != *fingerprint => Err(StoreError::Reused.into()),
        Some(_) | None => Ok(()),
    }
}

async fn claim<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    worker: &str,
    ttl: Duration,
) -> Result<Claim, Failure> {
    let Some(mut conversation) = conversation(rows, key).await? else { return Ok(Claim::Refused) };
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
