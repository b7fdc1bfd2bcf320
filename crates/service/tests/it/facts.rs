//! Facts in a database, by the same rules as those of a vault.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use adjutant_core::port::{
    FactStore, FactsChange, FactsFound, FactsUpdate, MemoryLedger, StoreError,
};
use adjutant_core::turn::estimate_tokens;
use adjutant_core::{
    BoxFuture, CallId, ConversationId, FactLine, IdempotencyKey, MemoryChange, MemoryEffect,
    MemoryScope, MemorySource, MemoryState, Message, StoredFact, TurnId, UserId,
};
use adjutant_memory::{
    Cause, DatabaseMemory, FACT_CHARS_MAX, FactChange, InMemoryLedger, KeyFactStore, Memory,
    MemoryError, MemoryOptions, NewFact, RecallLimits, Vault,
};
use adjutant_store::{Maintenance as _, postgres, sqlite};
use jiff::{ToSpan as _, Zoned};

use crate::server::Server;

type Time = Arc<Mutex<Zoned>>;

fn time() -> Time {
    Arc::new(Mutex::new(
        "2025-12-10T14:05:00[Europe/Berlin]".parse().unwrap(),
    ))
}

fn in_database<S: FactStore + MemoryLedger>(
    store: &Arc<S>,
    time: &Time,
    max_facts: usize,
) -> DatabaseMemory {
    let time = time.clone();
    let clock = Arc::new(move || time.lock().unwrap().clone());
    DatabaseMemory::new(store.clone(), store.clone(), max_facts, clock)
}

fn anna() -> UserId {
    UserId::new("anna").unwrap()
}

/// A call of a conversation, which may be repeated.
fn call(number: u32) -> Cause {
    let source = MemorySource {
        conversation: format!("00000000-0000-7000-8000-{number:012}")
            .parse::<ConversationId>()
            .unwrap(),
        turn: format!("11111111-0000-7000-8000-{number:012}")
            .parse::<TurnId>()
            .unwrap(),
        call: CallId::new("call_1").unwrap(),
    };
    Cause {
        source: Some(source),
        key: Some(IdempotencyKey::new(format!("k{number}")).unwrap()),
    }
}

/// The results, without what only a file has: an order that is not by age.
fn outcome(change: Result<FactChange, MemoryError>) -> String {
    match change {
        Ok(change) => format!("{} [{:?}]", change.message(), change.fact().tags),
        Err(MemoryError::Ambiguous { mut candidates, .. }) => {
            candidates.sort();
            format!("may be any of {candidates:?}")
        }
        Err(error) => format!("refused: {error}"),
    }
}

