//! One client.
#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and the versions before have it")]

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::port::StoreError;
use adjutant_core::{Arguments, PendingCall, Permission, ToolDefinition, ToolName, UserId};
use adjutant_runtime::HumanCall;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, ServerConfig,
    SetLevelRequestParams, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::McpServer;
use super::ask::{Answer, TOKEN, Way, answer_in, ask, input_required};
use super::confirmation::{NotConfirmed, Token};
use super::describe::{describe, has_argument};
use super::result::{confirmation_required, declined, done, failed};

/// How often a client that wants to know is told that a call still runs.
const PROGRESS: Duration = Duration::from_secs(1);

/// What answers one client, as one user.
#[derive(Debug)]
pub struct Session {
    server: McpServer,
    user: UserId,
    /// From which level on the client wants to hear what is done. `None`: it did not say, and hears nothing.
    level: Mutex<Option<LoggingLevel>>,
}

/// A client that asks for a tool.
struct Call<'a> {
    session: &'a Session,
    definition: &'a ToolDefinition,
    context: &'a RequestContext<RoleServer>,
    arguments: Arguments,
}

impl Session {
    pub(super) fn new(server: McpServer, user: UserId) -> Self {
        Self { server, user, level: Mutex::new(None) }
    }

    /// Whose it is.
    #[must_use]
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// How the person is asked before this tool runs, if they are.
    fn way(&self, definition: &ToolDefinition, context: &RequestContext<RoleServer>) -> Option<Way> {
        (self.server.agent().permission(&self.user, definition) == Permission::Confirm)
            .then(|| Way::of(context))
            // A tool with such an argument of its own would get the token.
            .filter(|way| *way != Way::TwoSteps || !has_argument(definition, TOKEN))
    }

    /// The tools this user may use; those that never run are not shown.
    fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        let agent = self.server.agent();
        agent
            .tools()
            .names()
            .map(ToolName::as_str)
            .filter_map(|name| self.server.definition(name))
            .filter(|definition| agent.permission(&self.user, definition) != Permission::Deny)
    }

    /// A page of the tools, after the one that the cursor names.
    fn page(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all: Vec<&ToolDefinition> = self.tools().collect();
        let start = match cursor {
            None => 0,
            Some(cursor) => match all.iter().position(|tool| tool.name.as_str() == cursor) {
                Some(last) => last + 1,
                None => {
                    return Err(ErrorData::invalid_params(
                        "there is no such cursor; start again without",
                        None,
                    ));
                }
            },
        };
        let rest = all.get(start..).unwrap_or_default();
        let page = rest.get(..self.server.shared.page).unwrap_or(rest);
        let more = rest.len() > page.len();
        let tools = page.iter().map(|tool| describe(tool, self.way(tool, context))).collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = page.last().filter(|_| more).map(|last| last.name.to_string());
        Ok(result)
    }

    /// Tells the client, if it wants to hear that.
    async fn log(&self, level: LoggingLevel, data: Value, context: &RequestContext<RoleServer>) {
        let wanted =
            context.meta.log_level().or_else(|| *self.level.lock().unwrap_or_else(PoisonError::into_inner));
        if wanted.is_some_and(|wanted| level as u8 >= wanted as u8) {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger("tools");
            // A client that is gone hears nothing.
            let _ = context.peer.notify_logging_message(message).await;
        }
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        self.server.info()
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.definition(name).map(|definition| describe(definition, None))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.page(request.and_then(|request| request.cursor).as_deref(), &context)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(definition) = self.server.definition(&request.name) else {
            return Err(ErrorData::invalid_params(self.server.agent().tools().unknown(&request.name), None));
        };
        let _running = self.server.calls().token();
        let call = Call {
            session: self,
            definition,
            context: &context,
            arguments: request.arguments.unwrap_or_default(),
        };
        let again = request.request_state.map(|state| (state, request.input_responses.unwrap_or_default()));
        let response = watched(call.respond(again), definition, &context).await;
        let (level, outcome) = match &response {
            CallToolResponse::Complete(result) if result.is_error == Some(true) => {
                (LoggingLevel::Warning, "failed")
            }
            CallToolResponse::Complete(result) => match &result.structured_content {
                Some(content) if content["success"] == json!(true) => (LoggingLevel::Info, "done"),
                _ => (LoggingLevel::Notice, "not done"),
            },
            _ => (LoggingLevel::Notice, "not done"),
        };
        let data = json!({ "tool": definition.name, "outcome": outcome });
        self.log(level, data, &context).await;
        Ok(response)
    }
}

