//! Who is let in: how many connections, and how long each is waited for.
//!
//! Whoever is asked something by name has a request in progress, and that is never cut; whoever
//! only holds a place has it for a while, and as long as nobody needs it.

mod bounds; // how many, and how long
mod guests; // who is there
mod watched; // what goes over a connection

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

pub use bounds::ConnectionLimits;
pub(crate) use guests::{Guest, Guests};
use guests::{NoRoom, Place};
use watched::{Answer, Watched};

/// How long it is waited when the system has nothing left to accept a connection with.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The two steps of an end.
#[derive(Clone)]
pub(crate) struct Ending {
    /// Fires first: everybody is answered, and each connection is closed with its next answer, so
    /// that those that clients keep for later are gone before the second step.
    pub(crate) draining: CancellationToken,
    /// Fires when nobody more is let in.
    pub(crate) stopping: CancellationToken,
}

/// Answers whoever is let in until the end; then nobody more, and it returns when all have been
/// answered. `full` hears that somebody was sent away for want of room.
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
                ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset => {}
                ErrorKind::InvalidInput => return Err(error),
                _ => {
                    guests.make_room();
                    tokio::time::sleep(BACK_OFF).await;
                }
            },
        }
    }
    // Whoever has connected by now would be reset when the socket closes, and may have sent a
    // request already.
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
        let (app, guest, busy, draining) =
            (app.clone(), guest.clone(), guest.begin(), &ending.draining);
        async move {
            // Its place was taken this moment: what holds it is about to be dropped, and nothing of
            // the request is done.
            let Some(busy) = busy else {
                return pending().await;
            };
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(guest);
            let mut response = app.call(request).await?;
            if draining.is_cancelled() {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
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
