//! `adjutant serve` and `adjutant token`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::Serving;

const ADDING: &[&str] = &[
    r#"{"match": "success", "text": "Added."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "think", "text": "Done thinking.", "delay_ms": 600000}"#,
];

fn serve(home: &Home, model: &str, options: &[&str]) -> Serving {
    Serving::start(&mut home.command(&[&["serve", "--json", "-m", model], options].concat()))
}

#[test]
fn it_serves_the_person_who_started_it_and_ends_in_order() {
    let home = Home::new();
    let model = home.script(ADDING);
    let mut service = serve(
        &home,
        &model,
        &["--bind", "127.0.0.1:0", "--drain-delay", "0s"],
    );
    let add = json!({"message": "add buy milk"});
    let answer = service.chat(service.token(), &add);
    assert_eq!(
        (answer.status, &answer.body["content"]),
        (200, &json!("Added.")),
        "{answer:?}"
    );
    assert_eq!(service.chat("adj_wrong", &add).status, 401);
    // The same person, the same tasks.
    assert_eq!(home.tasks(), ["buy milk"]);

    let state = home.path("state/adjutant/serve.json");
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&state).unwrap().permissions())
            & 0o777,
        0o600
    );
    let found: Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    assert_eq!(
        (&found["url"], &found["token"]),
        (&service.announced["url"], &service.announced["token"])
    );
    service.signal("-TERM");
    assert_eq!(service.wait().code(), Some(0));
    assert!(!state.exists());
}

#[test]
fn asked_twice_to_stop_it_stops_at_once_and_the_turn_goes_on_elsewhere() {
    let home = Home::new();
    let model = home.script(ADDING);
    let mut service = serve(
        &home,
        &model,
        &["--bind", "127.0.0.1:0", "--drain-delay", "1h"],
    );
    let (address, token) = (service.address.clone(), service.token().to_owned());
    let asking = std::thread::spawn(move || {
        crate::service::chat(&address, &token, None, &json!({"message": "think"}))
    });
    // The turn has begun once it is in the log.
    while home.json(&["log", "list"]).1.as_array().unwrap().is_empty() {}
    // Two of the same kind might arrive as one.
    service.signal("-INT");
    service.signal("-TERM");
    assert_eq!(service.wait().code(), Some(130));
    assert!(asking.join().unwrap().is_err());
    let quick = home.script(&[
        r#"{"match": "think", "text": "Done thinking."}"#,
        r#"{"text": "hello"}"#,
    ]);
    home.pipe(&["chat", "-m", &quick], b"hello?\n")
        .succeeds()
        .says("Done thinking.");
}

/// Requests on a keep-alive connection, without their end.
fn ask_on(connection: &mut TcpStream, path: &str, address: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") {
        connection.read_exact(&mut byte).unwrap();
        head.push(char::from(byte[0]));
    }
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap();
    connection
        .read_exact(&mut vec![0; length.parse().unwrap()])
        .unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
}

