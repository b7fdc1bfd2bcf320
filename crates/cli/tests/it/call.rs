//! `models call`: one request as it is, one object as the last line, whatever happens.

use serde_json::{Value, json};

use crate::harness::{Home, Run, arg};
use crate::vendor::{Reply, Vendor};

const HELLO: &str = r#"{"messages": [{"role": "user", "text": "Hello"}]}"#;

/// The last line of standard output, whose keys are always the same.
fn object(run: &Run) -> Value {
    let object: Value =
        serde_json::from_str(run.stdout.trim_end().lines().last().unwrap()).unwrap();
    let keys: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        ["text", "tool_calls", "finish", "usage", "error"],
        "{run:?}"
    );
    object
}

fn failure(kind: &str) -> Value {
    json!({
        "text": "", "tool_calls": [], "finish": "error", "usage": {"input": null, "output": null},
        "error": {"kind": kind, "retry_after_s": null},
    })
}

/// A call to gemini's form of API at an address.
fn call(home: &Home, url: &str, options: &[&str], input: &str) -> Run {
    let args = [
        &["models", "call", "-m", "gemini/m", "--base-url", url][..],
        options,
    ]
    .concat();
    home.pipe(&args, input.as_bytes())
}

fn said(text: &str) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 40},
    })
}

#[test]
fn a_script_answers_like_a_vendor() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"text": "Hm.", "calls": [{"name": "get", "args": {"a": 1}}, {"name": "put", "args_text": "{\"a\": "}], "usage": {"input": 3, "output": 4}}"#,
    ]);
    let run = home
        .pipe(&["models", "call", "-m", &model], HELLO.as_bytes())
        .succeeds();
    assert_eq!(run.stdout.lines().count(), 1);
    assert_eq!(
        object(&run),
        json!({
            "text": "Hm.", "tool_calls": [{"name": "get", "args": {"a": 1}}, {"name": "put", "args": "{\"a\":"}],
            "finish": "tool_calls", "usage": {"input": 3, "output": 4}, "error": null,
        })
    );
}

#[test]
fn constrained_calls_are_checked_against_the_message() {
    let home = Home::new();
    let answered = |chosen: Value, message: &str| {
        let model = home.script(&[&json!({ "text": chosen.to_string() }).to_string()]);
        let input = json!({
            "messages": [{ "role": "user", "text": message }],
            "tools": [{
                "name": "get_weather", "description": "Returns the weather of a city.",
                "parameters": {
                    "type": "object", "required": ["city"],
                    "properties": { "city": { "type": "string" } }
                }
            }]
        });
        let args = ["models", "call", "--constrained", "-m", &model];
        let run = home.pipe(&args, input.to_string().as_bytes()).succeeds();
        object(&run)["tool_calls"].clone()
    };
    // A server takes no schema of a list, so the list is in an object.
    let rome = json!({ "actions": [{ "get_weather": { "city": "Rome" } }] });
    assert_eq!(
        answered(rome.clone(), "weather in Rome"),
        json!([{ "name": "get_weather", "args": { "city": "Rome" } }])
    );
    assert_eq!(
        answered(rome, "what's the weather like?")[0]["name"],
        "ask_user"
    );
    assert_eq!(
        answered(
            json!([{ "off-topic": { "message": "Sorry." } }]),
            "who painted the Mona Lisa?"
        ),
        json!([{ "name": "decline", "args": { "message": "Sorry." } }])
    );
}

