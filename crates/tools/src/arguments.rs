//! Arguments of a call, read into a Rust type.

use adjutant_core::{Arguments, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the arguments; the error names the place that does not fit.
///
/// # Errors
/// [`ToolError::Invalid`].
pub(crate) fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." {
            "the arguments"
        } else {
            path.as_str()
        };
        ToolError::invalid(format!("{place}: {}", error.inner()))
    })
}
