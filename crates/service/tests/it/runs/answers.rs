//! Pending calls in AG-UI runs: interrupts, and the answers to them.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

use super::*;

#[tokio::test]
async fn a_deletion_ends_the_run_with_an_interrupt_and_continues_when_approved() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    anna.run(&say("t", "r1", "add buy milk")).await;
    let asked = anna.run(&say("t", "r2", "delete it")).await;
    let waits = interrupts(&asked);
    assert_eq!(waits.len(), 1);
    let interrupt = &waits[0];
    assert_eq!(interrupt["reason"], "confirmation");
    assert!(
        interrupt["message"].as_str().unwrap().contains("buy milk"),
        "{interrupt}"
    );
    assert_eq!(interrupt["metadata"]["tool"], "delete_task");
    assert_eq!(interrupt["metadata"]["args"], json!({"task_id": "1"}));
    assert_eq!(
        interrupt["toolCallId"],
        of_kind(&asked, "TOOL_CALL_START")[0]["toolCallId"]
    );
    assert!(interrupt["expiresAt"].is_string() && interrupt["responseSchema"].is_object());
    // This client says that it has nothing of the first turn: all messages come before the
    // question.
    let order = kinds(&asked);
    let at = |kind| order.iter().rposition(|known| *known == kind).unwrap();
    assert!(at("MESSAGES_SNAPSHOT") < at("RUN_FINISHED"));
    let messages = of_kind(&asked, "MESSAGES_SNAPSHOT")[0]["messages"]
        .as_array()
        .unwrap();
    assert_eq!(
        messages.last().unwrap()["toolCalls"][0]["id"],
        interrupt["toolCallId"]
    );

    let gone = anna
        .run(&resume(
            "t",
            "r3",
            &[(&interrupt["id"], json!({"approved": true}))],
        ))
        .await;
    assert_eq!(last(&gone)["outcome"]["type"], "success", "{gone:#?}");
    assert_eq!(text(&gone), "Gone.");
    assert!(
        of_kind(&gone, "TOOL_CALL_START").is_empty(),
        "the client has the call: {gone:#?}"
    );
    assert_eq!(
        of_kind(&gone, "TOOL_CALL_RESULT")[0]["toolCallId"],
        interrupt["toolCallId"]
    );
    assert_eq!(
        of_kind(&gone, "STATE_DELTA")[0]["delta"],
        json!([{"op": "remove", "path": "/tasks/0"}])
    );
    assert_eq!(
        decision(&gone)["decision_id"],
        decision(&asked)["decision_id"],
        "one turn"
    );
    assert_eq!(anna.tasks("anna").await, 0);

    // A front end that replays its runs is not asked again.
    for path in ["/v1/runs/r2/events", "/v1/runs/r2/events?thread_id=t"] {
        let replayed = anna.listen(path, None).await.all().await;
        assert_eq!(
            last(&replayed)["outcome"]["type"],
            "success",
            "{replayed:#?}"
        );
        assert_eq!(text(&replayed), "Gone.");
        assert_eq!(decision(&replayed)["outcome"], decision(&gone)["outcome"]);
    }
    service.stop().await;
}

#[tokio::test]
async fn pending_calls_have_to_be_answered_first() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let interrupt = anna.ask_to_delete("t").await;
    let refused = anna.run(&say("t", "r3", "yes")).await;
    assert_eq!(kinds(&refused), ["RUN_ERROR"], "{refused:#?}");
    assert_eq!(last(&refused)["code"], "pending_confirmation");
    let refused = anna.run_json(&say("t", "r4", "yes")).await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (409, &json!("pending_confirmation")),
        "{refused:?}"
    );
    assert_eq!(refused.body["interrupt_ids"], json!([interrupt["id"]]));
    // Another conversation is not concerned; and nothing of it was a yes.
    assert_eq!(text(&anna.run(&say("other", "r5", "hi")).await), "Gone.");
    assert_eq!(anna.tasks("anna").await, 1);
    service.stop().await;
}

