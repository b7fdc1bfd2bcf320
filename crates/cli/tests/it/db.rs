//! `adjutant db`, and what is old.

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::harness::{Home, Run, arg};
use crate::server::Server;

/// A home with a task and two conversations, one of which waits for a yes.
fn home_with_data() -> (Home, String) {
    let home = Home::new();
    home.add_task("buy milk");
    let model = home.script(&[
        r#"{"match": "drop", "calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#,
        r#"{"text": "Hello.", "repeat": true}"#,
    ]);
    home.run(&["-m", &model, "hello"]).succeeds();
    home.run(&["-m", &model, "drop it"]).ends_with(4);
    (home, model)
}

/// To a server and back, with everything that a person did, while it is in use.
#[tokio::test]
async fn a_database_is_copied_to_a_server_and_back() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("moved").await;
    let (home, model) = home_with_data();
    let copied = home.run(&["db", "copy", "--to", &url]).succeeds();
    assert!(
        copied.stdout.contains("All is well.") && copied.stdout.contains("/moved"),
        "{copied:?}"
    );
    assert!(copied.stderr.contains("rows (100 %)"), "{copied:?}");
    // What waits there can be answered there, and what comes next has the next number.
    let there = |args: &[&str]| Run::of(home.command(args).env("DATABASE_URL", &url));
    let waiting = there(&["pending", "list", "--json"]).succeeds().json();
    let id = waiting[0]["id"].as_str().unwrap().to_owned();
    there(&["pending", "approve", &id, "-m", &model]).succeeds();
    there(&["tasks", "add", "buy bread"]).succeeds();
    there(&["-m", &model, "hello again"]).succeeds();
    assert_eq!(home.tasks(), ["buy milk"]);

    let back = home.path("back.db");
    let copy = there(&["db", "copy", "--to", arg(&back), "--json"])
        .succeeds()
        .json();
    assert_eq!(copy["findings"], serde_json::json!([]), "{copy}");
    let (_, log) = home.json(&["log", "list", "--database", arg(&back)]);
    assert_eq!(log, there(&["log", "list", "--json"]).succeeds().json());
    let (_, tasks) = home.json(&["tasks", "list", "--database", arg(&back)]);
    let tasks = tasks["result"]["data"]["tasks"].as_array().unwrap().clone();
    assert!(
        tasks.len() == 1 && tasks[0]["description"] == "buy bread" && tasks[0]["id"] == "2",
        "{tasks:?}"
    );
}

#[test]
fn a_copy_goes_to_an_empty_database_or_nowhere() {
    let (home, _) = home_with_data();
    let other = home.path("other.db");
    home.run(&["tasks", "add", "x", "--database", arg(&other)])
        .succeeds();
    home.run(&["db", "copy", "--to", arg(&other)])
        .ends_with(3)
        .says("it is not empty (adjutant_task)");
    let (_, tasks) = home.json(&["tasks", "list", "--database", arg(&other)]);
    assert_eq!(
        tasks["result"]["data"]["tasks"].as_array().unwrap().len(),
        1,
        "{tasks}"
    );
    // Onto itself neither.
    let own = home.path("data/adjutant/adjutant.db");
    home.run(&["db", "copy", "--to", arg(&own)])
        .ends_with(3)
        .says("it is not empty");
    home.run(&["db", "copy", "--to", "mysql://ana:s3cret@h/x"])
        .ends_with(2)
        .says("--to must be postgres://");
    home.run(&["db", "copy"]).ends_with(2).says("--to");
}

#[tokio::test]
async fn a_copy_that_breaks_off_leaves_no_file() {
    let (home, _) = home_with_data();
    tamper(
        &home,
        "UPDATE adjutant_decision SET content = CAST(x'ff' AS TEXT)",
    )
    .await;
    let copy = home.path("copy.db");
    home.run(&["db", "copy", "--to", arg(&copy)])
        .ends_with(3)
        .says("adjutant.db");
    for ending in ["copy.db", "copy.db-wal", "copy.db-shm"] {
        assert!(!home.path(ending).exists(), "{ending}");
    }
}

