//! A turn costs what it adds: what it asks of the journal, and what it is told, do not grow with the conversation.

use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::port::{
    AcceptedInput, Beat, Begin, Begun, Changes, Claim, Finished, Journal, Known, Loaded, Newer, StoreError,
    Take, Taken, Turns, Worker,
};
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::RunContext;
use adjutant_store::sqlite::Store;
use jiff::Timestamp;

use super::*;

/// A journal that counts what is asked of it, and how many events it hands out and takes.
struct Counting {
    journal: Arc<dyn Journal>,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Counted {
    asked: Vec<&'static str>,
    events_read: usize,
    events_written: usize,
}

impl Counting {
    fn note(&self, asked: &'static str, read: usize, written: usize) {
        let mut counted = self.counted.lock().unwrap();
        counted.asked.push(asked);
        counted.events_read += read;
        counted.events_written += written;
    }
}

impl Journal for Counting {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("submit", 0, 0);
        self.journal.submit(key, input)
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(async move {
            let loaded = self.journal.load(key).await?;
            self.note("load", loaded.events.len(), 0);
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
            self.note("load_newer", newer.as_ref().map_or(0, |newer| newer.events.len()), 0);
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
            self.note("load_turns", read.as_ref().map_or(0, |read| read.events.len()), 0);
            Ok(read)
        })
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>> {
        self.note("find_input", 0, 0);
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
            self.note("begin", read, begin.turn.len());
            Ok(begun)
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("append", 0, events.len());
        self.journal.append(key, events)
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("append", 0, events.len());
        self.journal.append_held(key, worker, events)
    }

    fn beat<'a>(&'a self, beat: Beat<'a>) -> BoxFuture<'a, Result<Option<Vec<ConversationKey>>, StoreError>> {
        self.note("beat", 0, 0);
        self.journal.beat(beat)
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<Finished, StoreError>> {
        self.note("finish", 0, events.len());
        self.journal.finish(key, worker, events)
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.note("claim", 0, 0);
        self.journal.claim(key, worker, ttl)
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.note("renew", 0, 0);
        self.journal.renew(key, worker, ttl)
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("release", 0, 0);
        self.journal.release(key, worker)
    }

    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        self.note("take", 0, 0);
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

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        self.note("cancellation", 0, 0);
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

/// Runs `turns` turns, each of them plain or with a call, and returns what each cost.
async fn costs(store: Arc<InMemory>, turns: usize, replies: &[Reply]) -> Vec<Counted> {
    let counted = Arc::new(Mutex::new(Counted::default()));
    let journal = Arc::new(Counting { journal: store.clone(), counted: counted.clone() });
    let model = ScriptedModel::new(std::iter::repeat_n(replies, turns).flatten().cloned());
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = builder(model)
        .tools([
            Arc::new(counting("change", Annotations::default(), &ran)) as Arc<dyn Tool>,
            Arc::new(counting("look", Annotations { read_only: true, ..Annotations::default() }, &ran)),
        ])
        .dyn_journal(journal, store.clone(), store, "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    let mut costs = Vec::new();
    for _ in 0..turns {
        agent.run_in(&mut context, "go on").await.unwrap();
        costs.push(std::mem::take(&mut *counted.lock().unwrap()));
    }
    costs
}

#[tokio::test]
async fn a_turn_asks_the_same_of_the_journal_however_long_its_conversation_is() {
    for (replies, asked, written) in [
        (vec![text("Yes.")], vec!["begin", "finish"], 3),
        // The reply is written with the intent, and the result before anything else happens.
        (vec![call("change", json!({})), text("Done.")], vec!["begin", "append", "append", "finish"], 7),
        // What changed nothing is done again after a crash.
        (vec![call("look", json!({})), text("Seen.")], vec!["begin", "append", "finish"], 7),
    ] {
        // Enough for the history to be trimmed many times.
        let costs = costs(Arc::new(InMemory::new()), 200, &replies).await;
        let usual = Counted { asked, events_read: 1, events_written: written };
        for (number, cost) in costs.iter().enumerate() {
            assert_eq!(cost, &usual, "turn {number}");
        }
    }
}

#[tokio::test]
async fn a_process_that_knows_nothing_of_a_conversation_reads_it_once() {
    let store = Store::in_memory().await.unwrap();
    let replies = [text("Yes.")];
    let model = ScriptedModel::new(std::iter::repeat_n(&replies, 20).flatten().cloned());
    let first = builder(model).journal(Arc::new(store.clone()), "one").build().unwrap();
    let mut context = RunContext::default();
    for _ in 0..20 {
        first.run_in(&mut context, "go on").await.unwrap();
    }
    let counted = Arc::new(Mutex::new(Counted::default()));
    let journal = Arc::new(Counting { journal: Arc::new(store.clone()), counted: counted.clone() });
    let model = ScriptedModel::new([text("Yes."), text("Yes.")]);
    let logs = Arc::new(store);
    let second = builder(model.clone()).dyn_journal(journal, logs.clone(), logs, "two").build().unwrap();
    for read in [61, 1] {
        let answer = second.run_in(&mut context, "and here?").await.unwrap();
        assert_eq!(answer.outcome, OutcomeCategory::ResponseGiven);
        let cost = std::mem::take(&mut *counted.lock().unwrap());
        assert_eq!((cost.asked, cost.events_read), (vec!["begin", "finish"], read));
    }
    // It knows what was said, and does not say it twice.
    let last = model.requests().pop().unwrap();
    let asked: Vec<String> =
        last.messages.iter().map(Message::text).filter(|text| text == "and here?").collect();
    assert_eq!(asked.len(), 2, "{:?}", last.messages);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_model_asks_nothing_of_the_journal() {
    let store = Arc::new(InMemory::new());
    let counted = Arc::new(Mutex::new(Counted::default()));
    let journal = Arc::new(Counting { journal: store.clone(), counted: counted.clone() });
    let limits = TurnLimits { turn_deadline: Some(Duration::from_secs(3600)), ..TurnLimits::default() };
    let agent = builder(ScriptedModel::new([fault(Fault::Stall)]))
        .limits(limits)
        .dyn_journal(journal, store.clone(), store, "test")
        .build()
        .unwrap();
    // Until the turn's time is up, which is an hour of this clock.
    let answer = agent.run("hello").await.unwrap();
    assert_eq!(answer.outcome, OutcomeCategory::DeadlineLimit);
    let mut asked = counted.lock().unwrap().asked.clone();
    asked.retain(|asked| *asked != "beat");
    assert_eq!(asked, ["begin", "finish"]);
}
