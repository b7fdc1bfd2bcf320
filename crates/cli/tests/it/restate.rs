//! `adjutant serve --dispatch`: the shipped binary with Restate in front of PostgreSQL.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Home, Run};
use crate::restate_server::{self, Restate};
use crate::server::Server;
use crate::service::{self, Serving};

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(20);

const MODEL: &[&str] = &[
    r#"{"match": "success", "text": "Done."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}]}"#,
];

#[tokio::test]
async fn a_yes_counts_after_restate_and_the_service_were_killed() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("tasks").await;
    let mut restate = Restate::start();
    let home = Home::new();
    home.config("[serve]\nmetrics_bind = \"127.0.0.1:0\"\n");
    let model = home.script(MODEL);
    let dispatch = restate.address(0);
    let options = [
        "serve",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
        "--dispatch",
        &dispatch,
    ];
    let start = || Serving::start(home.command(&options).env("DATABASE_URL", &url));
    let ask = |serving: &Serving, name: &str, body: Value| {
        let answer = service::chat(&serving.address, serving.token(), Some(name), &body).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    let tasks = || {
        home.run(&["tasks", "list", "--json", "--database", &url])
            .succeeds()
            .json()
    };

    let mut first = start();
    let registered = |serving: &Serving, is: u8| {
        let address = serving.announced["metrics"].as_str().unwrap();
        let address = address
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/metrics")
            .unwrap();
        let line = format!("adjutant_dispatch_registered {is}\n");
        while !service::send(address, "GET", "/metrics", &[], "")
            .unwrap()
            .text
            .contains(&line)
        {
            std::thread::sleep(LOOK);
        }
    };
    registered(&first, 1);
    assert!(
        first.announced["worker"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );
    restate.wait_for_worker();
    ask(
        &first,
        "1",
        json!({"message": "add milk", "thread_id": "t"}),
    );
    let asked = ask(
        &first,
        "2",
        json!({"message": "drop milk", "thread_id": "t"}),
    );
    assert_eq!(asked["outcome"], "PENDING:CONFIRMATION", "{asked}");
    // It was Restate that had both gone on, and no call of it waits for a person.
    restate.wait_for_ends(2);

    restate.crash();
    registered(&first, 0);
    first.kill();
    restate.run();
    let second = start();
    let yes = json!({"thread_id": "t", "resume": [{"interrupt_id": asked["pending"][0]["interrupt_id"], "approved": true}]});
    let done = ask(&second, "3", yes);
    assert_eq!(done["outcome"], "SUCCESS:TASK_COMPLETED", "{done}");
    assert_eq!(tasks()["result"]["data"]["tasks"], json!([]));
}

#[test]
fn a_token_that_cannot_be_read_is_named() {
    let home = Home::new();
    let file = home.file("token", "");
    let none = home.path("none");
    for (file, why) in [(&file, "it is empty"), (&none, "No such file")] {
        let address = format!(
            "restate://127.0.0.1:8080?token_file={}&listen=127.0.0.1:0",
            file.display()
        );
        let refused = home
            .run(&["serve", "-m", "demo", "--dispatch", &address])
            .ends_with(3);
        let said = &refused.stderr;
        assert!(
            said.contains(&file.display().to_string()) && said.contains(why),
            "{refused:?}"
        );
        assert!(
            said.contains("write the token into") && !said.contains("another port"),
            "{refused:?}"
        );
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    let home = Home::new();
    let refused = home
        .run(&[
            "serve",
            "-m",
            "demo",
            "--dispatch",
            "restate://h?colour=red",
        ])
        .ends_with(3);
    assert!(refused.stderr.contains("colour="), "{refused:?}");
}

#[test]
fn a_file_is_not_dispatched() {
    let home = Home::new();
    let dispatch = "restate://127.0.0.1:8080?admin=none&listen=127.0.0.1:0";
    let refused = home
        .run(&["serve", "-m", "demo", "--dispatch", dispatch])
        .ends_with(3);
    assert!(refused.stderr.contains("needs PostgreSQL"), "{refused:?}");
    home.config(&format!("[serve]\ndispatch = \"{dispatch}\"\n"));
    let refused = home.run(&["serve", "-m", "demo"]).ends_with(3);
    assert!(refused.stderr.contains("needs PostgreSQL"), "{refused:?}");
}

/// The checks of one group of the doctor's: name, status, and all that is said.
fn looked(home: &Home, url: &str, dispatch: &str) -> Vec<(String, String, String)> {
    let mut command = home.command(&["doctor", "--json", "--dispatch", dispatch]);
    let report = Run::of(command.env("DATABASE_URL", url)).json();
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
    let checks = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["group"] == "dispatch");
    checks
        .map(|check| {
            (
                text(check, "name"),
                text(check, "status"),
                check.to_string(),
            )
        })
        .collect()
}

/// A server that wants a token, whatever it is asked.
fn asks_for_a_token() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut piece = [0; 4096];
            let mut asked = Vec::new();
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let length = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..length]);
            }
            stream
                .write_all(
                    b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                )
                .unwrap();
        }
    });
    address
}

