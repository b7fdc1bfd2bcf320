//! Scenes: scripted conversations of a user who waits for each answer.

use std::collections::VecDeque;

use adjutant_core::{
    AgentName, Answer, ClientSide, ClientTool, ConversationId, ConversationKey, Effect, InputBody,
    InputId, OutcomeCategory, PendingCall, RequestedCall, ToolResult, UserId, Verdict,
};
use adjutant_durability::{EFFECTS, Request, Response, Style, tool_name};
use uuid::Uuid;

/// The client-side tool, which the user's client executes.
pub(crate) const BROUGHT_TOOL: &str = "lookHere";

/// One input of a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Say {
    /// A message that selects the model's script.
    Play(&'static str),
    /// An answer in text to the pending call.
    Words(&'static str),
    /// A call of the tool without a model; `careful`: of the tool that needs a confirmation.
    Call { careful: bool },
    /// A message that selects the model's script, with a client-side tool.
    Bring(&'static str),
    /// An approval of the pending call as it was shown, or its result if that is awaited.
    Approve,
}

impl Say {
    /// Returns true if the input answers a pending call, and nothing else.
    fn answers(&self) -> bool {
        matches!(self, Self::Words(_) | Self::Approve)
    }
}

/// A scripted conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) says: &'static [Say],
    /// True if it starts with a long history, which is summarised in its first turn.
    pub(crate) long: bool,
    /// True if tools are called in it.
    pub(crate) tools: bool,
    /// True if a model is called in it.
    pub(crate) model: bool,
}

const fn scene(says: &'static [Say]) -> Scene {
    Scene {
        says,
        long: false,
        tools: true,
        model: true,
    }
}

const fn without_tools(says: &'static [Say]) -> Scene {
    Scene {
        tools: false,
        ..scene(says)
    }
}

pub(crate) const PLAIN: Scene = without_tools(&[Say::Play("plain")]);
pub(crate) const ONE: Scene = scene(&[Say::Play("one")]);
pub(crate) const TWO: Scene = scene(&[Say::Play("two")]);
/// Three calls of one answer, each waiting for the one before.
pub(crate) const ORDER: Scene = scene(&[Say::Play("order")]);
pub(crate) const CHAIN: Scene = scene(&[Say::Play("chain")]);
pub(crate) const APPROVE: Scene = scene(&[Say::Play("careful"), Say::Approve]);
/// A call of the worker's tool beside a call of the client-side tool.
pub(crate) const BROUGHT: Scene = scene(&[Say::Bring("brought"), Say::Approve]);
pub(crate) const DENY: Scene = scene(&[Say::Play("careful"), Say::Words("no")]);
/// A call that changes the tasks of the worker's own store.
pub(crate) const TASK: Scene = without_tools(&[Say::Play("task")]);
pub(crate) const CALL: Scene = Scene {
    model: false,
    ..scene(&[Say::Call { careful: false }])
};
pub(crate) const CALL_APPROVED: Scene = Scene {
    model: false,
    ..scene(&[Say::Call { careful: true }, Say::Approve])
};
pub(crate) const CLARIFY: Scene = without_tools(&[Say::Play("ask"), Say::Play("that")]);
pub(crate) const LIMITED: Scene = without_tools(&[Say::Play("limited")]);
pub(crate) const LONG: Scene = Scene {
    long: true,
    ..without_tools(&[Say::Play("plain")])
};

/// All scenes.
pub(crate) const SCENES: [Scene; 13] = [
    PLAIN,
    ONE,
    TWO,
    ORDER,
    CHAIN,
    APPROVE,
    BROUGHT,
    DENY,
    CALL,
    CALL_APPROVED,
    CLARIFY,
    LIMITED,
    LONG,
];

impl Scene {
    /// Returns the effect classes that make a difference to the scene.
    pub(crate) fn effects(&self) -> &'static [Effect] {
        if self.tools {
            &EFFECTS
        } else {
            &[Effect::None]
        }
    }
}

/// A user in a conversation: the next message, and the responses so far.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) key: ConversationKey,
    pub(crate) effect: Effect,
    long: bool,
    to_say: VecDeque<Say>,
    /// The verdict on calls in doubt.
    verdict: Verdict,
    current: Option<Request>,
    said: u64,
    pending: Vec<PendingCall>,
    pub(crate) responses: Vec<Response>,
}

impl Talk {
    /// Creates a conversation of a new user.
    pub(crate) fn new(scene: &Scene, effect: Effect) -> Self {
        let conversation = ConversationId(Uuid::now_v7());
        let key = ConversationKey {
            agent: AgentName::new("worker").unwrap(),
            user: UserId::new(format!("u-{conversation}")).unwrap(),
            conversation,
        };
        Self {
            key,
            effect,
            long: scene.long,
            to_say: scene.says.iter().copied().collect(),
            verdict: Verdict::Leave,
            current: None,
            said: 0,
            pending: Vec::new(),
            responses: Vec::new(),
        }
    }

