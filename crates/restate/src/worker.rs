//! [`Worker`]: binds the socket, registers with Restate, and answers its calls.

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
use crate::admin::{Admin, MANIFEST};
use crate::client::{self, Client, Peer};
use crate::dispatch::{Ingress, RegistrationState};
use crate::error::{WorkerError, WorkerEvent};
use crate::object::Conversation;
use crate::registration::Registration;
use crate::server::{CallServer, Report};

/// A worker that Restate calls: bound to its socket, and not answering until [`Worker::run`].
#[derive(Debug)]
pub struct Worker {
    listener: TcpListener,
    restate: RestateAddress,
    client: Client,
    /// Sends requests to other workers.
    asking: Client,
    url: Url,
    state: Arc<RegistrationState>,
    version: String,
}

impl Worker {
    /// Binds the socket, and reads the token for requests to Restate.
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
        let state = RegistrationState {
            is_watched: restate.admin.is_some(),
            ..RegistrationState::default()
        };
        let state = Arc::new(state);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self {
            listener,
            restate,
            client,
            asking,
            url,
            state,
            version,
        })
    }

    /// Returns the URL under which Restate reaches this worker.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Sets the version under which the worker registers, such as that of the program. Default:
    /// this library's. If workers of two versions run at different addresses, Restate calls the one
    /// that started last; calls that run at the other finish there.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Returns the dispatch of conversations through Restate's ingress, for
    /// [`Agent::with_dispatch`].
    #[must_use]
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        let (client, url) = (self.client.clone(), self.restate.ingress.clone());
        Arc::new(Ingress {
            client,
            url,
            state: Arc::clone(&self.state),
        })
    }

    /// Registers with Restate and answers its calls with this agent until `stop` fires. Then it
    /// accepts no new calls, and waits up to 30 seconds for running ones. Events are passed to
    /// `report`; failed connections and registrations are retried.
    pub async fn run(
        self,
        agent: Agent,
        stop: CancellationToken,
        report: impl Fn(&WorkerEvent) + Send + Sync + 'static,
    ) {
        let report: Report = Arc::new(report);
        agent.start_relay();
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
            admin: admin.clone(),
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
        let registration = admin.map(|admin| {
            let (asking, url) = (self.asking.clone(), self.url.clone());
            Registration::new(admin, asking, url, me.clone(), definition)
        });
        let registered = async {
            if let Some(registration) = registration {
                tokio::select! {
                    () = registration.keep(&self.state, &report) => {}
                    // While running calls end here, another worker may register.
                    () = stop.cancelled() => {}
                }
            }
            std::future::pending::<()>().await;
        };
        let server = CallServer::new(endpoint, me, self.restate.keys.clone(), Arc::clone(&report));
        tokio::select! {
            () = server.serve(self.listener, stop.clone()) => {}
            () = registered => {}
        }
    }
}

/// Creates the clients for Restate and for other workers.
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
    let tls = restate.urls().any(|url| url.scheme() == "https");
    let client =
        Client::new(Peer::Restate(token.transpose()?), tls).map_err(WorkerError::Client)?;
    // Other workers may use TLS even if this one does not. Without root certificates, only workers
    // without TLS can be reached.
    let asking = Client::new(Peer::Worker, true).or_else(|_| Client::new(Peer::Worker, false));
    Ok((client, asking.map_err(WorkerError::Client)?))
}

/// Returns a random name that distinguishes this process from other workers. It is not a secret.
fn worker_name() -> HeaderValue {
    HeaderValue::from(RandomState::new().build_hasher().finish())
}

/// Returns the version with a hash of the object's description, which Restate must discover again
/// when it changes.
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
    async fn a_token_is_read_before_any_request_and_never_shown() {
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
