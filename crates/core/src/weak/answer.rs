//! Reading the answer: from a list of actions to calls, with a question for every doubt.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::message::{Content, Part};
use crate::model::{FinishReason, GenerateResponse};
use crate::tool::{Arguments, Reference, ToolCall, ToolDefinition};
use crate::turn::ASK_USER;

use super::actions::{self, ACTIONS_MAX, Control};
use super::doubt::Doubt;
use super::guard::{Guard, Proposed};
use super::said::Said;

/// An object with one key, the name, whose value is the arguments.
#[derive(Debug, Deserialize)]
#[serde(try_from = "BTreeMap<String, Arguments>")]
struct Action {
    tool: String,
    args: Arguments,
}

impl TryFrom<BTreeMap<String, Arguments>> for Action {
    type Error = &'static str;

    fn try_from(mut named: BTreeMap<String, Arguments>) -> Result<Self, Self::Error> {
        match (named.pop_first(), named.is_empty()) {
            (Some((tool, args)), true) => Ok(Self { tool, args }),
            _ => Err("an action has one name"),
        }
    }
}

pub(super) fn decode(
    mut response: GenerateResponse,
    said: &Said,
    references: &[Reference],
    tools: &[&ToolDefinition],
) -> GenerateResponse {
    match response.finish {
        FinishReason::ContentFilter | FinishReason::MalformedCall => return response,
        // A list that the bound cut off does not parse, and becomes a question.
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MaxTokens => {}
    }
    let mut parts: Vec<Part> = response
        .parts
        .iter()
        .filter(|part| matches!(part.content, Content::Thinking { .. }))
        .cloned()
        .collect();
    let guard = Guard::new(said, references, tools);
    let contents = match read(&response.text()) {
        Some(actions) => contents(&actions, &guard, tools),
        None if guard.is_certain() => contents(&[], &guard, tools),
        None => vec![asked(0, &Doubt::NotUnderstood)],
    };
    let calls = contents
        .iter()
        .any(|content| matches!(content, Content::ToolCall(_)));
    parts.extend(contents.into_iter().map(Part::ours));
    response.parts = parts;
    response.finish = if calls {
        FinishReason::ToolCalls
    } else {
        FinishReason::Stop
    };
    response
}

/// The list in the text. A server that does not keep the schema may wrap it in words, or leave out
/// the brackets.
fn read(text: &str) -> Option<Vec<Action>> {
    let list = |open: char, close: char| {
        let (start, end) = (text.find(open)?, text.rfind(close)?);
        text.get(start..=end)
    };
    let actions: Vec<Action> = match list('[', ']').and_then(|list| serde_json::from_str(list).ok())
    {
        Some(actions) => actions,
        None => vec![serde_json::from_str(list('{', '}')?).ok()?],
    };
    (1..=ACTIONS_MAX)
        .contains(&actions.len())
        .then_some(actions)
}

fn contents(actions: &[Action], guard: &Guard<'_>, tools: &[&ToolDefinition]) -> Vec<Content> {
    if let Some(doubt) = guard.bare_mention().or_else(|| guard.words_missing()) {
        return vec![asked(0, &doubt)];
    }
    let word = actions
        .iter()
        .find_map(|action| Some((actions::control(&action.tool)?, &action.args)));
    let mut proposed = Vec::new();
    let mut doubt = None;
    for action in actions
        .iter()
        .filter(|action| actions::control(&action.tool).is_none())
    {
        match tools.iter().find(|tool| tool.name.as_str() == action.tool) {
            Some(tool) => proposed.push(Proposed {
                tool,
                arguments: action.args.clone(),
            }),
            None => doubt = Some(Doubt::NotUnderstood),
        }
    }
    proposed.extend(guard.owed(&proposed));
    let mut accepted: Vec<(&str, Arguments)> = Vec::new();
    for checked in guard.check(&proposed) {
        match checked {
            // The same action twice is a slip of the model, not two wishes.
            Ok(call) if accepted.contains(&call) => {}
            Ok(call) => accepted.push(call),
            Err(found) => doubt = doubt.or(Some(found)),
        }
    }
    let mut contents: Vec<Content> = accepted
        .into_iter()
        .enumerate()
        .map(|(index, (tool, arguments))| call(index, tool, arguments))
        .collect();
    match (doubt, word) {
        (Some(doubt), _) => contents.push(asked(contents.len(), &doubt)),
        (None, Some((control, args))) if contents.is_empty() => {
            contents.push(said(control, args, guard))
        }
        (None, Some(_) | None) => {}
    }
    contents
}

/// A word to the person.
fn said(control: &Control, args: &Arguments, guard: &Guard<'_>) -> Content {
    let words = args
        .get(control.argument)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim();
    if words.is_empty() || guard.claims_a_change(words) {
        return asked(0, &guard.not_done());
    }
    match control.function {
        Some(name) => call(
            0,
            name,
            [(control.argument.to_owned(), json!(words))]
                .into_iter()
                .collect(),
        ),
        None => Content::Text {
            text: words.to_owned(),
        },
    }
}

fn asked(index: usize, doubt: &Doubt<'_>) -> Content {
    call(
        index,
        ASK_USER,
        [("question".to_owned(), json!(doubt.question()))]
            .into_iter()
            .collect(),
    )
}

fn call(index: usize, name: &str, arguments: Arguments) -> Content {
    Content::ToolCall(ToolCall::from_object(
        index,
        None,
        name.to_owned(),
        arguments,
    ))
}
