//! Turns of the agent that an MCP client requests. They are ordinary turns, whose confirmations go
//! through the client.

use std::time::Duration;

use adjutant_core::{
    AgentResponse, ConversationId, ConversationKey, Disposition, DoubtReading, InputBody, InputId,
    OutcomeCategory, PendingCall, PendingKind, Reading, TurnError, TurnId, UserId, Verdict,
    conversation, fingerprint, read_doubt_words, read_words,
};
use adjutant_runtime::{Agent, RunContext, RunError, RunEvent, RunStream};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, InputResponses};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::ask_tool::{ASK, AskArguments, parse_turn_reference, turn_reference};
use super::call::{idempotency_key, run_failed, with_request};
use super::confirmation::{
    Answer, CONFIRMATION_ID, ConfirmationMode, answer_to, ask, input_required,
};
use super::progress::CurrentStep;
use super::result::{confirmation_required, failed, queued};
use super::turn_hooks::{BeginTurn, TurnEnded};
use crate::extension::CALLED_IN;

/// Namespace of conversation ids that are derived from an idempotency key.
// Must stay the same: repeated requests would begin second conversations.
const ASK_NAMESPACE: Uuid = Uuid::from_u128(0x8c3e_51d4_02b7_4b6e_a1f9_6d0c_e7a4_93b2);

/// A client's call of the agent.
pub(super) struct AskCall<'a> {
    pub(super) agent: &'a Agent,
    pub(super) user: &'a UserId,
    pub(super) begin: &'a BeginTurn,
    /// Time for a client to ask its user.
    pub(super) patience: Duration,
    /// Receives errors of the store.
    pub(super) report: &'a (dyn Fn(&RunError) + Send + Sync),
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) step: &'a CurrentStep,
}

/// The result of continuing a turn with the user's answers.
enum Continued {
    /// The turn has ended, or waits again.
    Ended(Box<AgentResponse>),
    /// No turn can run now, and this one waits as before.
    Refused(CallToolResult),
}

