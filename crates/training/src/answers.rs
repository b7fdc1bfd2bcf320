//! The answers of a model to sentences: the verdict of each beside its certainty.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use adjutant_core::{Content, GenerateRequest, LanguageModel as _};
use adjutant_embedded::EmbeddedModel;
use adjutant_weak::LastExchange;
use serde_json::{Value, json};

use crate::decide::{self, Evaluation, Verdict};
use crate::{prompt, sentences};

/// Asks a model one in `every` sentences and prints the verdicts by class; writes every answer into
/// `target/action-answers.jsonl`.
///
/// # Errors
/// The model fails, or a file cannot be read or written.
pub(crate) fn run(root: &Path, model: &Path, every: usize) -> Result<(), String> {
    let weak = prompt::assistant(root)?;
    let evaluation = Evaluation::new(root, None)?;
    let own = prompt::tools()?;
    let memory = evaluation.tools.iter();
    let memory = memory.filter(|tool| own.iter().all(|own| own.name != tool.name));
    let tools: Vec<_> = own.iter().chain(memory).cloned().collect();
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = tokio::runtime::Runtime::new().map_err(|error| failed(&error))?;
    let model = EmbeddedModel::new("model", model).map_err(|error| failed(&error))?;
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    let mut written = String::new();
    let file = root.join("target/action-answers.jsonl");
    for (at, (line, tasks)) in evaluation.lines.iter().step_by(every).enumerate() {
        let references = decide::references(tasks);
        let mut request = GenerateRequest::new(decide::messages(line)?);
        request.tools = tools.clone().into();
        let exchange = LastExchange::of(&request);
        let scores = runtime
            .block_on(model.score_actions(exchange.utterance()))
            .map_err(|error| failed(&error))?;
        let encoded = weak.encode(&request, &references, scores.as_ref());
        let schema = encoded.response_schema.clone().unwrap_or_default();
        let response = runtime
            .block_on(model.generate(&encoded))
            .map_err(|error| failed(&error))?;
        let (certainty, answer) = (response.certainty, response.text());
        let decoded = weak.decode(response, &request, &references, scores.as_ref());
        let judged = sentences::right(line);
        let verdict = judged.iter().map(|right| decide::judge(&decoded, right));
        let verdict = verdict.min().unwrap_or_default();
        *counts.entry(verdict).or_default() += 1;
        let name = Verdict::ALL.iter().find(|(known, _)| *known == verdict);
        let parts: Vec<Value> = decoded
            .parts
            .iter()
            .map(|part| match &part.content {
                Content::ToolCall(call) => json!([call.name, call.arguments]),
                Content::Text { text } => json!(text),
                _ => Value::Null,
            })
            .collect();
        let row = json!({
            "id": line.id, "lang": line.lang, "class": line.class, "say": line.say,
            "verdict": name.map(|(_, name)| *name), "certainty": certainty, "answer": answer,
            "parts": parts, "right": judged, "schema": schema, "tasks": tasks, "history": line.history,
        });
        written.push_str(&format!("{row}\n"));
        if at % 50 == 0 {
            eprintln!("{at}: {counts:?}");
            fs::write(&file, &written).map_err(|error| failed(&error))?;
        }
    }
    fs::write(&file, &written).map_err(|error| failed(&error))?;
    let all: usize = counts.values().sum();
    for (verdict, name) in Verdict::ALL {
        let count = counts.get(&verdict).copied().unwrap_or_default();
        println!(
            "{name:<12} {count:>5}  {:>5.1} %",
            100.0 * count as f64 / all.max(1) as f64
        );
    }
    Ok(())
}
