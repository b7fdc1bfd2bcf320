//! Tool choice, storage and silence, as each vendor has them.

use std::time::Duration;

use adjutant_core::{GenerateRequest, LanguageModel, Message, ToolChoice, ToolDefinition};
use adjutant_providers::{Connection, Provider, Transport};
use serde_json::{Value, json};

use crate::server::{Answer, Server};

/// Returns the body that a vendor receives for a request with two tools and this choice.
async fn received(model: &str, choice: ToolChoice) -> Value {
    let server = Server::start(vec![Answer::new(400, "{}")]).await;
    let (provider, name) = model.split_once('/').unwrap();
    let connection = Connection {
        base_url: Some(server.url.clone()),
        retries: 0,
        ..Connection::new(Transport::new().unwrap()).with_key("secret-key".to_owned().into())
    };
    let model = Provider::find(provider)
        .unwrap()
        .model(name, connection)
        .unwrap();
    let tool = |name| ToolDefinition::new(name, "Does it.", json!({ "type": "object" })).unwrap();
    let request = GenerateRequest {
        tools: vec![tool("a"), tool("b")].into(),
        tool_choice: choice,
        ..GenerateRequest::new(vec![Message::user("?").unwrap()])
    };
    model.generate(&request).await.unwrap_err();
    server.received()[0].json()
}

/// Returns the names of the functions in a request.
fn offered(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap().iter();
    let functions = tools.flat_map(|tool| match &tool["functionDeclarations"] {
        Value::Array(functions) => functions.iter().collect(),
        _ => vec![tool],
    });
    functions
        .map(|tool| {
            let names = [&tool["name"], &tool["function"]["name"]];
            names.into_iter().find_map(Value::as_str).unwrap()
        })
        .collect()
}

#[tokio::test]
async fn a_required_call_is_sent_in_every_vendors_form() {
    let function = json!({ "type": "function", "function": { "name": "b" } });
    for (model, member, required, named) in [
        (
            "anthropic/claude-sonnet-4-5",
            "/tool_choice",
            json!({ "type": "any" }),
            json!({ "type": "tool", "name": "b" }),
        ),
        (
            "deepseek/deepseek-chat",
            "/tool_choice",
            json!("required"),
            function.clone(),
        ),
        (
            "openai-chat/gpt-5",
            "/tool_choice",
            json!("required"),
            function.clone(),
        ),
        (
            "openai-compatible/m",
            "/tool_choice",
            json!("required"),
            function.clone(),
        ),
        ("vllm/m", "/tool_choice", json!("required"), function),
        (
            "openai/gpt-5",
            "/tool_choice",
            json!("required"),
            json!({ "type": "function", "name": "b" }),
        ),
        (
            "gemini/gemini-3.8-flash",
            "/toolConfig/functionCallingConfig",
            json!({ "mode": "ANY" }),
            json!({ "mode": "ANY", "allowedFunctionNames": ["b"] }),
        ),
    ] {
        for (choice, expected) in [
            (ToolChoice::Required, required),
            (ToolChoice::Named("b".into()), named),
        ] {
            let body = received(model, choice).await;
            assert_eq!(body.pointer(member), Some(&expected), "{model}");
            assert_eq!(offered(&body), ["a", "b"], "{model}");
        }
    }
}

#[tokio::test]
async fn only_the_named_tool_is_offered_if_its_call_cannot_be_required() {
    for (model, sent) in [
        ("anthropic/claude-sonnet-5-5", None),
        ("deepseek/deepseek-v4-flash", None),
        ("zai/glm-5", None),
        ("ollama/qwen3:8b", None),
        ("llama-cpp/m", Some(json!("required"))),
    ] {
        let body = received(model, ToolChoice::Named("b".into())).await;
        assert_eq!(body.get("tool_choice"), sent.as_ref(), "{model}");
        assert_eq!(offered(&body), ["b"], "{model}");
    }
}

#[tokio::test]
async fn storage_is_forbidden_where_a_vendor_stores_by_default_and_only_there() {
    for (model, store) in [
        ("gemini/gemini-3.8-flash", Some(false)),
        ("openai/gpt-5", Some(false)),
        ("openai-chat/gpt-5", Some(false)),
        ("vertex/gemini-3.8-flash", None),
        ("anthropic/claude-sonnet-5-5", None),
        ("mistral/mistral-large-latest", None),
        ("ollama/qwen3:8b", None),
    ] {
        let body = received(model, ToolChoice::Auto).await;
        assert_eq!(
            body.get("store"),
            store.map(Value::from).as_ref(),
            "{model}"
        );
    }
}

#[tokio::test]
async fn a_silent_vendor_is_asked_twice_within_the_callers_time() {
    let server = Server::start(vec![Answer::mute(), Answer::mute(), Answer::mute()]).await;
    let connection = Connection {
        base_url: Some(server.url.clone()),
        ..Connection::new(Transport::new().unwrap()).with_key("secret-key".to_owned().into())
    };
    let model = Provider::find("gemini")
        .unwrap()
        .model("gemini-3.8-flash", connection)
        .unwrap();
    let request = GenerateRequest {
        time_left: Some(Duration::from_secs(2)),
        ..GenerateRequest::new(vec![Message::user("?").unwrap()])
    };
    let error = model.generate(&request).await.unwrap_err();
    assert_eq!(server.received().len(), 2);
    assert!(
        adjutant_core::words::for_model_error(&error).contains("temporarily unavailable"),
        "{error}"
    );
}
