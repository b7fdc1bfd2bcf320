//! The session of one client.
#![expect(
    deprecated,
    reason = "logging is deprecated from 2026-07-28 on, and the versions before have it"
)]

use std::sync::Mutex;

use adjutant_core::{
    Arguments, ConversationId, ConversationKey, PendingCall, Permission, RequestedCall,
    ToolDefinition, ToolName, UserId, Verdict,
};
use adjutant_runtime::{Agent, CallOutcome, RunContext, RunError};
use jiff::SignedDuration;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SetLevelRequestParams, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tracing::{Instrument as _, Span};

use super::call::{idempotency_key, request_span, run_failed, with_request};
use super::confirmation::{
    Answer, CONFIRM, CONFIRMATION_ID, ConfirmationMode, answer_to, ask, input_required,
};
use super::declaration::{describe, has_argument};
use super::may_answer::may_answer;
use super::progress::{CurrentStep, with_progress};
use super::result::{confirmation_required, declined, done, failed};
use super::turn::AskCall;
use super::{McpServer, ask_tool, info, prompts, resources};
use crate::lock::lock;

/// The handler for one client, acting as one user.
#[derive(Debug)]
pub struct Session {
    server: McpServer,
    user: UserId,
    /// The agent for this user: [`Agent::for_user`].
    agent: Agent,
    /// The agent itself as a tool, if it is offered.
    own: Option<ToolDefinition>,
    /// The least level of log messages that the client wants. `None`: it has not set one, and gets
    /// none.
    level: Mutex<Option<LoggingLevel>>,
}

/// A client's call of a tool.
struct Call<'a> {
    session: &'a Session,
    definition: &'a ToolDefinition,
    context: &'a RequestContext<RoleServer>,
    arguments: Arguments,
}

impl McpServer {
    /// Returns the handler for one client, acting as this user.
    #[must_use]
    pub fn session(&self, user: UserId) -> Session {
        let agent = self.agent().for_user(&user);
        let begin = self.shared.begin.as_ref();
        let own = begin.and_then(|_| ask_tool::definition(&agent));
        Session {
            server: self.clone(),
            user,
            agent,
            own,
            level: Mutex::new(None),
        }
    }
}

