//! Support code for the expansion of `#[tool]`. It is no part of the public API: it changes
//! together with the macro.

use std::fmt::Display;
use std::marker::PhantomData;

use adjutant_core::{Annotations, Arguments, ToolDefinition, ToolError};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use adjutant_core;
pub use schemars;
pub use serde;
pub use serde_json::Value;

use crate::function::to_value;

/// Builds the definition of an annotated function. The macro has checked name and description.
#[must_use]
pub fn definition<Args: schemars::JsonSchema>(
    name: &str,
    description: &str,
    annotations: Annotations,
) -> ToolDefinition {
    #[expect(
        clippy::expect_used,
        reason = "`#[tool]` refuses such a name or description at compile time"
    )]
    let definition = ToolDefinition::new(name, description, adjutant_core::schema_of::<Args>())
        .expect("a name and a description that the macro has checked");
    definition.annotated(annotations)
}

/// Parses the arguments into the parameters of the function.
///
/// # Errors
/// [`ToolError::Invalid`] with the path of the argument that does not fit.
pub fn read<Args: DeserializeOwned>(arguments: Arguments) -> Result<Args, ToolError> {
    crate::arguments::parse_arguments(arguments)
}

/// The kind of a function's return type: a `Result` whose error is a [`ToolError`] or converts into
/// one, a `Result` whose error can be printed, or a plain value.
///
/// The macro calls `(&&&Kind::of(&returned)).kind()`: method lookup takes the impl with the most
/// references first.
#[derive(Debug)]
pub struct Kind<T>(PhantomData<fn() -> T>);

impl<T> Kind<T> {
    /// Creates the kind of a value's type; the value itself is not used.
    #[must_use]
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// The kind of a `Result` whose error converts into a [`ToolError`].
pub trait ToolResultKind {
    /// Returns the conversion of such a value into a result.
    fn kind(&self) -> FinishToolResult {
        FinishToolResult
    }
}
impl<T, E: Into<ToolError>> ToolResultKind for &&Kind<Result<T, E>> {}

/// The kind of a `Result` whose error can be printed.
pub trait ResultKind {
    /// Returns the conversion of such a value into a result.
    fn kind(&self) -> FinishResult {
        FinishResult
    }
}
impl<T, E: Display> ResultKind for &Kind<Result<T, E>> {}

/// The kind of every other value, which becomes the result as it is.
pub trait ValueKind {
    /// Returns the conversion of such a value into a result.
    fn kind(&self) -> FinishValue {
        FinishValue
    }
}
impl<T: Serialize> ValueKind for Kind<T> {}

/// Conversion of a `Result` whose error converts into a [`ToolError`].
#[derive(Debug)]
pub struct FinishToolResult;

impl FinishToolResult {
    /// Converts the value into JSON.
    ///
    /// # Errors
    /// The function's error, converted.
    pub fn finish<T: Serialize, E: Into<ToolError>>(
        self,
        returned: Result<T, E>,
    ) -> Result<Value, ToolError> {
        to_value(&returned.map_err(Into::into)?)
    }
}

/// Conversion of a `Result` whose error can be printed.
#[derive(Debug)]
pub struct FinishResult;

impl FinishResult {
    /// Converts the value into JSON.
    ///
    /// # Errors
    /// [`ToolError::Failed`] with the text of the function's error.
    pub fn finish<T: Serialize, E: Display>(
        self,
        returned: Result<T, E>,
    ) -> Result<Value, ToolError> {
        to_value(&returned.map_err(|error| ToolError::failed(error.to_string()))?)
    }
}

/// Conversion of a plain value, which is no `Result`.
#[derive(Debug)]
pub struct FinishValue;

impl FinishValue {
    /// Converts the value into JSON.
    ///
    /// # Errors
    /// [`ToolError::Unknown`] if it cannot be written as JSON.
    pub fn finish<T: Serialize>(self, returned: T) -> Result<Value, ToolError> {
        to_value(&returned)
    }
}
