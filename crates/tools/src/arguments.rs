//! Deserialisation of a call's arguments.

use adjutant_core::{Arguments, ToolError, with_integers};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the arguments of a call. An integer may be written with a fraction of zero.
///
/// # Errors
/// [`ToolError::Invalid`] with the path of the argument that does not fit.
pub(crate) fn parse_arguments<T: DeserializeOwned>(arguments: Arguments) -> Result<T, ToolError> {
    let arguments = Value::Object(arguments);
    let parsed = serde_path_to_error::deserialize(&arguments)
        .or_else(|error| T::deserialize(&with_integers(arguments.clone())).map_err(|_| error));
    parsed.map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
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