/// Lines as a model reads them. In a file an important fact has no date.
fn undated(text: &str) -> String {
    let line = |line: &str| match line
        .strip_prefix("- [")
        .and_then(|rest| rest.split_once("] "))
    {
        Some((_, words)) => format!("- {words}"),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Everything that can be done with facts, and what came of it.
async fn story(memory: &Memory, time: &Time) -> Vec<String> {
    let facts = memory.facts();
    let mut told = Vec::new();
    let limits = RecallLimits::default();
    let next_day = || {
        let mut now = time.lock().unwrap();
        *now = now.checked_add(1.day()).unwrap();
    };
    let new = |words: &'static str| NewFact {
        words,
        ..NewFact::default()
    };
    for (number, new) in [
        (1, new("Anna lives in Berlin")),
        (
            2,
            NewFact {
                important: true,
                ..new("Anna drinks tea without sugar")
            },
        ),
        (3, new("Anna's brother lives in Berlin")),
        // The same again, with importance the second time.
        (4, new("Anna lives in Berlin")),
        (
            5,
            NewFact {
                important: true,
                ..new("Anna's brother lives in Berlin")
            },
        ),
        // One that cannot be true beside another, unannounced; and the same announced.
        (6, new("Anna lives in Munich")),
        (7, new("Jon lost his job at the bank")),
        (
            8,
            NewFact {
                said: "No, actually Anna lives in Hamburg now",
                ..new("Anna lives in Hamburg")
            },
        ),
        (
            9,
            NewFact {
                corrects: Some("Jon lost his job at the bank"),
                ..new("Gina lost her job at the bank")
            },
        ),
        // Nearly the same words, as a correction.
        (
            10,
            NewFact {
                said: "Correction!",
                ..new("Gina lost her good job at the bank")
            },
        ),
        (
            11,
            NewFact {
                corrects: Some("ffffff"),
                ..new("Nothing of that")
            },
        ),
        (12, new("  ")),
        (13, new("- [2020-01-01] a #important line")),
    ] {
        next_day();
        let near = facts.contradicted_by(new.words, new.said).await.unwrap();
        told.push(format!("beside {:?}", near.map(|fact| fact.content)));
        told.push(outcome(facts.remember(&new, &call(number)).await));
    }
    let long = "x".repeat(FACT_CHARS_MAX + 1);
    told.push(outcome(facts.add(&long, false, &Cause::person()).await));
    told.push(outcome(
        facts.add(&long[1..], false, &Cause::person()).await,
    ));
    next_day();
    told.push(outcome(
        facts
            .edit(
                "Hamburg",
                Some("Anna lives in Hamburg-Altona"),
                None,
                &call(20),
            )
            .await,
    ));
    told.push(outcome(
        facts.edit("tea", None, Some(false), &Cause::person()).await,
    ));
    told.push(outcome(
        facts
            .edit("tea", Some("Anna lives in Hamburg-Altona"), None, &call(21))
            .await,
    ));
    told.push(outcome(facts.forget("brother", &call(22)).await));
    told.push(outcome(facts.forget("Anna", &call(23)).await));
    told.push(outcome(facts.forget("nobody", &call(24)).await));
    // What was said before holds words that do not hold any more.
    let said = [
        "I live in Berlin: Anna lives in Berlin",
        "Anna's brother lives in Berlin",
    ];
    let said: Vec<Message> = said
        .iter()
        .map(|text| Message::user(*text).unwrap())
        .collect();
    for (message, history) in [
        ("Where does Anna live?", &said[..0]),
        ("tea or coffee", &said[..]),
    ] {
        let turn = memory
            .for_turn(message, history, limits, &estimate_tokens)
            .await
            .unwrap();
        told.extend(turn.recalled.iter().map(|told| undated(&told.text)));
        told.push(undated(
            turn.important
                .text
                .split_once("may be stale")
                .unwrap_or_default()
                .1,
        ));
        let alone = memory
            .recall_for_message(message, history, limits, &estimate_tokens)
            .await
            .unwrap();
        assert_eq!(alone, turn.recalled);
    }
    let mut known = Vec::new();
    for fact in facts.list().await.unwrap() {
        let why = facts.provenance(fact.id.as_str()).await.unwrap();
        let text = |line: &Option<FactLine>| line.as_ref().map(|line| line.text.clone());
        let history = why.history.iter().map(|change| match &change.effect {
            MemoryEffect::Fact { before, after } => {
                format!(
                    "{:?} -> {:?} in {:?}",
                    text(before),
                    text(after),
                    change.source
                )
            }
            MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => "no fact".to_owned(),
        });
        let history: Vec<String> = history.collect();
        let fact = &why.fact;
        known.push(format!(
            "{} {:?} {:?} because {history:?}",
            fact.content, fact.created, fact.source
        ));
    }
    known.sort();
    told.extend(known);
    loop {
        let undone = memory.undo().await;
        let contents = facts.list().await.unwrap().into_iter();
        let mut contents: Vec<String> = contents
            .map(|fact| format!("{} {}", fact.content, fact.is_important()))
            .collect();
        contents.sort();
        match undone {
            Ok(undone) => told.push(format!("{} leaves {contents:?}", undone.message)),
            Err(error) => {
                told.push(format!("{error} with {contents:?}"));
                return told;
            }
        }
    }
}

async fn by_the_same_rules<S: FactStore + MemoryLedger>(store: S) {
    let folder = tempfile::tempdir().unwrap();
    let (in_file, of_database) = (time(), time());
    let now = in_file.clone();
    let clock = Arc::new(move || now.lock().unwrap().clone());
    let options = MemoryOptions {
        max_facts: 9,
        ..MemoryOptions::default()
    };
    let vault = Vault::open(folder.path()).unwrap();
    let vault = Memory::new(
        vault,
        anna(),
        options,
        Arc::new(InMemoryLedger::new()),
        clock,
    )
    .unwrap();
    let store = Arc::new(store);
    let database = in_database(&store, &of_database, 9).for_user(&anna());
    let expected = story(&vault, &in_file).await;
    let found = story(&database, &of_database).await;
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    let all = found.join("\n");
    for words in [
        "Withdrawn",
        "Already known",
        "(was: ",
        "forgotten",
        "may be any of",
        "refused",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
}

#[tokio::test]
async fn a_file_of_a_vault_and_a_database_have_the_same_rules() {
    by_the_same_rules(sqlite::Store::in_memory().await.unwrap()).await;
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("facts").await;
    by_the_same_rules(postgres::Store::connect(&url, 2).await.unwrap()).await;
}

/// A call that is repeated answers as it did, and has one effect, whatever was done since.
async fn a_repeated_call_has_one_effect<S: FactStore + MemoryLedger>(store: S) {
    let (store, time) = (Arc::new(store), time());
    let memory = in_database(&store, &time, 5).for_user(&anna());
    let facts = memory.facts();
    let first = facts.add("Anna has a cat", false, &call(1)).await.unwrap();
    let again = facts.add("Anna has a cat", false, &call(1)).await.unwrap();
    assert_eq!(
        (first.message(), first.fact().id.clone()),
        (again.message(), again.fact().id.clone())
    );
    assert!(matches!(again, FactChange::Added { .. }), "{again:?}");
    facts.forget("cat", &Cause::person()).await.unwrap();
    assert!(matches!(
        facts.add("Anna has a cat", false, &call(1)).await.unwrap(),
        FactChange::Added { .. }
    ));
    assert_eq!(facts.list().await.unwrap(), []);
    // Of those that are made at once, each has its effect, and those of one call have one together.
    let mut made = tokio::task::JoinSet::new();
    for number in [2, 3, 4, 4, 4] {
        let facts = facts.clone();
        made.spawn(async move {
            facts
                .add(&format!("fact {number}"), false, &call(number))
                .await
                .unwrap()
        });
    }
    let made = made.join_all().await;
    assert!(
        made.iter()
            .all(|change| matches!(change, FactChange::Added { .. })),
        "{made:?}"
    );
    assert_eq!(facts.list().await.unwrap().len(), 3);
    // At the limit nothing is evicted, and corrections work.
    facts.add("fact 5", false, &call(5)).await.unwrap();
    facts.add("fact 6", false, &call(6)).await.unwrap();
    let full = facts.add("fact 7", false, &call(7)).await.unwrap_err();
    assert!(matches!(full, MemoryError::Limit { count: 5, max: 5 }));
    facts
        .edit("fact 6", Some("fact 7"), None, &Cause::person())
        .await
        .unwrap();
    // Nobody else has any of them.
    let bert = in_database(&store, &time, 5).for_user(&UserId::new("bert").unwrap());
    assert_eq!(bert.facts().list().await.unwrap(), []);
    assert!(matches!(bert.undo().await, Err(MemoryError::NothingToUndo)));
    assert!(bert.facts().provenance("fact 7").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_one_effect_in_a_database() {
    a_repeated_call_has_one_effect(sqlite::Store::in_memory().await.unwrap()).await;
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("facts").await;
    a_repeated_call_has_one_effect(postgres::Store::connect(&url, 4).await.unwrap()).await;
}

/// A store that counts the facts that are read.
struct Counting {
    store: sqlite::Store,
    statements: AtomicUsize,
    facts: AtomicUsize,
}

impl Counting {
    fn new(store: &sqlite::Store) -> Self {
        Self {
            store: store.clone(),
            statements: AtomicUsize::new(0),
            facts: AtomicUsize::new(0),
        }
    }

    fn count(&self, facts: usize) {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.facts.fetch_add(facts, Ordering::SeqCst);
    }

    /// Returns the statements that read facts, and the facts that they read, since the last call.
    fn take(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.statements), take(&self.facts))
    }
}

impl FactStore for Counting {
    fn facts<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<FactsFound, StoreError>> {
        Box::pin(async move {
            let found = self.store.facts(user).await?;
            self.count(found.facts.len());
            Ok(found)
        })
    }

    fn facts_since<'a>(
        &'a self,
        user: &'a UserId,
        revision: Option<i64>,
    ) -> BoxFuture<'a, Result<FactsUpdate, StoreError>> {
        Box::pin(async move {
            let update = self.store.facts_since(user, revision).await?;
            self.count(update.facts.len());
            Ok(update)
        })
    }

    fn change_facts<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: FactsChange<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.change_facts(scope, change)
    }
}

