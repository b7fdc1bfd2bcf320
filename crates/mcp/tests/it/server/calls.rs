//! Results of tool calls by MCP clients.
#![expect(
    deprecated,
    reason = "logging is deprecated from 2026-07-28 on, and the versions before have it"
)]

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::LogStore as _;
use adjutant_core::{Annotations, DecisionFilter, Permission, Policy, Schema, Tool};
use adjutant_tools::FunctionTool;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, ClientRequest, ErrorCode, PaginatedRequestParams, RequestMetaObject,
    SetLevelRequestParams,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::harness::{Client, Notified, SESSIONLESS, SESSIONS, World, params};

fn tool(
    name: &str,
    annotations: Annotations,
    answer: impl Fn() -> Value + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let schema = json!({"type": "object", "properties": {"confirmation_id": {"type": "string"}}});
    let tool = FunctionTool::new(name, "Does it.", schema, move |_, _| {
        std::future::ready(Ok(answer()))
    });
    Arc::new(tool.unwrap().annotated(annotations))
}

fn error(error: ServiceError) -> (ErrorCode, String) {
    match error {
        ServiceError::McpError(error) => (error.code, error.message.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tools_are_declared_with_hints_and_schemas() {
    for version in [SESSIONS, SESSIONLESS] {
        let world = World::new();
        let client = Client::connect(&world.server(), "ana", &version, None).await;
        let tools = client.peer.list_all_tools().await.unwrap();
        let hints = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            let hints = tool.annotations.as_ref().unwrap();
            (
                hints.read_only_hint,
                hints.destructive_hint,
                hints.idempotent_hint,
                hints.open_world_hint,
            )
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(hints("add_task"), (no, no, no, no));
        assert_eq!(hints("list_tasks"), (yes, no, yes, no));
        assert_eq!(hints("update_task"), (no, no, yes, no));
        assert_eq!(hints("complete_task"), (no, no, yes, no));
        assert_eq!(hints("delete_task"), (no, yes, yes, no));
        let delete = json!(
            tools
                .iter()
                .find(|tool| tool.name == "delete_task")
                .unwrap()
        );
        assert_eq!(delete["title"], "Delete task");
        assert_eq!(delete["inputSchema"]["required"], json!(["task_id"]));
        assert_eq!(
            delete["inputSchema"]["properties"]["confirmation_id"]["type"],
            "string"
        );
        assert_eq!(
            delete["outputSchema"]["properties"]["data"]["properties"]["deleted"],
            json!({"const": true})
        );
        let add = json!(tools.iter().find(|tool| tool.name == "add_task").unwrap());
        assert!(
            add["inputSchema"]["properties"]
                .get("confirmation_id")
                .is_none()
        );
    }
}

#[tokio::test]
async fn every_task_tool_returns_data_of_its_schema_and_is_logged() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk"]).await;
    let (_, updated) = client
        .call(
            "update_task",
            json!({"task_id": "milk", "description": "Buy oat milk"}),
        )
        .await;
    assert_eq!(updated["data"]["previous_description"], "Buy milk");
    let (_, done) = client.call("complete_task", json!({"task_id": "1"})).await;
    assert_eq!(done["data"]["completed"], true);
    let (_, again) = client.call("complete_task", json!({"task_id": "1"})).await;
    assert_eq!(again["data"]["already_completed"], true);
    for status in ["all", "pending", "completed"] {
        let (failed, listed) = client.call("list_tasks", json!({ "status": status })).await;
        assert!(!failed && listed["data"]["status"] == status);
    }
    // Each stands in the log, as a turn that asked no model.
    let ana = super::harness::user("ana");
    let decisions = world
        .store
        .decisions(&ana, &DecisionFilter::default())
        .await
        .unwrap();
    let logged: Vec<&str> = decisions.iter().map(|row| row.message.as_str()).collect();
    assert_eq!(
        (logged.len(), logged[6], logged[4]),
        (
            7,
            r#"add_task {"description":"Buy milk"}"#,
            r#"complete_task {"task_id":"1"}"#
        )
    );
    assert!(
        decisions
            .iter()
            .all(|row| row.model_calls == 0 && row.model.to_string() == "none/none")
    );
}

#[tokio::test]
async fn invalid_calls_are_results_with_an_error_for_the_model() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk", "Buy bread"]).await;
    for (tool, arguments, words) in [
        ("add_task", json!({}), "description"),
        ("add_task", json!({ "description": "" }), "description"),
        (
            "add_task",
            json!({ "description": "x", "user_id": "ben" }),
            "user_id",
        ),
        ("list_tasks", json!({ "status": "open" }), "status"),
        ("complete_task", json!({ "task_id": "cheese" }), "cheese"),
        ("complete_task", json!({ "task_id": "buy" }), "?"),
        (
            "add_task",
            json!({ "description": "x", "confirmation_id": "t" }),
            "confirmation_id",
        ),
    ] {
        let (failed, content) = client.call(tool, arguments.clone()).await;
        let error = content["error"].as_str().unwrap();
        assert!(
            failed && error.contains(words),
            "{tool} {arguments}: {error}"
        );
    }
    assert_eq!(client.tasks().await.len(), 2);
}

#[tokio::test]
async fn a_corrected_call_runs_and_its_result_says_what_was_corrected() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk"]).await;
    let (failed, content) = client.call("list_tasks", json!({ "status": null })).await;
    assert!(!failed, "{content}");
    assert!(content.to_string().contains("Buy milk"), "{content}");
    let note = content["note"].as_str().unwrap();
    assert!(note.contains("/status"), "{note}");
    let tools = client.peer.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|tool| tool.name == "list_tasks").unwrap();
    let declared = json!(tool.output_schema.as_deref().unwrap());
    assert_eq!(Schema::compile(&declared).unwrap().check(&content), Ok(()));
}

