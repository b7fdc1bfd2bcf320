//! Everybody of whom something is kept, for whoever runs the service: looked at, exported, deleted.

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
    let home = Home::new();
    find(&Team::new(&home, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_finds_a_turn_without_its_user_on_a_server() {
    let server = Server::start();
    let url = server.create_database("team").await;
    let home = Home::new();
    tokio::task::block_in_place(|| find(&Team::new(&home, Some(url))));
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
    let server = Server::start();
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
        .says("needs a yes");
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

/// The lines of an export, without when it was made.
fn export_of(team: &Team<'_>, user: &str) -> Vec<String> {
    let text = team.run(&["users", "export", user]).succeeds().stdout;
    text.lines().skip(1).map(str::to_owned).collect()
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
fn an_operator_sees_how_it_is_and_nobody_else_does() {
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
fn what_a_program_is_to_bring_is_no_question_in_a_file() {
    let home = Home::new();
    awaited(&Team::new(&home, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_is_to_bring_is_no_question_on_a_server() {
    let server = Server::start();
    let url = server.create_database("team").await;
    let home = Home::new();
    tokio::task::block_in_place(|| awaited(&Team::new(&home, Some(url))));
}

fn awaited(team: &Team<'_>) {
    let anna = team.token(ANNA);
    let service = team.serve();
    let operator = service.token().to_owned();
    let bearer = format!("Bearer {anna}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let tool = json!({"type": "function", "function": {"name": "setTheme", "parameters": {"type": "object"}}});
    let body = json!({"model": "adjutant", "messages": [{"role": "user", "content": "dark, please"}], "tools": [tool]});
    let asked = send(
        &service.address,
        "POST",
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
    .unwrap();
    assert_eq!(
        asked.json()["choices"][0]["finish_reason"],
        "tool_calls",
        "{asked:?}"
    );
    let waiting = || {
        let overview = get(&service, &operator, "/v1/admin/overview").json()["waiting"].clone();
        let questions =
            get(&service, &operator, "/v1/admin/questions?hours=0").json()["questions"].clone();
        let users = team.json(&["users", "list"])[0]["waiting"].clone();
        let status = team.json(&["db", "status"])["waiting"].clone();
        (
            overview,
            questions.as_array().unwrap().clone(),
            users,
            status,
        )
    };
    assert_eq!(waiting(), (json!(0), Vec::new(), json!(0), json!(0)));
    service.chat(&anna, &json!({"thread_id": "one", "message": "add milk"}));
    let asks = service.chat(&anna, &json!({"thread_id": "one", "message": "drop milk"}));
    assert_eq!(asks.body["decision"], "REQUEST_CONFIRMATION", "{asks:?}");
    let (overview, questions, users, status) = waiting();
    assert_eq!((overview, users, status), (json!(1), json!(1), json!(1)));
    let [question] = questions.as_slice() else {
        panic!("{questions:?}")
    };
    assert_eq!(
        (&question["run_id"], &question["calls"]),
        (&asks.body["run_id"], &json!(1))
    );
    assert_eq!(
        question["expires_at"], asks.body["pending"][0]["expires_at"],
        "{question}"
    );
    // The person at the machine is told who is waited for, and is asked nothing.
    let local = format!("Bearer {operator}");
    let headers = [
        ("Authorization", local.as_str()),
        ("Content-Type", "application/json"),
    ];
    send(
        &service.address,
        "POST",
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
    .unwrap();
    let listed = team.json(&["pending", "list"]);
    assert_eq!(
        (&listed[0]["awaits"], &listed[0]["tool"]),
        (&json!("client"), &json!("setTheme")),
        "{listed}"
    );
    assert!(
        listed[0]["conversation"].is_string() && listed[0]["requested_at"].is_string(),
        "{listed}"
    );
    let words = team.run(&["pending", "list"]).succeeds().stdout;
    assert!(
        words.contains("waits for the program that asked"),
        "{words}"
    );
    let id = listed[0]["id"].as_str().unwrap();
    team.run(&["pending", "approve", id])
        .ends_with(2)
        .says("nobody has to agree to it");
    drop(service);
    assert_eq!(
        team.run(&["db", "check"]).succeeds().stdout,
        "All is well.\n"
    );
}

#[test]
fn what_people_think_of_answers_is_found_in_a_file() {
    let home = Home::new();
    opinions(&Team::new(&home, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_think_of_answers_is_found_on_a_server() {
    let server = Server::start();
    let url = server.create_database("team").await;
    let home = Home::new();
    tokio::task::block_in_place(|| opinions(&Team::new(&home, Some(url))));
}

fn opinions(team: &Team<'_>) {
    let (anna, bert) = (team.token(ANNA), team.token("bert"));
    let service = team.serve();
    let operator = service.token().to_owned();
    let say = |token: &str| {
        let reply = service.chat(token, &json!({"thread_id": "one", "message": "hello"}));
        reply.body["run_id"].as_str().unwrap().to_owned()
    };
    let rate = |token: &str, turn: &str, opinion: Value| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        let path = format!("/v1/turns/{turn}/feedback");
        let reply = send(
            &service.address,
            "PUT",
            &path,
            &headers,
            &opinion.to_string(),
        )
        .unwrap();
        assert_eq!(reply.status, 204, "{reply:?}");
    };
    let (first, second, third, unrated) = (say(&anna), say(&anna), say(&bert), say(&bert));
    rate(
        &anna,
        &first,
        json!({"rating": "down", "comment": "Too \u{1b}[2Jshort."}),
    );
    rate(&anna, &second, json!({"rating": "up"}));
    rate(&bert, &third, json!({"rating": "up"}));

    let ids = |listed: &Value| -> Vec<String> {
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = |rating: &str, whose: &[&str]| {
        team.json(&[&["log", "list", "--feedback", rating][..], whose].concat())
    };
    let down = listed("down", &["--all-users"]);
    assert_eq!(ids(&down), [first.as_str()]);
    assert_eq!(
        (
            &down[0]["feedback"]["rating"],
            &down[0]["feedback"]["comment"]
        ),
        (&json!("down"), &json!("Too  [2Jshort."))
    );
    assert_eq!(
        ids(&listed("up", &["--all-users"])),
        [third.as_str(), &second]
    );
    assert_eq!(ids(&listed("up", &["--user", ANNA])), [second.as_str()]);
    assert_eq!(ids(&listed("up", &["--all-users", "--failed"])), [""; 0]);
    let words = team.run(&["log", "list", "--all-users"]).succeeds().stdout;
    assert_eq!(
        (words.matches('👎').count(), words.matches('👍').count()),
        (1, 2),
        "{words}"
    );
    let shown = team.run(&["log", "show", &first]).succeeds().stdout;
    assert!(
        shown.contains("👎 down") && shown.contains("Too  [2Jshort."),
        "{shown}"
    );
    assert!(
        !team
            .run(&["log", "show", &unrated])
            .succeeds()
            .stdout
            .contains("feedback")
    );
    team.run(&["log", "list", "--feedback", "good"])
        .ends_with(2)
        .says("up, down");
    team.run(&["log", "stats", "--all-users", "--feedback", "up"])
        .ends_with(2)
        .says("--since");

    let totals = team.json(&["log", "stats", "--all-users", "--by", "user"]);
    let rated = |sum: &Value| {
        [sum["rated_up"].clone(), sum["rated_down"].clone()].map(|n| n.as_u64().unwrap())
    };
    assert_eq!(rated(&totals["all"]), [2, 1], "{totals}");
    assert_eq!(
        (rated(&totals["groups"][0]), rated(&totals["groups"][1])),
        ([1, 1], [1, 0]),
        "{totals}"
    );
    let words = team.run(&["log", "stats", "--all-users"]).succeeds().stdout;
    assert!(words.contains("2/1 (67 %)"), "{words}");
    let own = team.json(&["log", "stats", "--user", ANNA]);
    assert_eq!(rated(&own["total"]), [1, 1], "{own}");
    assert!(
        team.run(&["log", "stats", "--user", ANNA])
            .succeeds()
            .stdout
            .contains("1/1 (50 %)")
    );
    let exported = team
        .run(&["log", "export", "--all-users"])
        .succeeds()
        .stdout;
    assert_eq!(
        exported.matches(r#""feedback":{"rating":"#).count(),
        3,
        "{exported}"
    );
    assert!(
        export_of(team, ANNA)
            .iter()
            .any(|line| line.contains("Too  [2Jshort."))
    );

    let json = |path: &str| get(&service, &operator, path).json();
    assert_eq!(rated(&json("/v1/admin/overview")["day"]), [2, 1]);
    let users = json("/v1/admin/users");
    let of_anna = users["users"]
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["user"] == ANNA)
        .unwrap();
    assert_eq!(rated(of_anna), [1, 1], "{users}");
    let turns = json("/v1/admin/turns?rating=down");
    assert_eq!(
        (ids(&turns["turns"]), &turns["turns"][0]["rating"]),
        (vec![first.clone()], &json!("down"))
    );
    assert!(
        !turns.to_string().contains("short"),
        "words are not shown: {turns}"
    );
    let detail = get(
        &service,
        &operator,
        &format!("/v1/admin/turns/{first}?user={ANNA}"),
    );
    assert!(!detail.text.contains("short"), "{detail:?}");
}

#[test]
fn words_of_others_are_shown_only_if_that_is_set_and_each_look_is_told() {
    for sees_words in [false, true] {
        let home = Home::new();
        home.config(&format!("[serve]\noperator_sees_words = {sees_words}\n"));
        let team = Team::new(&home, None);
        let (turn, _) = team.fill();
        let model = home.script(SCRIPT);
        let mut command = home.command(&["serve", "--json", "-m", &model, "--bind", "127.0.0.1:0"]);
        let (mut service, mut told) = Serving::start_heard(&mut command);
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
        std::io::Read::read_to_string(&mut told, &mut words).unwrap();
        let look = format!("operator=local owner={ANNA} turn={turn} words={sees_words}");
        assert!(words.contains(&look), "no {look:?} in {words}");
    }
}

/// A turn that runs while its user is deleted ends, and writes nothing more.
#[test]
fn what_runs_is_stopped_when_its_user_is_deleted() {
    let home = Home::new();
    let team = Team::new(&home, None);
    let token = team.token(ANNA);
    let model = home.script(&[r#"{"text": "a word ", "delay_ms": 600000}"#]);
    let service = Serving::start(&mut home.command(&[
        "serve",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
    ]));
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
