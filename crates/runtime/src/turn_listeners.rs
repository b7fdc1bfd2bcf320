//! Listeners to turns that run in another task, perhaps in another process.
//!
//! A [`TurnPublisher`] sends the events of a turn to every [`TurnSubscription`]. Subscriptions of
//! the same process are found by their conversation. A subscription in another process is reached
//! through the store's [`Relay`], in numbered pieces, and only if it was named with the dispatched
//! call. The relay may lose messages: the response is then read from the journal.

mod message; // the text format between processes

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::{Holder, Recipients, Relay, RelayItem, RelayReceiver, Worker, pieces};
use adjutant_core::{CancellationToken, ConversationKey, PendingCall, Recorded};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::DropGuard;
use uuid::Uuid;

use crate::event::RunEvent;
use message::{
    HEAD_BYTES, PieceEnd, RelayMessage, encode_alive, encode_piece, encode_ping,
    encode_worker_started, parse_message,
};

/// Events buffered for a slow listener. A turn of the same process waits for capacity; from another
/// process, further events are lost.
const QUEUE: usize = 1024;

/// Pause before a message is sent again that the relay had no capacity for.
const RETRY_PAUSE: Duration = Duration::from_millis(25);

/// Time after which such a message, and the session with it, is given up.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two pings of the same process, whichever tasks wait for it.
pub(crate) const PING_INTERVAL: Duration = Duration::from_millis(200);

/// Workers of other processes whose status is kept.
const WORKERS_MAX: usize = 4096;

/// Largest state of a turn that is sent to another process, in bytes; a larger one is read from the
/// journal.
const TURN_BYTES_MAX: usize = 64 * 1024;

/// Suffix in the address of a listener that wants the end of the turn only.
const QUIET: &str = ".quiet";

/// A message to a subscription.
#[derive(Debug)]
pub(crate) enum TurnMessage {
    /// An event of the turn.
    Event(RunEvent),
    /// The state of a turn that ended or waits for a person.
    State(Arc<TurnState>),
    /// A worker of another process starts or continues a turn.
    WorkerStarted(Holder),
    /// The publisher has run everything that there was to run.
    End,
}

/// The state of a turn that ended or waits for a person.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TurnState {
    /// The events of the turn so far.
    pub(crate) events: Vec<Recorded>,
    /// The calls that wait for a person.
    pub(crate) pending: Vec<PendingCall>,
}

/// All subscriptions of this process, and the status of workers elsewhere.
#[derive(Default)]
pub(crate) struct TurnListeners {
    state: Mutex<State>,
    workers: Mutex<HashMap<String, WorkerStatus>>,
    is_relaying: AtomicBool,
    /// Stops the task that reads the relay.
    relay_guard: Mutex<Option<DropGuard>>,
}

#[derive(Default)]
struct State {
    listeners: HashMap<ConversationKey, Vec<Listener>>,
    /// Subscriptions by the name under which other processes reach them.
    sessions: HashMap<String, Session>,
}

/// The last contacts with a worker of another process.
#[derive(Default)]
struct WorkerStatus {
    /// The relay name of its process. `None`: not known yet.
    process: Option<Arc<str>>,
    heard_at: Option<Instant>,
    pinged_at: Option<Instant>,
}

/// The sending side of a subscription.
#[derive(Clone)]
struct Listener {
    session: String,
    messages: mpsc::Sender<TurnMessage>,
    /// True if it wants the end of the turn only.
    is_quiet: bool,
}

/// The pieces that another process sends to one subscription.
struct Session {
    listener: mpsc::Sender<TurnMessage>,
    /// Number of the next piece. `None`: one was lost, and the rest is ignored.
    next: Option<u64>,
    /// The pieces so far of an incomplete event.
    partial: String,
}

impl Session {
    /// Passes a piece on. Returns true if the next piece can follow.
    fn receive(&mut self, end: PieceEnd, text: &str) -> bool {
        self.partial += text;
        let message = match end {
            PieceEnd::Partial => return true,
            PieceEnd::Event => {
                serde_json::from_str(&std::mem::take(&mut self.partial)).map(TurnMessage::Event)
            }
            PieceEnd::State => serde_json::from_str(&std::mem::take(&mut self.partial))
                .map(|state| TurnMessage::State(Arc::new(state))),
            PieceEnd::Session => Ok(TurnMessage::End),
        };
        message.is_ok_and(|message| self.listener.try_send(message).is_ok())
    }
}

