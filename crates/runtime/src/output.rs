//! Output schemas of agents.

use std::sync::Arc;

use adjutant_core::{LanguageModel, OutputSchema, ToolRegistry, UnusableSchema};

use crate::BuildError;

/// Returns a compiled output schema if it can be used, and checks that the model can follow it beside the tools.
pub(crate) fn usable_output(
    schema: Result<OutputSchema, UnusableSchema>,
    model: &Arc<dyn LanguageModel>,
    tools: &ToolRegistry,
) -> Result<OutputSchema, BuildError> {
    // A weak model with tools answers in constrained actions, which cannot carry a schema.
    if model.capabilities().weak_tools && !tools.is_empty() {
        return Err(BuildError::OutputBesideWeakTools {
            model: model.id().clone(),
        });
    }
    schema.map_err(BuildError::Output)
}
