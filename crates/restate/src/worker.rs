use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::CancellationToken;
use adjutant_runtime::{Agent, Dispatch, RunError};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::service::IntoServiceDefinition as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use url::Url;

use crate::address::RestateAddress;
use crate::client::{self, Client, Of, answer};
use crate::dispatch::Ingress;
use crate::object::Conversation;
use crate::port::Port;

/// Between two attempts to register.
const PAUSE: Duration = Duration::from_secs(1);
/// Restate asks the worker what it has before it answers a registration.
const REGISTERED_WITHIN: Duration = Duration::from_secs(10);

/// Why Restate does not call this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {listen} for Restate: {reason}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        reason: String,
    },
    /// There is no token to ask Restate with.
    #[error("cannot read the token for Restate from {path}: {reason}")]
    Token {
        /// What `token_file=` says.
        path: PathBuf,
        /// What the system says, or what is wrong with it.
        reason: String,
    },
    /// Restate cannot be asked at all.
    #[error("cannot ask Restate: {0}")]
    Client(String),
    /// Restate does not know of us yet; it is tried again and again, and until then the work is done without it.
    #[error("Restate does not know this worker yet: {0}")]
    NotRegistered(String),
    /// A connection could not be taken; the next ones are.
    #[error("Restate could not connect: {0}")]
    Accept(String),
    /// A conversation could not go on; Restate tries again if that can help.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What Restate calls: a process that listens, and does not answer yet.
#[derive(Debug)]
pub struct Worker {
    listener: TcpListener,
    restate: RestateAddress,
    client: Client,
    url: String,
    unknown: Arc<Notify>,
}

impl Worker {
    /// Listens, and reads the token that Restate is asked with.
    ///
    /// # Errors
    /// [`WorkerError::Bind`], [`WorkerError::Token`] and [`WorkerError::Client`].
    pub async fn bind(restate: RestateAddress) -> Result<Self, WorkerError> {
        let token = restate.token_file.as_deref().map(|path| {
            client::bearer(path).map_err(|reason| WorkerError::Token { path: path.to_owned(), reason })
        });
        let tls = restate.places().any(|url| url.scheme() == "https");
        let client = Client::new(Of::Restate(token.transpose()?), tls).map_err(WorkerError::Client)?;
        let listen = restate.listen;
        let failed = |error: std::io::Error| WorkerError::Bind { listen, reason: error.to_string() };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let here = listener.local_addr().map_err(failed)?;
        let url = restate.advertise.as_ref().map_or_else(|| format!("http://{here}"), ToString::to_string);
        Ok(Self { listener, restate, client, url, unknown: Arc::default() })
    }

    /// Where Restate finds it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What has conversations go on by way of Restate; for [`Agent::dispatched_by`].
    #[must_use]
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        let (client, url) = (self.client.clone(), self.restate.ingress.clone());
        Arc::new(Ingress { client, url, unknown: Arc::clone(&self.unknown) })
    }

    /// Registers with Restate and answers its calls with this agent until `stop` fires; then it takes nothing new and lets
    /// what runs end, for half a minute at most. What goes wrong meanwhile is reported, and mended by itself.
    pub async fn run(
        self,
        agent: Agent,
        stop: CancellationToken,
        report: impl Fn(&WorkerError) + Send + Sync + 'static,
    ) {
        let report: Arc<dyn Fn(&WorkerError) + Send + Sync> = Arc::new(report);
        agent.hear_others();
        let of_run = Arc::clone(&report);
        let object =
            Conversation { agent, report: Arc::new(move |error| of_run(&WorkerError::Run(error.clone()))) };
        let endpoint = Endpoint::builder()
            .bind(object.into_service_definition().options(Conversation::settings()))
            .build();
        tokio::select! {
            () = Port::new(endpoint).serve(self.listener, stop, report.as_ref()) => {}
            // Never ends by itself.
            () = stay_registered(&self.client, &self.restate, &self.url, &self.unknown, report.as_ref()) => {}
        }
    }
}

/// Registers, and again whenever Restate turns out not to know us (its data may be new).
async fn stay_registered(
    client: &Client,
    restate: &RestateAddress,
    url: &str,
    unknown: &Notify,
    report: &(dyn Fn(&WorkerError) + Send + Sync),
) {
    let Some(admin) = &restate.admin else { return std::future::pending().await };
    loop {
        let mut last = None;
        while let Err(why) = register(client, admin, url).await {
            let error = WorkerError::NotRegistered(why);
            // Said once.
            if last.as_ref() != Some(&error) {
                report(&error);
            }
            last = Some(error);
            tokio::time::sleep(PAUSE).await;
        }
        unknown.notified().await;
    }
}

async fn register(client: &Client, admin: &Url, url: &str) -> Result<(), String> {
    // The same place again is the same worker: the handler it has does not change with our versions.
    let body = json!({ "uri": url, "force": true }).to_string();
    let place = admin.join("/deployments").map_err(|error| error.to_string())?;
    let request = client.request(Method::POST, place).header(CONTENT_TYPE, "application/json").body(body);
    let answer = answer(request.timeout(REGISTERED_WITHIN)).await?;
    if answer.status.is_success() {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body);
    Err(format!("it answered {}: {body}", answer.status))
}