/// A subscription to the turns of one conversation. It ends when it is dropped.
pub(crate) struct TurnSubscription {
    listeners: Arc<TurnListeners>,
    key: ConversationKey,
    session: String,
    is_quiet: bool,
    messages: mpsc::Receiver<TurnMessage>,
}

impl TurnListeners {
    /// Subscribes to the turns of a conversation. `is_quiet`: to their ends only.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        key: &ConversationKey,
        is_quiet: bool,
    ) -> TurnSubscription {
        let (sender, messages) = mpsc::channel(QUEUE);
        let session = Uuid::now_v7().simple().to_string();
        let mut state = self.state();
        let listener = Listener {
            session: session.clone(),
            messages: sender.clone(),
            is_quiet,
        };
        let listeners = state.listeners.entry(key.clone());
        listeners.or_default().push(listener);
        state.sessions.insert(
            session.clone(),
            Session {
                listener: sender,
                next: Some(0),
                partial: String::new(),
            },
        );
        drop(state);
        TurnSubscription {
            listeners: self.clone(),
            key: key.clone(),
            session,
            is_quiet,
            messages,
        }
    }

    /// Starts to read messages of other processes, and to answer their pings for the worker of this
    /// process. Further calls do nothing.
    pub(crate) fn start_relay(self: &Arc<Self>, relay: &Arc<dyn Relay>, worker: &str) {
        if self.is_relaying.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(hearing) = relay.subscribe() else {
            return;
        };
        // A relay connects when its name is asked for; without this the first message would wait.
        let _ = relay.name();
        let stop = CancellationToken::new();
        let own = OwnWorker {
            relay: relay.clone(),
            id: worker.to_owned(),
        };
        tokio::spawn(read_relay(Arc::downgrade(self), hearing, own, stop.clone()));
        let mut guard = self
            .relay_guard
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *guard = Some(stop.drop_guard());
    }

    fn listeners_to(&self, key: &ConversationKey) -> Vec<Listener> {
        self.state().listeners.get(key).cloned().unwrap_or_default()
    }

    /// Returns the time of the last message from a worker of another process.
    pub(crate) fn last_heard_from(&self, worker: &str) -> Option<Instant> {
        self.workers().get(worker)?.heard_at
    }

    /// Asks a worker of another process whether it is alive.
    pub(crate) fn ping(&self, relay: &dyn Relay, worker: &str) {
        let now = Instant::now();
        let mut workers = self.workers();
        let status = status_of(&mut workers, worker);
        if status
            .pinged_at
            .is_some_and(|pinged_at| now < pinged_at + PING_INTERVAL)
        {
            return;
        }
        // Until the worker's process is known, all processes are asked, and only the right one
        // answers.
        let to = status
            .process
            .as_deref()
            .map_or(Recipients::All, Recipients::One);
        // If the relay is full, the next task that waits for the worker pings it.
        if relay.send(to, &encode_ping(worker)) {
            status.pinged_at = Some(now);
        }
    }

    fn record_alive(&self, worker: &str, process: &Arc<str>) {
        let mut workers = self.workers();
        let status = status_of(&mut workers, worker);
        status.process = Some(process.clone());
        status.heard_at = Some(Instant::now());
    }

    /// Handles a message of another process.
    fn receive(&self, from: &Arc<str>, message: &str, own: &OwnWorker) {
        match parse_message(message) {
            Some(RelayMessage::Ping { worker }) if worker == own.id => {
                // If the relay is full, the other process pings again.
                own.relay.send(Recipients::One(from), &encode_alive(worker));
            }
            Some(RelayMessage::Ping { .. }) | None => {}
            Some(RelayMessage::Alive { worker }) => self.record_alive(worker, from),
            Some(RelayMessage::WorkerStarted { session, holder }) => {
                self.record_alive(&holder.worker, from);
                if let Some(known) = self.state().sessions.get(session) {
                    // A full queue is a sign of life too, so nothing is lost with this message.
                    let _ = known.listener.try_send(TurnMessage::WorkerStarted(holder));
                }
            }
            Some(RelayMessage::Piece {
                session,
                number,
                end,
                text,
            }) => {
                let mut state = self.state();
                let Some(known) = state.sessions.get_mut(session) else {
                    return;
                };
                if number == 0 {
                    // A new publisher, such as that of another process after the first was lost.
                    (known.next, known.partial) = (Some(0), String::new());
                }
                let continues = known.next == Some(number) && known.receive(end, text);
                known.next = continues.then_some(number + 1);
            }
        }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<String, WorkerStatus>> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the status of a worker. All are forgotten once there are too many: they are found again
/// by a ping to all processes.
fn status_of<'w>(
    workers: &'w mut HashMap<String, WorkerStatus>,
    worker: &str,
) -> &'w mut WorkerStatus {
    if workers.len() >= WORKERS_MAX {
        workers.clear();
    }
    workers.entry(worker.to_owned()).or_default()
}

