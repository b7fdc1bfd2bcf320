//! Definitions of tools, as models see them, and the effect class of a call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Arguments;
use super::name::{InvalidToolName, ToolName};
use crate::fingerprint::fingerprint;

/// The effects of a tool, in MCP's terms. All false says nothing: the most careful reading applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// It changes nothing: calls may run concurrently and again.
    pub read_only: bool,
    /// It destroys something: a person confirms the call unless the policy says otherwise.
    pub destructive: bool,
    /// Two calls have the effect of one.
    pub idempotent: bool,
    /// It absorbs a repeat with the same [`IdempotencyKey`](crate::IdempotencyKey), though it is
    /// not idempotent by nature.
    pub keyed: bool,
    /// Its calls may run beside others although they change something.
    pub parallel: bool,
    /// It touches nothing but what this agent keeps: no network, no other program.
    pub closed_world: bool,
}

/// The effect class of a call: may it be repeated after a crash?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No effect outside, as of a model call or a read-only tool. The call may run again.
    None,
    /// The receiver absorbs a repeat with the same key, or the operation is idempotent.
    Keyed,
    /// Must not be started twice. The default of a tool that says nothing.
    Once,
}

impl Annotations {
    /// Returns the effect class that follows from the annotations.
    #[must_use]
    pub fn effect(self) -> Effect {
        // The most careful reading of what a tool says about itself: only what is declared counts.
        if self.read_only {
            Effect::None
        } else if self.idempotent || self.keyed {
            Effect::Keyed
        } else {
            Effect::Once
        }
    }
}

/// An argument that refers to one of the user's entities, such as a task by its description or id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceArgument {
    /// The argument's name, such as `task_id`.
    pub argument: String,
    /// The kind of entity, such as `task`.
    pub kind: String,
}

/// The definition of a tool: what models see, and what arguments are checked against.
///
/// # Examples
///
/// ```
/// use adjutant_core::{Annotations, ToolDefinition};
/// use serde_json::json;
///
/// let weather = ToolDefinition::new(
///     "weather",
///     "Weather for a city.",
///     json!({ "type": "object", "properties": { "city": { "type": "string" } } }),
/// )?
/// .annotated(Annotations { read_only: true, ..Annotations::default() });
/// assert_eq!(weather.name.as_str(), "weather");
/// # Ok::<(), adjutant_core::InvalidTool>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name that the model calls.
    pub name: ToolName,
    /// A description of its work and of when to use it.
    pub description: String,
    /// JSON Schema of its arguments, always an object schema. Draft by `$schema`, default 2020-12.
    pub parameters: Value,
    /// The effects of a call.
    #[serde(default)]
    pub annotations: Annotations,
    /// Arguments that refer to the user's entities; see
    /// [`Tool::references`](crate::Tool::references).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceArgument>,
    /// JSON Schema of a successful call's result, for clients that want to know. Models do
    /// not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The user's intent that a call shows in the log, such as `CREATE_TASK`. `None`: the name of
    /// the tool. Models do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
}

impl ToolDefinition {
    /// Returns arguments in the order in which the schema names them, and behind them those that it
    /// does not name, by name.
    #[must_use]
    pub fn in_order(&self, mut arguments: Arguments) -> Arguments {
        let named = self.parameters.get("properties").and_then(Value::as_object);
        let mut ordered = Arguments::new();
        for name in named.into_iter().flat_map(|named| named.keys()) {
            if let Some(value) = arguments.shift_remove(name) {
                ordered.insert(name.clone(), value);
            }
        }
        let mut rest: Vec<(String, Value)> = arguments.into_iter().collect();
        rest.sort_by(|one, other| one.0.cmp(&other.0));
        ordered.extend(rest);
        ordered
    }

    /// Returns the names of the arguments that a call must have.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let required = self.parameters.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Creates a definition without annotations: the tool counts as changing, not repeatable, not
    /// destructive.
    ///
    /// # Errors
    /// [`InvalidTool`] for a bad name or a blank description. The schema is compiled when the tool
    /// is registered.
    pub fn new(name: &str, description: &str, parameters: Value) -> Result<Self, InvalidTool> {
        if description.trim().is_empty() {
            return Err(InvalidTool::Description {
                name: name.to_owned(),
            });
        }
        Ok(Self {
            name: ToolName::new(name)?,
            description: description.trim().to_owned(),
            parameters,
            annotations: Annotations::default(),
            references: Vec::new(),
            output_schema: None,
            intent: None,
        })
    }

    /// Returns the SHA-256, in hex, of everything a person or a model knows the tool by: name,
    /// description, parameters with sorted keys, annotations.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let Self {
            name,
            description,
            parameters,
            annotations,
            ..
        } = self;
        fingerprint(&serde_json::json!([
            name,
            description,
            parameters,
            annotations
        ]))
    }

    /// Sets the JSON Schema of a successful call's result.
    #[must_use]
    pub fn returning(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Sets the user's intent that a call shows in the log. Default: the name of the tool.
    #[must_use]
    pub fn with_intent(mut self, intent: impl Into<String>) -> Self {
        self.intent = Some(intent.into());
        self
    }

    /// Returns the user's intent that a call shows in the log.
    #[must_use]
    pub fn intent(&self) -> &str {
        self.intent.as_deref().unwrap_or(self.name.as_str())
    }

    /// Sets the annotations; see [`ToolDefinition::new`] for the default.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }
}

/// A reason for which a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTool {
    /// The name does not match the pattern of tool names.
    #[error(transparent)]
    Name(#[from] InvalidToolName),
    /// The description is blank, and the model chooses by it.
    #[error("tool {name} needs a description: the model chooses by it")]
    Description {
        /// The name of the tool.
        name: String,
    },
    /// The parameters are not a JSON Schema of an object.
    #[error("the parameters of tool {name} are not a usable JSON Schema: {reason}")]
    Schema {
        /// The name of the tool.
        name: String,
        /// The validator's message.
        reason: String,
    },
    /// Another tool with this name is registered already.
    #[error("a tool named {name} is already registered")]
    Duplicate {
        /// The name that both have.
        name: String,
    },
    /// The name belongs to a control function of the turn.
    #[error("{name} is reserved: the turn uses it itself")]
    Reserved {
        /// The name that cannot be used.
        name: String,
    },
}
