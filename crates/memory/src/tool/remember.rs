//! `remember`.

use adjutant_core::{Arguments, BoxFuture, Prepared, Tool, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{definition, message, read, with_message, writes};
use crate::{Cause, FACT_CHARS_MAX, Memories, MemoryError, NewFact};

/// Remembers a fact about the person.
pub(super) struct Remember {
    definition: ToolDefinition,
    memories: Memories,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    fact: String,
    #[serde(default)]
    important: bool,
    #[serde(default)]
    corrects: Option<String>,
}

impl Remember {
    pub(super) fn new(memories: &Memories) -> Self {
        let definition = definition(
            "remember",
            "Remember one lasting fact about the user for later conversations, or correct one that you were told. Use when \
             the user says something about themselves that will still matter, or asks to remember it. One fact per call.",
            json!({
                "fact": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": FACT_CHARS_MAX,
                    "description": "The fact as one sentence that is clear without this conversation",
                },
                "important": {
                    "type": "boolean",
                    "description": "True only if it matters in every conversation (default false)",
                },
                "corrects": {
                    "type": "string",
                    "description": "The id of the fact that this one takes the place of, as you were told it; leave it out if both are true",
                },
            }),
            &["fact"],
            writes(),
        );
        Self {
            definition,
            memories: memories.clone(),
        }
    }
}

impl Tool for Remember {
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
                preview: Some(format!("Remember “{}”", args.fact)),
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
            let memory = self
                .memories
                .of(&context.user)
                .ok_or(MemoryError::NotYours)?;
            let facts = memory.facts();
            let corrects = args
                .corrects
                .as_deref()
                .filter(|which| !which.trim().is_empty());
            let said = &*context.message;
            let new = NewFact {
                words: &args.fact,
                important: args.important,
                corrects,
                said,
            };
            let near = match corrects {
                Some(_) => None,
                None => facts.contradicted_by(&args.fact, said).await?,
            };
            let change = facts.remember(&new, &Cause::call(context)).await?;
            let words = change.words();
            let mut data = with_message(change, words);
            if let Some(near) = near {
                data["beside"] = json!({ "id": near.id, "fact": near.content });
                data["note"] = json!(
                    "Both are kept. Ask the user which is true, unless they said so; then call remember with corrects."
                );
            }
            Ok(data)
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        message(data)
    }
}
