//! What `#[tool]` expands to. Not part of the public API: it changes together with the macro.

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

/// The definition of an annotated function. The macro has checked name and description.
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

/// The arguments as the parameters of the function.
///
/// # Errors
/// [`ToolError::Invalid`] with the place that does not fit.
pub fn read<Args: DeserializeOwned>(arguments: Arguments) -> Result<Args, ToolError> {
    crate::arguments::read(arguments)
}

/// Finds out what a function returns: a `Result` whose error is a [`ToolError`] (or turns into
/// one), a `Result` whose error can be printed, or a plain value.
///
/// The macro calls `(&&&Kind::of(&returned)).kind()`: method lookup takes the impl with the most
/// references first.
#[derive(Debug)]
pub struct Kind<T>(PhantomData<fn() -> T>);

impl<T> Kind<T> {
    /// The kind of this value.
    #[must_use]
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// A `Result` whose error turns into a [`ToolError`].
pub trait ToolResultKind {
    /// How to finish.
    fn kind(&self) -> FinishToolResult {
        FinishToolResult
    }
}
impl<T, E: Into<ToolError>> ToolResultKind for &&Kind<Result<T, E>> {}

/// A `Result` whose error can be printed.
pub trait ResultKind {
    /// How to finish.
    fn kind(&self) -> FinishResult {
        FinishResult
    }
}
impl<T, E: Display> ResultKind for &Kind<Result<T, E>> {}

/// A plain value.
pub trait ValueKind {
    /// How to finish.
    fn kind(&self) -> FinishValue {
        FinishValue
    }
}
impl<T: Serialize> ValueKind for Kind<T> {}

/// See [`ToolResultKind`].
#[derive(Debug)]
pub struct FinishToolResult;

impl FinishToolResult {
    /// The value as JSON.
    ///
    /// # Errors
    /// The function's own.
    pub fn finish<T: Serialize, E: Into<ToolError>>(
        self,
        returned: Result<T, E>,
    ) -> Result<Value, ToolError> {
        to_value(&returned.map_err(Into::into)?)
    }
}

/// See [`ResultKind`].
#[derive(Debug)]
pub struct FinishResult;

impl FinishResult {
    /// The value as JSON.
    ///
    /// # Errors
    /// [`ToolError::Failed`] with the words of the function's own.
    pub fn finish<T: Serialize, E: Display>(
        self,
        returned: Result<T, E>,
    ) -> Result<Value, ToolError> {
        to_value(&returned.map_err(|error| ToolError::failed(error.to_string()))?)
    }
}

/// See [`ValueKind`].
#[derive(Debug)]
pub struct FinishValue;

impl FinishValue {
    /// The value as JSON.
    ///
    /// # Errors
    /// [`ToolError::Unknown`] if it cannot be written as JSON.
    pub fn finish<T: Serialize>(self, returned: T) -> Result<Value, ToolError> {
        to_value(&returned)
    }
}
