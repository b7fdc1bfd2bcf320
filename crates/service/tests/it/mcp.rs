//! MCP clients behind a load balancer.

use std::sync::Arc;

use adjutant_store::sqlite::Store;
use serde_json::{Value, json};

use super::harness::Running;

/// One request, as a client of a version with sessions sends it that was given none. Its result.
async fn request(replica: &Running, token: &str, method: &str, params: Value) -> Value {
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version", "2025-06-18".to_owned()),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = replica.ask("POST", "/mcp", &headers, &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.head.to_ascii_lowercase().contains("mcp-session-id"), "{answer:?}");
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut answers = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    answers.find_map(|answer| answer.get("result").cloned()).unwrap()
}

async fn call(replica: &Running, token: &str, tool: &str, arguments: Value) -> Value {
    let called = request(replica, token, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    called["structuredContent"].clone()
}

/// Each request goes to another replica, and what waits is answered at a third.
#[tokio::test]
async fn any_replica_answers_any_request() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let (one, two, three) = (
        Running::start_replica(store.clone()).await,
        Running::start_replica(store.clone()).await,
        Running::start_replica(store.clone()).await,
    );
    let anna = one.token("anna").await;
    let about = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    assert_eq!(request(&one, &anna, "initialize", about).await["serverInfo"]["name"], "adjutant");
    let added = call(&two, &anna, "add_task", json!({"description": "buy milk"})).await;
    assert_eq!(added["success"], true, "{added}");
    let asked = call(&one, &anna, "delete_task", json!({"task_id": "milk"})).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    let again = json!({"task_id": "milk", "confirmation_id": asked["confirmation_id"]});
    assert_eq!(call(&two, &anna, "delete_task", again.clone()).await["status"], "confirmation_required");

    let headers = [("Authorization", format!("Bearer {anna}"))];
    let waits = three.ask("GET", "/v1/pending", &headers, "").await.body;
    assert_eq!(waits["pending"][0]["thread_id"], asked["confirmation_id"], "{waits}");
    let yes = json!({
        "thread_id": asked["confirmation_id"],
        "resume": [{"interrupt_id": waits["pending"][0]["interrupt_id"], "approved": true}],
    });
    let done = three.ask("POST", "/v1/chat", &headers, &yes.to_string()).await;
    assert_eq!((done.status, &done.body["outcome"]), (200, &json!("SUCCESS:TASK_COMPLETED")), "{done:?}");
    assert_eq!(call(&two, &anna, "delete_task", again).await["data"]["deleted"], true);
    for replica in [one, two, three] {
        replica.stop().await;
    }
}
