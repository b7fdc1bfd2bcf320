//! The messages that the model reads: the same beginning for every agent, then the agent's tools, then
//! the person's message.

use std::fmt::Write as _;

use adjutant_core::{GenerateRequest, Message, Role, ToolDefinition};
use serde_json::Value;

use super::examples;
use crate::analysis;
use crate::dialogue::Dialogue;
use crate::example::Examples;
use crate::prompt::{one_line, push_dialogue, push_message, turns};

/// The instruction of an agent that has other tools too, whose own one is about those.
const INSTRUCTION: &str = "You call actions for the person you talk to.";

/// The rest of the instruction.
const RULES: &str = "\
Each message comes with the actions that there are. Answer with a JSON list of actions: one for each thing that is asked for.
Arguments are what the message says, in the form that the action describes. Leave out optional ones that it does not give.
Use off-topic if none of the actions does what is asked, unclear if a needed argument is missing, small-talk for greetings and thanks.";

/// Most characters of a description, of a tool and of an argument.
const TOOL_CHARS_MAX: usize = 300;
const ARGUMENT_CHARS_MAX: usize = 160;

/// Returns the messages of a request with general tools. `own`: the agent's examples. `is_alone`: the
/// agent has no other tools, so its own instruction and examples are about these.
pub(crate) fn messages(
    request: &GenerateRequest,
    own: &Examples,
    dialogue: &Dialogue,
    tools: &[&ToolDefinition],
    is_alone: bool,
) -> Vec<Message> {
    let of_agent = request
        .messages
        .iter()
        .find(|message| message.role() == Role::System)
        .map(Message::text)
        .filter(|_| is_alone);
    let instruction = own
        .instruction
        .clone()
        .filter(|_| is_alone)
        .or(of_agent)
        .unwrap_or_else(|| INSTRUCTION.to_owned());
    let mut messages: Vec<Message> = Message::system(format!("{}\n{RULES}", instruction.trim()))
        .into_iter()
        .collect();
    for example in examples::all() {
        let tools: Vec<&ToolDefinition> = example.tools.iter().collect();
        let mut text = declared(&tools);
        push_message(&mut text, &example.message);
        messages.extend(turns(text, &example.answer));
    }
    let mut text = declared(tools);
    for example in own.fitting(tools).filter(|_| is_alone) {
        // User and assistant take turns, so the actions stand in front of the first example.
        let mut text = std::mem::take(&mut text);
        push_message(&mut text, &example.message);
        messages.extend(turns(text, &example.answer));
    }
    if dialogue.answers() || analysis::has_anaphora(&dialogue.message) {
        push_dialogue(&mut text, dialogue);
    }
    push_message(&mut text, &dialogue.message);
    messages.extend(Message::user(text));
    messages
}

/// Lists tools with their arguments, one on each line.
pub(super) fn declared(tools: &[&ToolDefinition]) -> String {
    let mut text = "Actions:\n".to_owned();
    for tool in tools {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "- {}: {}",
            tool.name,
            clipped(&tool.description, TOOL_CHARS_MAX)
        );
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let is_optional = !tool.required().any(|required| required == name);
            push_argument(&mut text, name, schema, is_optional);
        }
    }
    if tools.is_empty() {
        text.push_str("- none\n");
    }
    text
}

/// Describes an argument on a line of its own: its type or choices, whether it is optional, its
/// description, and the value that the schema gives as an example or default.
fn push_argument(text: &mut String, name: &str, schema: &Value, is_optional: bool) {
    let shown = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let choices = schema.get("enum").and_then(Value::as_array);
    let kind = match choices {
        Some(choices) => choices.iter().map(shown).collect::<Vec<_>>().join("|"),
        None => shown(schema.get("type").unwrap_or(&Value::Null)),
    };
    let optional = if is_optional { ", optional" } else { "" };
    let _ = write!(text, "  {name} ({kind}{optional})");
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        let _ = write!(text, ": {}", clipped(description, ARGUMENT_CHARS_MAX));
    }
    let examples = schema.get("examples").and_then(Value::as_array);
    let sample = examples
        .and_then(|examples| examples.first())
        .or_else(|| schema.get("default"))
        .filter(|value| !value.is_null());
    if let Some(sample) = sample {
        let _ = write!(text, ", such as {}", shown(sample));
    }
    text.push('\n');
}

fn clipped(text: &str, chars_max: usize) -> String {
    one_line(text).chars().take(chars_max).collect()
}
