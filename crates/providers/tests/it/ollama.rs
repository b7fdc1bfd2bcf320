//! Ollama: recordings and faults, and what its server says of itself.

use adjutant_core::{
    FinishReason, GenerateRequest, GenerationConfig, LanguageModel, Message, ModelError,
    ToolDefinition,
};
use adjutant_providers::ollama::{self, InstalledModel, ModelInfo, OllamaOptions};
use adjutant_providers::{Connection, Transport};
use serde_json::{Value, json};

use crate::cassette::test_name;
use crate::faults::{self, Faults, check};
use crate::recordings::{self, Recordings};
use crate::server::{Answer, Framing, Server};

pub(crate) const RECORDED: Recordings = Recordings {
    folder: "ollama",
    provider: "ollama",
    model: "qwen3:4b",
    schemas: &["ollama.chat"],
    finish: |expected| match (expected.finish.as_deref()?, expected.tool_calls.is_empty()) {
        ("stop", true) => Some(FinishReason::Stop),
        ("stop", false) => Some(FinishReason::ToolCalls),
        ("length", _) => Some(FinishReason::MaxTokens),
        _ => None,
    },
    failure: recordings::by_status,
    // The ids of calls go back; older servers give none.
    state_recorded: |events| recordings::strings(events, "id"),
    state_sent: |request| recordings::strings(&request["messages"].as_array().unwrap()[2..3], "id"),
    results_sent: |request| {
        let messages = request["messages"].as_array().unwrap().iter();
        messages
            .filter(|message| message["role"] == "tool" && message["tool_name"].is_string())
            .count()
    },
    differences: &[],
};

