//! Answers of `adjutant serve` for operators and clients besides chat: limits, errors, metrics, API
//! description.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::{Reply, Serving, send};

const SCRIPT: &[&str] = &[
    r#"{"match": "success", "text": "Added."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "think", "text": "Done thinking.", "delay_ms": 600000}"#,
    r#"{"text": "Hello.", "repeat": true}"#,
];

fn serve(home: &Home, settings: &[(&str, &str)]) -> Serving {
    let model = home.script(SCRIPT);
    let mut command = home.serve_command(&model);
    command.envs(
        settings
            .iter()
            .map(|(name, value)| (format!("ADJUTANT_SERVE_{name}"), *value)),
    );
    Serving::start(&mut command)
}

fn ask(service: &Serving, method: &str, path: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {}", service.token());
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    send(&service.address, method, path, &headers, body).unwrap()
}

#[test]
fn a_user_who_asks_too_often_waits() {
    let home = Home::new();
    let service = serve(&home, &[("REQUESTS_PER_MINUTE", "3")]);
    for _ in 0..3 {
        assert_eq!(ask(&service, "GET", "/v1/me", "").status, 200);
    }
    let refused = ask(&service, "GET", "/v1/me", "");
    assert_eq!(refused.status, 429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");
    refused.is_problem("limit_reached", "/v1/me");
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("serve.requests_per_minute")
    );
    // Whoever looks after it is not that user.
    assert_eq!(
        send(&service.address, "GET", "/readyz", &[], "")
            .unwrap()
            .status,
        200
    );
}

