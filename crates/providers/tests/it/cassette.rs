//! Recorded traffic, in the file formats it is kept in: this repository's own set, made by
//! `record.rs`, and other projects' recordings, which are not part of the repository;
//! `ADJUTANT_FIXTURES` names their folder.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use crate::server::Framing;

/// One request and its answer.
pub(crate) struct Exchange {
    /// The file and the number of the exchange in it: `folder/project/file#0`.
    pub(crate) name: String,
    /// The request, if it was recorded.
    pub(crate) request: Value,
    /// The model that was asked, where it was recorded.
    pub(crate) model: Option<String>,
    pub(crate) status: u16,
    /// The vendor's `Retry-After` header.
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) framing: Framing,
    pub(crate) expected: Expected,
}

/// The expected content of an answer: by the vendor's own SDK, or by the source it was made from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Expected {
    id: String,
    index: usize,
    pub(crate) stream: bool,
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) refusal: String,
    pub(crate) tool_calls: Vec<(String, Value)>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Counts>,
    pub(crate) error: Option<String>,
    pub(crate) blocked: Option<String>,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
}

/// Tokens; what is not said is not compared.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Counts {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    /// Of the input: read from a cache.
    pub(crate) cached: Option<u64>,
    /// Of the output: thinking.
    pub(crate) thinking: Option<u64>,
}

impl Expected {
    /// True if no answer was recorded.
    pub(crate) fn is_failure(&self) -> bool {
        self.error.is_some() || self.blocked.is_some()
    }
}

impl Exchange {
    /// The JSON values of the answer, whatever its framing; what is none is left out.
    pub(crate) fn events(&self) -> Vec<Value> {
        match self.framing {
            Framing::Whole => serde_json::from_slice(&self.body).into_iter().collect(),
            Framing::Lines => self
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            Framing::Events => {
                let data = self.lines().filter_map(|line| line.strip_prefix("data:"));
                data.filter_map(|data| serde_json::from_str(data).ok())
                    .collect()
            }
        }
    }

    fn lines(&self) -> std::str::Lines<'_> {
        str::from_utf8(&self.body).unwrap().lines()
    }
}

/// The name of the test function in which this stands, as test runners print it.
macro_rules! test_name {
    () => {{
        fn here() {}
        let name = std::any::type_name_of_val(&here)
            .trim_end_matches("::here")
            .replace("::{{closure}}", "");
        name.split_once("::").unwrap().1.to_owned()
    }};
}
pub(crate) use test_name;

/// The recordings that are part of this repository.
pub(crate) fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// Other projects' recordings; `None`: they are not at hand, and what of this test reads them
/// counts as not run.
#[expect(
    clippy::disallowed_methods,
    reason = "where other projects' recordings are is known to whoever runs the tests"
)]
pub(crate) fn external(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ADJUTANT_FIXTURES").map(PathBuf::from);
    match &folder {
        Some(folder) if folder.join("index.jsonl").is_file() => {}
        Some(folder) => panic!(
            "ADJUTANT_FIXTURES is {}, which has no index.jsonl",
            folder.display()
        ),
        None => not_run(
            test,
            "recordings of other projects: ADJUTANT_FIXTURES does not name their folder",
        ),
    }
    folder
}

/// Says that a part of a test was not run, on stderr and in the file that `ADJUTANT_NOT_RUN` names,
/// for whoever started the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "where that is collected is known to whoever runs the tests"
)]
fn not_run(test: &str, reason: &str) {
    eprintln!("NOT RUN: {test}: {reason}");
    if let Some(list) = std::env::var_os("ADJUTANT_NOT_RUN") {
        let mut list = std::fs::File::options()
            .create(true)
            .append(true)
            .open(list)
            .unwrap();
        // One write a line: tests of other processes append to the same file.
        list.write_all(format!("{test}\t{reason}\n").as_bytes())
            .unwrap();
    }
}

