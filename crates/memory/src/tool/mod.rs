//! What a model may do with a memory: one file per tool.
//!
//! A model can add and read, and forget a fact after the person said yes. It cannot overwrite or
//! delete notes, or leave the vault.

mod brief;
mod forget;
mod list_notes;
mod read_note;
mod recall;
mod remember;
mod search_notes;
mod write_daily_note;
mod write_note;

use std::sync::Arc;

use adjutant_core::{Annotations, Arguments, Tool, ToolDefinition, ToolError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{DatabaseMemory, Memories, Memory};
use recall::LooksIn;

pub use brief::brief_tools;

/// All tools over one memory, in the order models see them: those over notes only if it has any.
/// They refuse every user but the memory's owner.
#[must_use]
pub fn memory_tools(memory: &Memory) -> Vec<Arc<dyn Tool>> {
    let notes = memory.notes();
    let looks_in = LooksIn {
        notes: notes.is_some(),
        conversations: memory.past().is_some(),
    };
    let mut tools = over_facts(&Memories::of_one(memory.clone()), looks_in);
    if let Some(notes) = &notes {
        tools.push(Arc::new(write_daily_note::WriteDailyNote::new(notes)));
        tools.push(Arc::new(write_note::WriteNote::new(notes)));
        tools.push(Arc::new(read_note::ReadNote::new(notes)));
        tools.push(Arc::new(search_notes::SearchNotes::new(notes)));
        tools.push(Arc::new(list_notes::ListNotes::new(notes)));
    }
    tools
}

/// The tools over the facts of a database. Each works in the memory of whoever asks, whatever a
/// model says.
#[must_use]
pub fn fact_tools(memory: &DatabaseMemory) -> Vec<Arc<dyn Tool>> {
    let looks_in = LooksIn {
        notes: false,
        conversations: memory.has_conversations(),
    };
    over_facts(&Memories::default().with_others(memory.clone()), looks_in)
}

fn over_facts(memories: &Memories, looks_in: LooksIn) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(remember::Remember::new(memories)),
        Arc::new(recall::Recall::new(memories, looks_in)),
        Arc::new(forget::Forget::new(memories)),
    ]
}

/// Those of [`memory_tools`] that change nothing: for a conversation that is to leave no trace.
#[must_use]
pub fn reading_tools(memory: &Memory) -> Vec<Arc<dyn Tool>> {
    memory_tools(memory)
        .into_iter()
        .filter(|tool| tool.definition().annotations.read_only)
        .collect()
}

/// Changes something in the vault and nowhere else, and absorbs a repeat of the same call.
fn writes() -> Annotations {
    Annotations {
        keyed: true,
        closed_world: true,
        ..Annotations::default()
    }
}

/// Changes nothing.
fn reads() -> Annotations {
    Annotations {
        read_only: true,
        idempotent: true,
        closed_world: true,
        ..Annotations::default()
    }
}

fn definition(
    name: &str,
    description: &str,
    properties: Value,
    required: &[&str],
    annotations: Annotations,
) -> ToolDefinition {
    let mut parameters = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    parameters["additionalProperties"] = json!(false);
    #[expect(
        clippy::expect_used,
        reason = "names and descriptions are constants of this folder, tested"
    )]
    let definition =
        ToolDefinition::new(name, description, parameters).expect("a valid definition");
    definition.annotated(annotations)
}

/// Reads the arguments; the error names the place that does not fit.
fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." {
            "the arguments"
        } else {
            path.as_str()
        };
        ToolError::invalid(format!("{place}: {}", error.inner()))
    })
}

/// The data of a write, with its words for the person.
fn with_message(data: impl serde::Serialize, message: String) -> Value {
    let mut data = json!(data);
    data["message"] = json!(message);
    data
}

/// The words of [`with_message`].
fn message(data: &Value) -> Option<String> {
    data.get("message")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// How many notes are shown, as the models' schemas have it.
fn limit_property() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 100, "description": "How many at most (default 20)" })
}

fn folder_property() -> Value {
    json!({ "type": "string", "description": "Only notes below this folder" })
}

fn tag_property() -> Value {
    json!({ "type": "string", "description": "Only notes with this tag or one below it, such as project or project/x" })
}

/// How many notes are shown if nobody says.
const LIMIT: usize = 20;