#[tokio::test]
async fn only_true_approves_a_call() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let interrupt = anna.ask_to_delete("t").await;
    for (at, payload) in [
        json!({"approved": "yes"}),
        json!({"approved": "true"}),
        json!({"approved": 1}),
        json!({"approved": null}),
        json!({}),
        json!(null),
        json!(true),
        json!({"approved": true, "verdict": "done"}),
        json!({"approved": true, "sure": true}),
    ]
    .into_iter()
    .enumerate()
    {
        let listening = anna
            .post(&resume(
                "t",
                &format!("no-{at}"),
                &[(&interrupt["id"], payload.clone())],
            ))
            .await;
        assert_eq!(listening.status, 422, "{payload}: {}", listening.head);
        assert!(
            listening.head.contains("application/problem+json"),
            "{}",
            listening.head
        );
    }
    assert_eq!(anna.tasks("anna").await, 1);
    let kept = anna
        .run(&resume(
            "t",
            "no",
            &[(&interrupt["id"], json!({"approved": false}))],
        ))
        .await;
    assert_eq!(
        (
            last(&kept)["outcome"]["type"].as_str(),
            anna.tasks("anna").await
        ),
        (Some("success"), 1)
    );
    service.stop().await;
}

#[tokio::test]
async fn other_arguments_pass_the_gate_again() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let interrupt = anna.ask_to_delete("t").await;
    for (at, args) in [
        json!({"task_id": "9"}),
        json!({}),
        json!({"task_id": 7, "more": 1}),
    ]
    .into_iter()
    .enumerate()
    {
        let payload = json!({"approved": true, "editedArgs": args});
        let again = anna
            .run(&resume(
                "t",
                &format!("edit-{at}"),
                &[(&interrupt["id"], payload)],
            ))
            .await;
        assert_eq!(interrupts(&again)[0]["id"], interrupt["id"], "{args}");
        assert_eq!(
            decision(&again)["notices"][0]["code"],
            "answer_refused",
            "{args}"
        );
    }
    let payload = json!({"approved": true, "editedArgs": {"task_id": "buy milk"}});
    let gone = anna
        .run(&resume("t", "edit", &[(&interrupt["id"], payload)]))
        .await;
    assert_eq!(
        (
            last(&gone)["outcome"]["type"].as_str(),
            anna.tasks("anna").await
        ),
        (Some("success"), 0)
    );
    service.stop().await;
}

