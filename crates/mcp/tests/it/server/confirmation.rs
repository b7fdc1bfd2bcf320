use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use adjutant_core::port::Journal as _;
use adjutant_core::{AgentName, Annotations, Policy, Tool, Verdict};
use adjutant_tools::FunctionTool;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, ElicitationAction, RequestMetaObject};
use serde_json::{Value, json};

use super::harness::{Client, SESSIONLESS, SESSIONS, World, params, person, user};

/// Asks for a deletion; gives the id of what waits.
async fn asked(client: &Client, task: &str) -> String {
    let (failed, asked) = client.call("delete_task", json!({ "task_id": task })).await;
    assert!(!failed, "{asked}");
    assert_eq!(
        (&asked["success"], &asked["status"]),
        (&json!(false), &json!("confirmation_required"))
    );
    asked["confirmation_id"].as_str().unwrap().to_owned()
}

/// Asks what became of it.
async fn again(client: &Client, task: &str, id: &str) -> (bool, Value) {
    client
        .call(
            "delete_task",
            json!({ "task_id": task, "confirmation_id": id }),
        )
        .await
}

#[tokio::test]
async fn a_model_cannot_confirm_for_its_person() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk", "Call Bob"]).await;

    let (failed, shown) = client
        .call("delete_task", json!({ "task_id": "milk" }))
        .await;
    assert!(!failed);
    assert_eq!(shown["preview"], "Delete “Buy milk”");
    assert!(
        shown["message"]
            .as_str()
            .unwrap()
            .contains("you cannot confirm it"),
        "{shown}"
    );
    let id = shown["confirmation_id"].as_str().unwrap();
    for _ in 0..3 {
        let (failed, still) = again(&client, "milk", id).await;
        assert!(
            !failed && still["status"] == "confirmation_required",
            "{still}"
        );
    }
    assert_eq!(
        client.tasks().await,
        ["Buy milk", "Call Bob"],
        "nothing was done"
    );

    world.answer("ana", Verdict::Approved).await;
    assert_eq!(client.tasks().await, ["Call Bob"]);
    for _ in 0..2 {
        let (failed, done) = again(&client, "milk", id).await;
        assert!(
            !failed && done["success"] == true && done["data"]["deleted"] == true,
            "{done}"
        );
    }
    let id = asked(&client, "2").await;
    world.answer("ana", Verdict::Denied).await;
    let (failed, denied) = again(&client, "2", &id).await;
    assert!(!failed && denied["status"] == "declined", "{denied}");
    assert_eq!(client.tasks().await, ["Call Bob"]);
}

#[tokio::test]
async fn an_id_is_for_one_call_of_one_user() {
    let world = World::new();
    let server = world.server();
    let (ana, ben) = (
        Client::plain(&server, "ana").await,
        Client::plain(&server, "ben").await,
    );
    ana.add(&["Buy milk", "Call Bob"]).await;
    ben.add(&["Buy milk"]).await;
    let id = asked(&ana, "milk").await;
    let (_, by_number) = again(&ana, "1", &id).await;
    assert_eq!(
        by_number["status"], "confirmation_required",
        "the number is the same task"
    );
    let other = |(failed, refused): (bool, Value)| {
        assert!(
            failed
                && refused["error"]
                    .as_str()
                    .unwrap()
                    .contains("not for this call"),
            "{refused}"
        );
    };
    other(again(&ana, "2", &id).await);
    other(again(&ben, "milk", &id).await);
    for nonsense in ["", "yes", "true", "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11"] {
        other(again(&ana, "1", nonsense).await);
    }
    let (failed, _) = ana
        .call(
            "delete_task",
            json!({ "task_id": "1", "confirmation_id": true }),
        )
        .await;
    assert!(failed);
    let (failed, new) = ana
        .call(
            "delete_task",
            json!({ "task_id": "1", "confirmation_id": null }),
        )
        .await;
    assert!(
        !failed && new["confirmation_id"] != id.as_str(),
        "null is no id: {new}"
    );
    assert_eq!(
        (ana.tasks().await.len(), ben.tasks().await.len()),
        (2, 1),
        "nothing of that did anything"
    );
}

