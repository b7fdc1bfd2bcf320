//! The agent itself as a tool.

use std::sync::Arc;

use adjutant_core::port::{ConversationFilter, ConversationStore as _, LogStore as _};
use adjutant_core::{
    AgentName, Annotations, DecisionFilter, OutcomeCategory, Policy, Tool, Verdict,
};
use adjutant_tools::FunctionTool;
use rmcp::model::{
    CallToolRequest, CallToolResponse, ClientRequest, ElicitationAction, InputRequest,
    RequestMetaObject,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::harness::{Client, Notified, SESSIONLESS, SESSIONS, World, params, person, user};

const SCRIPT: &str = r#"
{"match": "add milk", "calls": [{"name": "add_task", "args": {"description": "milk"}}]}
{"match": "drop it all", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}, {"name": "delete_task", "args": {"task_id": "bread"}}]}
{"match": "wait", "calls": [{"name": "wait", "args": {}}]}
{"match": "success\":true", "text": "It is done.", "repeat": true}
{"match": "success\":false", "text": "It was not done.", "repeat": true}
{"match": "", "text": "You said: {{input}}", "repeat": true}
"#;

/// Asks the agent by the tool. Returns what the client gets.
async fn ask(client: &Client, arguments: Value) -> (bool, Value) {
    client.call("ask", arguments).await
}

fn world() -> World {
    World::with_script(SCRIPT)
}

/// Adds two tasks.
async fn with_tasks(client: &Client) {
    client.add(&["milk", "bread"]).await;
}

#[tokio::test]
async fn it_answers_and_goes_on_with_the_conversation() {
    for version in [SESSIONS, SESSIONLESS] {
        let world = world();
        let client = Client::connect(&world.asked(), "ana", &version, None).await;
        let tools = client.peer.list_all_tools().await.unwrap();
        let tool = json!(tools.last().unwrap());
        assert_eq!(
            (&tool["name"], &tool["title"]),
            (&json!("ask"), &json!("Ask"))
        );
        assert!(
            tool["description"]
                .as_str()
                .unwrap()
                .contains("Manages a person's tasks."),
            "{tool}"
        );
        assert_eq!(tool["annotations"]["destructiveHint"], true);
        let (failed, first) = ask(&client, json!({"message": "add milk"})).await;
        assert_eq!(
            (failed, &first["data"]["answer"]),
            (false, &json!("It is done.")),
            "{first}"
        );
        assert_eq!(client.tasks().await, ["milk"]);
        let conversation = &first["data"]["conversation_id"];
        let (_, second) = ask(
            &client,
            json!({"message": "hello", "conversation_id": conversation}),
        )
        .await;
        assert_eq!(
            second["data"],
            json!({"answer": "You said: hello", "conversation_id": conversation, "disposition": "ran", "failed_calls": []})
        );
        let (agent, ana, newest) = (
            AgentName::adjutant(),
            user("ana"),
            ConversationFilter::newest(9),
        );
        let listed = world.store.list(&agent, &ana, &newest).await.unwrap();
        assert_eq!(listed.len(), 1, "it is a conversation like any other");
    }
}

