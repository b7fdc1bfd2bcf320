//! Parses the text between a syntax's tags as calls.

use adjutant_core::ToolDefinition;
use serde_json::{Map, Value};

use super::syntax::SYNTAXES;

/// A call of a known tool; its arguments are JSON text that may be malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Call {
    fn new(name: &str, arguments: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            arguments: arguments.into(),
        }
    }
}

/// The keys of a call that is written as a JSON object.
const KEYS: &[&str] = &["name", "arguments", "parameters", "type", "id", "function"];

/// Parses the calls in the text after an opening tag. Also returns the text after the calls; `None`
/// if there is no call of a known tool.
pub(super) fn parse_body<'a>(
    open: &str,
    body: &'a str,
    tools: &[ToolDefinition],
) -> Option<(Vec<Call>, &'a str)> {
    if open == "<function=" {
        return Some((vec![function_call(body, tools)?], ""));
    }
    let text = unfenced(body.trim());
    if text.starts_with("<function=") {
        let calls: Option<Vec<Call>> = text
            .split("<function=")
            .skip(1)
            .map(|text| function_call(text, tools))
            .collect();
        return Some((calls?, ""));
    }
    if text.contains("<arg_key>") || is_tool(text, tools) {
        return Some((vec![arg_key_call(text, tools)?], ""));
    }
    if open == "[TOOL_CALLS]" && !text.starts_with(['[', '{']) {
        return named_calls(text, tools);
    }
    json_calls(text, tools, Strictness::Tagged)
}

/// Parses JSON that no tag marks as calls, so it must not be able to mean anything else.
pub(super) fn bare_calls(text: &str, tools: &[ToolDefinition]) -> Option<Vec<Call>> {
    let (calls, rest) = json_calls(text, tools, Strictness::Bare)?;
    rest.trim().is_empty().then_some(calls)
}

/// Returns true if an answer with this beginning may consist of calls only.
pub(super) fn may_be_only_calls(answer: &str) -> bool {
    let begins_with = |text: &str, word: &str| text.starts_with(word) || word.starts_with(text);
    let (text, fenced) = match answer.strip_prefix("```") {
        None if "```".starts_with(answer) => return true,
        None => (answer, false),
        Some(fenced) => match fenced.split_once('\n') {
            None => return fenced.len() <= 16,
            Some((_, inner)) => (inner.trim_start(), true),
        },
    };
    if fenced && SYNTAXES.iter().any(|syntax| begins_with(text, syntax.open)) {
        return true;
    }
    let object = text.strip_prefix('[').unwrap_or(text).trim_start();
    let Some(fields) = object.strip_prefix('{') else {
        return object.is_empty();
    };
    let Some(key) = fields.trim_start().strip_prefix('"') else {
        return fields.trim_start().is_empty();
    };
    match key.split_once('"') {
        Some((key, _)) => KEYS.contains(&key),
        None => KEYS.iter().any(|known| known.starts_with(key)),
    }
}

/// Returns the inside of a code fence, or the text itself if it is not fenced.
pub(super) fn unfenced(text: &str) -> &str {
    let inside = || {
        let (_, inner) = text.strip_prefix("```")?.split_once('\n')?;
        let inner = inner.trim_end().strip_suffix("```").unwrap_or(inner);
        (!inner.contains("```")).then(|| inner.trim())
    };
    inside().unwrap_or(text)
}

/// Returns true if the JSON that began in `text` is inside a string at its end.
pub(super) fn is_in_string(text: &str) -> bool {
    let Some(start) = text
        .find(['{', '['])
        .filter(|start| !text[..*start].contains("<parameter="))
    else {
        return false;
    };
    let (mut inside, mut escaped) = (false, false);
    for byte in text.as_bytes()[start..].iter().copied() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// Tags mark the text as calls.
    Tagged,
    /// No tags, so the JSON has to be unambiguous.
    Bare,
}

/// Parses JSON values, one after the other or in lists.
fn json_calls<'a>(
    mut text: &'a str,
    tools: &[ToolDefinition],
    strictness: Strictness,
) -> Option<(Vec<Call>, &'a str)> {
    let mut calls = Vec::new();
    loop {
        let rest = text.trim_start_matches(|c: char| {
            c.is_whitespace() || (matches!(c, ';' | ',') && !calls.is_empty())
        });
        if !rest.starts_with(['{', '[']) {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                calls.extend(calls_in(value, tools, strictness)?);
                text = &rest[stream.byte_offset()..];
            }
            // Passed on as it is: the runtime reports malformed arguments to the model, which
            // repeats the call.
            Some(Err(error)) if strictness == Strictness::Tagged || error.is_eof() => {
                calls.push(malformed_call(rest, tools, strictness)?);
                text = "";
            }
            Some(Err(_)) | None => break,
        }
    }
    (!calls.is_empty()).then_some((calls, text))
}

