//! Messages with tools that no agent has: they show the form of an answer, several calls, a missing
//! argument and what no tool does. They are data, in `languages/general.jsonl`.

use std::sync::LazyLock;

use adjutant_core::ToolDefinition;
use serde::Deserialize;

use crate::example::Action;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Example {
    pub(super) tools: Vec<ToolDefinition>,
    pub(super) message: String,
    pub(super) answer: Vec<Action>,
}

// Parsed once, with the first message that needs them.
static ALL: LazyLock<Vec<Example>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the file is compiled in, and a test parses it"
    )]
    serde_json::Deserializer::from_str(include_str!("../../languages/general.jsonl"))
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("valid examples")
});

pub(super) fn all() -> &'static [Example] {
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_answers_with_its_tools_or_with_one_text() {
        for Example {
            tools,
            message,
            answer,
        } in all()
        {
            assert!(!answer.is_empty(), "{message}");
            for action in answer {
                let tool = tools.iter().find(|tool| tool.name.as_str() == action.tool);
                match tool {
                    Some(tool) => assert!(
                        tool.required().all(|name| action.args.get(name).is_some()),
                        "{message}"
                    ),
                    None => assert!(
                        crate::actions::control(&action.tool).is_some() && answer.len() == 1,
                        "{message}"
                    ),
                }
            }
        }
    }
}
