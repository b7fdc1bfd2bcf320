//! Downloads of models by a server.

use std::collections::BTreeMap;

use adjutant_core::ModelError;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tracing::debug;

use super::server::Server;
use crate::ndjson::LineParser;

/// The progress of a server's download of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullProgress {
    /// The server's description of the step: `pulling manifest`, `verifying sha256 digest`, ...
    pub status: String,
    /// Bytes downloaded, of all files known so far.
    pub done_bytes: u64,
    /// Bytes of all files known so far; 0 before the first is known.
    pub total_bytes: u64,
}

/// A line of `/api/pull`. Source: the vendor's API documentation, "Pull a model" (checked
/// 2026-11-22).
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default)]
    status: String,
    digest: Option<String>,
    total: Option<u64>,
    completed: Option<u64>,
    error: Option<String>,
}

impl Server {
    /// Asks the server to download a model, and reports the progress. Dropping the future stops the
    /// download; the server keeps the bytes it has, and the next pull continues from there.
    ///
    /// # Errors
    /// [`ModelError::NotFound`] if no model of that name is published, [`ModelError::Server`] if
    /// the server could not download it, [`ModelError::Truncated`] if the connection closed before
    /// it was done; and those of [`Server::version`].
    pub async fn pull(
        &self,
        model: &str,
        on_progress: &mut (dyn FnMut(PullProgress) + Send),
    ) -> Result<(), ModelError> {
        debug!(model, "the Ollama server is asked to download a model");
        let body = Bytes::from(json!({ "model": model, "stream": true }).to_string());
        let (vendor, mut stream) = self.stream("pull", model, body).await?;
        let (mut lines, mut parts) = (LineParser::default(), Parts::default());
        loop {
            let chunk = stream.next().await?;
            let complete = match &chunk {
                Some(bytes) => lines.push(bytes),
                None => lines.finish().into_iter().collect(),
            };
            for line in complete {
                let line: Line = serde_json::from_str(&line).map_err(|error| {
                    vendor.invalid(format!("a line of the progress: {error}"), &line)
                })?;
                if let Some(error) = line.error {
                    return Err(pull_error(&vendor, model, error));
                }
                // The only sign that the model is there: the connection may also just end.
                if line.status == "success" {
                    debug!(model, "the Ollama server has the model");
                    return Ok(());
                }
                on_progress(parts.add(line));
            }
            if chunk.is_none() {
                return Err(
                    vendor.truncated("the server stopped before the model was there".to_owned())
                );
            }
        }
    }
}

/// Classifies an error message in the middle of an answer with status 200.
fn pull_error(vendor: &crate::error::Vendor, model: &str, message: String) -> ModelError {
    let provider = vendor.model.provider.clone();
    if message.contains("file does not exist") || message.contains("not found") {
        return ModelError::NotFound {
            provider,
            model: model.to_owned(),
            message,
        };
    }
    ModelError::Server {
        provider,
        status: 500,
        message,
        retry_after: None,
    }
}

/// The downloaded and total bytes of a model's files, by digest.
#[derive(Debug, Default)]
struct Parts(BTreeMap<String, (u64, u64)>);

impl Parts {
    fn add(&mut self, line: Line) -> PullProgress {
        if let (Some(digest), Some(total)) = (line.digest, line.total) {
            let part = self.0.entry(digest).or_default();
            // The first line of a file has no `completed`.
            *part = (line.completed.unwrap_or(part.0).min(total), total);
        }
        PullProgress {
            status: line.status,
            done_bytes: self.0.values().map(|part| part.0).sum(),
            total_bytes: self.0.values().map(|part| part.1).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_none_is_more_than_whole() {
        let mut parts = Parts::default();
        let mut add = |text: &str| {
            let progress = parts.add(serde_json::from_str(text).unwrap());
            (progress.done_bytes, progress.total_bytes)
        };
        assert_eq!(add(r#"{"status":"pulling manifest"}"#), (0, 0));
        assert_eq!(
            add(r#"{"status":"pulling a","digest":"a","total":100}"#),
            (0, 100)
        );
        assert_eq!(
            add(r#"{"status":"pulling a","digest":"a","total":100,"completed":40}"#),
            (40, 100)
        );
        assert_eq!(
            add(r#"{"status":"pulling b","digest":"b","total":10,"completed":11}"#),
            (50, 110)
        );
        assert_eq!(add(r#"{"status":"verifying sha256 digest"}"#), (50, 110));
    }
}
