//! The tools of one turn: the agent's, unless the turn has none, and those that its caller
//! executes.

use std::sync::LazyLock;

use adjutant_core::{ClientSide, ClientTools, Gate, InvalidClientSide, ToolSet, TurnLimits};

use crate::RunError;
use crate::inner::Inner;

/// The gate of turns that are words and nothing else: it knows no tool, whatever a model calls.
static NO_TOOLS: LazyLock<Gate> = LazyLock::new(Gate::default);

/// Checks what the sender of a message brings along, for an agent that can use it.
pub(crate) fn check_client(inner: &Inner, client: &ClientSide) -> Result<(), InvalidClientSide> {
    // Its one round of constrained actions is all that such a model is asked for when there are
    // tools.
    if !client.tools.is_empty() && inner.model.capabilities().weak_tools {
        return Err(InvalidClientSide::WeakModel {
            model: inner.model.id().clone(),
        });
    }
    client.check(&inner.gate.registry)
}

/// The tools of one turn, as they are recorded with it.
pub(crate) struct TurnTools<'a> {
    gate: &'a Gate,
    client: ClientTools,
}

impl<'a> TurnTools<'a> {
    /// Returns the tools of a turn that was started with these bounds and this of its caller.
    pub(crate) fn of(
        inner: &'a Inner,
        limits: &TurnLimits,
        client: Option<&ClientSide>,
    ) -> Result<Self, RunError> {
        let unusable =
            |error| RunError::CannotContinue(format!("the tools of its caller: {error}"));
        let client = client
            .map(ClientTools::of)
            .transpose()
            .map_err(unusable)?
            .unwrap_or_default();
        Ok(if limits.words_only {
            Self {
                gate: &NO_TOOLS,
                client: ClientTools::default(),
            }
        } else {
            Self {
                gate: &inner.gate,
                client,
            }
        })
    }

    /// Returns the gate in front of the tools that are executed here.
    pub(crate) fn gate(&self) -> &'a Gate {
        self.gate
    }

    /// Returns the tools that the caller executes.
    pub(crate) fn client(&self) -> &ClientTools {
        &self.client
    }

    /// Returns what a model is offered. What was recorded with the turn holds: of two tools of one
    /// name it is the caller's, if the agent got its own later.
    pub(crate) fn offered(&self) -> ToolSet {
        let own = self.gate.registry.tool_set();
        if self.client.is_empty() {
            return own;
        }
        let own = own
            .iter()
            .filter(|tool| !self.client.has(tool.name.as_str()));
        own.chain(self.client.definitions()).cloned().collect()
    }
}