#[test]
fn every_finish_and_every_failure_has_its_word_and_its_exit_code() {
    let home = Home::new();
    for (line, finish, kind, code) in [
        (r#"{"text": "a"}"#, "stop", Value::Null, 0),
        (
            r#"{"text": "a", "finish": "max_tokens"}"#,
            "max_tokens",
            Value::Null,
            0,
        ),
        (
            r#"{"text": "a", "finish": "content_filter"}"#,
            "content_filter",
            Value::Null,
            0,
        ),
        (
            r#"{"text": "a", "finish": "malformed_call"}"#,
            "error",
            json!("invalid_response"),
            5,
        ),
        (
            r#"{"fault": "bad_request"}"#,
            "error",
            json!("bad_request"),
            5,
        ),
        (r#"{"fault": "auth"}"#, "error", json!("auth"), 3),
        (r#"{"fault": "not_found"}"#, "error", json!("not_found"), 3),
        (
            r#"{"fault": "rate_limit"}"#,
            "error",
            json!("rate_limit"),
            5,
        ),
        (r#"{"fault": "quota"}"#, "error", json!("quota"), 5),
        (r#"{"fault": "server"}"#, "error", json!("server"), 5),
        (r#"{"fault": "timeout"}"#, "error", json!("timeout"), 5),
        (r#"{"fault": "network"}"#, "error", json!("network"), 5),
        (
            r#"{"fault": "invalid_response"}"#,
            "error",
            json!("invalid_response"),
            5,
        ),
        (r#"{"fault": "truncated"}"#, "error", json!("truncated"), 5),
        (
            r#"{"fault": "context_too_long"}"#,
            "error",
            json!("context_too_long"),
            6,
        ),
        (
            r#"{"fault": "refused"}"#,
            "content_filter",
            json!("refused"),
            0,
        ),
    ] {
        for stream in [&[][..], &["--stream"]] {
            let model = home.script(&[line]);
            let args = [&["models", "call", "-m", &model][..], stream].concat();
            let run = home.pipe(&args, HELLO.as_bytes()).ends_with(code);
            let object = object(&run);
            assert_eq!(
                (&object["finish"], &object["error"]["kind"]),
                (&json!(finish), &kind),
                "{line}"
            );
        }
    }
}

#[test]
fn a_partial_answer_is_printed_and_one_attempt_is_made_unless_more_are_asked_for() {
    let home = Home::new();
    let lines = [
        r#"{"fault": "truncated", "text": "half an answer"}"#,
        r#"{"text": "whole"}"#,
    ];
    let model = home.script(&lines);
    let run = home
        .pipe(
            &["models", "call", "--stream", "-m", &model],
            HELLO.as_bytes(),
        )
        .ends_with(5);
    assert_eq!(object(&run)["text"], "half an answer");
    let lines = [
        r#"{"fault": "rate_limit", "retry_after_s": 0.01}"#,
        r#"{"text": "whole"}"#,
    ];
    let run = home
        .pipe(
            &["models", "call", "-m", &home.script(&lines)],
            HELLO.as_bytes(),
        )
        .ends_with(5);
    assert_eq!(
        object(&run)["error"],
        json!({"kind": "rate_limit", "retry_after_s": 0.01})
    );
    let args = [
        "models",
        "call",
        "--retries",
        "1",
        "-m",
        &home.script(&lines),
    ];
    assert_eq!(
        object(&home.pipe(&args, HELLO.as_bytes()).succeeds())["text"],
        "whole"
    );
}

#[test]
fn an_unusable_input_or_command_line_is_an_object_too() {
    let home = Home::new();
    for input in [
        "",
        "hello",
        "[]",
        "{}",
        r#"{"messages": [{"role": "user", "text": " "}]}"#,
    ] {
        let run = home
            .pipe(&["models", "call", "-m", "demo"], input.as_bytes())
            .ends_with(2);
        assert_eq!(object(&run), failure("bad_request"), "{input:?}");
        assert!(run.stderr.contains("Error: "), "{run:?}");
    }
    home.pipe(
        &["models", "call", "-m", "demo", "--input", "nowhere.json"],
        b"",
    )
    .ends_with(2)
    .says("nowhere.json");
    for args in [
        &["models", "call", "--wrong"][..],
        &["models", "call", "--retries", "many"],
    ] {
        assert_eq!(object(&home.run(args).ends_with(2)), failure("bad_request"));
    }
    let run = home.pipe(
        &[
            "models",
            "call",
            "-m",
            "demo",
            "--base-url",
            "http://localhost",
        ],
        HELLO.as_bytes(),
    );
    assert_eq!(object(&run.ends_with(2)), failure("bad_request"));
    home.config("broken");
    let run = home
        .pipe(&["models", "call", "-m", "demo"], HELLO.as_bytes())
        .ends_with(3);
    assert_eq!(object(&run), failure("bad_request"));
}

#[test]
fn a_missing_key_and_an_unknown_name_have_kinds_of_their_own() {
    let home = Home::new();
    let run = home
        .pipe(&["models", "call", "-m", "gemini"], HELLO.as_bytes())
        .ends_with(3);
    assert_eq!(object(&run), failure("auth"));
    run.says("GEMINI_API_KEY");
    let run = home
        .pipe(&["models", "call", "-m", "gemni/x"], HELLO.as_bytes())
        .ends_with(3);
    assert_eq!(object(&run), failure("not_found"));
    run.says("did you mean gemini/x?");
}

#[test]
fn the_option_wins_over_the_input_and_the_input_over_the_settings() {
    let home = Home::new();
    let script = home.script(&[r#"{"match": "", "text": "from the script"}"#]);
    let file = script.strip_prefix("scripted:").unwrap();
    home.config(&format!("model = \"scripted:{file}\"\n"));
    let run = home.pipe(&["models", "call"], HELLO.as_bytes()).succeeds();
    assert_eq!(object(&run)["text"], "from the script");
    let named =
        r#"{"provider": "demo", "messages": [{"role": "user", "text": "Hello"}], "seed": 7}"#;
    home.pipe(&["models", "call"], named.as_bytes())
        .succeeds()
        .says("scripted/demo");
    let run = home
        .pipe(&["models", "call", "-m", &script], named.as_bytes())
        .succeeds();
    assert_eq!(object(&run)["text"], "from the script");
    let path = home.file("request.json", named);
    home.run(&["models", "call", "--input", arg(&path)])
        .succeeds()
        .says("scripted/demo");

    let vendor = Vendor::answering([Reply::json(200, said("a")), Reply::json(200, said("b"))]);
    let input =
        r#"{"provider": "google", "model": "m2", "messages": [{"role": "user", "text": "Hello"}]}"#;
    let url = vendor.url();
    home.pipe(&["models", "call", "--base-url", &url], input.as_bytes())
        .succeeds();
    home.pipe(
        &["models", "call", "-m", "gemini", "--base-url", &url],
        input.as_bytes(),
    )
    .succeeds();
    for asked in vendor.asked() {
        assert_eq!(asked.line, "POST /v1beta/models/m2:generateContent");
    }
}

#[cfg(feature = "gemini")]
#[test]
fn the_model_of_the_input_wins_over_the_configured_one_and_the_option_over_both() {
    let home = Home::new();
    home.config("model = \"gemini/m1\"\n");
    let vendor = Vendor::answering((0..3).map(|_| Reply::json(200, said("a"))));
    let url = vendor.url();
    let input = r#"{"model": "m2", "messages": [{"role": "user", "text": "Hello"}]}"#;
    for options in [vec![], vec!["-m", "gemini/m3"], vec!["-m", "gemini"]] {
        let command = [&["models", "call", "--base-url", &url], options.as_slice()].concat();
        home.pipe(&command, input.as_bytes()).succeeds();
    }
    let asked: Vec<String> = vendor.asked().into_iter().map(|asked| asked.line).collect();
    let path = |model: &str| format!("POST /v1beta/models/{model}:generateContent");
    assert_eq!(asked, [path("m2"), path("m3"), path("m2")]);
}

#[test]
fn the_request_goes_out_as_it_is_and_the_counters_come_back_as_they_were_sent() {
    let home = Home::new();
    let vendor = Vendor::answering([Reply::json(200, said("Sunny."))]);
    let input = json!({
        "system": "Be brief.",
        "messages": [
            {"role": "user", "text": "Oslo?"},
            {"role": "assistant", "text": null, "tool_calls": [
                {"id": "c1", "name": "Weather", "args": {"city": "Oslo"}, "signature": "c2ln"},
                {"id": null, "name": "time", "args": null},
            ]},
            {"role": "tool", "id": null, "name": "time", "content": "noon"},
            {"role": "tool", "id": "c1", "name": null, "content": {"sky": "blue"}},
        ],
        "tools": [{"name": "Weather", "description": "d", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}],
        "temperature": null, "max_tokens": null,
    });
    let run = call(
        &home,
        &format!("{}/v1beta/", vendor.url()),
        &[],
        &input.to_string(),
    )
    .succeeds();
    assert_eq!(
        object(&run),
        json!({"text": "Sunny.", "tool_calls": [], "finish": "stop", "usage": {"input": 5, "output": 2}, "error": null})
    );
    let asked = vendor.asked().remove(0);
    assert_eq!(asked.line, "POST /v1beta/models/m:generateContent");
    assert!(
        asked.headers.contains(&"x-goog-api-key: none".to_owned()),
        "{asked:?}"
    );
    assert_eq!(asked.body["generationConfig"], json!({}));
    let parts = &asked.body["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "c2ln");
    assert_eq!(
        parts[0]["functionCall"],
        json!({"id": "c1", "name": "Weather", "args": {"city": "Oslo"}})
    );
    assert_eq!(parts[1]["functionCall"]["args"], json!({}));
    let results = &asked.body["contents"][2]["parts"];
    assert_eq!(results[0]["functionResponse"]["name"], "time");
    assert_eq!(
        results[0]["functionResponse"]["response"],
        json!({"result": "noon"})
    );
    assert_eq!(results[1]["functionResponse"]["id"], "c1");
    assert_eq!(
        results[1]["functionResponse"]["response"],
        json!({"sky": "blue"})
    );
}

#[test]
fn the_key_and_the_settings_asked_for_go_out() {
    let home = Home::new();
    let vendor = Vendor::answering([Reply::events(&[said("Hi")])]);
    let input = r#"{"messages": [{"role": "user", "text": "Hello"}], "temperature": 0.5, "max_tokens": 7, "stream": true}"#;
    let mut command = home.command(&[
        "models",
        "call",
        "-m",
        "gemini/m",
        "--input",
        arg(&home.file("i.json", input)),
    ]);
    let run = Run::of(
        command
            .env("GEMINI_API_KEY", "secret-123")
            .env("GEMINI_BASE_URL", vendor.url()),
    )
    .succeeds();
    assert_eq!(object(&run)["text"], "Hi");
    assert!(!format!("{run:?}").contains("secret-123"));
    let asked = vendor.asked().remove(0);
    assert_eq!(
        asked.line,
        "POST /v1beta/models/m:streamGenerateContent?alt=sse"
    );
    assert!(
        asked
            .headers
            .contains(&"x-goog-api-key: secret-123".to_owned())
    );
    assert_eq!(
        asked.body["generationConfig"],
        json!({"temperature": 0.5, "maxOutputTokens": 7})
    );
}

#[test]
fn a_status_is_a_kind_and_a_wait_is_reported() {
    let home = Home::new();
    for (status, kind, code) in [
        (400, "bad_request", 5),
        (401, "auth", 3),
        (403, "auth", 3),
        (404, "not_found", 3),
        (422, "bad_request", 5),
        (429, "rate_limit", 5),
        (500, "server", 5),
        (503, "server", 5),
    ] {
        let vendor = Vendor::answering([Reply::json(status, "{}").with("retry-after: 30\r\n")]);
        let object = object(&call(&home, &vendor.url(), &[], HELLO).ends_with(code));
        let wait = if matches!(status, 429 | 500 | 503) {
            json!(30.0)
        } else {
            Value::Null
        };
        assert_eq!(
            object["error"],
            json!({"kind": kind, "retry_after_s": wait}),
            "{status}"
        );
        assert_eq!(vendor.asked().len(), 1);
    }
    // Nobody listens on port 1.
    assert_eq!(
        object(&call(&home, "http://127.0.0.1:1", &[], HELLO).ends_with(5)),
        failure("network")
    );
    let run = call(&home, "ftp://127.0.0.1", &[], HELLO).ends_with(3);
    assert_eq!(object(&run), failure("bad_request"));
}

#[test]
fn a_model_is_tried_with_one_word() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "ready", "usage": {"input": 9, "output": 1}}"#]);
    let run = home.run(&["models", "test", "-m", &model]).succeeds();
    assert!(
        run.stdout
            .starts_with("scripted/script answers: ready · 9 in · 1 out"),
        "{run:?}"
    );
    let vendor = Vendor::answering([Reply::json(403, "{}")]);
    let run = home
        .run(&[
            "models",
            "test",
            "-m",
            "gemini/m",
            "--base-url",
            &vendor.url(),
        ])
        .ends_with(3);
    run.says("check the key: GEMINI_API_KEY");
}

#[test]
fn the_list_says_which_keys_are_there() {
    let home = Home::new();
    let run = Run::of(
        home.command(&["models", "list"])
            .env("GEMINI_API_KEY", "secret-123"),
    )
    .succeeds();
    let gemini = run
        .stdout
        .lines()
        .find(|line| line.starts_with("gemini/"))
        .unwrap();
    assert!(gemini.ends_with("GEMINI_API_KEY is set"), "{run:?}");
    assert!(!run.stdout.contains("secret-123"));
    let list = home.run(&["models", "list", "--json"]).succeeds().json();
    assert_eq!(list["providers"][0]["name"], "gemini");
    assert_eq!(list["providers"][0]["key_set"], false);
}

/// A server that has these models, the first of them without tools, and answers one question.
#[cfg(feature = "ollama")]
fn ollama(models: &[&str]) -> Vendor {
    let tags: Vec<Value> = models.iter().map(|name| json!({ "name": name })).collect();
    let answer = json!({"message": {"role": "assistant", "content": "ready"}, "done": true, "done_reason": "stop"});
    Vendor::answering_by_path(move |line, body| {
        if line.ends_with("/api/tags") {
            return Reply::json(200, json!({ "models": tags }));
        }
        if line.ends_with("/api/version") {
            return Reply::json(200, json!({ "version": "0.33.3" }));
        }
        if line.ends_with("/api/show") {
            let first = tags.first().map(|tag| &tag["name"]) == Some(&body["model"]);
            let can: &[&str] = if first {
                &["completion"]
            } else {
                &["completion", "tools"]
            };
            return Reply::json(200, json!({ "capabilities": can }));
        }
        Reply::json(200, answer.to_string())
    })
}

#[cfg(feature = "ollama")]
#[test]
fn a_running_ollama_answers_if_nothing_was_named_and_no_key_is_there() {
    let home = Home::new();
    let server = ollama(&["plain", "caller"]);
    let host = server.url().replace("http://", "");
    let run = Run::of(home.command(&["models", "test"]).env("OLLAMA_HOST", &host)).succeeds();
    assert!(
        run.stdout.starts_with("ollama/caller answers: ready"),
        "{run:?}"
    );
    home.config(&format!(
        "[ollama]\nhost = \"127.0.0.1\"\nport = {}\ncontextSize = 4096\nkeep_alive = \"10m\"\n",
        host.split_once(':').unwrap().1
    ));
    let run = Run::of(
        home.command(&["models", "test", "-m", "ollama"])
            .env_remove("OLLAMA_HOST"),
    )
    .succeeds();
    assert!(
        run.stdout.starts_with("ollama/caller answers: ready"),
        "{run:?}"
    );
    let chats: Vec<Value> = server
        .so_far()
        .into_iter()
        .filter(|asked| asked.line.ends_with("/api/chat"))
        .map(|asked| asked.body)
        .collect();
    assert_eq!(chats[0]["options"]["num_ctx"], 32768);
    assert_eq!(
        (&chats[1]["options"]["num_ctx"], &chats[1]["keep_alive"]),
        (&json!(4096), &json!("10m"))
    );
    server.stop();
    let nothing = ollama(&["plain"]);
    let run = Run::of(
        home.command(&["models", "test", "-m", "ollama"])
            .env("OLLAMA_HOST", nothing.url()),
    );
    run.ends_with(3)
        .says("has no model that can call tools")
        .says("ollama pull");
    nothing.stop();
    home.run(&["models", "test", "-m", "ollama"])
        .ends_with(5)
        .says("cannot reach ollama")
        .says("ollama serve");
}

/// Startup fails before any input is read.
#[cfg(feature = "ollama")]
#[test]
fn a_conversation_does_not_begin_without_its_server_or_its_model() {
    let home = Home::new();
    let server = ollama(&["plain", "caller"]);
    let empty = Vendor::answering_by_path(|_, _| {
        Reply::json(404, json!({"error": "model 'gone' not found"}))
    });
    let chat = |model: &str, host: &str| {
        let mut command = home.command(&["chat", "-m", model]);
        Run::of(command.env("OLLAMA_HOST", host))
    };
    chat("ollama/caller", &server.url()).succeeds();
    chat("ollama/gone", &empty.url())
        .ends_with(3)
        .says("gone")
        .says("adjutant models pull ollama/gone");
    let (url, gone) = (server.url(), empty.url());
    server.stop();
    empty.stop();
    chat("ollama/caller", &url)
        .ends_with(5)
        .says("cannot reach ollama")
        .says("ollama serve");
    chat("ollama", &gone).ends_with(5).says("ollama serve");
}

/// Every row of the table: the right path below the given root, and a key only where there is one.
#[test]
fn every_provider_of_the_table_can_be_called_at_another_address() {
    let home = Home::new();
    let list = home.run(&["models", "list", "--json"]).succeeds().json();
    for provider in list["providers"].as_array().unwrap() {
        let name = provider["name"].as_str().unwrap();
        let vendor = Vendor::answering([Reply::json(404, "{}")]);
        let model = format!("{name}/some-model");
        let args = ["models", "call", "-m", &model, "--base-url", &vendor.url()];
        let run = home.pipe(&args, HELLO.as_bytes()).ends_with(3);
        assert_eq!(object(&run), failure("not_found"), "{name}: {run:?}");
        let asked = vendor.asked().remove(0);
        assert!(asked.line.starts_with("POST /"), "{asked:?}");
    }
}
