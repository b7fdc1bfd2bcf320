//! Makes the recorded set of this repository, `tests/recorded`, and compares it with what is there:
//! what our adapters send today is byte for byte what was recorded, and the answers are those that
//! `wire` makes today. To record anew:
//!
//! ```text
//! UPDATE_EXPECT=1 cargo test -p adjutant-providers --all-features --test it record::
//! ```
//!
//! Expectations come from the source of an answer, never from what an adapter read.

mod scenarios; // what is said

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use adjutant_core::{Delta, GenerateRequest, GenerateResponse, LanguageModel, Message, ModelError};
use adjutant_providers::{Connection, HttpModel, Provider, Transport};
use expect_test::expect_file;
use futures::StreamExt;
use serde_json::{Map, Value, json};

use crate::cassette::{self, test_name};
use crate::recordings::Schemas;
use crate::server::{Answer, ReceivedRequest, Server};
use crate::wire::Form;
use crate::wire::anthropic::Anthropic;
use crate::wire::gemini::{self, Gemini};
use crate::wire::ollama::Ollama;
use crate::wire::openai_chat::OpenAiChat;
use crate::wire::openai_responses::OpenAiResponses;
use crate::wire::said::{Said, Trouble};
use scenarios::{GO_ON, Reply, Scenario};

/// A vendor of the set.
struct Vendor {
    folder: &'static str,
    /// The name of the provider whose adapter asks.
    provider: &'static str,
    /// The form of the answers.
    form: &'static dyn Form,
    /// The type of a streamed answer.
    stream: &'static str,
    /// Published schemas of a request, of a whole answer, and of what a stream is made of; `None`:
    /// none is published.
    schemas: Option<(&'static [&'static str], &'static str, &'static str)>,
}

const EVENTS: &str = "text/event-stream";

const VENDORS: [Vendor; 6] = [
    Vendor {
        folder: "anthropic",
        provider: "anthropic",
        form: &Anthropic,
        stream: EVENTS,
        schemas: Some((
            &["anthropic.messages", "anthropic.messages.beta"],
            "response",
            "event",
        )),
    },
    Vendor {
        folder: "gemini",
        provider: "gemini",
        form: &Gemini,
        stream: EVENTS,
        schemas: Some((&["gemini.generateContent"], "response", "response")),
    },
    Vendor {
        folder: "ollama",
        provider: "ollama",
        form: &Ollama,
        stream: "application/x-ndjson",
        schemas: Some((&["ollama.chat"], "response", "chunk")),
    },
    Vendor {
        folder: "ollama_compat",
        provider: "openai-compatible",
        form: &OpenAiChat {
            model: "qwen3:4b",
            thinking: Some("reasoning"),
        },
        stream: EVENTS,
        schemas: None,
    },
    Vendor {
        folder: "openai_chat",
        provider: "openai-chat",
        form: &OpenAiChat {
            model: "gpt-4.1",
            thinking: None,
        },
        stream: EVENTS,
        schemas: Some((&["openai_chat"], "response", "chunk")),
    },
    Vendor {
        folder: "openai_responses",
        provider: "openai",
        form: &OpenAiResponses,
        stream: EVENTS,
        schemas: Some((&["openai_responses"], "response", "event")),
    },
];

