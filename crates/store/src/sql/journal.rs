//! The journal: inbox, events, leases, and the search for due work.

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

use super::append::{AddedEvents, AppendRequest, Appended, append};
use super::begin::{BeginRequest, BeginResult, NewInput, TurnStart, newer, start, submit};
use super::conversation_row::{conversation, save_conversation};
use super::history::{self, event_rows, events, inbox, read_inbox};
use super::lease::{TakeRequest, heartbeat, keep_free, lease_until, take};
use super::open_turn_cache::{OpenTurn, OpenTurnCache, open_turn};
use super::projection::{NewEvent, Projection, new_event, new_events};
use super::snapshot::SnapshotRow;
use super::{
    Backend, Connection, Failure, Row, SqlStore, Value, Work, decode_all, key_values, task_change,
    to_static, values,
};
use crate::record::{self, EventRow, InputRow};
use crate::status::Status;

/// Selects conversations with work to do, whether leased or not.
pub(crate) const UNSETTLED: &str = concat!(
    "SELECT agent, user_id, id, lease_by, epoch, ",
    lease_until!(),
    " AS lease_until FROM adjutant_conversation
     WHERE agent = $1 AND unsettled = 1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) ORDER BY updated_at, key"
);

/// Selects conversations with an expired pending call, whether leased or not.
pub(crate) const EXPIRED: &str = concat!(
    "SELECT agent, user_id, id, lease_by, epoch, ",
    lease_until!(),
    " AS lease_until FROM adjutant_conversation
     WHERE agent = $1 AND wake_at <= $3 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) ORDER BY wake_at, key"
);

/// Selects the first cancellation that was not taken.
pub(crate) const CANCELLATION: &str =
    "SELECT inbox.id FROM adjutant_inbox AS inbox JOIN adjutant_conversation AS conversation ON conversation.key = inbox.conversation
     WHERE agent = $1 AND user_id = $2 AND conversation.id = $3 AND taken_seq IS NULL AND body = $4
     ORDER BY accepted LIMIT 1";

/// Selects the event that parked each of the turns that wait.
pub(crate) const PARKED: &str =
    "SELECT agent, user_id, conversation.id, event.seq, event.v, event.kind, event.turn, event.step,
            COALESCE(blob.body, event.body) AS body, event.at, event.conversation
     FROM adjutant_conversation AS conversation JOIN adjutant_event AS event ON event.conversation = conversation.key AND event.seq = parked_seq
     LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
     WHERE agent = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) AND parked_seq IS NOT NULL";

/// The journal's writes. The defaults run statements; a database with functions of its own needs
/// fewer round trips.
pub trait Writes: Backend {
    /// Notifies other processes of a change after its commit. Does nothing where they notice writes
    /// themselves.
    fn notify_peers(&self, _change: &port::Change) {}

    /// Accepts an input. Returns true if a worker may hold the lease. A database that can do it in
    /// the same statement also starts the turn, if the conversation is not leased and has no other
    /// work to do.
    fn submit(
        &self,
        key: &ConversationKey,
        arrival: NewInput,
        _turn: Option<TurnStart>,
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        self.write((key.clone(), arrival), |tx, (key, arrival)| {
            Box::pin(submit(tx, key, arrival))
        })
    }

    /// Returns the cached states of conversations with open turns.
    fn open_turn_cache(&self) -> &OpenTurnCache;

    /// Records a commit of this process by its last event, where a database can lose commits.
    fn committed(&self, _conversation: i64, _seq: i64, _at: Timestamp) {}

    /// Returns the number of times that this process found another start of the server than before.
    fn restarts(&self) -> u64 {
        0
    }

    /// Returns the time since this process found that the database has lost commits of its own.
    fn since_lost_commits(&self) -> Option<Duration> {
        None
    }

    /// Accepts an input, takes the lease, and starts the turn if there is no other work to do.
    fn begin(
        &self,
        data: BeginRequest,
    ) -> impl Future<Output = Result<BeginResult, Failure>> + Send {
        self.write(data, |tx, data| Box::pin(start(tx, data)))
    }

