//! `POST /v1/chat`.

use std::num::NonZeroU32;
use std::sync::Arc;

use adjutant_core::port::{ConversationFilter, ConversationStore, Journal as _, LogStore as _};
use adjutant_core::{AgentName, Allowance, Budgets};
use adjutant_core::{ConversationKey, DecisionFilter, Input, InputBody, InputId, UserId};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_store::sqlite::Store;
use adjutant_tools::FunctionTool;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::Running;
use crate::resources::ask;

const MILK: &str = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
{"text": "Gone."}
"#;

#[tokio::test]
async fn a_message_is_answered_and_a_deletion_needs_confirmation() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    let added = service
        .chat(
            &anna,
            &json!({"message": "add buy milk", "thread_id": "t_1"}),
        )
        .await;
    assert_eq!(added.status, 200, "{added:?}");
    assert_eq!(
        (
            &added.body["thread_id"],
            &added.body["decision"],
            &added.body["content"],
            &added.body["outcome"]
        ),
        (
            &json!("t_1"),
            &json!("INVOKE_TOOL"),
            &json!("Added."),
            &json!("SUCCESS:TASK_COMPLETED")
        )
    );
    assert_eq!(added.body["tools_used"][0]["tool"], "add_task");
    assert_eq!(added.body["tools_used"][0]["result"]["success"], true);

    let asked = service
        .chat(&anna, &json!({"message": "delete it", "thread_id": "t_1"}))
        .await;
    assert_eq!(
        (asked.status, &asked.body["decision"]),
        (200, &json!("REQUEST_CONFIRMATION")),
        "{asked:?}"
    );
    let pending = &asked.body["pending"][0];
    assert_eq!(
        (&pending["tool"], &pending["args"]["task_id"]),
        (&json!("delete_task"), &json!("1"))
    );

    let resume = |approved| json!({"thread_id": "t_1", "resume": [{"interrupt_id": pending["interrupt_id"], "approved": approved}]});
    // Only the very word counts.
    let unclear = service.chat(&anna, &resume(json!("yes"))).await;
    assert_eq!(
        (unclear.status, &unclear.body["code"]),
        (422, &json!("invalid_request")),
        "{unclear:?}"
    );
    let gone = service.chat(&anna, &resume(json!(true))).await;
    assert_eq!(
        (gone.status, &gone.body["content"]),
        (200, &json!("Gone.")),
        "{gone:?}"
    );
    // A second yes is told what became of the first, and so is a no that comes behind it.
    for late in [true, false] {
        let again = service.chat(&anna, &resume(json!(late))).await;
        assert_eq!(
            (again.status, &again.body["run_id"]),
            (200, &gone.body["run_id"]),
            "{again:?}"
        );
        assert!(
            again.body["content"].as_str().unwrap().ends_with("Gone."),
            "{again:?}"
        );
        assert_eq!(
            again.body["notices"][0]["code"], "answered_before",
            "{again:?}"
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn a_user_cannot_answer_for_another() {
    let service = Running::start(MILK).await;
    let (anna, bert) = (service.token("anna").await, service.token("bert").await);
    service
        .chat(
            &anna,
            &json!({"message": "add buy milk", "thread_id": "t_1"}),
        )
        .await;
    let asked = service
        .chat(&anna, &json!({"message": "delete it", "thread_id": "t_1"}))
        .await;
    let interrupt = &asked.body["pending"][0]["interrupt_id"];
    let stolen =
        json!({"thread_id": "t_1", "resume": [{"interrupt_id": interrupt, "approved": true}]});
    assert_eq!(service.chat(&bert, &stolen).await.status, 404);
    assert_eq!(service.chat(&anna, &stolen).await.body["content"], "Gone.");
    service.stop().await;
}

#[tokio::test]
async fn invalid_requests_name_the_invalid_member() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let anna = service.token("anna").await;
    for (body, words) in [
        (json!({}), "message or resume"),
        (
            json!({"message": "x", "resume": [{"interrupt_id": "i", "approved": true}]}),
            "message or resume",
        ),
        (json!({"message": 7}), "message"),
        (json!({"message": "x", "user_id": "bert"}), "user_id"),
        (json!({"message": "  "}), "empty"),
        (json!({"message": "x", "thread_id": ""}), "thread_id"),
        (json!([]), ""),
    ] {
        let refused = service.chat(&anna, &body).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{body}: {refused:?}"
        );
        assert!(
            refused.head.contains("application/problem+json"),
            "{}",
            refused.head
        );
        assert!(
            refused.body["detail"].as_str().unwrap().contains(words),
            "{refused:?}"
        );
    }
    let token = [("Authorization", format!("Bearer {anna}"))];
    let broken = service
        .ask("POST", "/v1/chat", &token, "{\"message\": ")
        .await;
    assert_eq!(
        (broken.status, &broken.body["code"]),
        (422, &json!("invalid_request"))
    );
    let large = json!({"message": "x".repeat(1024 * 1024 + 1)});
    assert_eq!(service.chat(&anna, &large).await.status, 413);
    assert_eq!(
        service
            .ask("POST", "/v1/nowhere", &token, "{}")
            .await
            .status,
        404
    );
    assert_eq!(
        service.ask("DELETE", "/v1/chat", &token, "").await.status,
        405
    );
    // Nothing of that was answered by the model.
    assert_eq!(
        service.chat(&anna, &json!({"message": "hi"})).await.body["content"],
        "Hello."
    );
    service.stop().await;
}

