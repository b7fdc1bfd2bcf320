//! The task assistant's prompt: its examples and tools, and the size of what stands in front of every
//! message.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use adjutant_core::{ActionKind, ActionScores, GenerateRequest, Language, Message, ToolDefinition};
use adjutant_embedded::Decoder;
use adjutant_store::sqlite;
use adjutant_tools::task_tools;
use adjutant_weak::WeakTools;

/// Prints the tokens of instruction and examples, without the marks between messages.
///
/// # Errors
/// The model or an example cannot be read.
pub(crate) fn count(root: &Path, model: &Path) -> Result<(), String> {
    let weak = assistant(root)?;
    let decoder = Decoder::load(model).map_err(|error| error.to_string())?;
    let message = Message::user("hello").map_err(|error| error.to_string())?;
    let mut request = GenerateRequest::new(vec![message]);
    request.tools = tools()?.into();
    let scores = ActionScores::new(Language::English).with(ActionKind::Reply, 1.0);
    for (name, scores) in [("with scores", Some(&scores)), ("without scores", None)] {
        let encoded = weak.encode(&request, &[], scores);
        // The last message is the person's.
        let constant = &encoded.messages[..encoded.messages.len().saturating_sub(1)];
        let tokens = constant
            .iter()
            .map(|message| decoder.count_tokens(&message.text()))
            .sum::<Result<usize, _>>()
            .map_err(|error| error.to_string())?;
        println!("{name}: {tokens} tokens in {} messages", constant.len());
    }
    Ok(())
}

/// Returns the task assistant's instruction and examples.
///
/// # Errors
/// A file that cannot be read or parsed.
pub(crate) fn assistant(root: &Path) -> Result<WeakTools, String> {
    let read = |name: &str| {
        let file = root.join("prompts/weak").join(name);
        let text =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        WeakTools::from_jsonl(&text).map_err(|error| error.to_string())
    };
    Ok(read("todo.jsonl")?.with_scored(read("scored.jsonl")?))
}

/// Returns the tools for tasks.
///
/// # Errors
/// The empty database cannot be made.
pub(crate) fn tools() -> Result<Vec<ToolDefinition>, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let store = runtime
        .block_on(sqlite::Store::in_memory())
        .map_err(|error| error.to_string())?;
    let tools = task_tools(Arc::new(store));
    Ok(tools.iter().map(|tool| tool.definition().clone()).collect())
}
