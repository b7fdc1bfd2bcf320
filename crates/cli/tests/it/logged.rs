//! The log of `adjutant serve`: whoever runs it finds the cause of a failure by the id that the
//! user was told.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::harness::{Home, arg};
use crate::server::Server;
use crate::service::{Reply as Answer, Serving, send};
use crate::vendor::{Asked, Reply, Vendor};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const KEY: &str = "AIzaSyA-0123456789abcdefghijklmnopqrstu";

/// A service that logs JSON, and its lines as they come.
struct Logging {
    service: Serving,
    lines: Receiver<Value>,
}

impl Logging {
    fn start(command: &mut Command) -> Self {
        let (service, words) = Serving::start_with_stderr(command.args(["--log-format", "json"]));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(words).lines().map_while(Result::ok) {
                let line =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { service, lines }
    }

    /// With Gemini's model at an address.
    fn of_gemini(home: &Home, url: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = home.serve_command("gemini");
        command
            .env("GEMINI_API_KEY", KEY)
            .env("GEMINI_BASE_URL", url)
            .env("ADJUTANT_LLM_RETRIES", "0");
        Self::start(command.envs(variables.iter().copied()))
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.service.token());
        let mut all = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        all.extend(headers);
        send(&self.service.address, method, path, &all, body).unwrap()
    }

    /// Says something under an id of the client's.
    fn say(&self, id: &str, message: &str) -> Answer {
        let body = json!({ "message": message }).to_string();
        self.ask("POST", "/v1/chat", &[("X-Request-Id", id)], &body)
    }

    /// Waits for the next line that is like that, and drops those before it.
    fn line(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.lines
            .iter()
            .find(wanted)
            .expect("the service has ended without such a line")
    }

    /// The same among those of a request.
    fn of(&self, id: &str, message: &str) -> Value {
        self.line(|line| {
            line["request_id"] == id && line["message"].as_str().unwrap().starts_with(message)
        })
    }

    /// Ends the service, and returns the lines that were not read, its last words included.
    fn stop(mut self) -> Vec<Value> {
        self.service.signal("-INT");
        self.service.wait();
        self.lines.iter().collect()
    }
}

/// An answer of Gemini.
fn gemini(text: &str) -> Reply {
    let content = json!({ "role": "model", "parts": [{ "text": text }] });
    Reply::events(&[json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] })])
}

fn failed(status: u16, kind: &str, message: &str) -> Reply {
    Reply::json(
        status,
        json!({ "error": { "code": status, "status": kind, "message": message } }),
    )
}

/// An address where nobody listens, as long as it is held.
fn held_port() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, format!("http://{address}"))
}

/// Answers by what the person said last.
fn by_what_was_said(asked: &Asked) -> Reply {
    let said = asked.body.to_string();
    let is = |words: &str| said.contains(words);
    match () {
        () if is("wrong key") => failed(
            400,
            "INVALID_ARGUMENT",
            &format!("API key not valid: {KEY}"),
        ),
        () if is("too often") => failed(429, "RESOURCE_EXHAUSTED", "Slow down."),
        () if is("broken") => failed(
            500,
            "INTERNAL",
            "The \u{1b}[31mvendor's\u{1b}[0m own words.",
        ),
        () if is("nonsense") => Reply::json(200, "<html>"),
        () => gemini("Hello."),
    }
}

#[test]
fn each_failure_of_a_provider_has_its_cause_under_the_id_that_the_user_got() {
    let (home, vendor) = (Home::new(), Vendor::answering_by(by_what_was_said));
    let service = Logging::of_gemini(&home, &vendor.url(), &[]);
    for (number, (message, status, code, cause)) in [
        ("wrong key", 502, "auth", "[key]"),
        ("too often", 429, "rate_limit", "rate limited by gemini"),
        ("broken", 503, "server", "The [31mvendor's[0m own words."),
        ("nonsense", 502, "invalid_response", "cannot read"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("mine-{number}");
        let reply = service.say(&id, message);
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (status, &json!(code)),
            "{reply:?}"
        );
        assert_eq!(
            (reply.header("x-request-id"), &reply.json()["request_id"]),
            (Some(&*id), &json!(id))
        );
        let call = service.of(&id, "the model call failed");
        assert_eq!(
            (&call["level"], &call["code"], &call["user"]),
            (&json!("ERROR"), &json!(code), &json!("local"))
        );
        assert!(call["error"].as_str().unwrap().contains(cause), "{call}");
        assert!(!call.to_string().contains(KEY), "{call}");
        let failed = service.of(&id, "the request failed");
        assert_eq!(
            (&failed["status"], &failed["turn"]),
            (&json!(status), &reply.json()["run_id"]),
            "{failed}"
        );
        assert_eq!(call["turn"], failed["turn"]);
        // A client of another API finds it as well.
        let id = format!("openai-{number}");
        let body =
            json!({ "model": "adjutant", "messages": [{ "role": "user", "content": message }] });
        service.ask(
            "POST",
            "/v1/chat/completions",
            &[("X-Request-Id", &id)],
            &body.to_string(),
        );
        assert_eq!(service.of(&id, "the model call failed")["code"], code);
        // And whoever was not given an id by the client.
        let id = service.ask(
            "POST",
            "/v1/chat",
            &[],
            &json!({ "message": message }).to_string(),
        );
        let id = id.json()["request_id"].as_str().unwrap().to_owned();
        assert_eq!(service.of(&id, "the model call failed")["code"], code);
    }
    assert_eq!(service.say("fine", "hello").status, 200);
    let rest = service.stop();
    assert!(
        !rest.iter().any(|line| line["request_id"] == "fine"),
        "nothing failed: {rest:?}"
    );
    vendor.stop();
}

