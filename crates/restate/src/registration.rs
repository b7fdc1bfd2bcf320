//! Registration of this worker with Restate, which calls one deployment: ours, unless another
//! worker is running.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::StatusCode;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::admin::{Admin, NotReached, ask, discover, join};
use crate::client::{Answer, Client, answer, parse_json};
use crate::dispatch::RegistrationState;
use crate::error::{WorkerError, WorkerEvent};
use crate::object::CONVERSATION;
use crate::server::{Report, WORKER};

/// Timeout of a registration, during which Restate discovers the worker's services.
const REGISTERED_WITHIN: Duration = Duration::from_secs(10);
/// Pause between checks while Restate calls this worker.
const WATCH: Duration = Duration::from_secs(5);
/// Pause between checks while Restate calls no worker, or another one, which is replaced when it is
/// gone.
const PAUSE: Duration = Duration::from_secs(1);

/// The key of a deployment's metadata that holds [`Registration::definition`].
const DEFINITION: &str = "adjutant-definition";

/// The registration of this process with Restate.
pub(crate) struct Registration {
    admin: Admin,
    /// Sends requests to other workers, as Restate does.
    asking: Client,
    /// The URL at which Restate calls this process, or all workers behind a common address.
    url: Url,
    /// The value of the header [`WORKER`] in the answers of this process.
    worker: HeaderValue,
    /// Identifies the version: Restate does not discover a worker again whose address it knows.
    definition: String,
    /// Id of our deployment; `None`: not registered by this process yet.
    id: Option<String>,
    /// True until the first check. A worker that starts replaces a running worker of another
    /// version, which finishes its calls; later it replaces only a worker that is gone, or two
    /// running ones would replace each other for ever.
    is_new: bool,
    /// True if deployments of other workers are left that may be removed once they are unused.
    has_leftovers: bool,
}

/// The worker that Restate calls.
enum Called {
    Us,
    /// Another running worker, with its version if that differs from ours.
    Other(Url, Option<String>),
}

/// The worker found at an address.
#[derive(PartialEq)]
enum Found {
    Nobody,
    Us,
    Other,
}

#[derive(Deserialize)]
pub(crate) struct Service {
    pub(crate) deployment_id: String,
}

#[derive(Deserialize)]
pub(crate) struct Deployments {
    pub(crate) deployments: Vec<Deployment>,
}

#[derive(Deserialize)]
pub(crate) struct Deployment {
    pub(crate) id: String,
    /// `None`: a deployment that is not called over HTTP, such as a cloud function.
    pub(crate) uri: Option<Url>,
    pub(crate) services: Vec<Named>,
    #[serde(default)]
    metadata: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

impl Deployment {
    /// Returns the version of the worker that registered it; `None`: it was registered by hand.
    pub(crate) fn version(&self) -> Option<&String> {
        match self.metadata.get(DEFINITION)? {
            Value::String(version) => Some(version),
            _ => None,
        }
    }
}

impl Registration {
    pub(crate) fn new(
        admin: Admin,
        asking: Client,
        url: Url,
        worker: HeaderValue,
        definition: String,
    ) -> Self {
        Self {
            admin,
            asking,
            url,
            worker,
            definition,
            id: None,
            is_new: true,
            has_leftovers: false,
        }
    }

    /// Registers, and checks from time to time. Registers again if Restate does not know the worker
    /// any more (its data may be new), or the worker that it called is gone. Never returns.
    pub(crate) async fn keep(mut self, state: &RegistrationState, report: &Report) {
        let mut last: Option<WorkerError> = None;
        loop {
            let (wrong, pause) = match self.check().await {
                Ok(Called::Us) => (None, WATCH),
                Ok(Called::Other(called, version)) => {
                    let (called, here) = (called.to_string(), self.url.to_string());
                    let error = match version {
                        Some(version) => WorkerError::Replaced {
                            called,
                            version,
                            here,
                        },
                        None => WorkerError::Elsewhere { called, here },
                    };
                    (Some(error), PAUSE)
                }
                Err(error) => (Some(WorkerError::NotRegistered(error.to_string())), PAUSE),
            };
            state
                .is_registered
                .store(wrong.is_none(), Ordering::Relaxed);
            // Reported once, until it changes.
            match &wrong {
                Some(error) if last.as_ref() != Some(error) => {
                    report(&WorkerEvent::Failed(error.clone()))
                }
                None if last.is_some() => report(&WorkerEvent::Registered {
                    here: self.url.to_string(),
                }),
                _ => {}
            }
            last = wrong;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Only while registered: an unreachable Restate must not be asked in a busy loop.
                () = state.unknown.notified(), if last.is_none() => {}
            }
        }
    }

