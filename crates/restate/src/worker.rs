use std::hash::{BuildHasher as _, DefaultHasher, Hasher as _, RandomState};
use std::sync::Arc;

use adjutant_core::CancellationToken;
use adjutant_runtime::{Agent, Dispatch, RunError};
use http_body_util::{BodyExt as _, Collected, Empty};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HeaderValue};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::service::IntoServiceDefinition as _;
use tokio::net::TcpListener;
use url::Url;

use crate::address::RestateAddress;
use crate::admin::Admin;
use crate::client::{self, Client, Of};
use crate::dispatch::{Ingress, Standing};
use crate::error::{WorkerError, WorkerEvent};
use crate::object::Conversation;
use crate::port::{Port, Report};
use crate::registration::{MANIFEST, Registration};

/// What Restate calls: a process that listens, and does not answer yet.
#[derive(Debug)]
pub struct Worker {
    listener: TcpListener,
    restate: RestateAddress,
    client: Client,
    /// Asks other workers.
    asking: Client,
    url: Url,
    standing: Arc<Standing>,
    version: String,
}

impl Worker {
    /// Listens, and reads the token that Restate is asked with.
    ///
    /// # Errors
    /// [`WorkerError::Bind`], [`WorkerError::Token`] and [`WorkerError::Client`].
    pub async fn bind(restate: RestateAddress) -> Result<Self, WorkerError> {
        let (client, asking) = clients(&restate)?;
        let listen = restate.listen;
        let failed = |error: std::io::Error| WorkerError::Bind {
            listen,
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let here = listener.local_addr().map_err(failed)?;
        let url = match &restate.advertise {
            Some(url) => url.clone(),
            None => Url::parse(&format!("http://{here}"))
                .map_err(|error| failed(std::io::Error::other(error)))?,
        };
        let standing = Standing {
            is_watched: restate.admin.is_some(),
            ..Standing::default()
        };
        let standing = Arc::new(standing);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self {
            listener,
            restate,
            client,
            asking,
            url,
            standing,
            version,
        })
    }

    /// Where Restate finds it.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Has Restate know it as another version than this library's, such as that of the program.
    /// Where a version starts beside another one, at another address, Restate calls the one that
    /// started last; what began at the other ends there.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// What has conversations go on by way of Restate; for [`Agent::dispatched_by`].
    #[must_use]
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        let (client, url) = (self.client.clone(), self.restate.ingress.clone());
        Arc::new(Ingress {
            client,
            url,
            standing: Arc::clone(&self.standing),
        })
    }

    /// Registers with Restate and answers its calls with this agent until `stop` fires; then it
    /// takes nothing new and lets what runs end, for half a minute at most. What happens meanwhile
    /// is reported; what goes wrong is mended by itself.
    pub async fn run(
        self,
        agent: Agent,
        stop: CancellationToken,
        report: impl Fn(&WorkerEvent) + Send + Sync + 'static,
    ) {
        let report: Report = Arc::new(report);
        agent.hear_others();
        let of_run = Arc::clone(&report);
        let admin = self.restate.admin.clone().map(|url| Admin {
            client: self.client.clone(),
            url,
        });
        let report_run = Arc::new(move |error: &RunError| {
            of_run(&WorkerEvent::Failed(WorkerError::Run(error.clone())))
        });
        let object = Conversation {
            agent,
            report: report_run,
            admin,
        };
        let endpoint = Endpoint::builder()
            .bind(
                object
                    .into_service_definition()
                    .options(Conversation::settings()),
            )
            .build();
        let me = worker_name();
        let definition = definition(&endpoint, &self.version).await;
        let admin = self.restate.admin.clone();
        let registration = admin.map(|admin| {
            let clients = (self.client.clone(), self.asking.clone());
            Registration::new(clients, (admin, self.url.clone()), me.clone(), definition)
        });
        let registered = async {
            if let Some(registration) = registration {
                tokio::select! {
                    () = registration.keep(&self.standing, &report) => {}
                    // Another worker may take over while this one lets what runs end.
                    () = stop.cancelled() => {}
                }
            }
            std::future::pending::<()>().await;
        };
        let port = Port::new(endpoint, me, self.restate.keys.clone(), Arc::clone(&report));
        tokio::select! {
            () = port.serve(self.listener, stop.clone()) => {}
            () = registered => {}
        }
    }
}

/// Returns who asks Restate, and who asks other workers.
///
/// # Errors
/// [`WorkerError::Token`] and [`WorkerError::Client`].
pub(crate) fn clients(restate: &RestateAddress) -> Result<(Client, Client), WorkerError> {
    let token = restate.token_file.as_deref().map(|path| {
        client::bearer(path).map_err(|reason| WorkerError::Token {
            path: path.to_owned(),
            reason,
        })
    });
    let tls = restate.places().any(|url| url.scheme() == "https");
    let client = Client::new(Of::Restate(token.transpose()?), tls).map_err(WorkerError::Client)?;
    // Others may have TLS though we have none; where there are no certificates, only those without
    // can be asked.
    let asking = Client::new(Of::Worker, true).or_else(|_| Client::new(Of::Worker, false));
    Ok((client, asking.map_err(WorkerError::Client)?))
}

/// Returns what tells this process from other workers. Nobody is kept from guessing it: it is no
/// secret.
fn worker_name() -> HeaderValue {
    HeaderValue::from(RandomState::new().build_hasher().finish())
}

/// Returns what tells this version from others: its number, and a hash of the object as Restate is
/// told of it.
async fn definition(endpoint: &Endpoint, version: &str) -> String {
    let mut request = hyper::Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = hyper::Uri::from_static("/discover");
    request
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static(MANIFEST));
    let manifest = endpoint.handle(request).into_body().collect().await;
    let mut hash = DefaultHasher::new();
    hash.write(&manifest.map(Collected::to_bytes).unwrap_or_default());
    format!("{version}-{:016x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use adjutant_core::{AgentName, ConversationId, ConversationKey, UserId};

    use super::*;

    async fn bind(text: String) -> Result<Worker, WorkerError> {
        Worker::bind(text.parse().unwrap()).await
    }

    #[tokio::test]
    async fn a_token_is_read_before_anything_is_asked_and_never_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let address = format!(
            "restate://127.0.0.1:1?listen=127.0.0.1:0&token_file={}",
            path.display()
        );
        for content in [None, Some(" \n"), Some("secret\u{7}")] {
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            let error = bind(address.clone()).await.unwrap_err().to_string();
            assert!(
                error.contains(path.to_str().unwrap()) && !error.contains("secret"),
                "{error}"
            );
        }
        fs::write(&path, "secret\n").unwrap();
        let worker = bind(address).await.unwrap();
        assert!(!format!("{worker:?}").contains("secret"));
    }

    #[tokio::test]
    async fn a_restate_that_takes_connections_and_says_nothing_has_not_taken_the_call() {
        // The system takes them; nobody ever reads.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = silent.local_addr().unwrap();
        let worker = bind(format!("restate://{place}?admin=none&listen=127.0.0.1:0"))
            .await
            .unwrap();
        let conversation: ConversationId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        let key = ConversationKey {
            agent: AgentName::adjutant(),
            user: UserId::local(),
            conversation,
        };
        assert_eq!(
            worker.dispatch().send(&key).await.unwrap_err().0,
            "Restate did not answer"
        );
    }
}