#[test]
fn the_sentence_of_a_provider_reaches_the_operator_and_not_the_answer() {
    const SENTENCE: &str = "All credits of this account are used up.";
    for (content, shown) in [("full", true), ("redacted", false), ("none", false)] {
        let (home, vendor) = (
            Home::new(),
            Vendor::answering_by(|asked: &Asked| match asked.body.to_string() {
                said if said.contains("quote me") => {
                    failed(400, "INVALID_ARGUMENT", "Invalid text: quote me")
                }
                _ => failed(429, "RESOURCE_EXHAUSTED", &format!("{SENTENCE} Key: {KEY}")),
            }),
        );
        home.config(&format!("[log]\ncontent = \"{content}\"\n"));
        let service = Logging::of_gemini(&home, &vendor.url(), &[]);
        let step = |turn: &str| {
            let path = format!("/v1/admin/turns/{turn}?user=local");
            let detail = service.ask("GET", &path, &[], "").json();
            let steps = detail["steps"].as_array().unwrap();
            steps
                .iter()
                .find(|step| step["failed"] == true)
                .unwrap_or_else(|| panic!("{detail}"))
                .clone()
        };
        let reply = service.say("used-up", "hello");
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (429, &json!("quota")),
            "{reply:?}"
        );
        assert!(!reply.text.contains("credits"), "{reply:?}");
        assert!(!reply.text.contains("little while"), "{reply:?}");
        let line = service.of("used-up", "the model call failed").to_string();
        assert!(line.contains(SENTENCE) && !line.contains(KEY), "{line}");
        let turn = reply.json()["run_id"].as_str().unwrap().to_owned();
        let failed = step(&turn);
        assert_eq!(failed["error_code"], "quota");
        let log = home.run(&["log", "show", &turn]).succeeds().stdout;
        for text in [failed.to_string(), log] {
            assert_eq!(text.contains(SENTENCE), shown, "{content}: {text}");
            assert!(!text.contains(KEY), "{text}");
        }
        // A sentence that may quote what was said is not shown on the page.
        let reply = service.say("quoted", "quote me");
        let failed = step(reply.json()["run_id"].as_str().unwrap());
        assert_eq!(
            (&failed["error_code"], failed.get("error_message")),
            (&json!("bad_request"), None)
        );
        vendor.stop();
    }
}

#[test]
fn a_model_that_is_not_there_is_tried_again_and_another_stands_in_for_it() {
    let (home, (_held, url)) = (Home::new(), held_port());
    home.config("fallback = [\"demo\"]\n");
    let service = Logging::of_gemini(&home, &url, &[("ADJUTANT_LLM_RETRIES", "1")]);
    let reply = service.say("mine", "what is open?");
    assert_eq!(reply.status, 200, "{reply:?}");
    for message in [
        "an attempt of the model call failed",
        "the model did not answer; another is asked",
    ] {
        let line = service.of("mine", message);
        assert_eq!(line["level"], "WARN");
        assert!(
            line["error"].as_str().unwrap().contains("refused"),
            "{line}"
        );
    }
}

#[test]
fn a_database_locked_by_another_process_is_the_cause() {
    let (home, model) = (Home::new(), r#"{"text": "Hello.", "repeat": true}"#);
    let model = home.script(&[model]);
    let database = home.path("tasks.db");
    let command = ["serve", "--json", "-m", &model, "--bind", "127.0.0.1:0"];
    let service = Logging::start(home.command(&command).env("ADJUTANT_STORE_PATH", &database));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        use sqlx::{Connection as _, Executor as _};
        let address = format!("sqlite:{}", database.display());
        let mut other = sqlx::SqliteConnection::connect(&address).await.unwrap();
        other.execute("BEGIN IMMEDIATE").await.unwrap();
        let reply = service.say("mine", "hello");
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (503, &json!("unavailable")),
            "{reply:?}"
        );
        other.execute("ROLLBACK").await.unwrap();
    });
    let line = service.of("mine", "the request failed");
    assert!(
        line["error"]
            .as_str()
            .unwrap()
            .contains("locked by another process"),
        "{line}"
    );
    assert_eq!(service.say("then", "hello").status, 200);
}

