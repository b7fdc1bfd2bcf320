use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::client::{Answer, Client, answer};

/// Whoever does not answer in this time is asked no more.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// The cause for which something does not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReached {
    /// It wants a token, or another one; a worker, another signature.
    #[error("it answered {0}")]
    Unauthorized(u16),
    /// In words.
    #[error("{0}")]
    Failed(String),
}

/// Restate's admin API.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) client: Client,
    pub(crate) url: Url,
}

#[derive(Deserialize)]
struct Rows<T> {
    rows: Vec<T>,
}

#[derive(Deserialize)]
struct Status {
    status: String,
}

impl Admin {
    /// Returns whether a call has ended, by itself or because it was killed.
    ///
    /// # Errors
    /// Restate does not say.
    pub(crate) async fn has_ended(&self, call: &str) -> Result<bool, NotReached> {
        // An id is letters, digits and underscores; it came from Restate itself.
        let id: String = call
            .chars()
            .filter(|char| char.is_ascii_alphanumeric() || *char == '_')
            .collect();
        let calls: Vec<Status> = self
            .query(&format!(
                "select status from sys_invocation where id = '{id}'"
            ))
            .await?;
        // What is not kept after its end is not there.
        Ok(calls.iter().all(|call| call.status == "completed"))
    }

    /// Returns the rows of a query.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        query: &str,
    ) -> Result<Vec<T>, NotReached> {
        let asked = ask(self.post("/query", &json!({ "query": query }))?).await?;
        read(&asked).map(|Rows { rows }| rows)
    }

    /// Returns the resource at a path.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, NotReached> {
        read(&ask(self.client.request(Method::GET, join(&self.url, path)?)).await?)
    }

    /// Begins a request; [`ask`] sends it.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<RequestBuilder, NotReached> {
        let request = self.client.request(Method::POST, join(&self.url, path)?);
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json");
        Ok(request.body(body.to_string()))
    }
}

/// Asks, and returns whatever is answered but that one may not ask.
pub(crate) async fn ask(request: RequestBuilder) -> Result<Answer, NotReached> {
    let answer = answer(request.timeout(ANSWERED_WITHIN))
        .await
        .map_err(NotReached::Failed)?;
    match answer.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(NotReached::Unauthorized(answer.status.as_u16()))
        }
        _ => Ok(answer),
    }
}

/// Returns the address of a path.
pub(crate) fn join(place: &Url, path: &str) -> Result<Url, NotReached> {
    place
        .join(path)
        .map_err(|error| NotReached::Failed(error.to_string()))
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, NotReached> {
    crate::client::read(answer).map_err(NotReached::Failed)
}
