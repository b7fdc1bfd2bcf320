//! Deserialisation of a call's arguments.

use adjutant_core::{Arguments, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the arguments of a call.
///
/// # Errors
/// [`ToolError::Invalid`] with the path of the argument that does not fit.
pub(crate) fn parse_arguments<T: DeserializeOwned>(arguments: Arguments) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        // `serde_path_to_error` writes the root as a dot.
        let place = if path == "." {
            "the arguments"
        } else {
            path.as_str()
        };
        ToolError::invalid(format!("{place}: {}", error.inner()))
    })
}
