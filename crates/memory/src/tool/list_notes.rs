//! `list_notes`.

use adjutant_core::{Arguments, BoxFuture, Tool, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LIMIT, definition, folder_property, limit_property, read, reads, tag_property};
use crate::{Filter, Notes};

/// Lists notes.
pub(super) struct ListNotes {
    definition: ToolDefinition,
    notes: Notes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    folder: String,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

impl ListNotes {
    pub(super) fn new(notes: &Notes) -> Self {
        let definition = definition(
            "list_notes",
            "List the notes of the user's vault, of a folder or with a tag, by path.",
            json!({ "folder": folder_property(), "tag": tag_property(), "limit": limit_property() }),
            &[],
            reads(),
        );
        Self {
            definition,
            notes: notes.clone(),
        }
    }
}

impl Tool for ListNotes {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments)?;
            let notes = self.notes.of(&context.user)?;
            let limit = args.limit.unwrap_or(LIMIT);
            let filter = Filter {
                folder: args.folder,
                tag: args.tag,
                limit,
                ..Filter::default()
            };
            Ok(json!(notes.list(&filter).await?))
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        let notes = data.get("notes")?.as_array()?;
        if notes.is_empty() {
            return Some("There are no notes.".to_owned());
        }
        let mut words: Vec<String> = notes
            .iter()
            .filter_map(|note| Some(format!("- {}", note.get("path")?.as_str()?)))
            .collect();
        words.extend(
            data.get("cut")
                .and_then(Value::as_str)
                .map(|cut| format!("({cut})")),
        );
        Some(words.join("\n"))
    }
}
