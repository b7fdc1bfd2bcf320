//! What holds for every address, said at every address: who may ask, and what can go wrong.

use adjutant_core::{DecisionKind, OutcomeCategory};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi as Document;

use crate::problem::MEDIA_TYPE;

/// What stands in front of every handler answers like this.
const EVERYWHERE: &[(&str, &str)] = &[
    ("400", "The request names two hosts."),
    (
        "403",
        "The host name or the page's origin is not one that may ask.",
    ),
    ("500", "Something is wrong on the service's side."),
];
/// Where somebody has to be known.
const IDENTIFIED: &[(&str, &str)] = &[
    ("401", "Nobody knows who asks."),
    (
        "429",
        "The user's own bound or that of their conversation is reached (`limit_reached`), or the provider's (`rate_limit`, `quota`).",
    ),
    (
        "503",
        "The service cannot reach its data, its model or its keys right now, or runs as many turns as it takes (`busy`).",
    ),
    ("507", "The service has no space to store anything."),
];
/// Where something is sent.
const WITH_BODY: &[(&str, &str)] = &[
    ("408", "The body came too slowly."),
    (
        "413",
        "The body is larger than 1 MiB (`too_large`), or the message longer than `agent.message_chars_max` (`message_too_long`, with `length`, `limit` and `setting`).",
    ),
    ("415", "The body is not said to be JSON."),
    ("422", "The request cannot be understood."),
];
/// Where the query says something.
const WITH_QUERY: &[(&str, &str)] = &[("422", "The request cannot be understood.")];
/// Where the address names something.
const WITH_NAME: &[(&str, &str)] = &[("404", "There is no such thing, or it is another user's.")];

/// Routes in words that others chose, which have their own errors.
const FOREIGN: &[&str] = &[
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/models",
    "/mcp",
];

/// The whole description.
pub(super) fn complete(description: &Document) -> Value {
    let mut document = serde_json::to_value(description).unwrap_or_default();
    let schemes = json!({
        "token": {
            "type": "http", "scheme": "bearer",
            "description": "A token (`adjutant token create`), or a JSON Web Token where the service takes those.",
        },
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": "adjutant",
            "description": "What `POST /v1/session` or the printed link set; `adjutant-PORT` where the address has a port. What \
                            changes something has to come from the service's own page.",
        },
    });
    document["components"]["securitySchemes"] = schemes;
    document["security"] = json!([{ "token": [] }, { "cookie": [] }]);
    document["components"]["schemas"]["StreamedEvent"] = json!({
        "type": "object",
        "description": "One event of a stream (text/event-stream), as its reader has it.",
        "required": ["data"],
        "properties": {
            "id": { "type": "string", "description": "For Last-Event-ID." },
            "event": { "type": "string" },
            "data": { "type": "string", "description": "JSON, or [DONE] at the end of a stream in OpenAI's words." },
        },
    });
    for (schema, rule) in choices() {
        if let Some(Value::Object(known)) =
            document.pointer_mut(&format!("/components/schemas/{schema}"))
        {
            known.insert("oneOf".to_owned(), rule);
        }
    }
    open_objects(&mut document);
    for (schema, member, known) in known_words() {
        name_words(&mut document, schema, member, &known);
    }
    if let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) {
        for (path, item) in paths {
            for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if let Some(operation) = operation
                    .as_object_mut()
                    .filter(|it| it.contains_key("responses"))
                {
                    words(operation);
                    answers(path, operation);
                }
            }
        }
    }
    document
}

/// Has objects whose members are not described say that they have some: generators of clients take
/// them for empty else.
fn open_objects(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_object = match map.get("type") {
                Some(Value::String(kind)) => kind == "object",
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
                _ => false,
            };
            let described = ["properties", "additionalProperties"];
            if is_object && !described.iter().any(|member| map.contains_key(*member)) {
                map.insert("additionalProperties".to_owned(), Value::Bool(true));
            }
            map.values_mut().for_each(open_objects);
        }
        Value::Array(values) => values.iter_mut().for_each(open_objects),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The words that members take, where the type that holds them knows nothing of this description.
