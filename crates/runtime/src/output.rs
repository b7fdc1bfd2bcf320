//! The schema of an agent's answers.

use std::sync::Arc;

use adjutant_core::{LanguageModel, OutputSchema, ToolRegistry};
use serde_json::Value;

use crate::BuildError;

/// Compiles an output schema for an agent that can keep to it.
pub(crate) fn usable_output(
    schema: Value,
    model: &Arc<dyn LanguageModel>,
    tools: &ToolRegistry,
) -> Result<OutputSchema, BuildError> {
    // Its one round of constrained actions is all such a model is asked for when there are tools.
    if model.capabilities().weak_tools && !tools.is_empty() {
        return Err(BuildError::OutputBesideWeakTools {
            model: model.id().clone(),
        });
    }
    OutputSchema::new(schema).map_err(BuildError::Output)
}
