//! A diagnosis of a Restate server and its workers, for operators.

use hyper::StatusCode;
use reqwest::Method;
use serde::Deserialize;
use url::Url;

use crate::address::RestateAddress;
use crate::admin::{Admin, NotReached, ask, discover, join};
use crate::client::Client;
use crate::error::WorkerError;
use crate::object::CONVERSATION;
use crate::registration::{Deployments, Service, has_conversations, is_same};
use crate::worker::clients;

/// The result of [`diagnose`]: the state of a Restate server and its workers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// `Ok` if the ingress accepts calls with this token.
    pub ingress: Result<(), NotReached>,
    /// The version of the server, from its admin API. `None`: `admin=none`.
    pub admin: Option<Result<String, NotReached>>,
    /// The address at which this process would be called. `None`: at a port that the system
    /// chooses.
    pub url: Option<String>,
    /// The workers that are registered with Restate.
    pub deployed: Vec<Deployed>,
    /// `Ok` if a worker answers at [`Self::url`] to a request from this process.
    pub from_here: Option<Result<(), NotReached>>,
    /// `Ok` if a worker answers at [`Self::url`] to a request from Restate.
    pub from_restate: Option<Result<(), NotReached>>,
    /// Calls that have not ended. A server that has just started cannot count them for a moment.
    pub calls: Option<Result<Calls, NotReached>>,
}

/// A worker that is registered with Restate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deployed {
    /// The URL at which Restate calls the worker.
    pub url: String,
    /// Version of the worker, if it registered itself.
    pub version: Option<String>,
    /// True if new calls go to it.
    pub is_latest: bool,
    /// True if it has the address of this process.
    pub is_here: bool,
}

/// Numbers of calls that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Calls whose turn is running.
    pub running: u64,
    /// Calls that wait for an earlier call of their conversation, or to be scheduled.
    pub waiting: u64,
    /// Timers of conversations that wait for a person.
    pub scheduled: u64,
    /// Calls that failed and are retried, or that an operator has to resume.
    pub stuck: u64,
    /// The error of one failed call.
    pub why: Option<String>,
}

/// Queries Restate and the worker at the address of this process. Changes nothing.
///
/// # Errors
/// [`WorkerError::Token`] and [`WorkerError::Client`] if no request can be sent at all.
pub async fn diagnose(restate: &RestateAddress) -> Result<Diagnosis, WorkerError> {
    let (client, asking) = clients(restate)?;
    let here = restate.url();
    let at_admin = async {
        let Some(url) = restate.admin.clone() else {
            return Default::default();
        };
        let admin = Admin {
            client: client.clone(),
            url,
        };
        match admin.version().await {
            Err(wrong) => (Some(Err(wrong)), Vec::new(), None, None),
            Ok(version) => {
                let known = admin.deployed(here.as_ref());
                let (known, calls, reached) =
                    tokio::join!(known, admin.calls(), admin.reaches(here.as_ref()));
                match known {
                    Ok(known) => (Some(Ok(version)), known, Some(calls), reached),
                    Err(wrong) => (Some(Err(wrong)), Vec::new(), Some(calls), reached),
                }
            }
        }
    };
    let (ingress, from_here, (admin, deployed, calls, from_restate)) = tokio::join!(
        ingress(&client, &restate.ingress),
        from_here(&asking, here.as_ref()),
        at_admin
    );
    let url = here.map(|url| url.to_string());
    Ok(Diagnosis {
        ingress,
        admin,
        url,
        deployed,
        from_here,
        from_restate,
        calls,
    })
}

/// Calls a service that does not exist: this has no effect, but a missing token is refused.
async fn ingress(client: &Client, ingress: &Url) -> Result<(), NotReached> {
    let asked = ask(client.request(Method::POST, join(ingress, "/adjutant-doctor/none")?)).await?;
    // Only Restate sends this header; another server at the address may answer 404 too.
    match asked.status == StatusCode::NOT_FOUND
        && asked.headers.contains_key("x-restate-error-source")
    {
        true => Ok(()),
        false => Err(NotReached::Failed(format!(
            "it answered {}, as no ingress of Restate does",
            asked.status
        ))),
    }
}

async fn from_here(asking: &Client, url: Option<&Url>) -> Option<Result<(), NotReached>> {
    let asked = discover(asking, url?).await;
    Some(asked.and_then(|answer| match has_conversations(&answer) {
        true => Ok(()),
        false => Err(NotReached::Failed(format!(
            "it answered {}, as no worker does",
            answer.status
        ))),
    }))
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Counted {
    status: String,
    n: u64,
}

#[derive(Deserialize)]
struct Failure {
    last_failure: Option<String>,
}

impl Admin {
    async fn version(&self) -> Result<String, NotReached> {
        let Version { version } = self.get("/version").await?;
        Ok(version)
    }

    async fn deployed(&self, here: Option<&Url>) -> Result<Vec<Deployed>, NotReached> {
        let known: Deployments = self.get("/deployments").await?;
        // Without a deployment the service does not exist.
        let latest: Option<Service> = self.get(&format!("/services/{CONVERSATION}")).await.ok();
        let of_ours = known.deployments.into_iter().filter(|known| {
            known
                .services
                .iter()
                .any(|service| service.name == CONVERSATION)
        });
        let mut deployed: Vec<Deployed> = of_ours
            .filter_map(|known| {
                let url = known.uri.as_ref()?;
                Some(Deployed {
                    url: url.to_string(),
                    version: known.version().cloned(),
                    is_latest: latest
                        .as_ref()
                        .is_some_and(|latest| latest.deployment_id == known.id),
                    is_here: here.is_some_and(|here| is_same(here, url)),
                })
            })
            .collect();
        deployed.sort_by_key(|known| !known.is_latest);
        Ok(deployed)
    }

    /// Lets Restate discover the worker, as if to register it.
    async fn reaches(&self, url: Option<&Url>) -> Option<Result<(), NotReached>> {
        let url = url?;
        let asked = async {
            let answer = self.discover_from_restate(url).await?;
            if has_conversations(&answer) {
                return Ok(());
            }
            let error: Message = serde_json::from_slice(&answer.body).unwrap_or_default();
            Err(NotReached::Failed(error.message.unwrap_or_else(|| {
                format!("it answered {}", answer.status)
            })))
        };
        Some(asked.await)
    }

    async fn calls(&self) -> Result<Calls, NotReached> {
        let of_ours = format!("from sys_invocation where target_service_name = '{CONVERSATION}'");
        let counted: Vec<Counted> = self
            .query(&format!(
                "select status, count(*) as n {of_ours} group by status"
            ))
            .await?;
        let mut calls = Calls::default();
        for Counted { status, n } in counted {
            match status.as_str() {
                "running" => calls.running += n,
                "scheduled" => calls.scheduled += n,
                "backing-off" | "paused" => calls.stuck += n,
                "completed" => {}
                _ => calls.waiting += n,
            }
        }
        if calls.stuck > 0 {
            let failed = format!(
                "select last_failure {of_ours} and status in ('backing-off', 'paused') limit 1"
            );
            let failed: Vec<Failure> = self.query(&failed).await?;
            calls.why = failed
                .into_iter()
                .next()
                .and_then(|failed| failed.last_failure);
        }
        Ok(calls)
    }
}

/// An error answer of the admin API.
#[derive(Default, Deserialize)]
struct Message {
    message: Option<String>,
}