#[tokio::test]
async fn a_tool_there_is_not_is_an_error_of_the_protocol() {
    let world = World::new();
    let client = Client::plain(&world.server(), "ana").await;
    let (code, message) = error(
        client
            .peer
            .call_tool(params("add_tsk", json!({})))
            .await
            .unwrap_err(),
    );
    assert_eq!(code, ErrorCode::INVALID_PARAMS);
    assert!(message.contains("add_task"), "{message}");
}

#[tokio::test]
async fn users_do_not_see_each_other() {
    let world = World::new();
    let server = world.server();
    let (ana, ben) = (
        Client::plain(&server, "ana").await,
        Client::plain(&server, "ben").await,
    );
    ana.add(&["Buy milk"]).await;
    assert!(ben.tasks().await.is_empty());
    let (failed, _) = ben.call("complete_task", json!({ "task_id": "1" })).await;
    assert!(failed);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let world = World::new();
    let server = world.builder(Vec::new(), Policy::default()).page(2).build();
    let client = Client::plain(&server, "ana").await;
    let mut cursor = None;
    let mut pages = Vec::new();
    loop {
        let request = PaginatedRequestParams::default().with_cursor(cursor);
        let page = client.peer.list_tools(Some(request)).await.unwrap();
        pages.push(page.tools.len());
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [2, 2, 1]);
    let request = PaginatedRequestParams::default().with_cursor(Some("nowhere".to_owned()));
    let (code, _) = error(client.peer.list_tools(Some(request)).await.unwrap_err());
    assert_eq!(code, ErrorCode::INVALID_PARAMS);
}

#[tokio::test]
async fn the_policy_decides_which_tools_are_listed_and_which_are_confirmed() {
    let world = World::new();
    let policy = Policy::default()
        .rule("update_task", None, Permission::Deny)
        .rule(
            "add_task",
            Some(super::harness::user("ana")),
            Permission::Confirm,
        )
        .rule("delete_task", None, Permission::Allow);
    let server = world.builder(Vec::new(), policy).build();
    let (ana, ben) = (
        Client::plain(&server, "ana").await,
        Client::plain(&server, "ben").await,
    );
    let names: Vec<_> = ana
        .peer
        .list_all_tools()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(
        names,
        ["add_task", "list_tasks", "complete_task", "delete_task"]
    );
    let (_, asked) = ana
        .call("add_task", json!({ "description": "Buy milk" }))
        .await;
    assert_eq!(asked["preview"], "Add “Buy milk”");
    ben.add(&["Buy milk"]).await;
    let (failed, done) = ben.call("delete_task", json!({ "task_id": "1" })).await;
    assert!(!failed && done["success"] == true, "{done}");
    let refused = ben
        .peer
        .call_tool(params(
            "update_task",
            json!({"task_id": "1", "description": "x"}),
        ))
        .await;
    assert_eq!(refused.unwrap().is_error, Some(true));
}