/// One request and its answer, made.
struct Made {
    asked: ReceivedRequest,
    /// Set if the answer is streamed.
    streamed: bool,
    status: u16,
    retry_after: Option<u64>,
    body: String,
    expected: Map<String, Value>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_recordings_are_what_is_made_today() {
    let schemas = cassette::external(&test_name!());
    let mut files = BTreeMap::new();
    let (mut index, mut expected) = (String::new(), String::new());
    let mut wrong = Vec::new();
    for vendor in &VENDORS {
        let published = schemas
            .as_ref()
            .and_then(|folder| Published::load(vendor, folder));
        for scenario in scenarios::of(vendor.folder) {
            let id = format!("{}/{}.yaml", vendor.folder, scenario.name);
            let mut made = Vec::new();
            for streamed in [false, true] {
                made.extend(record(vendor, &scenario, streamed).await);
            }
            let row = json!({"id": id, "provider": vendor.folder, "n": made.len(), "tags": scenario.tags});
            index += &format!("{row}\n");
            for (at, made) in made.iter().enumerate() {
                let mut row =
                    json!({"id": id, "index": at, "stream": made.streamed, "status": made.status});
                row.as_object_mut().unwrap().extend(made.expected.clone());
                expected += &format!("{row}\n");
            }
            if let Some(published) = &published {
                let misfits = made.iter().flat_map(|made| published.misfits(made));
                wrong.extend(misfits.map(|misfit| format!("{id}: {misfit}")));
            }
            let interactions: Vec<Value> =
                made.iter().map(|made| interaction(vendor, made)).collect();
            let file = serde_yaml_ng::to_string(&json!({ "interactions": interactions })).unwrap();
            files.insert(id, file);
        }
    }
    assert!(
        wrong.is_empty(),
        "against the published schemas:\n{}",
        wrong.join("\n")
    );
    files.insert("index.jsonl".to_owned(), index);
    files.insert("expected.jsonl".to_owned(), expected);
    let folder = cassette::own();
    for (name, text) in &files {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        expect_file![folder.join(name)].assert_eq(text);
    }
    let stale: BTreeSet<String> = recorded_files(&folder)
        .difference(&files.into_keys().collect())
        .cloned()
        .collect();
    assert!(
        stale.is_empty(),
        "delete what no scenario makes any more: {stale:?}"
    );
}

/// The names of the files that are there, but for the one that is for people.
fn recorded_files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&at)).unwrap() {
            let (entry, name) = entry
                .map(|entry| (entry.file_type().unwrap(), at.join(entry.file_name())))
                .unwrap();
            if entry.is_dir() {
                open.push(name);
            } else if name.file_name().unwrap() != "README.md" {
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// Plays a conversation and keeps what was sent and answered.
async fn record(vendor: &Vendor, scenario: &Scenario, streamed: bool) -> Vec<Made> {
    let transport = Transport::new().unwrap();
    let mut request = scenario.request.clone();
    // Somebody else's request, passed on as it is, is the one that asks for a whole answer with
    // every vendor.
    request.config.verbatim = !streamed;
    let mut recorded = Vec::new();
    for reply in &scenario.replies {
        // A failure has one form; it is recorded once.
        if streamed && matches!(reply, Reply::Fails { .. }) {
            continue;
        }
        let (status, retry_after, body) = answer(vendor, reply, streamed);
        let mut answer = Answer::new(status, body.as_str());
        if let Some(seconds) = retry_after {
            answer = answer.header("retry-after", seconds.to_string());
        }
        let server = Server::start(vec![answer]).await;
        let connection = Connection {
            base_url: Some(server.url.clone()),
            retries: 0,
            ..Connection::new(transport.clone()).with_key("recorded-key".to_owned().into())
        };
        let model = Provider::find(vendor.provider)
            .unwrap()
            .model(vendor.form.model(), connection)
            .unwrap();
        let answered = ask(&model, &request, streamed).await;
        let [asked] = <[ReceivedRequest; 1]>::try_from(server.received()).unwrap();
        assert_eq!(asks_for_stream(&asked), streamed, "{}", asked.head);
        let expected = expected(vendor, reply);
        recorded.push(Made {
            asked,
            streamed,
            status,
            retry_after,
            body,
            expected,
        });
        match (reply, answered) {
            (Reply::Says(_), Ok(answered)) => go_on(&mut request, answered),
            (Reply::Says(_), Err(error)) => panic!("{} {}: {error}", vendor.folder, scenario.name),
            (Reply::Blocked | Reply::Fails { .. }, answered) => {
                assert!(answered.is_err(), "{answered:?}")
            }
        }
    }
    recorded
}

/// Status, wait and body.
fn answer(vendor: &Vendor, reply: &Reply, streamed: bool) -> (u16, Option<u64>, String) {
    let form = vendor.form;
    match reply {
        Reply::Says(said) if streamed => {
            let events = form.events(said);
            let framed = events
                .said
                .iter()
                .chain(&events.end)
                .map(|event| form.frame(event));
            (200, None, framed.collect())
        }
        Reply::Says(said) => (200, None, form.whole(said)),
        Reply::Blocked if streamed => (200, None, form.frame(&gemini::blocked("SAFETY"))),
        Reply::Blocked => (200, None, gemini::blocked("SAFETY")),
        Reply::Fails {
            status,
            retry_after,
        } => (*status, *retry_after, form.error(*status, Trouble::Plain)),
    }
}

/// Returns the expected content of an answer, by its source.
fn expected(vendor: &Vendor, reply: &Reply) -> Map<String, Value> {
    let expected = match reply {
        Reply::Says(said) => {
            let Said {
                thinking,
                text,
                refusal,
                calls,
                ..
            } = said;
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!([call.name, call.value()]))
                .collect();
            json!({
                "text": text, "thinking": thinking, "refusal": refusal, "tool_calls": calls,
                "finish": vendor.form.finish(said), "usage": usage(vendor, said)
            })
        }
        Reply::Blocked => json!({ "blocked": "SAFETY" }),
        Reply::Fails {
            status,
            retry_after: Some(seconds),
        } => {
            json!({ "error": format!("status {status}"), "retry_after": seconds })
        }
        Reply::Fails {
            status,
            retry_after: None,
        } => json!({ "error": format!("status {status}") }),
    };
    let Value::Object(expected) = expected else {
        unreachable!()
    };
    expected
}

fn usage(vendor: &Vendor, said: &Said) -> Value {
    let (input, output) = vendor.form.counters(said.counts);
    let mut usage = json!({ "input": input, "output": output });
    // Ollama counts neither, and Gemini leaves zeros out.
    for (name, count) in [
        ("cached", said.counts.cached),
        ("thinking", said.counts.thinking),
    ] {
        if count > 0 && vendor.folder != "ollama" {
            usage[name] = count.into();
        }
    }
    usage
}

async fn ask(
    model: &HttpModel,
    request: &GenerateRequest,
    streamed: bool,
) -> Result<GenerateResponse, ModelError> {
    if !streamed {
        return model.generate(request).await;
    }
    let mut stream = model.stream(request).await?;
    while let Some(delta) = stream.next().await {
        if let Delta::Finished(response) = delta? {
            return Ok(response);
        }
    }
    panic!("a stream ends with Finished or an error");
}

/// Adds the answer, and what is said to it.
fn go_on(request: &mut GenerateRequest, answered: GenerateResponse) {
    let calls: Vec<_> = answered.tool_calls().cloned().collect();
    if answered.parts.is_empty() {
        return;
    }
    request
        .messages
        .push(Message::assistant(answered.parts).unwrap());
    for call in &calls {
        let result = scenarios::result(&call.name);
        request
            .messages
            .push(Message::tool(call.id.clone(), call.name.clone(), result).unwrap());
    }
    if calls.is_empty() {
        request.messages.push(Message::user(GO_ON).unwrap());
    }
}

/// In the form of VCR.py.
fn interaction(vendor: &Vendor, made: &Made) -> Value {
    let mut request = made.asked.head.lines().next().unwrap().split(' ');
    let (method, uri) = (request.next().unwrap(), request.next().unwrap());
    // What a client sends of itself says nothing about the adapter.
    let own = [
        "host",
        "content-length",
        "user-agent",
        "accept",
        "accept-encoding",
    ];
    let headers: BTreeMap<String, Value> = made
        .asked
        .head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), json!([value])))
        .filter(|(name, _)| !own.contains(&name.as_str()))
        .collect();
    let is_stream = made.streamed && (200..300).contains(&made.status);
    let mut answered =
        json!({ "content-type": [if is_stream { vendor.stream } else { "application/json" }] });
    if let Some(seconds) = made.retry_after {
        answered["retry-after"] = json!([seconds.to_string()]);
    }
    let request =
        json!({ "method": method, "uri": uri, "headers": headers, "body": made.asked.body });
    json!({
        "request": request,
        "response": {
            "status": { "code": made.status, "message": "" }, "headers": answered,
            "body": { "string": made.body }
        }
    })
}

