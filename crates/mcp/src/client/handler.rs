//! Requests of a server to its client. Sampling and roots are declined, and elicitation is closed
//! without an answer: a server gets no model answer, no files and no input of the user.
#![expect(
    deprecated,
    reason = "servers of earlier protocol versions still log, and ask for samples and roots"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use adjutant_core::{ProgressListener, ToolProgress};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use super::log::ServerLog;
use crate::lock::lock;

/// The handler for one server's requests and notifications.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) log: ServerLog,
    /// Notified when the server announces a change of its tools.
    pub(super) tools_changed: Arc<Notify>,
    /// The listeners to the progress of calls.
    pub(super) progress: ProgressListeners,
}

/// Listeners to progress notifications, by the tokens of the calls.
#[derive(Clone, Default)]
pub(super) struct ProgressListeners(Arc<Mutex<HashMap<ProgressToken, ProgressListener>>>);

/// A subscription to a call's progress, which ends when this is dropped.
pub(super) struct ProgressSubscription {
    listeners: ProgressListeners,
    token: ProgressToken,
}

impl ProgressListeners {
    /// Subscribes `listener` to the progress of the call with this token.
    pub(super) fn subscribe(
        &self,
        token: ProgressToken,
        listener: ProgressListener,
    ) -> ProgressSubscription {
        lock(&self.0).insert(token.clone(), listener);
        ProgressSubscription {
            listeners: self.clone(),
            token,
        }
    }
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        lock(&self.listeners.0).remove(&self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let software = Implementation::new("adjutant", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), software)
            // `Connection::open` tries the later handshake, too.
            .with_protocol_version(rmcp::model::ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.log
            .write("asked for a model's answer (sampling); declined");
        Err(declined("sampling/createMessage"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.log.write("asked for folders (roots); declined");
        Err(declined("roots/list"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.log
            .write("asked the person something (elicitation); closed without an answer");
        // A refusal would be a choice of the person, who was not asked.
        Ok(ElicitResult::new(ElicitationAction::Cancel))
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let words = match message.data {
            serde_json::Value::String(words) => words,
            other => other.to_string(),
        };
        self.log.write(&words);
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // Cloned, so that no lock is held while the listener is called.
        let listener = lock(&self.progress.0)
            .get(&notification.progress_token)
            .cloned();
        if let Some(listener) = listener {
            listener.report(ToolProgress::new(
                notification.progress,
                notification.total,
                notification.message.as_deref(),
            ));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

fn declined(what: &str) -> ErrorData {
    ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("this client does not offer {what}"),
        None,
    )
}
