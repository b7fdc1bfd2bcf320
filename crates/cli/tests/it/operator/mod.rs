//! Everybody of whom something is kept, for whoever runs the service: looked at, exported, deleted.

mod feedback;
mod users;

use std::process::Command;

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use crate::harness::{Home, Run, arg};
use crate::server::Server;
use crate::service::{Serving, send};

/// A user whose name is in nothing but what is kept of them.
const ANNA: &str = "anna-zanzibar";
const SCRIPT: &[&str] = &[
    r#"{"config": {"retries": 0}}"#,
    r#"{"match": "\"success\":true", "text": "Done.", "repeat": true}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}], "usage": {"input": 10, "output": 2}, "repeat": true}"#,
    r#"{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}], "repeat": true}"#,
    r#"{"match": "dark", "calls": [{"name": "setTheme", "args": {}}], "repeat": true}"#,
    r#"{"match": "trouble", "fault": "server", "repeat": true}"#,
    r#"{"text": "Hello.", "repeat": true}"#,
];

/// A database with what two people and the one at the terminal did.
struct Team<'a> {
    home: &'a Home,
    url: Option<String>,
}

impl<'a> Team<'a> {
    fn new(home: &'a Home, url: Option<String>) -> Self {
        Self { home, url }
    }

    /// Runs a check over a database in a file.
    fn in_a_file(check: impl FnOnce(&Team<'_>)) {
        let home = Home::new();
        check(&Team::new(&home, None));
    }

    /// Runs a check over a database on a PostgreSQL server.
    async fn on_a_server(check: impl FnOnce(&Team<'_>)) {
        let Some(server) = Server::start() else {
            return;
        };
        let url = server.create_database("team").await;
        let home = Home::new();
        tokio::task::block_in_place(|| check(&Team::new(&home, Some(url))));
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        if let Some(url) = &self.url {
            command.env("DATABASE_URL", url);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).succeeds().json()
    }

    fn serve(&self) -> Serving {
        let model = self.home.script(SCRIPT);
        Serving::start(&mut self.command(&[
            "serve",
            "--json",
            "-m",
            &model,
            "--bind",
            "127.0.0.1:0",
        ]))
    }

    fn token(&self, user: &str) -> String {
        self.json(&["token", "create", "--user", user])["token"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Has both say something; gives Anna's failed turn and the request it came with.
    fn fill(&self) -> (String, String) {
        let (anna, bert) = (self.token(ANNA), self.token("bert"));
        let service = self.serve();
        for (token, task) in [(&anna, "buy milk"), (&bert, "buy bread")] {
            for message in [format!("add {task}"), "hello".to_owned()] {
                let reply = service.chat(token, &json!({"thread_id": "one", "message": message}));
                assert_eq!(reply.status, 200, "{reply:?}");
            }
            let waits = service.chat(token, &json!({"thread_id": "two", "message": "drop buy"}));
            assert_eq!(waits.body["decision"], "REQUEST_CONFIRMATION", "{waits:?}");
        }
        let bearer = format!("Bearer {anna}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("X-Request-Id", "req-77"),
        ];
        let body = json!({"message": "there is trouble"}).to_string();
        let failed = send(&service.address, "POST", "/v1/chat", &headers, &body).unwrap();
        assert!(failed.status >= 500, "{failed:?}");
        (
            failed.json()["run_id"].as_str().unwrap().to_owned(),
            "req-77".to_owned(),
        )
    }
}

#[test]
fn an_operator_finds_a_turn_without_its_user_in_a_file() {
    Team::in_a_file(find);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_finds_a_turn_without_its_user_on_a_server() {
    Team::on_a_server(find).await;
}

fn find(team: &Team<'_>) {
    let (turn, request) = team.fill();
    let failed = team.json(&["log", "list", "--all-users", "--failed"]);
    assert_eq!(
        (failed.as_array().unwrap().len(), &failed[0]["id"]),
        (1, &json!(turn)),
        "{failed}"
    );
    assert_eq!(failed[0]["user"], ANNA);
    // The command that the page offers, the end of the id as the list has it, and the request that
    // the person was told.
    for args in [
        &["log", "show", turn.as_str()][..],
        &["log", "show", &turn[28..]],
        &["log", "show", "--request", &request],
    ] {
        let shown = team.run(args).succeeds().stdout;
        assert!(
            shown.contains(ANNA) && shown.contains(&turn) && shown.contains("server"),
            "{args:?}: {shown}"
        );
    }
    let listed = team.run(&["log", "list", "--all-users"]).succeeds().stdout;
    assert!(listed.contains(ANNA) && listed.contains("bert"), "{listed}");
    assert!(
        listed.lines().next().unwrap().contains("there is trouble"),
        "newest first: {listed}"
    );
    team.run(&["log", "show", "--request", "req-78"])
        .ends_with(1)
        .says("no turn was started by the request");
    team.run(&["log", "show", "ffffffff"])
        .ends_with(1)
        .says("no decision of any user");
    team.run(&["log", "show", "%"])
        .ends_with(1)
        .says("no decision of any user");
    // All ids of one version have this digit in common, and many begin alike.
    let several = team.run(&["log", "show", &turn[..2]]).ends_with(1);
    assert!(
        several.stderr.contains("more than one decision"),
        "{several:?}"
    );
    assert!(
        several.stderr.contains(&format!("--user {ANNA}")),
        "{several:?}"
    );
    team.run(&["log", "list", "--all-users", "--user", "bert"])
        .ends_with(2);

    let of = |by: &str| team.json(&["log", "stats", "--all-users", "--by", by]);
    let users = of("user");
    assert_eq!(
        (&users["all"]["turns"], &users["all"]["failed"]),
        (&json!(7), &json!(1)),
        "{users}"
    );
    let groups = |totals: &Value| -> Vec<(String, u64)> {
        let groups = totals["groups"].as_array().unwrap().iter();
        groups
            .map(|group| {
                (
                    group["group"].as_str().unwrap().to_owned(),
                    group["turns"].as_u64().unwrap(),
                )
            })
            .collect()
    };
    assert_eq!(
        groups(&users),
        [(ANNA.to_owned(), 4), ("bert".to_owned(), 3)]
    );
    assert_eq!(groups(&of("error")), [("server".to_owned(), 1)]);
    assert_eq!(groups(&of("model")).len(), 1);
    assert_eq!(
        groups(&of("day"))
            .iter()
            .map(|(_, turns)| turns)
            .sum::<u64>(),
        7
    );
    let outcomes = groups(&of("outcome"));
    assert!(
        outcomes.contains(&("PENDING:CONFIRMATION".to_owned(), 2)),
        "{outcomes:?}"
    );
    let one = team.json(&["log", "stats", "--all-users", "--by", "user", "-n", "1"]);
    assert_eq!(
        (
            groups(&one).len(),
            &one["more_groups"],
            &one["all"]["turns"]
        ),
        (1, &json!(true), &json!(7))
    );
    let none = team.json(&["log", "stats", "--all-users", "--until", "2000-01-01"]);
    assert_eq!((&none["all"]["turns"], groups(&none).len()), (&json!(0), 0));
    let words = team
        .run(&["log", "stats", "--user", "bert", "--by", "outcome"])
        .succeeds()
        .stdout;
    assert!(
        words.contains("PENDING:CONFIRMATION") && !words.contains(ANNA),
        "{words}"
    );
    team.run(&["log", "stats", "--all-users", "--tool", "add_task"])
        .ends_with(2)
        .says("--since");
}

fn get(service: &Serving, token: &str, path: &str) -> crate::service::Reply {
    let bearer = format!("Bearer {token}");
    send(
        &service.address,
        "GET",
        path,
        &[("Authorization", bearer.as_str())],
        "",
    )
    .unwrap()
}

#[test]
fn only_an_operator_sees_the_overview() {
    let home = Home::new();
    home.config("[budget]\neveryone_per_day_tokens = 100000\n");
    let team = Team::new(&home, None);
    let (turn, request) = team.fill();
    let bert = team.token("bert");
    let service = team.serve();
    let operator = service.token();
    let paths = [
        "/v1/admin/overview".to_owned(),
        "/v1/admin/users".to_owned(),
        "/v1/admin/totals?by=user".to_owned(),
        "/v1/admin/turns".to_owned(),
        format!("/v1/admin/turns/{turn}?user={ANNA}"),
        "/v1/admin/questions?hours=0".to_owned(),
    ];
    for path in &paths {
        let refused = get(&service, &bert, path);
        assert_eq!(refused.status, 403, "{path}: {refused:?}");
        refused.is_problem("forbidden", path.split('?').next().unwrap());
        let shown = get(&service, operator, path);
        assert_eq!(shown.status, 200, "{path}: {shown:?}");
        for words in [
            "buy milk",
            "buy bread",
            "there is trouble",
            "Hello.",
            "Done.",
        ] {
            assert!(!shown.text.contains(words), "{words} in {path}: {shown:?}");
        }
    }
    let json = |path: &str| get(&service, operator, path).json();
    assert_eq!(json("/v1/me")["operator"], true);
    assert_eq!(get(&service, &bert, "/v1/me").json()["operator"], false);
    let overview = json("/v1/admin/overview");
    assert_eq!(
        (&overview["day"]["turns"], &overview["day"]["failed"]),
        (&json!(7), &json!(1)),
        "{overview}"
    );
    assert_eq!(
        (&overview["errors"][0]["group"], &overview["waiting"]),
        (&json!("server"), &json!(2)),
        "{overview}"
    );
    assert_eq!(
        (
            &overview["budgets"][0]["quantity"],
            &overview["waiting_long"]
        ),
        (&json!("tokens"), &json!(0))
    );
    assert_eq!(
        overview["budgets"][0]["limit"].as_f64(),
        Some(100_000.0),
        "{overview}"
    );
    let failed = json("/v1/admin/turns?failed=true");
    assert_eq!(
        (
            failed["turns"].as_array().unwrap().len(),
            &failed["turns"][0]["id"]
        ),
        (1, &json!(turn))
    );
    assert_eq!(failed["turns"][0]["request_id"], json!(request), "{failed}");
    assert_eq!(
        json(&format!("/v1/admin/turns?request_id={request}"))["turns"][0]["user"],
        ANNA
    );
    // Page by page, each turn once.
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = json(&format!("/v1/admin/turns?limit=2{cursor}"));
        ids.extend(
            page["turns"]
                .as_array()
                .unwrap()
                .iter()
                .map(|turn| turn["id"].to_string()),
        );
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7, "{ids:?}");
    let waiting = json("/v1/admin/questions?hours=0&limit=1");
    assert_eq!(
        waiting["questions"].as_array().unwrap().len(),
        1,
        "{waiting}"
    );
    let next = waiting["next_cursor"].as_str().unwrap();
    let rest = json(&format!("/v1/admin/questions?hours=0&cursor={next}"));
    assert_eq!(rest["questions"].as_array().unwrap().len(), 1, "{rest}");
    assert_ne!(
        rest["questions"][0]["user"],
        waiting["questions"][0]["user"]
    );
    let first = json("/v1/admin/users?limit=1");
    assert_eq!(
        (&first["users"][0]["user"], &first["next_after"]),
        (&json!(ANNA), &json!(ANNA)),
        "{first}"
    );
    let detail = json(&format!("/v1/admin/turns/{turn}?user={ANNA}"));
    let steps = detail["steps"].as_array().unwrap();
    assert!(
        steps
            .iter()
            .any(|step| step["kind"] == "model" && step["error_code"] == "server"),
        "{detail}"
    );
    assert_eq!(
        (&detail["words"], &detail["command"]),
        (&Value::Null, &json!(format!("adjutant log show {turn}")))
    );
    for (path, status) in [
        (format!("/v1/admin/turns/{turn}?user=bert"), 404),
        (format!("/v1/admin/turns/{turn}"), 422),
        ("/v1/admin/turns?limit=0".to_owned(), 422),
        ("/v1/admin/turns?days=367".to_owned(), 422),
        ("/v1/admin/turns?cursor=x".to_owned(), 422),
        ("/v1/admin/turns?request_id=".to_owned(), 422),
        ("/v1/admin/questions?cursor=x".to_owned(), 422),
        ("/v1/admin/totals?by=%00".to_owned(), 422),
        ("/v1/admin/totals".to_owned(), 422),
        (format!("/v1/admin/users?after={}", "a".repeat(1_001)), 422),
    ] {
        let answer = get(&service, operator, &path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
}

#[test]
fn messages_of_others_are_shown_only_if_that_is_set_and_each_access_is_logged() {
    for sees_words in [false, true] {
        let home = Home::new();
        home.config(&format!("[serve]\noperator_sees_words = {sees_words}\n"));
        let team = Team::new(&home, None);
        let (turn, _) = team.fill();
        let model = home.script(SCRIPT);
        let mut command = home.serve_command(&model);
        let (mut service, mut errors) = Serving::start_with_stderr(&mut command);
        let seen = get(
            &service,
            service.token(),
            &format!("/v1/admin/turns/{turn}?user={ANNA}"),
        );
        assert_eq!(
            seen.text.contains("there is trouble"),
            sees_words,
            "{seen:?}"
        );
        service.signal("-INT");
        service.wait();
        let mut words = String::new();
        std::io::Read::read_to_string(&mut errors, &mut words).unwrap();
        let look = format!("operator=local owner={ANNA} turn={turn} words={sees_words}");
        assert!(words.contains(&look), "no {look:?} in {words}");
    }
}

/// The lines of an export, without when it was made.
fn export_of(team: &Team<'_>, user: &str) -> Vec<String> {
    let text = team.run(&["users", "export", user]).succeeds().stdout;
    text.lines().skip(1).map(str::to_owned).collect()
}
