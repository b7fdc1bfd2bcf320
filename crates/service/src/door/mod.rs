//! Who is let in: how many connections, and how long each is waited for.
//!
//! Whoever is asked something by name has a request in progress, and that is never cut; whoever only holds a place has it
//! for a while, and as long as nobody needs it.

mod body; // what comes slowly
mod guests; // who is there
mod watched; // what goes over a connection

use std::convert::Infallible;
use std::future::pending;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::NonZeroU32;
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
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub(crate) use body::in_time;
pub(crate) use guests::Guests;
use guests::{NoRoom, Place};
use watched::{Answer, Watched};

/// File descriptors that are left to everything else: the database, models, MCP servers.
const LEFT_OVER: u64 = 256;
/// Connections to the address that has the figures only.
const FIGURES: NonZeroU32 = NonZeroU32::new(32).unwrap();
/// How long it is waited when the system has nothing left to accept a connection with.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Bounds of what clients hold open. None of them ends a request in progress, or the stream of an answer that its client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections in all. Default 1,024; fewer where the process may not have so many files open.
    pub connections: NonZeroU32,
    /// Open connections of one address, or of one /64 of IPv6. Default 128.
    pub per_address: NonZeroU32,
    /// How long the head of a request may take, from its first byte or the opening of the connection. Default 10 s.
    pub header_timeout: Duration,
    /// How long a request's body may pause. Default 30 s.
    pub body_silence: Duration,
    /// How long a request's body may take in all. Default 60 s.
    pub body_timeout: Duration,
    /// How long a connection may stay open between two requests, and how long a client may take nothing of an answer. Default 75 s.
    pub idle_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        const CONNECTIONS: NonZeroU32 = NonZeroU32::new(1_024).unwrap();
        const PER_ADDRESS: NonZeroU32 = NonZeroU32::new(128).unwrap();
        Self {
            connections: CONNECTIONS,
            per_address: PER_ADDRESS,
            header_timeout: Duration::from_secs(10),
            body_silence: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

impl ConnectionLimits {
    /// Returns the bounds of the address that has the figures only.
    #[must_use]
    pub(crate) fn of_figures(self) -> Self {
        Self { connections: self.connections.min(FIGURES), ..self }
    }

    /// Returns the same bounds, with no more connections than this process may have files open.
    #[must_use]
    pub(crate) fn fitting(self) -> Self {
        let allowed = getrlimit(Resource::Nofile).current.map_or(u64::MAX, fitting);
        let connections = u32::try_from(allowed).ok().and_then(NonZeroU32::new).unwrap_or(self.connections);
        Self { connections: self.connections.min(connections), ..self }
    }
}

/// Returns how many connections there may be where so many files may be open; with few of them, a quarter.
fn fitting(files: u64) -> u64 {
    files.saturating_sub(LEFT_OVER).max(files / 4).max(1)
}

/// The two steps of an end.
#[derive(Clone)]
pub(crate) struct Ending {
    /// Fires first: everybody is answered, and each connection is closed with its next answer, so that those that clients keep
    /// for later are gone before the second step.
    pub(crate) draining: CancellationToken,
    /// Fires when nobody more is let in.
    pub(crate) stopping: CancellationToken,
}

/// Answers whoever is let in until the end; then nobody more, and it returns when all have been answered. `full` hears
/// that somebody was sent away for want of room.
///
/// # Errors
/// The socket listens no more.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    guests: Arc<Guests>,
    ending: Ending,
    full: impl Fn(NoRoom),
) -> std::io::Result<()> {
    let attended = TaskTracker::new();
    let app = TowerToHyperService::new(router);
    let admit = |stream, peer: SocketAddr| match guests.admit(peer.ip(), Instant::now()) {
        Ok(place) => drop(attended.spawn(attend(stream, peer, place, app.clone(), ending.clone()))),
        Err(no_room) => full(no_room),
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => admit(stream, peer),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionAborted | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {}
                ErrorKind::InvalidInput => return Err(error),
                _ => {
                    guests.make_room();
                    tokio::time::sleep(BACK_OFF).await;
                }
            },
        }
    }
    // Whoever has connected by now would be reset when the socket closes, and may have sent a request already.
    let listener = listener.into_std()?;
    while let Ok((stream, peer)) = listener.accept() {
        stream.set_nonblocking(true)?;
        admit(TcpStream::from_std(stream)?, peer);
    }
    drop(listener);
    attended.close();
    attended.wait().await;
    Ok(())
}

/// Answers what comes over one connection, until it ends or its place is taken.
async fn attend(
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    app: TowerToHyperService<Router>,
    ending: Ending,
) {
    let guest = place.guest();
    let service = service_fn(|request: Request<Incoming>| {
        let (app, guest, busy, draining) = (app.clone(), guest.clone(), guest.begin(), &ending.draining);
        async move {
            // Its place was taken this moment: what holds it is about to be dropped, and nothing of the request is done.
            let Some(busy) = busy else { return pending().await };
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(guest);
            let mut response = app.call(request).await?;
            if draining.is_cancelled() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| Answer::new(body, busy)))
        }
    });
    let io = TokioIo::new(Watched::new(stream, guest.clone()));
    let mut connection = pin!(http1::Builder::new().serve_connection(io, service));
    let mut leaving = false;
    loop {
        let deadline = guest.deadline(leaving);
        tokio::select! {
            // Whatever broke it: whoever was at the other end is gone.
            _ = connection.as_mut() => return,
            () = ending.stopping.cancelled(), if !leaving => {
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            () = guest.changed() => {}
            () = until(deadline) => {}
        }
        if guest.is_over(Instant::now(), leaving) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_the_rest() {
        for (files, connections) in [(1_024, 768), (65_536, 65_280), (300, 75), (256, 64), (2, 1), (0, 1)] {
            assert_eq!(fitting(files), connections, "{files}");
        }
        assert!(ConnectionLimits::default().fitting().connections <= ConnectionLimits::default().connections);
    }
}
