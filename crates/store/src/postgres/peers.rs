//! Notifications between the processes that share a database: sending, listening, and polling where
//! notifications do not arrive.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Change, RelayItem};
use ring::rand::{SecureRandom as _, SystemRandom};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use super::notify::Notifier;
use super::worker_session::{ServerSession, session_of};
use crate::lock::lock;
use crate::record;
use crate::sql::{Backend, lease};

/// The channel for changes. Notifications do not cross databases.
const CHANNEL: &str = "adjutant_change_1";

/// The channel for messages to all processes. The channel for one process has an underscore and its
/// name appended.
const RELAY: &str = "adjutant_relay_1";

/// Polling interval where notifications do not arrive. Listening also starts after this delay only,
/// because most callers do not wait so long.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time within which our own probe must arrive.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which a listener checks whether there are still subscribers.
const IDLE_CHECK: Duration = Duration::from_secs(30);

/// Time after which listening is attempted again if it failed.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Most conversations whose release is announced to other processes.
const AWAITED_MAX: usize = 4096;

/// The notification channels of this process.
#[derive(Debug)]
pub(super) struct Peers {
    /// Sends notifications; works through a pooler too.
    notifier: Arc<Notifier>,
    channel: Arc<str>,
    /// The address for listening, without a pooler in between.
    listen_options: PgConnectOptions,
    /// Random tag that tells our own notifications from those of other processes.
    tag: String,
    /// Conversations to which another process has sent an input, so that it may wait for the end of
    /// their lease.
    awaited: Mutex<HashSet<ConversationKey>>,
    /// True while notifications arrive here.
    is_listening: AtomicBool,
    /// Fires when a caller wants to listen without delay.
    connect_requested: Notify,
}

/// A database that other processes may write to.
pub(super) trait PeerAware: Backend {
    /// Records the server session on which this process listens, `None` if it does not.
    fn set_listener_session(
        &self,
        session: Option<ServerSession>,
    ) -> impl Future<Output = ()> + Send;

    fn peers(&self) -> &Arc<Peers>;
}

/// The content of a notification.
enum Notification {
    Change(Change),
    /// A probe that this process has sent to itself.
    Probe,
}

/// Returns the channel for messages to one process, or to all.
pub(super) fn relay_channel(to: Option<&str>) -> String {
    to.map_or_else(|| RELAY.to_owned(), |name| format!("{RELAY}_{name}"))
}

impl Peers {
    pub(super) fn new(notify_options: PgConnectOptions, listen_options: PgConnectOptions) -> Self {
        let mut bytes = [0_u8; 8];
        // Without random numbers, processes that start alike ignore each other's notifications as
        // their own.
        let _ = SystemRandom::new().fill(&mut bytes);
        let tag = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            notifier: Arc::new(Notifier::new(notify_options)),
            channel: CHANNEL.into(),
            listen_options,
            tag,
            awaited: Mutex::default(),
            is_listening: AtomicBool::new(false),
            connect_requested: Notify::new(),
        }
    }

    /// Returns the name of this process among those that share the database.
    pub(super) fn name(&self) -> &str {
        &self.tag
    }

    pub(super) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// Returns true if notifications arrive here now.
    pub(super) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::SeqCst)
    }

    /// Ends the initial delay of the listener.
    pub(super) fn connect_now(&self) {
        self.connect_requested.notify_one();
    }

    /// Notifies other processes of a change that they may wait for.
    pub(super) fn announce(&self, change: &Change) {
        let (kind, key) = match change {
            Change::Input(key) => ("input", key),
            // Most conversations are of one process, and their release interests no other.
            Change::Free(key) if lock(&self.awaited).remove(key) => ("free", key),
            _ => return,
        };
        let id = key.conversation.to_string();
        self.send(&[
            self.name(),
            kind,
            key.agent.as_str(),
            key.user.as_str(),
            &id,
        ]);
    }

    fn send(&self, fields: &[&str]) {
        if let Ok(notification) = record::to_json(&fields) {
            self.notifier.notify(&self.channel, notification);
        }
    }

    /// Parses a notification. `None` if it is our own, or has an unknown form.
    fn parse_change(&self, notification: &str) -> Option<Notification> {
        let fields: Vec<String> = serde_json::from_str(notification).ok()?;
        let [tag, kind, rest @ ..] = fields.as_slice() else {
            return None;
        };
        if *tag == self.tag {
            return (kind == "probe").then_some(Notification::Probe);
        }
        let [agent, user, id] = rest else { return None };
        let key = record::conversation_key(agent.clone(), user.clone(), id).ok()?;
        match kind.as_str() {
            "input" => {
                self.note_waiter(&key);
                Some(Notification::Change(Change::Input(key)))
            }
            "free" => Some(Notification::Change(Change::Free(key))),
            _ => None,
        }
    }

    /// Records that another process may wait for the end of a conversation's lease.
    fn note_waiter(&self, key: &ConversationKey) {
        let mut awaited = lock(&self.awaited);
        // Forgotten conversations cost their waiters one polling interval, no more.
        if awaited.len() >= AWAITED_MAX {
            awaited.clear();
        }
        awaited.insert(key.clone());
    }

    /// Starts to listen on the channels. `None` if notifications do not arrive here, as behind a
    /// pooler in transaction mode.
    pub(super) async fn listen(&self) -> Option<(PgListener, ServerSession)> {
        let listening = self.try_listen().await.inspect_err(|error| {
            debug!(%error, "cannot listen to the other processes with this database");
        });
        listening.ok()?
    }

    async fn try_listen(&self) -> Result<Option<(PgListener, ServerSession)>, sqlx::Error> {
        // A pool of one that never recycles its connection: `PgListener` takes one from a pool, and
        // its session identifies this process.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None);
        let pool = pool.connect_with(self.listen_options.clone()).await?;
        let Some(session) = session_of(&pool, &self.listen_options).await? else {
            return Ok(None);
        };
        let mut listener = PgListener::connect_with(&pool).await?;
        let (all, own) = (relay_channel(None), relay_channel(Some(self.name())));
        listener.listen_all([CHANNEL, &all, &own]).await?;
        // If our own notification arrives, those of others do.
        self.send(&[self.name(), "probe"]);
        let probe = async {
            loop {
                let Some(received) = listener.try_recv().await? else {
                    return Ok(false);
                };
                if let Some(Notification::Probe) = self.parse_change(received.payload()) {
                    return Ok::<_, sqlx::Error>(true);
                }
            }
        };
        // Behind a pooler no probe arrives, and there is no error either.
        let arrives = timeout(PROBE_TIMEOUT, probe).await.unwrap_or(Ok(false))?;
        Ok(arrives.then_some((listener, session)))
    }

    /// Closes the connection that sends.
    pub(super) async fn close(&self) {
        self.notifier.close().await;
    }
}

