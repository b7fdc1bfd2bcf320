use std::sync::Arc;
use std::time::Duration;

use adjutant_core::Policy;
use adjutant_mcp::server::{McpServer, Secret};
use adjutant_runtime::HumanCall;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, ElicitationAction};
use serde_json::{Value, json};

use super::harness::{Client, SESSIONLESS, SESSIONS, World, params, person};

/// Asks for a deletion; gives the token.
async fn token(client: &Client, task: &str) -> String {
    let (failed, asked) = client.call("delete_task", json!({ "task_id": task })).await;
    assert!(!failed, "{asked}");
    assert_eq!((&asked["success"], &asked["status"]), (&json!(false), &json!("confirmation_required")));
    asked["confirmation_token"].as_str().unwrap().to_owned()
}

/// Sends a token back; gives the words of the refusal, if it is one.
async fn confirm(client: &Client, task: &str, token: &str) -> Result<Value, String> {
    let arguments = json!({ "task_id": task, "confirmation_token": token });
    match client.call("delete_task", arguments).await {
        (false, done) => Ok(done),
        (true, refused) => Err(refused["error"].as_str().unwrap().to_owned()),
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_a_token_and_a_preview() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk", "Call Bob"]).await;

    let (failed, asked) = client.call("delete_task", json!({ "task_id": "milk" })).await;
    assert!(!failed);
    assert_eq!(asked["preview"], "Delete “Buy milk”");
    assert_eq!(asked["expires_at"], "2026-11-22T10:02:00Z");
    assert!(asked["message"].as_str().unwrap().contains("Nothing was done yet"), "{asked}");
    assert_eq!(client.tasks().await, ["Buy milk", "Call Bob"], "nothing was done yet");

    let token = asked["confirmation_token"].as_str().unwrap();
    let done = confirm(&client, "milk", token).await.unwrap();
    assert_eq!((&done["success"], &done["data"]["deleted"]), (&json!(true), &json!(true)));
    assert_eq!(client.tasks().await, ["Call Bob"]);
    assert!(confirm(&client, "1", token).await.is_err(), "there is nothing left to delete");
    assert_eq!(client.tasks().await, ["Call Bob"]);
}

#[tokio::test]
async fn what_counts_is_what_was_shown_not_how_it_was_said() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk"]).await;
    let shown = token(&client, "milk").await;
    assert!(confirm(&client, "1", &shown).await.is_ok(), "the id is the same task");
    client.add(&["Buy milk"]).await;
    let shown = token(&client, "milk").await;
    client.call("update_task", json!({ "task_id": "2", "description": "Buy bread" })).await;
    client.add(&["Drink milk"]).await;
    let refused = confirm(&client, "milk", &shown).await.unwrap_err();
    assert!(refused.contains("not for this call"), "another task is milk now: {refused}");
    assert_eq!(client.tasks().await, ["Buy bread", "Drink milk"]);
}

#[tokio::test]
async fn a_token_is_for_one_call_of_one_user_for_two_minutes() {
    let world = World::new();
    let server = world.server();
    let (ana, ben) = (Client::plain(&server, "ana").await, Client::plain(&server, "ben").await);
    ana.add(&["Buy milk", "Call Bob"]).await;
    ben.add(&["Buy milk"]).await;
    let shown = token(&ana, "1").await;

    let other_task = confirm(&ana, "2", &shown).await.unwrap_err();
    assert!(other_task.contains("not for this call"), "{other_task}");
    let other_user = confirm(&ben, "1", &shown).await.unwrap_err();
    assert!(other_user.contains("not for this call"), "{other_user}");
    for nonsense in ["", "yes", "true", &"A".repeat(54)] {
        let refused = confirm(&ana, "1", nonsense).await.unwrap_err();
        assert!(refused.contains("not for this call"), "{nonsense}: {refused}");
    }
    let (failed, _) = ana.call("delete_task", json!({ "task_id": "1", "confirmation_token": true })).await;
    assert!(failed);

    world.wait(Duration::from_secs(119));
    assert_eq!((ana.tasks().await.len(), ben.tasks().await.len()), (2, 1), "nothing of that did anything");
    world.wait(Duration::from_secs(1));
    let late = confirm(&ana, "1", &shown).await.unwrap_err();
    assert!(late.contains("too late"), "{late}");
    assert_eq!(ana.tasks().await.len(), 2);
    let shown = token(&ana, "1").await;
    assert!(confirm(&ana, "1", &shown).await.is_ok(), "a new one is good");
}

