//! Translates a transcript of another program to core messages. Its calls count as the called
//! model's own, so that ids and signatures are sent unchanged.

use std::collections::BTreeSet;

use adjutant_core::{
    CallId, Content, GenerateRequest, GenerationConfig, MaxTokens, Message, ModelId, Part,
    ProviderState, Temperature, ToolCall, ToolDefinition, ToolName, ToolResult,
};
use serde_json::{Value, json};

use super::input::{Call, Input, Tool, Turn};
use crate::error::CliError;

/// Creates the provider's state of a call with a signature; see `Provider::call_state`.
type CallState = fn(&str) -> Value;

/// Creates the request.
///
/// # Errors
/// A parameter is out of range, a tool name is invalid, a message is empty, or a result has no
/// call.
pub(super) fn request(
    input: &Input,
    origin: &ModelId,
    call_state: Option<CallState>,
) -> Result<GenerateRequest, CliError> {
    let mut transcript = Transcript {
        origin,
        call_state,
        messages: Vec::new(),
        ids: BTreeSet::new(),
        open: Vec::new(),
    };
    transcript
        .system(input.system.as_deref())
        .map_err(|cause| unusable("system", cause))?;
    for (at, turn) in input.messages.iter().enumerate() {
        transcript
            .turn(turn)
            .map_err(|cause| unusable(&format!("messages[{at}]"), cause))?;
    }
    if transcript.messages.is_empty() {
        return Err(unusable("messages", "there is none".to_owned()));
    }
    let tools = input.tools.iter().enumerate();
    let tools = tools
        .map(|(at, tool)| {
            definition(tool).map_err(|cause| unusable(&format!("tools[{at}]"), cause))
        })
        .collect::<Result<_, _>>()?;
    let out_of_range = |error: adjutant_core::OutOfRange| unusable(error.name, error.to_string());
    Ok(GenerateRequest {
        tools,
        config: GenerationConfig {
            temperature: input
                .temperature
                .map(Temperature::new)
                .transpose()
                .map_err(out_of_range)?,
            max_tokens: input
                .max_tokens
                .map(MaxTokens::new)
                .transpose()
                .map_err(out_of_range)?,
            verbatim: true,
            ..GenerationConfig::default()
        },
        ..GenerateRequest::new(transcript.messages)
    })
}

struct Transcript<'a> {
    origin: &'a ModelId,
    call_state: Option<CallState>,
    messages: Vec<Message>,
    /// Ids in use, because providers may repeat theirs.
    ids: BTreeSet<String>,
    /// Calls without a result so far, in order.
    open: Vec<Open>,
}

struct Open {
    given: Option<String>,
    name: String,
    id: CallId,
}

