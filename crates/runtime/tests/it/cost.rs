//! A turn costs what it adds: what it asks of the journal, and what it is told, do not grow with
//! the conversation.

mod heartbeat;
mod long;

use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    AcceptedInput, Beat, Begin, Begun, Change, Changes, Claim, Finished, Journal, JournaledChange,
    Known, Loaded, Newer, Relay, Running, StoreError, Take, Taken, Turns, Worker, Writer,
};
use adjutant_core::{LogContent, RecalledText, Step, StepKind, StoreId, Summary, trace};
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::{Recall, RecallRequest, RunContext, RunError, read_trace};
use adjutant_store::Maintenance as _;
use adjutant_store::sqlite::Store;
use jiff::Timestamp;

use super::*;

/// A journal that counts what is asked of it, and how many events it hands out and takes.
struct Counting {
    journal: Arc<dyn Journal>,
    counted: Arc<Mutex<Counted>>,
    bytes: Arc<Mutex<Bytes>>,
    /// True if every heartbeat comes too late.
    too_late: bool,
    /// True if no changes are reported.
    is_deaf: bool,
}

/// The bytes of events and snapshots, as JSON.
#[derive(Debug, Default, Clone, Copy)]
struct Bytes {
    read: usize,
    events_written: usize,
    snapshots_written: usize,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Counted {
    asked: Vec<&'static str>,
    events_read: usize,
    events_written: usize,
}

impl Counting {
    fn new(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            counted: Arc::default(),
            bytes: Arc::default(),
            too_late: false,
            is_deaf: false,
        }
    }

    fn note_newer(&self, asked: &'static str, newer: Option<&Newer>, written: usize) {
        let restorable = newer.and_then(|newer| newer.restorable.as_ref());
        let said = restorable.map_or(&[][..], |found| &found.said);
        let events = newer.map_or(&[][..], |newer| &newer.events);
        let snapshot = restorable.map_or(0, |found| found.snapshot.body.len());
        self.bytes.lock().unwrap().read += size(said) + size(events) + snapshot;
        self.note(asked, said.len() + events.len(), written);
    }

    fn note(&self, asked: &'static str, read: usize, written: usize) {
        let mut counted = self.counted.lock().unwrap();
        counted.asked.push(asked);
        counted.events_read += read;
        counted.events_written += written;
    }
}

fn size(events: &[Recorded]) -> usize {
    events
        .iter()
        .map(|recorded| serde_json::to_string(&*recorded.event).unwrap().len())
        .sum()
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
            self.note_newer("load_newer", newer.as_ref(), 0);
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
            self.bytes.lock().unwrap().read += read.as_ref().map_or(0, |read| size(&read.events));
            self.note(
                "load_turns",
                read.as_ref().map_or(0, |read| read.events.len()),
                0,
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
                0,
            );
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
                Begun::Started(newer) | Begun::Claimed { newer, .. } => Some(newer),
                Begun::Elsewhere | Begun::Nothing => None,
            };
            self.note_newer("begin", read, begin.turn.len());
            self.bytes.lock().unwrap().events_written +=
                size(&Recorded::sequence(1, begin.at, begin.turn));
            Ok(begun)
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("append", 0, events.len());
        self.bytes.lock().unwrap().events_written += size(events);
        self.journal.append(key, events)
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.note("append", 0, events.len());
        self.bytes.lock().unwrap().events_written += size(events);
        self.journal.append_held(key, writer, events)
    }

    fn store_id(&self) -> Option<StoreId> {
        self.journal.store_id()
    }

    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        change: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        self.note("append_with_change", 0, events.len() + 1);
        self.journal.append_with_change(key, writer, events, change)
    }

    fn beat<'a>(
        &'a self,
        beat: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        self.note("beat", 0, 0);
        if self.too_late {
            Box::pin(std::future::ready(Ok(None)))
        } else {
            self.journal.beat(beat)
        }
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>> {
        self.note("finish", 0, events.len());
        let mut bytes = self.bytes.lock().unwrap();
        bytes.events_written += size(events);
        bytes.snapshots_written += snapshot.map_or(0, |snapshot| snapshot.body.len());
        drop(bytes);
        self.journal.finish(key, writer, events, snapshot)
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
        worker: Worker<'a>,
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
        if self.is_deaf {
            Box::new(Silence)
        } else {
            self.journal.changes()
        }
    }

    fn relay(&self) -> Arc<dyn Relay> {
        self.journal.relay()
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
    let journal = Arc::new(Counting::new(store.clone()));
    let counted = journal.counted.clone();
    let model = ScriptedModel::new(std::iter::repeat_n(replies, turns).flatten().cloned());
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = builder(model)
        .tools([
            Arc::new(counting("change", Annotations::default(), &ran)) as Arc<dyn Tool>,
            Arc::new(counting(
                "look",
                Annotations {
                    read_only: true,
                    ..Annotations::default()
                },
                &ran,
            )),
            Arc::new(counting(
                "beside",
                Annotations {
                    parallel: true,
                    ..Annotations::default()
                },
                &ran,
            )),
            Arc::new(counting(
                "set",
                Annotations {
                    idempotent: true,
                    ..Annotations::default()
                },
                &ran,
            )),
            Arc::new(counting(
                "book",
                Annotations {
                    keyed: true,
                    ..Annotations::default()
                },
                &ran,
            )),
        ])
        .tools(task_tools(store.clone()))
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
        (
            vec![call("change", json!({})), text("Done.")],
            vec!["begin", "append", "append", "finish"],
            7,
        ),
        // What changed nothing is done again after a crash.
        (
            vec![call("look", json!({})), text("Seen.")],
            vec!["begin", "append", "finish"],
            7,
        ),
        // Intent, change and result are one.
        (
            vec![
                call("add_task", json!({"description": "buy milk"})),
                text("Added."),
            ],
            vec!["begin", "append_with_change", "finish"],
            7,
        ),
    ] {
        // Enough for the history to be trimmed many times.
        let costs = costs(Arc::new(InMemory::new()), 200, &replies).await;
        let usual = Counted {
            asked,
            events_read: 1,
            events_written: written,
        };
        for (number, cost) in costs.iter().enumerate() {
            assert_eq!(cost, &usual, "turn {number}");
        }
    }
}