/// The worker of this process, which answers pings.
struct OwnWorker {
    relay: Arc<dyn Relay>,
    id: String,
}

async fn read_relay(
    listeners: Weak<TurnListeners>,
    mut hearing: Box<dyn RelayReceiver>,
    own: OwnWorker,
    stop: CancellationToken,
) {
    loop {
        let received = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            received = hearing.next() => received,
        };
        match (received, listeners.upgrade()) {
            (Some(RelayItem::Message { from, text: words }), Some(listeners)) => {
                listeners.receive(&from, &words, &own)
            }
            // Messages were lost: sessions find it by the numbers of their pieces.
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => return,
        }
    }
}

impl TurnSubscription {
    /// Returns the address under which other processes reach this subscription. `None`: the store
    /// has no relay.
    pub(crate) fn reply_to(&self, relay: &dyn Relay) -> Option<String> {
        let quiet = if self.is_quiet { QUIET } else { "" };
        Some(format!("{}-{}{quiet}", relay.name()?, self.session))
    }

    /// Waits for the next message. Cancel safe: no message is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> TurnMessage {
        // The channel stays open, because `State` has a sender as long as the subscription lives.
        self.messages.recv().await.unwrap_or(TurnMessage::End)
    }
}

impl Drop for TurnSubscription {
    fn drop(&mut self) {
        let mut state = self.listeners.state();
        state.sessions.remove(&self.session);
        if let Some(listeners) = state.listeners.get_mut(&self.key) {
            listeners.retain(|listener| listener.session != self.session);
            if listeners.is_empty() {
                state.listeners.remove(&self.key);
            }
        }
    }
}

/// Publishes the events of a conversation's turns to its subscriptions. Dropped, it publishes
/// [`TurnMessage::End`].
pub(crate) struct TurnPublisher {
    listeners: Arc<TurnListeners>,
    key: ConversationKey,
    remote: Option<RemoteListener>,
}

/// The queue of messages to a subscription in another process.
struct RemoteListener {
    messages: mpsc::Sender<RemoteMessage>,
    is_quiet: bool,
}

/// A message to a subscription in another process; events and states are JSON.
enum RemoteMessage {
    WorkerStarted(Holder),
    Event(String),
    State(String),
}

impl TurnPublisher {
    /// Creates a publisher. `reply_to`: the address of a subscription in another process, see
    /// [`TurnSubscription::reply_to`].
    pub(crate) fn new(
        listeners: &Arc<TurnListeners>,
        relay: &Arc<dyn Relay>,
        key: &ConversationKey,
        reply_to: Option<&str>,
    ) -> Self {
        let remote = reply_to.and_then(|address| {
            let (process, session) = address.rsplit_once('-')?;
            // A subscription of this process is found by its conversation.
            if session.len() > HEAD_BYTES / 2 || relay.name().is_some_and(|own| *own == *process) {
                return None;
            }
            let (messages, queue) = mpsc::channel(QUEUE);
            let (session, is_quiet) = match session.strip_suffix(QUIET) {
                Some(session) => (session, true),
                None => (session, false),
            };
            let sender = RelaySender {
                relay: relay.clone(),
                process: process.to_owned(),
                session: session.to_owned(),
                number: 0,
            };
            tokio::spawn(sender.send_all(queue));
            Some(RemoteListener { messages, is_quiet })
        });
        Self {
            listeners: listeners.clone(),
            key: key.clone(),
            remote,
        }
    }

