//! Every recorded request, as far as it is words, calls and results: said again through our
//! vocabulary, it says the same and fits the vendor's published schema.

use std::path::Path;

use adjutant_core::{
    Content, GenerateRequest, LanguageModel, Message, Part, ProviderState, ToolCall, ToolResult,
    check_pairing,
};
use adjutant_providers::{Connection, Provider, Transport};
use serde_json::{Map, Value, json};

use crate::cassette::{self, Exchange, test_name};
use crate::recordings::{Schemas, tools};
use crate::server::{Answer, Server};

/// A vendor's form of a transcript.
struct Form {
    folder: &'static str,
    provider: &'static str,
    schemas: &'static [&'static str],
    /// `None`: there is more in it than words, calls and results.
    read: fn(&Value, &mut Transcript) -> Option<()>,
}

/// The content of a request, without a vendor's form.
#[derive(Debug, Clone, Default, PartialEq)]
struct Transcript {
    turns: Vec<Turn>,
    /// The vendor's ids, or the names where there are none, of calls without a result.
    open: Vec<(String, usize)>,
    calls: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Turn {
    System(String),
    User(String),
    Assistant(String),
    Call {
        id: Option<String>,
        name: String,
        arguments: Map<String, Value>,
        signature: Option<String>,
    },
    /// The result of the call of that number.
    Result {
        call: usize,
        content: Value,
    },
}

impl Transcript {
    fn of(form: &Form, request: &Value) -> Option<Self> {
        let mut transcript = Self::default();
        (form.read)(request, &mut transcript)?;
        Some(transcript)
    }

    fn call(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: &Value,
        signature: Option<&str>,
    ) -> Option<()> {
        let arguments = match arguments {
            Value::Null => Map::new(),
            Value::Object(arguments) => arguments.clone(),
            Value::String(text) => serde_json::from_str(text).ok()?,
            _ => return None,
        };
        self.open.push((id.unwrap_or(name).to_owned(), self.calls));
        self.calls += 1;
        let (id, signature) = (id.map(str::to_owned), signature.map(str::to_owned));
        self.turns.push(Turn::Call {
            id,
            name: name.to_owned(),
            arguments,
            signature,
        });
        Some(())
    }

    fn result(&mut self, id_or_name: &str, content: &Value) -> Option<()> {
        let at = self.open.iter().position(|(open, _)| open == id_or_name)?;
        let call = self.open.remove(at).1;
        // Vendors that take text are given JSON as text.
        let content = match content {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| content.clone()),
            other => other.clone(),
        };
        self.turns.push(Turn::Result { call, content });
        Some(())
    }

