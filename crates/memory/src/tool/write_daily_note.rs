//! `write_daily_note`.

use adjutant_core::{Arguments, BoxFuture, Prepared, Tool, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{definition, message, read, with_message, writes};
use crate::{Cause, Notes};

/// Adds an entry to today's daily note.
pub(super) struct WriteDailyNote {
    definition: ToolDefinition,
    notes: Notes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    activity: String,
    #[serde(default)]
    title: Option<String>,
}

impl WriteDailyNote {
    pub(super) fn new(notes: &Notes) -> Self {
        let definition = definition(
            "write_daily_note",
            "Write an entry to today's daily log in Obsidian. The time is added by itself.",
            json!({
                "activity": { "type": "string", "minLength": 1, "description": "The activity or note to log" },
                "title": { "type": "string", "description": "Optional title for the entry" },
            }),
            &["activity"],
            writes(),
        );
        Self {
            definition,
            notes: notes.clone(),
        }
    }
}

impl Tool for WriteDailyNote {
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
            Ok(Prepared::Ready {
                arguments,
                preview: Some(format!("Note today: “{}”", args.activity)),
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
                .write_daily(&args.activity, args.title.as_deref(), &Cause::call(context))
                .await?;
            let words = written.words();
            Ok(with_message(written, words))
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        message(data)
    }
}