#[tokio::test]
async fn a_model_that_fails_has_the_status_of_its_failure() {
    let script = r#"{"fault": "rate_limit", "retry_after_s": 7, "repeat": true}"#;
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    let limited = service.chat(&anna, &json!({"message": "hi"})).await;
    assert_eq!(
        (limited.status, &limited.body["code"]),
        (429, &json!("rate_limit")),
        "{limited:?}"
    );
    assert!(limited.head.contains("retry-after: 7"), "{}", limited.head);
    assert!(
        limited.body["run_id"].is_string() && limited.body["request_id"].is_string(),
        "{limited:?}"
    );
    service.stop().await;
}

/// Whatever came of a turn, its decision stands in the same members.
#[tokio::test]
async fn a_turn_that_failed_is_a_problem_with_the_decision_and_what_was_done() {
    let faults = [
        (
            r#"{"fault": "timeout", "repeat": true}"#,
            504,
            "ERROR:LLM_FAILURE",
        ),
        (
            r#"{"fault": "server", "repeat": true}"#,
            503,
            "ERROR:LLM_FAILURE",
        ),
        (
            r#"{"fault": "invalid_response", "repeat": true}"#,
            502,
            "ERROR:LLM_FAILURE",
        ),
        (
            r#"{"fault": "rate_limit", "repeat": true}"#,
            429,
            "REFUSAL:RATE_LIMITED",
        ),
    ];
    for (fault, status, outcome) in faults {
        let add = r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}"#;
        let service = Running::start(&format!("{add}\n{fault}")).await;
        let anna = service.token("anna").await;
        let failed = service
            .chat(
                &anna,
                &json!({"message": "add buy milk", "thread_id": "t_1"}),
            )
            .await;
        assert_eq!(failed.status, status, "{failed:?}");
        assert!(
            failed.head.contains("application/problem+json"),
            "{}",
            failed.head
        );
        let body = &failed.body;
        assert_eq!(
            (
                &body["decision"],
                &body["intent"],
                &body["outcome"],
                &body["thread_id"]
            ),
            (
                &json!("INVOKE_TOOL"),
                &json!("CREATE_TASK"),
                &json!(outcome),
                &json!("t_1")
            ),
            "{failed:?}"
        );
        assert_eq!(body["content"], body["detail"]);
        assert!(
            body["content"]
                .as_str()
                .unwrap()
                .starts_with("Added “buy milk”.\n"),
            "{failed:?}"
        );
        assert_eq!(
            (&body["tools_used"][0]["tool"], &body["pending"]),
            (&json!("add_task"), &json!([]))
        );
        // What exactly failed is for whoever runs the service.
        assert!(
            body.get("error").is_none() && !failed.text.contains("scripted "),
            "{failed:?}"
        );
        let bearer = [("Authorization", format!("Bearer {anna}"))];
        let path = format!("/v1/decisions/{}", body["run_id"].as_str().unwrap());
        let row = service.ask("GET", &path, &bearer, "").await;
        assert_eq!(
            (row.status, &row.body["outcome"]),
            (200, &body["outcome"]),
            "{row:?}"
        );
        service.stop().await;
    }
}

