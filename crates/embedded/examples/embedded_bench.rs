//! Measures a model file: load time, prompt and generation speed, prefix reuse, peak memory, and
//! what a new process needs for its first answer without and with a remembered prompt head.
//!
//! `cargo run --release -p adjutant-embedded --example embedded_bench -- MODEL.gguf`

use std::path::Path;
use std::time::Instant;

use adjutant_core::{GenerateRequest, LanguageModel, MaxTokens, Message};
use adjutant_embedded::{Answer, ChatRequest, ChatTurn, Decoder, EmbeddedModel, Speaker};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: embedded_bench MODEL.gguf")?;
    say(&format!(
        "threads         {} suggested",
        adjutant_embedded::suggested_threads()
    ));
    let started = Instant::now();
    let mut decoder = Decoder::load(Path::new(&path))?;
    say(&format!(
        "load            {:.2} s, memory {}",
        started.elapsed().as_secs_f32(),
        memory()
    ));

    let head: String = (0..60)
        .map(|n| format!("{n}. Water the {n} plants on the balcony. "))
        .collect();
    let mut request = ChatRequest::new(vec![
        ChatTurn::new(
            Speaker::System,
            format!("You answer about this list. {head}"),
        ),
        ChatTurn::new(Speaker::User, "Write the word yes."),
    ]);
    request.output_tokens_max = 1;
    timed(&mut decoder, &request, "prompt          ")?;

    request.turns[1].text = "Tell a long story about a lighthouse.".into();
    timed(&mut decoder, &request, "same head       ")?;
    request.output_tokens_max = 100;
    timed(&mut decoder, &request, "free text       ")?;

    request.turns[1].text = "Add buy milk to the list.".into();
    let action = json!({
        "type": "object",
        "properties": {
            "tool": { "const": "add_task" },
            "args": {
                "type": "object",
                "properties": { "description": { "type": "string", "maxLength": 60 } },
                "required": ["description"],
                "additionalProperties": false
            }
        },
        "required": ["tool", "args"],
        "additionalProperties": false
    });
    let request = request
        .with_schema(json!({ "type": "array", "items": action, "minItems": 1, "maxItems": 3 }));
    timed(&mut decoder, &request, "constrained     ")?;
    say(&format!("memory          {}", memory()));
    drop(decoder);

    let cache = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for what in ["first process   ", "second process  "] {
        let started = Instant::now();
        let model = EmbeddedModel::with_prefix_cache("bench", &path, cache.path())?;
        let mut ask = GenerateRequest::new(vec![
            Message::system(format!("You answer about this list. {head}"))?,
            Message::user("Add buy milk to the list.")?,
        ]);
        ask.response_schema = request.schema.clone();
        ask.config.max_tokens = Some(MaxTokens::new(20)?);
        let usage = runtime.block_on(model.generate(&ask))?.usage;
        say(&format!(
            "{what}{:.2} s from start to answer, {usage:?}",
            started.elapsed().as_secs_f32()
        ));
    }
    Ok(())
}

fn timed(
    decoder: &mut Decoder,
    request: &ChatRequest,
    what: &str,
) -> Result<Answer, adjutant_embedded::DecodeError> {
    let (started, worked) = (Instant::now(), processor_seconds());
    let answer = decoder.generate(request, &mut ())?;
    let (seconds, worked) = (
        started.elapsed().as_secs_f32(),
        processor_seconds() - worked,
    );
    let (computed, written) = (
        answer.input_tokens - answer.cached_tokens,
        answer.output_tokens,
    );
    say(&format!(
        "{what}{seconds:.2} s ({worked:.2} of processor): {computed} of {} prompt tokens ({:.0}/s), {written} written ({:.1}/s): {:?}",
        answer.input_tokens,
        computed as f32 / seconds,
        written as f32 / seconds,
        answer.text,
    ));
    Ok(answer)
}

/// Processor time of this process so far, where the system tells; with one thread it does not
/// depend on other load.
fn processor_seconds() -> f32 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit_once(')')
        .map_or("", |(_, fields)| fields)
        .split_whitespace();
    fields
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f32>().ok())
        .sum::<f32>()
        / 100.0
}

/// Resident and peak memory, where the system tells.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn say(line: &str) {
    println!("{line}");
}