    /// Text in one piece or in several, at once or in blocks.
    #[cfg(any(feature = "anthropic", feature = "ollama", feature = "openai"))]
    fn text(&mut self, content: &Value, turn: fn(String) -> Turn) -> Option<()> {
        match content {
            Value::Null => {}
            Value::String(text) => self.turns.push(turn(text.clone())),
            Value::Array(blocks) => {
                for block in blocks {
                    let is_text = matches!(
                        block["type"].as_str()?,
                        "text" | "input_text" | "output_text"
                    );
                    self.turns
                        .push(turn(block["text"].as_str().filter(|_| is_text)?.to_owned()));
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// In our vocabulary. `None` for what no vendor takes: blank turns, calls without results.
    fn messages(
        &self,
        provider: &Provider,
        model: &adjutant_core::ModelId,
    ) -> Option<Vec<Message>> {
        let mut messages = Vec::new();
        let mut calls = Vec::new();
        let mut said = Vec::new();
        for turn in self.turns.iter().map(Some).chain([None]) {
            match turn {
                Some(Turn::Assistant(text)) => {
                    said.push(Part::ours(Content::Text { text: text.clone() }));
                    continue;
                }
                Some(Turn::Call {
                    id,
                    name,
                    arguments,
                    signature,
                }) => {
                    let call = ToolCall::from_object(
                        calls.len(),
                        id.clone(),
                        name.clone(),
                        arguments.clone(),
                    );
                    let data = match (signature, provider.call_state) {
                        (Some(signature), Some(state)) => state(signature),
                        _ => json!({}),
                    };
                    calls.push((call.id.clone(), name.clone()));
                    let state = ProviderState {
                        origin: model.clone(),
                        data,
                    };
                    said.push(Part::from_provider(Content::ToolCall(call), Some(state)));
                    continue;
                }
                _ if !said.is_empty() => {
                    messages.push(Message::assistant(std::mem::take(&mut said)).ok()?)
                }
                _ => {}
            }
            messages.extend(match turn {
                Some(Turn::System(text)) => Some(Message::system(text.as_str()).ok()?),
                Some(Turn::User(text)) => Some(Message::user(text.as_str()).ok()?),
                Some(Turn::Result { call, content }) => {
                    let (id, name) = calls[*call].clone();
                    Some(Message::tool(id, name, ToolResult::verbatim(content.clone())).ok()?)
                }
                _ => None,
            });
        }
        check_pairing(&messages).ok()?;
        Some(messages)
    }

    /// The same without what differs between two ways to say it: the instruction is first, text is
    /// in one piece.
    fn compact(mut self) -> Vec<Turn> {
        self.turns
            .sort_by_key(|turn| !matches!(turn, Turn::System(_)));
        let mut turns: Vec<Turn> = Vec::new();
        for turn in self.turns {
            match (turns.last_mut(), turn) {
                (Some(Turn::System(text)), Turn::System(more))
                | (Some(Turn::User(text)), Turn::User(more))
                | (Some(Turn::Assistant(text)), Turn::Assistant(more)) => text.push_str(&more),
                (_, turn) => turns.push(turn),
            }
        }
        for turn in &mut turns {
            if let Turn::System(text) | Turn::User(text) | Turn::Assistant(text) = turn {
                text.retain(|c| !c.is_whitespace());
            }
        }
        turns.retain(|turn| !matches!(turn, Turn::Assistant(text) if text.is_empty()));
        turns
    }
}

async fn rebuild_all(test: &str, form: Form) {
    let external = cassette::external(test);
    let schemas = external
        .as_ref()
        .map(|folder| Schemas::load(folder, form.schemas, "request"));
    for folder in [Some(cassette::own()), external].into_iter().flatten() {
        rebuild_set(&folder, &form, schemas.as_ref()).await;
    }
}

async fn rebuild_set(folder: &Path, form: &Form, schemas: Option<&Schemas>) {
    let transport = Transport::new().unwrap();
    let (mut rebuilt, mut wrong) = (0, Vec::new());
    let exchanges = cassette::exchanges(folder, form.folder);
    for exchange in exchanges.iter().filter(|exchange| exchange.status == 200) {
        let Some(recorded) = Transcript::of(form, &exchange.request) else {
            continue;
        };
        let Some(sent) = sent(form, exchange, &recorded, &transport).await else {
            continue;
        };
        rebuilt += 1;
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => {
                wrong.push(format!("{}: not sent: {error}", exchange.name));
                continue;
            }
        };
        let misfit = schemas.and_then(|schemas| schemas.misfit(&sent));
        wrong.extend(misfit.map(|misfit| format!("{}: {misfit}", exchange.name)));
        let (ours, theirs) = (
            Transcript::of(form, &sent).map(Transcript::compact),
            recorded.compact(),
        );
        if ours.as_ref() != Some(&theirs) {
            wrong.push(format!(
                "{}: says\n  {ours:?}, not\n  {theirs:?}",
                exchange.name
            ));
        }
    }
    println!(
        "{rebuilt} of {} requests of {}",
        exchanges.len(),
        form.folder
    );
    assert!(rebuilt > 0);
    assert!(
        wrong.is_empty(),
        "{} of {rebuilt}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The body we make of it; `None` if our vocabulary has no word for it.
async fn sent(
    form: &Form,
    exchange: &Exchange,
    recorded: &Transcript,
    transport: &Transport,
) -> Option<Result<Value, String>> {
    let server = Server::start(vec![Answer::reset()]).await;
    let connection = Connection {
        base_url: Some(server.url.clone()),
        retries: 0,
        ..Connection::new(transport.clone()).with_key("key".to_owned().into())
    };
    let provider = Provider::find(form.provider).unwrap();
    let model = provider
        .model(exchange.model.as_deref()?, connection)
        .unwrap();
    let mut request = GenerateRequest::new(recorded.messages(provider, model.id())?);
    request.tools = tools(&exchange.request).into();
    request.config.verbatim = true;
    let failure = model.generate(&request).await.unwrap_err();
    let asked = server.received();
    let Some(asked) = asked.first() else {
        return Some(Err(failure.to_string()));
    };
    Some(Ok(asked.json()))
}

#[cfg(feature = "gemini")]
fn gemini(request: &Value, transcript: &mut Transcript) -> Option<()> {
    let either =
        |value: &Value, camel: &str, snake: &str| value.get(camel).or(value.get(snake)).cloned();
    for part in request["systemInstruction"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        transcript
            .turns
            .push(Turn::System(part["text"].as_str()?.to_owned()));
    }
    for content in request["contents"].as_array()? {
        for part in content["parts"].as_array()? {
            if part["thought"] == true {
                continue;
            }
            let signature = either(part, "thoughtSignature", "thought_signature");
            if let Some(call) = either(part, "functionCall", "function_call") {
                let signature = signature.as_ref().and_then(Value::as_str);
                transcript.call(
                    call["id"].as_str(),
                    call["name"].as_str()?,
                    &call["args"],
                    signature,
                )?;
            } else if let Some(result) = either(part, "functionResponse", "function_response") {
                let id = result["id"].as_str().or(result["name"].as_str())?;
                transcript.result(id, &result["response"])?;
            } else {
                let text = part["text"].as_str()?.to_owned();
                let is_model = content["role"] == "model";
                transcript.turns.push(if is_model {
                    Turn::Assistant(text)
                } else {
                    Turn::User(text)
                });
            }
        }
    }
    Some(())
}

/// OpenAI's chat, and Ollama's, whose results may only say the tool's name.
#[cfg(any(feature = "ollama", feature = "openai"))]
fn chat(request: &Value, transcript: &mut Transcript) -> Option<()> {
    for message in request["messages"].as_array()? {
        if message
            .get("images")
            .is_some_and(|images| !images.is_null())
        {
            return None;
        }
        match message["role"].as_str()? {
            "system" | "developer" => transcript.text(&message["content"], Turn::System)?,
            "user" => transcript.text(&message["content"], Turn::User)?,
            "assistant" => {
                transcript.text(&message["content"], Turn::Assistant)?;
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    transcript.call(
                        call["id"].as_str(),
                        function["name"].as_str()?,
                        &function["arguments"],
                        None,
                    )?;
                }
            }
            "tool" => {
                let id = ["tool_call_id", "tool_name", "name"]
                    .iter()
                    .find_map(|name| message[*name].as_str());
                let open = transcript.open.first().map(|(open, _)| open.clone());
                transcript.result(&id.map(str::to_owned).or(open)?, &message["content"])?;
            }
            _ => return None,
        }
    }
    Some(())
}

#[cfg(feature = "openai")]
fn responses(request: &Value, transcript: &mut Transcript) -> Option<()> {
    transcript.text(&request["instructions"], Turn::System)?;
    if request
        .get("previous_response_id")
        .is_some_and(Value::is_string)
    {
        return None;
    }
    let input = match &request["input"] {
        Value::String(text) => return transcript.text(&json!(text), Turn::User),
        input => input.as_array()?,
    };
    for item in input {
        match (
            item["type"].as_str().unwrap_or("message"),
            item["role"].as_str(),
        ) {
            ("message", Some("system" | "developer")) => {
                transcript.text(&item["content"], Turn::System)?
            }
            ("message", Some("user")) => transcript.text(&item["content"], Turn::User)?,
            ("message", Some("assistant")) => transcript.text(&item["content"], Turn::Assistant)?,
            ("function_call", _) => {
                transcript.call(
                    item["call_id"].as_str(),
                    item["name"].as_str()?,
                    &item["arguments"],
                    None,
                )?;
            }
            ("function_call_output", _) => {
                transcript.result(item["call_id"].as_str()?, &item["output"])?
            }
            _ => return None,
        }
    }
    Some(())
}

#[cfg(feature = "anthropic")]
fn anthropic(request: &Value, transcript: &mut Transcript) -> Option<()> {
    transcript.text(&request["system"], Turn::System)?;
    for message in request["messages"].as_array()? {
        let turn = if message["role"] == "assistant" {
            Turn::Assistant
        } else {
            Turn::User
        };
        let Some(blocks) = message["content"].as_array() else {
            transcript.text(&message["content"], turn)?;
            continue;
        };
        for block in blocks {
            match block["type"].as_str()? {
                "tool_use" => {
                    transcript.call(
                        block["id"].as_str(),
                        block["name"].as_str()?,
                        &block["input"],
                        None,
                    )?;
                }
                "tool_result" => {
                    let content = match block["content"].as_array().map(Vec::as_slice) {
                        Some([block]) => block.get("text")?,
                        Some(_) => return None,
                        None => &block["content"],
                    };
                    transcript.result(block["tool_use_id"].as_str()?, content)?;
                }
                _ => transcript.text(&json!([block]), turn)?,
            }
        }
    }
    Some(())
}

#[cfg(feature = "gemini")]
#[tokio::test]
async fn gemini_requests_are_said_again() {
    let schemas = &["gemini.generateContent"];
    rebuild_all(
        &test_name!(),
        Form {
            folder: "gemini",
            provider: "gemini",
            schemas,
            read: gemini,
        },
    )
    .await;
}

#[cfg(feature = "openai")]
#[tokio::test]
async fn chat_requests_are_said_again() {
    let schemas = &["openai_chat"];
    rebuild_all(
        &test_name!(),
        Form {
            folder: "openai_chat",
            provider: "openai-chat",
            schemas,
            read: chat,
        },
    )
    .await;
}

#[cfg(feature = "openai")]
#[tokio::test]
async fn responses_requests_are_said_again() {
    let schemas = &["openai_responses"];
    rebuild_all(
        &test_name!(),
        Form {
            folder: "openai_responses",
            provider: "openai",
            schemas,
            read: responses,
        },
    )
    .await;
}

#[cfg(feature = "anthropic")]
#[tokio::test]
async fn anthropic_requests_are_said_again() {
    let schemas = &["anthropic.messages", "anthropic.messages.beta"];
    rebuild_all(
        &test_name!(),
        Form {
            folder: "anthropic",
            provider: "anthropic",
            schemas,
            read: anthropic,
        },
    )
    .await;
}

#[cfg(feature = "ollama")]
#[tokio::test]
async fn ollama_requests_are_said_again() {
    let schemas = &["ollama.chat"];
    rebuild_all(
        &test_name!(),
        Form {
            folder: "ollama",
            provider: "ollama",
            schemas,
            read: chat,
        },
    )
    .await;
}
