use std::future::Future;

use adjutant_core::CancellationToken;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, ServeError, Service, ServiceConfig};

use crate::Result;

/// From an agent to a service in one line.
pub trait Serve {
    /// The agent's page, its HTTP API (`/docs` has it), AG-UI, OpenAI's chat completions and MCP at
    /// `address` (an address of numbers and a port) until the future is dropped. What a crash left
    /// open in the agent's journal goes on.
    ///
    /// For this machine alone: everybody on it is the one local user. Beyond it, who asks has to be
    /// known: [`Service::bind`] with tokens.
    ///
    /// # Errors
    /// [`Error::Serve`](crate::Error::Serve): the address is none, is taken, or is not this
    /// machine's own.
    fn serve(&self, address: &str) -> impl Future<Output = Result<()>> + Send;
}

impl Serve for Agent {
    async fn serve(&self, address: &str) -> Result<()> {
        let bind = address.parse().map_err(|_| ServeError::Address {
            given: address.to_owned(),
        })?;
        let service = Service::bind(self.clone(), ServiceConfig::new(bind, Auth::None)).await?;
        // What cannot go on now is tried again and again; a program that wants to hear of it
        // subscribes to events of `tracing`.
        Ok(service.run(CancellationToken::new()).await?)
    }
}
