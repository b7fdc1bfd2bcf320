//! The tool `forget`.

use adjutant_core::{Arguments, Prepared, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, definition, deletes, parse, with_message};
use super::property::text_property;
use crate::{Cause, Memories, MemoryError};

/// Forgets a fact, after confirmation.
pub(super) struct Forget(pub(super) Memories);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    fact: String,
}

impl Operation for Forget {
    type Args = Args;

    fn definition(&self) -> ToolDefinition {
        definition(
            "forget",
            "Forget one fact about the user that you were told. Use when the user asks to forget it. The user is asked first.",
            json!({ "fact": text_property("The fact's id, or its words") }),
            &["fact"],
            deletes(),
        )
    }

    async fn prepare(
        &self,
        context: &ToolContext,
        arguments: Arguments,
    ) -> Result<Prepared, ToolError> {
        let args: Args = parse(arguments)?;
        let facts = self.0.require(&context.user)?.facts();
        let fact = match facts.find(&args.fact).await {
            // A near match is safe: the user sees it in the confirmation.
            Err(error @ MemoryError::NoSuchFact { .. }) => {
                facts.nearest(&args.fact).await?.ok_or(error)?
            }
            found => found?,
        };
        let preview = Some(format!("Forget “{}”?", fact.content));
        // The call gets the whole text: the fact that was confirmed is the one that is forgotten,
        // even if another that matches is remembered meanwhile.
        let arguments = Arguments::from_iter([("fact".to_owned(), json!(fact.content))]);
        Ok(Prepared::Ready { arguments, preview })
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let facts = self.0.require(&context.user)?.facts();
        let change = facts.forget(&args.fact, &Cause::call(context)).await?;
        Ok(with_message(&change, &change.message()))
    }
}
