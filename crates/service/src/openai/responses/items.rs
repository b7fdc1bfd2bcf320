//! The input of a request: a string, or a list of items, which is converted to messages.

use adjutant_core::{Notice, UserId};
use adjutant_runtime::Agent;
use serde::Deserialize;
use serde_json::Value;

use super::id::ResponseId;
use super::request::ResponseInput;
use super::stored::{self, StoredResponse};
use crate::openai::error::invalid;
use crate::openai::message::{
    CallMade, ChatMessage, FunctionCalled, MessageContent, Messages, Role,
};
use crate::problem::Problem;

/// Member of the request with the input.
pub(super) const INPUT: &str = "input";

/// An item, as clients send it. The used members depend on the type.
#[derive(Debug, Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<Role>,
    content: Option<Value>,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<Value>,
}

/// Messages while items are converted.
struct MessageBuilder {
    messages: Messages,
    /// Adjacent calls, and results of the client's tools. Together they make one group: the calls
    /// of one answer, then the results.
    calls: Vec<CallMade>,
    results: Vec<(String, ChatMessage)>,
    /// Path of the first call. `None`: the calls are those of the previous response.
    place: Option<String>,
    /// Types of items that are ignored.
    left_out: Vec<String>,
}

/// A response whose items are referenced by their ids.
struct Referenced {
    response: StoredResponse,
    /// True if its text is among the messages.
    is_included: bool,
}

/// Parses the input. `previous`: the response that the request continues.
pub(super) async fn parse(
    agent: &Agent,
    user: &UserId,
    input: ResponseInput,
    previous: Option<&StoredResponse>,
) -> Result<(Messages, Vec<Notice>), Problem> {
    let messages = Messages {
        member: INPUT,
        ..Messages::default()
    };
    // The client may send results for the previous response without repeating its calls.
    let calls = previous.map(StoredResponse::calls).unwrap_or_default();
    let mut builder = MessageBuilder {
        messages,
        calls,
        results: Vec::new(),
        place: None,
        left_out: Vec::new(),
    };
    let items = match input {
        ResponseInput::Text(text) => {
            let message = ChatMessage::new(Role::User, MessageContent::Text(text));
            builder.messages.push(INPUT.to_owned(), message);
            return Ok((builder.messages, Vec::new()));
        }
        ResponseInput::Items(items) => items,
    };
    let mut known: Vec<Referenced> = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let place = format!("{INPUT}[{at}]");
        let item: Item = serde_path_to_error::deserialize(item).map_err(|error| {
            invalid(
                join_path(&place, &error.path().to_string()),
                error.inner().to_string(),
            )
        })?;
        match item.kind.as_deref() {
            Some("item_reference") => {
                let id = item.id.unwrap_or_default();
                add_reference(agent, user, &mut known, &mut builder, place, &id).await?;
            }
            _ => builder.add(place, item)?,
        }
    }
    Ok(builder.finish())
}

impl MessageBuilder {
    fn add(&mut self, place: String, item: Item) -> Result<(), Problem> {
        let lacks = |member: &str| {
            invalid(
                format!("{place}.{member}"),
                format!("this item needs the member {member}"),
            )
        };
        match item.kind.as_deref().unwrap_or("message") {
            "message" => {
                let role = item.role.ok_or_else(|| lacks("role"))?;
                if matches!(role, Role::Tool | Role::Function) {
                    return Err(invalid(
                        format!("{place}.role"),
                        "results come as function_call_output",
                    ));
                }
                let content = parse_content(&format!("{place}.content"), item.content)?;
                self.add_message(place, ChatMessage::new(role, content));
            }
            "function_call" => {
                let name = item.name.ok_or_else(|| lacks("name"))?;
                let id = item.call_id.ok_or_else(|| lacks("call_id"))?;
                let function = FunctionCalled {
                    name,
                    arguments: item.arguments,
                };
                self.add_call(
                    place,
                    CallMade {
                        id: Some(id),
                        function: Some(function),
                    },
                );
            }
            "function_call_output" => {
                let id = item.call_id.ok_or_else(|| lacks("call_id"))?;
                let output = parse_content(&format!("{place}.output"), item.output)?;
                let result = ChatMessage::from_result(id, output);
                if let Some((piece, kind)) = result.first_non_text() {
                    let detail = format!("results are read as text only, and this is {kind}");
                    return Err(invalid(format!("{place}.output[{piece}]"), detail));
                }
                self.results.push((place, result));
            }
            // Thinking is not part of the dialogue.
            "reasoning" => {}
            // Calls of tools that other services execute.
            kind if kind.ends_with("_call") || kind.ends_with("_call_output") => {
                self.left_out.push(kind.to_owned());
            }
            kind => {
                let detail = format!("an item of the type {kind} cannot be used here");
                return Err(invalid(format!("{place}.type"), detail));
            }
        }
        Ok(())
    }