impl Session {
    /// Returns the user for whom calls are made.
    #[must_use]
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns the definition of a tool, including the agent itself.
    fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        let own = self.own.as_ref().filter(|own| own.name.as_str() == name);
        own.or_else(|| self.agent.tools().get(name).map(|tool| tool.definition()))
    }

    /// Returns the way in which this tool is confirmed, if it is.
    fn confirmation_mode(
        &self,
        definition: &ToolDefinition,
        context: &RequestContext<RoleServer>,
    ) -> Option<ConfirmationMode> {
        if self.is_ask_tool(definition.name.as_str()) {
            // The agent's own pending calls may be answered elsewhere.
            return Some(ConfirmationMode::Elsewhere);
        }
        (self.agent.permission(&self.user, definition) == Permission::Confirm)
            .then(|| ConfirmationMode::for_client(context))
            // A tool with an argument of that name would receive the id.
            .filter(|mode| {
                *mode != ConfirmationMode::Elsewhere || !has_argument(definition, CONFIRMATION_ID)
            })
    }

    /// Returns the tools that this user may call. Denied ones are hidden.
    fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        let agent = &self.agent;
        agent
            .tools()
            .names()
            .map(ToolName::as_str)
            .filter_map(|name| self.definition(name))
            .filter(|definition| agent.permission(&self.user, definition) != Permission::Deny)
            .chain(&self.own)
    }

    /// Returns true if a tool is the agent itself.
    fn is_ask_tool(&self, name: &str) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| own.name.as_str() == name)
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tools().any(|tool| tool.name.as_str() == name)
    }

    /// Returns a page of tools, after the one that the cursor names.
    fn page(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all: Vec<&ToolDefinition> = self.tools().collect();
        // The cursor is the name of the last tool of a page, so no page has to be remembered here.
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
        let tools = page
            .iter()
            .map(|tool| describe(tool, self.confirmation_mode(tool, context)))
            .collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = page
            .last()
            .filter(|_| more)
            .map(|last| last.name.to_string());
        Ok(result)
    }

    /// Sends a log message to the client, if it wants that level.
    async fn log(&self, level: LoggingLevel, data: Value, context: &RequestContext<RoleServer>) {
        let wanted = context.meta.log_level().or_else(|| *lock(&self.level));
        // The levels are declared from `debug` up to `emergency`.
        if wanted.is_some_and(|wanted| level as u8 >= wanted as u8) {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger("tools");
            // The client may be gone.
            let _ = context.peer.notify_logging_message(message).await;
        }
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        info(&self.agent)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *lock(&self.level) = Some(request.level);
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.definition(name)
            .map(|definition| describe(definition, None))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.page(
            request.and_then(|request| request.cursor).as_deref(),
            &context,
        )
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list(|name| self.has_tool(name)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams {
            name, arguments, ..
        } = request;
        prompts::get(&name, arguments.as_ref(), |name| self.has_tool(name)).map(Into::into)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let shared = &self.server.shared;
        resources::list(&shared.agent, &self.user, cursor.as_deref(), shared.page).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self.server.agent(), &self.user, &request.uri)
            .await
            .map(Into::into)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(definition) = self.definition(&request.name) else {
            let own = self.own.iter().map(|own| own.name.as_str());
            let own: Vec<&str> = own.collect();
            let reason = self.agent.tools().unknown_beside(&request.name, &own);
            return Err(ErrorData::invalid_params(reason, None));
        };
        // Held until the end of the call, so that a shutdown waits for it.
        let _running = self.server.calls().token();
        let arguments = request.arguments.unwrap_or_default();
        let again = request
            .request_state
            .map(|state| (state, request.input_responses.unwrap_or_default()));
        let span = request_span(&context).unwrap_or_else(Span::current);
        let step = CurrentStep::default();
        let call = async {
            let shared = &self.server.shared;
            let begin = shared.begin.as_ref();
            match begin.filter(|_| self.is_ask_tool(definition.name.as_str())) {
                Some(begin) => {
                    let asking = AskCall {
                        agent: &self.agent,
                        user: &self.user,
                        begin,
                        patience: shared.expiry,
                        report: &*shared.report,
                        context: &context,
                        step: &step,
                    };
                    asking.respond(arguments, again).await
                }
                None => {
                    let call = Call {
                        session: self,
                        definition,
                        context: &context,
                        arguments,
                    };
                    call.respond(again).await
                }
            }
        };
        let response = with_progress(call, definition.name.as_str(), &step, &context)
            .instrument(span)
            .await;
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
    /// Runs the call, or asks for confirmation. `again`: the state and answers of a repeated call.
    async fn respond(
        mut self,
        again: Option<(String, rmcp::model::InputResponses)>,
    ) -> CallToolResponse {
        let mode = self
            .session
            .confirmation_mode(self.definition, self.context);
        let id = match mode.is_some() && self.can_wait() {
            true => self.arguments.shift_remove(CONFIRMATION_ID),
            false => None,
        };
        match (mode, id, again) {
            (Some(ConfirmationMode::InputRequired), _, Some((state, responses))) => self
                .continue_call(&state, answer_to(&responses, CONFIRM))
                .await
                .into(),
            (_, None | Some(Value::Null), _) => self.start_call(mode).await,
            (_, Some(Value::String(id)), _) => self.call_status(&id).await.into(),
            (_, Some(_), _) => {
                failed(&format!("{CONFIRMATION_ID} is text; nothing was done")).into()
            }
        }
    }

    /// Returns true if the call can wait for an answer elsewhere: its result is asked for with an
    /// argument that the tool does not have itself.
    fn can_wait(&self) -> bool {
        !has_argument(self.definition, CONFIRMATION_ID)
    }

    /// Starts a call that was not confirmed yet.
    async fn start_call(&self, mode: Option<ConfirmationMode>) -> CallToolResponse {
        let id = match idempotency_key(self.context) {
            Ok(id) => id,
            Err(reason) => return failed(reason).into(),
        };
        let context = RunContext::for_call(self.session.user.clone(), id.as_ref());
        let mut context = with_request(context, self.context);
        let requested =
            RequestedCall::new(self.definition.name.to_string(), self.arguments.clone());
        if id.is_some() {
            // A key that is used again for another call is refused.
            context.fingerprint = Some(requested.fingerprint());
        }
        let pending = match self.agent().call_tool(&mut context, id, requested).await {
            Ok(CallOutcome::Confirm(pending)) => pending,
            other => return self.outcome_result(other).into(),
        };
        match mode {
            None => {
                self.withdraw(&self.agent().key(&context)).await;
                failed(
                    "nothing was done: a person has to confirm it, and this client cannot ask one",
                )
                .into()
            }
            Some(ConfirmationMode::Elsewhere) => {
                self.waiting_result(&pending, context.conversation).into()
            }
            Some(ConfirmationMode::InputRequired) => {
                let question = [(CONFIRM.to_owned(), &pending)];
                input_required(question, context.conversation.to_string()).into()
            }
            Some(ConfirmationMode::Elicitation) => {
                let answer = ask(self.context, &pending, self.session.server.shared.expiry).await;
                self.answer(&self.agent().key(&context), &pending, answer)
                    .await
                    .into()
            }
        }
    }

    /// Returns the status of a call that waits for confirmation elsewhere. The client cannot
    /// approve it.
    async fn call_status(&self, id: &str) -> CallToolResult {
        match self.find_call(id).await {
            Ok(Some((key, CallOutcome::Confirm(pending)))) => {
                self.waiting_result(&pending, key.conversation)
            }
            Ok(Some((_, outcome))) => self.outcome_result(Ok(outcome)),
            Ok(None) => not_for_this_call(CONFIRMATION_ID),
            Err(error) => self.outcome_result(Err(error)),
        }
    }

    /// Continues a call that was repeated with the user's answer.
    async fn continue_call(&self, state: &str, answer: Answer) -> CallToolResult {
        let (key, pending) = match self.find_call(state).await {
            Ok(Some((key, CallOutcome::Confirm(pending)))) => (key, pending),
            // The call was repeated after its end.
            Ok(Some((_, outcome))) => return self.outcome_result(Ok(outcome)),
            Ok(None) => return not_for_this_call("request state"),
            Err(error) => return self.outcome_result(Err(error)),
        };
        let patience = SignedDuration::try_from(self.session.server.shared.expiry);
        let until = pending
            .requested_at
            .checked_add(patience.unwrap_or(SignedDuration::MAX));
        let is_late = until.is_ok_and(|until| until <= self.agent().now());
        if is_late && answer != Answer::Nothing {
            self.withdraw(&key).await;
            return failed(
                "nothing was done: the answer came too late. Call again, and ask the person again",
            );
        }
        self.answer(&key, &pending, answer).await
    }

    /// Carries out the user's answer to a pending call.
    async fn answer(
        &self,
        key: &ConversationKey,
        pending: &PendingCall,
        answer: Answer,
    ) -> CallToolResult {
        match answer {
            Answer::Yes => {}
            // Nobody asks for the result of a call that was given up.
            Answer::Nothing if self.can_wait() && !self.context.ct.is_cancelled() => {
                return self.waiting_result(pending, key.conversation);
            }
            // A call that was denied must not wait on for an answer elsewhere.
            Answer::No | Answer::Nothing => {
                self.withdraw(key).await;
                return not_agreed(answer);
            }
        }
        let mut context = self.context_for(key);
        let outcome = self
            .agent()
            .answer_call(&mut context, None, pending.answer(Verdict::Approved))
            .await;
        self.outcome_result(outcome)
    }

    /// Returns the call of one of the user's conversations, if it has this tool and these
    /// arguments.
    async fn find_call(
        &self,
        conversation: &str,
    ) -> Result<Option<(ConversationKey, CallOutcome)>, RunError> {
        let Ok(conversation) = conversation.parse() else {
            return Ok(None);
        };
        let key = self
            .agent()
            .key_for(self.session.user.clone(), conversation);
        // Every call has a conversation of its own; one with turns is no call.
        if !key.conversation.is_of_a_request() {
            return Ok(None);
        }
        // Expired calls end before they are looked at.
        self.agent().run_conversation(&key).await?;
        let Some((requested, outcome)) = self.agent().requested_call(&key).await? else {
            return Ok(None);
        };
        let resolved = match &outcome {
            CallOutcome::Confirm(pending) | CallOutcome::InDoubt(pending) => {
                Some(&pending.arguments)
            }
            CallOutcome::Done { invocation, .. } => Some(&invocation.arguments),
            CallOutcome::Ask(_) | CallOutcome::Refused(_) | CallOutcome::Declined(_) => None,
        };
        // The arguments as they were sent, or as the gate has resolved them.
        let is_same = requested.tool == self.definition.name.as_str()
            && (requested.arguments == self.arguments || resolved == Some(&self.arguments));
        Ok(is_same.then_some((key, outcome)))
    }

    /// Cancels a pending call.
    async fn withdraw(&self, key: &ConversationKey) {
        // It may have been answered elsewhere meanwhile; then there is nothing to cancel.
        if let Err(error @ RunError::Store(_)) =
            self.agent().cancel(&mut self.context_for(key)).await
        {
            (self.session.server.shared.report)(&error);
        }
    }

    fn context_for(&self, key: &ConversationKey) -> RunContext {
        RunContext {
            conversation: key.conversation,
            may_answer: may_answer(self.context),
            ..RunContext::new(key.user.clone())
        }
    }

    fn waiting_result(
        &self,
        pending: &PendingCall,
        conversation: ConversationId,
    ) -> CallToolResult {
        let tool = self.definition.name.as_str();
        confirmation_required(
            tool,
            std::slice::from_ref(pending),
            &conversation.to_string(),
        )
    }

    /// Converts the outcome of a call.
    fn outcome_result(&self, outcome: Result<CallOutcome, RunError>) -> CallToolResult {
        match outcome {
            Ok(CallOutcome::Done { invocation, .. }) => done(&invocation.result),
            Ok(CallOutcome::Ask(question)) => failed(&question),
            Ok(CallOutcome::Refused(message)) => failed(&message),
            Ok(CallOutcome::Declined(_)) => not_agreed(Answer::No),
            Ok(CallOutcome::InDoubt(pending)) => failed(&format!(
                "{}: it was begun, and nobody saw how it ended. A person has to say whether it was done, on the agent's \
                 web page or with `adjutant pending`; do not call it again",
                pending.preview
            )),
            // Another client has answered between question and answer, and the call needs
            // confirmation again.
            Ok(CallOutcome::Confirm(_)) => failed("nothing was done: it still waits for a person"),
            Err(error) => run_failed(&error, &*self.session.server.shared.report),
        }
    }

    fn agent(&self) -> &Agent {
        &self.session.agent
    }
}

fn not_agreed(answer: Answer) -> CallToolResult {
    declined(match answer {
        Answer::Nothing => "The question was closed without an answer; nothing was done.",
        Answer::Yes | Answer::No => "The person did not agree; nothing was done. Do not ask again.",
    })
}

fn not_for_this_call(what: &str) -> CallToolResult {
    failed(&format!(
        "nothing was done: the {what} is not for this call with these arguments. Call without it, and the person is asked \
         again"
    ))
}
