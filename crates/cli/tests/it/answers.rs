//! One request, one answer: what is on which stream, in which form, with which exit code.

use std::process::Stdio;

use serde_json::json;

use crate::harness::{Home, Run, arg};

const HELLO: &[&str] = &[r#"{"text": "Hello there.", "usage": {"input": 1200, "output": 80}}"#];

#[test]
fn the_answer_and_nothing_else_is_on_standard_output() {
    let home = Home::new();
    let run = home
        .run(&["-m", &home.script(HELLO), "say", "hello"])
        .succeeds();
    assert_eq!(run.stdout, "Hello there.\n");
    assert_eq!(
        run.stderr,
        format!("adjutant {} · scripted/script\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn quiet_says_nothing_beside_the_answer_and_verbose_says_more() {
    let home = Home::new();
    let run = home
        .run(&["-q", "-m", &home.script(HELLO), "say", "hello"])
        .succeeds();
    assert_eq!(run.stderr, "");
    let model = home.script(&[
        r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}"#,
        r#"{"text": "Added."}"#,
    ]);
    home.run(&["-v", "-m", &model, "add milk"])
        .succeeds()
        .says("  ⚙ add_task {\"description\":\"buy milk\"}  ✓ ")
        .says("INVOKE_TOOL · SUCCESS:TASK_COMPLETED");
}

#[test]
fn json_has_every_field_every_time() {
    let home = Home::new();
    let fields = [
        "conversation",
        "turn",
        "thread_id",
        "run_id",
        "content",
        "decision",
        "intent",
        "outcome",
        "disposition",
        "output",
        "tools_used",
        "failed_calls",
        "pending",
        "usage",
        "cost_usd",
        "model",
        "notices",
        "error",
        "timing_ms",
    ];
    let (code, answer) = home.ask(&home.script(HELLO), "hello");
    assert_eq!(code, 0);
    let keys: Vec<&str> = answer
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, fields);
    assert_eq!(answer["conversation"], answer["thread_id"]);
    assert_eq!(answer["turn"], answer["run_id"]);
    assert_eq!(answer["model"], "scripted/script");
    assert_eq!(answer["error"], serde_json::Value::Null);
    assert!(answer["timing_ms"]["total"].is_u64());

    let (code, failed) = home.ask("nobody", "hello");
    assert_eq!(code, 3);
    let keys: Vec<&str> = failed
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, fields);
    assert_eq!(failed["error"]["code"], "not_found");
}