#[test]
fn after_a_stop_signal_it_is_not_ready_and_answers_for_a_while() {
    let home = Home::new();
    let model = home.script(ADDING);
    // Longer than all that is asked meanwhile; the second signal ends it.
    let mut service = serve(
        &home,
        &model,
        &["--bind", "127.0.0.1:0", "--drain-delay", "1h"],
    );
    let address = service.address.clone();
    let ready = || crate::service::send(&address, "GET", "/readyz", &[], "").unwrap();
    let mut kept = TcpStream::connect(&address).unwrap();
    assert!(
        !ask_on(&mut kept, "/readyz", &address)
            .1
            .contains("connection: close")
    );
    assert_eq!(ready().status, 200);
    service.signal("-TERM");
    let stopping = loop {
        let answer = ready();
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(
        (stopping.status, &stopping.json()["status"]),
        (503, &json!("stopping"))
    );
    // New work is done as before.
    assert_eq!(
        service
            .chat(service.token(), &json!({"message": "add buy milk"}))
            .status,
        200
    );
    assert_eq!(home.tasks(), ["buy milk"]);
    // A connection that is kept is answered once more, and closed.
    let (status, head) = ask_on(&mut kept, "/readyz", &address);
    assert!(
        status == 503 && head.contains("connection: close"),
        "{head}"
    );
    assert_eq!(kept.read(&mut [0]).unwrap(), 0);
    service.signal("-TERM");
    assert_eq!(service.wait().code(), Some(130));
}

/// Returns whether the other side has accepted a connection and read all that was sent to it: the
/// kernel's table of connections says how many bytes wait there.
fn is_read(connection: &TcpStream) -> bool {
    let port = |address: std::net::SocketAddr| format!(":{:04X}", address.port());
    let ends = (
        port(connection.peer_addr().unwrap()),
        port(connection.local_addr().unwrap()),
    );
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .any(|line| {
            let is_it = line.len() > 9 && line[1].ends_with(&ends.0) && line[2].ends_with(&ends.1);
            // An inode of 0: it was not accepted yet.
            is_it && line[4].ends_with(":00000000") && line[9] != "0"
        })
}

#[test]
fn what_comes_too_late_is_told_to_come_again() {
    let home = Home::new();
    let model = home.script(ADDING);
    let mut service = serve(&home, &model, &["--bind", "127.0.0.1:0"]);
    let mut begun = TcpStream::connect(&service.address).unwrap();
    let body = json!({"message": "add buy milk"}).to_string();
    let head = format!(
        "POST /v1/chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n",
        service.address,
        service.token(),
        body.len()
    );
    begun.write_all(head.as_bytes()).unwrap();
    // A connection that nothing was read from is closed without a word.
    while !is_read(&begun) {
        std::thread::yield_now();
    }
    service.signal("-INT");
    // Nobody new is let in.
    while TcpStream::connect(&service.address).is_ok() {}
    begun
        .write_all(format!("Content-Type: application/json\r\n\r\n{body}").as_bytes())
        .unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).unwrap();
    let (head, problem) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 503 "), "{head}");
    for line in [
        "retry-after: 1",
        "connection: close",
        "content-type: application/problem+json",
    ] {
        assert!(head.lines().any(|it| it == line), "{line}: {head}");
    }
    let problem: Value = serde_json::from_str(problem).unwrap();
    assert_eq!(
        (&problem["code"], &problem["retry_after"]),
        (&json!("unavailable"), &json!(1)),
        "{problem}"
    );
    assert_eq!(service.wait().code(), Some(0));
    assert!(home.tasks().is_empty());
}

#[test]
fn a_person_at_the_terminal_does_not_wait_for_a_balancer() {
    let home = Home::new();
    let model = home.script(ADDING);
    let mut service = serve(
        &home,
        &model,
        &["--bind", "127.0.0.1:0", "--drain-delay", "1h"],
    );
    service.signal("-INT");
    assert_eq!(service.wait().code(), Some(0));
    home.run(&["serve", "--drain-delay", "soon"])
        .ends_with(2)
        .says("such as 30s");
}

#[test]
fn beyond_this_machine_it_needs_a_token_that_was_made() {
    let home = Home::new();
    let model = home.script(ADDING);
    let everywhere = ["serve", "-m", &model, "--bind", "0.0.0.0:0"];
    home.run(&everywhere)
        .ends_with(3)
        .says("adjutant token create --user");
    home.run(&[&everywhere[..], &["--auth", "none"]].concat())
        .ends_with(3)
        .says("loopback");
    let secret = home
        .run(&["token", "create", "--user", "anna"])
        .succeeds()
        .stdout;
    let service = serve(&home, &model, &["--bind", "0.0.0.0:0"]);
    assert_eq!(service.announced["token"], Value::Null);
    let local = service.address.replace("0.0.0.0", "127.0.0.1");
    let add = json!({"message": "add buy milk"});
    assert_eq!(
        crate::service::chat(&local, secret.trim(), None, &add)
            .unwrap()
            .status,
        200
    );
    // Anna's tasks are not those of whoever sits at the machine.
    assert!(home.tasks().is_empty());
}

