//! `adjutant users`: listing, exporting and deleting all data of a user.

use super::*;

#[test]
fn users_are_listed_exported_and_deleted_in_a_file() {
    let home = Home::new();
    let team = Team::new(&home, None);
    let file = home.path("data/adjutant/adjutant.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    users(&team, || runtime.block_on(rows_of_file(&file)));
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_listed_exported_and_deleted_on_a_server() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("team").await;
    let home = Home::new();
    let team = Team::new(&home, Some(url.clone()));
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| users(&team, || runtime.block_on(rows_of_server(&url))));
}

fn users(team: &Team<'_>, rows: impl Fn() -> Vec<String>) {
    // What is spent is booked too.
    team.home
        .config("[budget]\nper_day_tokens = 100000\neveryone_per_day_tokens = 1000000\n");
    team.fill();
    let (all, listed) = (
        team.json(&["users", "list"]),
        team.run(&["users", "list"]).succeeds().stdout,
    );
    let names: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|user| user["user"].as_str().unwrap())
        .collect();
    assert_eq!(names, [ANNA, "bert"], "{all}");
    let of = |name: &str| (all[0][name].clone(), all[1][name].clone());
    assert_eq!(of("turns"), (json!(4), json!(3)));
    assert_eq!(of("failed"), (json!(1), json!(0)));
    assert_eq!(of("tasks"), (json!(1), json!(1)));
    assert_eq!(of("waiting"), (json!(1), json!(1)));
    assert_eq!(of("access_tokens"), (json!(1), json!(1)));
    assert!(listed.contains(ANNA), "{listed}");
    let first = team
        .run(&["users", "list", "-n", "1"])
        .succeeds()
        .says(&format!("--after {ANNA}"));
    assert!(!first.stdout.contains("bert"), "{first:?}");
    let rest = team.json(&["users", "list", "--after", ANNA]);
    assert_eq!(
        (rest.as_array().unwrap().len(), &rest[0]["user"]),
        (1, &json!("bert"))
    );

    export(team);

    team.run(&["users", "delete", "nobody", "-y"])
        .ends_with(1)
        .says("nothing is kept");
    team.run(&["users", "delete", ANNA])
        .ends_with(4)
        .says("needs your confirmation");
    assert!(
        rows().iter().any(|row| row.contains(ANNA)),
        "the scan of all tables sees what is there"
    );
    let berts = |rows: Vec<String>| {
        let rows: Vec<String> = rows
            .into_iter()
            .filter(|row| row.contains("bert"))
            .collect();
        (export_of(team, "bert"), rows)
    };
    let before = berts(rows());
    let deleted = team.json(&["users", "delete", ANNA, "-y"]);
    assert_eq!(
        (&deleted["conversations"], &deleted["tokens_refused"]),
        (&json!(3), &json!(1)),
        "{deleted}"
    );
    let left: Vec<String> = rows();
    assert!(
        left.iter().all(|row| !row.contains(ANNA)),
        "{:?}",
        left.iter().find(|row| row.contains(ANNA))
    );
    assert!(
        left.iter()
            .all(|row| !row.contains("buy milk") && !row.contains("there is trouble"))
    );
    assert_eq!(before, berts(left));
    assert_eq!(
        team.run(&["db", "check"]).succeeds().stdout,
        "All is well.\n"
    );
    team.run(&["users", "delete", ANNA, "-y"])
        .ends_with(1)
        .says("nothing is kept");
    assert_eq!(team.json(&["users", "list"]).as_array().unwrap().len(), 1);
}