#[test]
fn a_failure_says_error_cause_and_what_to_try() {
    let home = Home::new();
    let run = home
        .run(&["-m", &home.script(&[r#"{"fault": "auth"}"#]), "hello"])
        .ends_with(3);
    // The error itself is the only thing said about it.
    assert_eq!(run.stdout, "", "{run:?}");
    assert!(!run.stderr.contains("not set up correctly"), "{run:?}");
    run.says("Error: scripted refused the credentials")
        .says("  try: check the key");
}

#[test]
fn exit_codes_follow_the_table() {
    for (fault, code) in [
        ("quota", 5),
        ("auth", 3),
        ("not_found", 3),
        ("bad_request", 5),
        ("invalid_response", 5),
        ("context_too_long", 6),
        ("refused", 0),
    ] {
        let home = Home::new();
        let (exit, answer) = home.ask(
            &home.script(&[&format!(r#"{{"fault": "{fault}"}}"#)]),
            "hello",
        );
        assert_eq!(
            (exit, answer["error"]["code"].as_str()),
            (code, Some(fault)),
            "{answer}"
        );
    }
    for fault in ["server", "timeout", "network", "truncated"] {
        let home = Home::new();
        let model = home.script(&[
            r#"{"config": {"retries": 0}}"#,
            &format!(r#"{{"fault": "{fault}"}}"#),
        ]);
        let (exit, answer) = home.ask(&model, "hello");
        assert_eq!(
            (exit, answer["error"]["code"].as_str()),
            (5, Some(fault)),
            "{answer}"
        );
    }
}

#[test]
fn a_retry_is_noted() {
    let home = Home::new();
    let model = home.script(&[r#"{"fault": "network"}"#, r#"{"text": "Here again."}"#]);
    let run = home
        .run(&["-m", &model, "hello"])
        .succeeds()
        .says("attempt 1 failed");
    assert_eq!(run.stdout, "Here again.\n");
}

#[test]
fn a_server_of_ones_own_that_says_nothing_is_asked_once_and_the_error_has_the_number_to_set() {
    let home = Home::new();
    // Connections are made, and nobody answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let mut command = home.command(&["ask", "-m", "llama-cpp/tiny", "hello"]);
    let run = Run::of(
        command
            .env("LLAMA_CPP_BASE_URL", address)
            .env("LLM_TIMEOUT", "1"),
    )
    .ends_with(5);
    run.says("llama-cpp said nothing for 1 s")
        .says("adjutant config set llama-cpp.timeout 2s    (now 1s)");
    assert_eq!(std::iter::from_fn(|| silent.accept().ok()).count(), 1);
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "add_task", "args": {"description": "a\u001b[2Jb\u009b31mc\u202ed"}}]}"#,
        r#"{"text": "Done \u001b]52;c;cm0=\u0007\u202eevil\u202c {{result}}"}"#,
    ]);
    let run = home
        .run(&["-v", "-m", &model, "add \u{1b}[31m it"])
        .succeeds();
    let hostile = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(
        !run.stdout.contains(hostile) && !run.stderr.contains(hostile),
        "{run:?}"
    );
    let log = home.run(&["log", "show"]).succeeds();
    assert!(!log.stdout.contains(hostile), "{log:?}");
    let list = home.run(&["tasks", "list", "--json"]).succeeds();
    assert!(!list.stdout.contains(hostile), "{list:?}");
}

#[test]
fn colours_are_for_terminals_or_for_who_asks() {
    let home = Home::new();
    assert!(
        !home
            .run(&["-m", "nobody", "hello"])
            .stderr
            .contains('\u{1b}')
    );
    assert!(
        home.run(&["--color", "always", "-m", "nobody", "hello"])
            .stderr
            .contains('\u{1b}')
    );
    let forced = Run::of(
        home.command(&["-m", "nobody", "hello"])
            .env("CLICOLOR_FORCE", "1"),
    );
    assert!(forced.stderr.contains('\u{1b}'), "{forced:?}");
    let never = Run::of(
        home.command(&["--color", "never", "-m", "nobody", "x"])
            .env("CLICOLOR_FORCE", "1"),
    );
    assert!(!never.stderr.contains('\u{1b}'), "{never:?}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let home = Home::new();
    let model = home.script(HELLO);
    for args in [
        &["-m", model.as_str(), "hello"][..],
        &["--help"],
        &["tasks", "list"],
        &["config", "show"],
    ] {
        let mut child = home
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
        assert!(
            !stderr.contains("panicked") && !stderr.contains("Error"),
            "{args:?}: {stderr}"
        );
    }
}

#[test]
fn two_runs_continue_one_conversation() {
    let home = Home::new();
    let (_, first) = home.ask(
        &home.script(&[r#"{"text": "Your name is Ana."}"#]),
        "I am Ana",
    );
    let model = home.script(&[r#"{"text": "You said: {{input}}"}"#]);
    let (code, second) = home.json(&["-c", "-m", &model, "who am I"]);
    assert_eq!(code, 0);
    assert_eq!(second["conversation"], first["conversation"]);
    assert_ne!(second["turn"], first["turn"]);
    let (_, third) = home.ask(&home.script(HELLO), "hello");
    assert_ne!(third["conversation"], first["conversation"]);
}

#[test]
fn going_on_with_nothing_begins_and_says_so() {
    let home = Home::new();
    home.run(&["-c", "-m", &home.script(HELLO), "hello"])
        .succeeds()
        .says("there are no conversations yet");
}

#[test]
fn chat_reads_lines_and_keeps_the_conversation() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"match": "milk", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}], "once": true}"#,
        r#"{"match": "success", "text": "Added."}"#,
        r#"{"match": "thanks", "text": "You are welcome."}"#,
    ]);
    let run = home.pipe(
        &["chat", "-m", &model],
        b"add milk\n\n/usgae\n/help\nthanks\n/quit\nadd more\n",
    );
    let run = run
        .succeeds()
        .says("there is no command /usgae")
        .says("try: /usage")
        .says("/new");
    assert_eq!(run.stdout, "Added.\nYou are welcome.\n");
    let (_, log) = home.json(&["log", "list"]);
    let conversations: Vec<_> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["conversation"])
        .collect();
    assert_eq!(conversations.len(), 2);
    assert_eq!(conversations[0], conversations[1]);
    let again = home.pipe(&["chat", "-c", "-m", &model], b"").succeeds();
    again.says("you> add milk").says("Added.");
}

#[test]
fn the_demo_says_that_it_is_one() {
    let run = Home::new().run(&["-m", "demo", "hello"]).succeeds();
    assert!(run.stdout.contains("demo"), "{run:?}");
    run.says("scripted/demo");
}

#[test]
fn help_and_version_are_answers() {
    let home = Home::new();
    let help = home.run(&["--help"]).succeeds();
    for words in [
        "Examples:",
        "Exit codes:",
        "GEMINI_API_KEY",
        "adjutant.db",
        "tasks",
        "pending",
    ] {
        assert!(
            help.stdout.contains(words),
            "no {words:?} in {}",
            help.stdout
        );
    }
    let version = home.run(&["-V"]).succeeds();
    assert_eq!(
        version.stdout,
        format!("adjutant {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn small_models_and_those_of_the_setting_call_tools_in_constrained_actions() {
    let home = Home::new();
    // Answers with an action, whatever is said.
    let say = |name: &str, thing: &str| {
        let actions = json!([{ "add_task": { "description": format!("Buy {thing}") } }]);
        let model = home.script(&[
            &json!({ "config": { "model": name } }).to_string(),
            &json!({ "text": actions.to_string(), "repeat": true }).to_string(),
        ]);
        home.run(&["-m", &model, &format!("add buy {thing}")])
            .succeeds();
        home.tasks().len()
    };
    let set = |how: &str| home.config(&format!("[llm]\ntool_calling = \"{how}\"\n"));

    assert_eq!(say("qwen2.5:1.5b", "milk"), 1);
    // What looks like an action is text if any other model says it.
    assert_eq!(say("qwen3:8b", "bread"), 1);
    set("constrained");
    assert_eq!(say("qwen3:8b", "salt"), 2);
    set("free");
    assert_eq!(say("qwen2.5:1.5b", "rice"), 2);
    // By default nothing is taken away from a small model that constrained actions cannot do.
    home.config("fallback = [\"demo\"]\n");
    assert_eq!(say("qwen2.5:1.5b", "tea"), 2);
    home.config("");
    let schema = home.file("age.json", r#"{"type": "object", "required": ["age"]}"#);
    let model = home.script(&[
        r#"{"config": {"model": "qwen2.5:1.5b"}}"#,
        r#"{"text": "{\"age\": 7}"}"#,
    ]);
    let run = home
        .run(&["ask", "--schema", arg(&schema), "-m", &model, "who"])
        .succeeds();
    assert_eq!(run.stdout.trim(), r#"{"age": 7}"#);
    set("loose");
    home.run(&["-m", "demo", "hello"])
        .ends_with(3)
        .says("llm.tool_calling must be auto or free or constrained");
}

#[test]
fn an_answer_can_be_asked_for_by_a_schema() {
    let home = Home::new();
    let schema = home.file(
        "person.json",
        r#"{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}"#,
    );
    let file = schema.to_str().unwrap();
    let model = home.script(&[
        r#"{"text": "{\"age\": \"old\"}"}"#,
        r#"{"text": "{\"age\": 7}"}"#,
    ]);
    let run = home
        .run(&["ask", "--schema", file, "-m", &model, "who"])
        .succeeds();
    assert_eq!(run.stdout.trim(), r#"{"age": 7}"#);
    let weak = home.script(&[r#"{"config": {"weak_tools": true}}"#, r#"{"text": "7"}"#]);
    home.run(&["ask", "--schema", file, "-m", &weak, "who"])
        .ends_with(2)
        .says("another model");
    let no_schema = home.file("no.json", r#"{"type": "thing"}"#);
    let no_schema = no_schema.to_str().unwrap();
    home.run(&["ask", "--schema", no_schema, "-m", &model, "who"])
        .ends_with(2)
        .says("--schema cannot be used");
    let broken = home.file("broken.json", "{");
    home.run(&[
        "ask",
        "--schema",
        broken.to_str().unwrap(),
        "-m",
        &model,
        "who",
    ])
    .ends_with(2)
    .says("broken.json");
    home.run(&["ask", "--schema", "nowhere.json", "-m", &model, "who"])
        .ends_with(2)
        .says("nowhere.json");
}

#[test]
fn prices_can_be_ones_own() {
    let home = Home::new();
    home.config("prices_file = \"prices.toml\"\n");
    home.run(&["-m", "demo", "hello"])
        .ends_with(3)
        .says("prices.toml");
    home.file(
        "config/adjutant/prices.toml",
        "[[prices]]\nproviders = [\"x\"]\nmodels = [\"*\"]\ninput = 1\n",
    );
    home.run(&["-m", "demo", "hello"])
        .ends_with(3)
        .says("output");
    home.file(
        "config/adjutant/prices.toml",
        "[[prices]]\nproviders = [\"x\"]\nmodels = [\"*\"]\ninput = 1.0\noutput = 2\n",
    );
    home.run(&["-m", "demo", "hello"]).succeeds();
}

#[test]
fn only_who_was_named_answers_in_anothers_place_and_it_is_said() {
    let home = Home::new();
    let broken = home.path("broken.jsonl");
    std::fs::write(
        &broken,
        "{\"config\": {\"retries\": 0}}\n{\"fault\": \"network\", \"repeat\": true}\n",
    )
    .unwrap();
    let model = format!("scripted:{}", broken.display());
    home.run(&["-m", &model, "hello"]).ends_with(5);
    home.config(&format!("fallback = [\"{}\"]\n", home.script(HELLO)));
    let run = home.run(&["-v", "-m", &model, "hello"]).succeeds();
    assert_eq!(run.stdout, "Hello there.\n");
    run.says("is asked instead");
    let notices = home
        .run(&["--json", "-m", &model, "hello"])
        .succeeds()
        .json()["notices"]
        .to_string();
    assert!(notices.contains("answered instead"), "{notices}");
    home.config("fallback = [\"olama\"]\n");
    home.run(&["-m", "demo", "hello"])
        .ends_with(3)
        .says("olama")
        .says("fallback");
}
