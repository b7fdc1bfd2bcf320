//! The part of a decision that the model takes: the schema of its answer, and what it becomes.

use adjutant_core::{Arguments, Reference, ToolDefinition};
use serde_json::{Value, json};

use super::{Decision, Scored, Step};
use crate::actions::{
    ACTIONS_MAX, CONTROLS, SENTENCE_CHARS_MAX, action_schema, array_schema, bounded, line_schema,
};
use crate::answer::Action;
use crate::clarification::Clarification;
use crate::entities;
use crate::tool_kind::free_texts;

impl<'a> Scored<'a> {
    /// Returns the schema of the model's answer to a decision: a list that is empty if nothing is
    /// left to choose.
    pub(crate) fn schema(&self, decision: &Decision<'a>) -> Value {
        let steps = match decision {
            Decision::Act(steps, _) => &steps[..],
            Decision::SmallTalk => {
                let control = &CONTROLS[0];
                let text = json!({ control.argument: line_schema(SENTENCE_CHARS_MAX) });
                return array_schema(
                    vec![action_schema(
                        control.name,
                        object(&text, &[control.argument]),
                    )],
                    1,
                    1,
                );
            }
            Decision::Ask(_) | Decision::Decline | Decision::Reply(_) => &[],
        };
        let mut first = Vec::new();
        let mut texts = None;
        for step in steps {
            match step {
                Step::Call(..) => {}
                Step::Open(tool) => {
                    first.push(action_schema(tool.name.as_str(), open_arguments(tool)));
                }
                Step::Reword(_, _, texts) if texts.len() == 1 => {}
                Step::Reword(tool, entity, texts) => {
                    first.push(self.reworded_schema(tool, *entity, texts));
                }
                Step::Texts(tool, choices) => {
                    if only_text(tool, choices).is_none() {
                        texts = Some(text_schema(tool, choices));
                    }
                }
            }
        }
        let (least, most) = match texts {
            Some(_) => (first.len() + 1, first.len() + ACTIONS_MAX),
            None => (first.len(), first.len()),
        };
        let mut schema = json!({ "type": "array", "minItems": least, "maxItems": most });
        if !first.is_empty() {
            schema["prefixItems"] = first.into();
        }
        if let Some(texts) = texts {
            schema["items"] = texts;
        }
        schema
    }

