//! Definitions of the task tools, and the schemas of their arguments.

use adjutant_core::{Annotations, ReferenceArgument, ToolDefinition, ToolError};
use serde_json::{Value, json};

use super::model::{DESCRIPTION_CHARS_MAX, TaskDescription};

/// The kind of entity that `task_id` refers to.
pub(super) const KIND: &str = "task";

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
    let required: Vec<&String> = properties
        .as_object()
        .map(|properties| properties.keys().filter(|name| *name != "status").collect())
        .unwrap_or_default();
    let references = if required.iter().any(|name| *name == "task_id") {
        vec![ReferenceArgument {
            argument: "task_id".to_owned(),
            kind: KIND.to_owned(),
        }]
    } else {
        Vec::new()
    };
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
        references,
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
