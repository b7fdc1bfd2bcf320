//! Calls of tools that do not act on entities of the person: own tools of an agent, and those of MCP
//! servers.
//!
//! The words of a message are evidence for a tool if they stand in its declaration, and for an
//! argument if they stand in its value. A tool without evidence is not offered; a call whose
//! arguments the model made up becomes a question.

mod evidence; // words of a message that speak for a tool or an argument
mod examples; // messages with other tools, which show the form of an answer
mod prompt; // the messages the model reads

pub(super) use prompt::messages;

use adjutant_core::{ActionKind, ActionScores, Arguments, Content, ToolDefinition};
use serde_json::{Value, json};

use super::actions::{self, ACTIONS_MAX, CONTROLS};
use super::answer::{Action, call, question_call, reply_content};
use super::clarification::Clarification;
use super::dialogue::Dialogue;
use super::entities;
use super::guard::Guard;
use super::tool_kind::{is_of_entities, is_of_memory};
use super::word_classifier::WordClassifier;
use evidence::Evidence;

/// Most tools that one request offers, and most characters of their declarations: more do not fit a
/// small context window.
const OFFERED_MAX: usize = 8;
const DECLARED_CHARS_MAX: usize = 5000;

/// Least probability of an action on entities, which then is what a message asks for.
const LIKELY: f32 = 0.5;

/// Words of a tool's name in a message which mean the tool, whatever else the message may be.
const NAMED: usize = 2;

/// Characters that an argument may have beyond those of the message.
const ADDED_CHARS: usize = 80;

/// The tools of an agent: those that act on entities of the person or on their memory, and others.
#[derive(Debug)]
pub(super) struct Tools<'a> {
    pub(super) of_entities: Vec<&'a ToolDefinition>,
    pub(super) general: Vec<&'a ToolDefinition>,
}

impl<'a> Tools<'a> {
    pub(super) fn new(tools: &[&'a ToolDefinition]) -> Self {
        let kinds: Vec<&str> = entities::kinds(tools).collect();
        let (of_entities, general) = tools
            .iter()
            .partition(|tool| is_of_entities(tool, &kinds) || is_of_memory(tool));
        Self {
            of_entities,
            general,
        }
    }

    /// Returns the general tools that a message is offered. `None` if it is about entities, or if
    /// there is no general tool.
    pub(super) fn for_message(
        &self,
        dialogue: &Dialogue,
        scores: Option<&ActionScores>,
    ) -> Option<Vec<&'a ToolDefinition>> {
        if self.general.is_empty() {
            return None;
        }
        let evidence = Evidence::new(&dialogue.source());
        let mut found: Vec<(usize, &ToolDefinition)> = self
            .general
            .iter()
            .map(|tool| (evidence.of_tool(tool), *tool))
            .collect();
        if !self.of_entities.is_empty() {
            let by_words;
            let scores = match scores {
                Some(scores) => scores,
                None => {
                    by_words = WordClassifier::built_in().scores(&dialogue.message);
                    &by_words
                }
            };
            found.retain(|(_, tool)| evidence.can_compare(tool) || is_declined(scores));
            let is_named = |tool: &ToolDefinition| evidence.in_name(tool) >= NAMED;
            if asks_for_entities(scores) && !self.general.iter().any(|tool| is_named(tool)) {
                return None;
            }
        }
        // Words of another language than the declarations' say nothing about them.
        found.retain(|(words, tool)| *words > 0 || !evidence.can_compare(tool));
        if found.is_empty() && !self.of_entities.is_empty() {
            return None;
        }
        // Tools with as many words stay in their order.
        found.sort_by_key(|(words, _)| std::cmp::Reverse(*words));
        let mut room = DECLARED_CHARS_MAX;
        let fitting = found.into_iter().map(|(_, tool)| tool).filter(|tool| {
            let declared = prompt::declared(&[*tool]).chars().count();
            let fits = declared <= room;
            room -= if fits { declared } else { 0 };
            fits
        });
        Some(fitting.take(OFFERED_MAX).collect())
    }
}

/// Returns true if a message asks for an action on entities or on the memory.
fn asks_for_entities(scores: &ActionScores) -> bool {
    ActionKind::ALL
        .into_iter()
        .filter(|kind| {
            !matches!(
                kind,
                ActionKind::Reply | ActionKind::Decline | ActionKind::Ask
            )
        })
        .any(|kind| scores.of(kind) >= LIKELY)
}

fn is_declined(scores: &ActionScores) -> bool {
    scores.likeliest() == ActionKind::Decline
}

/// Returns the schema of an answer: calls of these tools, or one text to the person.
pub(super) fn schema(dialogue: &Dialogue, tools: &[&ToolDefinition]) -> Value {
    let chars_max = dialogue.message.chars().count() + ADDED_CHARS;
    let calls: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let mut arguments = actions::bounded(&tool.parameters, chars_max);
            if let Some(fields) = arguments.as_object_mut() {
                // A weak model invents arguments where it may.
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            actions::action_schema(tool.name.as_str(), arguments)
        })
        .collect();
    let text = actions::text_schema(&CONTROLS);
    match calls.is_empty() {
        true => text,
        false => json!({ "anyOf": [actions::array_schema(calls, 1, ACTIONS_MAX), text] }),
    }
}

/// Returns the calls, question or reply of an answer.
pub(super) fn contents(
    chosen: &[Action],
    dialogue: &Dialogue,
    tools: &[&ToolDefinition],
) -> Vec<Content> {
    let guard = Guard::new(dialogue, &[], tools);
    let ask = |index: usize, clarification: &Clarification<'_>| {
        question_call(index, clarification, guard.language)
    };
    let evidence = Evidence::new(&dialogue.source());
    let mut accepted: Vec<(&str, Arguments)> = Vec::new();
    let mut open = None;
    for action in chosen {
        let Some(tool) = tools.iter().find(|tool| tool.name.as_str() == action.tool) else {
            continue;
        };
        match evidence.checked(tool, action.args.clone()) {
            Ok(arguments) => {
                let call = (tool.name.as_str(), arguments);
                // The same call twice is a slip of the model, not two requests.
                if !accepted.contains(&call) {
                    accepted.push(call);
                }
            }
            Err(argument) => {
                open = open.or(Some(Clarification::Argument {
                    name: argument.replace('_', " "),
                }));
            }
        }
    }
    let mut contents: Vec<Content> = accepted
        .into_iter()
        .enumerate()
        .map(|(index, (tool, arguments))| call(index, tool, arguments))
        .collect();
    let word = chosen
        .iter()
        .find_map(|action| Some((actions::control(&action.tool)?, &action.args)));
    match (open, word) {
        (Some(clarification), _) => contents.push(ask(contents.len(), &clarification)),
        (None, Some((control, args))) if contents.is_empty() => {
            contents.push(reply_content(control, args, &guard));
        }
        (None, None) if contents.is_empty() => contents.push(ask(0, &Clarification::NotUnderstood)),
        (None, _) => {}
    }
    contents
}
