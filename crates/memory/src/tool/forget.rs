//! `forget`.

use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, Tool, ToolContext, ToolDefinition, ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{definition, message, read, with_message, writes};
use crate::{Cause, Memories, MemoryError};

/// Forgets a fact, after the person said yes.
pub(super) struct Forget {
    definition: ToolDefinition,
    memories: Memories,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    fact: String,
}

impl Forget {
    pub(super) fn new(memories: &Memories) -> Self {
        let annotations = Annotations {
            destructive: true,
            ..writes()
        };
        let definition = definition(
            "forget",
            "Forget one fact about the user that you were told. Use when the user asks to forget it. The user is asked first.",
            json!({
                "fact": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The fact's id, or its words",
                },
            }),
            &["fact"],
            annotations,
        );
        Self {
            definition,
            memories: memories.clone(),
        }
    }
}

impl Tool for Forget {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments)?;
            let memory = self
                .memories
                .of(&context.user)
                .ok_or(MemoryError::NotYours)?;
            // What is asked is what is done, whatever is remembered meanwhile.
            let facts = memory.facts();
            let fact = match facts.find(&args.fact).await {
                // The person says whether it is the one.
                Err(error @ MemoryError::NoSuchFact { .. }) => {
                    facts.nearest(&args.fact).await?.ok_or(error)?
                }
                found => found?,
            };
            let preview = Some(format!("Forget “{}”?", fact.content));
            let arguments = json!({ "fact": fact.content })
                .as_object()
                .cloned()
                .unwrap_or_default();
            Ok(Prepared::Ready { arguments, preview })
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
            let change = memory
                .facts()
                .forget(&args.fact, &Cause::call(context))
                .await?;
            let words = change.words();
            Ok(with_message(change, words))
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        message(data)
    }
}