#[test]
fn tokens_are_shown_once_listed_without_secrets_and_revoked() {
    let home = Home::new();
    let model = home.script(ADDING);
    let (_, made) = home.json(&["token", "create", "--user", "anna", "--name", "laptop"]);
    let secret = made["token"].as_str().unwrap();
    let list = home.run(&["token", "list"]).succeeds();
    assert!(
        list.stdout.contains("anna") && list.stdout.contains("laptop"),
        "{list:?}"
    );
    assert!(!list.stdout.contains(secret));
    let service = serve(&home, &model, &["--bind", "127.0.0.1:0"]);
    assert_eq!(
        service.chat(secret, &json!({"message": "add x"})).status,
        200
    );
    let id = made["id"].as_str().unwrap();
    home.run(&["token", "revoke", id]).succeeds();
    assert_eq!(
        service.chat(secret, &json!({"message": "add y"})).status,
        401
    );
    let (_, listed) = home.json(&["token", "list"]);
    assert!(
        listed[0]["revoked_at"].is_string() && listed[0]["token"].is_null(),
        "{listed}"
    );
    assert!(
        home.run(&["token", "revoke", id])
            .succeeds()
            .stdout
            .contains("before")
    );
    home.run(&["token", "revoke", "nothing"])
        .ends_with(1)
        .says("adjutant token list");
    home.run(&["token", "create", "--user", " "]).ends_with(2);
    home.run(&["token", "create"]).ends_with(2);
}

#[test]
fn what_it_cannot_use_is_an_error_that_names_it() {
    let home = Home::new();
    let model = home.script(ADDING);
    home.run(&["serve", "--bind", "somewhere"])
        .ends_with(2)
        .says("--bind");
    home.config("[serve]\nbind = \"somewhere\"\n");
    home.run(&["serve", "-m", &model])
        .ends_with(3)
        .says("serve.bind");
    home.config("");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    home.run(&["serve", "-m", &model, "--bind", &address])
        .ends_with(3)
        .says(&address);
}

#[cfg(not(feature = "restate"))]
#[test]
fn without_restate_it_says_how_to_get_it() {
    let home = Home::new();
    let refused = home
        .run(&[
            "serve",
            "-m",
            "demo",
            "--dispatch",
            "restate://127.0.0.1:8080",
        ])
        .ends_with(3);
    assert!(refused.stderr.contains("--features restate"), "{refused:?}");
}

#[test]
fn the_folder_it_is_started_in_may_hold_its_variables_once_they_are_trusted() {
    let home = Home::new();
    home.file(
        "project/.env",
        format!("ADJUTANT_MODEL={}\n", home.script(ADDING)),
    );
    let serving = || Serving::start(&mut home.serve_command("demo"));
    let without = ["serve", "-m", "nothing", "--bind", "127.0.0.1:0"];
    home.run(&without)
        .ends_with(3)
        .says("project/.env is not trusted")
        .says("adjutant config trust");
    assert_eq!(serving().announced["model"], "scripted/demo");
    home.run(&["config", "trust"]).succeeds();
    let service = Serving::start(&mut home.command(&["serve", "--json", "--bind", "127.0.0.1:0"]));
    assert_eq!(service.announced["model"], "scripted/script");
    let shown = home.run(&["config", "show", "--json"]).succeeds().json();
    assert_eq!(shown["model"]["value"], Value::Null, "{shown}");
}

#[cfg(feature = "openai")]
#[test]
fn a_folder_does_not_get_the_persons_key() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let nobody_came = || {
        let came = listener.accept().err().map(|error| error.kind());
        assert_eq!(came, Some(std::io::ErrorKind::WouldBlock));
    };
    const CALL: &[u8] =
        br#"{"model": "openai/gpt-x", "messages": [{"role": "user", "content": "hi"}]}"#;
    home.config("model = \"openai/gpt-x\"\n");
    home.pipe(&["keys", "set", "openai"], b"sk-proj-0123456789abcdef\n")
        .succeeds();
    home.file(
        "project/.env",
        format!("OPENAI_BASE_URL=http://{address}/v1\n"),
    );
    home.file(
        "project/adjutant.toml",
        format!("[openai]\nbase_url = \"http://{address}/v1\"\n"),
    );
    home.run(&["config", "trust"]).succeeds();
    for args in [
        &["serve", "--bind", "127.0.0.1:0"][..],
        &["ask", "hello"],
        &["models", "test", "-m", "openai/gpt-x"],
        &["models", "call"],
        &["ask", "-y", "hello"],
    ] {
        let refused = home
            .pipe(args, CALL)
            .ends_with(3)
            .says(&format!("is not sent to http://{address}"));
        assert!(!refused.stderr.contains("sk-proj"), "{refused:?}");
        nobody_came();
    }
    // What the person says themselves is theirs to say.
    let own = format!("http://{address}/v1");
    let mut command = home.command(&["serve", "--json", "--bind", "127.0.0.1:0"]);
    let service = Serving::start(command.env("OPENAI_BASE_URL", &own));
    assert_eq!(service.announced["model"], "openai/gpt-x");
    let env_file = home.path("project/.env");
    let args = [
        "serve",
        "--json",
        "--bind",
        "127.0.0.1:0",
        "--env-file",
        crate::harness::arg(&env_file),
    ];
    assert_eq!(
        Serving::start(&mut home.command(&args)).announced["model"],
        "openai/gpt-x"
    );
}

