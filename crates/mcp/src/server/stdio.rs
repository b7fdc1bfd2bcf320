//! The transport over standard input and output.

use adjutant_core::{CancellationToken, UserId};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio;

use super::McpServer;

/// An error that ended a session over standard input and output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The client did not perform the handshake of the protocol.
    #[error("the client did not open a session: {0}")]
    Handshake(String),
    /// The session was broken by an error.
    #[error("the session broke: {0}")]
    Broke(String),
}

/// Serves one client on standard input and output until it closes standard input or `stop` is
/// cancelled; then waits for running calls. Nothing else may write to standard output meanwhile.
///
/// # Errors
/// [`StdioError`]. A client that disconnects is no error.
pub async fn serve_stdio(
    server: &McpServer,
    user: UserId,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let opened = serve_server_with_ct(server.session(user), stdio(), stop.clone()).await;
    let session = match opened {
        Ok(session) => session,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(StdioError::Handshake(error.to_string())),
    };
    let ended = session.waiting().await;
    // Calls that were begun are finished although their client has gone.
    server.calls().close();
    server.calls().wait().await;
    match ended {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Broke(error.to_string())),
        Ok(other) => Err(StdioError::Broke(format!("{other:?}"))),
    }
}
