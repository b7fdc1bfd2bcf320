//! Tools made from closures.

use std::fmt;
use std::time::Duration;

use adjutant_core::{
    Annotations, Arguments, BoxFuture, InvalidTool, Tool, ToolContext, ToolDefinition, ToolError,
    schema_of,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments::parse_arguments;

/// A tool made from a closure, for tools that are known only when the program runs, and for short
/// ones.
///
/// # Examples
///
/// ```
/// use adjutant_tools::FunctionTool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Args {
///     /// A city's name.
///     city: String,
/// }
///
/// let weather = FunctionTool::typed(
///     "weather",
///     "Weather for a city.",
///     |_context, args: Args| async move { Ok(format!("sunny in {}", args.city)) },
/// )?;
/// # Ok::<(), adjutant_core::InvalidTool>(())
/// ```
pub struct FunctionTool {
    definition: ToolDefinition,
    timeout: Option<Duration>,
    reads_from_others: bool,
    description: Option<Box<Description>>,
    function: Box<Function>,
}

type Function =
    dyn Fn(ToolContext, Arguments) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync;

type Description = dyn Fn(&Arguments, &Value) -> String + Send + Sync;

impl FunctionTool {
    /// Creates a tool whose closure takes its arguments as JSON. `parameters` is their JSON Schema;
    /// arguments that do not fit it never reach the closure.
    ///
    /// # Errors
    /// [`InvalidTool`] for a bad name or a blank description. The schema is compiled when the tool
    /// is registered.
    pub fn new<F, Fut>(
        name: &str,
        description: &str,
        parameters: Value,
        function: F,
    ) -> Result<Self, InvalidTool>
    where
        F: Fn(ToolContext, Arguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        Ok(Self {
            definition: ToolDefinition::new(name, description, parameters)?,
            timeout: None,
            reads_from_others: false,
            description: None,
            function: Box::new(move |context, arguments| Box::pin(function(context, arguments))),
        })
    }

    /// Creates a tool whose closure takes its arguments as a Rust type. The model is shown the
    /// type's schema with the docs of its fields.
    ///
    /// # Errors
    /// [`InvalidTool`] for a bad name or a blank description. A type that is no object is refused
    /// when the tool is registered.
    pub fn typed<Args, Out, F, Fut>(
        name: &str,
        description: &str,
        function: F,
    ) -> Result<Self, InvalidTool>
    where
        Args: DeserializeOwned + JsonSchema,
        Out: Serialize,
        F: Fn(ToolContext, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ToolError>> + Send + 'static,
    {
        Ok(Self {
            definition: ToolDefinition::new(name, description, schema_of::<Args>())?,
            timeout: None,
            reads_from_others: false,
            description: None,
            function: Box::new(move |context, arguments| {
                // The closure is called here and not in the future, which outlives the borrow of
                // the closure.
                let running = parse_arguments(arguments).map(|args| function(context, args));
                Box::pin(async move { to_value(&running?.await?) })
            }),
        })
    }

    /// Sets the annotations. Default: the tool counts as changing, not repeatable, not destructive.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.definition = self.definition.annotated(annotations);
        self
    }

    /// Marks the results as text of others; see [`Tool::reads_from_others`].
    #[must_use]
    pub fn reading_from_others(mut self) -> Self {
        self.reads_from_others = true;
        self
    }

    /// Sets how a successful call is told to the person, from its arguments and its result. Used
    /// where a model's text about results cannot be trusted; see [`Tool::describe`]. Default: the
    /// result in words.
    ///
    /// # Examples
    ///
    /// ```
    /// use adjutant_core::Tool as _;
    /// use adjutant_tools::FunctionTool;
    /// use serde_json::json;
    ///
    /// let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    /// let weather = FunctionTool::new("weather", "Weather for a city.", parameters, |_, _| async {
    ///     Ok(json!({"sky": "sunny"}))
    /// })?
    /// .described(|arguments, result| {
    ///     let city = arguments.get("city").and_then(|city| city.as_str());
    ///     format!("{} is {}.", city.unwrap_or("It"), result["sky"].as_str().unwrap_or("?"))
    /// });
    /// let arguments = json!({"city": "Oslo"}).as_object().cloned().unwrap_or_default();
    /// let told = weather.describe(&arguments, &json!({"sky": "sunny"}));
    /// assert_eq!(told.as_deref(), Some("Oslo is sunny."));
    /// # Ok::<(), adjutant_core::InvalidTool>(())
    /// ```
    #[must_use]
    pub fn described<F>(mut self, description: F) -> Self
    where
        F: Fn(&Arguments, &Value) -> String + Send + Sync + 'static,
    {
        self.description = Some(Box::new(description));
        self
    }

    /// Sets the bound of one execution. Default: the turn's `tool_timeout`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool")
            .field("definition", &self.definition)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Tool for FunctionTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        // The closure owns its context: its future must not borrow from the caller.
        (self.function)(context.clone(), arguments)
    }

    fn describe(&self, arguments: &Arguments, data: &Value) -> Option<String> {
        let description = self.description.as_ref()?;
        Some(description(arguments, data))
    }

    fn reads_from_others(&self) -> bool {
        self.reads_from_others
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// Converts a result into JSON. The tool has run even if this fails, so the outcome counts as
/// unknown then.
pub(crate) fn to_value<T: Serialize>(result: &T) -> Result<Value, ToolError> {
    serde_json::to_value(result).map_err(|error| ToolError::Unknown {
        message: format!("The tool ran, but its result cannot be written as JSON: {error}"),
    })
}
