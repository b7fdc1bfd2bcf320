//! Streams whose texts and arguments are cut into other pieces, down to single characters, and
//! whose bytes are cut anywhere: the answer stays the same.

use adjutant_core::{Content, FinishReason, GenerateResponse};
use adjutant_providers::{Connection, HttpModel, Provider, Transport};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::cassette::{self, Exchange, Framing, test_name};
use crate::recordings::{Recordings, ask_for_stream};
use crate::server::{Answer, Server};
use crate::size;
use crate::wire::Form;
use crate::wire::anthropic::Anthropic;
use crate::wire::gemini::Gemini;
use crate::wire::ollama::Ollama;
use crate::wire::openai_chat::OpenAiChat;
use crate::wire::openai_responses::OpenAiResponses;
use crate::wire::said::{Call, Said};

/// The size and the style of pieces.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Characters of a piece.
    chars: usize,
    /// True if each piece of a call repeats its id and name, as some servers do.
    repeats: bool,
}

impl Cut {
    /// Cuts an event into several that mean the same.
    fn event(self, event: &Value) -> Vec<Value> {
        if event["choices"].is_array() {
            return self.chunk(event);
        }
        if event["candidates"].is_array() {
            return self.candidate(event);
        }
        if event["message"].is_object() && event.get("done").is_some() {
            return self.line(event);
        }
        let is_delta = event["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("delta"));
        let fields = [
            "/delta",
            "/delta/text",
            "/delta/thinking",
            "/delta/partial_json",
        ];
        let text = fields
            .into_iter()
            .find(|field| is_delta && event.pointer(field).is_some_and(Value::is_string));
        match text {
            Some(field) => self.copies(event, field),
            None => vec![event.clone()],
        }
    }

    /// Copies of a value, each with a piece of the text at this place.
    fn copies(self, value: &Value, place: &str) -> Vec<Value> {
        let text = value.pointer(place).and_then(Value::as_str).unwrap();
        let chars: Vec<char> = text.chars().collect();
        if chars.is_empty() {
            return vec![value.clone()];
        }
        let copy = |piece: &[char]| {
            let mut copy = value.clone();
            *copy.pointer_mut(place).unwrap() = piece.iter().collect::<String>().into();
            copy
        };
        chars.chunks(self.chars).map(copy).collect()
    }

    /// A chunk of Chat Completions.
    fn chunk(self, event: &Value) -> Vec<Value> {
        let Some(Value::Object(mut rest)) = event.pointer("/choices/0/delta").cloned() else {
            return vec![event.clone()];
        };
        let mut deltas = Vec::new();
        let thoughts = ["reasoning_content", "reasoning", "reasoning_details"];
        let is_set = |name: &&str| rest.get(*name).is_some_and(|value| !value.is_null());
        // The same thinking in several fields is one text.
        let thought = match thoughts.into_iter().filter(is_set).count() {
            1 => ["reasoning_content", "reasoning"].into_iter().find(is_set),
            _ => None,
        };
        for field in thought.into_iter().chain(["content"]) {
            if rest.get(field).is_some_and(Value::is_string) {
                let text = json!({ field: rest.shift_remove(field) });
                deltas.extend(self.copies(&text, &format!("/{field}")));
            }
        }
        for call in rest
            .shift_remove("tool_calls")
            .iter()
            .flat_map(Value::as_array)
            .flatten()
        {
            let pieces = if call
                .pointer("/function/arguments")
                .is_some_and(Value::is_string)
            {
                self.call(call)
            } else {
                vec![call.clone()]
            };
            deltas.extend(
                pieces
                    .into_iter()
                    .map(|call| json!({ "tool_calls": [call] })),
            );
        }
        deltas.insert(0, Value::Object(rest));
        ends_last(
            event,
            "/choices/0/delta",
            deltas,
            &["finish_reason"],
            &["usage"],
        )
    }

    /// A call, or a fragment of one, in a chunk of Chat Completions.
    fn call(self, call: &Value) -> Vec<Value> {
        let mut pieces = self.copies(call, "/function/arguments");
        if self.repeats {
            return pieces;
        }
        for piece in &mut pieces[1..] {
            let arguments = &piece["function"]["arguments"];
            let mut bare = json!({ "function": { "arguments": arguments } });
            if let Some(index) = call.get("index") {
                bare["index"] = index.clone();
            }
            *piece = bare;
        }
        pieces
    }

    /// An event of Gemini.
    fn candidate(self, event: &Value) -> Vec<Value> {
        let parts = event
            .pointer("/candidates/0/content/parts")
            .and_then(Value::as_array);
        let Some(parts) = parts else {
            return vec![event.clone()];
        };
        let mut pieces = Vec::new();
        for part in parts {
            if !part["text"].is_string() {
                pieces.push(json!([part]));
                continue;
            }
            let mut texts = self.copies(part, "/text");
            // What is signed is the end of a text.
            let last = texts.len() - 1;
            for text in &mut texts[..last] {
                text.as_object_mut()
                    .unwrap()
                    .shift_remove("thoughtSignature");
            }
            pieces.extend(texts.into_iter().map(|text| json!([text])));
        }
        ends_last(
            event,
            "/candidates/0/content/parts",
            pieces,
            &["finishReason", "finishMessage"],
            &["usageMetadata"],
        )
    }

    /// A line of Ollama.
    fn line(self, event: &Value) -> Vec<Value> {
        let mut messages = Vec::new();
        let mut rest = event["message"].as_object().unwrap().clone();
        for field in ["thinking", "content"] {
            if rest.get(field).is_some_and(Value::is_string) {
                let text = json!({ field: rest.shift_remove(field) });
                messages.extend(self.copies(&text, &format!("/{field}")));
            }
        }
        messages.push(Value::Object(rest));
        let mut lines = ends_last(event, "/message", messages, &[], &["done", "done_reason"]);
        let last = lines.len() - 1;
        for line in &mut lines[..last] {
            line["done"] = false.into();
        }
        lines
    }
}

/// Copies of an event with these values at a place, of which only the last has the fields that end
/// an answer: in the object around the place, and in the event.
fn ends_last(
    event: &Value,
    place: &str,
    values: Vec<Value>,
    ends_inside: &[&str],
    ends: &[&str],
) -> Vec<Value> {
    if values.is_empty() {
        return vec![event.clone()];
    }
    let last = values.len() - 1;
    let remove = |from: &mut Value, fields: &[&str]| {
        let from = from.as_object_mut().unwrap();
        fields
            .iter()
            .for_each(|field| drop(from.shift_remove(*field)));
    };
    let around = place.split('/').take(3).collect::<Vec<_>>().join("/");
    let copies = values.into_iter().enumerate().map(|(at, value)| {
        let mut copy = event.clone();
        *copy.pointer_mut(place).unwrap() = value;
        if at < last {
            remove(&mut copy, ends);
            if !ends_inside.is_empty() {
                remove(copy.pointer_mut(&around).unwrap(), ends_inside);
            }
        }
        copy
    });
    copies.collect()
}

/// The content of an answer, whatever parts it has.
#[derive(Debug, PartialEq)]
struct Understood {
    text: String,
    thinking: String,
    refusal: String,
    /// The name of each call, and its arguments: the object, or the text if that is malformed.
    calls: Vec<(String, Value)>,
    finish: FinishReason,
    output: Option<u64>,
}

impl From<GenerateResponse> for Understood {
    fn from(response: GenerateResponse) -> Self {
        let joined = |select: fn(&Content) -> Option<&str>| {
            let parts = response.parts.iter();
            parts.filter_map(|part| select(&part.content)).collect()
        };
        let calls = response.tool_calls().map(|call| {
            let arguments = match &call.malformed {
                Some(malformed) => json!(malformed.text),
                None => json!(call.arguments),
            };
            (call.name.clone(), arguments)
        });
        Self {
            text: response.text(),
            thinking: joined(|content| match content {
                Content::Thinking { text } => Some(text),
                _ => None,
            }),
            refusal: joined(|content| match content {
                Content::Refusal { text } => Some(text),
                _ => None,
            }),
            calls: calls.collect(),
            finish: response.finish,
            output: response.usage.output_tokens,
        }
    }
}

const SINGLE: [Cut; 2] = [
    Cut {
        chars: 1,
        repeats: false,
    },
    Cut {
        chars: 1,
        repeats: true,
    },
];

/// Reads every recorded stream, and the same with its texts and arguments in single characters.
async fn cut_recordings(test: &str, vendors: &[&Recordings]) {
    let transport = Transport::new().unwrap();
    let external = cassette::external(test);
    for vendor in vendors {
        let (mut read, mut differ) = (0, Vec::new());
        for folder in [Some(cassette::own()), external.clone()]
            .into_iter()
            .flatten()
        {
            for exchange in cassette::exchanges(&folder, vendor.folder) {
                let bodies: Vec<Vec<u8>> = SINGLE
                    .into_iter()
                    .filter_map(|cut| recut(&exchange, cut))
                    .collect();
                let uncut = Answer::new(200, exchange.body.clone());
                let answers = [
                    vec![uncut],
                    bodies
                        .iter()
                        .map(|body| Answer::new(200, body.clone()))
                        .collect(),
                ]
                .concat();
                let server = Server::start(answers).await;
                let model = vendor.model(&exchange, &server, &transport);
                let Ok(expected) = ask_for_stream(&model, &exchange.name).await else {
                    continue;
                };
                let expected = Understood::from(expected);
                for _ in bodies {
                    read += 1;
                    let cut = ask_for_stream(&model, &exchange.name)
                        .await
                        .map(Understood::from);
                    if cut.as_ref() != Ok(&expected) {
                        differ.push(format!("{}: {cut:?}, not {expected:?}", exchange.name));
                    }
                }
            }
        }
        println!("{read} cut streams of {}", vendor.folder);
        assert!(read > 0, "{}", vendor.folder);
        assert!(
            differ.is_empty(),
            "{} of {read} differ:\n{}",
            differ.len(),
            differ.join("\n")
        );
    }
}

/// The body of a recorded stream with its events cut; `None` if it is no stream of JSON.
fn recut(exchange: &Exchange, cut: Cut) -> Option<Vec<u8>> {
    let prefix = match exchange.framing {
        Framing::Whole => return None,
        Framing::Events => "data:",
        Framing::Lines => "",
    };
    let mut body = String::new();
    for line in str::from_utf8(&exchange.body).unwrap().lines() {
        let Some(data) = line
            .strip_prefix(prefix)
            .map(str::trim)
            .filter(|data| !data.is_empty())
        else {
            // A blank line ends an event, which is done below; other lines are no content.
            continue;
        };
        let events = match serde_json::from_str(data) {
            Ok(event) => cut.event(&event).iter().map(Value::to_string).collect(),
            Err(_) if data == "[DONE]" => vec![data.to_owned()],
            Err(_) => return None,
        };
        body.extend(events.iter().map(|event| format!("{prefix}{event}\n\n")));
    }
    Some(body.into_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_streams_in_single_characters_are_the_same_answers() {
    let vendors = [
        &crate::anthropic::RECORDED,
        &crate::gemini::RECORDED,
        &crate::ollama::RECORDED,
        &crate::openai_chat::RECORDED,
        &crate::openai_chat::COMPATIBLE,
        &crate::openai_chat::OLLAMA,
        &crate::openai_responses::RECORDED,
    ];
    cut_recordings(&test_name!(), &vendors).await;
}

/// Text with what is easily lost or cut: blanks, digits, escapes, characters of several bytes.
fn words() -> impl Strategy<Value = String> {
    let pieces = vec![
        " ", "  ", "\n", "\t", "2", "eggs", "at", "5 pm", "\"", "\\", "{", "}", "[", "{}", "null",
        ",", ":", "ä", "秋", "🦀", "\u{a0}", "<b>", "`", "\r\n",
    ];
    vec(proptest::sample::select(pieces), 0..12).prop_map(|pieces| pieces.concat())
}

/// Arguments as JSON text, in the ways in which models space it.
fn arguments() -> impl Strategy<Value = String> {
    (words(), words(), any::<i32>(), 0..3_u8).prop_map(|(text, item, number, spacing)| {
        let arguments = json!({
            "text": text, "number": number, "list": [item, null, {}], "nested": { "yes": true, "empty": {} }
        });
        match spacing {
            0 => arguments.to_string(),
            1 => format!(" {arguments:#}\n"),
            _ => arguments.to_string().replace("\":", "\" :  "),
        }
    })
}

fn said() -> impl Strategy<Value = Said> {
    (words(), words(), vec(arguments(), 0..3)).prop_map(|(thinking, text, calls)| {
        let calls = calls.into_iter().map(|arguments| Call {
            name: "add_task",
            // The forms of answers have static texts; a test may leak a few.
            arguments: arguments.leak(),
        });
        let said = Said {
            text: text.leak(),
            calls: calls.collect(),
            ..Said::default()
        };
        said.thinking(thinking.leak())
    })
}

/// Checks that any cut of any stream in this form is the answer that it was made from.
fn check_form(provider: &str, form: &dyn Form, shows_thinking: bool) {
    let transport = Transport::new().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config::with_cases(size::cases(256, 40));
    let cuts = (1..5_usize, any::<bool>()).prop_map(|(chars, repeats)| Cut { chars, repeats });
    let bytes = prop_oneof![Just(usize::MAX), 1..9_usize];
    let cases = (said(), cuts, bytes);
    let outcome = TestRunner::new(config).run(&cases, |(said, cut, bytes)| {
        let events = form.events(&said);
        let body: String = events
            .said
            .iter()
            .chain(&events.end)
            .flat_map(|event| match serde_json::from_str(event) {
                Ok(json) => cut.event(&json).iter().map(Value::to_string).collect(),
                Err(_) => vec![event.clone()],
            })
            .map(|event| form.frame(&event))
            .collect();
        let expected = Understood {
            text: said.text.to_owned(),
            thinking: if shows_thinking {
                said.thinking.to_owned()
            } else {
                String::new()
            },
            refusal: String::new(),
            calls: said
                .calls
                .iter()
                .map(|call| (call.name.to_owned(), call.value()))
                .collect(),
            finish: match said.calls.is_empty() {
                true => FinishReason::Stop,
                false => FinishReason::ToolCalls,
            },
            output: Some(said.counts.output),
        };
        let understood = runtime.block_on(async {
            let server = Server::start(vec![Answer::new(200, body).cut(bytes)]).await;
            let model = open(provider, form.model(), &server, &transport);
            ask_for_stream(&model, provider).await
        });
        prop_assert_eq!(understood.map(Understood::from), Ok(expected));
        Ok(())
    });
    outcome.unwrap();
}

fn open(provider: &str, model: &str, server: &Server, transport: &Transport) -> HttpModel {
    let connection = Connection {
        base_url: Some(server.url.clone()),
        retries: 0,
        ..Connection::new(transport.clone()).with_key("key".to_owned().into())
    };
    Provider::find(provider)
        .unwrap()
        .model(model, connection)
        .unwrap()
}

#[test]
fn any_cut_of_a_chat_completions_stream_is_the_same_answer() {
    let form = |thinking| OpenAiChat {
        model: "gpt-5.6",
        thinking,
    };
    check_form("openai-chat", &form(None), false);
    check_form("openai-compatible", &form(Some("reasoning_content")), true);
    check_form("vllm", &form(Some("reasoning")), true);
}

#[test]
fn any_cut_of_a_responses_stream_is_the_same_answer() {
    check_form("openai", &OpenAiResponses, true);
}

#[test]
fn any_cut_of_an_anthropic_stream_is_the_same_answer() {
    check_form("anthropic", &Anthropic, true);
}

#[test]
fn any_cut_of_a_gemini_stream_is_the_same_answer() {
    check_form("gemini", &Gemini, true);
}

#[test]
fn any_cut_of_an_ollama_stream_is_the_same_answer() {
    check_form("ollama", &Ollama, true);
}
