//! The tools of one turn: the agent's own and client-side ones.

use std::sync::LazyLock;

use adjutant_core::{ClientSide, ClientTools, Gate, InvalidClientSide, ToolSet, TurnLimits};

use crate::RunError;
use crate::inner::Inner;

/// The gate of turns without tools ([`TurnLimits::words_only`]): every call is of an unknown tool.
static NO_TOOLS: LazyLock<Gate> = LazyLock::new(Gate::default);

/// Checks the client-side tools and context of a message against the agent.
pub(crate) fn check_client(inner: &Inner, client: &ClientSide) -> Result<(), InvalidClientSide> {
    // A weak model gets one round of constrained tool calling, which cannot wait for a client.
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
    /// Returns the tools of a turn with these recorded limits and client-side tools.
    pub(crate) fn new(
        inner: &'a Inner,
        limits: &TurnLimits,
        client: Option<&ClientSide>,
    ) -> Result<Self, RunError> {
        let unusable =
            |error| RunError::CannotContinue(format!("the tools of its caller: {error}"));
        let client = client
            .map(ClientTools::compile)
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

    /// Returns the client-side tools.
    pub(crate) fn client(&self) -> &ClientTools {
        &self.client
    }

    /// Returns the tools that the model is offered. A client-side tool that was recorded with the
    /// turn wins over one of the same name that the agent got later.
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