impl AskCall<'_> {
    /// Runs a turn, or returns the result of an earlier one. `again`: the state and answers of a
    /// repeated call.
    pub(super) async fn respond(
        &self,
        arguments: Map<String, Value>,
        again: Option<(String, InputResponses)>,
    ) -> CallToolResponse {
        let question = match AskArguments::parse(arguments) {
            Ok(question) => question,
            Err(reason) => return failed(&reason).into(),
        };
        let done = match (again, &question.confirmation_id) {
            (Some((state, responses)), _) => self.continue_turn(&state, &responses).await,
            (None, Some(id)) => self.turn_status(id).await,
            (None, None) => self.ask_agent(question).await,
        };
        done.unwrap_or_else(|error| run_failed(&error, self.report).into())
    }

    /// Sends the message to the agent.
    async fn ask_agent(&self, question: AskArguments) -> Result<CallToolResponse, RunError> {
        if self.is_called_by_itself().await? {
            return Ok(failed(
                "nothing was done: this is the agent that asks. It cannot ask itself; it has to answer with its own tools",
            )
            .into());
        }
        let id = match idempotency_key(self.context) {
            Ok(id) => id,
            Err(reason) => return Ok(failed(reason).into()),
        };
        let mut context = self.run_context();
        match (question.conversation_id, &id) {
            (Some(conversation), _) => {
                context.conversation = conversation;
                if let Some(refusal) = self.refusal(&context, id.as_ref()).await? {
                    return Ok(refusal);
                }
            }
            // A repeated call must not begin a second conversation.
            (None, Some(id)) => {
                context.conversation =
                    ConversationId(Uuid::new_v5(&ASK_NAMESPACE, id.as_str().as_bytes()));
            }
            (None, None) => {}
        }
        if id.is_some() {
            // A key that is used again for another message is refused.
            context.fingerprint = Some(fingerprint(&json!([ASK, question.message])));
        }
        let ended = match (self.begin)(self.user) {
            Ok(ended) => ended,
            Err(reason) => return Ok(failed(&format!("nothing was done: {reason}")).into()),
        };
        let input = InputBody::message(mark_as_program_message(question.message));
        let stream = self.agent.stream_input(&context, id, input);
        let response = self.run_turn(&context, stream, ended).await?;
        self.turn_result(&context, response).await
    }

    /// Returns a result if no message can be sent to a conversation now.
    async fn refusal(
        &self,
        context: &RunContext,
        id: Option<&InputId>,
    ) -> Result<Option<CallToolResponse>, RunError> {
        let agent = self.agent;
        let key = agent.key(context);
        let last = match key.conversation.is_of_a_request() {
            true => None,
            false => agent.journal().load_turns(&key, None, 1).await?,
        };
        let Some(last) = last else {
            let words = "nothing was done: there is no such conversation (any more). Leave conversation_id out to begin one";
            return Ok(Some(failed(words).into()));
        };
        // A repeated request gets the result of the first one, even while its turn waits.
        let sent_before = match id {
            Some(id) => agent.has_input(&key, id).await?,
            None => false,
        };
        // Expired calls do not wait any more; and a client's message must not be taken for a
        // person's yes.
        let now = agent.now();
        let pending: Vec<PendingCall> = conversation::pending(&last.events)
            .into_iter()
            .filter(|call| !call.has_expired(now))
            .collect();
        let turn = conversation::open_turn(&last.events);
        Ok(match turn {
            Some(turn) if !sent_before && !pending.is_empty() => {
                Some(self.waiting_result(&key, turn, &pending).into())
            }
            Some(_) | None => None,
        })
    }

    /// Returns the result of a turn, asking for confirmations as long as there are any.
    async fn turn_result(
        &self,
        context: &RunContext,
        mut response: AgentResponse,
    ) -> Result<CallToolResponse, RunError> {
        let key = self.agent.key(context);
        let patience = self.patience;
        loop {
            let pending = &response.decision.pending;
            let asks = pending
                .iter()
                .all(|call| call.kind() == PendingKind::Confirmation);
            // The question of a turn that the message waits behind is not the client's to answer.
            let is_queued = response.disposition == Disposition::Queued;
            match ConfirmationMode::for_client(self.context) {
                _ if is_queued => return Ok(queued(&response.decision.text).into()),
                _ if pending.is_empty() => return Ok(answer(&response).into()),
                ConfirmationMode::InputRequired if asks => {
                    let state = turn_reference(key.conversation, response.turn);
                    let questions = pending.iter().map(|call| (call.digest.clone(), call));
                    return Ok(input_required(questions, state).into());
                }
                ConfirmationMode::Elicitation if asks => {
                    let mut answers = Vec::new();
                    for call in pending {
                        match ask(self.context, call, patience).await {
                            Answer::Nothing => {
                                return Ok(self
                                    .waiting_result(&key, response.turn, pending)
                                    .into());
                            }
                            said => answers.push(call.answer(verdict(said))),
                        }
                    }
                    response = match self.send_answers(context, answers).await? {
                        Continued::Ended(response) => *response,
                        Continued::Refused(reason) => return Ok(reason.into()),
                    };
                }
                ConfirmationMode::Elicitation
                | ConfirmationMode::InputRequired
                | ConfirmationMode::Elsewhere => {
                    return Ok(self.waiting_result(&key, response.turn, pending).into());
                }
            }
        }
    }

    /// Continues a turn after a repeated call with the user's answers.
    async fn continue_turn(
        &self,
        state: &str,
        responses: &InputResponses,
    ) -> Result<CallToolResponse, RunError> {
        let Some((key, turn, response)) = self.find_turn(state).await? else {
            return Ok(unknown().into());
        };
        let Some(response) = response else {
            return Ok(still_runs().into());
        };
        let pending = &response.decision.pending;
        let now = self.agent.now();
        let patience = self.patience;
        let is_late = |call: &PendingCall| {
            let waited = now.duration_since(call.requested_at);
            waited.is_positive() && waited.unsigned_abs() >= patience
        };
        let mut answers = Vec::new();
        for call in pending {
            match answer_to(responses, &call.digest) {
                Answer::Nothing => return Ok(self.waiting_result(&key, turn, pending).into()),
                _ if is_late(call) || call.kind() != PendingKind::Confirmation => {
                    return Ok(self.waiting_result(&key, turn, pending).into());
                }
                said => answers.push(call.answer(verdict(said))),
            }
        }
        if answers.is_empty() {
            // The call was repeated after its end.
            return Ok(answer(&response).into());
        }
        let context = RunContext {
            conversation: key.conversation,
            ..self.run_context()
        };
        match self.send_answers(&context, answers).await? {
            Continued::Ended(response) => self.turn_result(&context, *response).await,
            Continued::Refused(reason) => Ok(reason.into()),
        }
    }

    /// Returns the status of a turn that waits for confirmation elsewhere. The client cannot
    /// approve it.
    async fn turn_status(&self, id: &str) -> Result<CallToolResponse, RunError> {
        let Some((key, turn, response)) = self.find_turn(id).await? else {
            return Ok(unknown().into());
        };
        Ok(match response {
            None => still_runs(),
            Some(response) if response.decision.pending.is_empty() => answer(&response),
            Some(response) => self.waiting_result(&key, turn, &response.decision.pending),
        }
        .into())
    }

    /// Returns a user's turn by its reference, with its response. No response: it is running.
    async fn find_turn(
        &self,
        place: &str,
    ) -> Result<Option<(ConversationKey, TurnId, Option<AgentResponse>)>, RunError> {
        let agent = self.agent;
        let Some((conversation, turn)) = parse_turn_reference(place) else {
            return Ok(None);
        };
        let key = agent.key_for(self.user.clone(), conversation);
        // The key has this user, so others' turns are not found.
        let Some(_) = agent.journal().load_turn(&key, turn).await? else {
            return Ok(None);
        };
        // Expired calls end before they are looked at.
        agent.run_conversation(&key).await?;
        let read = agent.journal().load_turn(&key, turn).await?;
        let events = read.map(|read| read.events).unwrap_or_default();
        Ok(Some((
            key,
            turn,
            conversation::response(conversation, &events, turn),
        )))
    }

    /// Continues a turn with the user's answers.
    async fn send_answers(
        &self,
        context: &RunContext,
        answers: Vec<adjutant_core::Answer>,
    ) -> Result<Continued, RunError> {
        match (self.begin)(self.user) {
            Ok(ended) => {
                let stream = self.agent.stream_answer(context, answers);
                let response = self.run_turn(context, stream, ended).await?;
                Ok(Continued::Ended(Box::new(response)))
            }
            Err(reason) => Ok(Continued::Refused(failed(&format!(
                "nothing was done yet, and it still waits: {reason}"
            )))),
        }
    }

    /// Waits for the end of a turn. A client that disconnects or cancels stops it.
    async fn run_turn(
        &self,
        context: &RunContext,
        mut stream: RunStream,
        ended: TurnEnded,
    ) -> Result<AgentResponse, RunError> {
        while let Some(event) = stream.next().await {
            match event {
                RunEvent::ModelStarted { number } => self.step.set(format!("model call {number}")),
                RunEvent::ToolStarted { call } => self.step.set(call.name),
                RunEvent::ToolProgress { tool, progress, .. } => {
                    self.step.set(format!("{tool}, {progress}"))
                }
                _ => {}
            }
        }
        let (response, _) = stream.finish().await?;
        ended(&self.agent.key(context), &response);
        Ok(response)
    }

    /// Returns true if the call comes from a turn of this very agent, which is configured as its
    /// own MCP server and would call itself endlessly.
    async fn is_called_by_itself(&self) -> Result<bool, RunError> {
        let called_in = self.context.meta.get(CALLED_IN).and_then(Value::as_str);
        let Some(conversation) = called_in.and_then(|id| Uuid::try_parse(id).ok()) else {
            return Ok(false);
        };
        let agent = self.agent;
        let key = agent.key_for(self.user.clone(), ConversationId(conversation));
        Ok(agent.journal().load_turns(&key, None, 1).await?.is_some())
    }

    fn run_context(&self) -> RunContext {
        with_request(RunContext::new(self.user.clone()), self.context)
    }

    fn waiting_result(
        &self,
        key: &ConversationKey,
        turn: TurnId,
        pending: &[PendingCall],
    ) -> CallToolResult {
        confirmation_required(ASK, pending, &turn_reference(key.conversation, turn))
    }
}