    /// Returns the entities that the model has to see to choose.
    pub(crate) fn shown(&self, decision: &Decision<'a>) -> Vec<&'a Reference> {
        let Decision::Act(steps, _) = decision else {
            return Vec::new();
        };
        let mut shown: Vec<usize> = steps
            .iter()
            .flat_map(|step| match step {
                Step::Reword(_, entity, texts) if texts.len() > 1 => vec![*entity],
                Step::Reword(..) | Step::Call(..) | Step::Texts(..) | Step::Open(_) => Vec::new(),
            })
            .collect();
        shown.sort_unstable();
        shown.into_iter().map(|at| self.entities[at]).collect()
    }

    /// Returns the calls of a decision, with what the model chose, and the question that is left.
    pub(crate) fn calls(
        &self,
        steps: &[Step<'a>],
        chosen: &[Action],
    ) -> (Vec<(&'a str, Arguments)>, Option<Clarification<'a>>) {
        let mut calls: Vec<(&'a str, Arguments)> = Vec::new();
        let mut open = None;
        let of = |tool: &ToolDefinition| {
            let name = tool.name.as_str().to_owned();
            chosen.iter().filter(move |action| action.tool == name)
        };
        for step in steps {
            match step {
                Step::Call(tool, arguments) => calls.push((tool.name.as_str(), arguments.clone())),
                Step::Open(tool) => {
                    let arguments = of(tool).next().map(|action| action.args.clone());
                    calls.push((tool.name.as_str(), arguments.unwrap_or_default()));
                }
                Step::Reword(tool, entity, texts) => {
                    if let Some(arguments) = self.reworded(tool, *entity, texts, of(tool).next()) {
                        calls.push((tool.name.as_str(), arguments));
                    }
                }
                Step::Texts(tool, choices) => {
                    let texts = match only_text(tool, choices) {
                        Some(arguments) => vec![arguments],
                        None => chosen_texts(tool, choices, of(tool)),
                    };
                    if texts.is_empty() {
                        open = Some(Clarification::Words { tool, of: None });
                    }
                    calls.extend(
                        texts
                            .into_iter()
                            .map(|arguments| (tool.name.as_str(), arguments)),
                    );
                }
            }
        }
        let mut kept: Vec<(&'a str, Arguments)> = Vec::new();
        for call in calls {
            // The same call twice is a slip.
            if !kept.contains(&call) {
                kept.push(call);
            }
        }
        kept.truncate(ACTIONS_MAX);
        (kept, open)
    }

    fn reworded_schema(&self, tool: &ToolDefinition, entity: usize, texts: &[String]) -> Value {
        let argument = tool
            .references
            .first()
            .map_or("", |reference| reference.argument.as_str());
        let text = free_texts(tool).next().unwrap_or_default();
        let properties = json!({
            argument: { "enum": [entities::name(self.entities[entity])] },
            text: { "enum": texts },
        });
        action_schema(tool.name.as_str(), object(&properties, &[argument, text]))
    }

    /// Returns the arguments of a new text: the one that the model chose, or the likeliest.
    fn reworded(
        &self,
        tool: &ToolDefinition,
        entity: usize,
        texts: &[String],
        action: Option<&Action>,
    ) -> Option<Arguments> {
        let argument = free_texts(tool).next()?;
        let chosen = action
            .and_then(|action| action.args.get(argument))
            .and_then(Value::as_str);
        // A server that does not enforce the schema may have used other words.
        let text = texts.iter().find(|text| Some(text.as_str()) == chosen);
        let text = text.or(texts.first())?;
        let mut arguments = self.argument(tool, entity);
        let label = &self.entities[entity].label;
        arguments.insert(argument.to_owned(), json!(capitalised_like(text, label)));
        Some(arguments)
    }
}

/// Returns the arguments of a call if there is one text to choose, and nothing else.
fn only_text(tool: &ToolDefinition, choices: &[String]) -> Option<Arguments> {
    let [only] = choices else { return None };
    let argument = free_texts(tool).next()?;
    let needs_more = tool.required().any(|required| required != argument);
    (!needs_more).then(|| Arguments::from_iter([(argument.to_owned(), json!(capitalised(only)))]))
}

/// Returns the arguments of the texts that the model chose, without those inside of another.
fn chosen_texts<'b>(
    tool: &ToolDefinition,
    choices: &[String],
    actions: impl Iterator<Item = &'b Action>,
) -> Vec<Arguments> {
    let Some(argument) = free_texts(tool).next() else {
        return Vec::new();
    };
    let mut texts: Vec<(String, Arguments)> = Vec::new();
    for action in actions {
        let Some(text) = action.args.get(argument).and_then(Value::as_str) else {
            continue;
        };
        // A server that does not enforce the schema may have used other words.
        let Some(text) = choices.iter().find(|choice| *choice == text) else {
            continue;
        };
        let covered = texts.iter().any(|(known, _)| known.contains(text.as_str()));
        if !covered {
            texts.retain(|(known, _)| !text.contains(known.as_str()));
            let mut arguments = action.args.clone();
            arguments.insert(argument.to_owned(), json!(capitalised(text)));
            texts.push((text.clone(), arguments));
        }
    }
    texts.into_iter().map(|(_, arguments)| arguments).collect()
}

/// Returns the schema of a call with one of some texts. Optional arguments are left out: a weak
/// model invents them.
fn text_schema(tool: &ToolDefinition, choices: &[String]) -> Value {
    let mut arguments = bounded(&tool.parameters, SENTENCE_CHARS_MAX);
    let text = free_texts(tool).next().unwrap_or_default();
    if let Some(properties) = arguments
        .get_mut("properties")
        .and_then(Value::as_object_mut)
    {
        properties.retain(|name, _| tool.required().any(|required| required == name));
        properties.insert(text.to_owned(), json!({ "enum": choices }));
    }
    arguments["additionalProperties"] = Value::Bool(false);
    action_schema(tool.name.as_str(), arguments)
}

/// Returns the schema of a tool's arguments as they are.
fn open_arguments(tool: &ToolDefinition) -> Value {
    let mut arguments = bounded(&tool.parameters, SENTENCE_CHARS_MAX);
    arguments["additionalProperties"] = Value::Bool(false);
    arguments
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

/// Returns a text with its first letter in upper case.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

/// Returns a text that begins in upper case if another one does.
fn capitalised_like(text: &str, other: &str) -> String {
    match other.chars().next().is_some_and(char::is_uppercase) {
        true => capitalised(text),
        false => text.to_owned(),
    }
}