fn asks_for_stream(asked: &ReceivedRequest) -> bool {
    asked.json()["stream"] == true
        || asked
            .head
            .lines()
            .next()
            .unwrap()
            .contains(":streamGenerateContent")
}

/// A vendor's published schemas.
struct Published {
    request: Schemas,
    whole: Schemas,
    /// Schemas of the events of a stream.
    piece: Schemas,
}

impl Published {
    fn load(vendor: &Vendor, folder: &Path) -> Option<Self> {
        let (names, whole, piece) = vendor.schemas?;
        let answer = |kind| Schemas::load(folder, &names[..1], kind);
        let request = Schemas::load(folder, names, "request");
        Some(Self {
            request,
            whole: answer(whole),
            piece: answer(piece),
        })
    }

    /// Returns the parts that do not fit. There is no schema of errors, nor of Anthropic's
    /// keep-alive event.
    fn misfits(&self, made: &Made) -> Vec<String> {
        let mut misfits: Vec<String> = self
            .request
            .misfit(&made.asked.json())
            .into_iter()
            .collect();
        if !(200..300).contains(&made.status) {
            return misfits;
        }
        if !made.streamed {
            misfits.extend(
                self.whole
                    .misfit(&serde_json::from_str(&made.body).unwrap()),
            );
            return misfits;
        }
        let lines = made
            .body
            .lines()
            .map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let values: Vec<Value> = lines
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(!values.is_empty(), "a stream of nothing: {}", made.body);
        misfits.extend(
            values
                .iter()
                .filter(|value| value["type"] != "ping")
                .filter_map(|value| self.piece.misfit(value)),
        );
        misfits
    }
}
