//! The thread that accepts connections and answers liveness probes, so that a probe is answered
//! however busy the threads are that run handlers.

use std::io;
use std::sync::Arc;
use std::thread;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tracing::dispatcher;

use super::accept::{Arrived, Shutdown, accept, serve_connection, until};
use super::connections::{Connections, LimitReached, Slot};

/// Beginnings of requests that are answered on the accepting thread. Their handler only says that
/// the process lives.
const PROBES: [&[u8]; 2] = [b"GET /healthz ", b"HEAD /healthz "];
/// Number of bytes that tell a probe.
const PROBE_BYTES: usize = 14;

/// Serves connections as [`super::accept::serve`] does, on the threads of the calling runtime, but accepts
/// them on a thread of its own. A connection that begins with a liveness probe is served there, and
/// closed after its response.
///
/// # Errors
/// The listener failed for good, or the thread cannot be started.
pub(crate) async fn serve_with_liveness(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    shutdown: Shutdown,
    on_refused: impl Fn(LimitReached) + Send + 'static,
) -> io::Result<()> {
    let listener = listener.into_std()?;
    let handlers = Handle::current();
    // The thread ends with this future, also if that is dropped.
    let stopping = shutdown.stopping.child_token();
    let _stop = stopping.clone().drop_guard();
    let shutdown = Shutdown {
        stopping,
        ..shutdown
    };
    let (ended, served) = oneshot::channel();
    let logs = dispatcher::get_default(Clone::clone);
    let serve = move || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let tasks = TaskTracker::new();
            let place = |arrived, slot| {
                let serve =
                    serve_probe_or_hand_over(arrived, slot, tasks.clone(), handlers.clone());
                drop(tasks.spawn(serve));
            };
            accept(
                listener,
                router,
                connections,
                shutdown,
                &tasks,
                on_refused,
                place,
            )
            .await
        })
    };
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || {
            // Nobody waits for the result if the service was dropped.
            let _ = ended.send(dispatcher::with_default(&logs, serve));
        })?;
    served
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the accepting thread ended")))
}

/// Serves a connection that begins with a liveness probe, and hands over any other.
async fn serve_probe_or_hand_over(
    arrived: Arrived,
    slot: Slot,
    tasks: TaskTracker,
    handlers: Handle,
) {
    if begins_with_probe(&arrived, &slot).await {
        return serve_connection(arrived.closing_after_response(), slot).await;
    }
    // The socket moves to the runtime that reads it.
    let Arrived { stream, .. } = arrived;
    let Ok(stream) = stream.into_std() else {
        return;
    };
    let serve = async move {
        if let Ok(stream) = TcpStream::from_std(stream) {
            serve_connection(Arrived { stream, ..arrived }, slot).await;
        }
    };
    drop(tasks.spawn_on(serve, &handlers));
}

/// Waits for the first bytes of a connection, and returns true if a liveness probe begins with
/// them. Returns false if the connection has to be closed first.
async fn begins_with_probe(arrived: &Arrived, slot: &Slot) -> bool {
    let connection = slot.connection();
    let mut first = [0; PROBE_BYTES];
    let read = tokio::select! {
        read = arrived.stream.peek(&mut first) => read.unwrap_or_default(),
        () = connection.changed() => 0,
        () = until(connection.deadline(false)) => 0,
        () = arrived.shutdown.stopping.cancelled() => 0,
    };
    let first = first.get(..read).unwrap_or_default();
    PROBES.iter().any(|probe| first.starts_with(probe))
}