/// Converts the response of a turn that has ended.
fn answer(response: &AgentResponse) -> CallToolResult {
    let is_answer = matches!(response.error, None | Some(TurnError::Tool { .. }))
        && response.outcome != OutcomeCategory::Cancelled;
    if !is_answer {
        return failed(&response.content);
    }
    let mut data = json!({
        "answer": response.content,
        "conversation_id": response.conversation,
        "disposition": response.disposition,
        "failed_calls": response.failed_calls,
    });
    let notices: Vec<&str> = response
        .notices
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    if !notices.is_empty() {
        data["notices"] = json!(notices);
    }
    CallToolResult::structured(json!({ "success": true, "data": data }))
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Yes => Verdict::Approved,
        Answer::No | Answer::Nothing => Verdict::Denied,
    }
}

/// Marks a message as a program's if it would be read as an approval: a program's message must not
/// answer a question that came just before it.
fn mark_as_program_message(message: String) -> String {
    match (read_words(&message), read_doubt_words(&message)) {
        (Reading::Unclear, DoubtReading::Unclear) => message,
        _ => format!("{message}\n(said by a program, over MCP)"),
    }
}

fn unknown() -> CallToolResult {
    failed(&format!(
        "nothing was done: there is no turn of that {CONFIRMATION_ID}. Ask again without it"
    ))
}

fn still_runs() -> CallToolResult {
    failed("it still runs: call again with the same arguments in a moment")
}