    /// Returns the same conversation, before its first message.
    pub(crate) fn again(&self, scene: &Scene) -> Self {
        Self {
            key: self.key.clone(),
            ..Self::new(scene, self.effect)
        }
    }

    /// Returns the same conversation with another agent.
    pub(crate) fn with(mut self, agent: &AgentName) -> Self {
        self.key.agent = agent.clone();
        self
    }

    /// Returns the same conversation with another verdict on calls in doubt.
    pub(crate) fn in_doubt(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }

    /// Appends inputs to the scene.
    pub(crate) fn then(&mut self, scene: &Scene, effect: Effect) {
        self.effect = effect;
        self.to_say.extend(scene.says);
    }

    /// Returns the next request: the same one until it is answered. `None`: the scene is over.
    pub(crate) fn next(&mut self) -> Option<Request> {
        if self.current.is_none() {
            let body = self.next_body()?;
            let input = InputId::new(format!("i{}", self.said)).unwrap();
            self.current = Some(Request {
                number: self.said,
                user: self.key.user.clone(),
                conversation: self.key.conversation,
                long: self.long,
                input,
                body,
            });
            self.said += 1;
        }
        self.current.clone()
    }

    fn next_body(&mut self) -> Option<InputBody> {
        // A call in doubt comes first: no other input is taken while it waits.
        if self.pending.iter().any(|call| call.doubt.is_some()) {
            let answers = self.pending.iter().map(|call| match call.doubt {
                Some(_) => call.answer(self.verdict),
                None => approved(call),
            });
            return Some(InputBody::Answers {
                answers: answers.collect(),
            });
        }
        // A turn that lost too many workers is given up and asks nothing: then there is nothing to
        // answer.
        while self.pending.is_empty() && self.to_say.front().is_some_and(Say::answers) {
            self.to_say.pop_front();
        }
        Some(match self.to_say.pop_front()? {
            Say::Play(scene) => InputBody::message(format!(
                "{scene} {:?} {}",
                self.effect, self.key.conversation
            )),
            Say::Bring(scene) => InputBody::Message {
                text: format!("{scene} {:?} {}", self.effect, self.key.conversation),
                output_schema: None,
                limits: None,
                client: Some(Box::new(ClientSide {
                    tools: vec![ClientTool::new(BROUGHT_TOOL, "Looks.", None).unwrap()],
                    ..ClientSide::default()
                })),
                shown: Vec::new(),
                time_zone: None,
                from_others: false,
            },
            Say::Words(words) => InputBody::message(words),
            Say::Call { careful } => InputBody::Call(RequestedCall::new(
                tool_name(
                    self.effect,
                    if careful {
                        Style::Careful
                    } else {
                        Style::Beside
                    },
                ),
                [("n".to_owned(), 1.into())].into_iter().collect(),
            )),
            Say::Approve => InputBody::Answers {
                answers: self.pending.iter().map(approved).collect(),
            },
        })
    }

    /// Records the response to the last request.
    pub(crate) fn record(&mut self, response: Response) {
        self.current = None;
        self.pending.clone_from(&response.pending);
        self.responses.push(response);
    }

    /// Returns the ids of all inputs so far.
    pub(crate) fn inputs(&self) -> Vec<InputId> {
        (0..self.said)
            .map(|n| InputId::new(format!("i{n}")).unwrap())
            .collect()
    }

    /// Returns the outcome of the last turn.
    pub(crate) fn outcome(&self) -> OutcomeCategory {
        self.responses.last().unwrap().outcome
    }

    pub(crate) fn pending(&self) -> &[PendingCall] {
        &self.pending
    }
}

/// Returns the approval of a call, or its result.
fn approved(call: &PendingCall) -> Answer {
    match call.awaits_result() {
        true => call.provided(ToolResult::verbatim("seen".into())),
        false => call.answer(Verdict::Approved),
    }
}

#[test]
fn what_does_not_wait_is_not_answered() {
    for scene in [APPROVE, DENY] {
        let mut talk = Talk::new(&scene, Effect::None);
        talk.then(&PLAIN, Effect::None);
        assert!(matches!(
            talk.next().unwrap().body,
            InputBody::Message { .. }
        ));
        let outcome = OutcomeCategory::Poisoned;
        talk.record(Response {
            outcome,
            content: "I had to give this up.".to_owned(),
            pending: Vec::new(),
        });
        let InputBody::Message { text, .. } = talk.next().unwrap().body else {
            panic!("an answer")
        };
        assert!(text.starts_with("plain "), "{text}");
    }
}
