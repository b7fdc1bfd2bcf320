//! Decoding of the model's answer: a list of actions becomes calls, and each doubt a question.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use adjutant_core::turn::{ASK_USER, DECLINE};
use adjutant_core::{
    Arguments, Content, FinishReason, GenerateResponse, Language, Part, ToolCall, ToolDefinition,
};

use super::actions::{self, ACTIONS_MAX, Control};
use super::clarification::Clarification;
use super::detect::detect;
use super::false_claim::claims_a_change;
use super::guard::{Guard, Proposed};
use super::scored::{Decision, Scored};
use super::sentences::sentence;

/// An object with one key, the tool's name, whose value is the arguments.
#[derive(Debug, Deserialize)]
#[serde(try_from = "BTreeMap<String, Arguments>")]
pub(super) struct Action {
    pub(super) tool: String,
    pub(super) args: Arguments,
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

/// Puts what the actions of an answer stand for in its place. `None` is given for an answer that is no
/// list of actions.
pub(super) fn decode(
    mut response: GenerateResponse,
    contents: impl FnOnce(Option<Vec<Action>>) -> Vec<Content>,
) -> GenerateResponse {
    match response.finish {
        // There is no answer to decode; the turn reports both itself.
        FinishReason::ContentFilter | FinishReason::MalformedCall => return response,
        // A list that the token bound cut off does not parse, and becomes a question.
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MaxTokens => {}
    }
    let mut parts: Vec<Part> = response
        .parts
        .iter()
        .filter(|part| matches!(part.content, Content::Thinking { .. }))
        .cloned()
        .collect();
    let contents = contents(parse_actions(&response.text()));
    parts.extend(contents.into_iter().map(Part::ours));
    response.parts = parts;
    let calls = response.tool_calls().next().is_some();
    response.finish = match calls {
        true => FinishReason::ToolCalls,
        false => FinishReason::Stop,
    };
    response
}

/// Returns the calls, question or reply of a message without scores.
pub(super) fn guarded(
    actions: Option<Vec<Action>>,
    guard: &Guard<'_>,
    tools: &[&ToolDefinition],
) -> Vec<Content> {
    match actions.filter(|actions| !actions.is_empty()) {
        Some(actions) => contents(&actions, guard, tools),
        // The call does not depend on the model: its text is the user's.
        None if guard.must_call() => contents(&[], guard, tools),
        None => vec![question_call(
            0,
            &Clarification::NotUnderstood,
            guard.language,
        )],
    }
}

/// Parses the list in the text. A server that does not enforce the schema may put text around it,
/// or leave out the brackets.
fn parse_actions(text: &str) -> Option<Vec<Action>> {
    let list = |open: char, close: char| {
        let (start, end) = (text.find(open)?, text.rfind(close)?);
        text.get(start..=end)
    };
    // A list first: an object inside of it would be found as well.
    let actions: Vec<Action> = match list('[', ']').and_then(|list| serde_json::from_str(list).ok())
    {
        Some(actions) => actions,
        None => vec![serde_json::from_str(list('{', '}')?).ok()?],
    };
    (actions.len() <= ACTIONS_MAX).then_some(actions)
}

/// Returns the calls, question or reply of a scored message.
pub(super) fn decided(
    scored: &Scored<'_>,
    chosen: &[Action],
    certainty: Option<f32>,
) -> Vec<Content> {
    let language = scored.language();
    let ask =
        |at: usize, clarification: &Clarification<'_>| question_call(at, clarification, language);
    match scored.decide() {
        Decision::Act(steps, open) => {
            let (calls, left) = scored.calls(&steps, chosen, certainty);
            let mut contents: Vec<Content> = calls
                .into_iter()
                .enumerate()
                .map(|(index, (tool, arguments))| call(index, tool, arguments))
                .collect();
            if let Some(clarification) = open.or(left) {
                contents.push(ask(contents.len(), &clarification));
            }
            contents
        }
        Decision::Ask(clarification) => vec![ask(0, &clarification)],
        Decision::Decline => vec![call_with(
            0,
            DECLINE,
            "message",
            sentence(language, "decline"),
        )],
        Decision::Reply(text) => vec![Content::Text {
            text: text.to_owned(),
        }],
        Decision::SmallTalk => {
            let words = chosen
                .first()
                .and_then(|action| action.args.get(actions::CONTROLS[0].argument))
                .and_then(Value::as_str)
                .map(str::trim)
                .filter(|words| !words.is_empty() && !claims_a_change(words))
                .filter(|words| [language, Language::English].contains(&detect(words)));
            // A fact that is only taken note of is not kept.
            if let Some(clarification) = words.and_then(|words| scored.fact_taken_note_of(words)) {
                return vec![ask(0, &clarification)];
            }
            vec![Content::Text {
                text: words.unwrap_or(sentence(language, "help")).to_owned(),
            }]
        }
    }
}

fn contents(actions: &[Action], guard: &Guard<'_>, tools: &[&ToolDefinition]) -> Vec<Content> {
    if let Some(clarification) = guard.bare_mention().or_else(|| guard.missing_text()) {
        return vec![question_call(0, &clarification, guard.language)];
    }
    let word = actions
        .iter()
        .find_map(|action| Some((actions::control(&action.tool)?, &action.args)));
    let mut proposed = Vec::new();
    let mut clarification = None;
    for action in actions
        .iter()
        .filter(|action| actions::control(&action.tool).is_none())
    {
        match tools.iter().find(|tool| tool.name.as_str() == action.tool) {
            Some(tool) => proposed.push(Proposed {
                tool,
                arguments: action.args.clone(),
            }),
            None => clarification = Some(Clarification::NotUnderstood),
        }
    }
    // Where the message is beyond doubt, its words decide and not the model.
    proposed.extend(guard.missing_calls(&proposed));
    let mut accepted: Vec<(&str, Arguments)> = Vec::new();
    for checked in guard.check(&proposed) {
        match checked {
            // The same action twice is a slip of the model, not two requests.
            Ok(call) if accepted.contains(&call) => {}
            Ok(call) => accepted.push(call),
            Err(found) => clarification = clarification.or(Some(found)),
        }
    }
    let mut contents: Vec<Content> = accepted
        .into_iter()
        .enumerate()
        .map(|(index, (tool, arguments))| call(index, tool, arguments))
        .collect();
    match (clarification, word) {
        (Some(clarification), _) => {
            contents.push(question_call(
                contents.len(),
                &clarification,
                guard.language,
            ));
        }
        (None, Some((control, args))) if contents.is_empty() => {
            contents.push(reply_content(control, args, guard))
        }
        (None, Some(_) | None) => {}
    }
    contents
}

/// Returns the reply, question or refusal of a control action.
pub(super) fn reply_content(control: &Control, args: &Arguments, guard: &Guard<'_>) -> Content {
    let words = args
        .get(control.argument)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim();
    // The answer has no call, so a text that says that something was changed is false. In a language
    // that nobody can check here, any statement may say so.
    let may_claim =
        guard.claims_a_change(words) || control.function.is_none() && guard.is_beyond_lists(words);
    if words.is_empty() || may_claim {
        return question_call(0, &guard.nothing_done(), guard.language);
    }
    match control.function {
        Some(name) => call_with(0, name, control.argument, words),
        None => Content::Text {
            text: words.to_owned(),
        },
    }
}

pub(super) fn question_call(
    index: usize,
    clarification: &Clarification<'_>,
    language: Language,
) -> Content {
    call_with(
        index,
        ASK_USER,
        "question",
        &clarification.question(language),
    )
}

fn call_with(index: usize, name: &str, argument: &str, text: &str) -> Content {
    let arguments = Arguments::from_iter([(argument.to_owned(), json!(text))]);
    call(index, name, arguments)
}

pub(super) fn call(index: usize, name: &str, arguments: Arguments) -> Content {
    Content::ToolCall(ToolCall::from_object(
        index,
        None,
        name.to_owned(),
        arguments,
    ))
}