fn known_words() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let outcomes = || {
        OutcomeCategory::ALL
            .iter()
            .map(|word| word.as_str())
            .collect::<Vec<_>>()
    };
    let decisions = || {
        DecisionKind::ALL
            .iter()
            .map(|word| word.as_str())
            .collect::<Vec<_>>()
    };
    let mut known = vec![
        ("Message", "role", vec!["user", "assistant", "tool"]),
        ("Me", "auth", vec!["token", "jwt", "oidc", "proxy", "none"]),
        (
            "Changed",
            "status",
            vec!["added", "updated", "known", "forgotten"],
        ),
    ];
    for schema in ["ChatResponse", "Decision"] {
        known.push((schema, "outcome", outcomes()));
        known.push((schema, "decision", decisions()));
    }
    known
}

fn name_words(document: &mut Value, schema: &str, member: &str, known: &[&str]) {
    let place = format!("/components/schemas/{schema}/properties/{member}");
    let Some(Value::Object(described)) = document.pointer_mut(&place) else {
        return;
    };
    let may_be_null = described.get("type").is_some_and(Value::is_array);
    let words = known
        .iter()
        .map(|word| json!(word))
        .chain(may_be_null.then_some(Value::Null));
    described.insert("enum".to_owned(), words.collect());
}

/// Returns the description for clients that ask the service by this address.
pub(super) fn served_at(document: &Value, address: &str) -> Value {
    let mut document = document.clone();
    document["servers"] =
        json!([{ "url": address, "description": "The service that gives this description." }]);
    document
}

/// What the fields of a type cannot say one by one: which of them go together.
fn choices() -> [(&'static str, Value); 2] {
    let given = |name: &str, absent: &str, nothing: Value| {
        json!({
            "required": [name],
            "properties": { name: { "not": { "type": "null" } }, absent: nothing },
        })
    };
    let nothing = json!({ "type": "null" });
    let said = given("message", "resume", json!({ "maxItems": 0 }));
    let mut answered = given("resume", "message", nothing.clone());
    answered["properties"]["resume"] = json!({ "minItems": 1 });
    let yes_or_no = given("approved", "verdict", nothing.clone());
    let became = given("verdict", "approved", nothing);
    [
        ("ChatRequest", json!([said, answered])),
        ("Resume", json!([yes_or_no, became])),
    ]
}

/// The words that a parameter takes, where the type that holds them knows nothing of this
/// description.
fn words(operation: &mut Map<String, Value>) {
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    for parameter in parameters
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["name"] == "outcome")
    {
        let known = OutcomeCategory::ALL
            .iter()
            .map(|outcome| outcome.as_str())
            .collect::<Vec<_>>();
        parameter["schema"] = json!({ "type": "string", "enum": known });
    }
}

fn answers(path: &str, operation: &mut Map<String, Value>) {
    let open = operation.get("security").is_some_and(is_open);
    let says = |place: &str| {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        parameters.is_some_and(|all| all.iter().any(|parameter| parameter["in"] == place))
    };
    let applies = [
        (true, EVERYWHERE),
        (!open, IDENTIFIED),
        (operation.contains_key("requestBody"), WITH_BODY),
        (says("query") || says("header"), WITH_QUERY),
        (says("path"), WITH_NAME),
    ];
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let foreign = FOREIGN
        .iter()
        .any(|address| path.strip_prefix(address).is_some_and(is_below));
    let Some(responses) = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for (status, description) in applies
        .into_iter()
        .filter(|(applies, _)| *applies)
        .flat_map(|(_, all)| all)
    {
        if !responses.contains_key(*status) && (!foreign || *status == "403") {
            responses.insert((*status).to_owned(), json!({ "description": description }));
        }
    }
    for (status, response) in responses.iter_mut() {
        let failed = status.starts_with('4') || status.starts_with('5');
        if failed && response.get("content").is_none() && response.get("$ref").is_none() && !foreign
        {
            response["content"] =
                json!({ MEDIA_TYPE: { "schema": { "$ref": "#/components/schemas/Problem" } } });
        }
    }
    for response in responses.values_mut() {
        // One event of the stream, which is what its readers check.
        if let Some(stream) = response.pointer_mut("/content/text~1event-stream/schema") {
            *stream = json!({ "$ref": "#/components/schemas/StreamedEvent" });
        }
    }
    responses.sort_keys();
}

/// `[{}]` or `[]`: nobody has to be known.
fn is_open(security: &Value) -> bool {
    let nothing = |one: &Value| one.as_object().is_some_and(Map::is_empty);
    security
        .as_array()
        .is_some_and(|all| all.iter().all(nothing))
}
