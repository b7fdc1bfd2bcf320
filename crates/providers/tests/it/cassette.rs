//! Recorded traffic of other projects, in the file formats they keep it in. Not part of this repository: the folder is
//! named by `ADJUTANT_FIXTURES`.

use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// One request and its answer.
pub(crate) struct Exchange {
    /// Which file, and which exchange in it.
    pub(crate) name: String,
    /// What was asked, where it was recorded.
    pub(crate) request: Value,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: Expected,
}

/// What the vendor's own SDK understood of an answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Expected {
    id: String,
    index: usize,
    pub(crate) stream: bool,
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) tool_calls: Vec<(String, Value)>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Counts>,
    pub(crate) error: Option<String>,
    pub(crate) blocked: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Counts {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) thoughts: Option<u64>,
}

/// The folder, or `None`, said aloud.
#[expect(
    clippy::disallowed_methods,
    reason = "where other projects' recordings are is known to whoever runs the tests"
)]
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ADJUTANT_FIXTURES").map(PathBuf::from);
    match &folder {
        Some(folder) if folder.join("index.jsonl").is_file() => {}
        Some(folder) => panic!("ADJUTANT_FIXTURES is {}, which has no index.jsonl", folder.display()),
        None => println!("SKIPPED: set ADJUTANT_FIXTURES to the folder of recorded traffic"),
    }
    folder
}

/// Every exchange of a provider that the vendor's SDK was asked about.
pub(crate) fn exchanges(folder: &Path, provider: &str) -> Vec<Exchange> {
    let expected: Vec<Expected> = lines(&folder.join("expected.jsonl"));
    let index: Vec<Value> = lines(&folder.join("index.jsonl"));
    let files = index.iter().filter(|row| row["provider"] == provider).map(|row| row["id"].as_str().unwrap());
    let mut exchanges = Vec::new();
    for file in files {
        let recorded = load(&folder.join(file));
        for understood in expected.iter().filter(|row| row.id == file) {
            let (request, status, mut body) = recorded[understood.index].clone();
            let mut expected = understood.clone();
            // Asked without `alt=sse`, Gemini streams a JSON list; the same pieces, framed as we ask for them.
            if let Ok(pieces) = serde_json::from_slice::<Vec<Value>>(&body) {
                body = pieces
                    .iter()
                    .map(|piece| format!("data: {piece}\r\n\r\n"))
                    .collect::<String>()
                    .into_bytes();
                expected.stream = true;
            }
            let name = format!("{file}#{}", understood.index);
            exchanges.push(Exchange { name, request, status, body, expected });
        }
    }
    exchanges
}

fn lines<T: serde::de::DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

type Recorded = (Value, u16, Vec<u8>);

fn load(file: &Path) -> Vec<Recorded> {
    let bytes = std::fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let name = file.file_name().unwrap().to_str().unwrap();
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        return yaml(&text);
    }
    if name.ends_with(".chunks.txt") {
        let frames =
            text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("data: {line}\r\n\r\n"));
        return vec![(Value::Null, 200, frames.collect::<String>().into_bytes())];
    }
    let status = serde_json::from_slice::<Value>(&bytes).ok().and_then(|body| body["error"]["code"].as_u64());
    vec![(Value::Null, status.unwrap_or(200).try_into().unwrap(), bytes)]
}

/// VCR.py (`interactions`), VCR for Ruby (`http_interactions`), httpmock (documents of `when` and `then`).
fn yaml(text: &str) -> Vec<Recorded> {
    let documents: Vec<Value> = serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect();
    let mut recorded = Vec::new();
    for document in documents.iter().filter(|document| !document.is_null()) {
        if let Some(then) = document.get("then") {
            let status = then["status"].as_u64().unwrap_or(200);
            recorded.push((
                json_of(&document["when"]["body"]),
                status.try_into().unwrap(),
                bytes_of(&then["body"]),
            ));
        }
        let vcr = document.get("interactions").or(document.get("http_interactions"));
        for exchange in vcr.and_then(Value::as_array).into_iter().flatten() {
            let (request, response) = (&exchange["request"], &exchange["response"]);
            let asked = request.get("parsed_body").unwrap_or(&request["body"]);
            let asked = asked.get("string").unwrap_or(asked);
            let body = match response.get("parsed_body") {
                Some(parsed) => bytes_of(parsed),
                None => bytes_of(&response["body"]["string"]),
            };
            let status = response["status"]["code"].as_u64().unwrap_or(200);
            recorded.push((json_of(asked), status.try_into().unwrap(), body));
        }
    }
    recorded
}

fn json_of(value: &Value) -> Value {
    match value.as_str() {
        Some(_) => serde_json::from_slice(&bytes_of(value)).unwrap_or(Value::Null),
        None => value.clone(),
    }
}

/// Text as it is, `!!binary` decoded, gzip unpacked, parsed bodies as JSON.
fn bytes_of(value: &Value) -> Vec<u8> {
    let Some(text) = value.as_str() else { return value.to_string().into_bytes() };
    let packed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    // YAML's tag is gone by now; gzip begins with these two bytes, whatever it holds.
    match STANDARD.decode(&packed) {
        Ok(bytes) if bytes.starts_with(&[0x1f, 0x8b]) => {
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).unwrap();
            unpacked
        }
        Ok(bytes) if bytes.starts_with(b"{") => bytes,
        Ok(_) | Err(_) => text.as_bytes().to_vec(),
    }
}
