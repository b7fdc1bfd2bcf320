//! A message that is longer than the limit is refused on every way in, before anything is done.

use std::sync::Arc;

use adjutant_core::{LongMessage, TurnLimits};
use adjutant_store::sqlite::Store;
use serde_json::{Value, json};

use crate::harness::{Answer, Running};
use crate::runs::say;

async fn service(long_message: LongMessage) -> Running {
    let limits = TurnLimits {
        message_chars_max: Some(10),
        long_message,
        ..TurnLimits::default()
    };
    let store = Arc::new(Store::in_memory().await.unwrap());
    let script = r#"{"text": "Done.", "repeat": true}"#;
    Running::start_on(store, script, |builder| builder.limits(limits)).await
}

async fn post(service: &Running, token: &str, path: &str, accept: &str, body: &Value) -> Answer {
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Accept", accept.to_owned()),
    ];
    service.ask("POST", path, &headers, &body.to_string()).await
}

/// The answers of all routes to a message.
async fn said(service: &Running, token: &str, words: &str) -> Vec<Answer> {
    let (json, events) = ("application/json", "text/event-stream");
    let completion = |stream: bool| json!({"model": "adjutant", "stream": stream, "messages": [{"role": "user", "content": words}]});
    vec![
        post(
            service,
            token,
            "/v1/chat",
            json,
            &json!({ "message": words }),
        )
        .await,
        post(service, token, "/v1/runs", json, &say("t", "one", words)).await,
        post(service, token, "/v1/runs", events, &say("t", "two", words)).await,
        post(
            service,
            token,
            "/v1/chat/completions",
            json,
            &completion(false),
        )
        .await,
        post(
            service,
            token,
            "/v1/chat/completions",
            events,
            &completion(true),
        )
        .await,
    ]
}

#[tokio::test]
async fn a_long_message_is_refused_by_every_route() {
    let service = service(LongMessage::Refuse).await;
    let anna = service.token("anna").await;
    for refused in said(&service, &anna, "äöüßäöüßäöü").await {
        assert_eq!(refused.status, 413, "{refused:?}");
        let problem = if refused.body["error"].is_object() {
            &refused.body["error"]
        } else {
            &refused.body
        };
        assert_eq!(problem["code"], "message_too_long", "{refused:?}");
        for told in ["11 characters", "at most 10", "agent.message_chars_max"] {
            assert!(refused.text.contains(told), "{told}: {refused:?}");
        }
    }
    let refused = service
        .chat(&anna, &json!({"message": "x".repeat(11)}))
        .await;
    let members = (
        &refused.body["length"],
        &refused.body["limit"],
        &refused.body["setting"],
    );
    assert_eq!(
        members,
        (&json!(11), &json!(10), &json!("agent.message_chars_max"))
    );
    let me = crate::resources::ask(&service, &anna, "GET", "/v1/me", &Value::Null).await;
    assert_eq!(
        (&me.body["message_chars_max"], &me.body["cuts_messages"]),
        (&json!(10), &json!(false))
    );
    for path in ["/v1/threads", "/v1/decisions"] {
        let listed = crate::resources::ask(&service, &anna, "GET", path, &Value::Null).await;
        let all = listed
            .body
            .as_object()
            .unwrap()
            .values()
            .find_map(Value::as_array)
            .unwrap();
        assert!(all.is_empty(), "{path}: {listed:?}");
    }
    for taken in said(&service, &anna, "äöüßäöüßäö").await {
        assert_eq!(taken.status, 200, "{taken:?}");
    }
    service.stop().await;
}

#[tokio::test]
async fn a_long_message_is_cut_if_so_configured() {
    let service = service(LongMessage::Cut).await;
    let anna = service.token("anna").await;
    for taken in said(&service, &anna, "äöüßäöüßäöü").await {
        assert_eq!(taken.status, 200, "{taken:?}");
    }
    let answer = service
        .chat(&anna, &json!({"message": "x".repeat(11)}))
        .await;
    assert_eq!(answer.body["notices"][0]["code"], "message_cut");
    service.stop().await;
}

#[tokio::test]
async fn the_limit_of_chat_may_be_less_than_that_of_the_other_routes() {
    let script = r#"{"text": "Done.", "repeat": true}"#;
    let service = Running::start_set(script, |config| {
        config.chat_message_chars_max = Some(10);
    })
    .await;
    let anna = service.token("anna").await;
    let [chat, run, events, completion, stream] = said(&service, &anna, "äöüßäöüßäöü")
        .await
        .try_into()
        .unwrap();
    assert_eq!(chat.body["notices"][0]["code"], "message_cut", "{chat:?}");
    for whole in [run, events, completion, stream] {
        assert_eq!(whole.status, 200, "{whole:?}");
        assert!(!whole.text.contains("message_cut"), "{whole:?}");
    }
    let short = post(
        &service,
        &anna,
        "/v1/chat",
        "application/json",
        &json!({"message": "äöüßäöüßäö"}),
    )
    .await;
    assert_eq!(short.body["notices"], Value::Null, "{short:?}");
}
