//! What the model reads: a head that never changes, and a last message that does.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::message::{Content, Message, Part, Role};
use crate::model::GenerateRequest;
use crate::tool::{Reference, ToolDefinition};

use super::actions::{CONTROLS, Control};
use super::english;
use super::example::{Action, Example, Examples};
use super::guard::Guard;
use super::said::Said;
use super::things::{self, Things};

/// Characters of the assistant's last words that are repeated.
const BEFORE_CHARS_MAX: usize = 240;

/// The instruction with a line for each action, then the examples as a conversation.
pub(super) fn head(
    examples: &Examples,
    request: &GenerateRequest,
    tools: &[&ToolDefinition],
) -> Vec<Message> {
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
    } in &CONTROLS
    {
        let _ = writeln!(system, "- {name}({argument}): {description}");
    }
    let mut messages: Vec<Message> = Message::system(system.trim_end()).into_iter().collect();
    messages.extend(
        examples
            .fitting(tools)
            .flat_map(|example| turns(shown(example, tools), example)),
    );
    messages
}

/// Further actions and examples, as more of the conversation.
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
        // The roles take turns, so it stands in front of what the person says first.
        let text = format!("{}{}", std::mem::take(&mut actions), shown(example, all));
        messages.extend(turns(text, example));
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

/// Returns what the person says in an example, and the answer.
fn turns(said: String, example: &Example) -> Vec<Message> {
    let answer = Message::assistant(vec![Part::ours(Content::Text {
        text: written(&example.answer),
    })]);
    Message::user(said).into_iter().chain(answer).collect()
}

/// What the person has and says.
pub(super) fn last(
    said: &Said,
    things: &Things<'_>,
    tools: &[&ToolDefinition],
    guard: &Guard<'_>,
) -> Option<Message> {
    // Where nothing of it can be meant, it would only distract.
    let mut text = if guard.only_quotes() || guard.only_declines() {
        String::new()
    } else {
        listed(&things.shown, things.hidden, tools)
    };
    if let Some(before) = said
        .before
        .as_deref()
        .filter(|_| said.answers() || english::looks_back(&said.message))
    {
        let cut: String = one_line(before).chars().take(BEFORE_CHARS_MAX).collect();
        let earlier = said
            .earlier
            .as_deref()
            .filter(|_| said.answers())
            .map(one_line)
            .unwrap_or_default();
        push_before(
            &mut text,
            &earlier.chars().take(BEFORE_CHARS_MAX).collect::<String>(),
            &cut,
        );
    }
    push_message(&mut text, &said.message);
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

/// One line for each thing, under its kind.
fn listed(shown: &[&Reference], hidden: usize, tools: &[&ToolDefinition]) -> String {
    let mut text = String::new();
    for kind in things::kinds(tools) {
        let of_kind: Vec<&&Reference> = shown.iter().filter(|thing| thing.kind == kind).collect();
        let mut heading = kind.chars();
        let heading: String = heading
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .chain(heading)
            .collect();
        if of_kind.is_empty() {
            let _ = writeln!(text, "{heading}s: none");
            continue;
        }
        let _ = writeln!(text, "{heading}s:");
        for thing in of_kind {
            let done = if thing.done { " (done)" } else { "" };
            let _ = writeln!(text, "{}. {}{done}", thing.id, things::name(thing));
        }
    }
    if hidden > 0 {
        let _ = writeln!(text, "... and {hidden} more");
    }
    text
}

fn push_before(text: &mut String, earlier: &str, before: &str) {
    if !earlier.is_empty() {
        let _ = writeln!(text, "Earlier message: {earlier}");
    }
    let _ = writeln!(text, "You said: {before}");
}

fn push_message(text: &mut String, message: &str) {
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

/// The answer as the model writes it: compact JSON.
fn written(actions: &[Action]) -> String {
    let actions: Vec<Value> = actions
        .iter()
        .map(|action| json!({ &action.tool: action.args }))
        .collect();
    Value::from(actions).to_string()
}

/// The names of a tool's arguments; choices are spelled out.
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