    fn add_message(&mut self, place: String, message: ChatMessage) {
        self.flush();
        self.messages.push(place, message);
    }

    fn add_call(&mut self, place: String, call: CallMade) {
        self.place.get_or_insert(place);
        self.calls.push(call);
    }

    /// Ends a group of calls and results. Calls of the previous response are left out if the client
    /// sent no results.
    fn flush(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let results = std::mem::take(&mut self.results);
        let place = self.place.take();
        if !calls.is_empty() && (place.is_some() || !results.is_empty()) {
            self.messages.push(
                place.unwrap_or_else(|| INPUT.to_owned()),
                ChatMessage::from_calls(calls),
            );
        }
        for (place, result) in results {
            self.messages.push(place, result);
        }
    }

    fn finish(mut self) -> (Messages, Vec<Notice>) {
        self.flush();
        self.left_out.sort_unstable();
        self.left_out.dedup();
        let notices = match self.left_out.as_slice() {
            [] => Vec::new(),
            kinds => vec![Notice::not_sent(format!(
                "Items were left out: {}.",
                kinds.join(", ")
            ))],
        };
        (self.messages, notices)
    }
}

/// Adds an item that the client references by its id.
async fn add_reference(
    agent: &Agent,
    user: &UserId,
    known: &mut Vec<Referenced>,
    builder: &mut MessageBuilder,
    place: String,
    id: &str,
) -> Result<(), Problem> {
    let unknown = || invalid(format!("{place}.id"), format!("there is no item {id}"));
    let (kind, response, rest) = ResponseId::parse_item(id).ok_or_else(unknown)?;
    // Thinking is not part of the dialogue.
    if kind == "rs" {
        return Ok(());
    }
    // A response is loaded once, however many of its items are referenced.
    if !known.iter().any(|known| known.response.id == response) {
        let response = stored::find(agent, user, response)
            .await?
            .ok_or_else(unknown)?;
        known.push(Referenced {
            response,
            is_included: false,
        });
    }
    let referenced = known
        .iter_mut()
        .find(|known| known.response.id == response)
        .ok_or_else(unknown)?;
    match kind {
        // A response has one text, in however many items.
        "msg" if referenced.is_included => {}
        "msg" => {
            referenced.is_included = true;
            let text = MessageContent::Text(referenced.response.text.clone());
            builder.add_message(place, ChatMessage::new(Role::Assistant, text));
        }
        "fc" => {
            let is_meant = |call: &CallMade| call.id.as_deref() == Some(rest);
            let call = referenced
                .response
                .calls()
                .into_iter()
                .find(is_meant)
                .ok_or_else(unknown)?;
            builder.add_call(place, call);
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Parses a content: a string or a list of parts.
fn parse_content(place: &str, content: Option<Value>) -> Result<MessageContent, Problem> {
    let content = content.unwrap_or_default();
    // The error of an untagged enum only states that no variant matched.
    serde_json::from_value(content).map_err(|_| {
        invalid(
            place,
            "this has to be a string, or a list of pieces with their types",
        )
    })
}

fn join_path(place: &str, path: &str) -> String {
    if path == "." {
        place.to_owned()
    } else {
        format!("{place}.{path}")
    }
}