/// Every exchange of a provider of which is known what it says.
pub(crate) fn exchanges(folder: &Path, provider: &str) -> Vec<Exchange> {
    let expected: Vec<Expected> = lines(&folder.join("expected.jsonl"));
    let index: Vec<Value> = lines(&folder.join("index.jsonl"));
    let files = index
        .iter()
        .filter(|row| row["provider"] == provider)
        .map(|row| row["id"].as_str().unwrap());
    let mut exchanges = Vec::new();
    for file in files {
        let recorded = load(&folder.join(file), provider);
        for understood in expected.iter().filter(|row| row.id == file) {
            let Recorded {
                url,
                request,
                status,
                retry_after,
                mut body,
            } = recorded[understood.index].clone();
            let mut expected = understood.clone();
            // ReceivedRequest without `alt=sse`, Gemini streams a JSON list; the same pieces, framed as we
            // ask for them.
            if let Ok(pieces) = serde_json::from_slice::<Vec<Value>>(&body) {
                body = frame(provider, pieces.iter().map(Value::to_string));
                expected.stream = true;
            }
            exchanges.push(Exchange {
                name: format!("{file}#{}", understood.index),
                model: model_of(&url, &request),
                request,
                status,
                retry_after,
                framing: match (expected.stream && (200..300).contains(&status), provider) {
                    (false, _) => Framing::Whole,
                    (true, "ollama") => Framing::Lines,
                    (true, _) => Framing::Events,
                },
                body,
                expected,
            });
        }
    }
    exchanges
}

/// Named in the body, or in the path before the method (Gemini).
fn model_of(url: &str, request: &Value) -> Option<String> {
    let in_path = || Some(url.split_once("models/")?.1.split_once(':')?.0);
    request["model"]
        .as_str()
        .or_else(in_path)
        .map(str::to_owned)
}

fn lines<T: serde::de::DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Events as their provider frames them.
fn frame(provider: &str, events: impl Iterator<Item = String>) -> Vec<u8> {
    let framed: String = match provider {
        "ollama" => events.map(|event| format!("{event}\n")).collect(),
        "openai_chat" => events
            .map(|event| format!("data: {event}\n\n"))
            .chain(["data: [DONE]\n\n".to_owned()])
            .collect(),
        "anthropic" | "openai_responses" => events
            .map(|event| {
                let kind = serde_json::from_str::<Value>(&event).unwrap()["type"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                format!("event: {kind}\ndata: {event}\n\n")
            })
            .collect(),
        _ => events
            .map(|event| format!("data: {event}\r\n\r\n"))
            .collect(),
    };
    framed.into_bytes()
}

#[derive(Clone)]
struct Recorded {
    url: String,
    request: Value,
    status: u16,
    retry_after: Option<String>,
    body: Vec<u8>,
}

fn load(file: &Path, provider: &str) -> Vec<Recorded> {
    let bytes = std::fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let name = file.file_name().unwrap().to_str().unwrap();
    if bytes.starts_with(b"httprr trace v1") {
        return httprr(&bytes);
    }
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        return yaml(&text);
    }
    let body = if name.ends_with(".chunks.txt") {
        let events = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(str::to_owned);
        frame(provider, events)
    } else {
        bytes.clone()
    };
    let answer = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let status = match &answer["error"] {
        error @ Value::Object(_) => {
            error["code"]
                .as_u64()
                .unwrap_or(match error["type"].as_str() {
                    Some("authentication_error") => 401,
                    Some("not_found_error") => 404,
                    Some("rate_limit_error") => 429,
                    Some("overloaded_error") => 529,
                    _ => 400,
                })
        }
        _ => 200,
    };
    let status = status.try_into().unwrap();
    vec![Recorded {
        url: String::new(),
        request: Value::Null,
        status,
        retry_after: None,
        body,
    }]
}

/// VCR.py (`interactions`), VCR for Ruby (`http_interactions`), httpmock (documents of `when` and
/// `then`).
fn yaml(text: &str) -> Vec<Recorded> {
    let documents: Vec<Value> = serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect();
    let status_of = |status: &Value| status.as_u64().unwrap_or(200).try_into().unwrap();
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut recorded = Vec::new();
    for document in documents.iter().filter(|document| !document.is_null()) {
        if let (Some(when), Some(then)) = (document.get("when"), document.get("then")) {
            recorded.push(Recorded {
                url: text_of(&when["path"]),
                request: json_of(&when["body"]),
                status: status_of(&then["status"]),
                retry_after: None,
                body: match then["body_encoding"].as_str() {
                    Some("base64") => unpacked(&then["body"]),
                    _ => bytes_of(&then["body"]),
                },
            });
        }
        let vcr = document
            .get("interactions")
            .or(document.get("http_interactions"));
        for exchange in vcr.and_then(Value::as_array).into_iter().flatten() {
            let (request, response) = (&exchange["request"], &exchange["response"]);
            recorded.push(Recorded {
                url: text_of(request.get("uri").unwrap_or(&request["url"])),
                request: match request.get("parsed_body") {
                    Some(parsed) => parsed.clone(),
                    None => json_of(&request["body"]),
                },
                status: status_of(
                    response["status"]
                        .get("code")
                        .unwrap_or(&response["status_code"]),
                ),
                retry_after: header(response, "retry-after"),
                body: match response.get("parsed_body") {
                    Some(parsed) => bytes_of(parsed),
                    None => body_of(&response["body"]),
                },
            });
        }
    }
    recorded
}

