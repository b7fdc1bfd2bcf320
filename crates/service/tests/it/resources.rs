//! Conversations, tasks, tools and decisions.

mod decisions;

use serde_json::{Value, json};

use crate::harness::{Answer, Running};

const MILK: &str = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
{"text": "Hello."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
{"text": "Gone."}
"#;

pub(crate) async fn ask(
    service: &Running,
    token: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> Answer {
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("X-Request-Id", format!("req-{method}")),
    ];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    service.ask(method, path, &headers, &body).await
}

async fn get(service: &Running, token: &str, path: &str) -> Value {
    let answer = ask(service, token, "GET", path, &Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.body
}

#[tokio::test]
async fn conversations_are_listed_read_renamed_and_deleted() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    assert_eq!(
        get(&service, &anna, "/v1/threads").await,
        json!({"threads": [], "next_cursor": null})
    );
    service
        .chat(
            &anna,
            &json!({"message": "add buy milk", "thread_id": "t_1"}),
        )
        .await;
    service
        .chat(
            &anna,
            &json!({"message": "is anybody there", "thread_id": "t_2"}),
        )
        .await;
    let asked = service
        .chat(&anna, &json!({"message": "delete it", "thread_id": "t_1"}))
        .await;
    assert_eq!(asked.body["decision"], "REQUEST_CONFIRMATION", "{asked:?}");

    let page = get(&service, &anna, "/v1/threads?limit=1").await;
    let first = &page["threads"][0];
    assert_eq!(
        (&first["title"], &first["pending"]),
        (&json!("add buy milk"), &json!(true))
    );
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = get(
        &service,
        &anna,
        &format!("/v1/threads?limit=1&cursor={cursor}"),
    )
    .await;
    assert_eq!(
        (&rest["threads"][0]["title"], &rest["next_cursor"]),
        (&json!("is anybody there"), &Value::Null)
    );
    let found = get(&service, &anna, "/v1/threads?q=THERE").await;
    assert_eq!(found["threads"].as_array().unwrap().len(), 1, "{found}");

    // By our id, and by the client's own name.
    let id = first["thread_id"].as_str().unwrap();
    let one = get(&service, &anna, &format!("/v1/threads/{id}")).await;
    assert_eq!(one, get(&service, &anna, "/v1/threads/t_1").await);
    assert_eq!(
        one["pending"][0]["interrupt_id"],
        asked.body["pending"][0]["interrupt_id"]
    );

    let read = get(&service, &anna, &format!("/v1/threads/{id}/messages")).await;
    let said: Vec<_> = read["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        said,
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "assistant"
        ],
        "{read}"
    );
    let messages = &read["messages"];
    assert_eq!(messages[0]["content"], "add buy milk");
    assert_eq!(messages[1]["tool_calls"][0]["tool"], "add_task");
    assert_eq!(
        messages[2]["tool_call_id"],
        messages[1]["tool_calls"][0]["id"]
    );
    assert_eq!(messages[2]["result"]["success"], true);
    assert_eq!(
        (&messages[3]["content"], &messages[4]["content"]),
        (&json!("Added."), &json!("delete it"))
    );
    // The reference is resolved: what is shown is what would run.
    assert_eq!(
        messages[5]["tool_calls"][0]["args"],
        json!({"task_id": "1"})
    );
    assert_eq!(messages[6]["content"], asked.body["content"]);
    assert_eq!(messages[4]["run_id"], asked.body["run_id"]);
    assert!(
        messages
            .as_array()
            .unwrap()
            .iter()
            .all(|message| message["created_at"].is_string()),
        "{read}"
    );
    assert_eq!(read["pending"], one["pending"]);

    // After the answer, what waited is a call with its result.
    let yes = json!({"thread_id": "t_1", "resume": [{"interrupt_id": one["pending"][0]["interrupt_id"], "approved": true}]});
    assert_eq!(service.chat(&anna, &yes).await.status, 200);
    let read = get(&service, &anna, "/v1/threads/t_1/messages").await;
    let said: Vec<_> = read["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        said,
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant"
        ]
    );
    assert_eq!(
        (&read["messages"][7]["content"], &read["pending"]),
        (&json!("Gone."), &json!([]))
    );

    let path = format!("/v1/threads/{id}");
    let renamed = ask(
        &service,
        &anna,
        "PATCH",
        &path,
        &json!({"title": "  Groceries\n"}),
    )
    .await;
    assert_eq!(
        (renamed.status, &renamed.body["title"]),
        (200, &json!("Groceries")),
        "{renamed:?}"
    );
    // What is taken away from a title counts towards its length, as the interface's description
    // says.
    let too_long = [
        "x".repeat(201),
        format!("{}\n", "x".repeat(200)),
        format!("\u{98}{}", "x".repeat(200)),
    ];
    for title in ["", "  ", &too_long[0], &too_long[1], &too_long[2]] {
        let refused = ask(&service, &anna, "PATCH", &path, &json!({ "title": title })).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{refused:?}"
        );
    }
    assert_eq!(
        ask(&service, &anna, "DELETE", &path, &Value::Null)
            .await
            .status,
        204
    );
    for (method, path) in [
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("GET", format!("{path}/messages")),
    ] {
        let gone = ask(&service, &anna, method, &path, &Value::Null).await;
        assert_eq!(
            (gone.status, &gone.body["code"]),
            (404, &json!("unknown")),
            "{method} {path}: {gone:?}"
        );
    }
    assert_eq!(
        get(&service, &anna, "/v1/decisions").await["decisions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    service.stop().await;
}

#[tokio::test]
async fn only_the_owner_can_export_a_conversation() {
    let service = Running::start(MILK).await;
    let (anna, bert) = (service.token("anna").await, service.token("bert").await);
    let words = "add buy milk\n\n<img src=x> ![x](https://evil.example)";
    service
        .chat(&anna, &json!({"message": words, "thread_id": "t_1"}))
        .await;
    let export = async |token: &str, query: &str| {
        ask(
            &service,
            token,
            "GET",
            &format!("/v1/threads/t_1/export{query}"),
            &Value::Null,
        )
        .await
    };
    for query in ["", "?format=markdown"] {
        let file = export(&anna, query).await;
        assert_eq!(file.status, 200, "{file:?}");
        assert!(
            file.head
                .contains("content-type: text/markdown; charset=utf-8"),
            "{}",
            file.head
        );
        assert!(
            file.head.contains("content-disposition: attachment"),
            "{}",
            file.head
        );
        for part in [
            "# add buy milk",
            "> add buy milk",
            "> \\<img src=x> \\![x]",
            "Call of `add_task`",
            "> Added.",
        ] {
            assert!(file.text.contains(part), "{part:?} is not in {}", file.text);
        }
    }
    let file = export(&anna, "?format=json").await;
    assert!(
        file.head.contains("content-type: application/json"),
        "{}",
        file.head
    );
    let said = get(&service, &anna, "/v1/threads/t_1/messages").await;
    let contents = |messages: &Value| -> Vec<Value> {
        messages
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].clone())
            .collect()
    };
    assert_eq!(
        contents(&file.body["messages"]),
        contents(&said["messages"])
    );
    assert_eq!(
        (&file.body["turns"], &file.body["pending"]),
        (&json!(1), &json!([]))
    );
    for (token, query, status) in [
        (&bert, "", 404),
        (&anna, "?format=pdf", 422),
        (&anna, "?more=1", 422),
    ] {
        let refused = export(token, query).await;
        assert_eq!(refused.status, status, "{query}: {refused:?}");
        assert!(
            refused.head.contains("application/problem+json"),
            "{}",
            refused.head
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn the_model_generates_a_title_in_the_background() {
    let script = r#"
{"match": "\"person\":", "text": "\"Milk for the weekend.\"", "repeat": true}
{"text": "Noted.", "repeat": true}
"#;
    let service = Running::start_set(script, |config| config.model_titles = true).await;
    let anna = service.token("anna").await;
    assert_eq!(get(&service, &anna, "/v1/me").await["model_titles"], true);
    let said = service
        .chat(
            &anna,
            &json!({"message": "Hello! I need milk", "thread_id": "t_1"}),
        )
        .await;
    assert_eq!(said.body["content"], "Noted.");
    // The first words are the title of one message, and the model is not asked.
    let title = &get(&service, &anna, "/v1/threads/t_1").await["title"];
    assert_eq!(title, "I need milk");
    service
        .chat(&anna, &json!({"message": "and tea", "thread_id": "t_1"}))
        .await;
    while get(&service, &anna, "/v1/threads/t_1").await["title"] != "Milk for the weekend" {}
    // It is no part of what was said, and a name that a person gave stays.
    let messages = get(&service, &anna, "/v1/threads/t_1/messages").await;
    assert_eq!(
        messages["messages"].as_array().unwrap().len(),
        4,
        "{messages}"
    );
    ask(
        &service,
        &anna,
        "PATCH",
        "/v1/threads/t_1",
        &json!({"title": "Groceries"}),
    )
    .await;
    service
        .chat(&anna, &json!({"message": "and bread", "thread_id": "t_1"}))
        .await;
    assert_eq!(
        get(&service, &anna, "/v1/threads/t_1").await["title"],
        "Groceries"
    );
    service.stop().await;
}

#[tokio::test]
async fn a_conversation_with_a_running_turn_is_not_deleted() {
    let service = Running::start(r#"{"fault": "stall"}"#).await;
    let anna = service.token("anna").await;
    let hi = json!({"message": "hi", "thread_id": "t_1"});
    let chat = service.chat(&anna, &hi);
    let seen = async {
        // Until it runs, it can be deleted; then it cannot.
        loop {
            let runs = get(&service, &anna, "/v1/decisions").await;
            if let Some(run) = runs["decisions"].get(0) {
                break run["id"].as_str().unwrap().to_owned();
            }
        }
    };
    let deleting = async {
        let run = seen.await;
        let refused = ask(&service, &anna, "DELETE", "/v1/threads/t_1", &Value::Null).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (409, &json!("running")),
            "{refused:?}"
        );
        // What is not answered yet is there already.
        let detail = get(&service, &anna, &format!("/v1/decisions/{run}")).await;
        let model = detail["steps"]
            .as_array()
            .unwrap()
            .iter()
            .find(|step| step["kind"] == "model")
            .unwrap();
        assert_eq!(
            (&model["ms"], &model["request"]["messages"][0]["content"]),
            (&Value::Null, &json!("hi"))
        );
        let stopped = ask(
            &service,
            &anna,
            "POST",
            &format!("/v1/runs/{run}/cancel"),
            &Value::Null,
        )
        .await;
        assert_eq!(stopped.status, 202, "{stopped:?}");
    };
    let (answered, ()) = tokio::join!(chat, deleting);
    assert_eq!(
        answered.body["outcome"], "CANCELLED:BY_USER",
        "{answered:?}"
    );
    assert_eq!(
        ask(&service, &anna, "DELETE", "/v1/threads/t_1", &Value::Null)
            .await
            .status,
        204
    );
    service.stop().await;
}

#[tokio::test]
async fn direct_tool_calls_pass_the_same_gate() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    let invoke = async |tool: &str, body: Value| {
        ask(
            &service,
            &anna,
            "POST",
            &format!("/v1/tools/{tool}/invoke"),
            &body,
        )
        .await
    };
    let added = invoke("add_task", json!({"args": {"description": "buy milk"}})).await;
    assert_eq!(
        (added.status, &added.body["result"]["success"]),
        (200, &json!(true)),
        "{added:?}"
    );
    let tasks = get(&service, &anna, "/v1/tasks").await;
    let task = &tasks["tasks"][0];
    assert_eq!(
        (&task["id"], &task["description"], &task["completed_at"]),
        (&json!("1"), &json!("buy milk"), &Value::Null)
    );
    assert_eq!(task.get("user_id"), None);
    invoke("complete_task", json!({"args": {"task_id": "milk"}})).await;
    assert_eq!(
        get(&service, &anna, "/v1/tasks?status=pending").await,
        json!({"tasks": [], "next_cursor": null})
    );
    assert_eq!(
        get(&service, &anna, "/v1/tasks?status=completed").await["tasks"][0]["completed"],
        true
    );

    let asked = invoke("delete_task", json!({"args": {"task_id": "milk"}})).await;
    assert_eq!(
        (asked.status, &asked.body["code"]),
        (409, &json!("pending_confirmation")),
        "{asked:?}"
    );
    assert!(
        asked.body["preview"].as_str().unwrap().contains("buy milk"),
        "{asked:?}"
    );
    let shown = &asked.body["confirm"];
    for (confirm, status) in [
        (json!(true), 422),
        (json!(1), 422),
        (json!("yes"), 404),
        (json!("0".repeat(64)), 404),
    ] {
        let body = json!({"args": {"task_id": "milk"}, "confirm": confirm});
        let refused = invoke("delete_task", body).await;
        assert_eq!(refused.status, status, "only what was shown is a yes");
        if !confirm.is_string() {
            let detail = refused.body["detail"].as_str().unwrap();
            assert!(
                detail.contains("pending_confirmation") && detail.contains("nothing was done"),
                "{detail}"
            );
        }
    }
    // Nor does it confirm anything else.
    invoke("add_task", json!({"args": {"description": "pay the rent"}})).await;
    for (tool, args) in [
        ("delete_task", json!({"task_id": "2"})),
        ("update_task", json!({"task_id": "1", "description": "x"})),
    ] {
        assert_eq!(
            invoke(tool, json!({"args": args, "confirm": shown}))
                .await
                .status,
            422,
            "{tool}"
        );
    }
    // Another name is shown again before its task is deleted: a call runs as it was shown.
    invoke(
        "update_task",
        json!({"args": {"task_id": "1", "description": "buy bread"}}),
    )
    .await;
    invoke(
        "update_task",
        json!({"args": {"task_id": "2", "description": "buy milk"}}),
    )
    .await;
    let waits = get(&service, &anna, "/v1/pending").await;
    assert_eq!(waits["pending"][0]["interrupt_id"], *shown);
    assert_eq!(waits["pending"][0]["thread_id"], asked.body["thread_id"]);
    let again = invoke(
        "delete_task",
        json!({"args": {"task_id": "milk"}, "confirm": shown}),
    )
    .await;
    assert_eq!(
        (again.status, &again.body["code"]),
        (409, &json!("pending_confirmation"))
    );
    assert_eq!(again.body["preview"], "Delete “buy bread”");
    let gone = invoke(
        "delete_task",
        json!({"args": {"task_id": "milk"}, "confirm": again.body["confirm"]}),
    )
    .await;
    assert_eq!(
        (gone.status, &gone.body["args"]["task_id"]),
        (200, &json!("1")),
        "{gone:?}"
    );
    assert_eq!(
        get(&service, &anna, "/v1/pending").await,
        json!({"pending": []})
    );
    let left = get(&service, &anna, "/v1/tasks").await;
    assert_eq!(
        (
            left["tasks"].as_array().unwrap().len(),
            &left["tasks"][0]["id"]
        ),
        (1, &json!("2"))
    );
    // A call that waits is answered like any other.
    let asked = invoke("delete_task", json!({"args": {"task_id": "2"}})).await;
    let no = json!({
        "thread_id": asked.body["thread_id"],
        "resume": [{"interrupt_id": asked.body["confirm"], "approved": false}],
    });
    let kept = ask(&service, &anna, "POST", "/v1/chat", &no).await;
    assert_eq!(
        kept.body["outcome"], "REFUSAL:CONFIRMATION_DENIED",
        "{kept:?}"
    );
    let asked = invoke("delete_task", json!({"args": {"task_id": "2"}})).await;
    invoke(
        "delete_task",
        json!({"args": {"task_id": "2"}, "confirm": asked.body["confirm"]}),
    )
    .await;
    assert_eq!(
        get(&service, &anna, "/v1/tasks").await,
        json!({"tasks": [], "next_cursor": null})
    );

    for (tool, body, status) in [
        ("no_such_tool", json!({}), 404),
        ("ask_user", json!({"args": {"question": "?"}}), 404),
        ("add_task", json!({}), 422),
        (
            "add_task",
            json!({"args": {"description": "x", "user_id": "bert"}}),
            422,
        ),
        (
            "add_task",
            json!({"args": {"description": "x"}, "user_id": "bert"}),
            422,
        ),
        ("add_task", json!({"args": []}), 422),
        (
            "delete_task",
            json!({"args": {"task_id": "no such words"}}),
            422,
        ),
    ] {
        let refused = invoke(tool, body.clone()).await;
        assert_eq!(refused.status, status, "{tool} {body}: {refused:?}");
        assert!(refused.head.contains("application/problem+json"));
    }
    assert_eq!(
        ask(
            &service,
            &anna,
            "GET",
            "/v1/tasks?status=some",
            &Value::Null
        )
        .await
        .status,
        422
    );
    service.stop().await;
}

#[tokio::test]
async fn a_request_with_a_name_is_one_request() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    let send = async |path: &str, key: &str, body: Value| {
        let headers = [
            ("Authorization", format!("Bearer {anna}")),
            ("Idempotency-Key", key.to_owned()),
        ];
        service.ask("POST", path, &headers, &body.to_string()).await
    };
    let add = json!({"args": {"description": "buy milk"}});
    let first = send("/v1/tools/add_task/invoke", "k1", add.clone()).await;
    let again = send("/v1/tools/add_task/invoke", "k1", add.clone()).await;
    assert_eq!((first.status, &first.body), (200, &again.body), "{again:?}");
    for (tool, args) in [
        ("add_task", json!({"description": "buy bread"})),
        ("list_tasks", json!({})),
        ("complete_task", json!({"task_id": "1"})),
    ] {
        let other = send(
            &format!("/v1/tools/{tool}/invoke"),
            "k1",
            json!({ "args": args }),
        )
        .await;
        assert_eq!(
            (other.status, &other.body["code"]),
            (422, &json!("idempotency_key_reused")),
            "{other:?}"
        );
    }
    // With a name, also the answer to a question can be sent again.
    let asked = send(
        "/v1/tools/delete_task/invoke",
        "k2",
        json!({"args": {"task_id": "milk"}}),
    )
    .await;
    assert_eq!(asked.status, 409);
    let yes = json!({"args": {"task_id": "milk"}, "confirm": asked.body["confirm"]});
    let gone = send("/v1/tools/delete_task/invoke", "k2", yes.clone()).await;
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_eq!(
        send("/v1/tools/delete_task/invoke", "k2", yes).await.body,
        gone.body
    );
    assert_eq!(
        get(&service, &anna, "/v1/tasks").await,
        json!({"tasks": [], "next_cursor": null})
    );

    let said = send("/v1/chat", "k3", json!({"message": "hello"})).await;
    assert_eq!(said.status, 200, "{said:?}");
    assert_eq!(
        send("/v1/chat", "k3", json!({"message": "hello"}))
            .await
            .body,
        said.body
    );
    let other = send("/v1/chat", "k3", json!({"message": "something else"})).await;
    assert_eq!(
        (other.status, &other.body["code"]),
        (422, &json!("idempotency_key_reused")),
        "{other:?}"
    );
    service.stop().await;
}