#[tokio::test]
async fn nothing_runs_with_arguments_that_were_not_shown() {
    let script = r#"
{"calls": [{"name": "add_task", "args": {"description": "tea"}}, {"name": "add_task", "args": {"description": "milk"}}]}
{"text": "Added."}
{"calls": [{"name": "delete_task", "args": {"task_id": "tea"}}]}
{"text": "Gone."}
"#;
    let service = Running::start(script).await;
    let (anna, bert) = (
        Client::new(&service, "anna").await,
        Client::new(&service, "bert").await,
    );
    anna.run(&say("t", "r1", "add tea and milk")).await;
    let waits = interrupts(&anna.run(&say("t", "r2", "delete the tea")).await);
    let id = waits[0]["id"].as_str().unwrap();
    let preview = async |client: &Client, args: Value| {
        let body = json!({"thread_id": "t", "args": args}).to_string();
        let token = [("Authorization", client.token.clone())];
        service
            .ask("POST", &format!("/v1/pending/{id}/preview"), &token, &body)
            .await
    };

    // What it would be is told to the one it asks, and to nobody else.
    let shown = preview(&anna, json!({"task_id": "milk"})).await;
    assert_eq!(
        (shown.status, &shown.body["preview"]),
        (200, &json!("Delete “milk”")),
        "{shown:?}"
    );
    assert_eq!(shown.body["args"], json!({"task_id": "2"}));
    assert_eq!(preview(&bert, json!({"task_id": "milk"})).await.status, 404);
    for (args, words) in [
        (json!({"task_id": "9"}), "9"),
        (json!({}), "task_id"),
        (json!([]), "args"),
    ] {
        let refused = preview(&anna, args.clone()).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{args}"
        );
        assert!(
            refused.body["detail"].as_str().unwrap().contains(words),
            "{refused:?}"
        );
    }
    assert_eq!(anna.tasks("anna").await, 2);

    // A yes without the preview, or with that of something else, is asked about.
    let edited =
        |shown: &Value| json!({"approved": true, "editedArgs": {"task_id": "2"}, "shown": shown});
    let again = anna
        .run(&resume("t", "r3", &[(&json!(id), edited(&json!(id)))]))
        .await;
    let asked = interrupts(&again).remove(0);
    assert_eq!(
        (&asked["id"], &asked["message"]),
        (&shown.body["interrupt_id"], &json!("Delete “milk”")),
        "{asked}"
    );
    assert_eq!(decision(&again)["notices"][0]["code"], "asked_again");
    assert_eq!(anna.tasks("anna").await, 2);
    // What was asked before waits no more.
    assert_eq!(preview(&anna, json!({"task_id": "milk"})).await.status, 404);
    let answers = [(
        &asked["id"],
        json!({"approved": true, "editedArgs": {"task_id": "tea"}}),
    )];
    let back = interrupts(&anna.run(&resume("t", "r4", &answers)).await).remove(0);
    assert_eq!(back["id"], id);

    // With it, it is done at once, and it is what was shown.
    let gone = anna
        .run(&resume(
            "t",
            "r5",
            &[(&json!(id), edited(&shown.body["interrupt_id"]))],
        ))
        .await;
    assert_eq!(last(&gone)["outcome"]["type"], "success", "{gone:?}");
    let left = service
        .ask(
            "GET",
            "/v1/tasks",
            &[("Authorization", anna.token.clone())],
            "",
        )
        .await;
    assert_eq!(
        (
            left.body["tasks"].as_array().unwrap().len(),
            &left.body["tasks"][0]["description"]
        ),
        (1, &json!("tea"))
    );
    service.stop().await;
}

#[tokio::test]
async fn one_answer_covers_everything_that_waits() {
    let script = r#"
{"calls": [{"name": "add_task", "args": {"description": "tea"}}, {"name": "add_task", "args": {"description": "milk"}}]}
{"text": "Added."}
{"calls": [{"name": "delete_task", "args": {"task_id": "tea"}}, {"name": "delete_task", "args": {"task_id": "milk"}}]}
{"text": "As you say."}
"#;
    let service = Running::start(script).await;
    let anna = Client::new(&service, "anna").await;
    anna.run(&say("t", "r1", "add tea and milk")).await;
    let waits = interrupts(&anna.run(&say("t", "r2", "delete both")).await);
    assert_eq!(waits.len(), 2);
    let yes = json!({"approved": true});
    let half = anna
        .run(&resume("t", "r3", &[(&waits[0]["id"], yes.clone())]))
        .await;
    assert_eq!(
        (kinds(&half), &last(&half)["code"]),
        (vec!["RUN_ERROR"], &json!("pending_confirmation"))
    );
    assert_eq!(anna.tasks("anna").await, 2);
    let cancelled = json!({"interruptId": waits[1]["id"], "status": "cancelled"});
    let mut both = resume("t", "r4", &[(&waits[0]["id"], yes)]);
    both["resume"].as_array_mut().unwrap().push(cancelled);
    let done = anna.run(&both).await;
    assert_eq!(
        (
            last(&done)["outcome"]["type"].as_str(),
            anna.tasks("anna").await
        ),
        (Some("success"), 1)
    );
    // What was given up was not done, and the messages say so.
    let messages = of_kind(&done, "MESSAGES_SNAPSHOT")[0]["messages"].to_string();
    assert!(messages.contains("refused this"), "{messages}");
    service.stop().await;
}