impl Transcript<'_> {
    fn turn(&mut self, turn: &Turn) -> Result<(), String> {
        let message = match turn {
            Turn::System { text } => return self.system(text.as_deref()),
            Turn::User { text } => Message::user(text.clone().unwrap_or_default())
                .map_err(|error| error.to_string())?,
            Turn::Assistant { text, tool_calls } => {
                return self.assistant(text.as_deref(), tool_calls);
            }
            Turn::Tool { id, name, content } => {
                let (call_id, name) = self.find_call(filled(id), filled(name))?;
                let content = if content.is_null() {
                    json!("")
                } else {
                    content.clone()
                };
                Message::tool(call_id, name, ToolResult::verbatim(content))
                    .map_err(|error| error.to_string())?
            }
        };
        self.messages.push(message);
        Ok(())
    }

    /// Sets the system instruction; a blank one is ignored.
    fn system(&mut self, text: Option<&str>) -> Result<(), String> {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.messages
                .push(Message::system(text).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Adds an answer of the model; one without text and calls is ignored.
    fn assistant(&mut self, text: Option<&str>, calls: &[Call]) -> Result<(), String> {
        let text = text.filter(|text| !text.is_empty());
        if text.is_none_or(|text| text.trim().is_empty()) && calls.is_empty() {
            return Ok(());
        }
        let mut parts = Vec::new();
        if let Some(text) = text {
            parts.push(Part::ours(Content::Text {
                text: text.to_owned(),
            }));
        }
        for (at, call) in calls.iter().enumerate() {
            parts.push(
                self.call(call)
                    .map_err(|cause| format!("tool_calls[{at}]: {cause}"))?,
            );
        }
        let message = Message::assistant(parts).map_err(|error| error.to_string())?;
        self.messages.push(message);
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<Part, String> {
        let given = filled(&call.id).map(str::to_owned);
        let id = self.mint(given.as_deref())?;
        let name = call.name.clone();
        let read = match &call.args {
            Value::Null => ToolCall::from_json_text(0, given.clone(), name, ""),
            Value::String(text) => ToolCall::from_json_text(0, given.clone(), name, text),
            Value::Object(arguments) => {
                ToolCall::from_object(0, given.clone(), name, arguments.clone())
            }
            other => return Err(format!("args must be an object, not {other}")),
        };
        self.open.push(Open {
            given,
            name: call.name.clone(),
            id: id.clone(),
        });
        let data = match (self.call_state, filled(&call.signature)) {
            (Some(state), Some(signature)) => state(signature),
            _ => json!({}),
        };
        let state = ProviderState {
            origin: self.origin.clone(),
            data,
        };
        Ok(Part::from_provider(
            Content::ToolCall(ToolCall { id, ..read }),
            Some(state),
        ))
    }

    /// Returns a unique id for a call: the given one, unless it is in use.
    // Some vendors number the calls of each answer anew, so the same id may come again.
    fn mint(&mut self, given: Option<&str>) -> Result<CallId, String> {
        let numbered = (self.ids.len()..).map(|number| format!("call_{number}"));
        let id = given
            .map(str::to_owned)
            .into_iter()
            .chain(numbered)
            .find(|id| self.ids.insert(id.clone()))
            .unwrap_or_default();
        CallId::new(id).map_err(|error| error.to_string())
    }

    /// Returns the call that a result answers, with its name: the call of that id; without an id,
    /// the first open call of that name, else the first open call. An unknown id is passed on,
    /// because the transcript may be incomplete.
    fn find_call(
        &mut self,
        id: Option<&str>,
        name: Option<&str>,
    ) -> Result<(CallId, String), String> {
        let place = match id {
            Some(id) => self
                .open
                .iter()
                .position(|open| open.given.as_deref() == Some(id)),
            None => self
                .open
                .iter()
                .position(|open| name.is_none_or(|name| name == open.name))
                .or((!self.open.is_empty()).then_some(0)),
        };
        match (place, id, name) {
            (Some(place), _, name) => {
                let open = self.open.remove(place);
                Ok((open.id, name.map_or(open.name, str::to_owned)))
            }
            (None, Some(id), Some(name)) => Ok((
                CallId::new(id).map_err(|error| error.to_string())?,
                name.to_owned(),
            )),
            (None, Some(id), None) => Err(format!(
                "no call has the id {id:?}, and the result has no name"
            )),
            (None, None, _) => Err("a result without an id, and no call is open".to_owned()),
        }
    }
}

fn definition(tool: &Tool) -> Result<ToolDefinition, String> {
    Ok(ToolDefinition {
        name: ToolName::foreign(tool.name.as_str()).map_err(|error| error.to_string())?,
        description: tool.description.clone().unwrap_or_default(),
        parameters: match &tool.parameters {
            None => json!({ "type": "object", "properties": {} }),
            Some(schema @ Value::Object(_)) => schema.clone(),
            Some(other) => {
                return Err(format!(
                    "parameters must be a JSON Schema of an object, not {other}"
                ));
            }
        },
        annotations: Default::default(),
        references: Vec::new(),
        intent: None,
        output_schema: None,
    })
}

/// Returns the name if it is not empty.
fn filled(name: &Option<String>) -> Option<&str> {
    name.as_deref().filter(|name| !name.trim().is_empty())
}

fn unusable(place: &str, cause: String) -> CliError {
    CliError::usage("the input cannot be used").because(format!("{place}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<GenerateRequest, CliError> {
        let origin = ModelId::new("acme", "m1").unwrap();
        request(
            &Input::parse(text.as_bytes()).unwrap(),
            &origin,
            Some(|signature| json!({ "s": signature })),
        )
    }

    fn results(request: &GenerateRequest) -> Vec<(String, String, String)> {
        let results = request.messages.iter().filter_map(Message::tool_result);
        results
            .map(|(id, name, result)| (id.to_string(), name.to_owned(), result.to_text()))
            .collect()
    }

    #[test]
    fn a_call_is_the_models_own_with_id_and_signature() {
        let request = read(
            r#"{"messages": [{"role": "user", "text": "?"}, {"role": "assistant", "text": null, "tool_calls":
                [{"id": "toolu_1", "name": "get", "args": {"a": 1}, "signature": "xyz"}, {"name": "put", "args": null}]}]}"#,
        )
        .unwrap();
        let parts = request.messages[1].parts();
        let states: Vec<_> = parts
            .iter()
            .map(|part| part.state.clone().unwrap())
            .collect();
        assert!(
            states
                .iter()
                .all(|state| state.origin.to_string() == "acme/m1")
        );
        assert_eq!(
            (&states[0].data, &states[1].data),
            (&json!({"s": "xyz"}), &json!({}))
        );
        let calls: Vec<_> = request.messages[1].tool_calls().collect();
        assert_eq!(calls[0].provider_id.as_deref(), Some("toolu_1"));
        assert_eq!(calls[0].arguments["a"], 1);
        assert_eq!(
            (calls[1].provider_id.as_deref(), calls[1].arguments.len()),
            (None, 0)
        );
        assert_ne!(calls[0].id, calls[1].id);
        assert!(request.config.verbatim && request.config.temperature.is_none());
    }

    #[test]
    fn results_find_their_calls_by_id_by_name_and_in_order() {
        let calls = r#"{"role": "assistant", "tool_calls": [
            {"id": "x", "name": "a"}, {"id": "y", "name": "a"}, {"id": null, "name": "b"}, {"name": "c"}]}"#;
        let request = read(&format!(
            r#"{{"messages": [{calls}, {{"role": "tool", "id": "y", "content": "1"}},
                {{"role": "tool", "name": "c", "content": {{"two": 2}}}}, {{"role": "tool", "id": null, "content": null}},
                {{"role": "tool", "content": [4]}}]}}"#
        ))
        .unwrap();
        let found = results(&request);
        let names: Vec<_> = found
            .iter()
            .map(|(_, name, text)| (name.as_str(), text.as_str()))
            .collect();
        assert_eq!(
            names,
            [("a", "1"), ("c", r#"{"two":2}"#), ("a", ""), ("b", "[4]")]
        );
        let ids: Vec<_> = request.messages[0]
            .tool_calls()
            .map(|call| call.id.to_string())
            .collect();
        assert_eq!(
            [&found[0].0, &found[1].0, &found[2].0, &found[3].0],
            [&ids[1], &ids[3], &ids[0], &ids[2]]
        );
    }

    #[test]
    fn an_id_that_comes_again_is_a_new_call_and_an_unknown_one_is_passed_on() {
        let round = r#"{"role": "assistant", "tool_calls": [{"id": "x", "name": "a"}]}, {"role": "tool", "id": "x", "content": "r"}"#;
        let request = read(&format!(
            r#"{{"messages": [{round}, {round}, {{"role": "tool", "id": "z", "name": "q", "content": "r"}}]}}"#
        ))
        .unwrap();
        let found = results(&request);
        assert_ne!(found[0].0, found[1].0);
        assert_eq!((found[2].0.as_str(), found[2].1.as_str()), ("z", "q"));
    }

    #[test]
    fn empty_messages_are_an_error_or_ignored() {
        let request = read(
            r#"{"system": " ", "messages": [{"role": "user", "text": "?"}, {"role": "assistant"}]}"#,
        );
        assert_eq!(request.unwrap().messages.len(), 1);
        for (text, words) in [
            ("{}", "messages: there is none"),
            (
                r#"{"messages": [{"role": "user", "text": ""}]}"#,
                "messages[0]: ",
            ),
            (
                r#"{"messages": [{"role": "tool", "content": "x"}]}"#,
                "messages[0]: a result without an id",
            ),
            (
                r#"{"messages": [{"role": "tool", "id": "x", "content": "x"}]}"#,
                "no call has the id \"x\"",
            ),
            (
                r#"{"messages": [{"role": "assistant", "tool_calls": [{"name": "a", "args": [1]}]}]}"#,
                "args must be",
            ),
            (
                r#"{"messages": [{"role": "user", "text": "?"}], "temperature": 3}"#,
                "between 0.0 and 2.0, not 3",
            ),
            (
                r#"{"messages": [{"role": "user", "text": "?"}], "max_tokens": 0}"#,
                "at least 1, not 0",
            ),
            (
                r#"{"messages": [{"role": "user", "text": "?"}], "tools": [{"name": "a b"}]}"#,
                "tools[0]: ",
            ),
            (
                r#"{"messages": [{"role": "user", "text": "?"}], "tools": [{"name": "a", "parameters": 1}]}"#,
                "parameters",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.exit as u8, 2, "{text}");
            assert!(
                error.cause.as_ref().unwrap().contains(words),
                "{text}: {error:?}"
            );
        }
    }

    #[test]
    fn tools_need_a_name_and_nothing_else() {
        let request = read(
            r#"{"messages": [{"role": "user", "text": "?"}], "tools": [{"name": "Get-Weather.v2", "parameters": null}]}"#,
        )
        .unwrap();
        assert_eq!(request.tools[0].name.as_str(), "Get-Weather.v2");
        assert_eq!(
            request.tools[0].parameters,
            json!({"type": "object", "properties": {}})
        );
    }
}
