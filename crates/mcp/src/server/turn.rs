//! A turn of the agent that an MCP client asks for: the same as anybody's, with what has to be
//! confirmed asked in the client's way.

use std::time::Duration;

use adjutant_core::{
    AgentResponse, ConversationId, ConversationKey, DoubtReading, InputBody, InputId,
    OutcomeCategory, PendingCall, PendingKind, Reading, TurnError, TurnId, UserId, Verdict,
    conversation, fingerprint, read_doubt_words, read_words,
};
use adjutant_runtime::{Agent, RunContext, RunError, RunEvent, RunStream};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, InputResponses};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::ask::{Answer, CONFIRMATION_ID, Way, answer_to, ask, input_required};
use super::begin::{Begin, Ended};
use super::call::{failed_to_run, idempotency_key, in_request};
use super::own_tool::{ASK, Question, place, read_place};
use super::progress::Doing;
use super::result::{failed, waits_elsewhere};
use crate::ours::CALLED_IN;

/// Conversations that begin with a request that has a name are in this namespace.
const ASKED: Uuid = Uuid::from_u128(0x8c3e_51d4_02b7_4b6e_a1f9_6d0c_e7a4_93b2);

/// A client that asks the agent.
pub(super) struct Asking<'a> {
    pub(super) agent: &'a Agent,
    pub(super) user: &'a UserId,
    pub(super) begin: &'a Begin,
    /// Time that a client may take to ask its person.
    pub(super) patience: Duration,
    /// Hears what is wrong with the store.
    pub(super) report: &'a (dyn Fn(&RunError) + Send + Sync),
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) doing: &'a Doing,
}