/// The memory of one process over a store that others change too.
fn process(store: &sqlite::Store) -> (Arc<Counting>, DatabaseMemory) {
    let counting = Arc::new(Counting::new(store));
    let clock = Arc::new(|| "2025-12-10T14:05:00[Europe/Berlin]".parse().unwrap());
    let memory = DatabaseMemory::new(counting.clone(), Arc::new(store.clone()), 5_000, clock);
    (counting, memory)
}

/// Stores facts without comparing them with others.
async fn store_facts(store: &sqlite::Store, number: usize) {
    let mut revision = store.facts_since(&anna(), None).await.unwrap().revision;
    for at in 0..number {
        let created_at = "2025-12-01T00:00:00Z".parse().unwrap();
        let fact = StoredFact {
            text: format!(
                "The box {at} with the letters of year {} is in cellar {}",
                at % 90,
                at % 7
            ),
            important: false,
            created_at,
            updated_at: created_at,
            source: None,
        };
        let record = MemoryChange {
            id: uuid::Uuid::now_v7(),
            at: created_at,
            source: None,
            key: None,
            effect: MemoryEffect::Fact {
                before: None,
                after: None,
            },
            state: MemoryState::Done,
            patch: None,
        };
        let change = FactsChange {
            revision,
            removed: None,
            put: Some(&fact),
            record: &record,
        };
        let scope = MemoryScope::database(anna());
        assert!(store.change_facts(&scope, change).await.unwrap());
        revision = match revision {
            0 => store.facts_since(&anna(), None).await.unwrap().revision,
            revision => revision + 1,
        };
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_user_at_the_same_time_are_each_planned_once() {
    const CHANGES: usize = 20;
    let store = sqlite::Store::in_memory().await.unwrap();
    let (counting, memory) = process(&store);
    let mut made = tokio::task::JoinSet::new();
    for number in 0..CHANGES {
        // Each request has a handle of its own.
        let facts = memory.for_user(&anna()).facts();
        made.spawn(async move {
            let text = format!("The box {number} is in the cellar");
            facts.add(&text, false, &Cause::person()).await.unwrap()
        });
    }
    let made = made.join_all().await;
    assert_eq!(made.len(), CHANGES);
    // Each reads the fact that the one before it has added.
    assert_eq!(counting.take(), (CHANGES, CHANGES - 1));
    let facts = memory.for_user(&anna()).facts().list().await.unwrap();
    assert_eq!(facts.len(), CHANGES);
}

#[tokio::test]
async fn a_change_reads_only_what_was_written_since_the_one_before() {
    for number in [10, 1_000] {
        let store = sqlite::Store::in_memory().await.unwrap();
        store_facts(&store, number).await;
        let (counting, memory) = process(&store);
        let facts = memory.for_user(&anna()).facts();
        let cause = Cause::person();
        let added = facts
            .add("Anna has a bicycle", false, &cause)
            .await
            .unwrap();
        assert_eq!(counting.take(), (1, number));
        facts.add("Paul has a boat", false, &cause).await.unwrap();
        assert_eq!(counting.take(), (1, 1));
        let id = added.fact().id.as_str();
        assert!(facts.has_id(id).await.unwrap());
        facts
            .edit(id, Some("Anna has a red bicycle"), None, &cause)
            .await
            .unwrap();
        assert_eq!(counting.take(), (2, 1));
        facts
            .forget("Anna has a red bicycle", &cause)
            .await
            .unwrap();
        assert_eq!(counting.take(), (1, 1));
        memory.for_user(&anna()).undo().await.unwrap();
        assert_eq!(counting.take(), (1, 0));
        facts.add("Paul has a boat", true, &cause).await.unwrap();
        assert_eq!(counting.take(), (1, 1));
        assert_eq!(facts.list().await.unwrap().len(), number + 2);
    }
}

#[tokio::test]
async fn changes_of_another_process_are_seen_by_the_next_change() {
    let store = sqlite::Store::in_memory().await.unwrap();
    store_facts(&store, 100).await;
    let ((counting, here), (_, elsewhere)) = (process(&store), process(&store));
    let (here, elsewhere) = (
        here.for_user(&anna()).facts(),
        elsewhere.for_user(&anna()).facts(),
    );
    let cause = Cause::person();
    let add =
        async |facts: &KeyFactStore, text: &str| facts.add(text, false, &cause).await.unwrap();
    add(&here, "Anna lives in Graz").await;
    counting.take();
    // A fact is replaced and another added: only these are read.
    add(&elsewhere, "Anna now lives in Linz").await;
    add(&elsewhere, "Paul lives in Rome").await;
    let change = add(&here, "Anna now lives in Munich").await;
    assert!(
        matches!(&change, FactChange::Updated { before, .. } if before == "Anna now lives in Linz"),
        "{change:?}"
    );
    assert_eq!(counting.take(), (1, 2));
    // Of a fact that is gone nothing can be read: another one that was added does not hide that.
    let oldest = "The box 0 with the letters of year 0 is in cellar 0";
    let gone = elsewhere.forget(oldest, &cause).await.unwrap();
    add(&elsewhere, "Cleo likes tea").await;
    assert!(!here.has_id(gone.fact().id.as_str()).await.unwrap());
    assert_eq!(counting.take().0, 2);
    // Nor does one that has its row.
    let gone = elsewhere.forget("Cleo likes tea", &cause).await.unwrap();
    let added = add(&elsewhere, "Paul has a boat").await;
    assert!(!here.has_id(gone.fact().id.as_str()).await.unwrap());
    assert!(here.has_id(added.fact().id.as_str()).await.unwrap());
    // The user's data is removed, and begins anew.
    store.remove_user(&anna()).await.unwrap();
    add(&elsewhere, "Anna has a cat").await;
    let change = add(&here, "Anna now lives in Oslo").await;
    assert!(matches!(change, FactChange::Added { .. }), "{change:?}");
    assert_eq!(here.list().await.unwrap().len(), 2);
}

/// With more facts than a text is compared with, the right one is still found.
async fn one_of_hundreds_is_found(memory: &Memory) -> Vec<String> {
    let facts = memory.facts();
    let add = async |text: &str| facts.add(text, false, &Cause::person()).await.unwrap();
    add("Anna lives in Graz").await;
    add("Anna's brother Paul likes green tea").await;
    for number in 0..150 {
        let (name, town) = (number % 30, number % 7);
        add(&format!(
            "Friend {name} of Anna lives in town {town}, house {number}"
        ))
        .await;
    }
    let contradicted = facts.contradicted_by("Anna lives in Linz", "").await;
    assert_eq!(contradicted.unwrap().unwrap().content, "Anna lives in Graz");
    let change = add("Anna now lives in Munich").await;
    assert!(
        matches!(&change, FactChange::Updated { before, .. } if before == "Anna lives in Graz"),
        "{change:?}"
    );
    let change = facts
        .forget("Paul likes green teas, brother of Anna", &Cause::person())
        .await
        .unwrap();
    assert_eq!(change.fact().content, "Anna's brother Paul likes green tea");
    // Of many that are alike both backends take the same.
    let mut told = Vec::new();
    for text in [
        "Friend 7 of Anna now lives in town 3",
        "Actually friend 12 of Anna lives in house 999",
        "friend 4 of Anna",
        "town 2, house 100",
    ] {
        told.push(outcome(
            facts.add(text, false, &call(told.len() as u32)).await,
        ));
        told.push(outcome(facts.forget(text, &Cause::person()).await));
    }
    let listed = facts.list().await.unwrap();
    assert!(listed.len() < 155 && listed.len() > 140, "{}", listed.len());
    let mut contents: Vec<String> = listed.into_iter().map(|fact| fact.content).collect();
    contents.sort();
    told.extend(contents);
    told
}

#[tokio::test]
async fn one_of_hundreds_of_facts_is_corrected_contradicted_and_forgotten() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let database = in_database(&store, &time(), 5_000).for_user(&anna());
    let (folder, now) = (tempfile::tempdir().unwrap(), time());
    let vault = Memory::new(
        Vault::open(folder.path()).unwrap(),
        anna(),
        MemoryOptions::default(),
        Arc::new(InMemoryLedger::new()),
        Arc::new(move || now.lock().unwrap().clone()),
    )
    .unwrap();
    let found = one_of_hundreds_is_found(&database).await;
    assert_eq!(one_of_hundreds_is_found(&vault).await, found);
}
