//! Ratings of answers: kept with the turn, shown with the answer, counted.

use adjutant_service::MetricsAccess;
use serde_json::{Value, json};

use crate::harness::{Answer, Running};
use crate::resources::ask;

const SCRIPT: &str = r#"
{"match": "success", "text": "Done.", "repeat": true}
{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}], "repeat": true}
{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}], "repeat": true}
{"text": "Hello.", "repeat": true}
"#;

async fn rate(service: &Running, token: &str, turn: &Value, body: &Value) -> Answer {
    let path = format!("/v1/turns/{}/feedback", turn.as_str().unwrap());
    ask(
        service,
        token,
        if body.is_null() { "DELETE" } else { "PUT" },
        &path,
        body,
    )
    .await
}

/// The words of each message of a conversation that has feedback, with it.
async fn rated(service: &Running, token: &str, thread: &str) -> Vec<(String, Value)> {
    let answer = ask(
        service,
        token,
        "GET",
        &format!("/v1/threads/{thread}/messages"),
        &Value::Null,
    )
    .await;
    let messages = answer.body["messages"].as_array().unwrap().iter();
    let rated = messages.filter(|message| message.get("feedback").is_some());
    rated
        .map(|message| {
            (
                message["content"].as_str().unwrap().to_owned(),
                message["feedback"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn an_answer_is_rated_and_the_rating_taken_back() {
    let service = Running::start_set(SCRIPT, |config| config.metrics = MetricsAccess::Users).await;
    let anna = service.token("anna").await;
    let added = service
        .chat(&anna, &json!({"message": "add milk", "thread_id": "t_1"}))
        .await;
    let hello = service
        .chat(&anna, &json!({"message": "hi", "thread_id": "t_1"}))
        .await;
    let (added, hello) = (&added.body["run_id"], &hello.body["run_id"]);
    assert_eq!(rated(&service, &anna, "t_1").await, []);

    let comment = json!({"rating": "down", "comment": "  Not milk,\n\toat milk.\u{0} "});
    assert_eq!(rate(&service, &anna, added, &comment).await.status, 204);
    assert_eq!(
        rate(&service, &anna, hello, &json!({"rating": "up"}))
            .await
            .status,
        204
    );
    let bad = json!({"rating": "down", "comment": "Not milk,\n oat milk."});
    // The words of the answer, and not the call before them.
    let expected = [
        ("Done.".to_owned(), bad.clone()),
        ("Hello.".to_owned(), json!({"rating": "up"})),
    ];
    assert_eq!(rated(&service, &anna, "t_1").await, expected);
    let place = format!("/v1/decisions/{}", added.as_str().unwrap());
    let decision = ask(&service, &anna, "GET", &place, &Value::Null).await;
    assert_eq!(decision.body["feedback"], bad);
    let found = ask(
        &service,
        &anna,
        "GET",
        "/v1/decisions?feedback=down",
        &Value::Null,
    )
    .await;
    let found = found.body["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|decision| &decision["id"]);
    assert_eq!(found.collect::<Vec<_>>(), [added]);

    // Another opinion takes the place of the first, and none leaves nothing.
    assert_eq!(
        rate(
            &service,
            &anna,
            added,
            &json!({"rating": "up", "comment": null})
        )
        .await
        .status,
        204
    );
    assert_eq!(rate(&service, &anna, hello, &Value::Null).await.status, 204);
    assert_eq!(rate(&service, &anna, hello, &Value::Null).await.status, 204);
    assert_eq!(
        rated(&service, &anna, "t_1").await,
        [("Done.".to_owned(), json!({"rating": "up"}))]
    );
    // A branch shows what was thought of what it begins with.
    service
        .chat(&anna, &json!({"message": "hi", "thread_id": "t_1"}))
        .await;
    let branch = ask(
        &service,
        &anna,
        "POST",
        "/v1/threads/t_1/branches",
        &json!({"thread_id": "t_2"}),
    )
    .await;
    assert_eq!(branch.status, 200, "{branch:?}");
    assert_eq!(
        rated(&service, &anna, "t_2").await,
        [("Done.".to_owned(), json!({"rating": "up"}))]
    );

    // Once for each opinion that was new.
    let figures = ask(&service, &anna, "GET", "/metrics", &Value::Null).await;
    for line in [
        "adjutant_feedback_total{rating=\"down\"} 1",
        "adjutant_feedback_total{rating=\"up\"} 2",
    ] {
        assert!(figures.text.contains(line), "{line}: {}", figures.text);
    }
}

#[tokio::test]
async fn only_ended_turns_of_the_user_can_be_rated() {
    let service = Running::start(SCRIPT).await;
    let (anna, bert) = (service.token("anna").await, service.token("bert").await);
    service
        .chat(&anna, &json!({"message": "add milk", "thread_id": "t_1"}))
        .await;
    let hello = service
        .chat(&anna, &json!({"message": "hi", "thread_id": "t_1"}))
        .await
        .body["run_id"]
        .clone();
    let waits = service
        .chat(&anna, &json!({"message": "drop milk", "thread_id": "t_1"}))
        .await;
    let waits = waits.body["run_id"].clone();
    let up = json!({"rating": "up"});
    let nobodys = json!("00000000-0000-7000-8000-000000000001");
    for (token, turn, body, status, code) in [
        (&bert, &hello, up.clone(), 404, "unknown"),
        (&bert, &hello, Value::Null, 404, "unknown"),
        (&anna, &nobodys, up.clone(), 404, "unknown"),
        (&anna, &json!("t_1"), up.clone(), 404, "unknown"),
        (&anna, &waits, up.clone(), 409, "running"),
        (&anna, &waits, Value::Null, 409, "running"),
        (&anna, &hello, json!({}), 422, "invalid_request"),
        (
            &anna,
            &hello,
            json!({"rating": "Up"}),
            422,
            "invalid_request",
        ),
        (&anna, &hello, json!({"rating": 1}), 422, "invalid_request"),
        (&anna, &hello, json!(["up"]), 422, "invalid_request"),
        (
            &anna,
            &hello,
            json!({"rating": "up", "user": "bert"}),
            422,
            "invalid_request",
        ),
        (
            &anna,
            &hello,
            json!({"rating": "up", "comment": "ß".repeat(2_001)}),
            422,
            "invalid_request",
        ),
    ] {
        let refused = rate(&service, token, turn, &body).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (status, &json!(code)),
            "{turn} {body}: {refused:?}"
        );
    }
    assert_eq!(rated(&service, &anna, "t_1").await, []);
    let longest = json!({"rating": "down", "comment": "ß".repeat(2_000)});
    assert_eq!(rate(&service, &anna, &hello, &longest).await.status, 204);
    assert_eq!(
        rated(&service, &anna, "t_1").await,
        [("Hello.".to_owned(), longest)]
    );
}