/// Listens to other processes while there are subscribers and the store exists. Where notifications
/// do not arrive, it polls.
pub(super) async fn watch(database: Weak<impl PeerAware>) {
    if let Some(peers) = if_watched(&database).map(|database| database.peers().clone()) {
        let _ = timeout(POLL_INTERVAL, peers.connect_requested.notified()).await;
    }
    loop {
        let Some(peers) = if_watched(&database).map(|database| database.peers().clone()) else {
            return;
        };
        if let Some((mut listener, session)) = peers.listen().await {
            debug!("listening to the other processes with this database");
            if let Some(database) = database.upgrade() {
                database.set_listener_session(Some(session)).await;
            }
            peers.is_listening.store(true, Ordering::SeqCst);
            receive(&database, &peers, &mut listener).await;
            peers.is_listening.store(false, Ordering::SeqCst);
            if let Some(database) = database.upgrade() {
                database.set_listener_session(None).await;
            }
            // The connection was lost; usually another can be made at once.
            debug!("the connection for listening has ended");
            continue;
        }
        debug!("notifications of other processes do not arrive; polling instead");
        let until = Instant::now() + RETRY_AFTER;
        while Instant::now() < until {
            let Some(database) = if_watched(&database) else {
                return;
            };
            poll(&*database).await;
            // Not held while it sleeps, so that the store can be closed meanwhile.
            drop(database);
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// Receives notifications until the connection is lost, there are no subscribers, or the store is
/// gone.
async fn receive(database: &Weak<impl PeerAware>, peers: &Peers, listener: &mut PgListener) {
    // Notifications from before may have been missed.
    if let Some(store) = if_watched(database) {
        store.change_feed().publish_message(|| RelayItem::Missed);
        poll(&*store).await;
    }
    while if_watched(database).is_some() {
        match timeout(IDLE_CHECK, listener.try_recv()).await {
            Ok(Ok(Some(received))) if received.channel() != CHANNEL => {
                if let Some(message) = parse_message(received.payload(), peers.name())
                    && let Some(database) = database.upgrade()
                {
                    database.change_feed().publish_message(|| message);
                }
            }
            Ok(Ok(Some(received))) => {
                if let Some(Notification::Change(change)) = peers.parse_change(received.payload())
                    && let Some(database) = database.upgrade()
                {
                    database.change_feed().publish(|| change);
                }
            }
            // `PgListener` may have reconnected in another server session, which was not recorded.
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => {}
        }
    }
}

/// Returns the store if it exists and has subscribers.
fn if_watched<D: PeerAware>(database: &Weak<D>) -> Option<Arc<D>> {
    database
        .upgrade()
        .filter(|database| database.change_feed().keeps_watching())
}

/// Publishes changes that may have been missed. A failure is repaired by the next poll.
async fn poll(database: &impl PeerAware) {
    let changes = lease::find_waiting(database).await.inspect_err(|error| {
        debug!(%error, "cannot poll for the writes of other processes");
    });
    for change in changes.unwrap_or_default() {
        // The process that sent the input may wait for the end of the lease.
        if let Change::Input(key) = &change {
            database.peers().note_waiter(key);
        }
        database.change_feed().publish(|| change);
    }
}

/// Parses a message that another process relays. `None` if it is our own, or has an unknown form.
fn parse_message(payload: &str, own: &str) -> Option<RelayItem> {
    let (from, message) = payload.split_once(' ').filter(|(from, _)| *from != own)?;
    Some(RelayItem::Message {
        from: from.into(),
        text: message.into(),
    })
}
