//! The tool `write_daily_note`.

use adjutant_core::{ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, definition, with_message, writes};
use super::property::text_property;
use crate::{Cause, Notes};

/// Adds an entry to today's daily note.
pub(super) struct WriteDailyNote(pub(super) Notes);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    activity: String,
    title: Option<String>,
}

impl Operation for WriteDailyNote {
    type Args = Args;

    const PREVIEW: Option<fn(&Args) -> String> =
        Some(|args| format!("Note today: “{}”", args.activity));

    fn definition(&self) -> ToolDefinition {
        definition(
            "write_daily_note",
            "Write an entry to today's daily log in Obsidian. The time is added by itself.",
            json!({
                "activity": text_property("The activity or note to log"),
                "title": { "type": "string", "description": "Optional title for the entry" },
            }),
            &["activity"],
            writes(),
        )
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let notes = self.0.for_owner(&context.user)?;
        let (title, cause) = (args.title.as_deref(), Cause::call(context));
        let change = notes.write_daily(&args.activity, title, &cause).await?;
        Ok(with_message(&change, &change.message()))
    }
}