#[tokio::test]
async fn a_database_that_is_away_is_the_cause_and_makes_it_not_ready_soon() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let url = server.create_database("tasks").await;
    let home = Home::new();
    let model = home.script(&[r#"{"text": "Hello.", "repeat": true}"#]);
    let mut command = home.serve_command(&model);
    let service = Logging::start(command.env("DATABASE_URL", url));
    let figures = service.ask("GET", "/metrics", &[], "").text;
    assert!(
        figures.contains("\nadjutant_store_connections{state=\"idle\"} "),
        "{figures}"
    );
    assert!(
        figures.contains("\nadjutant_store_connections_max 10\n"),
        "{figures}"
    );
    server.crash();
    let reply = service.ask("GET", "/readyz", &[("X-Request-Id", "probe")], "");
    assert_eq!(
        (reply.status, &reply.json()["reasons"]),
        (503, &json!(["the store does not answer"]))
    );
    let line = service.of("probe", "not ready");
    // It says nothing, or that nobody is there; a request waits five times as long, in case that
    // the database comes back.
    let error = line["error"].as_str().unwrap();
    assert!(
        ["there was no answer within 2 s", "cannot be reached"]
            .iter()
            .any(|why| error.contains(why)),
        "{line}"
    );
    assert_eq!(service.say("mine", "hello").status, 503);
    let line = service.of("mine", "the request failed");
    let error = line["error"].as_str().unwrap();
    assert!(
        ["not reachable", "cannot be reached"]
            .iter()
            .any(|why| error.contains(why)),
        "{line}"
    );
}

#[test]
fn an_mcp_server_that_is_gone_is_the_cause() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("mcp_servers/server.sh"));
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"{}\"]\nenv = {{ TOKEN = \"x\" }}\n",
        arg(&server)
    ));
    let model = home.script(&[
        r#"{"calls": [{"name": "shell__die", "args": {}}]}"#,
        r#"{"text": "It is gone.", "repeat": true}"#,
    ]);
    let service = Logging::start(&mut home.command(&[
        "serve",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
        "--yes",
    ]));
    service.say("mine", "die");
    let line = service.line(|line| line["request_id"] == "mine" && line["server"] == "shell");
    assert_eq!(
        (&line["level"], &line["tool"]),
        (&json!("WARN"), &json!("die")),
        "{line}"
    );
}

#[test]
fn an_id_that_is_none_is_replaced_and_forges_nothing() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "Hello.", "repeat": true}"#]);
    let service = Logging::start(&mut home.command(&[
        "serve",
        "-v",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
    ]));
    for forged in [
        "x user=admin request=fake",
        "a\tb",
        "{\"level\":\"ERROR\"}",
        &"a".repeat(65),
    ] {
        let reply = service.ask("GET", "/v1/nothing", &[("X-Request-Id", forged)], "");
        let id = reply.header("x-request-id").unwrap().to_owned();
        assert!(
            id.len() == 36 && reply.json()["request_id"] == id,
            "{reply:?}"
        );
        let line = service.of(&id, "answered");
        assert_eq!(
            (&line["route"], &line["status"], &line["user"]),
            (&json!("-"), &json!(404), &Value::Null)
        );
        assert!(!line.to_string().contains(forged), "{line}");
    }
}