fn export(team: &Team<'_>) {
    let file = team.home.path("anna.ndjson");
    team.run(&["users", "export", ANNA, "-o", arg(&file)])
        .succeeds();
    team.run(&["users", "export", ANNA, "-o", arg(&file)])
        .ends_with(1)
        .says("is there already");
    team.run(&["users", "export", ANNA, "-o", arg(&file), "--force"])
        .succeeds();
    team.run(&["users", "export", "nobody"])
        .ends_with(1)
        .says("nothing is kept");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["user"]),
        (&json!("manifest"), &json!(ANNA)),
        "{}",
        lines[0]
    );
    assert_eq!(lines[0]["rows"]["decision"], 4, "{}", lines[0]);
    assert_eq!(
        [
            "task",
            "conversation",
            "decision",
            "tool_invocation",
            "access_token",
            "end"
        ]
        .map(count),
        [1, 3, 4, 1, 1, 1],
        "{text}"
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["lines"]["decision"]),
        (&json!("end"), &json!(4)),
        "{last}"
    );
    for words in ["buy milk", "there is trouble", "Hello.", "add buy milk"] {
        assert!(text.contains(words), "no {words:?}");
    }
    assert!(!text.contains("buy bread"), "{text}");
    let token = lines
        .iter()
        .find(|line| line["kind"] == "access_token")
        .unwrap();
    assert!(
        token.get("digest").is_none() && token.get("secret").is_none(),
        "{token}"
    );
}

/// A turn that runs while its user is deleted ends, and writes nothing more.
#[test]
fn what_runs_is_stopped_when_its_user_is_deleted() {
    let home = Home::new();
    let team = Team::new(&home, None);
    let token = team.token(ANNA);
    let model = home.script(&[r#"{"text": "a word ", "delay_ms": 600000}"#]);
    let service = Serving::start(&mut home.serve_command(&model));
    let (address, secret) = (service.address.clone(), token.clone());
    let asked = std::thread::spawn(move || {
        crate::service::chat(&address, &secret, None, &json!({"message": "hello"}))
    });
    while team.json(&["users", "list"])[0]["turns"] != 1 {
        std::thread::yield_now();
    }
    let deleted = team.json(&["users", "delete", ANNA, "-y"]);
    assert_eq!(deleted["conversations"], 1, "{deleted}");
    assert_eq!(team.json(&["users", "list"]), json!([]));
    // Whoever waited has an answer of some kind.
    let _ = asked.join().unwrap();
    let bearer = format!("Bearer {token}");
    let refused = send(
        &service.address,
        "GET",
        "/v1/me",
        &[("Authorization", bearer.as_str())],
        "",
    )
    .unwrap();
    assert_eq!(refused.status, 401, "{refused:?}");
    let file = home.path("data/adjutant/adjutant.db");
    let rows = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(rows_of_file(&file));
    assert!(rows.iter().all(|row| !row.contains(ANNA)));
    assert_eq!(
        team.run(&["db", "check"]).succeeds().stdout,
        "All is well.\n"
    );
}

/// Every row of every table, as text.
async fn rows_of_file(file: &std::path::Path) -> Vec<String> {
    let mut connection: SqliteConnection = SqliteConnectOptions::new()
        .filename(file)
        .connect()
        .await
        .unwrap();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let tables = sqlx::query(tables)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let mut rows = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = sqlx::query(AssertSqlSafe(columns))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let columns: Vec<String> = columns
            .iter()
            .map(|row| format!("quote({})", row.get::<String, _>(0)))
            .collect();
        let select = format!("SELECT {} FROM {table}", columns.join(" || '|' || "));
        let found = sqlx::query(AssertSqlSafe(select))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        rows.extend(
            found
                .iter()
                .map(|row| format!("{table}: {}", row.get::<String, _>(0))),
        );
    }
    connection.close().await.unwrap();
    rows.sort();
    rows
}

async fn rows_of_server(url: &str) -> Vec<String> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let tables = "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'";
    let tables = sqlx::query(tables)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let mut rows = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let select = format!("SELECT CAST({table} AS TEXT) FROM {table}");
        let found = sqlx::query(AssertSqlSafe(select))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        rows.extend(
            found
                .iter()
                .map(|row| format!("{table}: {}", row.get::<String, _>(0))),
        );
    }
    connection.close().await.unwrap();
    rows.sort();
    rows
}
