//! The data sent to a client, and read for it, does not grow with the conversation.

use std::sync::Arc;

use adjutant_core::port::{ConversationFilter, ConversationStore as _, Journal as _};
use adjutant_core::{AgentName, ConversationKey, Recorded, UserId};
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use serde_json::{Value, json};

use crate::counting::{Counted, Counting};
use crate::harness::Running;

const HELLO: &str = r#"{"text": "Hello.", "repeat": true}"#;
const MILK: &str = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
"#;

/// A service that counts what it reads of conversations.
pub(crate) async fn counting(script: &str) -> (Running, Counted) {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let counted = Counted::default();
    let journal = Counting {
        journal: store.clone(),
        counted: counted.clone(),
    };
    let service = Running::start_on(store.clone(), script, |builder| {
        builder.dyn_journal(Arc::new(journal), store.clone(), store, worker_id())
    });
    (service.await, counted)
}

/// Has anna say something, and repeats that turn until there are so many.
pub(crate) async fn talk(service: &Running, token: &str, thread: &str, turns: u64) {
    let said = service
        .chat(
            token,
            &json!({"message": format!("hello {thread}"), "thread_id": thread}),
        )
        .await;
    assert_eq!(said.status, 200, "{said:?}");
    let newest = ConversationFilter::newest(1);
    let anna = UserId::new("anna").unwrap();
    let listed = service
        .store
        .list(&AgentName::adjutant(), &anna, &newest)
        .await
        .unwrap();
    let key = ConversationKey {
        agent: AgentName::adjutant(),
        user: anna,
        conversation: listed[0].id,
    };
    let first = service.store.load(&key).await.unwrap().events;
    let turn = first[0].event.turn().unwrap().to_string();
    let text = serde_json::to_string(&first).unwrap();
    let mut copies: Vec<Recorded> = Vec::new();
    for number in 1..turns {
        let other = uuid::Uuid::now_v7().to_string();
        let copy: Vec<Recorded> = serde_json::from_str(&text.replace(&turn, &other)).unwrap();
        copies.extend(copy.into_iter().map(|event| Recorded {
            seq: event.seq + number * 3,
            ..event
        }));
    }
    service.store.append(&key, &copies).await.unwrap();
}

async fn get(service: &Running, token: &str, path: &str) -> (u16, Value) {
    let headers = [("Authorization", format!("Bearer {token}"))];
    let answer = service.ask("GET", path, &headers, "").await;
    (answer.status, answer.body)
}

fn messages(page: &Value) -> &Vec<Value> {
    page["messages"].as_array().unwrap()
}

fn read_since(counted: &Counted) -> Vec<(&'static str, usize)> {
    std::mem::take(&mut *counted.lock().unwrap())
}

#[tokio::test]
async fn a_page_of_messages_costs_the_same_in_a_short_conversation_and_in_a_long_one() {
    let (service, counted) = counting(HELLO).await;
    let anna = service.token("anna").await;
    for (thread, turns) in [("short", 50), ("long", 2500)] {
        talk(&service, &anna, thread, turns).await;
        read_since(&counted);
        let (status, newest) =
            get(&service, &anna, &format!("/v1/threads/{thread}/messages")).await;
        assert_eq!((status, messages(&newest).len()), (200, 50), "{thread}");
        assert_eq!(
            read_since(&counted),
            [("load_turns", 75)],
            "{thread}: 25 turns of three events"
        );
        let cursor = newest["next_cursor"].as_str().unwrap();
        let path = format!("/v1/threads/{thread}/messages?limit=20&before={cursor}");
        let (_, older) = get(&service, &anna, &path).await;
        assert_eq!(messages(&older).len(), 20, "{thread}");
        assert_eq!(read_since(&counted), [("load_turns", 30)], "{thread}");
        let (_, one) = get(&service, &anna, &format!("/v1/threads/{thread}")).await;
        assert_eq!(one["pending"], json!([]));
        assert_eq!(read_since(&counted), [("load_turns", 3)], "{thread}");
    }
    service.stop().await;
}

#[tokio::test]
async fn pages_contain_each_message_once_while_the_conversation_grows() {
    let service = Running::start(HELLO).await;
    let anna = service.token("anna").await;
    talk(&service, &anna, "t", 11).await;
    let (mut runs, mut path) = (Vec::new(), "/v1/threads/t/messages?limit=7".to_owned());
    loop {
        let (status, page) = get(&service, &anna, &path).await;
        assert_eq!(status, 200, "{page}");
        // Whole turns, as many as fit.
        assert!([6, 4].contains(&messages(&page).len()), "{page}");
        let of_page: Vec<Value> = messages(&page)
            .iter()
            .map(|message| message["run_id"].clone())
            .collect();
        runs.splice(0..0, of_page);
        assert_eq!(
            page.get("last_message_id").is_some(),
            !path.contains("before"),
            "{page}"
        );
        // What is said meanwhile moves nothing.
        service
            .chat(&anna, &json!({"message": "and more", "thread_id": "t"}))
            .await;
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/threads/t/messages?limit=7&before={cursor}");
    }
    let distinct: std::collections::HashSet<&str> =
        runs.iter().map(|run| run.as_str().unwrap()).collect();
    assert_eq!(
        (runs.len(), distinct.len()),
        (22, 11),
        "each turn once, with its two messages"
    );
    service.stop().await;
}

#[tokio::test]
async fn a_turn_of_more_messages_than_fit_comes_whole_and_alone() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    for words in ["add buy milk", "delete it"] {
        service
            .chat(&anna, &json!({"message": words, "thread_id": "t"}))
            .await;
    }
    let (_, newest) = get(&service, &anna, "/v1/threads/t/messages?limit=1").await;
    assert_eq!(
        messages(&newest).len(),
        3,
        "the question, the call, and what was asked: {newest}"
    );
    assert_eq!(newest["pending"].as_array().unwrap().len(), 1);
    let cursor = newest["next_cursor"].as_str().unwrap();
    let (_, older) = get(
        &service,
        &anna,
        &format!("/v1/threads/t/messages?limit=2&before={cursor}"),
    )
    .await;
    assert_eq!(messages(&older).len(), 4, "{older}");
    assert_eq!(
        (&older["next_cursor"], &older["pending"]),
        (&Value::Null, &json!([]))
    );
    service.stop().await;
}

#[tokio::test]
async fn an_invalid_cursor_is_refused_with_an_explanation() {
    let service = Running::start(HELLO).await;
    let anna = service.token("anna").await;
    service
        .chat(&anna, &json!({"message": "hello", "thread_id": "t"}))
        .await;
    for cursor in [
        "",
        "e",
        "e0",
        "e-1",
        "e%2B1",
        "17",
        "x4",
        "e99999999999999999999999",
        "%F0%9F%90%9D",
    ] {
        let (status, problem) = get(
            &service,
            &anna,
            &format!("/v1/threads/t/messages?before={cursor}"),
        )
        .await;
        assert_eq!(status, 400, "{cursor}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("is no cursor; use the one an answer gave"),
            "{detail}"
        );
    }
    for (query, expected) in [
        ("limit=0", 422),
        ("limit=201", 422),
        ("page=2", 422),
        ("before=e9999", 200),
    ] {
        let (status, body) = get(&service, &anna, &format!("/v1/threads/t/messages?{query}")).await;
        assert_eq!(status, expected, "{query}: {body}");
    }
    assert_eq!(
        get(&service, &anna, "/v1/threads/none/messages?before=e4")
            .await
            .0,
        404
    );
    service.stop().await;
}