/// Tells the same with every message.
struct Always;

impl Recall for Always {
    fn for_message<'a>(&'a self, _: RecallRequest<'a>) -> BoxFuture<'a, Vec<RecalledText>> {
        let told = RecalledText {
            id: None,
            text: "- Anna likes green tea".to_owned(),
        };
        Box::pin(std::future::ready(vec![told]))
    }
}

#[tokio::test]
async fn a_turn_with_a_memory_is_recorded_as_often_as_one_without() {
    let store = Arc::new(InMemory::new());
    let journal = Arc::new(Counting::new(store.clone()));
    let counted = journal.counted.clone();
    let agent = builder(ScriptedModel::new(std::iter::repeat_n(text("Yes."), 3)))
        .dyn_journal(journal, store.clone(), store.clone(), "test")
        .recall(Always)
        .build()
        .unwrap();
    let mut context = RunContext::default();
    // Of a conversation that this process does not know it is read once what stands in it.
    for asked in [
        vec!["load_newer", "begin", "finish"],
        vec!["begin", "finish"],
        vec!["begin", "finish"],
    ] {
        agent.run_in(&mut context, "go on").await.unwrap();
        assert_eq!(std::mem::take(&mut *counted.lock().unwrap()).asked, asked);
    }
    let all = store.load(&agent.key(&context)).await.unwrap();
    let told = |recorded: &Recorded| match &*recorded.event {
        Event::TurnStarted { recalled_texts, .. } => Some(recalled_texts.len()),
        _ => None,
    };
    assert_eq!(
        all.events.iter().filter_map(told).collect::<Vec<_>>(),
        [1, 1, 1]
    );
}

#[tokio::test]
async fn an_answer_with_several_calls_is_written_as_often_as_their_repetition_would_matter() {
    for (tools, appends) in [
        // The intents of neighbouring harmless calls are written together, and what only read has
        // no end to be written.
        (["look", "look", "look"], 1),
        // Each end is written at once; a call beside others may have to wait for them.
        (["beside", "beside", "beside"], 4),
        // An intent and an end of each: what must not be repeated is over before anything else is
        // asked of a tool.
        (["change", "change", "change"], 6),
        // The end of a call whose repeat is absorbed is written with the next intent.
        (["set", "set", "set"], 4),
        (["book", "book", "book"], 4),
        (["book", "change", "set"], 5),
        (["change", "book", "look"], 4),
        (["book", "look", "change"], 4),
    ] {
        let reply = tools.iter().fold(Reply::default(), |reply, tool| {
            reply.and_call(*tool, json!({}))
        });
        let costs = costs(Arc::new(InMemory::new()), 1, &[reply, text("Done.")]).await;
        let expected = [vec!["begin"], vec!["append"; appends], vec!["finish"]].concat();
        assert_eq!(costs[0].asked, expected, "{tools:?}");
    }
}