impl Asking<'_> {
    /// Asks, or says what became of what was asked. `again`: a question for the person came back
    /// with what they said.
    pub(super) async fn respond(
        &self,
        arguments: Map<String, Value>,
        again: Option<(String, InputResponses)>,
    ) -> CallToolResponse {
        let question = match Question::read(arguments) {
            Ok(question) => question,
            Err(reason) => return failed(&reason).into(),
        };
        let done = match (again, &question.confirmation_id) {
            (Some((state, responses)), _) => self.answered(&state, &responses).await,
            (None, Some(id)) => self.became(id).await,
            (None, None) => self.said(question).await,
        };
        done.unwrap_or_else(|error| failed_to_run(&error, self.report).into())
    }

    /// Says it to the agent.
    async fn said(&self, question: Question) -> Result<CallToolResponse, RunError> {
        if self.is_ours().await? {
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
                if let Some(not_now) = self.not_now(&context, id.as_ref()).await? {
                    return Ok(not_now);
                }
            }
            // Sent again, it must not begin a second conversation.
            (None, Some(id)) => {
                context.conversation = ConversationId(Uuid::new_v5(&ASKED, id.as_str().as_bytes()));
            }
            (None, None) => {}
        }
        if id.is_some() {
            context.fingerprint = Some(fingerprint(&json!([ASK, question.message])));
        }
        let ended = match (self.begin)(self.user) {
            Ok(ended) => ended,
            Err(reason) => return Ok(failed(&format!("nothing was done: {reason}")).into()),
        };
        let input = InputBody::message(not_a_yes(question.message));
        let stream = self.agent.stream_input(&context, id, input);
        let response = self.followed(&context, stream, ended).await?;
        self.came_to(&context, response).await
    }

    /// Returns the reason why nothing can be said in a conversation now. `None`: something can.
    async fn not_now(
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
        let sent_before = match id {
            Some(id) => agent.has_input(&key, id).await?,
            None => false,
        };
        // What expired does not wait any more, and nothing that a client says may be taken for a
        // person's yes.
        let now = agent.now();
        let pending: Vec<PendingCall> = conversation::pending(&last.events)
            .into_iter()
            .filter(|call| !call.has_expired(now))
            .collect();
        let turn = conversation::open_turn(&last.events);
        Ok(match turn {
            Some(turn) if !sent_before && !pending.is_empty() => {
                Some(self.waits(&key, turn, &pending).into())
            }
            Some(_) | None => None,
        })
    }

    /// Returns the result of a turn: its answer, or what the client's person is asked, as often as
    /// there is something to ask.
    async fn came_to(
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
            match Way::of(self.context) {
                _ if pending.is_empty() => return Ok(answer(&response).into()),
                Way::InputRequired if asks => {
                    let state = place(key.conversation, response.turn);
                    let questions = pending.iter().map(|call| (call.digest.clone(), call));
                    return Ok(input_required(questions, state).into());
                }
                Way::Elicitation if asks => {
                    let mut answers = Vec::new();
                    for call in pending {
                        match ask(self.context, call, patience).await {
                            Answer::Nothing => {
                                return Ok(self.waits(&key, response.turn, pending).into());
                            }
                            said => answers.push(call.answer(verdict(said))),
                        }
                    }
                    response = match self.go_on(context, answers).await? {
                        Ok(response) => response,
                        Err(refused) => return Ok(refused.into()),
                    };
                }
                Way::Elicitation | Way::InputRequired | Way::TwoSteps => {
                    return Ok(self.waits(&key, response.turn, pending).into());
                }
            }
        }
    }

    /// A question came back with what the person said to it.
    async fn answered(
        &self,
        state: &str,
        responses: &InputResponses,
    ) -> Result<CallToolResponse, RunError> {
        let Some((key, turn, response)) = self.known(state).await? else {
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
                Answer::Nothing => return Ok(self.waits(&key, turn, pending).into()),
                _ if is_late(call) || call.kind() != PendingKind::Confirmation => {
                    return Ok(self.waits(&key, turn, pending).into());
                }
                said => answers.push(call.answer(verdict(said))),
            }
        }
        if answers.is_empty() {
            // Sent again: what became of it.
            return Ok(answer(&response).into());
        }
        let context = RunContext {
            conversation: key.conversation,
            ..self.run_context()
        };
        match self.go_on(&context, answers).await? {
            Ok(response) => self.came_to(&context, response).await,
            Err(refused) => Ok(refused.into()),
        }
    }

    /// Returns the result of a turn that waited for a person elsewhere. Nothing a client sends here
    /// can confirm it.
    async fn became(&self, id: &str) -> Result<CallToolResponse, RunError> {
        let Some((key, turn, response)) = self.known(id).await? else {
            return Ok(unknown().into());
        };
        Ok(match response {
            None => still_runs(),
            Some(response) if response.decision.pending.is_empty() => answer(&response),
            Some(response) => self.waits(&key, turn, &response.decision.pending),
        }
        .into())
    }

    /// A turn of this user's by what [`place`] made of it, and what it has come to. `None` inside:
    /// it runs.
    async fn known(
        &self,
        place: &str,
    ) -> Result<Option<(ConversationKey, TurnId, Option<AgentResponse>)>, RunError> {
        let agent = self.agent;
        let Some((conversation, turn)) = read_place(place) else {
            return Ok(None);
        };
        let key = agent.key_of(self.user.clone(), conversation);
        let Some(_) = agent.journal().load_turn(&key, turn).await? else {
            return Ok(None);
        };
        // What has expired ends before it is looked at.
        agent.advance(&key).await?;
        let read = agent.journal().load_turn(&key, turn).await?;
        let events = read.map(|read| read.events).unwrap_or_default();
        Ok(Some((
            key,
            turn,
            conversation::response(conversation, &events, turn),
        )))
    }

    /// Goes on with a turn after what the person said. The inner error: it cannot, now, and waits
    /// as before.
    async fn go_on(
        &self,
        context: &RunContext,
        answers: Vec<adjutant_core::Answer>,
    ) -> Result<Result<AgentResponse, CallToolResult>, RunError> {
        match (self.begin)(self.user) {
            Ok(ended) => {
                let stream = self.agent.stream_answer(context, answers);
                self.followed(context, stream, ended).await.map(Ok)
            }
            Err(reason) => Ok(Err(failed(&format!(
                "nothing was done yet, and it still waits: {reason}"
            )))),
        }
    }

    /// Waits for the end of a turn. A client that goes away, or cancels, stops it.
    async fn followed(
        &self,
        context: &RunContext,
        mut stream: RunStream,
        ended: Ended,
    ) -> Result<AgentResponse, RunError> {
        while let Some(event) = stream.next().await {
            match event {
                RunEvent::ModelStarted { number } => self.doing.now(format!("model call {number}")),
                RunEvent::ToolStarted { call } => self.doing.now(call.name),
                RunEvent::ToolProgress { tool, progress, .. } => {
                    self.doing.now(format!("{tool}, {progress}"))
                }
                _ => {}
            }
        }
        let (response, _) = stream.finish().await?;
        ended(&self.agent.key(context), &response);
        Ok(response)
    }

    /// Returns whether the call comes from a turn of this very agent, which has this server among
    /// its MCP servers: it would ask itself, again and again.
    async fn is_ours(&self) -> Result<bool, RunError> {
        let called_in = self.context.meta.get(CALLED_IN).and_then(Value::as_str);
        let Some(conversation) = called_in.and_then(|id| Uuid::try_parse(id).ok()) else {
            return Ok(false);
        };
        let agent = self.agent;
        let key = agent.key_of(self.user.clone(), ConversationId(conversation));
        Ok(agent.journal().load_turns(&key, None, 1).await?.is_some())
    }

    fn run_context(&self) -> RunContext {
        in_request(RunContext::new(self.user.clone()), self.context)
    }

    fn waits(
        &self,
        key: &ConversationKey,
        turn: TurnId,
        pending: &[PendingCall],
    ) -> CallToolResult {
        waits_elsewhere(ASK, pending, &place(key.conversation, turn))
    }
}

/// The answer of a turn that has ended.
fn answer(response: &AgentResponse) -> CallToolResult {
    let is_answer = matches!(response.error, None | Some(TurnError::Tool { .. }))
        && response.outcome != OutcomeCategory::Cancelled;
    if !is_answer {
        return failed(&response.content);
    }
    let mut data = json!({ "answer": response.content, "conversation_id": response.conversation });
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

/// The words of a program, which are nobody's answer to a question that waits: plain ones say whose
/// they are, and are not read as a yes then, if a question came just before them.
fn not_a_yes(message: String) -> String {
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
