//! Output schemas of agents.

use std::sync::Arc;

use adjutant_core::{LanguageModel, OutputSchema, ToolRegistry};
use serde_json::Value;

use crate::BuildError;

/// Compiles an output schema, and checks that the model can follow it beside the tools.
pub(crate) fn usable_output(
    schema: Value,
    model: &Arc<dyn LanguageModel>,
    tools: &ToolRegistry,
) -> Result<OutputSchema, BuildError> {
    // A weak model with tools answers in constrained actions, which cannot carry a schema.
    if model.capabilities().weak_tools && !tools.is_empty() {
        return Err(BuildError::OutputBesideWeakTools {
            model: model.id().clone(),
        });
    }
    OutputSchema::new(schema).map_err(BuildError::Output)
}
