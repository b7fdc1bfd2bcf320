use std::time::Duration;

use hyper::header::{ACCEPT, CONTENT_TYPE};
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use crate::client::{Client, answer};

/// Whoever does not answer in this time is asked no more.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Restate's admin API, asked about single calls.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) client: Client,
    pub(crate) url: Url,
}

impl Admin {
    /// Returns whether a call has ended, by itself or because it was killed.
    ///
    /// # Errors
    /// In words: Restate does not say.
    pub(crate) async fn has_ended(&self, call: &str) -> Result<bool, String> {
        // An id is letters, digits and underscores; it came from Restate itself.
        let id: String = call.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
        let query = format!("select status from sys_invocation where id = '{id}'");
        let place = self.url.join("/query").map_err(|error| error.to_string())?;
        let request = self.client.request(Method::POST, place).timeout(ANSWERED_WITHIN);
        let request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json");
        let answer = answer(request.body(json!({ "query": query }).to_string())).await?;
        let body: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let Some(rows) = body["rows"].as_array() else {
            return Err(format!("it answered {}", answer.status));
        };
        // What is not kept after its end is not there.
        Ok(rows.iter().all(|row| row["status"] == "completed"))
    }
}
