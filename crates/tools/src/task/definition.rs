//! Definitions of the task tools, and the schemas of their arguments.

use adjutant_core::{Annotations, ReferenceArgument, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::model::{DESCRIPTION_CHARS_MAX, TaskDescription};

/// The kind of entity that `task_id` refers to.
pub(super) const KIND: &str = "task";

/// The arguments of a tool that names a task and nothing else. `Id` is text, an id or words, until
/// the call has been prepared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskArgs<Id> {
    pub(super) task_id: Id,
}

/// Builds the definition of a task tool. All `properties` but `status` are required. The tool is
/// marked as one that reaches nothing outside: tasks are in the agent's store.
pub(super) fn definition(
    name: &str,
    description: &str,
    properties: Value,
    annotations: Annotations,
    output_schema: Value,
) -> ToolDefinition {
    let annotations = Annotations {
        closed_world: true,
        ..annotations
    };
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    let required: Vec<&String> = names.filter(|name| *name != "status").collect();
    // By the schema and not by the tool: each tool with this argument means a task by it.
    let reference = properties.get("task_id").map(|_| ReferenceArgument {
        argument: "task_id".to_owned(),
        kind: KIND.to_owned(),
    });
    let mut parameters = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    parameters["additionalProperties"] = json!(false);
    #[expect(
        clippy::expect_used,
        reason = "names and descriptions are constants of this folder, tested"
    )]
    let definition =
        ToolDefinition::new(name, description, parameters).expect("a valid definition");
    ToolDefinition {
        references: reference.into_iter().collect(),
        ..definition.annotated(annotations).returning(output_schema)
    }
}

/// Returns the schema of a task's description.
pub(super) fn description_property(description: &str) -> Value {
    json!({ "type": "string", "description": description, "minLength": 1, "maxLength": DESCRIPTION_CHARS_MAX })
}

/// Returns the schema of `task_id`.
pub(super) fn task_id_property(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Parses the description of a task.
pub(super) fn parse_description(text: &str) -> Result<TaskDescription, ToolError> {
    TaskDescription::new(text).map_err(|error| ToolError::invalid(error.to_string()))
}