/// Changes the file as no program of ours would.
async fn tamper(home: &Home, statement: &str) {
    let file = home.path("data/adjutant/adjutant.db");
    let mut connection = SqliteConnectOptions::new()
        .filename(file)
        .connect()
        .await
        .unwrap();
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_database_is_described_checked_and_copied() {
    let (home, _) = home_with_data();
    let status = home.run(&["db", "status"]).succeeds();
    for words in ["adjutant.db", "SQLite 3.", "wal", "1 wait for a person"] {
        assert!(status.stdout.contains(words), "no {words:?} in {status:?}");
    }
    let (code, status) = home.json(&["db", "status"]);
    let rows = |status: &Value, table: &str| {
        let tables = status["tables"].as_array().unwrap();
        tables.iter().find(|row| row["name"] == table).unwrap()["rows"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(
        (code, rows(&status, "task"), rows(&status, "conversation")),
        (0, 1, 3),
        "{status}"
    );
    home.run(&["db", "migrate"]).succeeds();
    assert_eq!(
        home.run(&["db", "check"]).succeeds().stdout,
        "All is well.\n"
    );

    let copy = home.path("copy.db");
    home.run(&["db", "backup", arg(&copy)]).succeeds();
    home.run(&["db", "backup", arg(&copy)])
        .ends_with(3)
        .says("copy.db");
    home.add_task("buy bread");
    let (_, of_copy) = home.json(&["tasks", "list", "--database", arg(&copy)]);
    assert_eq!(
        of_copy["result"]["data"]["tasks"].as_array().unwrap().len(),
        1,
        "{of_copy}"
    );

    tamper(&home, "DELETE FROM adjutant_event WHERE seq = 2").await;
    let (code, findings) = home.json(&["db", "check"]);
    assert_eq!(code, 1);
    assert!(!findings.as_array().unwrap().is_empty(), "{findings}");
    home.run(&["db", "check"])
        .ends_with(1)
        .says("nothing was changed");
}

#[tokio::test]
async fn users_with_confusable_names_are_noted_and_are_no_findings() {
    let (home, _) = home_with_data();
    assert!(
        !home
            .run(&["db", "check"])
            .succeeds()
            .stderr
            .contains("local")
    );
    let columns = "description, created_at, updated_at";
    for name in ["'ana'", "'ana '"] {
        tamper(
            &home,
            &format!(
                "INSERT INTO adjutant_task (user_id, id, {columns}) SELECT {name}, id, {columns} FROM adjutant_task LIMIT 1"
            ),
        )
        .await;
        tamper(
            &home,
            &format!("INSERT INTO adjutant_task_counter VALUES ({name}, 1)"),
        )
        .await;
    }
    let checked = home
        .run(&["db", "check"])
        .succeeds()
        .says("\"ana\", \"ana \" differ")
        .says("beside 2 others");
    assert_eq!(checked.stdout, "All is well.\n");
}

#[test]
fn what_is_not_there_is_not_made_by_looking_at_it() {
    let home = Home::new();
    let file = home.path("mistyped.db");
    for command in [
        vec!["db", "status"],
        vec!["db", "check"],
        vec!["db", "backup", "copy.db"],
    ] {
        let command = [command.as_slice(), &["--database", arg(&file)]].concat();
        home.run(&command)
            .ends_with(3)
            .says("mistyped.db")
            .says("adjutant db migrate");
        assert!(!file.exists(), "{command:?} made it");
    }
    home.run(&["db", "migrate", "--database", arg(&file)])
        .succeeds();
    home.run(&["db", "check", "--database", arg(&file)])
        .succeeds();
}

#[tokio::test]
async fn a_server_has_a_program_of_its_own_for_copies() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("tasks").await;
    let home = Home::new();
    let run = |args: &[&str]| Run::of(home.command(args).env("DATABASE_URL", &url));
    run(&["tasks", "add", "buy milk"]).succeeds();
    assert!(
        run(&["db", "status"])
            .succeeds()
            .stdout
            .contains("PostgreSQL ")
    );
    run(&["db", "check"]).succeeds();
    run(&["db", "backup", "copy"]).ends_with(3).says("pg_dump");
}

#[tokio::test]
async fn what_is_old_goes_once_a_day_and_what_waits_or_is_a_task_stays() {
    let (home, model) = home_with_data();
    home.config("[log]\nkeep = \"90d\"\n");
    let chat = || home.run(&["chat", "-v", "-m", &model]).succeeds();
    tamper(
        &home,
        "UPDATE adjutant_event SET at = '2020' || substr(at, 5)",
    )
    .await;
    tamper(
        &home,
        "UPDATE adjutant_conversation SET updated_at = '2020' || substr(updated_at, 5)",
    )
    .await;
    chat()
        .says("removed what is older than")
        .says("2 conversations");
    let (_, log) = home.json(&["log", "list"]);
    assert_eq!(log.as_array().unwrap().len(), 1, "{log}");
    assert_eq!(
        home.json(&["pending", "list"]).1.as_array().unwrap().len(),
        1
    );
    assert_eq!(home.tasks(), ["buy milk"]);
    home.run(&["db", "check"]).succeeds();
    assert!(!chat().stderr.contains("log.keep"));
    home.config("[log]\nkeep = \"12h\"\n");
    home.run(&["tasks", "list"]).ends_with(3).says("log.keep");
}
