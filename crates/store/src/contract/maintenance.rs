use adjutant_core::port::{Booking, BudgetStore, Journal, LogStore, MemoryLedger};
use adjutant_core::{ConversationKey, Event, MemoryChange, MemoryState, Spending};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore};
use jiff::civil::{Date, date};
use uuid::Uuid;

use super::fixture::{
    agent, append, at, call_finished, call_started, checked, conversation, finished, in_doubt, key,
    message, parked, replied, started, submit, turn, user,
};
use super::memory_ledger::{fact, scope};
use crate::maintenance::{Maintenance, Removed};

/// Creates a conversation in which `events` happened after its first input, `seconds` after the
/// start.
async fn converse(
    store: &impl Journal,
    number: u32,
    seconds: i64,
    events: &[Event],
) -> ConversationKey {
    let key = conversation("anna", number);
    submit(store, &key, &message("i1", seconds, "drop the milk")).await;
    if !events.is_empty() {
        append(store, &key, 1, at(seconds), events).await;
    }
    key
}

fn whole(number: u32) -> Vec<Event> {
    vec![
        started(number, "i1"),
        replied(number, 1),
        checked(number, "call_1"),
        call_started(number, "call_1"),
        call_finished(number, "call_1"),
        finished(number, "SUCCESS:TASK_COMPLETED"),
    ]
}

fn add(words: &str) -> TaskChange {
    TaskChange::Add {
        description: TaskDescription::new(words).unwrap(),
        from_others: false,
    }
}

fn spending(day: Date) -> Booking {
    let used = Spending {
        tokens: 1,
        ..Spending::default()
    };
    Booking {
        id: Uuid::now_v7(),
        day,
        user: user("anna"),
        used,
        everyone: None,
        own: None,
    }
}

/// Old conversations without work are removed with everything in them. A conversation that waits,
/// runs, has an input that was not taken, or has a call in doubt is kept, and so is every task.
pub async fn what_is_old_goes_and_what_is_pending_never<T>(store: &T)
where
    T: Journal + LogStore + TaskStore + BudgetStore + Maintenance,
{
    let anna = user("anna");
    let old = converse(store, 1, 0, &whole(1)).await;
    let waits = [
        started(2, "i1"),
        replied(2, 1),
        checked(2, "call_1"),
        parked(2, &["call_1"]),
    ];
    let doubt = [
        started(5, "i1"),
        in_doubt(5, "call_1"),
        finished(5, "INTERRUPTED:IN_DOUBT"),
    ];
    let mut stay = vec![
        converse(store, 2, 0, &waits).await,
        converse(store, 3, 0, &[]).await,
        converse(store, 4, 0, &[started(4, "i1")]).await,
        converse(store, 5, 0, &doubt).await,
        converse(store, 6, 2000, &whole(6)).await,
    ];
    // Its input is old, its answer is not.
    let answered = converse(store, 7, 0, &[started(7, "i1")]).await;
    append(
        store,
        &answered,
        2,
        at(2000),
        &[finished(7, "SUCCESS:RESPONSE_GIVEN")],
    )
    .await;
    stay.push(answered);

    let change = add("buy milk");
    store
        .apply(&anna, &change, Some(&key("once")))
        .await
        .unwrap();
    for day in [date(2025, 12, 31), date(2026, 1, 1)] {
        store.book(&[spending(day)]).await.unwrap();
    }

    let removed = store.remove_older_than(at(1000)).await.unwrap();
    let expected = Removed {
        conversations: 1,
        events: 6,
        budget_days: 1,
        ..Removed::default()
    };
    assert_eq!(removed, expected);
    assert_eq!(
        store.load(&old).await.unwrap(),
        adjutant_core::port::Loaded::default()
    );
    assert_eq!(store.decision(&anna, turn(1)).await.unwrap(), None);
    for key in &stay {
        let loaded = store.load(key).await.unwrap();
        assert!(
            !loaded.events.is_empty() || !loaded.inbox.is_empty(),
            "{key:?}"
        );
    }
    assert_eq!(store.parked(&agent(), Some(&anna)).await.unwrap().len(), 1);
    store
        .apply(&anna, &change, Some(&key("once")))
        .await
        .unwrap();
    assert_eq!(
        store.list(&anna, TaskFilter::All).await.unwrap().len(),
        1,
        "the key is still known"
    );
    assert_eq!(store.spent(None, date(2026, 1, 1)).await.unwrap().tokens, 1);
    assert!(store.remove_older_than(at(1000)).await.unwrap().is_empty());
    assert_eq!(store.check().await.unwrap(), []);
}