#[test]
fn so_many_turns_at_once_and_no_more() {
    let home = Home::new();
    let service = serve(&home, &[("TURNS_AT_ONCE", "1")]);
    let (address, token) = (service.address.clone(), service.token().to_owned());
    let asking = std::thread::spawn(move || {
        crate::service::chat(&address, &token, None, &json!({"message": "think"}))
    });
    while home.json(&["log", "list"]).1.as_array().unwrap().is_empty() {}
    let refused = ask(&service, "POST", "/v1/chat", r#"{"message": "hi"}"#);
    refused.is_problem("limit_reached", "/v1/chat");
    assert_eq!(refused.status, 429);
    drop(service);
    assert!(asking.join().unwrap().is_err());
}

#[test]
fn whatever_is_wrong_is_a_problem_that_says_so() {
    let home = Home::new();
    let service = serve(&home, &[]);
    let large = format!(r#"{{"message": "{}"}}"#, "x".repeat(1024 * 1024));
    let too_large = ask(&service, "POST", "/v1/chat", &large);
    assert_eq!(too_large.status, 413);
    too_large.is_problem("too_large", "/v1/chat");
    let nothing = ask(&service, "GET", "/v1/nothing?x=1", "");
    assert_eq!(nothing.status, 404);
    nothing.is_problem("unknown", "/v1/nothing");
    let method = ask(&service, "PUT", "/v1/chat", "{}");
    assert_eq!((method.status, method.header("allow")), (405, Some("POST")));
    method.is_problem("invalid_request", "/v1/chat");
    let not_json = ask(&service, "POST", "/v1/chat", "{");
    assert_eq!(not_json.status, 422);
    not_json.is_problem("invalid_request", "/v1/chat");
    let bearer = format!("Bearer {}", service.token());
    let untyped = send(
        &service.address,
        "POST",
        "/v1/chat",
        &[("Authorization", &bearer)],
        "{}",
    )
    .unwrap();
    assert_eq!(untyped.status, 415);
    untyped.is_problem("invalid_request", "/v1/chat");
    // The client's own name for a request comes back.
    let named = [("Authorization", bearer.as_str()), ("X-Request-Id", "mine")];
    let named = send(&service.address, "GET", "/v1/nothing", &named, "").unwrap();
    assert_eq!(
        (named.header("x-request-id"), &named.json()["request_id"]),
        (Some("mine"), &json!("mine"))
    );
}

#[test]
fn the_figures_say_what_happened_and_not_to_whom() {
    let home = Home::new();
    let service = serve(&home, &[]);
    assert_eq!(
        send(&service.address, "GET", "/metrics", &[], "")
            .unwrap()
            .status,
        401
    );
    assert_eq!(
        ask(
            &service,
            "POST",
            "/v1/chat",
            r#"{"message": "add buy milk"}"#
        )
        .status,
        200
    );
    ask(&service, "GET", "/v1/nothing", "");
    let figures = ask(&service, "GET", "/metrics", "");
    assert!(
        figures
            .header("content-type")
            .unwrap()
            .starts_with("text/plain; version=0.0.4")
    );
    for line in [
        r#"adjutant_http_requests_total{method="POST",route="/v1/chat",status="200"} 1"#,
        r#"adjutant_http_requests_total{method="GET",route="-",status="404"} 1"#,
        r#"adjutant_turns_total{outcome="SUCCESS:TASK_COMPLETED"} 1"#,
        r#"adjutant_tool_calls_total{tool="add_task",result="success"} 1"#,
        "adjutant_turns_running 0",
        "adjutant_turns_queued 0",
        r#"adjutant_model_calls_total{provider="scripted",model="script",result="success"} 2"#,
        r#"adjutant_model_retries_total{provider="scripted",model="script"} 0"#,
        r#"adjutant_model_first_token_seconds_count{provider="scripted",model="script"} 2"#,
        concat!(
            "adjutant_build_info{version=\"",
            env!("CARGO_PKG_VERSION"),
            "\"} 1"
        ),
        r#"adjutant_http_request_duration_seconds_count{method="POST",route="/v1/chat"} 1"#,
    ] {
        assert!(
            figures.text.lines().any(|printed| printed == line),
            "no {line} in\n{}",
            figures.text
        );
    }
    // What was said is put into its index behind the turn, so that a call of the store may wait.
    for begins in [
        "adjutant_store_calls_waiting ",
        r#"adjutant_tokens_total{kind="input"}"#,
    ] {
        assert!(
            figures
                .text
                .lines()
                .any(|printed| printed.starts_with(begins)),
            "{}",
            figures.text
        );
    }
    assert!(
        !figures.text.contains("local") && !figures.text.contains("milk"),
        "{}",
        figures.text
    );
    is_exposition(&figures.text);
}

/// Checks what Prometheus's own tool does: each figure stands once, under its help and its kind;
/// counters, and only they, end in `_total`.
#[track_caller]
fn is_exposition(text: &str) {
    let mut kinds = std::collections::HashMap::new();
    let (mut helped, mut current) = (String::new(), String::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, _] => helped = name.to_owned(),
            ["#", "TYPE", name, kind] => {
                assert_eq!(helped, name, "no help: {line}");
                assert!(
                    kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                    "twice: {line}"
                );
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                current = name.to_owned();
            }
            _ => {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                let part = name
                    .strip_prefix(&current)
                    .unwrap_or_else(|| panic!("not in its place: {line}"));
                let parts: &[&str] = if kinds[&current] == "histogram" {
                    &["_bucket", "_sum", "_count"]
                } else {
                    &[""]
                };
                assert!(parts.contains(&part), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
    assert!(kinds.len() > 15, "{kinds:?}");
}

#[test]
fn silent_connections_do_not_keep_anybody_out() {
    let home = Home::new();
    let service = serve(
        &home,
        &[
            ("CONNECTIONS", "8"),
            ("HEADER_TIMEOUT", "1h"),
            ("METRICS", "off"),
        ],
    );
    let _held: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(&service.address).unwrap())
        .collect();
    assert_eq!(ask(&service, "GET", "/healthz", "").status, 200);
    assert_eq!(ask(&service, "GET", "/metrics", "").status, 404);
}

#[test]
fn the_figures_can_have_an_address_of_their_own() {
    let home = Home::new();
    let service = serve(&home, &[("METRICS_BIND", "127.0.0.1:0")]);
    assert_eq!(ask(&service, "GET", "/metrics", "").status, 404);
    let address = service.announced["metrics"].as_str().unwrap();
    let address = address
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let figures = send(address, "GET", "/metrics", &[], "").unwrap();
    assert_eq!(figures.status, 200);
    assert!(
        figures.text.contains(r#"route="-",status="404""#),
        "{}",
        figures.text
    );
    assert_eq!(send(address, "GET", "/v1/me", &[], "").unwrap().status, 404);
}

#[test]
fn each_request_is_one_line_for_the_operator_without_what_was_said() {
    let home = Home::new();
    let model = home.script(SCRIPT);
    let mut command = home.command(&[
        "serve",
        "-v",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let announced: Value = serde_json::from_str(&line).unwrap();
    let address = announced["url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap();
    let token = announced["token"].as_str().unwrap();
    crate::service::chat(address, token, None, &json!({"message": "a secret"})).unwrap();
    let printed = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let printed = printed
        .into_iter()
        .find(|line| line.contains("route=/v1/chat "))
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let time = printed.split(' ').next().unwrap();
    assert!(
        time.len() == "2026-11-26T09:00:00.000Z".len() && time.ends_with('Z'),
        "{printed}"
    );
    for part in [
        " INFO  adjutant_service: answered ",
        " method=POST ",
        " status=200 ",
        " ms=",
        " user=local ",
        " request_id=",
    ] {
        assert!(printed.contains(part), "no {part} in {printed}");
    }
    assert!(
        !printed.contains("secret") && !printed.contains(token),
        "{printed}"
    );
}

#[test]
fn it_is_described_and_the_description_can_be_read() {
    let home = Home::new();
    let service = serve(&home, &[]);
    let get = |path: &str, headers: &[(&str, &str)]| {
        send(&service.address, "GET", path, headers, "").unwrap()
    };
    let description = get("/openapi.json", &[]).json();
    assert!(
        description["openapi"].as_str().unwrap().starts_with("3."),
        "{description}"
    );
    let chat = &description["paths"]["/v1/chat"]["post"]["responses"];
    let schema =
        |status: &str| &chat[status]["content"]["application/problem+json"]["schema"]["$ref"];
    for status in ["401", "403", "413", "415", "422", "429", "500", "503"] {
        assert_eq!(schema(status), "#/components/schemas/Problem", "{status}");
    }
    for status in ["502", "504"] {
        assert_eq!(
            schema(status),
            "#/components/schemas/FailedTurn",
            "{status}"
        );
    }
    check_references(&description, &description);
    for path in ["/docs", "/docs/docs.js", "/docs/docs.css"] {
        let page = get(path, &[]);
        assert_eq!(page.status, 200, "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        // Links to other pages are followed by people only.
        let loaded = page.text.replace("link(\"https://", "");
        assert!(!loaded.contains("https://"), "{path} loads from elsewhere");
    }
    assert_eq!(
        get("/openapi.json", &[("Accept-Encoding", "gzip")]).header("content-encoding"),
        Some("gzip")
    );
}

/// Every reference leads somewhere.
fn check_references(root: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                assert!(
                    root.pointer(reference.trim_start_matches('#')).is_some(),
                    "{reference} leads nowhere"
                );
            }
            members
                .values()
                .for_each(|value| check_references(root, value));
        }
        Value::Array(values) => values
            .iter()
            .for_each(|value| check_references(root, value)),
        _ => {}
    }
}

#[test]
fn without_the_page_programs_are_served_all_the_same() {
    let home = Home::new();
    let model = home.script(SCRIPT);
    let args = [
        "serve",
        "--json",
        "--no-ui",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
    ];
    let service = Serving::start(&mut home.command(&args));
    assert_eq!(service.announced["web"], Value::Null);
    assert_eq!(
        send(&service.address, "GET", "/", &[], "").unwrap().status,
        404
    );
    assert_eq!(ask(&service, "GET", "/v1/me", "").status, 200);
    home.run(&["serve", "--no-ui", "--open"]).ends_with(2);
}

#[test]
fn after_a_stop_signal_a_stream_comes_to_its_end() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "Done thinking.", "delay_ms": 1000}"#]);
    let args = [
        "serve",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
        "--drain-delay",
        "0s",
    ];
    let mut service = Serving::start(&mut home.command(&args));
    let body = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "think"}]});
    let body = body.to_string();
    let mut connection = TcpStream::connect(&service.address).unwrap();
    write!(
        connection,
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        service.address,
        service.token(),
        body.len()
    )
    .unwrap();
    let mut lines = BufReader::new(connection).lines();
    assert!(
        lines
            .by_ref()
            .any(|line| line.unwrap().contains("RUN_STARTED"))
    );
    service.signal("-TERM");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("Done")), "{rest:#?}");
    assert!(
        rest.iter().any(|line| line.contains("RUN_FINISHED")),
        "{rest:#?}"
    );
    assert_eq!(service.wait().code(), Some(0));
}
