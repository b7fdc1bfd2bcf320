use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{Journal, JournaledChange, LogStore, StoreError};
use adjutant_core::{Event, Recorded};
use adjutant_tools::{TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskStore};
use serde_json::json;

use super::fixture::*;

const TTL: Duration = Duration::from_secs(60);

fn change(words: &str) -> TaskChange {
    TaskChange::Add {
        description: TaskDescription::new(words).unwrap(),
        from_others: false,
    }
}

fn adds(words: &str, seq: u64) -> JournaledChange {
    JournaledChange {
        change: Arc::new(change(words)),
        key: key("c/1/call_1"),
        ended: Arc::new(move |outcome: &dyn Any| {
            let Some(TaskChanged::Added { task }) = outcome.downcast_ref() else {
                panic!("not added")
            };
            Recorded {
                seq,
                at: at(9),
                event: finished(&json!({"id": task.id, "description": task.description})).into(),
            }
        }),
    }
}

fn finished(data: &serde_json::Value) -> Event {
    event(json!({
        "event": "call_finished", "turn": turn(1), "call": "call_1", "tool": "add_task",
        "arguments": {"description": "buy milk"}, "result": {"success": true, "data": data}, "ms": 3, "attempt": 1,
    }))
}

/// Events and a task change are one commit, which succeeds only for the worker with the lease, at
/// the next sequence number.
pub async fn a_change_is_written_with_its_events(store: &(impl Journal + LogStore + TaskStore)) {
    assert!(Journal::store_id(store).is_some());
    assert_eq!(Journal::store_id(store), TaskStore::store_id(store));
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "buy milk")).await;
    store.claim(&key, "one", TTL).await.unwrap();
    let begun = recorded(1, at(1), &[started(1, "i1"), replied(1, 1)]);
    store.append_held(&key, "one".into(), &begun).await.unwrap();
    let before = store.load(&key).await.unwrap();
    let intent = recorded(3, at(2), &[call_started(1, "call_1")]);

    let nobodys = conversation("anna", 2);
    let late = recorded(2, at(2), &[call_started(1, "call_1")]);
    for (key, worker, events) in [
        (&key, "two", &intent),
        (&key, "one", &late),
        (&nobodys, "one", &intent),
        (&key, "one", &vec![]),
    ] {
        let refused = store
            .append_with_change(key, worker.into(), events, adds("buy milk", 4))
            .await;
        assert_eq!(refused, Err(StoreError::Conflict));
        assert_eq!(store.load(&nobodys).await.unwrap().events, []);
        assert_eq!(store.load(&conversation("anna", 1)).await.unwrap(), before);
        assert_eq!(store.list(&key.user, TaskFilter::All).await.unwrap(), []);
    }

    let ended = store
        .append_with_change(&key, "one".into(), &intent, adds("buy milk", 4))
        .await
        .unwrap();
    let tasks = store.list(&key.user, TaskFilter::All).await.unwrap();
    assert_eq!(
        tasks
            .iter()
            .map(|task| task.description.as_str())
            .collect::<Vec<_>>(),
        ["buy milk"]
    );
    assert_eq!(
        *ended.event,
        finished(&json!({"id": "1", "description": "buy milk"}))
    );
    let written: Vec<Recorded> = begun.into_iter().chain(intent).chain([ended]).collect();
    assert_eq!(store.load(&key).await.unwrap().events, written);
    let logged = store.tool_invocations(&key.user, turn(1)).await.unwrap();
    assert_eq!(
        logged
            .iter()
            .map(|call| call.tool.as_str())
            .collect::<Vec<_>>(),
        ["add_task"]
    );

    // The key says that it was done, wherever it was done before.
    let known = store
        .apply(
            &key.user,
            &change("buy bread"),
            Some(&adds("buy bread", 0).key),
        )
        .await
        .unwrap();
    assert!(matches!(known, TaskChanged::Added { task } if task == tasks[0]));
    // The worker goes on behind the event it was given.
    store
        .append_held(&key, "one".into(), &recorded(5, at(10), &[replied(1, 2)]))
        .await
        .unwrap();
}

/// If the last event cannot be written, neither the others nor the change are.
pub async fn a_change_is_undone_with_its_events(store: &(impl Journal + TaskStore)) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "buy milk")).await;
    store.claim(&key, "one", TTL).await.unwrap();
    store
        .append_held(&key, "one".into(), &recorded(1, at(1), &[started(1, "i1")]))
        .await
        .unwrap();
    let before = store.load(&key).await.unwrap();
    let intent = recorded(2, at(2), &[call_started(1, "call_1")]);
    let refused = store
        .append_with_change(&key, "one".into(), &intent, adds("buy milk", 7))
        .await;
    assert_eq!(refused, Err(StoreError::Conflict));
    assert_eq!(store.load(&key).await.unwrap(), before);
    assert_eq!(store.list(&key.user, TaskFilter::All).await.unwrap(), []);
    store
        .append_with_change(&key, "one".into(), &intent, adds("buy milk", 3))
        .await
        .unwrap();
    assert_eq!(
        store.list(&key.user, TaskFilter::All).await.unwrap().len(),
        1
    );
}
