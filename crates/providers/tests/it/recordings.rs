//! Every recorded answer of Gemini, read by the adapter over a socket and compared with what the vendor's own SDK
//! understood: there is no difference, and a new one fails. Every answer is sent back too, and checked against the vendor's
//! published schema.

use adjutant_core::{
    Content, Delta, FinishReason, GenerateRequest, GenerateResponse, LanguageModel, Message, ModelError,
    ToolDefinition, ToolResult,
};
use adjutant_providers::Transport;
use adjutant_providers::gemini::{Gemini, GeminiConfig};
use futures::StreamExt;
use serde_json::{Map, Value, json};

use crate::cassette::{self, Exchange};
use crate::server::{Answer, Server};

const MODEL: &str = "gemini-3.8-flash";

fn model(server: &Server, transport: &Transport) -> Gemini {
    let config = GeminiConfig::new("key".to_owned().into(), transport.clone());
    Gemini::new(GeminiConfig {
        base_url: Some(server.url.clone()),
        model: MODEL.into(),
        retries: 0,
        ..config
    })
    .unwrap()
}

fn question() -> GenerateRequest {
    GenerateRequest::new(vec![Message::user("As recorded.").unwrap()])
}

/// Reads an answer, and the same answer with its bytes cut and its lines ended in every way; all must agree.
async fn read(exchange: &Exchange, transport: &Transport) -> Result<GenerateResponse, ModelError> {
    let whole = Answer::new(exchange.status, exchange.body.clone());
    let mut answers = vec![whole.clone(), whole.cut(1)];
    if exchange.expected.stream {
        let text = String::from_utf8(exchange.body.clone()).unwrap().replace("\r\n", "\n");
        answers.push(Answer::new(exchange.status, text.replace('\n', "\r\n")));
        answers.push(Answer::new(exchange.status, text.replace('\n', "\r")));
        answers.push(Answer::new(exchange.status, text).cut(3));
    }
    let server = Server::start(answers.clone()).await;
    let model = model(&server, transport);
    let mut results = Vec::new();
    for _ in &answers {
        let result =
            if exchange.expected.stream { drained(&model).await } else { model.generate(&question()).await };
        results.push(result);
    }
    let first = results.remove(0);
    for other in results {
        assert_eq!(other, first, "{}", exchange.name);
    }
    first
}

/// The deltas of a stream add up to its end.
async fn drained(model: &Gemini) -> Result<GenerateResponse, ModelError> {
    let mut stream = model.stream(&question()).await?;
    let (mut text, mut thinking) = (String::new(), String::new());
    while let Some(delta) = stream.next().await {
        match delta? {
            Delta::Text(words) => text += &words,
            Delta::Thinking(words) => thinking += &words,
            Delta::Finished(response) => {
                assert_eq!((text, thinking), (response.text(), thinking_of(&response)));
                return Ok(response);
            }
            _ => {}
        }
    }
    panic!("a stream ends with Finished or an error");
}

fn thinking_of(response: &GenerateResponse) -> String {
    let thoughts = response.parts.iter().filter_map(|part| match &part.content {
        Content::Thinking { text } => Some(text.as_str()),
        _ => None,
    });
    thoughts.collect()
}

/// Where an answer differs from what was expected of it.
fn differences(exchange: &Exchange, answer: &Result<GenerateResponse, ModelError>) -> Vec<String> {
    let expected = &exchange.expected;
    let mut found = Vec::new();
    let mut compare = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            found.push(format!("{}: {what}: ours {ours}, theirs {theirs}", exchange.name));
        }
    };
    let response = match answer {
        Err(error) => {
            let theirs =
                if expected.error.is_some() || expected.blocked.is_some() { "an error" } else { "an answer" };
            compare("outcome", "an error".to_owned(), theirs.to_owned());
            compare("code", error.code().to_owned(), code_of(exchange).to_owned());
            return found;
        }
        Ok(response) => response,
    };
    compare("error", format!("{:?}", None::<String>), format!("{:?}", expected.error));
    compare("text", response.text(), expected.text.clone());
    compare("thinking", thinking_of(response), expected.thinking.clone());
    let calls: Vec<Value> = response.tool_calls().map(|call| json!([call.name, call.arguments])).collect();
    compare("calls", sorted(json!(calls)).to_string(), sorted(json!(expected.tool_calls)).to_string());
    let finish = match (expected.finish.as_deref(), expected.tool_calls.is_empty()) {
        (Some("STOP"), true) => Some(FinishReason::Stop),
        (Some("STOP"), false) => Some(FinishReason::ToolCalls),
        (Some("MAX_TOKENS"), _) => Some(FinishReason::MaxTokens),
        (Some("SAFETY"), _) => Some(FinishReason::ContentFilter),
        _ => None,
    };
    compare("finish", format!("{:?}", Some(response.finish)), format!("{finish:?}"));
    if let Some(counts) = expected.usage {
        compare("input", format!("{:?}", response.usage.input_tokens), format!("{:?}", counts.input));
        // Theirs excludes thinking.
        let output = counts
            .output
            .or(counts.thoughts)
            .map(|_| counts.output.unwrap_or(0) + counts.thoughts.unwrap_or(0));
        compare("output", format!("{:?}", response.usage.output_tokens), format!("{output:?}"));
        compare(
            "thoughts",
            format!("{:?}", response.usage.thinking_tokens),
            format!("{:?}", counts.thoughts),
        );
    }
    found
}

