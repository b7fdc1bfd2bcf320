//! A tool as its arguments, its texts and its effect; the rest of the trait
//! [`Tool`](adjutant_core::Tool) is written here once.

use std::future::Future;
use std::sync::Arc;

use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, Tool, ToolContext, ToolDefinition, ToolError,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The operation of one tool of this folder.
pub(super) trait Operation: Send + Sync + 'static {
    /// The arguments of a call. Their schema is in the definition.
    type Args: DeserializeOwned + Send;

    /// The text that a person is asked for confirmation with. `None`: the call is shown as it is.
    const PREVIEW: Option<fn(&Self::Args) -> String> = None;

    /// The argument whose text is read in later conversations, as [`Tool::recalled_argument`] says.
    const RECALLED: Option<&'static str> = None;

    /// Returns the name, the description and the schema that a model reads.
    fn definition(&self) -> ToolDefinition;

    /// Prepares a call, as [`Tool::prepare`] does. Default: checks the arguments if there is a
    /// preview of them.
    fn prepare(
        &self,
        _context: &ToolContext,
        arguments: Arguments,
    ) -> impl Future<Output = Result<Prepared, ToolError>> + Send {
        let preview = match Self::PREVIEW {
            // Checked here, so that no user is asked about arguments that will be refused.
            Some(preview) => parse(arguments.clone()).map(|args| Some(preview(&args))),
            None => Ok(None),
        };
        std::future::ready(preview.map(|preview| Prepared::Ready { arguments, preview }))
    }

    /// Carries a call out.
    fn call(
        &self,
        context: &ToolContext,
        args: Self::Args,
    ) -> impl Future<Output = Result<Value, ToolError>> + Send;

    /// Returns true if a result holds text of others, as [`Tool::holds_text_of_others`] does. Default:
    /// false.
    fn holds_text_of_others(data: &Value) -> bool {
        let _ = data;
        false
    }

    /// Returns the result of a call as a message for the user. Default: that of [`with_message`].
    fn describe(data: &Value) -> Option<String> {
        data.get("message")?.as_str().map(str::to_owned)
    }
}

/// An [`Operation`] as a [`Tool`].
struct OperationTool<O> {
    definition: ToolDefinition,
    operation: O,
    /// True if the model is not expected to act on the notes that a result has for it.
    is_brief: bool,
}

/// Returns the tool of an operation.
pub(super) fn tool<O: Operation>(operation: O) -> Arc<dyn Tool> {
    Arc::new(OperationTool {
        definition: operation.definition(),
        operation,
        is_brief: false,
    })
}

/// Returns the tool of an operation for a weak model: with a shorter description, and one argument
/// instead of all of its own.
pub(super) fn brief_tool<O: Operation>(
    operation: O,
    description: &str,
    argument: &str,
) -> Arc<dyn Tool> {
    let full = operation.definition();
    let properties = json!({ argument: { "type": "string", "minLength": 1 } });
    Arc::new(OperationTool {
        definition: definition(
            full.name.as_str(),
            description,
            properties,
            &[argument],
            full.annotations,
        ),
        operation,
        is_brief: true,
    })
}

impl<O: Operation> Tool for OperationTool<O> {
    fn recalled_argument(&self) -> Option<&str> {
        O::RECALLED
    }

    fn holds_text_of_others(&self, data: &Value) -> bool {
        O::holds_text_of_others(data)
    }

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(self.operation.prepare(context, arguments))
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { self.operation.call(context, parse(arguments)?).await })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        let message = O::describe(data)?;
        // A model is told to ask which fact is true; a weak one is not called again for that.
        let beside = data.get("beside").filter(|_| self.is_brief);
        Some(
            match beside.and_then(|beside| beside.get("fact")?.as_str()) {
                Some(beside) => format!(
                    "{message}\nI know “{beside}” too, and both can hardly be true: forget the one that is wrong."
                ),
                None => message,
            },
        )
    }
}

/// Parses arguments; the error names the argument that does not fit.
pub(super) fn parse<T: DeserializeOwned>(arguments: Arguments) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let place = match path.as_str() {
            // The path of the whole, for example of a field that is missing.
            "." => "the arguments",
            path => path,
        };
        ToolError::invalid(format!("{place}: {}", error.inner()))
    })
}

/// Returns the annotations of a tool that changes the memory and nothing else, and absorbs a repeat
/// of the same call.
pub(super) fn writes() -> Annotations {
    Annotations {
        keyed: true,
        closed_world: true,
        ..Annotations::default()
    }
}

/// Returns the annotations of a tool that deletes something.
pub(super) fn deletes() -> Annotations {
    Annotations {
        destructive: true,
        ..writes()
    }
}

/// Returns the annotations of a tool that changes nothing.
pub(super) fn reads() -> Annotations {
    Annotations {
        read_only: true,
        idempotent: true,
        closed_world: true,
        ..Annotations::default()
    }
}

/// Returns a definition whose parameters are an object with these properties and no others.
pub(super) fn definition(
    name: &str,
    description: &str,
    properties: Value,
    required: &[&str],
    annotations: Annotations,
) -> ToolDefinition {
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
    definition.annotated(annotations)
}

/// Returns the data of a write, with its message for the user.
pub(super) fn with_message(data: &impl serde::Serialize, message: &str) -> Value {
    let mut data = json!(data);
    data["message"] = json!(message);
    data
}

/// Adds the remark on what a list leaves out, if it leaves out anything.
pub(super) fn with_remark(mut lines: Vec<String>, data: &Value) -> String {
    let remark = data.get("cut").and_then(Value::as_str);
    lines.extend(remark.map(|remark| format!("({remark})")));
    lines.join("\n")
}