/// Pending calls are in the store: any replica can continue them, without shared secrets.
#[tokio::test]
async fn what_was_asked_on_one_replica_is_answered_on_another_and_runs_once() {
    let world = World::new();
    let count = Arc::new(AtomicU32::new(0));
    let launch = || -> Arc<dyn Tool> {
        let count = count.clone();
        let tool = FunctionTool::new(
            "launch",
            "Launches.",
            json!({"type": "object"}),
            move |_, _| std::future::ready(Ok(json!(count.fetch_add(1, Ordering::SeqCst) + 1))),
        );
        Arc::new(tool.unwrap().annotated(Annotations {
            destructive: true,
            ..Annotations::default()
        }))
    };
    let replica = || world.builder(vec![launch()], Policy::default()).build();
    let yes = person(ElicitationAction::Accept, Some(json!({ "confirm": true })));
    let (one, two) = (replica(), replica());
    let (one, two) = (
        Client::connect(&one, "ana", &SESSIONLESS, yes.clone()).await,
        Client::connect(&two, "ana", &SESSIONLESS, yes).await,
    );
    let CallToolResponse::InputRequired(asked) = one.once(params("launch", json!({}))).await else {
        panic!("it is not asked")
    };
    let mut answered = params("launch", json!({}));
    answered.request_state = asked.request_state;
    let said = json!({ "action": "accept", "content": { "confirm": true } });
    answered.input_responses = Some([("confirm".to_owned(), said)].into());
    for replica in [&two, &one, &two] {
        let CallToolResponse::Complete(done) = replica.once(answered.clone()).await else {
            panic!("it is asked again")
        };
        assert_eq!(
            replica.checked("launch", done),
            (false, json!({"success": true, "data": 1}))
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_answer_of_a_client_that_comes_late_does_nothing() {
    let world = World::new();
    let never = person(ElicitationAction::Decline, None);
    let client = Client::connect(&world.server(), "ana", &SESSIONLESS, never).await;
    client.add(&["Buy milk"]).await;
    let CallToolResponse::InputRequired(asked) = client
        .once(params("delete_task", json!({ "task_id": "1" })))
        .await
    else {
        panic!("it is not asked")
    };
    world.wait(Duration::from_secs(120));
    let mut answered = params("delete_task", json!({ "task_id": "1" }));
    answered.request_state = asked.request_state;
    let said = json!({ "action": "accept", "content": { "confirm": true } });
    answered.input_responses = Some([("confirm".to_owned(), said)].into());
    let CallToolResponse::Complete(late) = client.once(answered).await else {
        panic!("it is asked again")
    };
    let (failed, late) = client.checked("delete_task", late);
    assert!(
        failed && late["error"].as_str().unwrap().contains("too late"),
        "{late}"
    );
    assert_eq!(client.tasks().await, ["Buy milk"]);
}

#[tokio::test]
async fn a_request_with_a_name_is_one_call() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    let add = async |words: &str, key: Value| {
        let mut request = params("add_task", json!({ "description": words }));
        let mut meta = RequestMetaObject::new();
        meta.insert("idempotencyKey".to_owned(), key);
        request.meta = Some(meta);
        let result = client.peer.call_tool(request).await.unwrap();
        client.checked("add_task", result)
    };
    let first = add("Buy milk", json!("k1")).await;
    assert!(!first.0, "{first:?}");
    assert_eq!(
        add("Buy milk", json!("k1")).await,
        first,
        "the same answer again"
    );
    let (failed, other) = add("Call Bob", json!("k1")).await;
    assert!(
        failed && other["error"].as_str().unwrap().contains("used before"),
        "{other}"
    );
    for nonsense in [json!(1), json!(""), json!("x".repeat(201))] {
        assert!(add("Call Bob", nonsense).await.0);
    }
    assert_eq!(client.tasks().await, ["Buy milk"]);
}

#[tokio::test]
async fn a_client_that_can_ask_does() {
    for version in [SESSIONS, SESSIONLESS] {
        let world = World::new();
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let questions = asked.clone();
        let client = Client::connect(
            &world.server(),
            "ana",
            &version,
            Some(Arc::new(move |question| {
                questions.lock().unwrap().push(question.to_owned());
                let mut yes = rmcp::model::ElicitResult::new(ElicitationAction::Accept);
                yes.content = Some(json!({ "confirm": true }));
                Ok(yes)
            })),
        )
        .await;
        client.add(&["Buy milk"]).await;
        assert!(
            asked.lock().unwrap().is_empty(),
            "only what destroys something is asked about"
        );
        let tools = client.peer.list_all_tools().await.unwrap();
        let delete = tools
            .iter()
            .find(|tool| tool.name == "delete_task")
            .unwrap();
        assert_eq!(
            delete.input_schema["properties"]["confirmation_id"]["type"], "string",
            "for a question that is closed"
        );

        let (failed, done) = client
            .call("delete_task", json!({ "task_id": "milk" }))
            .await;
        assert!(!failed && done["data"]["deleted"] == true, "{done}");
        assert_eq!(*asked.lock().unwrap(), ["Delete “Buy milk”?"]);
        assert!(client.tasks().await.is_empty());
    }
}

#[tokio::test]
async fn anything_but_a_plain_yes_does_nothing() {
    for version in [SESSIONS, SESSIONLESS] {
        let people = [
            person(ElicitationAction::Accept, Some(json!({ "confirm": false }))),
            person(
                ElicitationAction::Accept,
                Some(json!({ "confirm": "true" })),
            ),
            person(ElicitationAction::Accept, Some(json!({}))),
            person(ElicitationAction::Accept, None),
            person(ElicitationAction::Decline, Some(json!({ "confirm": true }))),
        ];
        for (number, person) in people.into_iter().enumerate() {
            let world = World::new();
            let client = Client::connect(&world.server(), "ana", &version, person).await;
            client.add(&["Buy milk"]).await;
            let (failed, content) = client
                .call("delete_task", json!({ "task_id": "milk" }))
                .await;
            assert!(
                !failed && content["status"] == "declined",
                "{number}: {content}"
            );
            assert_eq!(client.tasks().await, ["Buy milk"], "{number}");
        }
    }
}

#[tokio::test]
async fn a_question_that_is_closed_without_an_answer_waits_elsewhere() {
    let failing: super::harness::Person =
        Arc::new(|_| Err(ErrorData::internal_error("no screen", None)));
    for (version, person) in [
        (SESSIONS, person(ElicitationAction::Cancel, None)),
        (SESSIONLESS, person(ElicitationAction::Cancel, None)),
        (SESSIONS, Some(failing)),
    ] {
        for (verdict, left) in [(Verdict::Approved, 0), (Verdict::Denied, 1)] {
            let world = World::new();
            let client = Client::connect(&world.server(), "ana", &version, person.clone()).await;
            client.add(&["Buy milk"]).await;
            let id = asked(&client, "milk").await;
            let (_, still) = again(&client, "milk", &id).await;
            assert_eq!(still["status"], "confirmation_required", "{still}");
            assert_eq!(client.tasks().await, ["Buy milk"], "nothing was done");
            world.answer("ana", verdict).await;
            let (failed, done) = again(&client, "milk", &id).await;
            assert!(!failed, "{done}");
            assert_eq!(done["success"], json!(left == 0), "{done}");
            assert_eq!(client.tasks().await.len(), left);
        }
    }
}

/// The id of a call that waits cannot be given to a tool with an argument of that name.
#[tokio::test]
async fn a_question_about_a_tool_with_an_id_of_its_own_is_closed_for_good() {
    let world = World::new();
    let tool = FunctionTool::new(
        "launch",
        "Launches.",
        json!({"type": "object", "properties": {"confirmation_id": {"type": "string"}}}),
        |_, _| std::future::ready(Ok(json!("launched"))),
    );
    let tool: Arc<dyn Tool> = Arc::new(tool.unwrap().annotated(Annotations {
        destructive: true,
        ..Annotations::default()
    }));
    let server = world.builder(vec![tool], Policy::default()).build();
    for version in [SESSIONS, SESSIONLESS] {
        let closes = person(ElicitationAction::Cancel, None);
        let client = Client::connect(&server, "ana", &version, closes).await;
        let (failed, closed) = client
            .call("launch", json!({"confirmation_id": "of its own"}))
            .await;
        assert!(!failed && closed["status"] == "declined", "{closed}");
        let message = closed["message"].as_str().unwrap();
        assert!(message.contains("closed without an answer"), "{message}");
        let waits = world
            .store
            .parked(&AgentName::adjutant(), Some(&user("ana")))
            .await;
        assert!(waits.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_answer_without_sessions_is_for_the_call_that_asked() {
    let world = World::new();
    let never = person(ElicitationAction::Decline, None);
    let client = Client::connect(&world.server(), "ana", &SESSIONLESS, never).await;
    client.add(&["Buy milk", "Call Bob"]).await;
    let asked = client
        .once(params("delete_task", json!({ "task_id": "1" })))
        .await;
    let CallToolResponse::InputRequired(asked) = asked else {
        panic!("{asked:?}")
    };
    let state = asked.request_state.unwrap();
    let question = json!(asked.input_requests.unwrap()["confirm"]);
    assert_eq!(
        question["params"]["requestedSchema"]["properties"]["confirm"]["default"],
        false
    );
    let yes = json!({ "action": "accept", "content": { "confirm": true } });

    let answered = |task: &str, state: Option<&str>, answer: Option<&Value>| {
        let mut call = params("delete_task", json!({ "task_id": task }));
        call.request_state = state.map(str::to_owned);
        call.input_responses = answer.map(|answer| [("confirm".to_owned(), answer.clone())].into());
        call
    };
    let refused = [
        answered("2", Some(&state), Some(&yes)),
        answered("1", Some("forged"), Some(&yes)),
        answered("1", Some(&state), None),
    ];
    for call in refused {
        let response = client.once(call).await;
        let CallToolResponse::Complete(result) = response else {
            panic!("{response:?}")
        };
        let (_, content) = client.checked("delete_task", result);
        assert_eq!(content["success"], false, "{content}");
    }
    // An answer without a question is none: the question comes.
    let response = client.once(answered("1", None, Some(&yes))).await;
    assert!(
        matches!(response, CallToolResponse::InputRequired(_)),
        "{response:?}"
    );
    assert_eq!(client.tasks().await.len(), 2);

    let done = client.once(answered("1", Some(&state), Some(&yes))).await;
    let CallToolResponse::Complete(done) = done else {
        panic!("{done:?}")
    };
    assert_eq!(client.checked("delete_task", done).1["success"], true);
    assert_eq!(client.tasks().await, ["Call Bob"]);
}