impl Call<'_> {
    /// Runs it, or asks first. `again`: it was asked before, and this came back.
    async fn respond(mut self, again: Option<(String, rmcp::model::InputResponses)>) -> CallToolResponse {
        let way = self.session.way(self.definition, self.context);
        match (way, again) {
            (Some(Way::TwoSteps), _) => match self.arguments.shift_remove(TOKEN) {
                None => self.first(way).await,
                Some(Value::String(token)) => self.confirmed_by(&token).await.into(),
                Some(_) => failed(&format!("{TOKEN} is text; nothing was done")).into(),
            },
            (Some(Way::InputRequired), Some((state, responses))) => match answer_in(&responses) {
                Answer::Yes => self.confirmed_by(&state).await.into(),
                answer => not_agreed(answer).into(),
            },
            (_, _) => self.first(way).await,
        }
    }

    /// A call nobody has agreed to yet.
    async fn first(&self, way: Option<Way>) -> CallToolResponse {
        let pending = match self.through_the_gate(None).await {
            Ok(HumanCall::Confirm(pending)) => self.confirmations().shown(pending),
            other => return self.ended(other).into(),
        };
        match way {
            None => {
                failed("nothing was done: a person has to confirm it, and this client cannot ask one").into()
            }
            Some(Way::TwoSteps) => confirmation_required(&pending, &self.token(&pending)).into(),
            Some(Way::InputRequired) => input_required(&pending, self.token(&pending)).into(),
            Some(Way::Elicitation) => {
                match ask(self.context, &pending, self.confirmations().expiry()).await {
                    Answer::Yes => self.ended(self.through_the_gate(Some(&pending)).await),
                    answer => not_agreed(answer),
                }
                .into()
            }
        }
    }

    /// A call that somebody has agreed to, if the token is its own.
    async fn confirmed_by(&self, token: &str) -> CallToolResult {
        let Some(token) = Token::read(token) else { return refused(NotConfirmed::Unknown) };
        let named = token.named(self.definition.name.as_str());
        let pending = match self.through_the_gate(Some(&named)).await {
            Ok(HumanCall::Confirm(pending)) => pending,
            other => return self.ended(other),
        };
        match self.confirmations().confirm(&token, &self.session.user, pending) {
            Ok(pending) => self.ended(self.through_the_gate(Some(&pending)).await),
            Err(reason) => refused(reason),
        }
    }

    async fn through_the_gate(&self, approved: Option<&PendingCall>) -> Result<HumanCall, StoreError> {
        let (name, cancelled) = (self.definition.name.as_str(), self.context.ct.clone());
        let arguments = self.arguments.clone();
        self.session
            .server
            .agent()
            .call_tool_until(&self.session.user, name, arguments, approved, cancelled)
            .await
    }

    /// What became of a call that needs no answer of a person any more.
    fn ended(&self, came: Result<HumanCall, StoreError>) -> CallToolResult {
        match came {
            Ok(HumanCall::Done { invocation, .. }) => done(&invocation.result),
            Ok(HumanCall::Ask(question)) => failed(&question),
            Ok(HumanCall::Refused(message)) => failed(&message),
            // It was agreed to too late, or what it would touch has changed since.
            Ok(HumanCall::Confirm(_)) => refused(NotConfirmed::Expired),
            Err(error) => {
                (self.session.server.shared.report)(&error);
                failed(
                    "the store did not answer; the call may or may not have been carried out: look before trying again",
                )
            }
        }
    }

    fn token(&self, pending: &PendingCall) -> String {
        self.confirmations().token(&self.session.user, pending)
    }

    fn confirmations(&self) -> &super::Confirmations {
        &self.session.server.shared.confirmations
    }
}

fn not_agreed(answer: Answer) -> CallToolResult {
    declined(match answer {
        Answer::Nothing => "Nobody answered whether it may be done; nothing was done.",
        Answer::Yes | Answer::No => "The person did not agree; nothing was done. Do not ask again.",
    })
}

fn refused(reason: NotConfirmed) -> CallToolResult {
    let reason = match reason {
        NotConfirmed::Unknown => "is not for this call with these arguments",
        NotConfirmed::Expired => "came too late, or what it was for has changed",
        NotConfirmed::Used => "has been used",
    };
    failed(&format!(
        "nothing was done: the {TOKEN} {reason}. Call without it for a new preview, and ask the person again"
    ))
}

/// The same, while the client is told that it still runs, if it wants to know.
async fn watched<T>(
    call: impl Future<Output = T>,
    definition: &ToolDefinition,
    context: &RequestContext<RoleServer>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return call.await };
    let mut call = std::pin::pin!(call);
    let mut seconds = 0.0;
    loop {
        tokio::select! {
            ended = &mut call => return ended,
            () = tokio::time::sleep(PROGRESS) => {
                seconds += PROGRESS.as_secs_f64();
                let told = ProgressNotificationParam::new(token.clone(), seconds)
                    .with_message(format!("{} has been running for {seconds} s", definition.name));
                // A client that is gone hears nothing.
                let _ = context.peer.notify_progress(told).await;
            }
        }
    }
}
