//! Examples that show the model which actions a message calls for. They are data, read from JSON
//! lines.

use serde::Deserialize;
use serde_json::Value;

use adjutant_core::{Reference, ToolDefinition};

use super::actions;

/// A line of examples that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the examples: {reason}")]
pub struct InvalidExamples {
    /// Number of the line, from 1.
    pub line: usize,
    /// Reason why the line was refused, as a phrase.
    pub reason: String,
}

/// An instruction with its examples.
#[derive(Debug, Clone, Default)]
pub(super) struct Examples {
    pub(super) instruction: Option<String>,
    all: Vec<Example>,
}

/// One message and the right answer to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Example {
    pub(super) references: Option<Vec<Reference>>,
    pub(super) earlier: Option<String>,
    pub(super) before: Option<String>,
    pub(super) message: String,
    pub(super) answer: Vec<Action>,
}

/// One action of an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    pub(super) tool: String,
    pub(super) args: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    instruction: String,
}

impl Examples {
    pub(super) fn from_jsonl(text: &str) -> Result<Self, InvalidExamples> {
        let mut examples = Self::default();
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let invalid = |reason: String| InvalidExamples {
                line: index + 1,
                reason,
            };
            if index == 0
                && let Ok(head) = serde_json::from_str::<Head>(line)
            {
                examples.instruction = Some(head.instruction);
                continue;
            }
            let example: Example =
                serde_json::from_str(line).map_err(|error| invalid(error.to_string()))?;
            // An example without a message or an answer shows the model nothing.
            if example.message.trim().is_empty() || example.answer.is_empty() {
                return Err(invalid(
                    "an example needs a message and an answer".to_owned(),
                ));
            }
            if example.answer.iter().any(|action| !action.args.is_object()) {
                return Err(invalid("args must be an object".to_owned()));
            }
            examples.all.push(example);
        }
        Ok(examples)
    }

    /// Returns true if one of the examples calls the tool.
    pub(super) fn shows_tool(&self, tool: &ToolDefinition) -> bool {
        self.all
            .iter()
            .flat_map(|example| &example.answer)
            .any(|action| action.tool == tool.name.as_str())
    }

    /// Returns the examples that can be answered with these tools.
    pub(super) fn fitting<'a>(
        &'a self,
        tools: &'a [&ToolDefinition],
    ) -> impl Iterator<Item = &'a Example> {
        let known = |name: &str| {
            actions::control(name).is_some() || tools.iter().any(|tool| tool.name.as_str() == name)
        };
        self.all
            .iter()
            // An example of a missing tool would teach a call that the schema does not allow.
            .filter(move |example| example.answer.iter().all(|action| known(&action.tool)))
    }
}