    /// Publishes that a worker starts or continues a turn, also to quiet subscriptions.
    pub(crate) async fn publish_turn_started(
        &self,
        worker: Worker<'_>,
        event: impl FnOnce() -> RunEvent,
    ) {
        if let Some(remote) = &self.remote {
            // If the queue is full, the other process pings the worker after a while.
            let _ = remote
                .messages
                .try_send(RemoteMessage::WorkerStarted(Holder {
                    worker: worker.id.to_owned(),
                    epoch: worker.epoch,
                }));
        }
        self.publish_event(event, true).await;
    }

    /// Publishes an event, which is built only if there is a subscription.
    pub(crate) async fn publish(&self, event: impl FnOnce() -> RunEvent) {
        self.publish_event(event, false).await;
    }

    async fn publish_event(&self, event: impl FnOnce() -> RunEvent, to_quiet: bool) {
        let remote = self
            .remote
            .as_ref()
            .filter(|remote| !remote.is_quiet && !remote.messages.is_closed());
        let mut listeners = self.listeners.listeners_to(&self.key);
        listeners.retain(|listener| to_quiet || !listener.is_quiet);
        if listeners.is_empty() && remote.is_none() {
            return;
        }
        let event = event();
        if let Some(remote) = remote
            && let Ok(event) = serde_json::to_string(&event)
        {
            // The turn does not wait for another process: if the queue is full, the event is lost,
            // and the subscription finds it by the number of the next piece.
            let _ = remote.messages.try_send(RemoteMessage::Event(event));
        }
        for listener in listeners {
            // The subscription may have been dropped just now.
            let message = TurnMessage::Event(event.clone());
            let _ = listener.messages.send(message).await;
        }
    }

    /// Publishes the state of a turn that ended or waits for a person.
    pub(crate) async fn publish_turn_state(&self, conversation: &Conversation) {
        let remote = self
            .remote
            .as_ref()
            .filter(|remote| !remote.messages.is_closed());
        let listeners = self.listeners.listeners_to(&self.key);
        if listeners.is_empty() && remote.is_none() {
            return;
        }
        let state = Arc::new(TurnState {
            events: conversation.recent().to_vec(),
            pending: conversation.pending().to_vec(),
        });
        if let Some(remote) = remote
            && let Ok(state) = serde_json::to_string(&*state)
            && state.len() <= TURN_BYTES_MAX
        {
            // If the queue is full, the other process reads the journal.
            let _ = remote.messages.try_send(RemoteMessage::State(state));
        }
        for listener in listeners {
            // The subscription may have been dropped just now.
            let message = TurnMessage::State(state.clone());
            let _ = listener.messages.send(message).await;
        }
    }
}

impl Drop for TurnPublisher {
    fn drop(&mut self) {
        for listener in self.listeners.listeners_to(&self.key) {
            // If the queue is full, the task that listens reads the journal.
            let _ = listener.messages.try_send(TurnMessage::End);
        }
    }
}

/// Sends numbered pieces to a subscription in another process.
struct RelaySender {
    relay: Arc<dyn Relay>,
    process: String,
    session: String,
    number: u64,
}

impl RelaySender {
    /// Sends all messages, then the end of the session. Stops if the relay stays full for too long.
    async fn send_all(mut self, mut messages: mpsc::Receiver<RemoteMessage>) {
        while let Some(message) = messages.recv().await {
            let is_sent = match message {
                RemoteMessage::WorkerStarted(holder) => {
                    // Not a numbered piece: if it is lost, the other process pings the worker.
                    let message = encode_worker_started(&self.session, &holder);
                    self.relay.send(Recipients::One(&self.process), &message);
                    true
                }
                RemoteMessage::Event(event) => self.send_in_pieces(&event, PieceEnd::Event).await,
                RemoteMessage::State(state) => self.send_in_pieces(&state, PieceEnd::State).await,
            };
            if !is_sent {
                return;
            }
        }
        self.send_piece(PieceEnd::Session, "").await;
    }