/// Two tabs: one is asked, the other sends a message. Its key is about its own message, before the
/// answer and after it.
#[tokio::test]
async fn a_message_sent_while_a_question_waits_is_queued_and_its_key_reports_its_own_turn() {
    let script = concat!(
        "{\"match\": \"remove\", \"calls\": [{\"name\": \"delete_task\", \"args\": {\"task_id\": \"1\"}}]}\n",
        "{\"match\": \"buy bread\", \"calls\": [{\"name\": \"add_task\", \"args\": {\"description\": \"bread\"}}]}\n",
        "{\"match\": \"\", \"repeat\": true, \"text\": \"Done.\"}",
    );
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    let bearer = ("Authorization", format!("Bearer {anna}"));
    let milk = json!({"args": {"description": "milk"}}).to_string();
    let added = service
        .ask(
            "POST",
            "/v1/tools/add_task/invoke",
            std::slice::from_ref(&bearer),
            &milk,
        )
        .await;
    assert_eq!(added.status, 200, "{added:?}");
    let say = async |key: &str, message: &str| {
        let headers = [bearer.clone(), ("Idempotency-Key", key.to_owned())];
        let body = json!({"message": message, "thread_id": "t"}).to_string();
        service.ask("POST", "/v1/chat", &headers, &body).await.body
    };
    let asked = say("a", "remove it").await;
    assert_eq!(
        (&asked["outcome"], &asked["disposition"]),
        (&json!("PENDING:CONFIRMATION"), &json!("ran"))
    );
    for _ in 0..2 {
        let queued = say("b", "buy bread").await;
        assert_eq!(
            (&queued["disposition"], &queued["pending"]),
            (&json!("queued"), &asked["pending"]),
            "{queued}"
        );
        assert_eq!(queued["notices"][0]["code"], "message_queued");
    }
    let yes = say("c", "yes").await;
    assert_eq!(
        (&yes["disposition"], &yes["run_id"]),
        (&json!("answered"), &asked["run_id"]),
        "{yes}"
    );
    let ran = say("b", "buy bread").await;
    assert_eq!(
        (
            &ran["disposition"],
            &ran["tools_used"][0]["tool"],
            ran["run_id"] == asked["run_id"]
        ),
        (&json!("ran"), &json!("add_task"), false),
        "{ran}"
    );
    let tasks = service.ask("GET", "/v1/tasks", &[bearer], "").await;
    let tasks = tasks.body["tasks"].as_array().unwrap();
    let left: Vec<_> = tasks.iter().map(|task| &task["description"]).collect();
    assert_eq!(left, ["bread"]);
    service.stop().await;
}

