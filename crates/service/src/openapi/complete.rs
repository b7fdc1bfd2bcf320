//! Completion of the OpenAPI document with what all routes have in common: authentication, errors.

use adjutant_core::{DecisionKind, OutcomeCategory};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi as Document;

use crate::problem::MEDIA_TYPE;

/// Errors of the middleware, which every route can answer with.
const EVERYWHERE: &[(&str, &str)] = &[
    ("400", "The request names two hosts."),
    (
        "403",
        "The host name or the page's origin is not one that may ask.",
    ),
    ("500", "Something is wrong on the service's side."),
];
/// Errors of routes that need authentication.
const IDENTIFIED: &[(&str, &str)] = &[
    ("401", "The caller is not authenticated."),
    (
        "429",
        "A limit of the user or of their conversation is reached (`limit_reached`), or one of the provider (`rate_limit`, `quota`).",
    ),
    (
        "503",
        "The service cannot reach its data, its model or its keys at the moment, its disk reports errors (`storage_failed`), or it runs as many turns as allowed (`busy`).",
    ),
    ("507", "The service has no space to store anything."),
];
/// Errors of routes with a request body.
const WITH_BODY: &[(&str, &str)] = &[
    ("408", "The body did not arrive in time."),
    (
        "413",
        "The body is larger than 1 MiB (`too_large`), or the message longer than `agent.message_chars_max` (`message_too_long`, with `length`, `limit` and `setting`).",
    ),
    ("415", "The body is not declared as JSON."),
    ("422", "The request is invalid."),
];
/// Errors of routes with query parameters.
const WITH_QUERY: &[(&str, &str)] = &[("422", "The request is invalid.")];
/// Errors of routes with path parameters.
const WITH_NAME: &[(&str, &str)] = &[("404", "It does not exist, or belongs to another user.")];

/// Routes of OpenAI's APIs, which have their own error format. Each includes the routes below it.
const OPENAI_ROUTES: &[&str] = &["/v1/chat/completions", "/v1/responses", "/v1/models"];

/// Errors of all routes of OpenAI's APIs, in their format.
const OPENAI: &[(&str, &str)] = &[
    ("401", "The caller is not authenticated."),
    ("403", "The host name or the page's origin is not accepted."),
    ("429", "A rate limit is exceeded, or a budget is used up."),
    ("500", "An internal error occurred."),
    ("503", "The model or the store is not available."),
];
/// Errors of the routes of OpenAI's APIs that start a turn.
const OPENAI_TURN: &[(&str, &str)] = &[
    ("400", "The request is invalid."),
    ("413", "The request is too large."),
    ("415", "The request is not JSON."),
    ("502", "The model did not give a usable answer."),
    ("504", "The model did not answer in time."),
];

/// Returns the complete document.
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
            "data": { "type": "string", "description": "JSON, or [DONE] at the end of a stream of the Chat Completions API." },
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
    // Enumerations, from which client generators make types.
    for (schema, member, values) in known_values() {
        set_enum(&mut document, schema, member, &values);
    }
    if let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) {
        for (path, item) in paths {
            for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if let Some(operation) = operation
                    .as_object_mut()
                    .filter(|it| it.contains_key("responses"))
                {
                    describe_outcomes(operation);
                    add_common_errors(path, operation);
                }
            }
        }
    }
    document
}

/// Marks objects without described members as open; client generators would take them for empty.
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

