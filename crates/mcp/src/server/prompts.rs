//! Prompts to start with, for users who have the tools they need.

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

/// Most characters of an argument.
const ARGUMENT_MAX: usize = 4_000;

/// A prompt to start with.
struct Starter {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The tools that it needs.
    tools: &'static [&'static str],
    /// Name and description of its only argument.
    argument: Option<(&'static str, &'static str)>,
    /// The user's message, with `{}` in the place of the argument.
    text: &'static str,
}

const STARTERS: &[Starter] = &[
    Starter {
        name: "what_next",
        title: "What should I do next?",
        description: "Looks at the open tasks and proposes an order.",
        tools: &["list_tasks"],
        argument: None,
        text: "List my open tasks. Then say which of them I should do first, and why, in a few sentences.",
    },
    Starter {
        name: "plan",
        title: "Plan a goal",
        description: "Breaks a goal down into tasks and adds them.",
        tools: &["add_task"],
        argument: Some((
            "goal",
            "What is to be reached, such as: move to a new flat by June",
        )),
        text: "Break this goal down into a few small steps, show them to me, and add each as a task:\n\n{}",
    },
    Starter {
        name: "tidy_up",
        title: "Tidy up my tasks",
        description: "Finds tasks that are done, double or unclear, and asks about each.",
        tools: &["list_tasks", "update_task"],
        argument: None,
        text: "List my tasks. Point out those that say the same, are unclear or look done already, and ask me what to do with each \
               before you change anything.",
    },
];

/// Lists the prompts for which the user has all tools.
pub(super) fn list(has_tool: impl Fn(&str) -> bool) -> ListPromptsResult {
    let prompts = STARTERS
        .iter()
        .filter(|starter| starter.tools.iter().all(|tool| has_tool(tool)))
        .map(|starter| {
            let arguments = starter.argument.map(|(name, what)| {
                vec![
                    PromptArgument::new(name)
                        .with_description(what)
                        .with_required(true),
                ]
            });
            Prompt::new(starter.name, Some(starter.description), arguments)
                .with_title(starter.title)
        });
    ListPromptsResult::with_all_items(prompts.collect())
}

/// Returns a prompt with its argument filled in.
pub(super) fn get(
    name: &str,
    arguments: Option<&JsonObject>,
    has_tool: impl Fn(&str) -> bool,
) -> Result<GetPromptResult, ErrorData> {
    let known = |starter: &&Starter| {
        starter.name == name && starter.tools.iter().all(|tool| has_tool(tool))
    };
    let starter = STARTERS
        .iter()
        .find(known)
        .ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt {name:?}"), None))?;
    let text = match starter.argument {
        None => starter.text.to_owned(),
        Some((argument, _)) => {
            let given = arguments
                .and_then(|arguments| arguments.get(argument))
                .and_then(Value::as_str);
            let given = given
                .map(str::trim)
                .filter(|given| (1..=ARGUMENT_MAX).contains(&given.chars().count()));
            let given = given.ok_or_else(|| {
                let detail =
                    format!("the argument {argument} is text of 1 to {ARGUMENT_MAX} characters");
                ErrorData::invalid_params(detail, None)
            })?;
            starter.text.replacen("{}", given, 1)
        }
    };
    let messages = vec![PromptMessage::new_text(Role::User, text)];
    Ok(GetPromptResult::new(messages).with_description(starter.description))
}
