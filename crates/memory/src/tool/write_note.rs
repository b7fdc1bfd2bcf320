//! The tool `write_note`.

use adjutant_core::{ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, definition, with_message, writes};
use super::property::{flag_property, text_property};
use crate::{Cause, Notes, WRITE_CHARS_MAX};

/// Writes a new note, or adds to the end of one.
pub(super) struct WriteNote(pub(super) Notes);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    note: String,
    content: String,
    #[serde(default)]
    append: bool,
}

impl Operation for WriteNote {
    type Args = Args;

    const PREVIEW: Option<fn(&Args) -> String> = Some(|args| {
        let verb = if args.append { "Add to" } else { "Write" };
        format!("{verb} the note “{}”", args.note)
    });

    fn definition(&self) -> ToolDefinition {
        definition(
            "write_note",
            "Write a new note into the user's vault, or add to the end of a note that exists. Existing text is never \
             changed. For what happened today use write_daily_note.",
            json!({
                "note": text_property(
                    "Title or path of the note inside the vault, such as Ideas or Projects/Garden"
                ),
                "content": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": WRITE_CHARS_MAX,
                    "description": "The text, in Markdown",
                },
                "append": flag_property("Add to the end if the note exists (default false: it must be new)"),
            }),
            &["note", "content"],
            writes(),
        )
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let notes = self.0.for_owner(&context.user)?;
        let cause = Cause::call(context);
        let change = notes
            .write(&args.note, &args.content, args.append, &cause)
            .await?;
        Ok(with_message(&change, &change.message()))
    }
}