/// The change that made a present fact is kept however old it is; the history of facts that are
/// gone is removed.
pub async fn why_a_fact_is_there_stays<T: MemoryLedger + Maintenance>(store: &T) {
    let anna = scope("anna", "/v");
    // Learned and corrected; learned, forgotten and learned again; added and taken back; a
    // correction that was taken back.
    let undone = |change| MemoryChange {
        state: MemoryState::Undone,
        ..change
    };
    let changes = [
        fact(1, None, Some("a")),
        fact(2, Some("a"), Some("b")),
        fact(3, None, Some("c")),
        fact(4, Some("c"), None),
        fact(5, None, Some("c")),
        undone(fact(6, None, Some("d"))),
        fact(7, None, Some("e")),
        undone(fact(8, Some("e"), Some("f"))),
        fact(2000, Some("b"), None),
    ];
    for change in &changes {
        store.put(&anna, change).await.unwrap();
    }
    // Another vault's changes say nothing about this one's.
    let other = scope("bert", "/v");
    store.put(&other, &fact(1, None, Some("a"))).await.unwrap();

    assert_eq!(
        store
            .remove_older_than(at(1000))
            .await
            .unwrap()
            .memory_changes,
        6
    );
    let kept: Vec<_> = store
        .newest(&anna, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|change| change.id)
        .collect();
    assert_eq!(kept, [8, 6, 4].map(|at: usize| changes[at].id));
    assert_eq!(store.newest(&other, 10).await.unwrap().len(), 1);
    assert!(store.remove_older_than(at(1000)).await.unwrap().is_empty());
}

/// Users are listed by id, each once, whatever rows they have.
pub async fn users_are_those_who_have_something<
    T: Journal + TaskStore + MemoryLedger + Maintenance,
>(
    store: &T,
) {
    assert_eq!(store.users().await.unwrap(), []);
    converse(store, 1, 0, &[]).await;
    for name in ["local", "bert ", "bert", "anna"] {
        store
            .apply(&user(name), &add("buy milk"), None)
            .await
            .unwrap();
    }
    store
        .put(&scope("Зоя", "/v"), &fact(1, None, Some("a")))
        .await
        .unwrap();
    let names: Vec<String> = store
        .users()
        .await
        .unwrap()
        .into_iter()
        .map(String::from)
        .collect();
    assert_eq!(names, ["anna", "bert", "bert ", "local", "Зоя"]);
}

/// More conversations than one transaction removes are all removed.
pub async fn many_old_conversations_go(store: &(impl Journal + Maintenance)) {
    for number in 1..=203 {
        converse(store, number, 0, &[]).await;
        let ignored = super::fixture::ignored("i1");
        append(store, &conversation("anna", number), 1, at(1), &[ignored]).await;
    }
    let removed = store.remove_older_than(at(1000)).await.unwrap();
    assert_eq!((removed.conversations, removed.events), (203, 203));
}

/// The status counts the rows that were written.
pub async fn the_status_counts_what_is_there<
    T: Journal + TaskStore + MemoryLedger + Maintenance,
>(
    store: &T,
) {
    let empty = store.status().await.unwrap();
    assert_eq!(
        (empty.oldest, empty.newest, empty.unsettled, empty.waiting),
        (None, None, 0, 0)
    );
    converse(store, 1, 0, &whole(1)).await;
    converse(store, 2, 5, &[started(2, "i1"), parked(2, &["call_1"])]).await;
    converse(store, 3, 9, &[]).await;
    store
        .apply(&user("anna"), &add("buy milk"), None)
        .await
        .unwrap();
    store
        .put(&scope("anna", "/v"), &fact(1, None, Some("a")))
        .await
        .unwrap();
    let status = store.status().await.unwrap();
    assert_eq!((status.oldest, status.newest), (Some(at(0)), Some(at(9))));
    assert_eq!((status.unsettled, status.waiting), (1, 1));
    let rows = |name: &str| {
        status
            .tables
            .iter()
            .find(|table| table.name == name)
            .unwrap()
            .rows
    };
    assert_eq!(
        [
            "task",
            "conversation",
            "inbox",
            "event",
            "decision",
            "tool_invocation",
            "memory_change",
            "token"
        ]
        .map(rows),
        [1, 3, 3, 8, 2, 1, 1, 0]
    );
    assert!(
        status.schema_version > 1 && status.bytes > 1000 && !status.product.is_empty(),
        "{status:?}"
    );
}