    async fn send_in_pieces(&mut self, text: &str, end: PieceEnd) -> bool {
        let most = self.relay.bytes_max().saturating_sub(HEAD_BYTES);
        let mut pieces = pieces(text, most).into_iter().peekable();
        while let Some(piece) = pieces.next() {
            let end = match pieces.peek() {
                Some(_) => PieceEnd::Partial,
                None => end,
            };
            if !self.send_piece(end, piece).await {
                return false;
            }
        }
        true
    }

    async fn send_piece(&mut self, end: PieceEnd, text: &str) -> bool {
        let message = encode_piece(&self.session, self.number, end, text);
        let until = Instant::now() + RETRY_TIMEOUT;
        while !self.relay.send(Recipients::One(&self.process), &message) {
            if Instant::now() >= until {
                return false;
            }
            sleep(RETRY_PAUSE).await;
        }
        self.number += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::port::Alone;
    use adjutant_core::{AgentName, ConversationId, UserId};

    use super::*;

    /// A relay to another process that loses the n-th message; 0: none.
    struct Line {
        name: &'static str,
        to: Arc<TurnListeners>,
        sent: Mutex<usize>,
        loses: usize,
    }

    impl Relay for Line {
        fn send(&self, to: Recipients<'_>, message: &str) -> bool {
            assert_eq!(to, Recipients::One("there"));
            assert!(message.len() <= self.bytes_max(), "{}", message.len());
            let mut sent = self.sent.lock().unwrap();
            *sent += 1;
            // A relay may refuse messages before it is connected, and when it is full.
            if *sent == 1 {
                return false;
            }
            if self.loses == 0 || *sent != self.loses {
                let own = OwnWorker {
                    relay: Arc::new(Alone),
                    id: "worker".to_owned(),
                };
                self.to.receive(&self.name.into(), message, &own);
            }
            true
        }

        fn name(&self) -> Option<Arc<str>> {
            Some(self.name.into())
        }

        fn bytes_max(&self) -> usize {
            200
        }

        fn subscribe(&self) -> Option<Box<dyn RelayReceiver>> {
            None
        }
    }

    fn key() -> ConversationKey {
        let (agent, user) = (AgentName::adjutant(), UserId::local());
        ConversationKey {
            agent,
            user,
            conversation: ConversationId(Uuid::nil()),
        }
    }

    /// Publishes two texts to a subscription in another process. Returns the texts that it received
    /// until the end, or until nothing more comes.
    async fn received(
        subscription: &mut TurnSubscription,
        there: &Arc<TurnListeners>,
        loses: usize,
    ) -> Vec<String> {
        let line = |name| Line {
            name,
            to: there.clone(),
            sent: Mutex::default(),
            loses,
        };
        let reply_to = subscription.reply_to(&line("there")).unwrap();
        let here: Arc<dyn Relay> = Arc::new(line("here"));
        let publisher = TurnPublisher::new(&Arc::default(), &here, &key(), Some(&reply_to));
        for text in ["ä\u{0}\n🦀".repeat(100), "short".to_owned()] {
            publisher.publish(|| RunEvent::Text(text)).await;
        }
        drop(publisher);
        let mut received = Vec::new();
        while let Ok(TurnMessage::Event(RunEvent::Text(text))) =
            tokio::time::timeout(RETRY_TIMEOUT * 2, subscription.next()).await
        {
            received.push(text);
        }
        received
    }

    #[tokio::test(start_paused = true)]
    async fn another_process_receives_all_events_in_order() {
        let there = Arc::<TurnListeners>::default();
        let mut subscription = there.subscribe(&key(), false);
        let sent = ["ä\u{0}\n🦀".repeat(100), "short".to_owned()];
        assert_eq!(received(&mut subscription, &there, 0).await, sent);
        // Pieces behind a lost one are ignored: their events would be in the wrong place.
        assert!(received(&mut subscription, &there, 3).await.is_empty());
        // A new publisher, after the first was lost, starts with piece 0.
        assert_eq!(received(&mut subscription, &there, 0).await, sent);
        drop(subscription);
        assert!(there.state().sessions.is_empty() && there.state().listeners.is_empty());
    }
}