    /// Appends events at their sequence numbers if the worker holds the lease. Releases the lease
    /// if requested and no inputs wait.
    fn append(
        &self,
        data: AppendRequest,
    ) -> impl Future<Output = Result<Appended, Failure>> + Send {
        self.write(data, |tx, data| Box::pin(append(tx, data)))
    }

    /// Appends events inside a transaction that continues.
    fn append_in(
        tx: &mut Self::Connection,
        data: &AppendRequest,
    ) -> impl Future<Output = Result<Appended, Failure>> + Send {
        append(tx, data)
    }

    /// Takes the lease of a conversation, unless another live worker holds it.
    fn claim(
        &self,
        key: &ConversationKey,
        worker: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<Claim, Failure>> + Send {
        let data = (key.clone(), worker.to_owned(), ttl);
        self.write(data, |tx, (key, worker, ttl)| {
            Box::pin(claim(tx, key, worker, *ttl))
        })
    }

    /// Returns the worker that holds the lease, if it receives notifications.
    fn holder(
        &self,
        _key: &ConversationKey,
    ) -> impl Future<Output = Result<Option<Holder>, Failure>> + Send {
        std::future::ready(Ok(None))
    }

    /// Extends the lease that a worker took in its epoch. Returns false if it has lost it.
    fn renew(
        &self,
        key: &ConversationKey,
        worker: Worker<'_>,
        ttl: Duration,
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        let data = (key.clone(), worker.id.to_owned(), worker.epoch, ttl);
        self.write(data, |tx, (key, id, epoch, ttl)| {
            let worker = Worker { id, epoch: *epoch };
            Box::pin(renew(tx, key, worker, *ttl))
        })
    }
}

impl<B: Writes> Journal for SqlStore<B> {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.explained(async move {
            let arrival = NewInput::new(input, self.options.messages_queued_max)?;
            // Only the worker with the lease has to notice further inputs.
            if self.backend.submit(key, arrival, None).await? {
                self.announce(port::Change::Input, key);
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
        self.explained(async move {
            let arrival = NewInput::new(input, self.options.messages_queued_max)?;
            let start = TurnStart::new(
                key,
                vec![new_event(input.at, turn)?],
                self.options.log_content,
            )?;
            if self.backend.submit(key, arrival, Some(start)).await? {
                self.announce(port::Change::Input, key);
            }
            Ok(())
        })
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.explained(async move {
            let (events, inbox) = self
                .backend
                .read(key.clone(), |tx, key| Box::pin(stored(tx, key)))
                .await?;
            // The first event that cannot be read fails the whole: a turn is never rebuilt from
            // half a journal.
            Ok(Loaded {
                events: decode_all(events, |event| event.decode(key))?,
                inbox: read_inbox(key, inbox)?,
            })
        })
    }

    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>> {
        self.explained(async move {
            let newer = self
                .backend
                .read((key.clone(), known), |tx, (key, known)| {
                    Box::pin(newer(tx, key, *known))
                })
                .await?;
            Ok(newer.map(|newer| newer.decode(key)).transpose()?)
        })
    }

    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        self.explained(history::load_turns(&*self.backend, key, before, turns))
    }

    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        self.explained(history::load_turn(&*self.backend, key, turn))
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>> {
        self.explained(history::find_input(&*self.backend, key, id))
    }

    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>> {
        self.explained(async move {
            let arrival = begin
                .input
                .map(|input| NewInput::new(input, self.options.messages_queued_max));
            let turn: Vec<NewEvent> = begin
                .turn
                .iter()
                .map(|event| new_event(begin.at, event))
                .collect::<Result<_, _>>()?;
            let data = BeginRequest {
                key: key.clone(),
                arrival: arrival.transpose()?,
                start: TurnStart::new(key, turn, self.options.log_content)?,
                first: begin
                    .first
                    .map(|event| new_event(begin.at, event))
                    .transpose()?,
                worker: begin.worker.id.to_owned(),
                epoch: begin.worker.epoch,
                lease: begin.lease,
                known: begin.known,
            };
            Ok(match self.backend.begin(data).await? {
                BeginResult::Nothing => Begun::Nothing,
                BeginResult::Elsewhere => {
                    // Announced again at every attempt: the worker with the lease may have missed
                    // it.
                    self.announce(port::Change::Input, key);
                    Begun::Elsewhere
                }
                BeginResult::Claimed(claim, newer) => {
                    let conversation = newer.conversation;
                    let newer = newer.decode(key)?;
                    self.keep_open(key, conversation, &newer)?;
                    Begun::Claimed { claim, newer }
                }
                BeginResult::Started(newer, open) => {
                    self.backend
                        .committed(open.conversation, open.next_seq - 1, begin.at);
                    self.backend.open_turn_cache().keep(key.clone(), open);
                    Begun::Started(newer.decode(key)?)
                }
            })
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.explained(async move { self.append_as(key, None, events, None).await.map(drop) })
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.explained(async move {
            self.append_as(key, Some(writer), events, None)
                .await
                .map(drop)
        })
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(self.id())
    }

    fn restarts(&self) -> u64 {
        self.backend.restarts()
    }

    fn since_lost_commits(&self) -> Option<Duration> {
        self.backend.since_lost_commits()
    }

    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        change: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        self.explained(async move {
            // Without its call's events the change would have no intent in the journal.
            let Some((added, behind)) = self.added(key, events).await? else {
                return Err(StoreError::Conflict.into());
            };
            let before = AppendRequest {
                added: Some(added),
                ..AppendRequest::new(key, Some(writer))
            };
            let content = self.options.log_content;
            let append: Work<B::Connection, _, _> = |tx, data| Box::pin(B::append_in(tx, data));
            let call = task_change::Call {
                before,
                behind,
                change,
                content,
                append,
            };
            let (ended, after) = self.backend.write(call, task_change::append).await?;
            // After the commit: a state that was rolled back must not be taken for the current one.
            self.backend
                .committed(after.conversation, after.next_seq - 1, ended.at);
            self.backend.open_turn_cache().keep(key.clone(), after);
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
        self.explained(async move {
            // Without events nothing proves that the conversation is the one that the snapshot was
            // made of.
            let snapshot = snapshot
                .filter(|_| !events.is_empty())
                .map(SnapshotRow::from_snapshot)
                .transpose()?;
            let Appended {
                conversation,
                untaken,
            } = self
                .append_as(key, Some(writer), events, Some(snapshot))
                .await?;
            if untaken > 0 {
                // The lease was not released then, so no other worker can take these inputs.
                let inbox = self
                    .backend
                    .read(conversation, |tx, key| Box::pin(inbox(tx, *key)))
                    .await?;
                return Ok(Finished::Kept(read_inbox(key, inbox)?));
            }
            self.announce(port::Change::Free, key);
            Ok(Finished::Released)
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.explained(self.backend.claim(key, worker, ttl))
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.explained(self.backend.renew(key, worker, ttl))
    }

    fn beat<'a>(
        &'a self,
        beat: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        let (agent, worker) = (beat.agent.clone(), beat.worker.id.to_owned());
        let data = (agent, worker, beat.worker.epoch, beat.lease, beat.is_first);
        self.write(data, |tx, (agent, id, epoch, lease, is_first)| {
            let beat = Beat {
                agent,
                worker: Worker { id, epoch: *epoch },
                lease: *lease,
                is_first: *is_first,
            };
            Box::pin(heartbeat(tx, beat))
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.explained(async move {
            self.backend
                .execute(
                    "UPDATE adjutant_conversation SET lease_by = NULL, lease_until = NULL
                     WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $5",
                    key_values![key, worker.id, worker.epoch],
                )
                .await?;
            self.announce(port::Change::Free, key);
            Ok(())
        })
    }

    fn holder<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, StoreError>> {
        self.explained(self.backend.holder(key))
    }

    fn end_claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.explained(async move {
            // Under another name, because a worker's heartbeat extends all leases of that name.
            let ended = self.backend
                .execute(
                    "UPDATE adjutant_conversation SET lease_by = lease_by || ' (ended)', lease_until = created_at
                     WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $5",
                    key_values![key, worker.id, worker.epoch],
                )
                .await?;
            if ended > 0 {
                self.announce(port::Change::Free, key);
            }
            Ok(ended > 0)
        })
    }

    fn take<'a>(&'a self, taken: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        self.explained(async move {
            self.backend.note_worker(taken.worker.id);
            let take = || {
                self.backend.write(TakeRequest::from(taken), |tx, request| {
                    Box::pin(take(tx, request))
                })
            };
            let found = take().await?;
            // Conversations without a lease come first; the search for dead workers costs a
            // statement.
            match found.is_empty() && self.backend.end_leases_of_dead_workers().await? {
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
        Box::pin(async move {
            // First, so that the conversations of dead workers are found as free ones.
            let ended = self.backend.end_leases_of_dead_workers().await;
            ended.map_err(|failure| self.backend.explain(failure))?;
            let values = values![agent.as_str(), user.map(UserId::as_str)];
            self.find_free(UNSETTLED, to_static(values)).await
        })
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        let now = record::format_time(now);
        let values = values![agent.as_str(), user.map(UserId::as_str), now];
        self.find_free(EXPIRED, to_static(values))
    }

    fn changes(&self) -> Box<dyn Changes> {
        let changes = self.backend.change_feed().subscribe();
        self.backend.watch();
        changes
    }

    fn relay(&self) -> Arc<dyn Relay> {
        self.backend.relay()
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        self.explained(async move {
            // All cancellations have the same JSON, so the body identifies them.
            let body = record::to_json(&InputBody::Cancel)?;
            let found = self
                .backend
                .fetch_optional(CANCELLATION, key_values![key, &body])
                .await?;
            let id = found.map(Row::scalar::<String>).transpose()?;
            Ok(id.map(|id| record::convert(id, "an input")).transpose()?)
        })
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        self.explained(async move {
            let values = to_static(values![agent.as_str(), user.map(UserId::as_str)]);
            let (keys, events) = self
                .backend
                .read(values, |tx, values| Box::pin(parked(tx, values)))
                .await?;
            let mut parked = Vec::with_capacity(events.len());
            for (key, event) in keys.into_iter().zip(events) {
                let event = event.decode(&key)?;
                parked.push((key, event));
            }
            parked.sort_by_key(|(key, event)| (event.at, key.conversation));
            Ok(parked)
        })
    }
}

impl<B: Writes> SqlStore<B> {
    /// Returns those of the selected conversations whose lease no live worker holds.
    fn find_free(
        &self,
        statement: &'static str,
        values: Vec<Value<'static>>,
    ) -> BoxFuture<'_, Result<Vec<ConversationKey>, StoreError>> {
        self.read((statement, values), |tx, (statement, values)| {
            Box::pin(async move {
                let found = tx.fetch_all(statement, values).await?;
                keep_free(tx, found).await
            })
        })
    }

    /// Appends events. With `finish` the lease is released unless inputs wait, and the snapshot is
    /// written, if there is one.
    async fn append_as(
        &self,
        key: &ConversationKey,
        writer: Option<Writer<'_>>,
        events: &[Recorded],
        finish: Option<Option<SnapshotRow>>,
    ) -> Result<Appended, Failure> {
        let (releases, snapshot) = (finish.is_some(), finish.flatten());
        let (added, after) = self.added(key, events).await?.unzip();
        let written = self
            .backend
            .append(AppendRequest {
                added,
                releases,
                snapshot,
                ..AppendRequest::new(key, writer)
            })
            .await?;
        if let Some((after, last)) = after.zip(events.last()) {
            self.backend
                .committed(after.conversation, after.next_seq - 1, last.at);
            self.backend.open_turn_cache().keep(key.clone(), after);
        }
        Ok(written)
    }

    /// Caches the state of the open turn if all of its events were just read. Then nothing is read
    /// before its next events are written.
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
        // Without the start of the turn its state is unknown: a fold of a part would be another
        // one.
        let turn = newer.events.iter().skip(at);
        let (Some(first), Some(last)) = (turn.clone().next(), newer.events.last()) else {
            return Ok(());
        };
        let place = |event: &Recorded| i64::try_from(event.seq).map_err(|_| StoreError::Conflict);
        let (first, next_seq) = (place(first)?, place(last)? + 1);
        let change = Projection::compute(
            key,
            first,
            // A turn is started only where none is open, so the state before it is the default.
            Status::default(),
            Vec::new(),
            turn,
            self.options.log_content,
        )?;
        let (status, decisions) = (change.status, change.logs.known);
        self.backend.open_turn_cache().keep(
            key.clone(),
            OpenTurn {
                conversation,
                next_seq,
                status,
                decisions,
            },
        );
        Ok(())
    }

    /// Computes what events change in a conversation, and the state after them. `None` if there are
    /// no events.
    async fn added(
        &self,
        key: &ConversationKey,
        events: &[Recorded],
    ) -> Result<Option<(AddedEvents, OpenTurn)>, Failure> {
        let events = new_events(events)?;
        let Some((first, _)) = events.first() else {
            return Ok(None);
        };
        let open = open_turn(
            &*self.backend,
            self.backend.open_turn_cache(),
            key,
            first.seq,
            &events,
        )
        .await?;
        Ok(Some(AddedEvents::compute(
            open,
            key,
            events,
            self.options.log_content,
        )?))
    }

    /// Announces a committed change to subscribers in this process and in others.
    fn announce(&self, change: fn(ConversationKey) -> port::Change, key: &ConversationKey) {
        let change = change(key.clone());
        self.backend.notify_peers(&change);
        self.backend.change_feed().publish(|| change);
    }
}

/// Reads the conversations of [`PARKED`] and the event of each.
async fn parked<C: Connection>(
    tx: &mut C,
    values: &[Value<'_>],
) -> Result<(Vec<ConversationKey>, Vec<EventRow>), Failure> {
    let mut found = tx.fetch_all(PARKED, values).await?;
    let keys = decode_all(found.iter_mut(), record::read_key)?;
    Ok((keys, event_rows(tx, found).await?))
}

/// Reads the events of a conversation and its inputs that were not taken.
async fn stored<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
) -> Result<(Vec<EventRow>, Vec<InputRow>), Failure> {
    let found = tx
        .fetch_optional(
            "SELECT key, branched_from_seq FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3",
            key_values![key],
        )
        .await?;
    let Some(mut found) = found else {
        return Ok((Vec::new(), Vec::new()));
    };
    let (conversation, from) = (found.get("key")?, found.get("branched_from_seq")?);
    Ok((
        events(tx, conversation, from, 0).await?,
        inbox(tx, conversation).await?,
    ))
}

async fn claim<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    worker: &str,
    ttl: Duration,
) -> Result<Claim, Failure> {
    let Some(mut conversation) = conversation(tx, key).await? else {
        return Ok(Claim::Refused);
    };
    let now = tx.now().await?;
    let claim = conversation.claim::<C>(worker, None, ttl, now);
    if claim.is_held() {
        save_conversation(tx, &conversation).await?;
    }
    Ok(claim)
}

async fn renew<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    worker: Worker<'_>,
    ttl: Duration,
) -> Result<bool, Failure> {
    let until = tx.now().await?.checked_add(ttl).unwrap_or(Timestamp::MAX);
    let renewed = tx
        .execute(
            "UPDATE adjutant_conversation SET lease_until = $5
             WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4 AND epoch = $6",
            key_values![key, worker.id, &record::format_time(until), worker.epoch],
        )
        .await?;
    if renewed > 0 {
        C::grant(worker.id, worker.epoch, ttl);
    }
    Ok(renewed > 0)
}
