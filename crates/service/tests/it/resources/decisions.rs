//! The decision log: filters, pages, exports, and the contents that it keeps.

use std::sync::Arc;

use adjutant_core::LogContent;
use adjutant_store::sqlite::Store;

use super::*;

#[tokio::test]
async fn decisions_are_filtered_paged_and_exported() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    for (message, thread) in [("add buy milk", "t_1"), ("hi", "t_2"), ("delete it", "t_1")] {
        let headers = [
            ("Authorization", format!("Bearer {anna}")),
            ("X-Request-Id", format!("req-{}", message.replace(' ', "-"))),
        ];
        let body = json!({"message": message, "thread_id": thread}).to_string();
        assert_eq!(
            service
                .ask("POST", "/v1/chat", &headers, &body)
                .await
                .status,
            200
        );
    }
    let list = get(&service, &anna, "/v1/decisions").await;
    let messages = |list: &Value| -> Vec<String> {
        let rows = list["decisions"].as_array().unwrap().iter();
        rows.map(|row| row["message"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(messages(&list), ["delete it", "hi", "add buy milk"]);
    let [waits, hi, added] = [0, 1, 2].map(|at| &list["decisions"][at]);
    assert_eq!(
        (&waits["outcome"], &waits["ended_at"]),
        (&json!("PENDING:CONFIRMATION"), &Value::Null)
    );
    assert_eq!(
        (&hi["decision"], &hi["intent"]),
        (&json!("RESPOND_ONLY"), &json!("GENERAL_CHAT"))
    );
    assert_eq!(
        (
            &added["content"],
            &added["iterations"],
            &added["model_calls"]
        ),
        (&json!("Added."), &json!(1), &json!(2))
    );
    assert_eq!(
        (&added["request_id"], &added["user_id"]),
        (&json!("req-add-buy-milk"), &json!("anna"))
    );

    let since = hi["started_at"].as_str().unwrap();
    for (query, expected) in [
        (
            "outcome=SUCCESS:TASK_COMPLETED".to_owned(),
            vec!["add buy milk"],
        ),
        ("outcome=ERROR:LLM_FAILURE".to_owned(), vec![]),
        (
            "thread_id=t_1".to_owned(),
            vec!["delete it", "add buy milk"],
        ),
        ("tool=add_task".to_owned(), vec!["add buy milk"]),
        (format!("since={since}"), vec!["delete it", "hi"]),
        (format!("until={since}"), vec!["add buy milk"]),
        ("limit=2".to_owned(), vec!["delete it", "hi"]),
    ] {
        let found = get(&service, &anna, &format!("/v1/decisions?{query}")).await;
        assert_eq!(messages(&found), expected, "{query}");
    }
    let page = get(&service, &anna, "/v1/decisions?limit=2").await;
    let next = format!(
        "/v1/decisions?limit=2&cursor={}",
        page["next_cursor"].as_str().unwrap()
    );
    let last = get(&service, &anna, &next).await;
    assert_eq!(
        (messages(&last), &last["next_cursor"]),
        (vec!["add buy milk".to_owned()], &Value::Null)
    );
    let long = format!("agent={}", "x".repeat(201));
    let wrong = [
        "outcome=GOOD",
        "limit=0",
        "limit=201",
        "cursor=x",
        "since=yesterday",
        "user_id=bert",
        "agent=",
        &long,
    ];
    for query in wrong {
        let refused = ask(
            &service,
            &anna,
            "GET",
            &format!("/v1/decisions?{query}"),
            &Value::Null,
        )
        .await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{query}: {refused:?}"
        );
    }

    let export = ask(&service, &anna, "GET", "/v1/decisions/export", &Value::Null).await;
    assert!(
        export.head.contains("application/x-ndjson"),
        "{}",
        export.head
    );
    let lines: Vec<Value> = export
        .text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2]["tool_invocations"][0]["tool"], "add_task");
    assert_eq!(lines[2]["id"], added["id"]);
    let some = ask(
        &service,
        &anna,
        "GET",
        "/v1/decisions/export?tool=add_task",
        &Value::Null,
    )
    .await;
    assert_eq!(
        some.text
            .lines()
            .filter(|line| line.starts_with('{'))
            .count(),
        1
    );
    for id in ["0198c0de-0000-7000-8000-000000000000", "x"] {
        let unknown = ask(
            &service,
            &anna,
            "GET",
            &format!("/v1/decisions/{id}"),
            &Value::Null,
        )
        .await;
        assert_eq!(
            (unknown.status, &unknown.body["code"]),
            (404, &json!("unknown")),
            "{unknown:?}"
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn logs_contain_texts_only_as_configured() {
    let said = ["add buy milk", "Added", "milk"];
    for (content, is_there) in [
        (LogContent::Full, true),
        (LogContent::Redacted, false),
        (LogContent::None, false),
    ] {
        let store = Arc::new(Store::in_memory().await.unwrap().with_log_content(content));
        let service = Running::start_on(store, MILK, |builder| builder).await;
        let anna = service.token("anna").await;
        let done = service
            .chat(
                &anna,
                &json!({"message": "add buy milk", "thread_id": "t_1"}),
            )
            .await;
        let run = done.body["run_id"].as_str().unwrap();
        let detail = get(&service, &anna, &format!("/v1/decisions/{run}")).await;
        let export = ask(&service, &anna, "GET", "/v1/decisions/export", &Value::Null)
            .await
            .text;
        for words in said {
            assert_eq!(
                detail.to_string().contains(words),
                is_there,
                "{content}: {words}: {detail}"
            );
            assert_eq!(
                export.contains(words),
                is_there,
                "{content}: {words}: {export}"
            );
        }
        // What is no content stays.
        assert_eq!(
            (&detail["outcome"], &detail["message_chars"]),
            (&json!("SUCCESS:TASK_COMPLETED"), &json!(12))
        );
        let call = &detail["tool_invocations"][0];
        assert_eq!(
            (&call["tool"], &call["result"]["success"]),
            (&json!("add_task"), &json!(true))
        );
        assert_eq!(
            call["args"].get("description").is_some(),
            content != LogContent::None,
            "{call}"
        );
        // The conversation itself needs it.
        let read = get(&service, &anna, "/v1/threads/t_1/messages").await;
        assert_eq!(read["messages"][0]["content"], "add buy milk");
        service.stop().await;
    }
}