#[test]
fn a_trace_goes_on_to_the_model_with_another_parent() {
    for (variable, handed_on) in [("true", true), ("false", false)] {
        let (home, vendor) = (Home::new(), Vendor::answering_by(by_what_was_said));
        let variables = [
            ("ADJUTANT_SERVE_TRACE_PROPAGATION", variable),
            ("ADJUTANT_LOG", "info"),
        ];
        let service = Logging::of_gemini(&home, &vendor.url(), &variables);
        let mut handed = Vec::new();
        for (parent, id) in [(PARENT, "given"), ("nonsense", "made")] {
            let headers = [
                ("traceparent", parent),
                ("tracestate", "a=1"),
                ("X-Request-Id", id),
            ];
            let path = "/v1/chat";
            assert_eq!(
                service
                    .ask("POST", path, &headers, r#"{"message": "hello"}"#)
                    .status,
                200
            );
            let trace = service.of(id, "answered")["trace_id"]
                .as_str()
                .unwrap()
                .to_owned();
            assert_eq!(parent.contains(&trace), id == "given", "{trace}");
            let asked = vendor.so_far().pop().unwrap();
            let header = |name: &str| {
                let line = asked
                    .headers
                    .iter()
                    .find(|line| line.starts_with(&format!("{name}:")));
                line.map(|line| line.split_once(':').unwrap().1.trim().to_owned())
            };
            let Some(reply) = header("traceparent").filter(|_| handed_on) else {
                assert!(
                    !handed_on && header("traceparent").or(header("tracestate")).is_none(),
                    "{asked:?}"
                );
                continue;
            };
            assert!(
                reply.starts_with(&format!("00-{trace}-")) && reply != parent,
                "{reply}"
            );
            assert_eq!(
                header("tracestate").as_deref(),
                (id == "given").then_some("a=1")
            );
            handed.push(reply);
        }
        assert_eq!(handed.len(), if handed_on { 2 } else { 0 });
        drop(service);
        vendor.stop();
    }
}

#[test]
fn nothing_that_was_said_is_logged_above_debug() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"match": "success", "text": "canary of the model"}"#,
        r#"{"match": "not a tool", "text": "canary of the model"}"#,
        r#"{"match": "fail", "calls": [{"name": "add_task", "args": {"nonsense": "canary of the arguments"}}]}"#,
        r#"{"calls": [{"name": "add_task", "args": {"description": "canary of the task"}}], "repeat": true}"#,
    ]);
    for level in ["error", "warn", "info"] {
        let mut command = home.serve_command(&model);
        let service = Logging::start(command.env("ADJUTANT_LOG", format!("{level},rmcp=off")));
        service.say("one", "add the canary of the person");
        service.say("two", "fail with the canary of the person");
        let body = json!({ "model": "adjutant", "stream": true, "messages": [{ "role": "user", "content": "canary" }] });
        service.ask("POST", "/v1/chat/completions", &[], &body.to_string());
        service.ask(
            "POST",
            "/v1/tools/add_task/invoke",
            &[],
            r#"{"args": {"description": "canary"}}"#,
        );
        service.ask(
            "POST",
            "/v1/chat?canary=1",
            &[("X-Canary", "canary")],
            r#"{"canary": 1}"#,
        );
        let lines = service.stop();
        assert_eq!(
            lines.iter().any(|line| line["message"] == "answered"),
            level == "info"
        );
        assert!(
            !lines.iter().any(|line| line.to_string().contains("canary")),
            "{level}: {lines:?}"
        );
    }
}

#[test]
fn what_cannot_start_says_so_in_the_log_too() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::new();
    let bind = taken.local_addr().unwrap().to_string();
    let run = home
        .run(&[
            "serve",
            "--log-format",
            "json",
            "-m",
            "demo",
            "--bind",
            &bind,
        ])
        .ends_with(3);
    let lines: Vec<Value> = run
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert!(
        last["level"] == "ERROR" && last["message"].as_str().unwrap().contains(&bind),
        "{lines:?}"
    );
    assert!(
        last["tries"].as_str().unwrap().contains("another port"),
        "{lines:?}"
    );
    let mut command = home.command(&["serve", "-m", "demo", "--bind", "127.0.0.1:0"]);
    crate::harness::Run::of(command.env("ADJUTANT_LOG", "loud"))
        .ends_with(3)
        .says("ADJUTANT_LOG=info");
}

#[test]
fn every_command_logs_where_a_filter_is_set() {
    let home = Home::new();
    let quiet = home.run(&["-m", "demo", "add buy milk"]).succeeds();
    assert!(!quiet.stderr.contains("adjutant_runtime"), "{quiet:#?}");

    let mut command = home.command(&["-m", "demo", "add buy milk"]);
    let text = crate::harness::Run::of(command.env("ADJUTANT_LOG", "debug")).succeeds();
    assert!(text.stderr.contains(" adjutant_"), "{text:#?}");

    let mut command = home.command(&["-m", "demo", "my pin is 4711"]);
    command
        .env("ADJUTANT_LOG", "info")
        .env("ADJUTANT_SERVE_LOG_FORMAT", "json");
    let json = crate::harness::Run::of(&mut command).succeeds();
    let lines: Vec<&str> = json
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .collect();
    for line in &lines {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["target"].as_str().unwrap().starts_with("adjutant"));
    }
    assert!(!lines.concat().contains("4711"), "{lines:?}");

    let mut command = home.command(&["-m", "demo", "hello"]);
    crate::harness::Run::of(command.env("ADJUTANT_LOG", "loud"))
        .ends_with(3)
        .says("ADJUTANT_LOG=info");
}
