//! MCP clients behind a load balancer.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use adjutant_core::{Permission, Policy};
use adjutant_mcp::client::{ClientOptions, Remote, ServerConfig, ServerName, Servers, Transport};
use adjutant_store::sqlite::Store;
use serde_json::{Value, json};

use super::harness::Running;

/// One request, as a client of a version with sessions sends it that was given none. Its result.
async fn request(replica: &Running, token: &str, method: &str, params: Value) -> Value {
    answer(replica, token, method, params).await["result"].take()
}

/// The same, whatever is answered.
async fn answer(replica: &Running, token: &str, method: &str, params: Value) -> Value {
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version", "2025-06-18".to_owned()),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = replica
        .ask("POST", "/mcp", &headers, &body.to_string())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        !answer.head.to_ascii_lowercase().contains("mcp-session-id"),
        "{answer:?}"
    );
    let data = answer
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"));
    let mut answers = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    answers
        .find(|answer| answer.get("result").is_some() || answer.get("error").is_some())
        .unwrap()
}

async fn call(replica: &Running, token: &str, tool: &str, arguments: Value) -> Value {
    let called = request(
        replica,
        token,
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
    )
    .await;
    called["structuredContent"].clone()
}

/// A user reads only their own conversations.
#[tokio::test]
async fn conversations_are_resources_of_their_user() {
    let service = Running::start_replica(Arc::new(Store::in_memory().await.unwrap())).await;
    let (anna, eve) = (service.token("anna").await, service.token("eve").await);
    for thread in ["one", "two"] {
        let said = service
            .chat(
                &anna,
                &json!({"message": format!("hello {thread}"), "thread_id": thread}),
            )
            .await;
        assert_eq!(said.status, 200, "{said:?}");
    }
    let listed = request(&service, &anna, "resources/list", json!({})).await;
    let titles: Vec<&str> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["hello two", "hello one"]);
    assert_eq!(listed["resources"][0]["name"], "hello two");
    let unknown = answer(&service, &anna, "tools/call", json!({"name": "nothing"})).await;
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(" ask,") && message.contains("add_task"),
        "{message}"
    );
    let uri = &listed["resources"][1]["uri"];
    let read = request(&service, &anna, "resources/read", json!({ "uri": uri })).await;
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("hello one") && text.contains("Done."),
        "{text}"
    );
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    assert_eq!(
        request(&service, &eve, "resources/list", json!({})).await["resources"],
        json!([])
    );
    for (token, uri) in [
        (&eve, uri.clone()),
        (&anna, json!("adjutant://threads/x")),
        (&anna, json!("file:///etc/passwd")),
    ] {
        let refused = answer(&service, token, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
    }
    let templates = request(&service, &anna, "resources/templates/list", json!({})).await;
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "adjutant://threads/{thread_id}"
    );
    service.stop().await;
}