/// Every manipulation of the tables is found, with its place. `make` returns an empty store and a
/// function that runs statements.
pub async fn what_does_not_fit_together_is_found<T, F>(make: impl AsyncFn() -> (T, F))
where
    T: Journal + TaskStore + MemoryLedger + Maintenance,
    F: AsyncFn(&'static str),
{
    let cases: &[(&[&'static str], &str)] = &[
        (&[], ""),
        (&["DELETE FROM adjutant_event WHERE seq = 2"], "event 2 is not there: the next is 3"),
        (&["DELETE FROM adjutant_event WHERE seq = 6"], "the events end before 6, and 7 is the next place"),
        (&["UPDATE adjutant_event SET body = '{' WHERE seq = 2"], "event 2 (model_replied)"),
        (&["UPDATE adjutant_event SET v = 9 WHERE seq = 1"], "format version 9"),
        (&["UPDATE adjutant_inbox SET body = '{}'"], "input i1"),
        (&["UPDATE adjutant_inbox SET taken_seq = 2"], "input i1 was taken by event 2"),
        (&["UPDATE adjutant_inbox SET taken_seq = NULL"], "1 inputs were not taken, and 0 are counted"),
        (&["UPDATE adjutant_conversation SET turn = 'another'"], "the open turn is none, and another is noted"),
        (&["UPDATE adjutant_conversation SET parked_seq = 1"], "what waits for a person"),
        (&["UPDATE adjutant_conversation SET turns = 3"], "1 turns began, and 3 are counted"),
        (
            &["UPDATE adjutant_conversation SET indexed_passages = 2, indexed_length = 9"],
            "the index has 0 passages of 0 words, and 2 of 9 are counted",
        ),
        (&["DELETE FROM adjutant_decision"], "1 turns began, and the log has 0 decisions"),
        (&["UPDATE adjutant_task SET created_at = 'soon'"], "tasks of anna"),
        (&["UPDATE adjutant_memory_change SET body = '{'"], "the memory of anna in /v"),
        (
            &["INSERT INTO adjutant_fact (user_id, text_hash, text, important, created_at, updated_at) VALUES ('anna', 'h', 'x', 0, 'soon', 'soon')"],
            "the facts about anna",
        ),
        (&["UPDATE adjutant_memory_change SET v = 2"], "format version 2, this program reads 1"),
        (
            &[
                "INSERT INTO adjutant_event (conversation, seq, v, kind, turn, body, at)
                 SELECT conversation, seq + 1, v, kind, turn, body, at FROM adjutant_event WHERE kind = 'turn_finished'",
                "UPDATE adjutant_conversation SET next_seq = next_seq + 1",
            ],
            "event 7 (turn_finished) is of turn 11111111-0000-7000-8000-000000000001, which has ended",
        ),
    ];
    for (statements, words) in cases {
        let (store, hand) = make().await;
        converse(&store, 1, 0, &whole(1)).await;
        store
            .apply(&user("anna"), &add("buy milk"), None)
            .await
            .unwrap();
        store
            .put(&scope("anna", "/v"), &fact(1, None, Some("a")))
            .await
            .unwrap();
        for statement in *statements {
            hand(statement).await;
        }
        let findings = store.check().await.unwrap();
        let said = findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(
            said.contains(words) && said.is_empty() == statements.is_empty(),
            "{statements:?}: {said}"
        );
    }
    // The number of waiting calls is right and the calls are not; or the wake-up time is too late.
    let waiting = "what waits for a person is not what is noted to wait";
    let cases: &[(&'static str, &str)] = &[
        ("UPDATE adjutant_conversation SET waiting = waiting", ""),
        (
            "UPDATE adjutant_conversation SET waiting = replace(waiting, 'call_1', 'call_9')",
            waiting,
        ),
        (
            "UPDATE adjutant_conversation SET waiting = replace(waiting, '2026', '2027')",
            waiting,
        ),
        ("UPDATE adjutant_conversation SET waiting = '[]'", waiting),
        (
            "UPDATE adjutant_conversation SET wake_at = NULL",
            "it is to be woken at 2026-01-01T00:01:00.123456789Z, and never is noted",
        ),
        (
            "UPDATE adjutant_conversation SET wake_at = replace(wake_at, '2026', '2027')",
            "it is to be woken at 2026-",
        ),
        // As older versions stored it, without the expiry.
        (
            "UPDATE adjutant_conversation SET waiting = '[\"call_1\"]', wake_at = NULL",
            "",
        ),
    ];
    for (statement, words) in cases {
        let (store, hand) = make().await;
        converse(&store, 1, 0, &[started(1, "i1"), parked(1, &["call_1"])]).await;
        hand(statement).await;
        let findings = store.check().await.unwrap();
        let said = findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(
            said.contains(words) && said.is_empty() == words.is_empty(),
            "{statement}: {said}"
        );
    }
}

/// An idempotency key is removed when its change cannot be repeated any more. `age` makes all keys
/// old.
pub async fn a_change_is_remembered_while_it_may_be_repeated<T>(store: &T, age: impl AsyncFn())
where
    T: Journal + TaskStore + Maintenance,
{
    let anna = user("anna");
    store
        .apply(&anna, &add("buy milk"), Some(&key("once")))
        .await
        .unwrap();
    age().await;
    converse(store, 1, 2000, &[started(1, "i1")]).await;
    assert!(
        store.remove_older_than(at(1000)).await.unwrap().is_empty(),
        "a turn may be repeated"
    );
    append(
        store,
        &conversation("anna", 1),
        2,
        at(2001),
        &[finished(1, "SUCCESS:TASK_COMPLETED")],
    )
    .await;
    assert_eq!(store.remove_older_than(at(1000)).await.unwrap().changes, 1);
    assert_eq!(store.list(&anna, TaskFilter::All).await.unwrap().len(), 1);
}
