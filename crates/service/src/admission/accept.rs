//! The loop that accepts connections, and the task that serves one.

use std::convert::Infallible;
use std::future::pending;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::CancellationToken;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::connections::{Connections, LimitReached, Slot};
use super::observed::{ObservedBody, ObservedStream};

/// Pause after the system could not accept a connection, for want of file descriptors or memory.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The two steps of a shutdown.
#[derive(Clone)]
pub(crate) struct Shutdown {
    /// Cancelled first: requests are answered, and each connection is closed after its next
    /// response, so that clients' connection pools are empty before the second step.
    pub(crate) draining: CancellationToken,
    /// Cancelled when no new connection is accepted.
    pub(crate) stopping: CancellationToken,
}

/// A connection that was accepted, and what serves it.
pub(super) struct Arrived {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) app: TowerToHyperService<Router>,
    pub(super) shutdown: Shutdown,
}

impl Arrived {
    /// Closes the connection after its next response.
    pub(super) fn closing_after_response(mut self) -> Self {
        self.shutdown.draining = CancellationToken::new();
        self.shutdown.draining.cancel();
        self
    }
}

/// Serves connections until the shutdown, and returns once all accepted requests are answered.
///
/// # Errors
/// The listener failed for good.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    shutdown: Shutdown,
) -> std::io::Result<()> {
    let tasks = TaskTracker::new();
    let serve = |arrived, slot| drop(tasks.spawn(serve_connection(arrived, slot)));
    accept(
        listener,
        router,
        connections,
        shutdown,
        &tasks,
        |_| {},
        serve,
    )
    .await
}

/// Accepts connections until the shutdown and passes them to `place`, which spawns their tasks.
/// Returns once all `tasks` have ended. Calls `on_refused` for each connection that was refused
/// because a limit was reached.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    shutdown: Shutdown,
    tasks: &TaskTracker,
    on_refused: impl Fn(LimitReached),
    place: impl Fn(Arrived, Slot),
) -> std::io::Result<()> {
    let app = TowerToHyperService::new(router);
    let admit = |stream, peer: SocketAddr| match connections.admit(peer.ip(), Instant::now()) {
        Ok(slot) => place(
            Arrived {
                stream,
                peer,
                app: app.clone(),
                shutdown: shutdown.clone(),
            },
            slot,
        ),
        Err(refused) => on_refused(refused),
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => admit(stream, peer),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset => {}
                // The listener itself is broken. Other errors concern one connection or a lack of
                // resources.
                ErrorKind::InvalidInput => return Err(error),
                _ => {
                    // Usually the process is out of file descriptors; an idle connection has one to
                    // give.
                    connections.close_idlest();
                    tokio::time::sleep(BACK_OFF).await;
                }
            },
        }
    }
    // Connections in the backlog would be reset when the socket closes, and may have sent a request
    // already.
    let listener = listener.into_std()?;
    while let Ok((stream, peer)) = listener.accept() {
        stream.set_nonblocking(true)?;
        admit(TcpStream::from_std(stream)?, peer);
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Serves one connection, until it ends, times out or is closed to make space.
pub(super) async fn serve_connection(arrived: Arrived, slot: Slot) {
    let Arrived {
        stream,
        peer,
        app,
        shutdown,
    } = arrived;
    let connection = slot.connection();
    let service = service_fn(|request: Request<Incoming>| {
        let (app, connection, busy, draining) = (
            app.clone(),
            connection.clone(),
            connection.begin(),
            &shutdown.draining,
        );
        async move {
            // The connection was chosen to make space just now. It is dropped in a moment, and the
            // request, which was not started, with it.
            let Some(busy) = busy else {
                return pending().await;
            };
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(connection);
            let mut response = app.call(request).await?;
            if draining.is_cancelled() {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| ObservedBody::new(body, busy)))
        }
    });
    let io = TokioIo::new(ObservedStream::new(stream, connection.clone()));
    let mut exchange = pin!(http1::Builder::new().serve_connection(io, service));
    let mut leaving = false;
    while !connection.is_over(Instant::now(), leaving) {
        let deadline = connection.deadline(leaving);
        tokio::select! {
            // Also if it failed: then the client is gone.
            _ = exchange.as_mut() => return,
            () = shutdown.stopping.cancelled(), if !leaving => {
                leaving = true;
                exchange.as_mut().graceful_shutdown();
            }
            () = connection.changed() => {}
            () = until(deadline) => {}
        }
    }
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}
