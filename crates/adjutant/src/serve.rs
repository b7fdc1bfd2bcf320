//! [`Serve`]: serves an agent over HTTP in one line.

use std::future::Future;

use adjutant_core::CancellationToken;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, ServeError, Service, ServiceConfig};

use crate::Result;

/// Serves an agent over HTTP in one line.
///
/// # Examples
///
/// ```no_run
/// use adjutant::prelude::*;
/// use adjutant::scripted::{ScriptedModel, text};
///
/// # #[tokio::main]
/// # async fn main() -> adjutant::Result<()> {
/// let agent = Agent::builder("helper")
///     .model(ScriptedModel::new([text("Hello.")]))
///     .instruction("Be brief.")
///     .build()?;
/// agent.serve("127.0.0.1:8080").await?;
/// # Ok(())
/// # }
/// ```
pub trait Serve {
    /// Serves the agent's web page, its HTTP API (documented at `/docs`), AG-UI, OpenAI's chat
    /// completions and MCP at `address` (an IP address and a port) until the future is dropped.
    /// Turns that a crash left open in the agent's journal are recovered.
    ///
    /// For this machine only: every client is the one local user. For other addresses, authenticate
    /// clients with [`Service::bind`].
    ///
    /// # Errors
    /// [`Error::Serve`](crate::Error::Serve): the address is invalid, in use, or reachable from other
    /// machines.
    fn serve(&self, address: &str) -> impl Future<Output = Result<()>> + Send;
}

impl Serve for Agent {
    async fn serve(&self, address: &str) -> Result<()> {
        // The parser says no more than that it is no address.
        let bind = address.parse().map_err(|_| ServeError::Address {
            given: address.to_owned(),
        })?;
        let service = Service::bind(self.clone(), ServiceConfig::new(bind, Auth::None)).await?;
        // Failures of recovery are retried, and reported as events of `tracing`.
        Ok(service.run(CancellationToken::new()).await?)
    }
}
