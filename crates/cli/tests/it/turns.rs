//! Open turns of all users, for whoever runs the service.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::harness::{Home, arg};
use crate::service::{Serving, chat};

const DROP: &[&str] = &[
    r#"{"match": "drop", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    r#"{"match": "hello", "text": "Hello."}"#,
];

#[test]
fn an_open_turn_is_listed_shown_and_ended() {
    let home = Home::new();
    assert_eq!(
        home.run(&["turns", "list"])
            .succeeds()
            .stdout
            .lines()
            .count(),
        1
    );
    let model = home.script(DROP);
    home.add_task("buy milk");
    home.run(&["-m", &model, "drop the milk"]).ends_with(4);
    let (_, listed) = home.json(&["turns", "list"]);
    let turn = listed[0]["turn"].as_str().unwrap().to_owned();
    assert_eq!(
        (&listed[0]["user"], &listed[0]["state"]),
        (&"local".into(), &"waiting".into()),
        "{listed}"
    );
    let shown = home.run(&["turns", "show", &turn]).succeeds();
    assert!(
        shown.stdout.contains("turn_parked") && !shown.stdout.contains("milk"),
        "{shown:?}"
    );

    home.run(&["turns", "drop", &turn])
        .ends_with(4)
        .says("needs your confirmation");
    home.run(&["turns", "drop", "ffffffff", "-y"])
        .ends_with(1)
        .says("no open turn");
    home.run(&["turns", "drop", &turn, "-y"]).succeeds();
    assert_eq!(home.json(&["turns", "list"]).1, serde_json::json!([]));
    assert_eq!(home.json(&["pending", "list"]).1, serde_json::json!([]));
    assert_eq!(home.tasks(), ["buy milk"]);
    // The conversation goes on.
    assert_eq!(
        home.run(&["-m", &model, "-c", "hello"]).succeeds().stdout,
        "Hello.\n"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_listed_beside_the_rest() {
    let home = Home::new();
    let model = home.script(DROP);
    home.add_task("buy milk");
    for _ in 0..2 {
        home.run(&["-m", &model, "drop the milk"]).ends_with(4);
    }
    // As a newer version would write it.
    let file = home.path("data/adjutant/adjutant.db");
    let mut hand = SqliteConnectOptions::new()
        .filename(file)
        .connect()
        .await
        .unwrap();
    let newer = "UPDATE adjutant_event SET v = 99 WHERE kind = 'turn_started'
                 AND conversation = (SELECT max(key) FROM adjutant_conversation)";
    sqlx::raw_sql(newer).execute(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    let listed = home.run(&["turns", "list"]).succeeds().stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("conversation ") && line.contains("unreadable: ")),
        "{listed}"
    );
    let (_, listed) = home.json(&["turns", "list"]);
    assert_eq!(
        (&listed[0]["state"], &listed[1]["state"]),
        (&json!("waiting"), &json!("unreadable")),
        "{listed}"
    );
    assert_eq!(listed[1]["turn"], json!(null));
}

/// The tool's server kills whoever calls it, so no process that runs the turn sees its end.
#[test]
fn a_turn_that_takes_its_process_down_is_ended_the_third_time() {
    let home = Home::new();
    let server = include_str!("mcp_servers/server.sh").replace(
        r#"text "token $TOKEN""#,
        "echo killed >> kills; kill -9 $PPID",
    );
    let server = home.file("server.sh", &server);
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"{}\"]\n",
        arg(&server)
    ));
    let model = home.script(&[
        r#"{"match": "hello", "text": "Hello."}"#,
        r#"{"match": "look", "calls": [{"name": "shell__look", "args": {}}]}"#,
    ]);
    let serve = || home.serve_command(&model);
    let mut serving = Serving::start(&mut serve());
    let lost = chat(
        &serving.address,
        serving.token(),
        None,
        &json!({"message": "look", "thread_id": "t"}),
    );
    assert!(lost.is_err(), "{lost:?}");
    assert!(!serving.wait().success());
    let (_, open) = home.json(&["turns", "list"]);
    assert_eq!(
        (open.as_array().unwrap().len(), &open[0]["user"]),
        (1, &json!("local")),
        "{open}"
    );

    // Each start takes the turn up, until one says that it does not any more.
    let told = loop {
        let mut child = serve()
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let told = lines.find(|line| line.contains("ERROR:POISONED"));
        let _ = child.kill();
        child.wait().unwrap();
        if let Some(told) = told {
            break told;
        }
    };
    assert!(
        told.contains("the turn was given up")
            && told.contains("user=local")
            && told.contains(open[0]["turn"].as_str().unwrap()),
        "{told}"
    );
    let kills = std::fs::read_to_string(home.path("project/kills")).unwrap();
    assert_eq!(
        kills.lines().count(),
        3,
        "once for each process that tried it"
    );

    let serving = Serving::start(&mut serve());
    let next = serving.chat(
        serving.token(),
        &json!({"message": "hello", "thread_id": "t"}),
    );
    assert_eq!(
        (next.status, &next.body["content"]),
        (200, &json!("Hello.")),
        "{next:?}"
    );
    drop(serving);
    assert_eq!(home.json(&["turns", "list"]).1, json!([]));
    let (_, log) = home.json(&["log", "list"]);
    assert!(
        log.as_array()
            .unwrap()
            .iter()
            .any(|row| row["outcome"] == "ERROR:POISONED"),
        "{log}"
    );
}
