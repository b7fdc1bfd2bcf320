//! Whom Restate calls: one address, ours if nobody else is at work.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::admin::ANSWERED_WITHIN;
use crate::client::{Answer, Client, answer, read};
use crate::dispatch::Standing;
use crate::error::{WorkerError, WorkerEvent};
use crate::object::CONVERSATION;
use crate::port::{Report, WORKER};

/// Restate asks the worker what it has before it answers a registration.
const REGISTERED_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks at whom Restate calls, while it is us.
const WATCH: Duration = Duration::from_secs(5);
/// Between two looks while it is nobody, or somebody else, whose place is taken when they are gone.
const PAUSE: Duration = Duration::from_secs(1);

/// The media type by which a worker describes its services. Its retry policy needs this version.
/// Source: restate-sdk, `discovery` (checked 2026-11-26).
pub(crate) const MANIFEST: &str = "application/vnd.restate.endpointmanifest.v4+json";
/// Under which name a deployment has [`Registration::definition`].
const DEFINITION: &str = "adjutant-definition";

/// The registration of this process with Restate.
pub(crate) struct Registration {
    pub(crate) client: Client,
    /// Asks other workers, as Restate does.
    pub(crate) asking: Client,
    pub(crate) admin: Url,
    /// The address at which Restate finds this process, or all of them.
    pub(crate) url: Url,
    /// The value of the header [`WORKER`] in the answers of this process.
    pub(crate) worker: HeaderValue,
    /// Tells this version from others: Restate does not look at a worker again whose address it
    /// knows.
    pub(crate) definition: String,
    /// Our deployment's id; `None`: not registered by this process yet.
    id: Option<String>,
    /// Nobody has been looked for yet. A worker that starts takes the place of another version's,
    /// which goes on with what it has begun; later only of one that is gone, or two that run would
    /// take it from each other for ever.
    is_new: bool,
    /// Addresses are left that may go when nobody is there and nothing runs there any more.
    has_leftovers: bool,
}

/// Whom Restate calls.
enum Called {
    Us,
    /// Another worker, which is at work, and its version if that is not ours.
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
    /// Functions in a cloud have none.
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
    /// Returns the version that registered it; `None`: somebody else did.
    pub(crate) fn version(&self) -> Option<&String> {
        match self.metadata.get(DEFINITION)? {
            Value::String(version) => Some(version),
            _ => None,
        }
    }
}

impl Registration {
    pub(crate) fn new(
        (client, asking): (Client, Client),
        (admin, url): (Url, Url),
        worker: HeaderValue,
        definition: String,
    ) -> Self {
        Self {
            client,
            asking,
            admin,
            url,
            worker,
            definition,
            id: None,
            is_new: true,
            has_leftovers: false,
        }
    }

