//! One call of a server's tool: its request, its cancellation, and the meaning of an answer or of
//! none.

use std::time::Duration;

use adjutant_core::{Arguments, ToolContext, ToolError};
use rmcp::Peer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientNotification, ClientRequest,
    CustomNotification, ErrorCode, ErrorData, RequestId, RequestParamsMeta as _, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RoleClient, ServiceError};
use serde_json::json;
use tokio::sync::oneshot;
use tracing::warn;

use super::ServerName;
use super::definition::one_line;
use super::failure::{is_certainly_unsent, is_lost_with_session, message, transport_message};
use super::handler::Handler;
use crate::extension;

/// Time to wait for an answer after a call was cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Most characters of a server's words about a call that it refuses.
const REFUSAL_MAX: usize = 1_000;

/// A call of a tool.
pub(super) struct Call<'a> {
    pub(super) server: &'a ServerName,
    pub(super) handler: &'a Handler,
    pub(super) tool: &'a str,
    /// True if the tool changes nothing, so that a lost answer is no doubt.
    pub(super) harmless: bool,
}

impl Call<'_> {
    /// Sends the call, with the context's trace in `_meta`, and waits for its result. `None`: the
    /// tool returns nothing.
    ///
    /// When cancelled, it notifies the server and, unless the tool is harmless, waits a little for
    /// an answer. When dropped, it notifies the server.
    ///
    /// # Errors
    /// [`ToolError::Failed`] or [`ToolError::Invalid`] if the call was not carried out;
    /// [`ToolError::Unknown`] if the request was sent and no answer came.
    pub(super) async fn send(
        &self,
        peer: Peer<RoleClient>,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<Option<CallToolResult>, ToolError> {
        let (server, tool) = (self.server, self.tool);
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = &context.trace {
            params.set_traceparent(&trace.traceparent());
            trace
                .tracestate()
                .into_iter()
                .for_each(|state| params.set_tracestate(state));
        }
        if is_adjutant(&peer) {
            let conversation = context.conversation.to_string();
            params
                .meta_mut()
                .get_or_insert_default()
                .insert(extension::CALLED_IN.to_owned(), conversation.into());
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await;
        // The queue in front of the connection was closed, so the request did not leave this
        // process.
        let handle = sent.map_err(|_| {
            ToolError::failed(format!(
                "the MCP server {server} has just gone; nothing was sent to it"
            ))
        })?;
        // Kept until the answer: dropping it ends the subscription.
        let _subscription = self
            .handler
            .progress
            .subscribe(handle.progress_token.clone(), context.progress.clone());
        let mut cancel_on_drop = CancelOnDrop {
            request: Some((peer, handle.id.clone())),
        };
        let mut answer = handle.rx;
        tokio::select! {
            answer = &mut answer => {
                cancel_on_drop.request = None;
                return self.decode(answer);
            }
            () = context.cancelled.cancelled() => {}
        }
        let stopped = format!("{tool} of the MCP server {server}: it was stopped");
        if self.harmless {
            // A harmless call is not in doubt, so its end need not be awaited.
            drop(cancel_on_drop);
            return Err(self.unanswered(&stopped));
        }
        cancel_on_drop.cancel().await;
        match tokio::time::timeout(CANCEL_TIMEOUT, answer).await {
            // An error says that the call stopped, not how far it had come.
            Ok(Ok(Ok(answer))) => self.decode(Ok(Ok(answer))),
            Ok(_) => Err(self.unanswered(&format!("{stopped} half-way"))),
            Err(_) => {
                let message = format!("{stopped}, and the server did not say what became of it");
                Err(self.unanswered(&message))
            }
        }
    }

    fn decode(
        &self,
        answer: Result<Result<ServerResult, ServiceError>, oneshot::error::RecvError>,
    ) -> Result<Option<CallToolResult>, ToolError> {
        let (server, tool) = (self.server, self.tool);
        let message = match answer {
            Ok(Ok(ServerResult::CallToolResult(answer))) => return Ok(Some(answer)),
            // A tool that returns nothing, from a server that leaves out `content`.
            Ok(Ok(ServerResult::EmptyResult(_))) => return Ok(None),
            Ok(Ok(ServerResult::InputRequiredResult(_))) => {
                return Err(ToolError::failed(format!(
                    "{tool} asks for further input, which is not given here; it was not carried out"
                )));
            }
            Ok(Ok(ServerResult::CreateTaskResult(_))) => format!(
                "the MCP server {server} carries {tool} out later, which cannot be followed here"
            ),
            Ok(Ok(_)) => format!("the MCP server {server} gave {tool} an answer that is none"),
            Ok(Err(ServiceError::McpError(error))) if is_lost_with_session(&error) => format!(
                "the session with the MCP server {server} was lost before {tool} was answered"
            ),
            Ok(Err(ServiceError::McpError(error))) => {
                return Err(self.refused(&error));
            }
            Ok(Err(ServiceError::TransportSend(error))) if is_certainly_unsent(&error) => {
                return Err(ToolError::failed(format!(
                    "the MCP server {server} did not take the request ({}); it was not carried out",
                    transport_message(&error)
                )));
            }
            Ok(Err(error)) => {
                let error = message(&error);
                warn!(%server, tool, error, "the MCP server did not answer");
                self.handler.log.write(&error);
                format!("the MCP server {server} did not answer {tool} ({error})")
            }
            Err(_) => {
                warn!(%server, tool, "the MCP server ended before it answered");
                format!("the MCP server {server} ended before it answered {tool}")
            }
        };
        Err(self.unanswered(&message))
    }

    /// Returns the error of a call that the server refuses, with the server's words.
    fn refused(&self, error: &ErrorData) -> ToolError {
        let server = self.server;
        let data = error.data.as_ref().map(ToString::to_string);
        let data = data.map(|data| format!(" ({data})")).unwrap_or_default();
        let words = one_line(&format!("{}{data}", error.message));
        // They go to a model and to terminals.
        let words: String = words.chars().take(REFUSAL_MAX).collect();
        if error.code == ErrorCode::INVALID_PARAMS {
            ToolError::invalid(format!(
                "the MCP server {server} refuses the arguments: {words}"
            ))
        } else {
            ToolError::failed(format!("the MCP server {server} says: {words}"))
        }
    }

    /// Returns the error of a call that may have been carried out.
    fn unanswered(&self, message: &str) -> ToolError {
        if self.harmless {
            ToolError::failed(format!(
                "{message}; it changes nothing and can be called again"
            ))
        } else {
            ToolError::Unknown {
                message: format!("{message}; it may or may not have been carried out"),
            }
        }
    }
}

/// Returns true if the server is one of ours, which has to know the conversation of the calling
/// agent.
fn is_adjutant(peer: &Peer<RoleClient>) -> bool {
    let info = peer.peer_info();
    let experimental = info
        .as_ref()
        .and_then(|info| info.capabilities.experimental.as_ref());
    experimental.is_some_and(|known| known.contains_key(extension::SERVER))
}

/// A request that is cancelled at the server when this is dropped.
struct CancelOnDrop {
    request: Option<(Peer<RoleClient>, RequestId)>,
}

impl CancelOnDrop {
    /// Sends the cancellation by hand: the library's own function also discards an answer that
    /// still comes.
    fn cancel(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let request = self.request.take();
        async move {
            if let Some((peer, id)) = request {
                let params = json!({ "requestId": id, "reason": "nobody waits for it any more" });
                let cancelled = CustomNotification::new("notifications/cancelled", Some(params));
                let sent =
                    peer.send_notification(ClientNotification::CustomNotification(cancelled));
                // A server that has gone needs no cancellation.
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, sent).await;
            }
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.request.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(self.cancel());
        }
    }
}