/// A header of a VCR answer: a text, or a list of one.
fn header(response: &Value, name: &str) -> Option<String> {
    let headers = response["headers"].as_object()?;
    let (_, value) = headers
        .iter()
        .find(|(header, _)| header.eq_ignore_ascii_case(name))?;
    value.get(0).unwrap_or(value).as_str().map(str::to_owned)
}

/// `httprr trace v1`: lengths, then a raw request and a raw answer.
fn httprr(bytes: &[u8]) -> Vec<Recorded> {
    let split = |bytes: &[u8], at: &[u8]| {
        let end = bytes
            .windows(at.len())
            .position(|window| window == at)
            .unwrap_or(bytes.len());
        let rest = bytes.get(end + at.len()..).unwrap_or_default().to_vec();
        (String::from_utf8_lossy(&bytes[..end]).into_owned(), rest)
    };
    let mut recorded = Vec::new();
    let (_, mut rest) = split(bytes, b"\n");
    while !rest.trim_ascii().is_empty() {
        let (lengths, exchange) = split(&rest, b"\n");
        let (asked, answered) = lengths.split_once(' ').unwrap();
        let (asked, answered): (usize, usize) =
            (asked.parse().unwrap(), answered.trim().parse().unwrap());
        let (request_head, request_body) = split(&exchange[..asked], b"\r\n\r\n");
        let (head, mut body) = split(&exchange[asked..asked + answered], b"\r\n\r\n");
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            let mut joined = Vec::new();
            loop {
                let (size, chunk) = split(&body, b"\r\n");
                let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
                if size == 0 {
                    break;
                }
                joined.extend_from_slice(&chunk[..size]);
                body = chunk[size + 2..].to_vec();
            }
            body = joined;
        }
        recorded.push(Recorded {
            url: request_head.split(' ').nth(1).unwrap().to_owned(),
            request: serde_json::from_slice(&request_body).unwrap_or_default(),
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            retry_after: None,
            body,
        });
        rest = exchange[asked + answered..].to_vec();
    }
    recorded
}

fn json_of(value: &Value) -> Value {
    match value {
        Value::String(_) | Value::Object(_) => {
            serde_json::from_slice(&body_of(value)).unwrap_or(Value::Null)
        }
        other => other.clone(),
    }
}

/// A body as it is kept: text, or text under a key that says how it is kept.
fn body_of(value: &Value) -> Vec<u8> {
    match (value.get("base64_string"), value.get("string")) {
        (Some(packed), _) => unpacked(packed),
        (None, Some(text)) => bytes_of(text),
        (None, None) => bytes_of(value),
    }
}

/// Text as it is, `!!binary` decoded, gzip unpacked, parsed bodies as JSON.
fn bytes_of(value: &Value) -> Vec<u8> {
    let text = match value {
        Value::Null => return Vec::new(),
        Value::String(text) => text,
        other => return other.to_string().into_bytes(),
    };
    // YAML's tag is gone by now; these are the beginnings of what is kept as base64.
    let packed = |bytes: &[u8]| {
        [&[0x1f, 0x8b][..], b"{", b"data:", b"event:"]
            .iter()
            .any(|start| bytes.starts_with(start))
    };
    match decoded(text) {
        Some(bytes) if packed(&bytes) => unpacked(value),
        _ => text.as_bytes().to_vec(),
    }
}

fn decoded(base64: &str) -> Option<Vec<u8>> {
    let packed: String = base64
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .collect();
    STANDARD.decode(&packed).ok()
}

/// Base64, perhaps of gzip.
fn unpacked(base64: &Value) -> Vec<u8> {
    let bytes = decoded(base64.as_str().unwrap()).unwrap();
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    unpacked
}