#[tokio::test]
async fn it_is_no_tool_unless_it_is_to_be_one() {
    let world = world();
    let client = Client::plain(&world.server(), "ana").await;
    assert!(
        client
            .peer
            .list_all_tools()
            .await
            .unwrap()
            .iter()
            .all(|tool| tool.name != "ask")
    );
    assert!(
        client
            .peer
            .call_tool(params("ask", json!({"message": "hello"})))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn what_cannot_be_asked_is_said_and_asks_no_model() {
    let world = world();
    let server = world.asked();
    let (ana, ben) = (
        Client::plain(&server, "ana").await,
        Client::plain(&server, "ben").await,
    );
    let (_, mine) = ask(&ana, json!({"message": "hello"})).await;
    let mine = &mine["data"]["conversation_id"];
    let nowhere = "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11";
    for (client, arguments, words) in [
        (&ana, json!({}), "message"),
        (&ana, json!({"message": " \n"}), "empty"),
        (&ana, json!({"message": 5}), "do not fit"),
        (&ana, json!({"message": "x", "user_id": "ben"}), "user_id"),
        (
            &ana,
            json!({"message": "x", "conversation_id": "mine"}),
            "do not fit",
        ),
        (
            &ana,
            json!({"message": "x", "conversation_id": nowhere}),
            "no such conversation",
        ),
        (
            &ben,
            json!({"message": "x", "conversation_id": mine}),
            "no such conversation",
        ),
        (
            &ana,
            json!({"message": "x", "confirmation_id": format!("{nowhere}.{nowhere}")}),
            "no turn",
        ),
        (
            &ana,
            json!({"message": "x", "confirmation_id": "yes"}),
            "no turn",
        ),
        (&ana, json!({"message": "x".repeat(2_000_000)}), "bytes"),
    ] {
        let (failed, refused) = ask(client, arguments.clone()).await;
        let error = refused["error"].as_str().unwrap();
        assert!(
            failed && error.contains("nothing was done") && error.contains(words),
            "{arguments}: {error}"
        );
    }
    let turns = async |name| {
        world
            .store
            .decisions(&user(name), &DecisionFilter::default())
            .await
            .unwrap()
            .len()
    };
    assert_eq!((turns("ana").await, turns("ben").await), (1, 0));
}

#[tokio::test]
async fn a_client_cannot_approve_a_call_that_is_confirmed_elsewhere() {
    let world = world();
    let client = Client::plain(&world.asked(), "ana").await;
    with_tasks(&client).await;
    let (failed, asked) = ask(&client, json!({"message": "drop it all"})).await;
    assert_eq!(
        (failed, &asked["status"]),
        (false, &json!("confirmation_required")),
        "{asked}"
    );
    assert_eq!(asked["preview"], "Delete “milk”\nDelete “bread”");
    let id = asked["confirmation_id"].as_str().unwrap();
    let (conversation, _) = id.split_once('.').unwrap();
    for message in ["yes", "drop it all"] {
        let (_, still) = ask(
            &client,
            json!({"message": message, "conversation_id": conversation}),
        )
        .await;
        assert_eq!(
            still["confirmation_id"], id,
            "nothing is said while something waits: {still}"
        );
        let (_, still) = ask(&client, json!({"message": message, "confirmation_id": id})).await;
        assert_eq!(still["status"], "confirmation_required");
    }
    assert_eq!(client.tasks().await.len(), 2);
    world.answer("ana", Verdict::Approved).await;
    let (_, done) = ask(
        &client,
        json!({"message": "drop it all", "confirmation_id": id}),
    )
    .await;
    assert_eq!(
        done["data"],
        json!({"answer": "It is done.", "conversation_id": conversation, "disposition": "ran", "failed_calls": []}),
        "{done}"
    );
    assert!(client.tasks().await.is_empty());
}

#[tokio::test]
async fn a_client_that_can_ask_its_person_asks_about_each_call() {
    for (answer, left) in [(true, 0), (false, 2)] {
        let world = world();
        let yes = person(ElicitationAction::Accept, Some(json!({"confirm": answer})));
        let client = Client::connect(&world.asked(), "ana", &SESSIONS, yes).await;
        with_tasks(&client).await;
        let (failed, done) = ask(&client, json!({"message": "drop it all"})).await;
        assert!(!failed && done["success"] == true, "{done}");
        assert_eq!(client.tasks().await.len(), left);
    }
}

#[tokio::test]
async fn a_question_of_a_turn_that_is_closed_waits_elsewhere() {
    for version in [SESSIONS, SESSIONLESS] {
        let world = world();
        let closes = person(ElicitationAction::Cancel, None);
        let client = Client::connect(&world.asked(), "ana", &version, closes).await;
        with_tasks(&client).await;
        let (failed, asked) = ask(&client, json!({"message": "drop it all"})).await;
        assert!(
            !failed && asked["status"] == "confirmation_required",
            "{asked}"
        );
        assert_eq!(client.tasks().await.len(), 2, "nothing was done");
        world.answer("ana", Verdict::Approved).await;
        let id = &asked["confirmation_id"];
        let again = json!({"message": "drop it all", "confirmation_id": id});
        let (_, done) = ask(&client, again).await;
        assert_eq!(done["data"]["answer"], "It is done.", "{done}");
        assert!(client.tasks().await.is_empty());
    }
}

#[tokio::test]
async fn a_client_without_sessions_brings_the_answers_with_the_next_call() {
    let world = world();
    let yes = person(ElicitationAction::Accept, Some(json!({"confirm": true})));
    let client = Client::connect(&world.asked(), "ana", &SESSIONLESS, yes).await;
    with_tasks(&client).await;
    let call = params("ask", json!({"message": "drop it all"}));
    let CallToolResponse::InputRequired(asked) = client.once(call.clone()).await else {
        panic!("it did not ask")
    };
    let questions = asked.input_requests.unwrap();
    assert_eq!(questions.len(), 2);
    let mut half = call.clone();
    half.request_state = asked.request_state.clone();
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    let of = |names: Vec<&String>| {
        names
            .into_iter()
            .map(|name| (name.clone(), answer.clone()))
            .collect()
    };
    half.input_responses = Some(of(questions.keys().take(1).collect()));
    let CallToolResponse::Complete(still) = client.once(half.clone()).await else {
        panic!("it asked again")
    };
    assert_eq!(
        still.structured_content.unwrap()["status"],
        "confirmation_required",
        "one answer is missing"
    );
    assert_eq!(client.tasks().await.len(), 2);
    assert!(
        questions
            .values()
            .all(|question| matches!(question, InputRequest::Elicitation(_)))
    );
    half.input_responses = Some(of(questions.keys().collect()));
    for _ in 0..2 {
        let CallToolResponse::Complete(done) = client.once(half.clone()).await else {
            panic!("it asked again")
        };
        assert_eq!(
            done.structured_content.unwrap()["data"]["answer"],
            "It is done.",
            "sent again it is the same"
        );
    }
    assert!(client.tasks().await.is_empty());
}

#[tokio::test]
async fn the_same_request_sent_again_is_the_same_turn() {
    let world = world();
    let client = Client::plain(&world.asked(), "ana").await;
    let sent = async |message: &str| {
        let mut call = params("ask", json!({ "message": message }));
        let mut meta = RequestMetaObject::new();
        meta.insert("idempotencyKey".to_owned(), json!("one"));
        call.meta = Some(meta);
        client.checked("ask", client.peer.call_tool(call).await.unwrap())
    };
    let first = sent("add milk").await;
    assert_eq!(sent("add milk").await, first);
    assert_eq!(client.tasks().await, ["milk"]);
    let (failed, other) = sent("add bread").await;
    assert!(
        failed && other["error"].as_str().unwrap().contains("used before"),
        "{other}"
    );
}

/// A tool that waits until it is released.
fn waiting(goes_on: &Arc<Notify>, begun: &Arc<Notify>) -> Arc<dyn Tool> {
    let (goes_on, begun) = (goes_on.clone(), begun.clone());
    let tool = FunctionTool::new(
        "wait",
        "Waits.",
        json!({"type": "object"}),
        move |context, _| {
            let (goes_on, begun, cancelled) =
                (goes_on.clone(), begun.clone(), context.cancelled.clone());
            async move {
                begun.notify_one();
                tokio::select! {
                    () = goes_on.notified() => Ok(json!("went on")),
                    () = cancelled.cancelled() => Ok(json!("stopped")),
                }
            }
        },
    );
    Arc::new(tool.unwrap().annotated(Annotations {
        read_only: true,
        ..Annotations::default()
    }))
}

#[tokio::test(start_paused = true)]
async fn it_says_what_it_is_at_and_stops_when_it_is_cancelled() {
    let world = world();
    let (goes_on, begun) = (Arc::default(), Arc::default());
    let server = world.asked_with(vec![waiting(&goes_on, &begun)], Policy::default());
    let mut client = Client::plain(&server, "ana").await;
    let request = || {
        ClientRequest::CallToolRequest(CallToolRequest::new(params(
            "ask",
            json!({"message": "wait"}),
        )))
    };
    let sent = client
        .peer
        .send_cancellable_request(request(), PeerRequestOptions::no_options())
        .await
        .unwrap();
    begun.notified().await;
    let Notified::Progress(seconds, words) = client.notifications.recv().await.unwrap() else {
        panic!("no progress")
    };
    assert!(seconds >= 1.0 && words.ends_with(": wait"), "{words}");
    goes_on.notify_one();
    sent.await_response().await.unwrap();

    let stopped = client
        .peer
        .send_cancellable_request(request(), PeerRequestOptions::no_options())
        .await
        .unwrap();
    begun.notified().await;
    stopped.cancel(None).await.unwrap();
    server.calls().close();
    server.calls().wait().await;
    let turns = world
        .store
        .decisions(&user("ana"), &DecisionFilter::default())
        .await
        .unwrap();
    assert_eq!(
        turns[0].outcome,
        Some(OutcomeCategory::Cancelled),
        "{turns:?}"
    );
    assert_eq!(turns[1].outcome, Some(OutcomeCategory::TaskCompleted));
}

#[tokio::test]
async fn an_agent_does_not_ask_itself() {
    let world = world();
    let client = Client::plain(&world.asked(), "ana").await;
    let (_, first) = ask(&client, json!({"message": "hello"})).await;
    let from = async |conversation: &Value| {
        let mut call = params("ask", json!({"message": "hello"}));
        let mut meta = RequestMetaObject::new();
        meta.insert("adjutant/conversation".to_owned(), conversation.clone());
        call.meta = Some(meta);
        client.checked("ask", client.peer.call_tool(call).await.unwrap())
    };
    let (failed, refused) = from(&first["data"]["conversation_id"]).await;
    assert!(
        failed
            && refused["error"]
                .as_str()
                .unwrap()
                .contains("cannot ask itself"),
        "{refused}"
    );
    let (failed, _) = from(&json!("0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11")).await;
    assert!(!failed, "another agent may ask");
}

#[tokio::test]
async fn a_turn_starts_only_if_its_callback_permits_it() {
    let world = world();
    let server = world.builder(Vec::new(), Policy::default());
    let server = server
        .offer_agent(Box::new(|_| Err("too many turns run".to_owned())))
        .build();
    let client = Client::plain(&server, "ana").await;
    let (failed, refused) = ask(&client, json!({"message": "hello"})).await;
    assert_eq!(
        (failed, &refused["error"]),
        (true, &json!("nothing was done: too many turns run"))
    );
}
