//! `write_note`.

use adjutant_core::{Arguments, BoxFuture, Prepared, Tool, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{definition, message, read, with_message, writes};
use crate::{Cause, Notes, WRITE_CHARS_MAX};

/// Writes a new note, or adds to one.
pub(super) struct WriteNote {
    definition: ToolDefinition,
    notes: Notes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    note: String,
    content: String,
    #[serde(default)]
    append: bool,
}

impl WriteNote {
    pub(super) fn new(notes: &Notes) -> Self {
        let definition = definition(
            "write_note",
            "Write a new note into the user's vault, or add to the end of a note that exists. Existing text is never \
             changed. For what happened today use write_daily_note.",
            json!({
                "note": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Title or path of the note inside the vault, such as Ideas or Projects/Garden",
                },
                "content": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": WRITE_CHARS_MAX,
                    "description": "The text, in Markdown",
                },
                "append": {
                    "type": "boolean",
                    "description": "Add to the end if the note exists (default false: it must be new)",
                },
            }),
            &["note", "content"],
            writes(),
        );
        Self {
            definition,
            notes: notes.clone(),
        }
    }
}

impl Tool for WriteNote {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        _context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments.clone())?;
            let what = if args.append { "Add to" } else { "Write" };
            Ok(Prepared::Ready {
                arguments,
                preview: Some(format!("{what} the note “{}”", args.note)),
            })
        })
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments)?;
            let notes = self.notes.of(&context.user)?;
            let written = notes
                .write(
                    &args.note,
                    &args.content,
                    args.append,
                    &Cause::call(context),
                )
                .await?;
            let words = written.words();
            Ok(with_message(written, words))
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        message(data)
    }
}
