//! Classification of a model's answer as the next step of the turn: one table with every case.

use serde_json::{Value, json};

use crate::message::{Content, Part};
use crate::model::{FinishReason, GenerateResponse};
use crate::tool::{ToolCall, ToolDefinition};

/// Name of the control function with which a model asks the person a question.
pub const ASK_USER: &str = "ask_user";
/// Name of the control function with which a model declines a request.
pub const DECLINE: &str = "decline";

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// Text only. `output` is the text as JSON, if a schema was given.
    Respond {
        text: String,
        cut: bool,
        output: Option<Value>,
    },
    /// Calls of tools, and possibly a question or refusal that ends the turn after them.
    InvokeTools { ending: Option<Ending> },
    /// A question or refusal by a control function.
    End(Ending),
    /// The provider refused to answer.
    Filtered { message: String },
}

/// An end of a turn without an answer, by a control function.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// A question for the person.
    Ask(String),
    /// A refusal of the request.
    Decline(String),
}

/// The reason for which an answer is unusable and requested again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The answer has no text and no call.
    Empty,
    /// The output limit cut a call.
    CutInCall,
    /// The output limit was reached before any text.
    CutInThought,
    /// The provider could not parse the model's call.
    MalformedCall,
    /// The answer does not fit the schema, with paths and expectations.
    Misfit(String),
    /// The answer has no call, and the tool choice requires one, of this tool if it names one.
    NoCall(Option<String>),
}

impl Unusable {
    /// Returns the message to the model with the repeated request. Not part of the history.
    pub(super) fn note(&self) -> String {
        match self {
            Self::Empty => "Your last answer was empty. Answer the person, or call a tool.".to_owned(),
            Self::CutInCall => {
                "Your last answer was cut off inside a call, so nothing was done. Call again, with less text."
                    .to_owned()
            }
            Self::CutInThought => {
                "Your last answer was cut off before it began. Answer at once, without long thinking."
                    .to_owned()
            }
            Self::MalformedCall => "Your last call could not be read. Make it again.".to_owned(),
            Self::NoCall(tool) => format!(
                "Your last answer called no tool, and the program that asked needs a call. {}",
                match tool {
                    Some(tool) => format!("Call the tool {tool}."),
                    None => "Call a tool.".to_owned(),
                }
            ),
            Self::Misfit(places) => format!(
                "Your last answer does not fit the JSON Schema it has to fit: {places}. Answer again, with JSON only."
            ),
        }
    }
}

