//! `adjutant mcp`: on standard output is the protocol, and nothing else ever.

use serde_json::{Value, json};

use crate::harness::{Home, Run};

/// Messages of a client, one per line.
fn session(requests: &[Value]) -> String {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    [&initialize, &initialized]
        .into_iter()
        .chain(requests)
        .map(|request| format!("{request}\n"))
        .collect()
}

fn call(id: u32, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// The answers on standard output, by their id.
fn answers(run: &Run) -> Vec<Value> {
    let mut answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    assert!(
        answers.iter().all(|answer| answer["jsonrpc"] == "2.0"),
        "{answers:?}"
    );
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn a_client_adds_a_task_that_the_terminal_shows() {
    let home = Home::new();
    let run = home.pipe(
        &["-v", "mcp"],
        session(&[call(1, "add_task", json!({"description": "Buy milk"}))]).as_bytes(),
    );
    let answers = answers(&run);
    assert_eq!((run.code, answers.len()), (0, 2), "{run:?}");
    assert_eq!(
        answers[1]["result"]["structuredContent"]["data"]["description"],
        "Buy milk"
    );
    assert_eq!(home.tasks(), ["Buy milk"]);
    let asks = home.pipe(
        &["mcp"],
        session(&[call(1, "delete_task", json!({"task_id": "milk"}))]).as_bytes(),
    );
    let asked = self::answers(&asks);
    assert_eq!(
        asked[1]["result"]["structuredContent"]["status"],
        "confirmation_required"
    );
    let other = home.pipe(
        &["mcp", "--user", "ben"],
        session(&[call(1, "list_tasks", json!({}))]).as_bytes(),
    );
    assert_eq!(
        self::answers(&other)[1]["result"]["structuredContent"]["data"]["count"],
        0
    );
    assert_eq!(home.tasks(), ["Buy milk"]);
}

#[test]
fn a_startup_error_is_sent_to_the_client() {
    let home = Home::new();
    home.config("modle = \"demo\"\n");
    let run = home.pipe(&["mcp"], session(&[]).as_bytes());
    let answers = answers(&run);
    assert_eq!((run.code, answers.len()), (3, 1), "{run:?}");
    assert_eq!(
        (&answers[0]["id"], &answers[0]["error"]["code"]),
        (&json!(0), &json!(-32603))
    );
    assert!(
        answers[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("modle"),
        "{answers:?}"
    );
    assert!(run.stderr.contains("Error:"), "{run:?}");
}

#[test]
fn without_a_client_it_ends_quietly() {
    let run = Home::new().run(&["mcp"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
}

#[test]
fn configurations_carry_over_what_was_given() {
    let home = Home::new();
    let args = [
        "--database",
        "tasks.db",
        "mcp",
        "--user",
        "ana",
        "--print-config",
    ];
    let database = home
        .path("project")
        .canonicalize()
        .unwrap()
        .join("tasks.db")
        .display()
        .to_string();
    let printed = |client| home.run(&[&args[..], &[client]].concat());
    let told = printed("claude").stderr;
    assert!(told.contains("--scope read --scope write"), "{told}");
    let claude: Value = serde_json::from_str(&printed("claude").stdout).unwrap();
    let server = &claude["mcpServers"]["adjutant"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_adjutant"));
    assert_eq!(
        server["args"],
        json!(["mcp", "--database", database, "--user", "ana"])
    );
    let codex: toml::Table = toml::from_str(&printed("codex").stdout).unwrap();
    assert_eq!(json!(codex["mcp_servers"]["adjutant"]), *server);
    let vscode: Value = serde_json::from_str(&printed("vscode").stdout).unwrap();
    assert_eq!(vscode["servers"]["adjutant"]["args"], server["args"]);
    assert!(
        printed("goose")
            .stdout
            .contains(&format!("args: {}", server["args"]))
    );
    assert_eq!(home.run(&["mcp", "--print-config", "emacs"]).code, 2);
}
