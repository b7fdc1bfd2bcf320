//! The answers of a model to sentences: the verdict of each beside its certainty.

use std::fs;
use std::path::Path;

use adjutant_core::{Content, GenerateRequest, GenerateResponse, LanguageModel as _};
use adjutant_embedded::EmbeddedModel;
use adjutant_weak::LastExchange;
use serde_json::{Value, json};

use crate::decide::{self, Evaluation, Verdict};
use crate::{prompt, sentences};

/// Sentences after which the progress is printed and the answers are written.
const PROGRESS_EVERY: usize = 50;

/// Asks a model one in `every` sentences, as the task assistant does, and prints the shares of the
/// verdicts. Writes what the model chose from, its answer and what becomes of it into
/// `target/action-answers.jsonl`, one sentence a line.
///
/// # Errors
/// The model fails, or a file cannot be read or written.
pub(crate) fn run(root: &Path, model: &Path, every: usize) -> Result<(), String> {
    let weak = prompt::assistant(root)?;
    let evaluation = Evaluation::new(root, None)?;
    let mut tools = prompt::tools()?;
    let of_memory = evaluation.tools.iter();
    let is_known = |name: &str| tools.iter().any(|tool| tool.name.as_str() == name);
    let of_memory = of_memory.filter(|tool| !is_known(tool.name.as_str()));
    tools.extend(of_memory.cloned().collect::<Vec<_>>());
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let model = EmbeddedModel::new("model", model).map_err(|error| error.to_string())?;
    let file = root.join("target/action-answers.jsonl");
    let (mut judged, mut written) = (Vec::new(), String::new());
    let sampled: Vec<_> = evaluation.lines.iter().step_by(every.max(1)).collect();
    for (at, (line, tasks)) in sampled.iter().enumerate() {
        let references = decide::references(tasks);
        let mut request = GenerateRequest::new(decide::messages(line)?);
        request.tools = tools.clone().into();
        let exchange = LastExchange::of(&request);
        let scores = runtime.block_on(model.score_actions(exchange.utterance()));
        let scores = scores.map_err(|error| error.to_string())?;
        let encoded = weak.encode(&request, &references, scores.as_ref());
        let response = runtime.block_on(model.generate(&encoded));
        let response = response.map_err(|error| error.to_string())?;
        let (certainty, answer) = (response.certainty, response.text());
        let decoded = weak.decode(response, &request, &references, scores.as_ref());
        let right = sentences::right(line);
        let verdicts = right.iter().map(|right| decide::judge(&decoded, right));
        let verdict = verdicts.min().unwrap_or_default();
        judged.push((line, verdict));
        let row = json!({
            "id": line.id, "lang": line.lang, "class": line.class, "say": line.say,
            "history": line.history, "tasks": tasks, "right": right, "verdict": name(verdict),
            "schema": encoded.response_schema, "answer": answer, "certainty": certainty,
            "becomes": parts(&decoded),
        });
        written.push_str(&format!("{row}\n"));
        let done = at + 1;
        if done % PROGRESS_EVERY == 0 || done == sampled.len() {
            fs::write(&file, &written).map_err(|error| format!("{}: {error}", file.display()))?;
            eprintln!("answers: {done} of {}", sampled.len());
        }
    }
    decide::print_shares(judged.into_iter());
    Ok(())
}

fn name(verdict: Verdict) -> &'static str {
    let known = Verdict::ALL.iter().find(|(known, _)| *known == verdict);
    known.map_or("", |(_, name)| *name)
}

/// Returns the calls and texts of a response.
fn parts(response: &GenerateResponse) -> Vec<Value> {
    let part = |content: &Content| match content {
        Content::ToolCall(call) => Some(json!([call.name, call.arguments])),
        Content::Text { text } => Some(json!(text)),
        _ => None,
    };
    let contents = response.parts.iter().map(|part| &part.content);
    contents.filter_map(part).collect()
}
