//! `search_notes`.

use adjutant_core::{Arguments, BoxFuture, Tool, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LIMIT, definition, folder_property, limit_property, read, reads, tag_property};
use crate::{Filter, Notes};

/// Searches notes.
pub(super) struct SearchNotes {
    definition: ToolDefinition,
    notes: Notes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    query: String,
    #[serde(default)]
    folder: String,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

impl SearchNotes {
    pub(super) fn new(notes: &Notes) -> Self {
        let definition = definition(
            "search_notes",
            "Find notes of the user's vault by what they are about, best first, with the lines that match.",
            json!({
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Words, in any form; \"several words\" have to stand there, as have #tag and [[Note]], a link to that note",
                },
                "folder": folder_property(),
                "tag": tag_property(),
                "limit": limit_property(),
            }),
            &["query"],
            reads(),
        );
        Self {
            definition,
            notes: notes.clone(),
        }
    }
}

impl Tool for SearchNotes {
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
            let attached = notes.attached(context.conversation);
            let limit = args.limit.unwrap_or(LIMIT);
            let filter = Filter {
                folder: args.folder,
                tag: args.tag,
                limit,
                attached,
            };
            Ok(json!(notes.search(&args.query, &filter).await?))
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        let notes = data.get("notes")?.as_array()?;
        if notes.is_empty() {
            return Some("No note matches.".to_owned());
        }
        let mut words: Vec<String> = Vec::new();
        for note in notes {
            words.push(format!("- {}", note.get("path")?.as_str()?));
            for line in note.get("lines")?.as_array()? {
                words.push(format!("  {}: {}", line.get(0)?, line.get(1)?.as_str()?));
            }
        }
        words.extend(
            data.get("cut")
                .and_then(Value::as_str)
                .map(|cut| format!("({cut})")),
        );
        Some(words.join("\n"))
    }
}