    /// Registers, watches, and registers again where Restate turns out not to know us (its data may
    /// be new), or whoever it called is gone. Never ends.
    pub(crate) async fn keep(mut self, standing: &Standing, report: &Report) {
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
                Err(why) => (Some(WorkerError::NotRegistered(why)), PAUSE),
            };
            standing
                .is_registered
                .store(wrong.is_none(), Ordering::Relaxed);
            // Said once.
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
                // While nothing helps, asking is not made quicker.
                () = standing.unknown.notified(), if last.is_none() => {}
            }
        }
    }

    async fn check(&mut self) -> Result<Called, String> {
        let called = self.look().await?;
        self.is_new = false;
        Ok(called)
    }

    async fn look(&mut self) -> Result<Called, String> {
        let latest: Option<Service> = self.get(&format!("/services/{CONVERSATION}")).await?;
        let latest = latest.map(|service| service.deployment_id);
        if latest.is_some() && latest == self.id && !self.has_leftovers {
            return Ok(Called::Us);
        }
        let latest: Option<Deployment> = match &latest {
            Some(id) => self.get(&format!("/deployments/{id}")).await?,
            None => None,
        };
        let (id, gone) = match latest {
            Some(latest)
                if latest
                    .uri
                    .as_ref()
                    .is_some_and(|uri| is_same(uri, &self.url)) =>
            {
                // Behind a common address others may have another version: whoever starts last says
                // what there is. Calls that began in one go on in the other.
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
                    Some(uri) if self.at(uri).await == Found::Other => Some(uri.clone()),
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
                    // What it has begun it goes on with.
                    Some(_) => (self.take_place().await?, None),
                    None => (self.take_place().await?, latest.map(|latest| latest.id)),
                }
            }
        };
        self.id = Some(id);
        // Nothing depends on it, and it is tried again.
        self.has_leftovers = self.tidy(gone).await.unwrap_or(true);
        Ok(Called::Us)
    }

    /// Registers this worker as the one that new calls go to, and returns the id of its deployment.
    async fn take_place(&self) -> Result<String, String> {
        let registered = self.register(false).await?;
        // Restate knew the address, and left it as it was: not the latest.
        let registered = if registered.is_new {
            registered
        } else {
            self.register(true).await?
        };
        Ok(registered.id)
    }

    async fn register(&self, force: bool) -> Result<Registered, String> {
        let body = json!({
            "uri": self.url,
            "force": force,
            "metadata": { DEFINITION: self.definition },
        });
        let answer = answer(self.post("/deployments", &body)?.timeout(REGISTERED_WITHIN)).await?;
        if answer.status == StatusCode::CONFLICT && !force {
            return Box::pin(self.register(true)).await;
        }
        let Id { id } = read(&answer)?;
        Ok(Registered {
            id,
            is_new: force || answer.status == StatusCode::CREATED,
        })
    }

    /// Removes the addresses of workers that are gone, of which none is called any more; whether
    /// any are left. Of one it is known already.
    async fn tidy(&self, known_gone: Option<String>) -> Result<bool, String> {
        let known: Option<Deployments> = self.get("/deployments").await?;
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
            if known_gone.as_ref() != Some(&other.id) && self.at(uri).await == Found::Other {
                are_left = true;
            } else {
                gone.push(other.id);
            }
        }
        if gone.is_empty() {
            return Ok(are_left);
        }
        // A call is bound to an address by its first step; before, it is where it runs.
        let query = "select distinct coalesce(pinned_deployment_id, last_attempt_deployment_id) as id from sys_invocation \
                     where pinned_deployment_id is not null and status <> 'completed' or status = 'running'";
        let request = self
            .post("/query", &json!({ "query": query }))?
            .header(ACCEPT, "application/json");
        let used: Rows = read(&ask(request).await?)?;
        for id in gone {
            if used.rows.iter().any(|row| row.id.as_ref() == Some(&id)) {
                // It may come back and go on; Restate gives up by itself if not.
                are_left = true;
                continue;
            }
            let mut place = self.place(&format!("/deployments/{id}"))?;
            place.set_query(Some("force=true"));
            let answer = ask(self.client.request(Method::DELETE, place)).await?;
            are_left |= !(answer.status.is_success() || answer.status == StatusCode::NOT_FOUND);
        }
        Ok(are_left)
    }

    /// Asks whoever is at an address what it has; where nobody answers us, by way of Restate, which
    /// may be in another network.
    async fn at(&self, uri: &Url) -> Found {
        let place = Url::parse(&format!("{}/discover", uri.as_str().trim_end_matches('/')));
        if let Ok(place) = place
            && let Ok(answer) = ask(self
                .asking
                .request(Method::GET, place)
                .header(ACCEPT, MANIFEST))
            .await
        {
            if answer.headers.get(WORKER) == Some(&self.worker) {
                return Found::Us;
            }
            if has_conversations(&answer) {
                return Found::Other;
            }
        }
        let body = json!({ "uri": uri, "force": true, "dry_run": true });
        let Ok(request) = self.post("/deployments", &body) else {
            return Found::Nobody;
        };
        let asked = ask(request).await;
        if asked.is_ok_and(|answer| has_conversations(&answer)) {
            Found::Other
        } else {
            Found::Nobody
        }
    }

    /// Returns the resource at a path of the admin API; `None`: there is none.
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, String> {
        let answer = ask(self.client.request(Method::GET, self.place(path)?)).await?;
        if answer.status == StatusCode::NOT_FOUND {
            Ok(None)
        } else {
            read(&answer).map(Some)
        }
    }

    fn post(&self, path: &str, body: &Value) -> Result<RequestBuilder, String> {
        let request = self.client.request(Method::POST, self.place(path)?);
        Ok(request
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string()))
    }

    fn place(&self, path: &str) -> Result<Url, String> {
        self.admin.join(path).map_err(|error| error.to_string())
    }
}

/// The result of a registration.
struct Registered {
    id: String,
    /// Restate asked this worker what it has, and calls it from now on.
    is_new: bool,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

/// The description of a worker, by itself or by Restate.
#[derive(Deserialize)]
struct Manifest {
    services: Vec<Named>,
}

#[derive(Deserialize)]
struct Rows {
    rows: Vec<Used>,
}

#[derive(Deserialize)]
struct Used {
    id: Option<String>,
}

/// Returns whether both are one address; what comes behind a slash at the end is the same.
pub(crate) fn is_same(one: &Url, other: &Url) -> bool {
    one.as_str().trim_end_matches('/') == other.as_str().trim_end_matches('/')
}

pub(crate) fn has_conversations(answer: &Answer) -> bool {
    let manifest: Result<Manifest, String> = read(answer);
    manifest.is_ok_and(|manifest| {
        manifest
            .services
            .iter()
            .any(|service| service.name == CONVERSATION)
    })
}

async fn ask(request: RequestBuilder) -> Result<Answer, String> {
    answer(request.timeout(ANSWERED_WITHIN)).await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::Of;

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
        let clients = (
            Client::new(Of::Restate(None), false).unwrap(),
            Client::new(Of::Worker, false).unwrap(),
        );
        let url = "http://127.0.0.1:2/".parse().unwrap();
        let worker = HeaderValue::from_static("us");
        let mut registration =
            Registration::new(clients, (admin().await, url), worker, String::new());
        let called = registration.check().await.unwrap();
        assert!(
            matches!(called, Called::Other(url, None) if url.as_str() == "http://127.0.0.1:1/")
        );
    }
}