    async fn check(&mut self) -> Result<Called, NotReached> {
        let called = self.find_called().await?;
        self.is_new = false;
        Ok(called)
    }

    async fn find_called(&mut self) -> Result<Called, NotReached> {
        let latest: Option<Service> = self
            .admin
            .find(&format!("/services/{CONVERSATION}"))
            .await?;
        let latest = latest.map(|service| service.deployment_id);
        if latest.is_some() && latest == self.id && !self.has_leftovers {
            return Ok(Called::Us);
        }
        let latest: Option<Deployment> = match &latest {
            Some(id) => self.admin.find(&format!("/deployments/{id}")).await?,
            None => None,
        };
        let (id, gone) = match latest {
            Some(latest)
                if latest
                    .uri
                    .as_ref()
                    .is_some_and(|uri| is_same(uri, &self.url)) =>
            {
                // Workers behind a common address may have different versions: the one that started
                // last is registered. Calls that started in one version continue in the other.
                let is_current = latest.version() == Some(&self.definition);
                let is_registered = self.id.as_ref() == Some(&latest.id) || is_current;
                // Without force Restate leaves a known address as it is.
                (
                    if is_registered {
                        latest.id
                    } else {
                        self.register(true).await?.id
                    },
                    None,
                )
            }
            latest => {
                self.id = None;
                let at_work = match latest.as_ref().and_then(|latest| latest.uri.as_ref()) {
                    Some(uri) if self.find_worker(uri).await == Found::Other => Some(uri.clone()),
                    _ => None,
                };
                let version = latest.as_ref().and_then(Deployment::version);
                let version = version
                    .filter(|version| **version != self.definition)
                    .cloned();
                match at_work {
                    Some(uri) if !self.is_new || version.is_none() => {
                        return Ok(Called::Other(uri, version));
                    }
                    // The replaced worker finishes its calls, so its deployment stays.
                    Some(_) => (self.take_place().await?, None),
                    None => (self.take_place().await?, latest.map(|latest| latest.id)),
                }
            }
        };
        self.id = Some(id);
        // Best effort: the next check tries again.
        self.has_leftovers = self.tidy(gone).await.unwrap_or(true);
        Ok(Called::Us)
    }

    /// Registers this worker as the one that gets new calls. Returns the id of its deployment.
    async fn take_place(&self) -> Result<String, NotReached> {
        let registered = self.register(false).await?;
        // Restate knew the address, and left it as it was: not the latest.
        let registered = if registered.is_new {
            registered
        } else {
            self.register(true).await?
        };
        Ok(registered.id)
    }

    async fn register(&self, force: bool) -> Result<Registered, NotReached> {
        let body = json!({
            "uri": self.url,
            "force": force,
            "metadata": { DEFINITION: self.definition },
        });
        let request = self.admin.post("/deployments", &body)?;
        let answer = answer(request.timeout(REGISTERED_WITHIN))
            .await
            .map_err(NotReached::Failed)?;
        if answer.status == StatusCode::CONFLICT && !force {
            return Box::pin(self.register(true)).await;
        }
        let Id { id } = parse_json(&answer).map_err(NotReached::Failed)?;
        Ok(Registered {
            id,
            is_new: force || answer.status == StatusCode::CREATED,
        })
    }

