//! Admission: the limits on connections, request rates and concurrent turns, and the loop that
//! accepts and serves connections.
//!
//! A request in progress is never cut, except when its client neither sends nor reads. An idle
//! connection is closed after a while, or when its slot is needed.

mod connection_limits; // number of connections, timeouts
mod connections; // registry of open connections
mod observed; // stream and body that record their progress
mod user_limits; // rate limits, concurrent turns

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

pub use connection_limits::ConnectionLimits;
pub(crate) use connections::{Connection, Connections};
use connections::{LimitReached, Slot};
use observed::{ObservedBody, ObservedStream};
pub use user_limits::UserLimits;
pub(crate) use user_limits::{Limits, Rate, RunningTurn};

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

/// Serves connections until the shutdown, and returns once all accepted requests are answered.
/// Calls `on_refused` for each connection that was refused because a limit was reached.
///
/// # Errors
/// The listener failed for good.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    shutdown: Shutdown,
    on_refused: impl Fn(LimitReached),
) -> std::io::Result<()> {
    let tasks = TaskTracker::new();
    let app = TowerToHyperService::new(router);
    let admit = |stream, peer: SocketAddr| match connections.admit(peer.ip(), Instant::now()) {
        Ok(slot) => drop(tasks.spawn(serve_connection(
            stream,
            peer,
            slot,
            app.clone(),
            shutdown.clone(),
        ))),
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
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    slot: Slot,
    app: TowerToHyperService<Router>,
    shutdown: Shutdown,
) {
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
    loop {
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
        if connection.is_over(Instant::now(), leaving) {
            return;
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}