#[cfg(all(unix, feature = "openai"))]
#[test]
fn the_person_is_asked_for_the_address_by_its_name() {
    use crate::terminal::pty::{Kind, Terminal};
    let home = Home::new();
    home.config("model = \"openai/gpt-x\"\n");
    let address = "http://api.openai.com@127.0.0.1:1";
    home.file(
        "project/adjutant.toml",
        format!("[openai]\nbase_url = \"{address}/v1\"\n"),
    );
    home.run(&["config", "trust"]).succeeds();
    let talk = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("OPENAI_API_KEY", "sk-proj-0123456789abcdef");
        Terminal::of(command, Kind::Usual)
    };
    for args in [&[][..], &["-y"]] {
        let mut terminal = talk(args);
        terminal
            .sees("openai is at")
            .sees("http://127.0.0.1:1 ")
            .sees("[y/N]")
            .line("");
        assert!(terminal.ends_with(3).contains("is not sent to"));
    }
    let mut terminal = talk(&[]);
    terminal
        .sees("[y/N]")
        .line("y")
        .prompts_after("/help")
        .keys("\x04");
    terminal.ends_with(0);
}

#[cfg(unix)]
#[test]
fn an_address_of_a_folder_gets_no_variable_without_a_yes_that_names_it() {
    use crate::terminal::pty::{Kind, Terminal};
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let url = format!("http://{address}/mcp");
    let server = |secret: &str| format!("[mcp.servers.hub]\nurl = \"{url}\"\n{secret}\n");
    for secret in [
        "bearer_token_env = \"OPENAI_API_KEY\"",
        "headers = { X-Key = \"a ${OTHER} ${OPENAI_API_KEY}\" }",
    ] {
        home.file("project/adjutant.toml", server(secret));
        for args in [
            &["config", "trust"][..],
            &["config", "trust", "-y"],
            &["config", "trust", "--json"],
        ] {
            let refused = home
                .pipe(args, b"y\n")
                .ends_with(4)
                .says("nothing was trusted");
            refused
                .says("OPENAI_API_KEY")
                .says(&format!("http://{address}"));
        }
        let mut terminal = Terminal::of(home.command(&["config", "trust"]), Kind::Usual);
        terminal
            // Words, because the length of the path decides where the line wraps.
            .sees("hub")
            .sees(&format!("http://{address} "))
            .sees("OPENAI_API_KEY")
            .sees("[y/N]")
            .line("");
        terminal.ends_with(1);
        home.run(&["config", "trust", "--list"])
            .succeeds()
            .says("no folder is trusted");
        let mut tools = home.command(&["tools"]);
        tools
            .env("OPENAI_API_KEY", "sk-proj-0123456789abcdef")
            .output()
            .unwrap();
        let came = listener.accept().err().map(|error| error.kind());
        assert_eq!(came, Some(std::io::ErrorKind::WouldBlock));
        let mut terminal = Terminal::of(home.command(&["config", "trust"]), Kind::Usual);
        terminal
            .sees("[y/N]")
            .line("y")
            .sees("trusted as it is now");
        terminal.ends_with(0);
        home.run(&["config", "trust", "--revoke"]).succeeds();
    }
    std::fs::remove_file(home.path("project/adjutant.toml")).unwrap();
    home.file(
        "other.toml",
        server("bearer_token_env = \"OPENAI_API_KEY\""),
    );
    std::os::unix::fs::symlink(home.path("other.toml"), home.path("project/AGENTS.md")).unwrap();
    home.run(&["config", "trust"])
        .ends_with(4)
        .says("OPENAI_API_KEY");
    std::fs::remove_file(home.path("project/AGENTS.md")).unwrap();
    home.file(
        "project/AGENTS.md",
        "# Rules\n\n[mcp.servers.hub] is described below.\n",
    );
    home.file("project/adjutant.toml", server(""));
    home.run(&["config", "trust"]).succeeds();
}