#[tokio::test]
async fn a_request_with_a_name_sent_again_is_the_same_request() {
    let script = concat!(
        "{\"calls\": [{\"name\": \"add_task\", \"args\": {\"description\": \"buy milk\"}}]}\n{\"text\": \"Added.\"}\n",
        "{\"calls\": [{\"name\": \"delete_task\", \"args\": {\"task_id\": \"1\"}}]}\n{\"text\": \"Gone.\"}",
    );
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    let send = async |name: &str, body: &Value| {
        let headers = [
            ("Authorization", format!("Bearer {anna}")),
            ("Idempotency-Key", name.to_owned()),
        ];
        service
            .ask("POST", "/v1/chat", &headers, &body.to_string())
            .await
    };
    let add = json!({"message": "add buy milk"});
    // Both without a conversation's name, at once.
    let (one, two) = tokio::join!(send("a-1", &add), send("a-1", &add));
    assert_eq!(
        (one.status, &one.body["content"]),
        (200, &json!("Added.")),
        "{one:?}"
    );
    assert_eq!(one.body["run_id"], two.body["run_id"], "{two:?}");
    let thread = &one.body["thread_id"];
    let asked = send(
        "a-2",
        &json!({"message": "drop the milk", "thread_id": thread}),
    )
    .await;
    let interrupt = &asked.body["pending"][0]["interrupt_id"];
    let yes =
        json!({"thread_id": thread, "resume": [{"interrupt_id": interrupt, "approved": true}]});
    let first = send("a-3", &yes).await;
    let again = send("a-3", &yes).await;
    assert_eq!(
        (&first.body["content"], &again.body["content"]),
        (&json!("Gone."), &json!("Gone.")),
        "{again:?}"
    );
    // Under another name, or none, it is told what became of it.
    let anew = send("a-4", &yes).await;
    assert_eq!(
        (anew.status, &anew.body["run_id"]),
        (200, &first.body["run_id"]),
        "{anew:?}"
    );
    assert!(
        anew.body["content"].as_str().unwrap().ends_with("Gone."),
        "{anew:?}"
    );
    assert_eq!(anew.body["notices"][0]["code"], "answered_before");
    let never = json!({"thread_id": yes["thread_id"], "resume": [{"interrupt_id": "0123", "approved": true}]});
    assert_eq!(send("a-5", &never).await.status, 404);
    assert_eq!(send(" ", &add).await.status, 422);
    service.stop().await;
}

#[tokio::test]
async fn a_used_up_budget_is_a_429_with_the_tools_that_were_used() {
    let per_day = Allowance {
        model_calls: Some(1),
        ..Allowance::default()
    };
    let service = Running::start_within(
        MILK,
        Budgets {
            per_day,
            ..Budgets::default()
        },
    )
    .await;
    let (anna, bert) = (service.token("anna").await, service.token("bert").await);
    let ended = service
        .chat(&anna, &json!({"message": "add buy milk"}))
        .await;
    assert_eq!(
        (ended.status, &ended.body["code"]),
        (429, &json!("budget_used_up")),
        "{ended:?}"
    );
    let wait = ended.body["retry_after"].as_u64().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    let detail = ended.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("buy milk") && detail.contains("midnight UTC"),
        "{detail}"
    );
    assert!(
        ended.body["run_id"].is_string() && !ended.body.to_string().contains("budget.per_day"),
        "{ended:?}"
    );
    // There is something again when the day ends, and what is left is seen.
    let again_in = ended.body["retry_after"].as_u64().unwrap();
    assert!(
        ended.body["budget"] == "day" && (1..=86_400).contains(&again_in),
        "{ended:?}"
    );
    // Another user has a day of their own.
    let other = service.chat(&bert, &json!({"message": "hello"})).await;
    assert_eq!(
        (other.status, &other.body["content"]),
        (200, &json!("Added.")),
        "{other:?}"
    );
    let again = service
        .chat(&anna, &json!({"message": "add buy milk"}))
        .await;
    assert_eq!(
        (
            again.status,
            again.body["detail"].as_str().unwrap().contains("buy milk")
        ),
        (429, false)
    );
    service.stop().await;
}