/// Names and statuses, and that what is not well has a remedy.
fn found(checks: &[(String, String, String)]) -> Vec<(&str, &str)> {
    for (_, status, said) in checks {
        assert!(status == "ok" || said.contains("remedy"), "{said}");
    }
    checks
        .iter()
        .map(|(name, status, _)| (name.as_str(), status.as_str()))
        .collect()
}

#[test]
fn the_doctor_says_what_is_well_with_restate_and_what_is_not() {
    let Some(server) = Server::start() else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = runtime.block_on(server.create_database("doctor"));
    let mut restate = Restate::start();
    let home = Home::new();
    home.config("model = \"demo\"\n");
    let dispatch = restate.address(restate_server::free_port());

    // Nobody serves yet.
    let checks = looked(&home, &url, &dispatch);
    let expected = [
        ("database", "ok"),
        ("ingress", "ok"),
        ("admin", "ok"),
        ("registered", "warn"),
        ("worker", "warn"),
        ("calls", "ok"),
    ];
    // Calls can be counted some moments after Restate has started.
    assert_eq!(found(&checks)[..5], expected[..5], "{checks:#?}");

    let serve = [
        "serve",
        "--json",
        "--bind",
        "127.0.0.1:0",
        "--dispatch",
        &dispatch,
    ];
    let mut serving = Serving::start(home.command(&serve).env("DATABASE_URL", &url));
    restate.wait_for_worker();
    while restate
        .ask(
            "POST /query",
            r#"{"query": "select id from sys_invocation"}"#,
        )
        .0
        != 200
    {
        std::thread::sleep(LOOK);
    }
    let checks = looked(&home, &url, &dispatch);
    assert_eq!(
        found(&checks),
        expected.map(|(name, _)| (name, "ok")),
        "{checks:#?}"
    );

    // By another name it is another worker.
    let named = format!("{dispatch}&advertise=http://localhost:1");
    let checks = looked(&home, &url, &named);
    assert_eq!(found(&checks), expected, "{checks:#?}");

    // A key that is not Restate's.
    let signed = format!(
        "{}&key=publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp",
        restate.address(restate_server::free_port())
    );
    let serve = [
        "serve",
        "--json",
        "--bind",
        "127.0.0.1:0",
        "--dispatch",
        &signed,
    ];
    let other = Serving::start(home.command(&serve).env("DATABASE_URL", &url));
    let checks = looked(&home, &url, &signed);
    let of_worker = checks.iter().find(|(name, ..)| name == "worker").unwrap();
    assert!(
        of_worker.1 == "fail" && of_worker.2.contains("key= in"),
        "{checks:#?}"
    );
    drop(other);

    serving.kill();
    let checks = looked(&home, &url, &dispatch);
    let of_worker = checks.iter().find(|(name, ..)| name == "worker").unwrap();
    assert!(
        of_worker.1 == "fail" && of_worker.2.contains("Restate calls"),
        "{checks:#?}"
    );

    restate.crash();
    let checks = looked(&home, &url, &dispatch);
    let gone = [
        ("database", "ok"),
        ("ingress", "fail"),
        ("admin", "fail"),
        ("worker", "warn"),
    ];
    assert_eq!(found(&checks), gone, "{checks:#?}");
    assert!(checks[1].2.contains("start restate-server"), "{checks:#?}");

    let closed = asks_for_a_token();
    let dispatch = format!("restate://{closed}?admin={closed}&listen=127.0.0.1:0");
    let checks = looked(&home, &url, &dispatch);
    assert_eq!(
        found(&checks),
        [("database", "ok"), ("ingress", "fail"), ("admin", "fail")],
        "{checks:#?}"
    );
    assert!(
        checks[1..]
            .iter()
            .all(|(.., said)| said.contains("401") && said.contains("token_file=")),
        "{checks:#?}"
    );

    let none = home.path("none");
    let checks = looked(
        &home,
        &url,
        &format!("{dispatch}&token_file={}", none.display()),
    );
    assert_eq!(
        found(&checks),
        [("database", "ok"), ("token_file", "fail")],
        "{checks:#?}"
    );
    assert!(checks[1].2.contains(none.to_str().unwrap()), "{checks:#?}");
    let checks = looked(&home, "", "restate://h?colour=red");
    assert_eq!(found(&checks), [("serve.dispatch", "fail")], "{checks:#?}");
}

#[test]
fn the_doctor_checks_the_restate_of_the_settings() {
    let home = Home::new();
    home.config(
        "model = \"demo\"\n[serve]\ndispatch = \"restate://127.0.0.1:1?admin=none&listen=127.0.0.1:0\"\n",
    );
    let (code, report) = home.json(&["doctor"]);
    let checks = report["checks"].as_array().unwrap();
    let failed: Vec<&Value> = checks
        .iter()
        .filter(|check| check["status"] == "fail")
        .collect();
    let names: Vec<&Value> = failed.iter().map(|check| &check["name"]).collect();
    // A file cannot be dispatched, and nobody is there.
    assert_eq!(
        (code, names),
        (3, vec![&json!("database"), &json!("ingress")]),
        "{failed:#?}"
    );
}
