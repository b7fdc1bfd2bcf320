//! The input of a request: a string, or items, which become messages.

use adjutant_core::{Notice, UserId};
use adjutant_runtime::Agent;
use serde::Deserialize;
use serde_json::Value;

use super::id::ResponseId;
use super::kept::{self, Kept};
use super::request::ResponseInput;
use crate::openai::error::invalid;
use crate::openai::message::{
    CallMade, ChatMessage, FunctionCalled, MessageContent, Messages, Role,
};
use crate::problem::Problem;

/// The member of a request that holds them.
pub(super) const INPUT: &str = "input";

/// An item, as clients send it. Which members there are depends on the type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
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

/// Messages as they are put together.
struct Reading {
    messages: Messages,
    /// Calls that stand together, and the results of calls of the client's: the calls come first,
    /// as one answer makes them.
    calls: Vec<CallMade>,
    results: Vec<(String, ChatMessage)>,
    /// The place of the first of the calls. `None`: the calls are those of the response that the
    /// request names.
    place: Option<String>,
    /// Types of items that are not used.
    left_out: Vec<String>,
}

/// A response whose items the client names by their ids.
struct Referred {
    kept: Kept,
    /// True if its words are among the messages.
    is_said: bool,
}

/// Reads the input. `previous`: the response that it goes on from, if the request names one.
pub(super) async fn read(
    agent: &Agent,
    user: &UserId,
    input: ResponseInput,
    previous: Option<&Kept>,
) -> Result<(Messages, Vec<Notice>), Problem> {
    let messages = Messages {
        member: INPUT,
        ..Messages::default()
    };
    // Results of what the named response asked for are among the items, if the client brings them.
    let calls = previous.map(Kept::calls).unwrap_or_default();
    let mut reading = Reading {
        messages,
        calls,
        results: Vec::new(),
        place: None,
        left_out: Vec::new(),
    };
    let items = match input {
        ResponseInput::Words(words) => {
            let message = ChatMessage::saying(Role::User, MessageContent::Words(words));
            reading.messages.push(INPUT.to_owned(), message);
            return Ok((reading.messages, Vec::new()));
        }
        ResponseInput::Items(items) => items,
    };
    let mut known: Vec<Referred> = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let place = format!("{INPUT}[{at}]");
        let item: Item = serde_path_to_error::deserialize(item).map_err(|error| {
            invalid(
                inside(&place, &error.path().to_string()),
                error.inner().to_string(),
            )
        })?;
        match item.kind.as_deref() {
            Some("item_reference") => {
                let id = item.id.unwrap_or_default();
                refer(agent, user, &mut known, &mut reading, (place, &id)).await?;
            }
            _ => reading.add(place, item)?,
        }
    }
    Ok(reading.finish())
}

impl Reading {
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
                let content = content(&format!("{place}.content"), item.content)?;
                self.say(place, ChatMessage::saying(role, content));
            }
            "function_call" => {
                let name = item.name.ok_or_else(|| lacks("name"))?;
                let id = item.call_id.ok_or_else(|| lacks("call_id"))?;
                let function = FunctionCalled {
                    name,
                    arguments: item.arguments,
                };
                self.call(
                    place,
                    CallMade {
                        id: Some(id),
                        function: Some(function),
                    },
                );
            }
            "function_call_output" => {
                let id = item.call_id.ok_or_else(|| lacks("call_id"))?;
                let output = content(&format!("{place}.output"), item.output)?;
                let result = ChatMessage::answering(id, output);
                if let Some((piece, kind)) = result.not_words() {
                    let detail = format!("results are read as text only, and this is {kind}");
                    return Err(invalid(format!("{place}.output[{piece}]"), detail));
                }
                self.results.push((place, result));
            }
            // What a model thought is no part of what was said.
            "reasoning" => {}
            // Calls of tools that ran somewhere else.
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

    fn say(&mut self, place: String, message: ChatMessage) {
        self.flush();
        self.messages.push(place, message);
    }

    fn call(&mut self, place: String, call: CallMade) {
        self.place.get_or_insert(place);
        self.calls.push(call);
    }

    /// Ends a group of calls and results. Calls of the named response that have no result here are
    /// not what the client says.
    fn flush(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let results = std::mem::take(&mut self.results);
        let place = self.place.take();
        if !calls.is_empty() && (place.is_some() || !results.is_empty()) {
            self.messages.push(
                place.unwrap_or_else(|| INPUT.to_owned()),
                ChatMessage::calling(calls),
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

/// Adds an item that the client names by its id.
async fn refer(
    agent: &Agent,
    user: &UserId,
    known: &mut Vec<Referred>,
    reading: &mut Reading,
    (place, id): (String, &str),
) -> Result<(), Problem> {
    let unknown = || invalid(format!("{place}.id"), format!("there is no item {id}"));
    let (kind, response, rest) = ResponseId::of_item(id).ok_or_else(unknown)?;
    if kind == "rs" {
        return Ok(());
    }
    if !known.iter().any(|referred| referred.kept.id == response) {
        let kept = kept::find(agent, user, response)
            .await?
            .ok_or_else(unknown)?;
        known.push(Referred {
            kept,
            is_said: false,
        });
    }
    let referred = known
        .iter_mut()
        .find(|referred| referred.kept.id == response)
        .ok_or_else(unknown)?;
    match kind {
        // What a response says is one message, of however many items.
        "msg" if referred.is_said => {}
        "msg" => {
            referred.is_said = true;
            let words = MessageContent::Words(referred.kept.said.clone());
            reading.say(place, ChatMessage::saying(Role::Assistant, words));
        }
        "fc" => {
            let is_meant = |call: &CallMade| call.id.as_deref() == Some(rest);
            let call = referred
                .kept
                .calls()
                .into_iter()
                .find(is_meant)
                .ok_or_else(unknown)?;
            reading.call(place, call);
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Reads words, or pieces of words.
fn content(place: &str, content: Option<Value>) -> Result<MessageContent, Problem> {
    let content = content.unwrap_or_default();
    serde_json::from_value(content).map_err(|_| {
        invalid(
            place,
            "this has to be a string, or a list of pieces with their types",
        )
    })
}

fn inside(place: &str, path: &str) -> String {
    if path == "." {
        place.to_owned()
    } else {
        format!("{place}.{path}")
    }
}