#[tokio::test]
async fn an_approval_may_edit_arguments_and_invalid_ones_are_refused() {
    let service = Running::start(MILK).await;
    let anna = service.token("anna").await;
    let chat = async |body: Value| service.chat(&anna, &body).await;
    chat(json!({"message": "add buy milk", "thread_id": "t_1"})).await;
    let asked = chat(json!({"message": "delete it", "thread_id": "t_1"})).await;
    let pending = &asked.body["pending"][0];
    assert_eq!(
        (&pending["kind"], &pending["since"]),
        (&json!("confirmation"), &Value::Null)
    );
    let resume = |mut answer: Value| {
        answer["interrupt_id"] = pending["interrupt_id"].clone();
        json!({"thread_id": "t_1", "resume": [answer]})
    };
    for (answer, words) in [
        (
            json!({"approved": true, "editedArgs": {"task_id": "9"}}),
            "these arguments",
        ),
        (json!({"approved": true, "editedArgs": {}}), "task_id"),
        (json!({"approved": true, "editedArgs": 7}), "editedArgs"),
        (
            json!({"approved": false, "editedArgs": {"task_id": "1"}}),
            "go with a yes",
        ),
        (json!({"verdict": "done"}), "a yes or a no"),
        (json!({"verdict": "perhaps"}), "perhaps"),
        (
            json!({"approved": true, "verdict": "done"}),
            "either approved",
        ),
        (json!({}), "either approved"),
    ] {
        let refused = chat(resume(answer.clone())).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{answer}: {refused:?}"
        );
        assert!(
            refused.body["detail"].as_str().unwrap().contains(words),
            "{answer}: {refused:?}"
        );
    }
    let gone = chat(resume(
        json!({"approved": true, "editedArgs": {"task_id": "buy milk"}}),
    ))
    .await;
    assert_eq!(
        (gone.status, &gone.body["content"]),
        (200, &json!("Gone.")),
        "{gone:?}"
    );
    assert_eq!(gone.body["tools_used"][0]["args"], json!({"task_id": "1"}));
    service.stop().await;
}

#[tokio::test]
async fn the_user_resolves_a_call_in_doubt() {
    let script = r#"
        {"calls": [{"name": "send_letter", "args": {"to": "Anna"}}]}
        {"text": "That is that."}
    "#;
    for (verdict, outcome, told) in [
        (
            "done",
            "SUCCESS:TASK_COMPLETED",
            json!({"status": "done", "note": "confirmed by the person"}),
        ),
        ("retry", "SUCCESS:TASK_COMPLETED", json!({"letter": 2})),
        ("leave", "INTERRUPTED:IN_DOUBT", Value::Null),
    ] {
        let service = Running::start(script).await;
        let anna = service.token("anna").await;
        let asked = service
            .chat(&anna, &json!({"message": "write", "thread_id": "t_1"}))
            .await;
        assert_eq!(asked.status, 200, "{asked:?}");
        assert_eq!(
            (&asked.body["outcome"], &asked.body["decision"]),
            (
                &json!("INTERRUPTED:IN_DOUBT"),
                &json!("REQUEST_CONFIRMATION")
            )
        );
        let pending = &asked.body["pending"][0];
        assert_eq!(
            (&pending["kind"], &pending["args"]),
            (&json!("doubt"), &json!({"to": "Anna"}))
        );
        assert!(pending["since"].is_string(), "{pending}");
        let answer = |body: Value| {
            let mut answer = body;
            answer["interrupt_id"] = pending["interrupt_id"].clone();
            json!({"thread_id": "t_1", "resume": [answer]})
        };
        let wrong = service
            .chat(&anna, &answer(json!({"approved": true})))
            .await;
        assert_eq!(wrong.status, 422, "a yes says nothing about it: {wrong:?}");
        let done = service
            .chat(&anna, &answer(json!({ "verdict": verdict })))
            .await;
        assert_eq!(
            (done.status, &done.body["outcome"]),
            (200, &json!(outcome)),
            "{verdict}: {done:?}"
        );
        let data = &done.body["tools_used"][0]["result"]["data"];
        let kept = if verdict == "leave" {
            data["status"] == "unknown"
        } else {
            *data == told
        };
        assert!(kept, "{verdict}: {data}");
        assert_eq!(done.body["pending"], json!([]));
        // The time is that of the run that ended, and none where nobody knows of one.
        let told = ask(
            &service,
            &anna,
            "GET",
            "/v1/threads/t_1/messages",
            &Value::Null,
        )
        .await;
        let messages = told.body["messages"].as_array().unwrap();
        let result = messages
            .iter()
            .find(|message| message["role"] == "tool")
            .unwrap();
        assert_eq!(
            result.get("ms").is_some(),
            verdict == "retry",
            "{verdict}: {result}"
        );
        assert!(result["asked"].is_string(), "{verdict}: {result}");
        service.stop().await;
    }
}