/// What a recorded failure is here, by what was recorded.
fn code_of(exchange: &Exchange) -> &'static str {
    let body = String::from_utf8_lossy(&exchange.body).into_owned();
    match exchange.status {
        200 if body.contains("blockReason") => "refused",
        // An error inside a stream.
        200 => "server",
        400 if body.contains("API_KEY_INVALID") || body.contains("API key not valid") => "auth",
        400 => "bad_request",
        403 => "auth",
        404 => "not_found",
        _ => "no such failure was recorded",
    }
}

/// The same value with sorted keys, so that order does not count.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(String, Value)> =
                map.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_answers_are_understood_as_the_vendor_does() {
    let Some(folder) = cassette::folder() else { return };
    let exchanges = cassette::exchanges(&folder, "gemini");
    assert!(!exchanges.is_empty());
    let transport = Transport::new().unwrap();
    let mut found = Vec::new();
    for exchange in &exchanges {
        found.extend(differences(exchange, &read(exchange, &transport).await));
    }
    println!("{} recorded answers", exchanges.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A transcript that goes on where a recorded answer stops: its calls answered, its state sent back.
fn follow_up(answer: GenerateResponse, exchange: &Exchange) -> GenerateRequest {
    let mut messages = vec![Message::system("As recorded.").unwrap(), Message::user("As recorded.").unwrap()];
    let calls: Vec<_> = answer.tool_calls().cloned().collect();
    messages.push(Message::assistant(answer.parts).unwrap());
    for call in calls {
        messages.push(Message::tool(call.id, call.name, ToolResult::ok(json!({"seen": true}))).unwrap());
    }
    messages.push(Message::user("Go on.").unwrap());
    let mut request = GenerateRequest::new(messages);
    let declarations = exchange.request["tools"].as_array().into_iter().flatten();
    let declarations = declarations.filter_map(|tool| tool["functionDeclarations"].as_array()).flatten();
    for declaration in declarations {
        let schema = declaration.get("parametersJsonSchema").or(declaration.get("parameters"));
        let schema = schema.cloned().map_or_else(|| json!({"type": "object"}), lower_case_types);
        let description = declaration["description"]
            .as_str()
            .filter(|text| !text.trim().is_empty())
            .unwrap_or("As recorded.");
        let name = declaration["name"].as_str().unwrap().to_lowercase().replace('-', "_");
        request.tools.push(ToolDefinition::new(&name, description, schema).unwrap());
    }
    request
}

/// OpenAPI's `STRING` as JSON Schema's `string`.
fn lower_case_types(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let fields = map.into_iter().map(|(keyword, value)| match value {
                Value::String(kind) if keyword == "type" => (keyword, Value::String(kind.to_lowercase())),
                other => (keyword, lower_case_types(other)),
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(lower_case_types).collect()),
        other => other,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_fits_the_published_schema() {
    let Some(folder) = cassette::folder() else { return };
    let schema = std::fs::read(folder.join("../schemas/gemini.generateContent.request.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_slice(&schema).unwrap()).unwrap();
    let transport = Transport::new().unwrap();
    let mut sent = 0;
    for exchange in cassette::exchanges(&folder, "gemini") {
        let Ok(answer) = read(&exchange, &transport).await else { continue };
        if answer.parts.is_empty() {
            continue;
        }
        let server = Server::start(vec![Answer::reset()]).await;
        let request = follow_up(answer, &exchange);
        let calls = request.messages[2].tool_calls().count();
        model(&server, &transport).generate(&request).await.unwrap_err();
        let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
        let wrong: Vec<String> =
            schema.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{}: {}", exchange.name, wrong.join("; "));
        assert_eq!(signatures(&body), recorded_signatures(&exchange), "{}", exchange.name);
        let results = body["contents"][2]["parts"].as_array().unwrap();
        assert_eq!(
            results.iter().filter(|part| part.get("functionResponse").is_some()).count(),
            calls,
            "{}",
            exchange.name
        );
        sent += 1;
    }
    println!("{sent} requests fit");
    assert!(sent > 0);
}

/// The thought signatures of the model's turn in a request, in order.
fn signatures(body: &Value) -> Vec<String> {
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    parts.iter().filter_map(|part| part["thoughtSignature"].as_str()).map(str::to_owned).collect()
}

/// The thought signatures of a recorded answer, in order, whatever its framing.
fn recorded_signatures(exchange: &Exchange) -> Vec<String> {
    let text = String::from_utf8_lossy(&exchange.body).into_owned();
    let bodies: Vec<Value> = match serde_json::from_str(&text) {
        Ok(body) => vec![body],
        Err(_) => {
            text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok()).collect()
        }
    };
    let parts =
        bodies.iter().filter_map(|body| body["candidates"][0]["content"]["parts"].as_array()).flatten();
    parts.filter_map(|part| part["thoughtSignature"].as_str()).map(str::to_owned).collect()
}