fn calls_in(value: Value, tools: &[ToolDefinition], strictness: Strictness) -> Option<Vec<Call>> {
    match value {
        Value::Array(values) => {
            let calls: Option<Vec<_>> = values
                .into_iter()
                .map(|value| calls_in(value, tools, strictness))
                .collect();
            Some(calls?.into_iter().flatten().collect())
        }
        Value::Object(mut fields) => {
            if strictness == Strictness::Bare
                && !fields.keys().all(|key| KEYS.contains(&key.as_str()))
            {
                return None;
            }
            // `{"type": "function", "function": {"name", "arguments"}}`, as in OpenAI's API.
            if let Some(Value::Object(inner)) = fields.get("function") {
                fields = inner.clone();
            }
            let name = ["name", "function"]
                .iter()
                .find_map(|key| fields.get(*key)?.as_str());
            let name = name.filter(|name| is_tool(name, tools))?.to_owned();
            let arguments = fields
                .shift_remove("arguments")
                .or_else(|| fields.shift_remove("parameters"));
            let arguments = match arguments {
                None if strictness == Strictness::Bare => return None,
                None | Some(Value::Null) => "{}".to_owned(),
                Some(Value::String(text)) => text,
                // The definition of a tool, which an answer about the tool may quote.
                Some(schema) if strictness == Strictness::Bare && is_schema(&schema) => {
                    return None;
                }
                Some(arguments) => arguments.to_string(),
            };
            Some(vec![Call { name, arguments }])
        }
        _ => None,
    }
}

/// Returns true if the model shows a tool's definition instead of calling the tool.
fn is_schema(parameters: &Value) -> bool {
    parameters["type"] == "object" && parameters["properties"].is_object()
}

/// Parses a call whose JSON is cut off or wrong: the tool is found by its name, the arguments are
/// returned as they are.
fn malformed_call(text: &str, tools: &[ToolDefinition], strictness: Strictness) -> Option<Call> {
    let behind = |key: &str| {
        let (_, rest) = text.split_once(&format!("\"{key}\""))?;
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    };
    let (name, _) = behind("name")?.strip_prefix('"')?.split_once('"')?;
    let has_arguments = behind("arguments")
        .or_else(|| behind("parameters"))
        .is_some();
    let is_call = is_tool(name, tools) && (strictness == Strictness::Tagged || has_arguments);
    is_call.then(|| Call::new(name, text.trim()))
}

/// Parses `name>` followed by JSON, or by a `<parameter=x>` per argument.
fn function_call(text: &str, tools: &[ToolDefinition]) -> Option<Call> {
    let (name, inside) = text.split_once('>')?;
    let name = name.trim().trim_matches('"');
    let tool = tools.iter().find(|tool| tool.name.as_str() == name)?;
    let inside = inside.split("</function>").next().unwrap_or(inside).trim();
    if inside.is_empty() {
        return Some(Call::new(name, "{}"));
    }
    let mut arguments = Map::new();
    for parameter in inside.split("<parameter=").skip(1) {
        let Some((key, value)) = parameter.split_once('>') else {
            return Some(Call::new(name, inside));
        };
        let value = match value.split_once("</parameter>") {
            // Line breaks around a value belong to the tags.
            Some((value, _)) => {
                let value = value.strip_prefix('\n').unwrap_or(value);
                value.strip_suffix('\n').unwrap_or(value)
            }
            None => value.trim(),
        };
        let key = key.trim().trim_matches('"');
        arguments.insert(key.to_owned(), typed(value, tool, key));
    }
    // Without parameters it is JSON, or malformed.
    let arguments = match arguments.is_empty() {
        true => inside.to_owned(),
        false => Value::Object(arguments).to_string(),
    };
    Some(Call::new(name, arguments))
}

/// Parses a tool's name followed by `<arg_key>x</arg_key><arg_value>1</arg_value>` per argument.
fn arg_key_call(text: &str, tools: &[ToolDefinition]) -> Option<Call> {
    let mut parts = text.split("<arg_key>");
    let name = parts.next()?.trim();
    let tool = tools.iter().find(|tool| tool.name.as_str() == name)?;
    let mut arguments = Map::new();
    for part in parts {
        let argument = || {
            let (key, rest) = part.split_once("</arg_key>")?;
            let (_, value) = rest.split_once("<arg_value>")?;
            Some((key.trim(), value.split_once("</arg_value>")?.0))
        };
        let Some((key, value)) = argument() else {
            return Some(Call::new(name, text));
        };
        arguments.insert(key.to_owned(), typed(value, tool, key));
    }
    Some(Call::new(name, Value::Object(arguments).to_string()))
}

/// Parses `name[ARGS]{}` or `name{}`, one or several.
fn named_calls<'a>(mut text: &'a str, tools: &[ToolDefinition]) -> Option<(Vec<Call>, &'a str)> {
    let mut calls = Vec::new();
    while let Some(start) = text.find('{') {
        let name = text[..start].trim().trim_start_matches("[TOOL_CALLS]");
        let name = name.split('[').next().unwrap_or(name).trim();
        if !is_tool(name, tools) {
            break;
        }
        let json = &text[start..];
        let mut stream = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let (arguments, rest) = match stream.next() {
            Some(Ok(value)) => (value.to_string(), &json[stream.byte_offset()..]),
            Some(Err(_)) | None => (json.to_owned(), ""),
        };
        calls.push(Call::new(name, arguments));
        text = rest;
    }
    (!calls.is_empty()).then_some((calls, text))
}

fn is_tool(name: &str, tools: &[ToolDefinition]) -> bool {
    tools.iter().any(|tool| tool.name.as_str() == name)
}

/// Converts an argument written without JSON quotation marks to the type that the tool's schema
/// has.
fn typed(text: &str, tool: &ToolDefinition, parameter: &str) -> Value {
    let kind = &tool.parameters["properties"][parameter]["type"];
    // Text that looks like a number stays text if the tool wants text.
    if kind == "string" {
        return Value::String(text.to_owned());
    }
    match (text.trim(), kind == "boolean") {
        ("True", true) => Value::Bool(true),
        ("False", true) => Value::Bool(false),
        (trimmed, _) => {
            serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(text.to_owned()))
        }
    }
}