#[tokio::test]
async fn an_argument_of_the_tools_own_is_not_taken_for_an_id() {
    let world = World::new();
    let destructive = Annotations {
        destructive: true,
        ..Annotations::default()
    };
    let tools = vec![
        tool("issue", Annotations::default(), || json!("issued")),
        tool("revoke", destructive, || panic!("it was not approved")),
    ];
    let server = world.builder(tools, Policy::default()).build();
    let client = Client::plain(&server, "ana").await;
    let (failed, issued) = client
        .call("issue", json!({ "confirmation_id": "mine" }))
        .await;
    assert_eq!(
        (failed, issued),
        (false, json!({"success": true, "data": "issued"}))
    );
    let (failed, refused) = client
        .call("revoke", json!({ "confirmation_id": "mine" }))
        .await;
    assert!(
        failed
            && refused["error"]
                .as_str()
                .unwrap()
                .contains("nothing was done"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_tool_that_breaks_down_is_an_error_and_the_session_lives() {
    let world = World::new();
    let tools = vec![tool("crash", Annotations::default(), || {
        panic!("on purpose")
    })];
    let server = world.builder(tools, Policy::default()).build();
    let client = Client::plain(&server, "ana").await;
    let (failed, content) = client.call("crash", json!({})).await;
    assert!(
        failed
            && content["error"]
                .as_str()
                .unwrap()
                .contains("may or may not"),
        "{content}"
    );
    assert!(client.tasks().await.is_empty());
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_tool() {
    let world = World::new();
    let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell_begun, tell_stopped) = (begun.clone(), stopped.clone());
    let wait = FunctionTool::new(
        "wait",
        "Waits.",
        json!({"type": "object"}),
        move |context, _| {
            let (begun, stopped) = (tell_begun.clone(), tell_stopped.clone());
            async move {
                begun.notify_one();
                context.cancelled.cancelled().await;
                stopped.notify_one();
                Ok(Value::Null)
            }
        },
    );
    let server = world
        .builder(vec![Arc::new(wait.unwrap())], Policy::default())
        .build();
    let client = Client::plain(&server, "ana").await;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("wait", json!({}))));
    let handle = client
        .peer
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    begun.notified().await;
    handle
        .cancel(Some("changed my mind".to_owned()))
        .await
        .unwrap();
    stopped.notified().await;
    client.add(&["Buy milk"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_progress_token_is_notified_of_a_running_call() {
    let world = World::new();
    let slow = FunctionTool::new(
        "slow",
        "Takes its time.",
        json!({"type": "object"}),
        |_, _| async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            Ok(json!("done"))
        },
    );
    let server = world
        .builder(vec![Arc::new(slow.unwrap())], Policy::default())
        .build();
    let mut client = Client::plain(&server, "ana").await;
    let mut asked = params("slow", json!({}));
    let mut meta = RequestMetaObject::new();
    meta.set_progress_token(rmcp::model::ProgressToken(
        rmcp::model::NumberOrString::Number(1),
    ));
    asked.meta = Some(meta);
    let result = client.peer.call_tool(asked).await.unwrap();
    assert_eq!(
        client.checked("slow", result),
        (false, json!({"success": true, "data": "done"}))
    );
    for seconds in [1, 2] {
        let words = format!("slow has been running for {seconds} s");
        assert_eq!(
            client.notifications.recv().await,
            Some(Notified::Progress(f64::from(seconds), words))
        );
    }
}

#[tokio::test]
async fn a_client_receives_log_messages_from_its_level_on() {
    let world = World::new();
    let mut client = Client::plain(&world.server(), "ana").await;
    client.add(&["Buy milk"]).await;
    client
        .peer
        .set_level(SetLevelRequestParams::new(
            rmcp::model::LoggingLevel::Notice,
        ))
        .await
        .unwrap();
    client.add(&["Call Bob"]).await;
    client.call("delete_task", json!({ "task_id": "1" })).await;
    client
        .call("complete_task", json!({ "task_id": "cheese" }))
        .await;
    let logged = |level: &str, tool: &str, outcome: &str| {
        Some(Notified::Log(
            level.to_owned(),
            json!({ "tool": tool, "outcome": outcome }),
        ))
    };
    assert_eq!(
        client.notifications.recv().await,
        logged("notice", "delete_task", "not done")
    );
    assert_eq!(
        client.notifications.recv().await,
        logged("warning", "complete_task", "failed")
    );
    client
        .peer
        .set_level(SetLevelRequestParams::new(rmcp::model::LoggingLevel::Debug))
        .await
        .unwrap();
    client.add(&["Water plants"]).await;
    assert_eq!(
        client.notifications.recv().await,
        logged("info", "add_task", "done"),
        "and no words of the person"
    );
}