/// Whoever shows the call reckons from its end how long it took.
#[tokio::test]
async fn a_change_in_the_store_of_the_journal_ends_later_than_it_begins() {
    let store = Arc::new(InMemory::new());
    let looks = Arc::new(AtomicUsize::new(0));
    let clock =
        move || Timestamp::from_second(looks.fetch_add(1, Ordering::Relaxed) as i64).unwrap();
    let agent = builder(ScriptedModel::new([
        call("add_task", json!({"description": "buy milk"})),
        text("Added."),
    ]))
    .tools(task_tools(store.clone()))
    .journal(store.clone(), "test")
    .clock(clock)
    .build()
    .unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "Buy milk").await.unwrap();
    let loaded = store.load(&agent.key(&context)).await.unwrap();
    let at = |kind: &str| {
        loaded
            .events
            .iter()
            .find(|recorded| recorded.event.kind() == kind)
            .unwrap()
            .at
    };
    assert!(
        at("call_started") < at("call_finished"),
        "{:?}",
        loaded.events
    );
}

#[tokio::test]
async fn tasks_that_are_kept_elsewhere_are_changed_after_the_intent() {
    let (store, elsewhere) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    let journal = Arc::new(Counting::new(store.clone()));
    let counted = journal.counted.clone();
    let added = call("add_task", json!({"description": "buy milk"}));
    let agent = builder(ScriptedModel::new([added, text("Added.")]))
        .tools(task_tools(elsewhere.clone()))
        .dyn_journal(journal, store.clone(), store.clone(), "test")
        .build()
        .unwrap();
    agent.run("Buy milk").await.unwrap();
    assert_eq!(
        counted.lock().unwrap().asked,
        ["begin", "append", "append", "finish"]
    );
    let tasks = async |store: &InMemory| {
        store
            .list_last(&UserId::local(), TaskFilter::All, None, 9)
            .await
    };
    assert_eq!(tasks(&elsewhere).await.unwrap().len(), 1);
    assert_eq!(tasks(&store).await.unwrap(), []);
}

/// Words of a person, longer than what a snapshot takes.
fn words() -> String {
    "What is said here is long. ".repeat(40)
}

/// An agent with an empty memory that asks the store through a journal that counts.
fn newcomer(store: &Store, replies: usize) -> (Agent, Arc<Counting>) {
    let journal = Arc::new(Counting::new(Arc::new(store.clone())));
    let model = ScriptedModel::new(std::iter::repeat_n(text("Yes."), replies));
    let logs = Arc::new(store.clone());
    let agent = builder(model)
        .dyn_journal(journal.clone(), logs.clone(), logs, "newcomer")
        .build()
        .unwrap();
    (agent, journal)
}

#[tokio::test]
async fn short_turns_are_not_outweighed_by_their_snapshots() {
    let store = Store::in_memory().await.unwrap();
    let (agent, written) = newcomer(&store, 100);
    let mut context = RunContext::default();
    for _ in 0..100 {
        agent.run_in(&mut context, "hi").await.unwrap();
    }
    let Bytes {
        events_written,
        snapshots_written,
        ..
    } = *written.bytes.lock().unwrap();
    assert!(
        (1..events_written).contains(&snapshots_written),
        "{snapshots_written} of {events_written}"
    );
}

#[tokio::test]
async fn a_process_that_knows_nothing_of_a_conversation_reads_what_it_needs_once() {
    let store = Store::in_memory().await.unwrap();
    let replies = [text("Yes.")];
    let model = ScriptedModel::new(std::iter::repeat_n(&replies, 20).flatten().cloned());
    let first = builder(model)
        .journal(Arc::new(store.clone()), "one")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    for _ in 0..20 {
        first.run_in(&mut context, "go on").await.unwrap();
    }
    let journal = Arc::new(Counting::new(Arc::new(store.clone())));
    let counted = journal.counted.clone();
    let model = ScriptedModel::new([text("Yes."), text("Yes.")]);
    let logs = Arc::new(store);
    let second = builder(model.clone())
        .dyn_journal(journal, logs.clone(), logs, "two")
        .build()
        .unwrap();
    // The messages of the last turns and what came behind the last snapshot, at most 8 KiB of
    // events; then the turn that begins.
    for read in [2..=40, 1..=1] {
        let answer = second.run_in(&mut context, "and here?").await.unwrap();
        assert_eq!(answer.outcome, OutcomeCategory::ResponseGiven);
        let cost = std::mem::take(&mut *counted.lock().unwrap());
        assert_eq!(cost.asked, ["begin", "finish"]);
        assert!(read.contains(&cost.events_read), "{}", cost.events_read);
    }
    // It knows what was said, and does not say it twice.
    let last = model.requests().pop().unwrap();
    let asked: Vec<String> = last
        .messages
        .iter()
        .map(Message::text)
        .filter(|text| text == "and here?")
        .collect();
    assert_eq!(asked.len(), 2, "{:?}", last.messages);
}

/// Nothing is ever told.
struct Silence;

impl Changes for Silence {
    fn next(&mut self) -> BoxFuture<'_, Option<Change>> {
        Box::pin(std::future::pending())
    }
}