#[tokio::test]
async fn an_orderly_stop_lets_a_turn_end_whose_client_is_gone() {
    let service = Running::start(r#"{"text": "Late.", "delay_ms": 500}"#).await;
    let anna = service.token("anna").await;
    let store = service.store.clone();
    let begun = async {
        while store
            .unsettled(&AgentName::adjutant(), None)
            .await
            .unwrap()
            .is_empty()
            && store
                .decisions(&UserId::new("anna").unwrap(), &DecisionFilter::default())
                .await
                .unwrap()
                .is_empty()
        {
            tokio::task::yield_now().await;
        }
    };
    let request = json!({"message": "hi"});
    tokio::select! {
        answer = service.chat(&anna, &request) => panic!("answered too early: {answer:?}"),
        () = begun => {}
    }
    service.stop().await;
    let decisions = store
        .decisions(&UserId::new("anna").unwrap(), &DecisionFilter::default())
        .await
        .unwrap();
    assert_eq!(
        (decisions.len(), decisions[0].content.as_deref()),
        (1, Some("Late."))
    );
    assert!(decisions[0].ended_at.is_some());
}

#[tokio::test]
async fn a_requests_name_is_no_conversations_name() {
    let service = Running::start("{\"text\": \"One.\"}\n{\"text\": \"Two.\"}").await;
    let anna = service.token("anna").await;
    service
        .chat(&anna, &json!({"message": "a", "thread_id": "1"}))
        .await;
    let headers = [
        ("Authorization", format!("Bearer {anna}")),
        ("Idempotency-Key", "1".to_owned()),
    ];
    let second = service
        .ask(
            "POST",
            "/v1/chat",
            &headers,
            &json!({"message": "b"}).to_string(),
        )
        .await;
    assert_eq!(second.body["content"], "Two.");
    let loaded = ConversationStore::list(
        &*service.store,
        &AgentName::adjutant(),
        &UserId::new("anna").unwrap(),
        &ConversationFilter::newest(9),
    )
    .await
    .unwrap();
    assert_eq!(loaded.len(), 2);
    service.stop().await;
}

#[tokio::test]
async fn a_full_message_queue_refuses_further_messages() {
    let script = concat!(
        "{\"calls\": [{\"name\": \"wait\", \"args\": {}}]}\n{\"text\": \"Waited.\"}\n",
        "{\"text\": \"And more.\", \"repeat\": true}",
    );
    let (began, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gates = (began.clone(), release.clone());
    let tool = FunctionTool::new("wait", "Waits.", json!({"type": "object"}), move |_, _| {
        let (began, release) = gates.clone();
        async move {
            began.add_permits(1);
            release.acquire().await.unwrap().forget();
            Ok(json!({}))
        }
    });
    let store = Arc::new(
        Store::in_memory()
            .await
            .unwrap()
            .with_messages_queued_max(NonZeroU32::MIN),
    );
    let service =
        Running::start_on(store.clone(), script, |builder| builder.tool(tool.unwrap())).await;
    let anna = service.token("anna").await;
    let thread = "00000000-0000-7000-8000-000000000001";
    let say = json!({"message": "go on", "thread_id": thread});
    let running = service.chat(&anna, &say);
    let refused = async {
        began.acquire().await.unwrap().forget();
        let key = ConversationKey {
            agent: AgentName::adjutant(),
            user: UserId::new("anna").unwrap(),
            conversation: thread.parse().unwrap(),
        };
        let waits = Input::new(
            InputId::new("waits").unwrap(),
            Timestamp::UNIX_EPOCH,
            InputBody::message("and"),
        );
        store.submit(&key, &waits).await.unwrap();
        let chat = service.chat(&anna, &say).await;
        let run = json!({"threadId": thread, "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "hm"}]});
        let bearer = |accept: &str| {
            [
                ("Authorization", format!("Bearer {anna}")),
                ("Accept", accept.to_owned()),
            ]
        };
        let whole = service
            .ask(
                "POST",
                "/v1/runs",
                &bearer("application/json"),
                &run.to_string(),
            )
            .await;
        let told = service
            .ask(
                "POST",
                "/v1/runs",
                &bearer("text/event-stream"),
                &run.to_string(),
            )
            .await;
        release.add_permits(1);
        [chat, whole, told]
    };
    let (answered, refused) = tokio::join!(running, refused);
    assert_eq!(
        (answered.status, &answered.body["content"]),
        (200, &json!("Waited.")),
        "{answered:?}"
    );
    for refused in refused {
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (429, &json!("limit_reached")),
            "{refused:?}"
        );
        assert!(
            refused.head.contains("\r\nretry-after: "),
            "{}",
            refused.head
        );
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(
            detail.contains("as may (1)") && detail.contains("stop the turn"),
            "{detail}"
        );
    }
    // What waited is answered, and there is room again.
    let next = service.chat(&anna, &say).await;
    assert_eq!(
        (next.status, &next.body["content"]),
        (200, &json!("And more.")),
        "{next:?}"
    );
    let told = service.stop().await;
    assert!(
        !told.iter().any(|line| line.contains("waiting")),
        "nobody has to mend anything: {told:?}"
    );
}

#[tokio::test]
async fn the_zone_of_a_request_puts_the_local_time_in_front_of_its_message() {
    let script = r#"{"text": "Noted.", "repeat": true}"#;
    let model = Arc::new(ScriptedModel::from_jsonl(script).unwrap());
    let store = Arc::new(Store::in_memory().await.unwrap());
    let service = Running::start_on(store, script, |builder| {
        builder
            .model(model.clone())
            .clock(|| "2026-06-01T12:00:00Z".parse().unwrap())
    })
    .await;
    let anna = service.token("anna").await;
    let last = || {
        model
            .requests()
            .pop()
            .unwrap()
            .messages
            .pop()
            .unwrap()
            .text()
    };
    let mut body = json!({"message": "hello", "time_zone": "Europe/Berlin"});
    assert_eq!(service.chat(&anna, &body).await.status, 200);
    let expected = "[The person sent this message on Monday, 2026-06-01, 14:00 (Europe/Berlin, UTC+02:00).]\n\nhello";
    assert_eq!(last(), expected);
    body["time_zone"] = json!("Middle/Earth");
    let refused = service.chat(&anna, &body).await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (422, &json!("invalid_request")),
        "{refused:?}"
    );
    assert_eq!(
        service
            .chat(&anna, &json!({"message": "hello"}))
            .await
            .status,
        200
    );
    assert_eq!(last(), "hello", "an unknown zone is not guessed");
    let headers = [("Authorization", format!("Bearer {anna}"))];
    for (zone, expected) in [
        ("Asia/Tokyo", "21:00 (Asia/Tokyo, UTC+09:00)"),
        ("Nowhere", ""),
    ] {
        let run = json!({"threadId": zone, "runId": zone, "forwardedProps": {"time_zone": zone},
            "messages": [{"id": "m", "role": "user", "content": "hello"}]});
        let answer = service
            .ask("POST", "/v1/runs", &headers, &run.to_string())
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let said = last();
        assert!(said.contains(expected), "{said}");
        assert_eq!(said == "hello", expected.is_empty());
    }
    service.stop().await;
}
