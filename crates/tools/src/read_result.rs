//! `read_result`: the rest of a tool result that the model was shown in part. The whole result is
//! in the journal.

use std::sync::Arc;

use adjutant_core::port::{Journal, StoreError};
use adjutant_core::turn::{READ_RESULT, text_of};
use adjutant_core::{
    Annotations, Arguments, BoxFuture, ConversationKey, Event, Recorded, Tool, ToolContext,
    ToolDefinition, ToolError, ToolResult,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::parse_arguments;

/// Length of a piece, in characters, if the model asks for none.
const LENGTH: usize = 8_000;
/// The greatest length that the model may ask for, in characters.
const LENGTH_MAX: usize = 50_000;

/// Growth of the search: a result that is not among the last turns is searched for among this many
/// times as many.
const MORE_TURNS: u32 = 4;

const UNREADABLE: &str = "The conversation could not be read at the moment. Please try again.";

/// The tool `read_result`, which shows further parts of a long result of the conversation.
pub struct ReadResult {
    definition: ToolDefinition,
    journal: Arc<dyn Journal>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    call: String,
    #[serde(default)]
    from: usize,
    length: Option<usize>,
}

impl ReadResult {
    /// Creates the tool over the journal that the agent writes.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "call": { "type": "string", "description": "The call whose result was shown in part" },
                "from": { "type": "integer", "minimum": 0, "description": "First character, from 0 (default: 0)" },
                "length": {
                    "type": "integer", "minimum": 1, "maximum": LENGTH_MAX,
                    "description": "How many characters (default: 8000)",
                },
            },
            "required": ["call"],
            "additionalProperties": false,
        });
        let description = "Read on in a tool result of this conversation that was shown in part.";
        #[expect(
            clippy::expect_used,
            reason = "name and description are constants, tested"
        )]
        let definition =
            ToolDefinition::new(READ_RESULT, description, schema).expect("a valid definition");
        let annotations = Annotations {
            read_only: true,
            idempotent: true,
            // It reads the journal of this conversation and nothing else.
            closed_world: true,
            ..Annotations::default()
        };
        Self {
            definition: definition.annotated(annotations),
            journal,
        }
    }
}

impl Tool for ReadResult {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let Args { call, from, length } = parse_arguments(arguments)?;
            let key = context.conversation_key();
            let result = self
                .search(&key, &call)
                .await
                // The store's message may name hosts and files, and the user may read this one.
                .map_err(|_| ToolError::failed(UNREADABLE))?
                .ok_or_else(|| {
                    ToolError::failed(format!(
                        "no call {call:?} of this conversation has a result"
                    ))
                })?;
            let text = result
                .data
                .as_deref()
                .map(text_of)
                .or_else(|| result.error.clone())
                .unwrap_or_default();
            let chars = text.chars().count();
            let from = from.min(chars);
            let to = from.saturating_add(length.unwrap_or(LENGTH)).min(chars);
            // By characters: a cut inside of one would not be text.
            let piece: String = text.chars().skip(from).take(to - from).collect();
            Ok(json!({ "text": piece, "from": from, "to": to, "of": chars }))
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        Some(format!(
            "Read characters {} to {} of {}.",
            data.get("from")?,
            data.get("to")?,
            data.get("of")?
        ))
    }
}

impl ReadResult {
    /// Searches for the result of a call, from the newest turn backwards: usually it belongs to the
    /// turn that asks.
    async fn search(
        &self,
        key: &ConversationKey,
        call: &str,
    ) -> Result<Option<ToolResult>, StoreError> {
        // Most results that are read on belong to this turn, so older turns are not loaded at
        // first.
        let mut turns = 1_u32;
        loop {
            let Some(read) = self.journal.load_turns(key, None, turns).await? else {
                return Ok(None);
            };
            let result = read
                .events
                .iter()
                .rev()
                .find_map(|recorded| result_of(recorded, call));
            if result.is_some() || read.after == 0 {
                return Ok(result.cloned());
            }
            turns = turns.saturating_mul(MORE_TURNS);
        }
    }
}

/// Returns the result of the call, if the event has it: the end of a call, or a history that was
/// set from outside.
fn result_of<'r>(recorded: &'r Recorded, wanted: &str) -> Option<&'r ToolResult> {
    match &*recorded.event {
        Event::CallFinished { call, result, .. } if call.as_str() == wanted => Some(result),
        Event::HistorySet { messages, .. } => messages.iter().find_map(|message| {
            let (call, _, result) = message.tool_result()?;
            (call.as_str() == wanted).then_some(result)
        }),
        _ => None,
    }
}