#[tokio::test]
async fn a_token_is_good_after_a_reconnect_and_on_another_replica_but_once() {
    let world = World::new();
    let (one, two) = (world.server(), world.server());
    let first = Client::plain(&one, "ana").await;
    first.add(&["Buy milk", "Call Bob"]).await;
    let (milk, bob) = (token(&first, "1").await, token(&first, "2").await);
    first.peer.cancel().await.unwrap();

    let again = Client::plain(&one, "ana").await;
    assert!(confirm(&again, "1", &milk).await.is_ok());
    let elsewhere = Client::plain(&two, "ana").await;
    assert!(confirm(&elsewhere, "2", &bob).await.is_ok());
    assert!(elsewhere.tasks().await.is_empty());
    // One with a secret of its own takes nobody else's.
    elsewhere.add(&["Water plants"]).await;
    let plants = token(&elsewhere, "3").await;
    let stranger: McpServer = world.builder(Vec::new(), Policy::default()).build().unwrap();
    let stranger = Client::plain(&stranger, "ana").await;
    assert!(confirm(&stranger, "3", &plants).await.unwrap_err().contains("not for this call"));
    assert_eq!(stranger.tasks().await, ["Water plants"]);
}

/// The record of a used confirmation is the log of the calls, which all replicas share; so what was done elsewhere is not
/// done again even for a tool that would do it.
#[tokio::test]
async fn a_token_used_on_one_replica_is_used_on_all() {
    use adjutant_core::{Annotations, Tool};
    use adjutant_tools::FunctionTool;
    use std::sync::atomic::{AtomicU32, Ordering};

    let world = World::new();
    let count = Arc::new(AtomicU32::new(0));
    let replica = || {
        let count = count.clone();
        let tool = FunctionTool::new("launch", "Launches.", json!({"type": "object"}), move |_, _| {
            let launched = count.fetch_add(1, Ordering::SeqCst) + 1;
            std::future::ready(Ok(json!(launched)))
        });
        let tool: Arc<dyn Tool> =
            Arc::new(tool.unwrap().annotated(Annotations { destructive: true, ..Annotations::default() }));
        world.builder(vec![tool], Policy::default()).secret(Secret::new([1; 32])).build().unwrap()
    };
    let (one, two) = (replica(), replica());
    let (one, two) = (Client::plain(&one, "ana").await, Client::plain(&two, "ana").await);
    let (_, asked) = one.call("launch", json!({})).await;
    let confirmed = json!({ "confirmation_token": asked["confirmation_token"] });
    assert_eq!(one.call("launch", confirmed.clone()).await, (false, json!({"success": true, "data": 1})));
    for replica in [one, two] {
        let (failed, refused) = replica.call("launch", confirmed.clone()).await;
        assert!(failed && refused["error"].as_str().unwrap().contains("has been used"), "{refused}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_can_ask_does() {
    for version in [SESSIONS, SESSIONLESS] {
        let world = World::new();
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let heard = asked.clone();
        let client = Client::connect(
            &world.server(),
            "ana",
            &version,
            Some(Arc::new(move |question| {
                heard.lock().unwrap().push(question.to_owned());
                let mut yes = rmcp::model::ElicitResult::new(ElicitationAction::Accept);
                yes.content = Some(json!({ "confirm": true }));
                Ok(yes)
            })),
        )
        .await;
        client.add(&["Buy milk"]).await;
        assert!(asked.lock().unwrap().is_empty(), "only what destroys something is asked about");
        let tools = client.peer.list_all_tools().await.unwrap();
        let delete = tools.iter().find(|tool| tool.name == "delete_task").unwrap();
        assert!(delete.input_schema["properties"].get("confirmation_token").is_none());

        let (failed, done) = client.call("delete_task", json!({ "task_id": "milk" })).await;
        assert!(!failed && done["data"]["deleted"] == true, "{done}");
        assert_eq!(*asked.lock().unwrap(), ["Delete “Buy milk”?"]);
        assert!(client.tasks().await.is_empty());
    }
}

#[tokio::test]
async fn anything_but_a_plain_yes_does_nothing() {
    let failing: super::harness::Person = Arc::new(|_| Err(ErrorData::internal_error("no screen", None)));
    for version in [SESSIONS, SESSIONLESS] {
        let people = [
            person(ElicitationAction::Accept, Some(json!({ "confirm": false }))),
            person(ElicitationAction::Accept, Some(json!({ "confirm": "true" }))),
            person(ElicitationAction::Accept, Some(json!({}))),
            person(ElicitationAction::Accept, None),
            person(ElicitationAction::Decline, Some(json!({ "confirm": true }))),
            person(ElicitationAction::Cancel, None),
            Some(failing.clone()),
        ];
        for (number, person) in people.into_iter().enumerate() {
            let world = World::new();
            let client = Client::connect(&world.server(), "ana", &version, person).await;
            client.add(&["Buy milk"]).await;
            let arguments = params("delete_task", json!({ "task_id": "milk" }));
            // A client whose person cannot be asked may give up by itself.
            if let Ok(result) = client.peer.call_tool(arguments).await {
                let (failed, content) = client.checked("delete_task", result);
                assert!(!failed && content["status"] == "declined", "{number}: {content}");
            }
            assert_eq!(client.tasks().await, ["Buy milk"], "{number}");
        }
    }
}

#[tokio::test]
async fn an_answer_without_sessions_is_for_the_call_that_asked() {
    let world = World::new();
    let never = person(ElicitationAction::Decline, None);
    let client = Client::connect(&world.server(), "ana", &SESSIONLESS, never).await;
    client.add(&["Buy milk", "Call Bob"]).await;
    let asked = client.once(params("delete_task", json!({ "task_id": "1" }))).await;
    let CallToolResponse::InputRequired(asked) = asked else { panic!("{asked:?}") };
    let state = asked.request_state.unwrap();
    let question = json!(asked.input_requests.unwrap()["confirm"]);
    assert_eq!(question["params"]["requestedSchema"]["properties"]["confirm"]["default"], false);
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
        let CallToolResponse::Complete(result) = response else { panic!("{response:?}") };
        let (_, content) = client.checked("delete_task", result);
        assert_eq!(content["success"], false, "{content}");
    }
    // An answer nobody asked for is no answer: the question comes.
    let response = client.once(answered("1", None, Some(&yes))).await;
    assert!(matches!(response, CallToolResponse::InputRequired(_)), "{response:?}");
    assert_eq!(client.tasks().await.len(), 2);

    let done = client.once(answered("1", Some(&state), Some(&yes))).await;
    let CallToolResponse::Complete(done) = done else { panic!("{done:?}") };
    assert_eq!(client.checked("delete_task", done).1["success"], true);
    assert_eq!(client.tasks().await, ["Call Bob"]);
}

/// The same in the library: what a person approved runs once.
#[tokio::test]
async fn an_approval_of_a_human_call_is_good_once() {
    use adjutant_runtime::Agent;
    use adjutant_tools::task_tools;

    let world = World::new();
    let agent = Agent::builder("adjutant")
        .instruction("Be brief.")
        .tools(task_tools(world.store.clone()))
        .journal(world.store.clone(), "test")
        .model(adjutant_providers::scripted::ScriptedModel::new([]))
        .build()
        .unwrap();
    let ana = super::harness::user("ana");
    let object = |value: Value| value.as_object().cloned().unwrap();
    agent.call_tool(&ana, "add_task", object(json!({"description": "Buy milk"})), None).await.unwrap();
    let delete = object(json!({"task_id": "1"}));
    let asked = agent.call_tool(&ana, "delete_task", delete.clone(), None).await.unwrap();
    let HumanCall::Confirm(pending) = asked else { panic!("{asked:?}") };
    let done = agent.call_tool(&ana, "delete_task", delete.clone(), Some(&pending)).await.unwrap();
    assert!(matches!(done, HumanCall::Done { .. }), "{done:?}");
    agent.call_tool(&ana, "add_task", object(json!({"description": "Buy milk"})), None).await.unwrap();
    let again = agent.call_tool(&ana, "delete_task", delete, Some(&pending)).await.unwrap();
    assert!(!matches!(again, HumanCall::Done { .. }), "{again:?}");
}