/// Returns the values of members whose Rust types do not describe them.
fn known_values() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let decisions = || DecisionKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let mut known = vec![
        ("Message", "role", vec!["user", "assistant", "tool"]),
        ("Me", "auth", vec!["token", "jwt", "oidc", "proxy", "none"]),
        (
            "ChangedFact",
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

fn outcomes() -> Vec<&'static str> {
    let all = OutcomeCategory::ALL.iter();
    all.map(|outcome| outcome.as_str()).collect()
}

fn set_enum(document: &mut Value, schema: &str, member: &str, known: &[&str]) {
    let place = format!("/components/schemas/{schema}/properties/{member}");
    let Some(Value::Object(described)) = document.pointer_mut(&place) else {
        return;
    };
    // A member that may be null has a list of types, and null among its values.
    let may_be_null = described.get("type").is_some_and(Value::is_array);
    let words = known
        .iter()
        .map(|word| json!(word))
        .chain(may_be_null.then_some(Value::Null));
    described.insert("enum".to_owned(), words.collect());
}

/// Returns the document for clients that reach the service at this address.
pub(super) fn served_at(document: &Value, address: &str) -> Value {
    let mut document = document.clone();
    document["servers"] =
        json!([{ "url": address, "description": "The service that gives this description." }]);
    document
}

/// Returns rules about combinations of members, which Rust types cannot express.
fn choices() -> [(&'static str, Value); 2] {
    let given = |name: &str, absent: &str, nothing: Value| {
        json!({
            "required": [name],
            "properties": { name: { "not": { "type": "null" } }, absent: nothing },
        })
    };
    let nothing = json!({ "type": "null" });
    let with_message = given("message", "resume", json!({ "maxItems": 0 }));
    let mut with_answers = given("resume", "message", nothing.clone());
    with_answers["properties"]["resume"] = json!({ "minItems": 1 });
    let confirmed = given("approved", "verdict", nothing.clone());
    let resolved = given("verdict", "approved", nothing);
    [
        ("ChatRequest", json!([with_message, with_answers])),
        ("Resume", json!([confirmed, resolved])),
    ]
}

/// Adds the known values of query parameters named `outcome`.
fn describe_outcomes(operation: &mut Map<String, Value>) {
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    for parameter in parameters
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["name"] == "outcome")
    {
        parameter["schema"] = json!({ "type": "string", "enum": outcomes() });
    }
}

fn add_common_errors(path: &str, operation: &mut Map<String, Value>) {
    let open = operation.get("security").is_some_and(is_open);
    let has_parameter = |place: &str| {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        parameters.is_some_and(|all| all.iter().any(|parameter| parameter["in"] == place))
    };
    let has_body = operation.contains_key("requestBody");
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let is_openai = OPENAI_ROUTES
        .iter()
        .any(|route| path.strip_prefix(route).is_some_and(is_below));
    let (errors, media_type, schema) = if is_openai {
        let errors = vec![(true, OPENAI), (has_body, OPENAI_TURN)];
        (errors, "application/json", "ErrorBody")
    } else {
        let errors = vec![
            (true, EVERYWHERE),
            (!open, IDENTIFIED),
            (has_body, WITH_BODY),
            (
                has_parameter("query") || has_parameter("header"),
                WITH_QUERY,
            ),
            (has_parameter("path"), WITH_NAME),
        ];
        (errors, MEDIA_TYPE, "Problem")
    };
    let Some(responses) = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for (status, description) in errors
        .into_iter()
        .filter(|(applies, _)| *applies)
        .flat_map(|(_, errors)| errors)
    {
        // What a route says of a status is more precise.
        if !responses.contains_key(*status) {
            responses.insert((*status).to_owned(), json!({ "description": description }));
        }
    }
    for (status, response) in responses.iter_mut() {
        let failed = status.starts_with('4') || status.starts_with('5');
        if failed && response.get("content").is_none() && response.get("$ref").is_none() {
            let reference = format!("#/components/schemas/{schema}");
            response["content"] = json!({ media_type: { "schema": { "$ref": reference } } });
        }
    }
    for response in responses.values_mut() {
        // The schema describes one event of the stream, which is what readers validate.
        if let Some(stream) = response.pointer_mut("/content/text~1event-stream/schema") {
            *stream = json!({ "$ref": "#/components/schemas/StreamedEvent" });
        }
    }
    // Declared and added responses together, by status.
    responses.sort_keys();
}

/// Returns true for `[{}]` and `[]`: no authentication is needed.
fn is_open(security: &Value) -> bool {
    let nothing = |one: &Value| one.as_object().is_some_and(Map::is_empty);
    security
        .as_array()
        .is_some_and(|all| all.iter().all(nothing))
}