/// Returns the control functions that are offered together with tools.
pub(super) fn control_functions() -> Vec<ToolDefinition> {
    let one_text = |property: &str, description: &str| {
        json!({
            "type": "object",
            "properties": { property: { "type": "string", "description": description } },
            "required": [property],
            "additionalProperties": false
        })
    };
    [
        ToolDefinition::new(
            ASK_USER,
            "Ask the person one clarifying question when it is not clear what they want. Ends your turn.",
            one_text("question", "The question, in the person's language"),
        ),
        ToolDefinition::new(
            DECLINE,
            "Politely decline a request that is not what you are for, and say what you can do. Ends your turn.",
            one_text("message", "The words for the person"),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns true if a call is of a control function.
pub(crate) fn is_control(call: &ToolCall) -> bool {
    matches!(call.name.as_str(), ASK_USER | DECLINE)
}

/// Classifies an answer. `tools` are those on offer, by which a call inside the text is recognised.
pub(super) fn decide(
    reply: &GenerateResponse,
    tools: &[ToolDefinition],
) -> Result<Decision, Unusable> {
    let text = reply.text();
    // The order of the arms matters: a finish reason can make text and calls of the same answer
    // unusable.
    let has_text = !text.trim().is_empty();
    let calls = reply.tool_calls().count();
    match (reply.finish, calls, has_text) {
        (FinishReason::ContentFilter, _, _) => Ok(Decision::Filtered {
            message: refusal(&reply.parts),
        }),
        (FinishReason::MalformedCall, _, _) => Err(Unusable::MalformedCall),
        // The last call may be incomplete, and nothing tells: none of them runs.
        (FinishReason::MaxTokens, 1.., _) => Err(Unusable::CutInCall),
        (FinishReason::Stop | FinishReason::ToolCalls, 0, true) if is_call(&text, tools) => {
            Err(Unusable::MalformedCall)
        }
        (finish, 0, true) => Ok(Decision::Respond {
            text,
            cut: finish == FinishReason::MaxTokens,
            output: None,
        }),
        (FinishReason::MaxTokens | FinishReason::Stop | FinishReason::ToolCalls, 0, false) => {
            match refusal(&reply.parts) {
                message if !message.is_empty() => Ok(Decision::Filtered { message }),
                _ if reply.finish == FinishReason::MaxTokens => Err(Unusable::CutInThought),
                _ => Err(Unusable::Empty),
            }
        }
        (FinishReason::Stop | FinishReason::ToolCalls, 1.., _) => {
            let ending = reply
                .tool_calls()
                .find(|call| is_control(call))
                .map(|call| ending(call, &text));
            Ok(match ending {
                Some(ending) if reply.tool_calls().all(is_control) => Decision::End(ending),
                // Calls beside a question run first: the turn ends after them.
                ending => Decision::InvokeTools { ending },
            })
        }
    }
}

/// Markers that open a call in the templates of models.
const CALL_TAGS: &[&str] = &[
    "<tool_call>",
    "<function_call>",
    "<function_calls>",
    "<function=",
    "<invoke name=",
    "<tools>",
    "<|tool_call|>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
];

/// Returns true if a text is a call that could not be parsed: a line outside of code opens one, or
/// the whole text is a call of a known tool, as JSON or code. Adapters have extracted the parsable
/// ones.
fn is_call(text: &str, tools: &[ToolDefinition]) -> bool {
    let mut fenced = false;
    let opens = |line: &str| {
        // Inside of a code fence a call is an example.
        fenced ^= line.starts_with("```");
        !fenced && CALL_TAGS.iter().any(|tag| line.starts_with(tag))
    };
    // Without tools on offer, a text about a call is an answer.
    if tools.is_empty() {
        return false;
    }
    if text.lines().map(str::trim_start).any(opens) {
        return true;
    }
    let text = text.trim();
    let fenced = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```")?.split_once('\n'));
    let whole = fenced.map_or(text, |(_, inside)| inside.trim());
    let code = ["print(", "default_api.", "Action: "]
        .iter()
        .fold(whole, |code, lead| code.strip_prefix(lead).unwrap_or(code));
    tools.iter().map(|tool| tool.name.as_str()).any(|name| {
        // The name alone is not enough: an answer may be JSON about the tool.
        let is_json = whole.starts_with(['{', '[']) && whole.contains(&format!("\"{name}\""));
        let is_code = code
            .strip_prefix(name)
            .is_some_and(|rest| rest.trim_start().starts_with(['(', '{', '[']));
        let is_action = whole.starts_with("Action:")
            && whole.contains("Action Input:")
            && code.starts_with(name);
        (is_json
            && ["\"name\"", "\"function\"", "\"tool\""]
                .iter()
                .any(|key| whole.contains(key)))
            || is_code
            || is_action
    })
}

/// Returns the end that a control call stands for, with its own text or the text beside it.
fn ending(call: &ToolCall, text: &str) -> Ending {
    let argument = |key: &str| {
        let own = call.arguments.get(key).and_then(Value::as_str);
        let own = own.map(str::trim).filter(|own| !own.is_empty());
        own.unwrap_or(text.trim()).to_owned()
    };
    if call.name == DECLINE {
        Ending::Decline(argument("message"))
    } else {
        Ending::Ask(argument("question"))
    }
}

fn refusal(parts: &[Part]) -> String {
    let refusals = parts.iter().filter_map(|part| match &part.content {
        Content::Refusal { text } => Some(text.as_str()),
        _ => None,
    });
    refusals.collect()
}
