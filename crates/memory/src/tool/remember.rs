//! The tool `remember`.

use adjutant_core::{ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, definition, with_message, writes};
use super::property::flag_property;
use crate::{Cause, FACT_CHARS_MAX, Memories, NewFact};

/// Remembers a fact about the user, or corrects one.
pub(super) struct Remember(pub(super) Memories);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    fact: String,
    #[serde(default)]
    important: bool,
    corrects: Option<String>,
}

impl Operation for Remember {
    type Args = Args;

    const RECALLED: Option<&'static str> = Some("fact");

    const PREVIEW: Option<fn(&Args) -> String> = Some(|args| format!("Remember “{}”", args.fact));

    fn definition(&self) -> ToolDefinition {
        definition(
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
                "important": flag_property("True only if it matters in every conversation (default false)"),
                "corrects": {
                    "type": "string",
                    "description": "The id of the fact that this one takes the place of, as you were told it; leave it out if both are true",
                },
            }),
            &["fact"],
            writes(),
        )
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let facts = self.0.require(&context.user)?.facts();
        // Models send an empty string for an argument that they mean to leave out.
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
        // Before the change: a text that is stored contradicts nothing any more.
        let contradicted = match corrects {
            Some(_) => None,
            None => facts.contradicted_by(&args.fact, said).await?,
        };
        let change = facts.remember(&new, &Cause::call(context)).await?;
        let mut data = with_message(&change, &change.message());
        if let Some(contradicted) = contradicted {
            data["beside"] = json!({ "id": contradicted.id, "fact": contradicted.content });
            data["note"] = json!(
                "Both are kept. Ask the user which is true, unless they said so; then call remember with corrects."
            );
        }
        Ok(data)
    }
}
