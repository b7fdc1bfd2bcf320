//! Branches of conversations: another answer, other words, and the way between them.

use serde_json::{Value, json};

use crate::harness::{Answer, Running};
use crate::resources::ask;

const DRINKS: &str = r#"
{"match": "cocoa", "text": "Cocoa it is.", "repeat": true}
{"match": "hello", "text": "Hello.", "repeat": true}
{"text": "Tea."}
{"text": "Coffee."}
"#;

/// Returns the texts of a conversation's messages.
async fn said(service: &Running, token: &str, thread: &str) -> Vec<String> {
    let answer = ask(
        service,
        token,
        "GET",
        &format!("/v1/threads/{thread}/messages"),
        &Value::Null,
    )
    .await;
    let messages = answer.body["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

async fn branch(service: &Running, token: &str, thread: &str, body: &Value) -> Answer {
    ask(
        service,
        token,
        "POST",
        &format!("/v1/threads/{thread}/branches"),
        body,
    )
    .await
}

async fn branches(service: &Running, token: &str, thread: &str) -> Value {
    let answer = ask(
        service,
        token,
        "GET",
        &format!("/v1/threads/{thread}/branches"),
        &Value::Null,
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

#[tokio::test]
async fn an_answer_is_regenerated_and_a_message_edited_beside_what_was_said() {
    let service = Running::start(DRINKS).await;
    let anna = service.token("anna").await;
    service
        .chat(&anna, &json!({"message": "hello", "thread_id": "t_1"}))
        .await;
    let tea = service
        .chat(
            &anna,
            &json!({"message": "something hot", "thread_id": "t_1"}),
        )
        .await;
    assert_eq!(tea.body["content"], "Tea.");
    let none = json!({"branched_from": null, "alternatives": []});
    assert_eq!(branches(&service, &anna, "t_1").await, none);

    // Another answer to the last message.
    let made = branch(&service, &anna, "t_1", &json!({})).await;
    assert_eq!(
        (made.status, &made.body["message"]),
        (200, &json!("something hot"))
    );
    let again = made.body["thread_id"].as_str().unwrap();
    assert_eq!(said(&service, &anna, again).await, ["hello", "Hello."]);
    let request = json!({"message": made.body["message"], "thread_id": again});
    let coffee = service.chat(&anna, &request).await;
    assert_eq!(coffee.body["content"], "Coffee.");

    // Other words in the place of the same message, by way of the branch; the client names the
    // branch, and asks twice.
    let before = json!({"before": coffee.body["run_id"], "thread_id": "t_3"});
    let edited = branch(&service, &anna, again, &before).await;
    assert_eq!(
        edited.body["branched_from"], made.body["branched_from"],
        "it begins where the first does"
    );
    assert_eq!(
        branch(&service, &anna, again, &before).await.body,
        edited.body
    );
    service
        .chat(&anna, &json!({"message": "cocoa", "thread_id": "t_3"}))
        .await;

    assert_eq!(
        said(&service, &anna, "t_1").await,
        ["hello", "Hello.", "something hot", "Tea."]
    );
    assert_eq!(
        said(&service, &anna, again).await,
        ["hello", "Hello.", "something hot", "Coffee."]
    );
    assert_eq!(
        said(&service, &anna, "t_3").await,
        ["hello", "Hello.", "cocoa", "Cocoa it is."]
    );
    let [of_first, of_again, of_edited] = [
        branches(&service, &anna, "t_1").await,
        branches(&service, &anna, again).await,
        branches(&service, &anna, "t_3").await,
    ];
    let threads = of_first["alternatives"][0]["thread_ids"].clone();
    assert_eq!(
        (threads[0].as_str(), threads[1].as_str()),
        (made.body["branched_from"].as_str(), Some(again))
    );
    assert_eq!(
        (
            threads.as_array().unwrap().len(),
            of_first["branched_from"].clone()
        ),
        (3, Value::Null)
    );
    for (told, run, current) in [(&of_first, &tea, 0), (&of_again, &coffee, 1)] {
        let alternative =
            json!({"run_id": run.body["run_id"], "thread_ids": threads, "current": current});
        assert_eq!(told["alternatives"], json!([alternative]));
    }
    assert_eq!(
        (
            &of_edited["branched_from"],
            &of_edited["alternatives"][0]["current"]
        ),
        (&threads[0], &json!(2))
    );
    let listed = ask(&service, &anna, "GET", "/v1/threads", &Value::Null).await;
    let from: Vec<_> = listed.body["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["branched_from"].clone())
        .collect();
    assert_eq!(from, [threads[0].clone()], "all versions are one entry");

    // The first conversation can go; what the others show stays.
    let gone = ask(&service, &anna, "DELETE", "/v1/threads/t_1", &Value::Null).await;
    assert_eq!(gone.status, 204);
    assert_eq!(
        said(&service, &anna, "t_3").await,
        ["hello", "Hello.", "cocoa", "Cocoa it is."]
    );
    let left = branches(&service, &anna, "t_3").await;
    assert_eq!(
        left["alternatives"][0]["thread_ids"],
        json!([again, threads[2]])
    );
}

#[tokio::test]
async fn a_branch_that_cannot_be_is_refused_with_the_reason() {
    let service = Running::start(DRINKS).await;
    let (anna, bert) = (service.token("anna").await, service.token("bert").await);
    service
        .chat(&anna, &json!({"message": "hello", "thread_id": "t_1"}))
        .await;
    service
        .chat(&anna, &json!({"message": "hello", "thread_id": "t_2"}))
        .await;
    let cases = [
        (&bert, "t_1", json!({}), 404, "unknown"),
        (&anna, "t_9", json!({}), 404, "unknown"),
        (
            &anna,
            "t_1",
            json!({"before": "00000000-0000-7000-8000-000000000001"}),
            404,
            "unknown",
        ),
        (
            &anna,
            "t_1",
            json!({"before": "first"}),
            422,
            "invalid_request",
        ),
        (
            &anna,
            "t_1",
            json!({"thread_id": ""}),
            422,
            "invalid_request",
        ),
        (
            &anna,
            "t_1",
            json!({"thread_id": "t_2"}),
            409,
            "thread_exists",
        ),
        (
            &anna,
            "t_1",
            json!({"message": "hello"}),
            422,
            "invalid_request",
        ),
    ];
    for (token, thread, body, status, code) in cases {
        let refused = branch(&service, token, thread, &body).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (status, &json!(code)),
            "{body}: {refused:?}"
        );
    }
    let unknown = ask(
        &service,
        &bert,
        "GET",
        "/v1/threads/t_1/branches",
        &Value::Null,
    )
    .await;
    assert_eq!(unknown.status, 404);
    // What somebody else calls `t_1` is theirs.
    service
        .chat(&bert, &json!({"message": "hello", "thread_id": "t_2"}))
        .await;
    assert_eq!(
        branch(&service, &bert, "t_2", &json!({"thread_id": "t_1"}))
            .await
            .status,
        200
    );
    assert_eq!(said(&service, &anna, "t_1").await, ["hello", "Hello."]);
}

/// Returns what a list of conversations or a search has about each of its entries.
async fn entries(service: &Running, token: &str, path: &str) -> Vec<Value> {
    let answer = ask(service, token, "GET", path, &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["threads"].as_array().unwrap().clone()
}

#[tokio::test]
async fn versions_are_one_conversation_in_lists_and_are_renamed_and_deleted_together() {
    let service = Running::start(DRINKS).await;
    let anna = service.token("anna").await;
    let root = service
        .chat(&anna, &json!({"message": "something hot"}))
        .await;
    let root = root.body["thread_id"].as_str().unwrap().to_owned();
    let mut versions = vec![root.clone()];
    for _ in 0..2 {
        let made = branch(&service, &anna, &root, &json!({})).await;
        let id = made.body["thread_id"].as_str().unwrap().to_owned();
        service
            .chat(&anna, &json!({"message": "something hot", "thread_id": id}))
            .await;
        versions.push(id);
    }
    let [listed] = entries(&service, &anna, "/v1/threads")
        .await
        .try_into()
        .unwrap();
    assert_eq!(
        (
            &listed["thread_id"],
            &listed["root_id"],
            &listed["versions"]
        ),
        (&json!(versions[2]), &json!(root), &json!(3))
    );
    let [found] = entries(&service, &anna, "/v1/threads?q=HOT")
        .await
        .try_into()
        .unwrap();
    assert_eq!(found["thread_id"], listed["thread_id"]);

    let path = format!("/v1/threads/{}", versions[1]);
    let detail = ask(&service, &anna, "GET", &path, &Value::Null).await.body;
    let newest_first = json!([versions[2], versions[1], versions[0]]);
    assert_eq!(
        (
            &detail["root_id"],
            &detail["version_ids"],
            &detail["running"]
        ),
        (&json!(root), &newest_first, &json!(false))
    );

    // The last message makes a version the conversation's entry.
    let more = json!({"message": "hello", "thread_id": versions[1]});
    service.chat(&anna, &more).await;
    let [listed] = entries(&service, &anna, "/v1/threads")
        .await
        .try_into()
        .unwrap();
    assert_eq!(listed["thread_id"], versions[1]);

    let name = json!({"title": "Drinks"});
    let all = format!("{path}?versions=all");
    let renamed = ask(&service, &anna, "PATCH", &all, &name).await;
    assert_eq!(
        (renamed.status, &renamed.body["title"]),
        (200, &json!("Drinks"))
    );
    for id in &versions {
        let path = format!("/v1/threads/{id}");
        let title = ask(&service, &anna, "GET", &path, &Value::Null).await.body;
        assert_eq!(title["title"], "Drinks");
    }

    let one = format!("/v1/threads/{}", versions[2]);
    let gone = ask(&service, &anna, "DELETE", &one, &Value::Null).await;
    assert_eq!(gone.status, 204);
    let [listed] = entries(&service, &anna, "/v1/threads")
        .await
        .try_into()
        .unwrap();
    assert_eq!(listed["versions"], 2);
    let wrong = format!("{path}?versions=some");
    assert_eq!(
        ask(&service, &anna, "DELETE", &wrong, &Value::Null)
            .await
            .status,
        422
    );
    let gone = ask(&service, &anna, "DELETE", &all, &Value::Null).await;
    assert_eq!(gone.status, 204);
    assert!(entries(&service, &anna, "/v1/threads").await.is_empty());
}
