//! Publication of this process's runs to other processes that subscribe to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::port::{Recipients, Relay, RelayItem, RelayReceiver};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::message::{Chunk, RelayMessage, Subscription, split_chunks, to_lines};
use crate::live::{Run, Runs};

/// Time after which a subscription that was not renewed ends.
const SUBSCRIPTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Most concurrent subscriptions. Further subscribers read the journal.
const SUBSCRIPTIONS_MAX: usize = 64;

/// Time in which events are gathered into one message, and pause while the relay's queue is full.
const BATCH_DELAY: Duration = Duration::from_millis(50);

/// Bytes of events that are prepared at once.
const BATCH_BYTES: usize = 64 * 1024;

/// Largest event; a longer one ends the publication, and subscribers read the journal.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// Publisher of this process's runs. Listens to other processes only while there is a run.
pub(crate) struct Publisher {
    runs: Arc<Runs>,
    relay: Arc<dyn Relay>,
    state: Mutex<State>,
    /// Notified when a guard is dropped, so that listening can stop.
    guard_dropped: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Number of guards: runs and subscriptions.
    guards: usize,
    is_listening: bool,
}

/// Guard that keeps the publisher listening.
pub(crate) struct PublisherGuard(Arc<Publisher>);

impl Drop for PublisherGuard {
    fn drop(&mut self) {
        self.0.state().guards -= 1;
        self.0.guard_dropped.notify_one();
    }
}

impl Publisher {
    pub(crate) fn new(runs: Arc<Runs>, relay: Arc<dyn Relay>) -> Arc<Self> {
        Arc::new(Self {
            runs,
            relay,
            state: Mutex::default(),
            guard_dropped: Notify::new(),
        })
    }

    pub(crate) fn relay(&self) -> &Arc<dyn Relay> {
        &self.relay
    }

    /// Starts listening for subscriptions, until the guard is dropped.
    pub(crate) fn activate(self: &Arc<Self>) -> PublisherGuard {
        let mut state = self.state();
        state.guards += 1;
        // Under the lock, so that two runs cannot start two listeners.
        if !state.is_listening
            && let Some(receiver) = self.relay.subscribe()
        {
            state.is_listening = true;
            tokio::spawn(handle_messages(self.clone(), receiver));
        }
        PublisherGuard(self.clone())
    }

    /// Stops listening if there is no guard. Returns true if it has stopped.
    fn stop_if_unused(&self) -> bool {
        let mut state = self.state();
        // Under the same lock as `activate`, so that a new run cannot rely on a listener that is
        // about to stop.
        state.is_listening = state.guards > 0;
        !state.is_listening
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panic cannot spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sender of renewals to a publication, which stops when it is dropped.
type Renewal = watch::Sender<()>;

/// Handles messages of other processes until there is nothing to publish.
async fn handle_messages(publisher: Arc<Publisher>, mut receiver: Box<dyn RelayReceiver>) {
    let mut renewals: HashMap<String, Renewal> = HashMap::new();
    loop {
        let received = tokio::select! {
            received = receiver.next() => match received {
                Some(received) => Some(received),
                None => {
                    publisher.state().is_listening = false;
                    return;
                }
            },
            () = publisher.guard_dropped.notified() => None,
        };
        renewals.retain(|_, renewal| !renewal.is_closed());
        if let Some(RelayItem::Message { from, text }) = received {
            match RelayMessage::parse(&text) {
                Some(RelayMessage::Subscribe(subscription)) => {
                    start_or_renew(&publisher, &mut renewals, &from, subscription)
                }
                Some(RelayMessage::Unsubscribe { session }) => drop(renewals.remove(&session)),
                // For subscribers in this process.
                Some(RelayMessage::Events(_) | RelayMessage::Refused { .. }) | None => {}
            }
        }
        if publisher.stop_if_unused() {
            return;
        }
    }
}

/// Starts a publication, or renews it.
fn start_or_renew(
    publisher: &Arc<Publisher>,
    renewals: &mut HashMap<String, Renewal>,
    from: &Arc<str>,
    subscription: Subscription,
) {
    if let Some(renewal) = renewals.get(&subscription.session) {
        renewal.send_replace(());
        return;
    }
    // Another process may have the run.
    let Some(run) = publisher
        .runs
        .find_in_conversation(&subscription.key(), &subscription.run)
    else {
        return;
    };
    // Without an answer the subscriber reads the journal.
    if renewals.len() >= SUBSCRIPTIONS_MAX {
        return;
    }
    if subscription
        .client
        .is_some_and(|client| client != run.fingerprints.client)
    {
        publisher.relay.send(
            Recipients::One(from),
            &RelayMessage::Refused {
                session: subscription.session,
            }
            .to_text(),
        );
        return;
    }
    let at = subscription.after.map_or(0, |id| run.position_after(&id));
    // A watch channel: several renewals between two events are one.
    let (sender, renewed) = watch::channel(());
    let publication = Publication {
        relay: publisher.relay.clone(),
        to: from.clone(),
        session: subscription.session.clone(),
        number: 0,
        until: Instant::now() + SUBSCRIPTION_TIMEOUT,
        _guard: publisher.activate(),
    };
    renewals.insert(subscription.session, sender);
    tokio::spawn(publication.publish(run, at, renewed));
}

/// Publication of a run to one subscriber.
struct Publication {
    relay: Arc<dyn Relay>,
    to: Arc<str>,
    session: String,
    number: u64,
    until: Instant,
    _guard: PublisherGuard,
}

impl Publication {
    /// Sends events from a position, until the run's end or until the subscription expires. The run
    /// never waits for it.
    async fn publish(mut self, run: Arc<Run>, mut at: usize, mut renewed: watch::Receiver<()>) {
        loop {
            tokio::select! {
                again = renewed.changed() => {
                    if again.is_err() {
                        return;
                    }
                    self.until = Instant::now() + SUBSCRIPTION_TIMEOUT;
                    // A sign of life, without which the subscriber would take this process for
                    // lost.
                    self.try_send(String::new(), false);
                }
                () = sleep_until(self.until) => return,
                frame = run.frame(at) => {
                    // Sent too, so that the subscriber need not wait for the silence of this
                    // process.
                    if frame.is_none() {
                        self.send_chunk(String::new(), true).await;
                        return;
                    }
                    // Deltas arrive one by one; gathered, they take fewer messages.
                    sleep(BATCH_DELAY).await;
                    let frames = run.frames(at, BATCH_BYTES);
                    // The relay would split it into very many messages; it is read from the journal.
                    if frames.iter().any(|frame| frame.data.len() > EVENT_BYTES_MAX) {
                        self.send_chunk(String::new(), true).await;
                        return;
                    }
                    at += frames.len();
                    for piece in split_chunks(&to_lines(&frames), self.relay.bytes_max()) {
                        if !self.send_chunk(piece.to_owned(), false).await {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Sends a chunk, waiting while the relay's queue is full. Returns false if the subscription
    /// expired meanwhile.
    async fn send_chunk(&mut self, text: String, ends: bool) -> bool {
        while !self.try_send(text.clone(), ends) {
            if Instant::now() >= self.until {
                return false;
            }
            sleep(BATCH_DELAY).await;
        }
        self.number += 1;
        true
    }

    fn try_send(&self, text: String, ends: bool) -> bool {
        let chunk = Chunk {
            session: self.session.clone(),
            number: self.number,
            ends,
            text,
        };
        self.relay.send(
            Recipients::One(&self.to),
            &RelayMessage::Events(chunk).to_text(),
        )
    }
}
