//! Every recorded answer of a vendor, read by its adapter over a socket and compared with what it
//! says; and sent back in a transcript that goes on, checked against the vendor's published schema.
//! This holds for the repository's own set, and for other projects' recordings where they are at
//! hand.
//!
//! A vendor's tests are one file beside this one, with its line in `main.rs`
//! (`#[cfg(feature = "acme")] mod acme;`):
//!
//! ```ignore
//! const RECORDED: Recordings = Recordings {
//!     folder: "acme_chat",                       // of the recordings; `differences` are named within it
//!     provider: "acme",                          // the row of the table of vendors
//!     model: "acme-1",                           // where a recording does not name one
//!     schemas: &["acme_chat"],                   // a request fits schemas/acme_chat.request.schema.json (or the next)
//!     finish: |expected| match expected.finish.as_deref()? { "stop" => Some(FinishReason::Stop), _ => None },
//!     failure: recordings::by_status,            // the code of a recorded failure
//!     state_recorded: |events| recordings::strings(events, "signature"),   // what must go back byte for byte,
//!     state_sent: |request| recordings::strings(&[request.clone()], "signature"), // and what of it did
//!     results_sent: |request| request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count(),
//!     differences: &[("rig/some_file.yaml#0", "text", "why ours is another")], // all of them, each with its reason
//! };
//! #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
//! async fn recorded_answers_are_understood_as_the_vendor_does() { recordings::decode_all(&test_name!(), &[&RECORDED]).await }
//! #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
//! async fn what_goes_back_fits_the_published_schema() { recordings::follow_up_all(&test_name!(), &[&RECORDED]).await }
//! ```
//!
//! The vendor's faults are a second table in the same file: see `faults.rs`, and `gemini.rs` for
//! both.

use std::path::Path;

use adjutant_core::{
    Content, Delta, FinishReason, GenerateRequest, GenerateResponse, LanguageModel, Message,
    ModelError, Part, ToolDefinition, ToolName, ToolResult,
};
use adjutant_providers::{Connection, HttpModel, Provider, Transport};
use futures::StreamExt;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::cassette::{self, Exchange, Expected, Framing};
use crate::server::{Answer, Server};
use crate::size;

/// A vendor's recordings and how to read them.
pub(crate) struct Recordings {
    /// Their folder.
    pub(crate) folder: &'static str,
    /// The provider that reads them.
    pub(crate) provider: &'static str,
    /// The model to ask where a recording does not name one.
    pub(crate) model: &'static str,
    /// Published schemas of a request; it has to fit one of them.
    pub(crate) schemas: &'static [&'static str],
    /// Ours for the vendor's reason to stop.
    pub(crate) finish: fn(&Expected) -> Option<FinishReason>,
    /// The code of a recorded failure.
    pub(crate) failure: fn(&Exchange) -> &'static str,
    /// The JSON values of an answer that must be sent back byte for byte, in order.
    pub(crate) state_recorded: fn(&[Value]) -> Vec<String>,
    /// The values among them that a request contains.
    pub(crate) state_sent: fn(&Value) -> Vec<String>,
    /// The number of tool results in a request.
    pub(crate) results_sent: fn(&Value) -> usize,
    /// Known differences from the vendor's SDK on other projects' recordings: recording, field,
    /// reason.
    pub(crate) differences: &'static [(&'static str, &'static str, &'static str)],
}

impl Recordings {
    /// The model that a recording was made with, at this server.
    pub(crate) fn model(
        &self,
        exchange: &Exchange,
        server: &Server,
        transport: &Transport,
    ) -> HttpModel {
        let connection = Connection {
            base_url: Some(server.url.clone()),
            retries: 0,
            ..Connection::new(transport.clone()).with_key("key".to_owned().into())
        };
        let name = exchange.model.as_deref().unwrap_or(self.model);
        Provider::find(self.provider)
            .unwrap()
            .model(name, connection)
            .unwrap()
    }
}

