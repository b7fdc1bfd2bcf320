//! Other documents than the schema itself.

use serde_json::Value;

/// Looks nothing up: a schema that needs another document is refused.
pub(super) struct NoRemote;

impl jsonschema::Retrieve for NoRemote {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("it refers to {uri}, and other documents are not fetched").into())
    }
}
