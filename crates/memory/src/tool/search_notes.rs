//! The tool `search_notes`.

use adjutant_core::{ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, definition, reads, with_remark};
use super::property::{NOTES_SHOWN, folder_property, limit_property, tag_property, text_property};
use crate::{NoteFilter, Notes};

/// Searches the notes of the vault.
pub(super) struct SearchNotes(pub(super) Notes);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    query: String,
    #[serde(default)]
    folder: String,
    tag: Option<String>,
    limit: Option<usize>,
}

impl Operation for SearchNotes {
    type Args = Args;

    fn definition(&self) -> ToolDefinition {
        definition(
            "search_notes",
            "Find notes of the user's vault by what they are about, best first, with the lines that match.",
            json!({
                "query": text_property(
                    "Words, in any form; \"several words\" have to stand there, as have #tag and [[Note]], a link to that note"
                ),
                "folder": folder_property(),
                "tag": tag_property(),
                "limit": limit_property(),
            }),
            &["query"],
            reads(),
        )
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let notes = self.0.for_owner(&context.user)?;
        let filter = NoteFilter {
            folder: args.folder,
            tag: args.tag,
            limit: args.limit.unwrap_or(NOTES_SHOWN),
            attached: notes.attached(context.conversation),
        };
        Ok(json!(notes.search(&args.query, &filter).await?))
    }

    fn describe(data: &Value) -> Option<String> {
        let notes = data.get("notes")?.as_array()?;
        if notes.is_empty() {
            return Some("No note matches.".to_owned());
        }
        let mut lines: Vec<String> = Vec::new();
        for note in notes {
            lines.push(format!("- {}", note.get("path")?.as_str()?));
            for line in note.get("lines")?.as_array()? {
                lines.push(format!("  {}: {}", line.get(0)?, line.get(1)?.as_str()?));
            }
        }
        Some(with_remark(lines, data))
    }
}