    /// Removes the deployments of workers that are gone and have no calls. Returns true if
    /// deployments of other workers are left. `known_gone`: a worker that need not be looked for
    /// again.
    async fn tidy(&self, known_gone: Option<String>) -> Result<bool, NotReached> {
        let known: Option<Deployments> = self.admin.find("/deployments").await?;
        let known = known.map(|known| known.deployments).unwrap_or_default();
        let is_only_ours = |deployment: &Deployment| {
            let mut services = deployment.services.iter();
            !deployment.services.is_empty() && services.all(|service| service.name == CONVERSATION)
        };
        let others = known
            .into_iter()
            .filter(|other| Some(&other.id) != self.id.as_ref() && is_only_ours(other));
        let (mut gone, mut are_left) = (Vec::new(), false);
        for other in others {
            let Some(uri) = &other.uri else { continue };
            if known_gone.as_ref() != Some(&other.id) && self.find_worker(uri).await == Found::Other
            {
                are_left = true;
            } else {
                gone.push(other.id);
            }
        }
        if gone.is_empty() {
            return Ok(are_left);
        }
        // A call is pinned to a deployment by its first step; before that, to where it runs.
        let query = "select distinct coalesce(pinned_deployment_id, last_attempt_deployment_id) as id from sys_invocation \
                     where pinned_deployment_id is not null and status <> 'completed' or status = 'running'";
        let used: Vec<Used> = self.admin.query(query).await?;
        for id in gone {
            if used.iter().any(|row| row.id.as_ref() == Some(&id)) {
                // The worker may come back for its calls; if not, Restate gives them up itself.
                are_left = true;
                continue;
            }
            let mut url = join(&self.admin.url, &format!("/deployments/{id}"))?;
            url.set_query(Some("force=true"));
            let answer = ask(self.admin.client.request(Method::DELETE, url)).await?;
            are_left |= !(answer.status.is_success() || answer.status == StatusCode::NOT_FOUND);
        }
        Ok(are_left)
    }

    /// Finds out which worker answers at an address. If none can be reached from here, Restate is
    /// asked to reach it, because it may be in another network.
    async fn find_worker(&self, uri: &Url) -> Found {
        if let Ok(answer) = discover(&self.asking, uri).await {
            if answer.headers.get(WORKER) == Some(&self.worker) {
                return Found::Us;
            }
            if has_conversations(&answer) {
                return Found::Other;
            }
        }
        let answer = self.admin.discover_from_restate(uri).await;
        if answer.is_ok_and(|answer| has_conversations(&answer)) {
            Found::Other
        } else {
            Found::Nobody
        }
    }
}

/// The result of a registration.
struct Registered {
    id: String,
    /// True if Restate has discovered this worker, and calls it from now on.
    is_new: bool,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

/// The services of a worker, as it or Restate describes them.
#[derive(Deserialize)]
struct Manifest {
    services: Vec<Named>,
}

#[derive(Deserialize)]
struct Used {
    id: Option<String>,
}

/// Returns true if both are the same address; a slash at the end makes no difference.
pub(crate) fn is_same(one: &Url, other: &Url) -> bool {
    one.as_str().trim_end_matches('/') == other.as_str().trim_end_matches('/')
}

/// Returns true if an answer to a discovery describes a worker of ours.
pub(crate) fn has_conversations(answer: &Answer) -> bool {
    let manifest: Result<Manifest, String> = parse_json(answer);
    manifest.is_ok_and(|manifest| {
        manifest
            .services
            .iter()
            .any(|service| service.name == CONVERSATION)
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::Peer;

    /// An admin API that knows one worker, which it alone can reach.
    async fn admin() -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut piece = vec![0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut piece).await {
                let asked = String::from_utf8_lossy(&piece[..length]);
                let services = json!([{ "name": CONVERSATION, "revision": 1 }]);
                let answer = match asked.split_whitespace().take(2).collect::<Vec<_>>()[..] {
                    ["GET", "/services/Conversation"] => json!({ "deployment_id": "dp_1" }),
                    ["GET", "/deployments/dp_1"] => {
                        json!({ "id": "dp_1", "uri": "http://127.0.0.1:1/", "services": services })
                    }
                    ["POST", "/deployments"] if asked.contains("\"dry_run\":true") => {
                        json!({ "id": "dp_1", "services": services })
                    }
                    _ => panic!("{asked}"),
                };
                let (answer, head) = (answer.to_string(), "HTTP/1.1 200 OK\r\ncontent-length:");
                let answer = format!("{head} {}\r\n\r\n{answer}", answer.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        format!("http://{place}").parse().unwrap()
    }

    #[tokio::test]
    async fn a_worker_that_restate_alone_can_reach_is_at_work() {
        let admin = Admin {
            client: Client::new(Peer::Restate(None), false).unwrap(),
            url: admin().await,
        };
        let asking = Client::new(Peer::Worker, false).unwrap();
        let url = "http://127.0.0.1:2/".parse().unwrap();
        let worker = HeaderValue::from_static("us");
        let mut registration = Registration::new(admin, asking, url, worker, String::new());
        let called = registration.check().await.unwrap();
        assert!(
            matches!(called, Called::Other(url, None) if url.as_str() == "http://127.0.0.1:1/")
        );
    }
}
