//! The messages that the model reads: a head that is the same for every request, and a last message
//! that is not.

use std::fmt::Write as _;

use serde_json::{Value, json};

use adjutant_core::{
    Content, GenerateRequest, Message, Part, Reference, Role, ToolDefinition, capitalized,
};

use super::actions::Control;
use super::analysis;
use super::dialogue::Dialogue;
use super::entities::{self, Entities};
use super::example::{Action, Example, Examples};
use super::guard::Guard;

/// Most characters that are repeated of the message before.
const BEFORE_CHARS_MAX: usize = 240;

/// Returns the instruction with a line for each action, then the examples as a conversation.
pub(super) fn head(
    examples: &Examples,
    request: &GenerateRequest,
    tools: &[&ToolDefinition],
    controls: &[Control],
) -> Vec<Message> {
    // Examples may come without an instruction; then the one of the agent is used.
    let own = || {
        let instruction = request
            .messages
            .iter()
            .find(|message| message.role() == Role::System)
            .map(Message::text);
        instruction.unwrap_or_default()
    };
    let mut system = examples
        .instruction
        .clone()
        .unwrap_or_else(own)
        .trim()
        .to_owned();
    system.push_str("\nAnswer with a JSON list of actions. Actions:\n");
    list_actions(&mut system, tools);
    for Control {
        name,
        argument,
        description,
        ..
    } in controls
    {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(system, "- {name}({argument}): {description}");
    }
    let mut messages: Vec<Message> = Message::system(system.trim_end()).into_iter().collect();
    messages.extend(
        examples
            .fitting(tools)
            .flat_map(|example| turns(shown(example, tools), &example.answer)),
    );
    messages
}

/// Returns further actions and examples, as more of the conversation.
pub(super) fn on_demand(
    examples: &Examples,
    more: &[&ToolDefinition],
    all: &[&ToolDefinition],
) -> Vec<Message> {
    let mut actions = "More actions:\n".to_owned();
    list_actions(&mut actions, more);
    if let Some(instruction) = &examples.instruction {
        let _ = writeln!(actions, "{}", one_line(instruction));
    }
    let mut messages = Vec::new();
    for example in examples.fitting(all) {
        // User and assistant take turns, so the actions stand in front of the user's first example.
        let text = format!("{}{}", std::mem::take(&mut actions), shown(example, all));
        messages.extend(turns(text, &example.answer));
    }
    messages
}

fn list_actions(text: &mut String, tools: &[&ToolDefinition]) {
    for tool in tools {
        let _ = writeln!(
            text,
            "- {}({}): {}",
            tool.name,
            parameters(tool),
            one_line(&tool.description)
        );
    }
}

/// Returns an example as the user's message and the assistant's answer.
pub(super) fn turns(user: String, answer: &[Action]) -> Vec<Message> {
    let answer = Message::assistant(vec![Part::ours(Content::Text {
        text: written(answer),
    })]);
    Message::user(user).into_iter().chain(answer).collect()
}

/// Returns the last message for a scored message: the entities that the model chooses for, if any.
pub(super) fn last_scored(dialogue: &Dialogue) -> Option<Message> {
    let mut text = String::new();
    if dialogue.answers() {
        push_dialogue(&mut text, dialogue);
    }
    push_message(&mut text, &dialogue.message);
    Message::user(text).ok()
}

/// Returns the last message: the user's entities and message.
pub(super) fn last(
    dialogue: &Dialogue,
    entities: &Entities<'_>,
    tools: &[&ToolDefinition],
    guard: &Guard<'_>,
) -> Option<Message> {
    // Where no entity can be meant, the list would only distract.
    let mut text = if guard.only_verbatim() || guard.is_off_topic() {
        String::new()
    } else {
        listed(&entities.shown, entities.hidden, tools)
    };
    if dialogue.answers() || analysis::has_anaphora(&dialogue.message) {
        push_dialogue(&mut text, dialogue);
    }
    push_message(&mut text, &dialogue.message);
    Message::user(text).ok()
}

fn shown(example: &Example, tools: &[&ToolDefinition]) -> String {
    let mut text = String::new();
    if let Some(references) = &example.references {
        text = listed(&references.iter().collect::<Vec<_>>(), 0, tools);
    }
    if let Some(before) = &example.before {
        push_before(
            &mut text,
            example.earlier.as_deref().unwrap_or_default(),
            before,
        );
    }
    push_message(&mut text, &example.message);
    text
}

/// Lists entities on one line each, under their kind.
fn listed(shown: &[&Reference], hidden: usize, tools: &[&ToolDefinition]) -> String {
    let mut text = String::new();
    for kind in entities::kinds(tools) {
        let of_kind: Vec<&&Reference> = shown.iter().filter(|entity| entity.kind == kind).collect();
        let heading = capitalized(kind);
        if of_kind.is_empty() {
            let _ = writeln!(text, "{heading}s: none");
            continue;
        }
        let _ = writeln!(text, "{heading}s:");
        for entity in of_kind {
            let done = if entity.done { " (done)" } else { "" };
            let _ = writeln!(text, "{}. {}{done}", entity.id, entities::name(entity));
        }
    }
    if hidden > 0 {
        let _ = writeln!(text, "... and {hidden} more");
    }
    text
}

/// Repeats what was said before a message: the assistant's reply, and if that was a question the
/// message that it is about.
pub(super) fn push_dialogue(text: &mut String, dialogue: &Dialogue) {
    let cut = |text: &str| -> String { one_line(text).chars().take(BEFORE_CHARS_MAX).collect() };
    let earlier = dialogue.user_before.as_deref();
    let earlier = earlier.filter(|_| dialogue.answers()).map(cut);
    if let Some(before) = dialogue.assistant_before.as_deref() {
        push_before(text, &earlier.unwrap_or_default(), &cut(before));
    }
}

fn push_before(text: &mut String, earlier: &str, before: &str) {
    if !earlier.is_empty() {
        let _ = writeln!(text, "Earlier message: {earlier}");
    }
    let _ = writeln!(text, "You said: {before}");
}

pub(super) fn push_message(text: &mut String, message: &str) {
    let lines: Vec<String> = message
        .lines()
        .map(one_line)
        .filter(|line| !line.is_empty())
        .collect();
    let line = lines.join("; ");
    // Capitals are other tokens, which a small model misspells.
    let shouted = line.contains(char::is_uppercase) && !line.contains(char::is_lowercase);
    let line = if shouted { line.to_lowercase() } else { line };
    let _ = write!(text, "Message: {line}");
}

/// Formats an answer as the model writes it: compact JSON.
fn written(actions: &[Action]) -> String {
    let actions: Vec<Value> = actions
        .iter()
        .map(|action| json!({ &action.tool: action.args }))
        .collect();
    Value::from(actions).to_string()
}

/// Lists the names of a tool's arguments; choices are spelled out.
fn parameters(tool: &ToolDefinition) -> String {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flatten().map(|(name, schema)| {
        match schema.get("enum").and_then(Value::as_array) {
            Some(choices) => {
                let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
                format!("{name}: {}", choices.join("|"))
            }
            None => name.clone(),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
