//! What a server asks of its client. Nothing is given: no model's answer, no files, no words of the person.
#![expect(
    deprecated,
    reason = "servers of earlier protocol versions still log, and ask for samples and roots"
)]

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation, ListRootsResult,
    LoggingMessageNotificationParam,
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
        self.log.say("asked for a model's answer (sampling); declined");
        Err(declined("sampling/createMessage"))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.log.say("asked for folders (roots); declined");
        Err(declined("roots/list"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.log.say("asked the person something (elicitation); declined");
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

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

fn declined(what: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("this client does not offer {what}"), None)
}