#[tokio::test]
async fn an_answer_sent_again_is_the_same_answer() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let interrupt = anna.ask_to_delete("t").await;
    let yes = resume("t", "yes", &[(&interrupt["id"], json!({"approved": true}))]);
    let first = anna.run(&yes).await;
    assert_eq!(anna.run(&yes).await, first, "the same run");
    let again = anna
        .run(&resume(
            "t",
            "yes-2",
            &[(&interrupt["id"], json!({"approved": true}))],
        ))
        .await;
    assert_eq!(last(&again)["outcome"]["type"], "success", "{again:#?}");
    assert!(of_kind(&again, "TOOL_CALL_RESULT").is_empty());
    assert_eq!(decision(&again)["notices"][0]["code"], "answered_before");
    // A no that comes behind a yes changes nothing, and says so.
    let late = anna
        .run(&resume(
            "t",
            "no",
            &[(&interrupt["id"], json!({"approved": false}))],
        ))
        .await;
    assert_eq!(decision(&late)["notices"][0]["code"], "answered_before");
    // What was never asked is left out; as JSON there would be nothing to answer.
    let unknown = resume(
        "t",
        "unknown",
        &[(&json!("0123"), json!({"approved": true}))],
    );
    let nothing = anna.run(&unknown).await;
    assert_eq!(last(&nothing)["outcome"]["type"], "success", "{nothing:#?}");
    assert_eq!(
        of_kind(&nothing, "CUSTOM")[0]["value"]["code"],
        "unknown_interrupt"
    );
    let mut unknown = unknown;
    unknown["runId"] = json!("unknown-2");
    assert_eq!(anna.run_json(&unknown).await.status, 404);
    service.stop().await;
}

#[tokio::test]
async fn an_expired_confirmation_deletes_nothing() {
    let clock = Arc::new(AtomicI64::new(1_800_000_000));
    let store = Arc::new(Store::in_memory().await.unwrap());
    let time = clock.clone();
    let service = Running::start_on(store, MILK, |builder| {
        builder.clock(move || Timestamp::from_second(time.load(Ordering::SeqCst)).unwrap())
    })
    .await;
    let anna = Client::new(&service, "anna").await;
    let interrupt = anna.ask_to_delete("t").await;
    clock.fetch_add(8 * 24 * 60 * 60, Ordering::SeqCst);
    let late = anna
        .run(&resume(
            "t",
            "late",
            &[(&interrupt["id"], json!({"approved": true}))],
        ))
        .await;
    assert_eq!(last(&late)["outcome"]["type"], "success", "{late:#?}");
    assert_eq!(decision(&late)["notices"][0]["code"], "answered_late");
    assert_eq!(decision(&late)["outcome"], "REFUSAL:CONFIRMATION_EXPIRED");
    assert_eq!(anna.tasks("anna").await, 1);
    service.stop().await;
}

#[tokio::test]
async fn the_user_resolves_a_call_in_doubt() {
    let script = r#"
{"calls": [{"name": "send_letter", "args": {"to": "bert"}}]}
{"text": "Sent."}
"#;
    let service = Running::start(script).await;
    let anna = Client::new(&service, "anna").await;
    let asked = anna.run(&say("t", "r1", "write to bert")).await;
    let interrupt = interrupts(&asked).remove(0);
    assert_eq!(
        (&interrupt["reason"], &interrupt["metadata"]["kind"]),
        (&json!("in_doubt"), &json!("doubt"))
    );
    let started = of_kind(&asked, "TOOL_CALL_START");
    assert_eq!(started.len(), 1, "one call: {asked:#?}");
    let wrong = anna
        .run(&resume(
            "t",
            "r2",
            &[(&interrupt["id"], json!({"approved": true}))],
        ))
        .await;
    assert_eq!(interrupts(&wrong)[0]["id"], interrupt["id"]);
    let done = anna
        .run(&resume(
            "t",
            "r3",
            &[(&interrupt["id"], json!({"verdict": "retry"}))],
        ))
        .await;
    assert_eq!(
        (
            last(&done)["outcome"]["type"].as_str(),
            text(&done).as_str()
        ),
        (Some("success"), "Sent.")
    );
    service.stop().await;
}