const FAULTS: Faults = Faults {
    provider: "ollama",
    model: "qwen3:4b",
    framing: Framing::Lines,
    whole: r#"{"model": "qwen3:4b", "message": {"role": "assistant", "content": "Fine."}, "done": true, "done_reason": "stop"}"#,
    events: &[
        r#"{"model": "qwen3:4b", "message": {"role": "assistant", "content": "Fine."}, "done": false}"#,
        r#"{"model": "qwen3:4b", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"}"#,
    ],
    begun: 1,
    end: "",
    key_header: "authorization: Bearer ",
    paths: ["/api/chat", "/api/chat"],
    body: |_, words| json!({ "error": words }).to_string(),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_answers_are_understood_as_the_vendor_does() {
    recordings::decode_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_fits_the_published_schema() {
    recordings::follow_up_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test]
async fn what_any_vendor_may_do() {
    faults::all(&FAULTS).await;
}

#[tokio::test]
async fn a_missing_model_comes_with_the_command_that_installs_it() {
    check(
        &FAULTS,
        |mode| vec![Answer::new(404, r#"{"error": "model \"qwen3:4b\" not found"}"#), FAULTS.fine(mode)],
        "asked 1: not_found: ollama has no model \"qwen3:4b\": model \"qwen3:4b\" not found To install it: ollama pull qwen3:4b",
    )
    .await;
}

fn connection(server: &Server) -> Connection {
    Connection {
        base_url: Some(server.url.clone()),
        retries: 0,
        ..Connection::new(Transport::new().unwrap())
    }
}

fn with_tool(config: GenerationConfig) -> GenerateRequest {
    let tool = ToolDefinition::new("add", "Adds.", json!({"type": "object"})).unwrap();
    GenerateRequest {
        tools: vec![tool].into(),
        config,
        ..GenerateRequest::new(vec![Message::user("?").unwrap()])
    }
}

fn paths(server: &Server) -> Vec<String> {
    let path = |head: &str| head.split(' ').nth(1).unwrap().to_owned();
    server
        .received()
        .iter()
        .map(|asked| path(&asked.head))
        .collect()
}

const SHOWN: &str = r#"{"capabilities": ["completion"], "model_info": {"general.architecture": "gemma3", "gemma3.context_length": 8192}}"#;

#[tokio::test]
async fn the_server_is_asked_once_what_the_model_can_do() {
    let answers = [
        SHOWN,
        r#"{"version": "0.33.3"}"#,
        FAULTS.whole,
        FAULTS.whole,
    ];
    let server = Server::knowing(answers.map(|body| Answer::new(200, body)).to_vec()).await;
    let model = ollama::model("gemma3:4b", connection(&server)).unwrap();
    let error = model
        .generate(&with_tool(GenerationConfig::default()))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("ollama/gemma3:4b does not take tools"),
        "{error}"
    );
    let dropping = GenerationConfig {
        drop_unsupported: true,
        ..GenerationConfig::default()
    };
    let answer = model.generate(&with_tool(dropping)).await.unwrap();
    assert_eq!(
        answer.losses,
        ["tools was left out: ollama/gemma3:4b does not take it"]
    );
    model
        .generate(&GenerateRequest::new(vec![Message::user("?").unwrap()]))
        .await
        .unwrap();
    assert_eq!(
        paths(&server),
        ["/api/show", "/api/version", "/api/chat", "/api/chat"]
    );
    assert_eq!(server.received()[0].body, r#"{"model":"gemma3:4b"}"#);
}

#[tokio::test]
async fn a_model_that_was_asked_about_knows_its_window() {
    let server = Server::knowing(
        [SHOWN, r#"{"version": "0.33.3"}"#, FAULTS.whole]
            .map(|body| Answer::new(200, body))
            .to_vec(),
    )
    .await;
    let options = OllamaOptions::default();
    let model = ollama::model_asked("gemma3:4b", connection(&server), options.clone())
        .await
        .unwrap();
    let window = |model: &dyn LanguageModel| {
        (
            model.capabilities().context_window,
            model.capabilities().thinking_allowance,
        )
    };
    assert_eq!(window(&model), (8192, 0));
    // It asks once; a long prompt is not to be cut.
    let long = GenerateRequest::new(vec![Message::user("word ".repeat(2000)).unwrap()]);
    model.generate(&long).await.unwrap();
    assert_eq!(paths(&server), ["/api/show", "/api/version", "/api/chat"]);
    let sent: Value = serde_json::from_str(&server.received()[2].body).unwrap();
    assert_eq!(
        (&sent["truncate"], &sent["options"]["num_ctx"]),
        (&json!(false), &json!(32_768))
    );
    // Nobody there: what it may be at most, and the failure comes with the first request.
    let connection = connection(&server);
    drop(server);
    let model = ollama::model_asked("gemma3:4b", connection, options)
        .await
        .unwrap();
    assert_eq!(window(&model).0, 32_768);
    assert_eq!(model.generate(&long).await.unwrap_err().code(), "network");
}

#[tokio::test]
async fn a_request_that_is_passed_on_is_the_only_one() {
    let verbatim = GenerationConfig {
        verbatim: true,
        ..GenerationConfig::default()
    };
    let server = Server::knowing(vec![Answer::new(200, FAULTS.whole)]).await;
    let model = ollama::model("gemma3:4b", connection(&server)).unwrap();
    model.generate(&with_tool(verbatim)).await.unwrap();
    assert_eq!(paths(&server), ["/api/chat"]);
    let server = Server::knowing(vec![Answer::new(200, FAULTS.whole)]).await;
    let options = OllamaOptions {
        probe: false,
        ..OllamaOptions::default()
    };
    let model = ollama::model_with("gemma3:4b", connection(&server), options).unwrap();
    model
        .generate(&with_tool(GenerationConfig::default()))
        .await
        .unwrap();
    assert_eq!(paths(&server), ["/api/chat"]);
}

#[tokio::test]
async fn a_server_tells_about_itself() {
    let tags = json!({"models": [
        {"name": "qwen3:4b", "model": "qwen3:4b", "size": 2497293931_u64, "details": {"parameter_size": "4.0B", "quantization_level": "Q4_K_M"}},
        {"model": "x:latest", "details": null},
        {},
    ]});
    let answers = [
        r#"{"version": "0.33.3"}"#.to_owned(),
        tags.to_string(),
        SHOWN.to_owned(),
    ];
    let server = Server::knowing(answers.map(|body| Answer::new(200, body)).to_vec()).await;
    let about = ollama::Server::new(&connection(&server)).unwrap();
    assert_eq!(about.version().await.unwrap(), "0.33.3");
    let model = |name: &str, size_bytes, parameters: Option<&str>, quantization: Option<&str>| {
        InstalledModel {
            name: name.into(),
            size_bytes,
            parameters: parameters.map(str::to_owned),
            quantization: quantization.map(str::to_owned),
        }
    };
    assert_eq!(
        about.models().await.unwrap(),
        [
            model(
                "qwen3:4b",
                Some(2_497_293_931),
                Some("4.0B"),
                Some("Q4_K_M")
            ),
            model("x:latest", None, None, None)
        ]
    );
    let shown = about.show("gemma3:4b").await.unwrap();
    assert_eq!(
        shown,
        ModelInfo {
            capabilities: Some(vec!["completion".into()]),
            context_length: Some(8192)
        }
    );
    assert!(shown.can("completion") && !shown.can("tools"));
    let heads: Vec<String> = server
        .received()
        .iter()
        .map(|asked| asked.head.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        heads,
        [
            "GET /api/version HTTP/1.1",
            "GET /api/tags HTTP/1.1",
            "POST /api/show HTTP/1.1"
        ]
    );
}

#[tokio::test]
async fn what_is_not_there_says_what_to_do() {
    let code = |error: ModelError| (error.code(), error.to_string());
    let server = Server::knowing(vec![
        Answer::new(404, "404 page not found"),
        Answer::new(200, "<html>"),
        Answer::new(404, r#"{"error": "model 'x' not found"}"#),
    ])
    .await;
    let about = ollama::Server::new(&connection(&server)).unwrap();
    let (kind, words) = code(about.version().await.unwrap_err());
    assert_eq!(kind, "bad_request");
    assert!(
        words.contains("does not answer as an Ollama server does"),
        "{words}"
    );
    assert!(about.version().await.is_err());
    let (kind, words) = code(about.show("x").await.unwrap_err());
    assert_eq!(kind, "not_found");
    assert!(words.contains("ollama pull x"), "{words}");
    // Nobody listens any more.
    let connection = connection(&server);
    drop(server);
    let model = ollama::model("x", connection.clone()).unwrap();
    for error in [
        ollama::Server::new(&connection)
            .unwrap()
            .version()
            .await
            .unwrap_err(),
        model
            .generate(&GenerateRequest::new(vec![Message::user("?").unwrap()]))
            .await
            .unwrap_err(),
    ] {
        let (kind, words) = code(error);
        assert_eq!(kind, "network");
        assert!(
            words.contains("Is Ollama running at http://127.0.0.1:")
                && words.contains("ollama serve"),
            "{words}"
        );
    }
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_is_an_error() {
    let prompt = "The quick brown fox jumps over the lazy dog. ".repeat(1000);
    let request = GenerateRequest::new(vec![Message::user(prompt).unwrap()]);
    let answer = |read: u64| {
        let mut answer: Value = serde_json::from_str(FAULTS.whole).unwrap();
        answer["prompt_eval_count"] = json!(read);
        Answer::new(200, answer.to_string())
    };
    let server = Server::start(vec![answer(4096), answer(10_012)]).await;
    let model = ollama::model("qwen3:4b", connection(&server)).unwrap();
    let error = model.generate(&request).await.unwrap_err();
    assert_eq!(error.code(), "context_too_long");
    assert!(error.to_string().contains("num_ctx is 32768"), "{error}");
    assert!(model.generate(&request).await.is_ok());
}
