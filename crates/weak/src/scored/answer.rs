//! The part of a decision that the model takes: the schema of its answer, and what it becomes.

use adjutant_core::{ActionKind, Arguments, ToolDefinition};
use serde_json::{Value, json};

use super::choice::{self, Choice};
use super::{Decision, Scored, Step};
use crate::actions::{
    ACTIONS_MAX, CONTROLS, SENTENCE_CHARS_MAX, action_schema, array_schema, bounded, line_schema,
};
use crate::answer::Action;
use crate::clarification::Clarification;
use crate::tool_kind::free_texts;
use crate::words::words;

/// Least probability of a text with which an entity is created without a question.
const CREATED: f32 = 0.2;
/// That of a new text, which takes the place of words of the person.
const CHANGED: f32 = 0.4;
/// Least certainty of the model's answer, if it chose texts.
const CHOSEN: f32 = 0.5;
/// Words from which on a message is a story.
const STORY_WORDS: usize = 25;

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
                Step::Call(..) | Step::Reword(..) => {}
                Step::Open(tool) => {
                    first.push(action_schema(tool.name.as_str(), open_arguments(tool)));
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

    /// Returns the calls of a decision, with what the model chose, and the question that is left.
    /// `certainty` is the model's for its whole answer.
    pub(crate) fn calls(
        &self,
        steps: &[Step<'a>],
        chosen: &[Action],
        certainty: Option<f32>,
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
                Step::Reword(tool, entity, texts) => match self.reworded(tool, *entity, texts) {
                    Ok(arguments) => calls.push((tool.name.as_str(), arguments)),
                    Err(question) => open = open.or(Some(question)),
                },
                Step::Texts(tool, choices) => match new_texts(tool, choices, of(tool), certainty) {
                    Ok(texts) => {
                        let name = tool.name.as_str();
                        calls.extend(texts.into_iter().map(|arguments| (name, arguments)));
                    }
                    Err(question) => open = open.or(Some(question)),
                },
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
        match self.plan(&kept) {
            Some(mut plan) => {
                plan.extend(open);
                (Vec::new(), Some(Clarification::Plan(plan)))
            }
            None => (kept, open),
        }
    }

    /// Returns the questions whether the calls are meant, if the message is a story: of what it tells,
    /// some is only told. `None` for other messages, and for calls that only read.
    fn plan(&self, calls: &[(&'a str, Arguments)]) -> Option<Vec<Clarification<'a>>> {
        let is_long = words(&self.dialogue.message).len() >= STORY_WORDS;
        if !is_long || calls.is_empty() {
            return None;
        }
        let mut plan: Vec<Clarification<'a>> = Vec::new();
        for (name, arguments) in calls {
            let (kind, tool) = *self
                .tools
                .iter()
                .find(|(_, tool)| tool.name.as_str() == *name)?;
            let text = || arguments.get(free_texts(tool).next()?)?.as_str();
            let label = || {
                let argument = &tool.references.first()?.argument;
                let id = arguments.get(argument)?.as_str()?;
                let entity = self.entities.iter().find(|entity| entity.id == id)?;
                Some(entity.label.clone())
            };
            let what = match kind {
                ActionKind::Create => text()?.to_owned(),
                ActionKind::Complete | ActionKind::Delete => label()?,
                ActionKind::Reword => {
                    let (of, text) = (label()?, text()?.to_owned());
                    plan.push(Clarification::Text { of, text });
                    continue;
                }
                _ => return None,
            };
            let same = plan.iter_mut().find_map(|part| match part {
                Clarification::Sure { tool: known, what } if known.name == tool.name => Some(what),
                _ => None,
            });
            match same {
                Some(several) => several.push(what),
                None => plan.push(Clarification::Sure {
                    tool,
                    what: vec![what],
                }),
            }
        }
        Some(plan)
    }

    /// Returns the arguments of the likeliest new text, or the question whether it is meant.
    fn reworded(
        &self,
        tool: &'a ToolDefinition,
        entity: usize,
        texts: &[Choice],
    ) -> Result<Arguments, Clarification<'a>> {
        let label = &self.entities[entity].label;
        let likeliest = choice::likeliest(texts).zip(free_texts(tool).next());
        let Some((likeliest, argument)) = likeliest else {
            return Err(Clarification::Words {
                tool,
                of: Some(label.clone()),
            });
        };
        let text = capitalised_like(&likeliest.text, label);
        if likeliest.probability < CHANGED {
            return Err(Clarification::Text {
                of: label.clone(),
                text,
            });
        }
        let mut arguments = self.argument(tool, entity);
        arguments.insert(argument.to_owned(), json!(text));
        Ok(arguments)
    }
}

/// Returns the arguments of the texts that a message has for new entities, or the question whether
/// they are meant.
fn new_texts<'a, 'b>(
    tool: &'a ToolDefinition,
    choices: &[Choice],
    actions: impl Iterator<Item = &'b Action>,
    certainty: Option<f32>,
) -> Result<Vec<Arguments>, Clarification<'a>> {
    let (texts, is_certain) = match only_text(tool, choices) {
        Some(only) => (vec![only], true),
        None => {
            let chosen = chosen_texts(tool, choices, actions);
            // What the words say too needs no certainty: of several texts that is a product.
            let likeliest = choice::likeliest_apart(choices);
            let is_of = |(choice, _): &(&Choice, Arguments)| likeliest.contains(choice);
            let agrees = chosen.len() == likeliest.len() && chosen.iter().all(is_of);
            let is_certain = certainty.is_none_or(|certainty| certainty >= CHOSEN);
            (chosen, agrees || is_certain)
        }
    };
    if texts.is_empty() {
        return Err(Clarification::Words { tool, of: None });
    }
    if is_certain
        && texts
            .iter()
            .all(|(choice, _)| choice.probability >= CREATED)
    {
        return Ok(texts.into_iter().map(|(_, arguments)| arguments).collect());
    }
    let texts = texts
        .into_iter()
        .map(|(choice, _)| capitalised(&choice.text));
    Err(Clarification::Sure {
        tool,
        what: texts.collect(),
    })
}

/// Returns the text and the arguments of a call if there is one to choose, and nothing else.
fn only_text<'c>(tool: &ToolDefinition, choices: &'c [Choice]) -> Option<(&'c Choice, Arguments)> {
    let [only] = choices else { return None };
    let argument = free_texts(tool).next()?;
    let needs_more = tool.required().any(|required| required != argument);
    let arguments = Arguments::from_iter([(argument.to_owned(), json!(capitalised(&only.text)))]);
    (!needs_more).then_some((only, arguments))
}

/// Returns the texts that the model chose, without those inside of another.
fn chosen_texts<'b, 'c>(
    tool: &ToolDefinition,
    choices: &'c [Choice],
    actions: impl Iterator<Item = &'b Action>,
) -> Vec<(&'c Choice, Arguments)> {
    let Some(argument) = free_texts(tool).next() else {
        return Vec::new();
    };
    let mut texts: Vec<(&Choice, Arguments)> = Vec::new();
    for action in actions {
        let Some(text) = action.args.get(argument).and_then(Value::as_str) else {
            continue;
        };
        // A server that does not enforce the schema may have used other words.
        let Some(choice) = choices.iter().find(|choice| choice.text == text) else {
            continue;
        };
        let covered = texts.iter().any(|(known, _)| known.text.contains(text));
        if !covered {
            texts.retain(|(known, _)| !text.contains(known.text.as_str()));
            let mut arguments = action.args.clone();
            arguments.insert(argument.to_owned(), json!(capitalised(text)));
            texts.push((choice, arguments));
        }
    }
    texts
}

/// Returns the schema of a call with one of some texts. Optional arguments are left out: a weak
/// model invents them.
fn text_schema(tool: &ToolDefinition, choices: &[Choice]) -> Value {
    let mut arguments = bounded(&tool.parameters, SENTENCE_CHARS_MAX);
    let texts: Vec<&str> = choices.iter().map(|choice| choice.text.as_str()).collect();
    let text = free_texts(tool).next().unwrap_or_default();
    if let Some(properties) = arguments
        .get_mut("properties")
        .and_then(Value::as_object_mut)
    {
        properties.retain(|name, _| tool.required().any(|required| required == name));
        properties.insert(text.to_owned(), json!({ "enum": texts }));
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