#[tokio::test]
async fn the_server_lists_prompts() {
    let service = Running::start_replica(Arc::new(Store::in_memory().await.unwrap())).await;
    let anna = service.token("anna").await;
    let listed = request(&service, &anna, "prompts/list", json!({})).await;
    let names: Vec<&str> = listed["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["what_next", "plan", "tidy_up"]);
    let plan = json!({"name": "plan", "arguments": {"goal": "move by {} June"}});
    let got = request(&service, &anna, "prompts/get", plan).await;
    let text = got["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.ends_with("move by {} June"), "{text}");
    for wrong in [
        json!({"name": "plan"}),
        json!({"name": "plan", "arguments": {"goal": " "}}),
        json!({"name": "plan", "arguments": {"goal": "x".repeat(4_001)}}),
        json!({"name": "no_such"}),
    ] {
        let refused = answer(&service, &anna, "prompts/get", wrong).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    service.stop().await;
}

/// An official client takes any other status of the end of its session for a failure.
#[tokio::test]
async fn a_session_ends_and_a_client_without_one_learns_what_to_send() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let anna = service.token("anna").await;
    let headers = [
        ("Authorization", format!("Bearer {anna}")),
        ("Accept", "application/json, text/event-stream".to_owned()),
    ];
    let about = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    let refused = service.ask("POST", "/mcp", &headers, &list).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert_eq!(refused.body["id"], 2, "{refused:?}");
    let detail = refused.body["error"]["message"].as_str().unwrap();
    assert!(
        detail.contains("initialize") && detail.contains("Mcp-Session-Id"),
        "{detail}"
    );
    let begun = service
        .ask("POST", "/mcp", &headers, &about.to_string())
        .await;
    let id = begun
        .head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap()
        .to_owned();
    let [authorization, accept] = headers;
    let named = [authorization, accept, ("Mcp-Session-Id", id)];
    assert_eq!(service.ask("DELETE", "/mcp", &named, "").await.status, 204);
    assert_eq!(service.ask("DELETE", "/mcp", &named, "").await.status, 404);
    service.stop().await;
}

/// A client of the protocol reads JSON-RPC only; the status of HTTP is beside it.
#[tokio::test]
async fn a_refusal_is_json_rpc_and_lists_count_less() {
    let service = Running::start_set(r#"{"text": "Hello."}"#, |config| {
        config.limits.requests_per_minute = NonZeroU32::new(2).unwrap();
        config.mcp_sessions = false;
    })
    .await;
    let anna = service.token("anna").await;
    for _ in 0..10 {
        let listed = request(&service, &anna, "tools/list", json!({})).await;
        assert!(listed["tools"].is_array(), "{listed}");
    }
    let headers = [
        ("Authorization", format!("Bearer {anna}")),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version", "2025-06-18".to_owned()),
    ];
    let call = json!({"jsonrpc": "2.0", "id": "c-1", "method": "tools/call",
        "params": {"name": "list_tasks", "arguments": {}}});
    let mut statuses = Vec::new();
    let refused = loop {
        let answer = service
            .ask("POST", "/mcp", &headers, &call.to_string())
            .await;
        statuses.push(answer.status);
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(statuses, [200, 200, 429]);
    assert!(
        refused.head.contains("application/json") && refused.head.contains("retry-after"),
        "{refused:?}"
    );
    assert_eq!(refused.body["id"], "c-1", "{refused:?}");
    assert_eq!(refused.body["error"]["data"]["code"], "limit_reached");
    let huge = format!("{{\"id\": 1, \"x\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let refused = service.ask("POST", "/mcp", &headers, &huge).await;
    assert_eq!(
        (refused.status, refused.body["error"]["code"].as_i64()),
        (413, Some(-32600))
    );
    // The sign-in of the protocol reads the status and its header.
    let stranger = service.ask("POST", "/mcp", &[], &call.to_string()).await;
    assert_eq!(stranger.status, 401);
    assert!(
        stranger.head.to_lowercase().contains("www-authenticate"),
        "{stranger:?}"
    );
    service.stop().await;
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
    assert_eq!(
        request(&one, &anna, "initialize", about).await["serverInfo"]["name"],
        "adjutant"
    );
    let added = call(&two, &anna, "add_task", json!({"description": "buy milk"})).await;
    assert_eq!(added["success"], true, "{added}");
    let asked = call(&one, &anna, "delete_task", json!({"task_id": "milk"})).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    let again = json!({"task_id": "milk", "confirmation_id": asked["confirmation_id"]});
    assert_eq!(
        call(&two, &anna, "delete_task", again.clone()).await["status"],
        "confirmation_required"
    );

    let headers = [("Authorization", format!("Bearer {anna}"))];
    let waits = three.ask("GET", "/v1/pending", &headers, "").await.body;
    assert_eq!(
        waits["pending"][0]["thread_id"], asked["confirmation_id"],
        "{waits}"
    );
    let yes = json!({
        "thread_id": asked["confirmation_id"],
        "resume": [{"interrupt_id": waits["pending"][0]["interrupt_id"], "approved": true}],
    });
    let done = three
        .ask("POST", "/v1/chat", &headers, &yes.to_string())
        .await;
    assert_eq!(
        (done.status, &done.body["outcome"]),
        (200, &json!("SUCCESS:TASK_COMPLETED")),
        "{done:?}"
    );
    assert_eq!(
        call(&two, &anna, "delete_task", again).await["data"]["deleted"],
        true
    );
    for replica in [one, two, three] {
        replica.stop().await;
    }
}

/// A client for this machine, without the system's certificates and proxies.
fn plain_http() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap()
}

/// An agent that has its own server among its MCP servers cannot ask itself on and on: a call from
/// one of its own conversations is refused.
#[tokio::test]
async fn an_agent_does_not_ask_itself_through_its_own_server() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let inner = r#"{"text": "I was asked.", "repeat": true}"#;
    let server = Running::start_on(store.clone(), inner, |builder| builder).await;
    let token = server.token("anna").await;
    let remote = Remote {
        url: format!("http://{}/mcp", server.address),
        bearer: Some(token.into()),
        headers: BTreeMap::new(),
    };
    let name = ServerName::new("own").unwrap();
    let surroundings = ClientOptions {
        http: Some(plain_http()),
        log: Arc::new(|_, _| {}),
        pins: None,
    };
    let servers = Servers::start(
        vec![ServerConfig::new(name, Transport::Remote(remote))],
        surroundings,
    )
    .await
    .unwrap();
    let outer = r#"
{"calls": [{"name": "own__ask", "args": {"message": "hello"}}]}
{"text": "So it is: {{result}}"}
{"calls": [{"name": "own__ask", "args": {"message": "hello"}}]}
{"text": "So it is: {{result}}"}
"#;
    let tools = servers.tools();
    let policy = Policy::default().rule("own__ask", None, Permission::Allow);
    let service =
        Running::start_on(store, outer, |builder| builder.tools(tools).policy(policy)).await;
    let (anna, eve) = (service.token("anna").await, service.token("eve").await);
    let refused = service
        .chat(&anna, &json!({"message": "ask yourself"}))
        .await;
    assert!(refused.text.contains("cannot ask itself"), "{refused:?}");
    // Of another user's it is another one: it answers once, and what it asks in turn would be its
    // own.
    let answered = service.chat(&eve, &json!({"message": "ask anna's"})).await;
    assert!(answered.text.contains("I was asked."), "{answered:?}");
    servers.stop().await;
    service.stop().await;
    server.stop().await;
}

/// The setting takes the agent away, and leaves its tools.
#[tokio::test]
async fn the_agent_is_not_a_tool_if_disabled() {
    for offered in [true, false] {
        let script = r#"{"text": "Hello."}"#;
        let service = Running::start_set(script, |config| {
            (config.mcp_ask, config.mcp_sessions) = (offered, false)
        })
        .await;
        let anna = service.token("anna").await;
        let listed = request(&service, &anna, "tools/list", json!({})).await;
        let names: Vec<&str> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names.contains(&"ask"), offered, "{names:?}");
        assert!(names.contains(&"add_task"));
        service.stop().await;
    }
}
