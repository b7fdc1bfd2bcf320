//! `adjutant serve --dispatch`: the shipped binary with Restate in front of PostgreSQL.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::restate_server::Restate;
use crate::server::Server;
use crate::service::{self, Serving};

const MODEL: &[&str] = &[
    r#"{"match": "success", "text": "Done."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}]}"#,
];

#[tokio::test]
async fn a_yes_counts_after_restate_and_the_service_were_killed() {
    let server = Server::start();
    let url = server.create_database("tasks").await;
    let mut restate = Restate::start();
    let home = Home::new();
    let model = home.script(MODEL);
    let dispatch = restate.address(0);
    let options = ["serve", "--json", "-m", &model, "--bind", "127.0.0.1:0", "--dispatch", &dispatch];
    let start = || Serving::start(home.command(&options).env("DATABASE_URL", &url));
    let ask = |serving: &Serving, name: &str, body: Value| {
        let answer = service::chat(&serving.address, serving.token(), Some(name), &body).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    let tasks = || home.run(&["tasks", "list", "--json", "--database", &url]).succeeds().json();

    let mut first = start();
    assert!(first.announced["worker"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    restate.wait_for_worker();
    ask(&first, "1", json!({"message": "add milk", "thread_id": "t"}));
    let asked = ask(&first, "2", json!({"message": "drop milk", "thread_id": "t"}));
    assert_eq!(asked["outcome"], "PENDING:CONFIRMATION", "{asked}");
    // It was Restate that had both gone on, and no call of it waits for a person.
    assert_eq!(restate.calls(), ["completed", "completed"]);

    restate.crash();
    first.kill();
    restate.run();
    let second = start();
    let yes = json!({"thread_id": "t", "resume": [{"interrupt_id": asked["pending"][0]["interrupt_id"], "approved": true}]});
    let done = ask(&second, "3", yes);
    assert_eq!(done["outcome"], "SUCCESS:TASK_COMPLETED", "{done}");
    assert_eq!(tasks()["result"]["data"]["tasks"], json!([]));
}

#[test]
fn an_address_that_is_none_is_refused() {
    let home = Home::new();
    let refused = home.run(&["serve", "-m", "demo", "--dispatch", "restate://h?colour=red"]).ends_with(3);
    assert!(refused.stderr.contains("colour="), "{refused:?}");
}

#[test]
fn a_file_is_not_dispatched() {
    let home = Home::new();
    let dispatch = "restate://127.0.0.1:8080?admin=none&listen=127.0.0.1:0";
    let refused = home.run(&["serve", "-m", "demo", "--dispatch", dispatch]).ends_with(3);
    assert!(refused.stderr.contains("needs PostgreSQL"), "{refused:?}");
    home.config(&format!("[serve]\ndispatch = \"{dispatch}\"\n"));
    let refused = home.run(&["serve", "-m", "demo"]).ends_with(3);
    assert!(refused.stderr.contains("needs PostgreSQL"), "{refused:?}");
}
