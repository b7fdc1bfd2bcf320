//! Over standard input and output.

use adjutant_core::{CancellationToken, UserId};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio;

use super::McpServer;

/// Why a session over standard input and output did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The client did not open the session as the protocol says.
    #[error("the client did not open a session: {0}")]
    Handshake(String),
    /// The session broke.
    #[error("the session broke: {0}")]
    Broke(String),
}

/// Answers one client on standard input and output until it closes standard input or `stop` fires;
/// then calls that run are waited for. Nothing else may write to standard output meanwhile.
///
/// # Errors
/// [`StdioError`]. A client that goes is none.
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
    server.calls().close();
    server.calls().wait().await;
    match ended {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Broke(error.to_string())),
        Ok(other) => Err(StdioError::Broke(format!("{other:?}"))),
    }
}
