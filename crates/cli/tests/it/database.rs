//! The same commands over PostgreSQL, and addresses that are none.

use serde_json::json;

use crate::harness::{Home, Run};
use crate::server::Server;

const SHOPPING: &[&str] = &[
    r#"{"match": "success", "text": "Done."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}]}"#,
];

#[tokio::test]
async fn every_command_works_over_postgresql() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("tasks").await;
    let home = Home::new();
    let model = home.script(SHOPPING);
    let run = |args: &[&str]| Run::of(home.command(args).env("DATABASE_URL", &url));
    run(&["tasks", "add", "buy bread"]).succeeds();
    let asked = run(&["-m", &model, "add buy milk"]).succeeds();
    assert_eq!(asked.stdout, "Done.\n");
    // Which database it is, is said.
    assert!(asked.stderr.contains("postgres:///tasks"), "{asked:?}");
    run(&["-m", &model, "drop milk"]).ends_with(4);
    let waiting = run(&["pending", "list", "--json"]).succeeds().json();
    let id = waiting[0]["id"].as_str().unwrap().to_owned();
    run(&["pending", "approve", &id, "-m", &model]).succeeds();
    let log = run(&["log", "list", "--json"]).succeeds().json();
    assert_eq!(log.as_array().unwrap().len(), 3, "{log}");
    run(&["log", "show"]).succeeds();
    run(&["token", "create", "--user", "anna"]).succeeds();
    // By option, and not in the usual file.
    let listed = home
        .run(&["tasks", "list", "--json", "--database", &url])
        .succeeds()
        .json();
    assert_eq!(
        listed["result"]["data"]["tasks"][0]["description"],
        json!("buy bread"),
        "{listed}"
    );
    assert_eq!(
        listed["result"]["data"]["tasks"].as_array().unwrap().len(),
        1
    );
    assert!(home.tasks().is_empty());
}

#[test]
fn a_file_may_be_named_as_an_address() {
    let home = Home::new();
    let file = home.path("elsewhere.db");
    let address = format!("sqlite:{}", file.display());
    home.run(&["tasks", "add", "x", "--database", &address])
        .succeeds();
    assert!(file.exists() && home.tasks().is_empty());
    home.config("[serve]\ndatabase_url = \"../../elsewhere.db\"\n");
    assert_eq!(home.tasks(), ["x"]);
}

#[test]
fn a_password_is_never_shown() {
    let home = Home::new();
    let with = |url: &str, args: &[&str]| Run::of(home.command(args).env("DATABASE_URL", url));
    for (url, args, code) in [
        (
            "postgres://ana:s3cret@127.0.0.1:9/x",
            &["tasks", "list"][..],
            1,
        ),
        (
            "postgres://ana:s3cret@127.0.0.1:9/x",
            &["config", "show", "--origin"],
            0,
        ),
        (
            "postgres://ana:s3cret@127.0.0.1:9/x",
            &["config", "show", "--json"],
            0,
        ),
        (
            "postgres://ana:s3cret@127.0.0.1:9/x",
            &["config", "path"],
            0,
        ),
        ("mysql://ana:s3cret@127.0.0.1:9/x", &["tasks", "list"], 3),
        ("postgres://ana:s3cret@[127/x", &["tasks", "list"], 3),
    ] {
        let run = with(url, args).ends_with(code);
        assert!(
            !run.stdout.contains("s3cret") && !run.stderr.contains("s3cret"),
            "{run:?}"
        );
    }
    let run = with("mysql://ana:s3cret@h/x", &["tasks", "list"]);
    run.says("DATABASE_URL must be postgres://");
    let run = home
        .run(&["tasks", "list", "--database", "mysql://ana:s3cret@h/x"])
        .ends_with(2);
    assert!(!run.stderr.contains("s3cret"), "{run:?}");
    home.config("[serve]\ndatabase_url = \"mysql://ana:s3cret@h/x\"\n");
    let run = home
        .run(&["tasks", "list"])
        .ends_with(3)
        .says("config.toml:2");
    assert!(!run.stderr.contains("s3cret"), "{run:?}");
}
