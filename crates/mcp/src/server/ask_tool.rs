//! The agent itself as a tool: declaration, arguments, and references to its turns.

use adjutant_core::{Annotations, ConversationId, ToolDefinition};
use adjutant_runtime::Agent;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Name of the tool.
pub(super) const ASK: &str = "ask";

/// Arguments of the tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskArguments {
    /// The message for the agent.
    pub(super) message: String,
    /// The conversation to continue. `None`: a new one.
    pub(super) conversation_id: Option<ConversationId>,
    /// The id of an earlier call, to get its result. Nothing is sent to the agent then.
    pub(super) confirmation_id: Option<String>,
}

impl AskArguments {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// A description for the calling model.
    pub(super) fn parse(arguments: serde_json::Map<String, Value>) -> Result<Self, String> {
        let question: Self = serde_json::from_value(Value::Object(arguments))
            .map_err(|error| format!("nothing was done: the arguments do not fit: {error}"))?;
        match question.message.trim() {
            "" => Err("nothing was done: message is empty".to_owned()),
            _ => Ok(question),
        }
    }
}

/// Declares the agent as a tool. `None`: it has a tool of that name, which is called instead.
pub(super) fn definition(agent: &Agent) -> Option<ToolDefinition> {
    if agent.tools().get(ASK).is_some() {
        return None;
    }
    let name = agent.display_name();
    let description = format!(
        "Asks the agent {name} and returns its answer. {} It decides itself which of its tools to use. Ask it for what needs \
         several steps or judgement; for a single step call the tool that takes it.",
        agent.description()
    );
    let parameters = json!({
        "type": "object",
        "properties": {
            "message": { "type": "string", "minLength": 1, "description": "What to say to the agent, with everything it has to know" },
            "conversation_id": {
                "type": "string",
                "format": "uuid",
                "description": "To go on with a conversation: the conversation_id of an earlier answer. Without it a new one begins",
            },
        },
        "required": ["message"],
        "additionalProperties": false,
    });
    let answer = json!({
        "type": "object",
        "properties": {
            "answer": { "type": "string", "description": "The words of the agent" },
            "conversation_id": { "type": "string", "description": "For the next message to it" },
            "disposition": { "type": "string", "enum": ["ran", "queued", "answered", "dropped"], "description": "What became of the message" },
            "failed_calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "tool": { "type": "string" }, "message": { "type": "string" } },
                    "required": ["tool", "message"],
                },
                "description": "Calls that failed, with the reason; also if others succeeded",
            },
            "notices": { "type": "array", "items": { "type": "string" }, "description": "What else there is to know" },
        },
        "required": ["answer", "conversation_id"],
        "additionalProperties": false,
    });
    // An agent whose description cannot be declared is not offered itself; its tools are.
    let definition = ToolDefinition::new(ASK, &description, parameters).ok()?;
    Some(definition.returning(answer).annotated(annotations(agent)))
}

/// Derives the annotations from those of all tools of the agent.
fn annotations(agent: &Agent) -> Annotations {
    let tools = || {
        let of = |name| Some(agent.tools().get(name)?.definition().annotations);
        agent
            .tools()
            .names()
            .filter_map(move |name| of(name.as_str()))
    };
    Annotations {
        read_only: tools().all(|tool| tool.read_only),
        destructive: tools().any(|tool| tool.destructive),
        ..Annotations::default()
    }
}

/// Returns a reference to a turn, for asking for its result later.
pub(super) fn turn_reference(conversation: ConversationId, turn: adjutant_core::TurnId) -> String {
    format!("{conversation}.{turn}")
}

/// Parses a reference made by [`turn_reference`].
pub(super) fn parse_turn_reference(place: &str) -> Option<(ConversationId, adjutant_core::TurnId)> {
    let (conversation, turn) = place.split_once('.')?;
    let (conversation, turn) = (
        Uuid::try_parse(conversation).ok()?,
        Uuid::try_parse(turn).ok()?,
    );
    Some((ConversationId(conversation), adjutant_core::TurnId(turn)))
}
