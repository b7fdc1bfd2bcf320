//! References to other documents.

use serde_json::Value;

/// A retriever that fetches nothing, so that a schema that needs another document is rejected.
pub(super) struct NoRemote;

impl jsonschema::Retrieve for NoRemote {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("it refers to {uri}, and other documents are not fetched").into())
    }
}
