use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::CancellationToken;
use adjutant_runtime::{Agent, Dispatch, RunError};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::service::IntoServiceDefinition as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::address::RestateAddress;
use crate::dispatch::Ingress;
use crate::http;
use crate::object::Conversation;

/// How long what runs may take to end when the worker is stopped. What does not is in the journal.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts to register, or to take connections after the system had none.
const PAUSE: Duration = Duration::from_secs(1);

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
    url: String,
    unknown: Arc<Notify>,
}

impl Worker {
    /// Listens.
    ///
    /// # Errors
    /// [`WorkerError::Bind`].
    pub async fn bind(restate: RestateAddress) -> Result<Self, WorkerError> {
        let listen = restate.listen;
        let failed = |error: std::io::Error| WorkerError::Bind { listen, reason: error.to_string() };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let here = listener.local_addr().map_err(failed)?;
        let url = restate.advertise.as_ref().map_or_else(|| format!("http://{here}"), ToString::to_string);
        Ok(Self { listener, restate, url, unknown: Arc::default() })
    }

    /// Where Restate finds it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What has conversations go on by way of Restate; for [`Agent::dispatched_by`].
    #[must_use]
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        Arc::new(Ingress { authority: self.restate.ingress.clone(), unknown: Arc::clone(&self.unknown) })
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
            () = serve(self.listener, endpoint, stop, report.as_ref()) => {}
            // Never ends by itself.
            () = stay_registered(&self.restate, &self.url, &self.unknown, report.as_ref()) => {}
        }
    }
}

async fn serve(
    listener: TcpListener,
    endpoint: Endpoint,
    stop: CancellationToken,
    report: &(dyn Fn(&WorkerError) + Send + Sync),
) {
    let endpoint = HyperEndpoint::new(endpoint);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), endpoint.clone());
                // One that breaks is Restate's to make again.
                tokio::spawn(graceful.watch(connection));
            }
            Err(error) => {
                report(&WorkerError::Accept(error.to_string()));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(PATIENCE, graceful.shutdown()).await;
}

/// Registers, and again whenever Restate turns out not to know us (its data may be new).
async fn stay_registered(
    restate: &RestateAddress,
    url: &str,
    unknown: &Notify,
    report: &(dyn Fn(&WorkerError) + Send + Sync),
) {
    let Some(admin) = &restate.admin else { return std::future::pending().await };
    loop {
        let mut last = None;
        while let Err(why) = register(admin, url).await {
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

async fn register(admin: &str, url: &str) -> Result<(), String> {
    // The same place again is the same worker: the handler it has does not change with our versions.
    let body = json!({ "uri": url, "force": true }).to_string();
    let answer = http::post(admin, "/deployments", &[], Some(body)).await?;
    if answer.status.is_success() {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body);
    Err(format!("it answered {}: {body}", answer.status))
}
