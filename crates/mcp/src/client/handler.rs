//! What a server asks of its client. Nothing is given: no model's answer, no files, no words of the
//! person.
#![expect(
    deprecated,
    reason = "servers of earlier protocol versions still log, and ask for samples and roots"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Answers one server.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) log: ServerLog,
    /// Told when the server says that its tools are others now.
    pub(super) tools_changed: Arc<Notify>,
    /// The listeners to the progress of calls.
    pub(super) progress: Heard,
}

/// Those who hear how far calls are, by the tokens of the calls.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<HashMap<ProgressToken, ProgressListener>>>);

/// Somebody hears how far a call is, until this is dropped.
pub(super) struct Hearing {
    heard: Heard,
    token: ProgressToken,
}

impl Heard {
    /// Lets `listener` hear how far the call is whose request has this token.
    pub(super) fn by(&self, token: ProgressToken, listener: ProgressListener) -> Hearing {
        self.calls().insert(token.clone(), listener);
        Hearing {
            heard: self.clone(),
            token,
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, ProgressListener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.heard.calls().remove(&self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let software = Implementation::new("adjutant", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), software)
            .with_protocol_version(rmcp::model::ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.log
            .say("asked for a model's answer (sampling); declined");
        Err(declined("sampling/createMessage"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.log.say("asked for folders (roots); declined");
        Err(declined("roots/list"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.log
            .say("asked the person something (elicitation); declined");
        Ok(ElicitResult::new(ElicitationAction::Decline))
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
        self.log.say(&words);
    }

    async fn on_progress(
        &self,
        said: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let listener = self.progress.calls().get(&said.progress_token).cloned();
        if let Some(listener) = listener {
            listener.tell(ToolProgress::new(
                said.progress,
                said.total,
                said.message.as_deref(),
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