/// Published schemas of one kind of a vendor's JSON (`request`, `response`, `event` ...); a value
/// has to fit one of them.
pub(crate) struct Schemas(Vec<Validator>);

impl Schemas {
    /// Those beside other projects' recordings.
    pub(crate) fn load(folder: &Path, names: &[&str], kind: &str) -> Self {
        let load = |name: &&str| {
            let file = folder.join(format!("../schemas/{name}.{kind}.schema.json"));
            // A word of an earlier draft, which this one has for something else.
            let text = std::fs::read_to_string(file)
                .unwrap()
                .replace(r#""$recursiveAnchor":true,"#, "");
            jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
        };
        Self(names.iter().map(load).collect())
    }

    /// Returns the violation of the first schema; `None` if the value fits one of them.
    pub(crate) fn misfit(&self, value: &Value) -> Option<String> {
        if self.0.iter().any(|schema| schema.is_valid(value)) {
            return None;
        }
        let errors = self.0[0].iter_errors(value);
        Some(
            errors
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect::<Vec<_>>()
                .join("; "),
        )
    }
}

/// Reads every recording, in every framing that means the same.
pub(crate) async fn decode_all(test: &str, vendors: &[&Recordings]) {
    let external = cassette::external(test);
    for vendor in vendors {
        decode_set(&cassette::own(), vendor, &[]).await;
        if let Some(folder) = &external {
            decode_set(folder, vendor, vendor.differences).await;
        }
    }
}

async fn decode_set(
    folder: &Path,
    vendor: &Recordings,
    known: &[(&'static str, &'static str, &'static str)],
) {
    let exchanges = cassette::exchanges(folder, vendor.folder);
    assert!(!exchanges.is_empty());
    let transport = Transport::new().unwrap();
    let mut unlisted = Vec::new();
    let mut listed = known.to_vec();
    for exchange in &exchanges {
        for (what, ours, theirs) in
            differences(vendor, exchange, &read(vendor, exchange, &transport).await)
        {
            let name = exchange
                .name
                .strip_prefix(&format!("{}/", vendor.folder))
                .unwrap();
            match listed.iter().position(|row| (row.0, row.1) == (name, what)) {
                Some(at) => drop(listed.remove(at)),
                None => unlisted.push(format!("{name}: {what}: ours {ours}, theirs {theirs}")),
            }
        }
    }
    println!("{} recorded answers of {}", exchanges.len(), vendor.folder);
    assert!(
        unlisted.is_empty(),
        "{} differ:\n{}",
        unlisted.len(),
        unlisted.join("\n")
    );
    assert!(listed.is_empty(), "listed, but no difference: {listed:?}");
}

/// Sends every answer back in a transcript that goes on.
pub(crate) async fn follow_up_all(test: &str, vendors: &[&Recordings]) {
    follow_up_where(test, vendors, |_| true).await;
}

/// The same for some of the recordings.
pub(crate) async fn follow_up_where(
    test: &str,
    vendors: &[&Recordings],
    wanted: impl Fn(&Exchange) -> bool,
) {
    let external = cassette::external(test);
    for vendor in vendors {
        let schemas = external
            .as_ref()
            .map(|folder| Schemas::load(folder, vendor.schemas, "request"));
        let mut sent = 0;
        for folder in [Some(&cassette::own()), external.as_ref()]
            .into_iter()
            .flatten()
        {
            sent += follow_up_set(folder, vendor, schemas.as_ref(), &wanted).await;
        }
        assert!(sent > 0, "{}: no answer can be sent back", vendor.folder);
    }
}

/// Sends the answers of one set back, and gives their number.
async fn follow_up_set(
    folder: &Path,
    vendor: &Recordings,
    schemas: Option<&Schemas>,
    wanted: &impl Fn(&Exchange) -> bool,
) -> usize {
    let transport = Transport::new().unwrap();
    let (mut sent, mut wrong) = (0, Vec::new());
    for exchange in cassette::exchanges(folder, vendor.folder)
        .into_iter()
        .filter(wanted)
    {
        let Ok(answer) = read_as_it_is(vendor, &exchange, &transport).await else {
            continue;
        };
        // What a vendor explains is not said again.
        if answer.parts.iter().all(Part::is_explanation) {
            continue;
        }
        let server = Server::start(vec![Answer::reset()]).await;
        let request = follow_up(answer, &exchange);
        let calls = request.messages[2].tool_calls().count();
        let failure = vendor
            .model(&exchange, &server, &transport)
            .generate(&request)
            .await
            .unwrap_err();
        let asked = server.received();
        let Some(asked) = asked.first() else {
            wrong.push(format!("{}: not sent: {failure}", exchange.name));
            continue;
        };
        let body = asked.json();
        let misfit = schemas.and_then(|schemas| schemas.misfit(&body));
        wrong.extend(misfit.map(|misfit| format!("{}: {misfit}", exchange.name)));
        let (state, recorded) = (
            (vendor.state_sent)(&body),
            (vendor.state_recorded)(&exchange.events()),
        );
        if state != recorded {
            wrong.push(format!(
                "{}: state {state:?}, recorded {recorded:?}",
                exchange.name
            ));
        }
        if (vendor.results_sent)(&body) != calls {
            wrong.push(format!(
                "{}: {calls} calls, {} results",
                exchange.name,
                (vendor.results_sent)(&body)
            ));
        }
        sent += 1;
    }
    println!("{sent} requests of {}", vendor.folder);
    assert!(
        wrong.is_empty(),
        "{} of {sent}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    sent
}

/// The code of a failure that its status tells.
pub(crate) fn by_status(exchange: &Exchange) -> &'static str {
    match exchange.status {
        401 | 403 => "auth",
        404 => "not_found",
        429 => "rate_limit",
        500.. => "server",
        400..=499 => "bad_request",
        _ => "no such failure was recorded",
    }
}

/// The strings under a name, wherever it stands, in order.
pub(crate) fn strings(values: &[Value], name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for value in values {
        match value {
            Value::Object(fields) => {
                for (field, value) in fields {
                    match value {
                        Value::String(text) if field == name => found.push(text.clone()),
                        other => found.extend(strings(std::slice::from_ref(other), name)),
                    }
                }
            }
            Value::Array(items) => found.extend(strings(items, name)),
            _ => {}
        }
    }
    found
}

/// Reads an answer, and the same answer with its bytes cut and its lines ended in every way; all
/// must agree.
async fn read(
    vendor: &Recordings,
    exchange: &Exchange,
    transport: &Transport,
) -> Result<GenerateResponse, ModelError> {
    let bodies = variants(exchange);
    let answers = bodies.iter().map(|(_, body)| body.clone()).collect();
    let server = Server::start(answers).await;
    let model = vendor.model(exchange, &server, transport);
    let first = ask(&model, exchange).await;
    for (variant, _) in &bodies[1..] {
        assert_eq!(
            ask(&model, exchange).await,
            first,
            "{} {variant}",
            exchange.name
        );
    }
    first
}

async fn read_as_it_is(
    vendor: &Recordings,
    exchange: &Exchange,
    transport: &Transport,
) -> Result<GenerateResponse, ModelError> {
    let server = Server::start(vec![answer(exchange, exchange.body.clone())]).await;
    ask(&vendor.model(exchange, &server, transport), exchange).await
}

/// This body, with the status and the wait that were recorded.
fn answer(exchange: &Exchange, body: Vec<u8>) -> Answer {
    let answer = Answer::new(exchange.status, body);
    match &exchange.retry_after {
        Some(wait) => answer.header("retry-after", wait.as_str()),
        None => answer,
    }
}

fn variants(exchange: &Exchange) -> Vec<(&'static str, Answer)> {
    let whole = answer(exchange, exchange.body.clone());
    let mut variants = vec![
        ("as it is", whole.clone()),
        ("byte by byte", whole.clone().cut(1)),
    ];
    if size::is_long() {
        variants.push(("in threes", whole.cut(3)));
    }
    let text = || {
        String::from_utf8(exchange.body.clone())
            .unwrap()
            .replace("\r\n", "\n")
    };
    let mut say = |name, text: String| variants.push((name, answer(exchange, text.into_bytes())));
    match exchange.framing {
        Framing::Whole => {}
        Framing::Events => {
            say("CRLF", text().replace('\n', "\r\n"));
            say("CR", text().replace('\n', "\r"));
            say(
                "comments",
                format!(
                    ": hello\n\n{}",
                    text().replace("\n\n", "\n\n: keep-alive\n\n")
                ),
            );
            say("retry", format!("retry: 3000\n\n{}", text()));
            say("byte order mark", format!("\u{feff}{}", text()));
        }
        Framing::Lines => {
            say("CRLF", text().replace('\n', "\r\n"));
            say("blank lines", text().replace('\n', "\n\n"));
            say("byte order mark", format!("\u{feff}{}", text()));
            say("no last line end", text().trim_end().to_owned());
        }
    }
    variants
}

async fn ask(model: &HttpModel, exchange: &Exchange) -> Result<GenerateResponse, ModelError> {
    let question = GenerateRequest::new(vec![Message::user("As recorded.").unwrap()]);
    if !exchange.expected.stream {
        return model.generate(&question).await;
    }
    ask_for_stream(model, &exchange.name).await
}

/// Asks for a stream and returns its end, which its deltas add up to.
pub(crate) async fn ask_for_stream(
    model: &HttpModel,
    name: &str,
) -> Result<GenerateResponse, ModelError> {
    let question = GenerateRequest::new(vec![Message::user("As recorded.").unwrap()]);
    let mut stream = model.stream(&question).await?;
    let (mut text, mut thinking) = (String::new(), String::new());
    while let Some(delta) = stream.next().await {
        match delta? {
            Delta::Text(words) => text += &words,
            Delta::Thinking(words) => thinking += &words,
            Delta::Finished(response) => {
                assert_eq!(
                    (text, thinking),
                    (response.text(), thinking_of(&response)),
                    "{name}"
                );
                return Ok(response);
            }
            _ => {}
        }
    }
    panic!("a stream ends with Finished or an error");
}

fn thinking_of(response: &GenerateResponse) -> String {
    words_of(response, |content| {
        if let Content::Thinking { text } = content {
            Some(text)
        } else {
            None
        }
    })
}

fn words_of(response: &GenerateResponse, words: fn(&Content) -> Option<&String>) -> String {
    response
        .parts
        .iter()
        .filter_map(|part| words(&part.content))
        .map(String::as_str)
        .collect()
}

/// Differences between a decoded answer and the expected one: field, ours, theirs.
fn differences(
    vendor: &Recordings,
    exchange: &Exchange,
    answer: &Result<GenerateResponse, ModelError>,
) -> Vec<(&'static str, String, String)> {
    let expected = &exchange.expected;
    let mut found = Vec::new();
    let mut compare = |what: &'static str, ours: String, theirs: String| {
        if ours != theirs {
            found.push((what, ours, theirs));
        }
    };
    let response = match answer {
        Ok(response) if !expected.is_failure() => response,
        Ok(response) => {
            compare(
                "outcome",
                format!("{response:?}"),
                format!("{:?}", expected.error),
            );
            return found;
        }
        Err(error) if expected.is_failure() => {
            compare(
                "code",
                error.code().to_owned(),
                (vendor.failure)(exchange).to_owned(),
            );
            if expected.retry_after.is_some() {
                let wait = error.retry_after().map(|wait| wait.as_secs());
                compare(
                    "wait",
                    format!("{wait:?}"),
                    format!("{:?}", expected.retry_after),
                );
            }
            return found;
        }
        Err(error) => {
            compare(
                "outcome",
                format!("{}: {error}", error.code()),
                "an answer".to_owned(),
            );
            return found;
        }
    };
    compare("text", response.text(), expected.text.clone());
    compare("thinking", thinking_of(response), expected.thinking.clone());
    let refusal = words_of(response, |content| {
        if let Content::Refusal { text } = content {
            Some(text)
        } else {
            None
        }
    });
    compare("refusal", refusal, expected.refusal.clone());
    let calls = response.tool_calls().map(|call| match &call.malformed {
        // Arguments that are cut off are the text they are.
        Some(malformed) => json!([call.name, malformed.text]),
        None => json!([call.name, call.arguments]),
    });
    let calls: Vec<Value> = calls.collect();
    compare(
        "calls",
        sorted(json!(calls)).to_string(),
        sorted(json!(expected.tool_calls)).to_string(),
    );
    compare(
        "finish",
        format!("{:?}", Some(response.finish)),
        format!("{:?}", (vendor.finish)(expected)),
    );
    if let Some(counts) = expected.usage {
        compare(
            "input",
            format!("{:?}", response.counters.input),
            format!("{:?}", counts.input),
        );
        compare(
            "output",
            format!("{:?}", response.counters.output),
            format!("{:?}", counts.output),
        );
        let usage = response.usage;
        for (what, ours, theirs) in [
            ("cached", usage.cached_tokens, counts.cached),
            ("thinking tokens", usage.thinking_tokens, counts.thinking),
        ] {
            if theirs.is_some() {
                compare(what, format!("{ours:?}"), format!("{theirs:?}"));
            }
        }
    }
    found
}

/// The same value with sorted keys, so that order does not count.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(String, Value)> = map
                .into_iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// A transcript that goes on where a recorded answer stops: its calls answered, its state sent
/// back.
fn follow_up(answer: GenerateResponse, exchange: &Exchange) -> GenerateRequest {
    let mut messages = vec![
        Message::system("As recorded.").unwrap(),
        Message::user("As recorded.").unwrap(),
    ];
    let calls: Vec<_> = answer.tool_calls().cloned().collect();
    messages.push(Message::assistant(answer.parts).unwrap());
    for call in calls {
        messages.push(
            Message::tool(call.id, call.name, ToolResult::ok(json!({"seen": true}))).unwrap(),
        );
    }
    messages.push(Message::user("Go on.").unwrap());
    let mut request = GenerateRequest::new(messages);
    request.tools = tools(&exchange.request).into();
    request
}

/// The tools of a recorded request.
pub(crate) fn tools(request: &Value) -> Vec<ToolDefinition> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.flat_map(declarations).filter_map(tool).collect()
}

/// Gemini lists several in one, OpenAI's chat wraps each.
fn declarations(tool: &Value) -> Vec<&Value> {
    match (
        tool["functionDeclarations"].as_array(),
        tool.get("function"),
    ) {
        (Some(declarations), _) => declarations.iter().collect(),
        (None, Some(function)) => vec![function],
        (None, None) => vec![tool],
    }
}

/// `None` for what the vendor runs itself.
fn tool(declaration: &Value) -> Option<ToolDefinition> {
    let names = ["parameters", "parametersJsonSchema", "input_schema"];
    let schema = names
        .iter()
        .find_map(|name| declaration.get(name).filter(|schema| schema.is_object()));
    let is_function = schema.is_some() || declaration.get("description").is_some();
    let name = ToolName::foreign(declaration["name"].as_str().filter(|_| is_function)?).ok()?;
    let description = declaration["description"]
        .as_str()
        .filter(|text| !text.trim().is_empty());
    let parameters = schema
        .cloned()
        .map_or_else(|| json!({"type": "object"}), lower_case_types);
    let definition =
        ToolDefinition::new("tool", description.unwrap_or("As recorded."), parameters).unwrap();
    Some(ToolDefinition { name, ..definition })
}

/// OpenAPI's `STRING` as JSON Schema's `string`.
fn lower_case_types(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let fields = map.into_iter().map(|(keyword, value)| match value {
                Value::String(kind) if keyword == "type" => {
                    (keyword, Value::String(kind.to_lowercase()))
                }
                other => (keyword, lower_case_types(other)),
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(lower_case_types).collect()),
        other => other,
    }
}
