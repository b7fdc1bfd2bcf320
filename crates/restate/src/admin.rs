//! Restate's admin API: SQL queries, deployments, and discovery of workers.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::client::{Answer, Client, answer};

/// The media type by which a worker describes its services. Its retry policy needs this version.
/// Source: restate-sdk, `discovery` (checked 2026-11-26).
pub(crate) const MANIFEST: &str = "application/vnd.restate.endpointmanifest.v4+json";

/// Timeout of requests to the admin API and to workers.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// An error of a request to Restate or to a worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReached {
    /// The server wants a token, or another one; a worker, another signature. With the status code.
    #[error("it answered {0}")]
    Unauthorized(u16),
    /// The connection failed, or the answer was not as expected; with a description.
    #[error("{0}")]
    Failed(String),
}

/// A client of Restate's admin API.
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
    /// Returns true if a call has ended, by itself or because it was killed.
    pub(crate) async fn has_ended(&self, call: &str) -> Result<bool, NotReached> {
        // The id came from Restate and is alphanumeric; filtered all the same, against SQL
        // injection.
        let id: String = call
            .chars()
            .filter(|char| char.is_ascii_alphanumeric() || *char == '_')
            .collect();
        let calls: Vec<Status> = self
            .query(&format!(
                "select status from sys_invocation where id = '{id}'"
            ))
            .await?;
        // A call that is not retained after its end is missing from the table.
        Ok(calls.iter().all(|call| call.status == "completed"))
    }

    /// Returns the rows of an SQL query.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        query: &str,
    ) -> Result<Vec<T>, NotReached> {
        let asked = ask(self.post("/query", &json!({ "query": query }))?).await?;
        parse(&asked).map(|Rows { rows }| rows)
    }

    /// Returns the resource at a path.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, NotReached> {
        parse(&ask(self.client.request(Method::GET, join(&self.url, path)?)).await?)
    }

    /// Returns the resource at a path; `None`: there is none.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, NotReached> {
        let answer = ask(self.client.request(Method::GET, join(&self.url, path)?)).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        parse(&answer).map(Some)
    }

    /// Lets Restate discover the services of a worker without registering it.
    pub(crate) async fn discover_from_restate(&self, worker: &Url) -> Result<Answer, NotReached> {
        let body = json!({ "uri": worker, "force": true, "dry_run": true });
        let request = self.post("/deployments", &body)?;
        answer(request.timeout(ANSWERED_WITHIN))
            .await
            .map_err(NotReached::Failed)
    }

    /// Builds a request with a JSON body, to be sent with [`ask`].
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<RequestBuilder, NotReached> {
        let request = self.client.request(Method::POST, join(&self.url, path)?);
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json");
        Ok(request.body(body.to_string()))
    }
}

/// Sends a request with a timeout.
///
/// # Errors
/// [`NotReached`]; any answer but 401 and 403 is `Ok`.
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

/// Returns the URL of a path.
pub(crate) fn join(base: &Url, path: &str) -> Result<Url, NotReached> {
    base.join(path)
        .map_err(|error| NotReached::Failed(error.to_string()))
}

/// Asks a worker for its services, as Restate does.
pub(crate) async fn discover(client: &Client, worker: &Url) -> Result<Answer, NotReached> {
    let base = worker.as_str().trim_end_matches('/');
    let url = Url::parse(&format!("{base}/discover"))
        .map_err(|error| NotReached::Failed(error.to_string()))?;
    ask(client.request(Method::GET, url).header(ACCEPT, MANIFEST)).await
}

fn parse<T: DeserializeOwned>(answer: &Answer) -> Result<T, NotReached> {
    crate::client::parse_json(answer).map_err(NotReached::Failed)
}
