//! A journal that counts how many events it hands out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    AcceptedInput, Beat, Begin, Begun, Changes, Claim, Finished, Journal, Known, Loaded, Newer,
    Relay, Running, StoreError, Take, Taken, Turns, Worker, Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, Input, InputId, Recorded, TurnId, UserId,
};
use adjutant_store::sqlite::Store;
use jiff::Timestamp;

/// The journal's reads, with the number of events that each returned.
pub(crate) type Counted = Arc<Mutex<Vec<(&'static str, usize)>>>;

pub(crate) struct Counting {
    pub(crate) journal: Arc<Store>,
    pub(crate) counted: Counted,
}

impl Counting {
    fn note(&self, asked: &'static str, read: usize) {
        self.counted.lock().unwrap().push((asked, read));
    }
}

impl Journal for Counting {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("submit", 0);
        self.journal.submit(key, input)
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(async move {
            let loaded = self.journal.load(key).await?;
            self.note("load", loaded.events.len());
            Ok(loaded)
        })
    }

    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>> {
        Box::pin(async move {
            let newer = self.journal.load_newer(key, known).await?;
            self.note(
                "load_newer",
                newer.as_ref().map_or(0, |newer| newer.events.len()),
            );
            Ok(newer)
        })
    }

    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        Box::pin(async move {
            let read = self.journal.load_turns(key, before, turns).await?;
            self.note(
                "load_turns",
                read.as_ref().map_or(0, |read| read.events.len()),
            );
            Ok(read)
        })
    }

    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        Box::pin(async move {
            let read = self.journal.load_turn(key, turn).await?;
            self.note(
                "load_turn",
                read.as_ref().map_or(0, |read| read.events.len()),
            );
            Ok(read)
        })
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>> {
        self.note("find_input", 0);
        self.journal.find_input(key, id)
    }

    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>> {
        Box::pin(async move {
            let begun = self.journal.begin(key, begin).await?;
            let read = match &begun {
                Begun::Started(newer) | Begun::Claimed { newer, .. } => newer.events.len(),
                Begun::Elsewhere | Begun::Nothing => 0,
            };
            self.note("begin", read);
            Ok(begun)
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("append", 0);
        self.journal.append(key, events)
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("append", 0);
        self.journal.append_held(key, writer, events)
    }

    fn beat<'a>(
        &'a self,
        beat: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        self.note("beat", 0);
        self.journal.beat(beat)
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>> {
        self.note("finish", 0);
        self.journal.finish(key, writer, events, snapshot)
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.note("claim", 0);
        self.journal.claim(key, worker, ttl)
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.note("renew", 0);
        self.journal.renew(key, worker, ttl)
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("release", 0);
        self.journal.release(key, worker)
    }

    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        self.journal.take(take)
    }

    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.journal.unsettled(agent, user)
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.journal.expired(agent, user, now)
    }

    fn changes(&self) -> Box<dyn Changes> {
        self.journal.changes()
    }

    fn relay(&self) -> Arc<dyn Relay> {
        self.journal.relay()
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        self.note("cancellation", 0);
        self.journal.cancellation(key)
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        self.journal.parked(agent, user)
    }
}
