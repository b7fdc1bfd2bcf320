//! The tool `list_notes`.

use adjutant_core::{ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, definition, reads, with_remark};
use super::property::{NOTES_SHOWN, folder_property, limit_property, tag_property};
use crate::{NoteFilter, Notes};

/// Lists the notes of a folder or with a tag.
pub(super) struct ListNotes(pub(super) Notes);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(default)]
    folder: String,
    tag: Option<String>,
    limit: Option<usize>,
}

impl Operation for ListNotes {
    type Args = Args;

    fn definition(&self) -> ToolDefinition {
        definition(
            "list_notes",
            "List the notes of the user's vault, of a folder or with a tag, by path.",
            json!({ "folder": folder_property(), "tag": tag_property(), "limit": limit_property() }),
            &[],
            reads(),
        )
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let notes = self.0.for_owner(&context.user)?;
        let filter = NoteFilter {
            folder: args.folder,
            tag: args.tag,
            limit: args.limit.unwrap_or(NOTES_SHOWN),
            ..NoteFilter::default()
        };
        Ok(json!(notes.list(&filter).await?))
    }

    fn describe(data: &Value) -> Option<String> {
        let notes = data.get("notes")?.as_array()?;
        if notes.is_empty() {
            return Some("There are no notes.".to_owned());
        }
        let lines = notes
            .iter()
            .filter_map(|note| Some(format!("- {}", note.get("path")?.as_str()?)));
        Some(with_remark(lines.collect(), data))
    }
}
