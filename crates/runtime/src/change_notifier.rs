//! Wakes tasks when the journal reports a change in their conversation, so that they need not poll.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Change, Changes, Journal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Time for which the journal's changes are read on without a subscription: the next turn probably
/// needs them again.
const LINGER: Duration = Duration::from_secs(30);

/// The subscriptions of this process, and the one task that reads the journal's changes for them.
#[derive(Default)]
pub(crate) struct ChangeNotifier(Mutex<State>);

#[derive(Default)]
struct State {
    is_listening: bool,
    subscribers: HashMap<ConversationKey, Vec<Arc<Signals>>>,
}

#[derive(Default)]
struct Signals {
    input: Notify,
    free: Notify,
}

/// A subscription to the changes of one conversation. Changes since its creation are not missed.
pub(crate) struct ChangeSubscription {
    notifier: Arc<ChangeNotifier>,
    key: ConversationKey,
    signals: Arc<Signals>,
}

impl ChangeNotifier {
    /// Subscribes to the changes of a conversation.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        journal: &Arc<dyn Journal>,
        key: &ConversationKey,
    ) -> ChangeSubscription {
        let signals = Arc::<Signals>::default();
        let mut state = self.state();
        state
            .subscribers
            .entry(key.clone())
            .or_default()
            .push(signals.clone());
        if !std::mem::replace(&mut state.is_listening, true) {
            tokio::spawn(listen(Arc::downgrade(self), journal.changes()));
        }
        drop(state);
        ChangeSubscription {
            notifier: self.clone(),
            key: key.clone(),
            signals,
        }
    }

    /// Wakes the subscribers that a change concerns.
    pub(crate) fn notify(&self, change: &Change) {
        let state = self.state();
        let of = |key| state.subscribers.get(key).into_iter().flatten();
        match change {
            // `notify_one` stores a permit, so that a change between two waits is not lost.
            Change::Input(key) => of(key).for_each(|signals| signals.input.notify_one()),
            Change::Free(key) => of(key).for_each(|signals| signals.free.notify_one()),
            // Some changes were missed, so all subscribers check for themselves. Woken in a fixed
            // order, so that a simulation is deterministic.
            _ => {
                let mut all: Vec<_> = state.subscribers.iter().collect();
                all.sort_unstable_by_key(|(key, _)| key.conversation);
                all.into_iter()
                    .flat_map(|(_, signals)| signals)
                    .for_each(|signals| {
                        signals.input.notify_one();
                        signals.free.notify_one();
                    });
            }
        }
    }

    /// Marks the listening task as stopped if there are no subscribers. Returns true if it stops.
    fn stop_if_idle(&self) -> bool {
        let mut state = self.state();
        state.is_listening = !state.subscribers.is_empty();
        !state.is_listening
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeSubscription {
    /// Waits until an input is accepted in the conversation.
    pub(crate) async fn input_accepted(&self) {
        self.signals.input.notified().await;
    }

    /// Waits until the lease of the conversation is released.
    pub(crate) async fn released(&self) {
        self.signals.free.notified().await;
    }
}

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        let mut state = self.notifier.state();
        if let Some(waiters) = state.subscribers.get_mut(&self.key) {
            waiters.retain(|signals| !Arc::ptr_eq(signals, &self.signals));
            if waiters.is_empty() {
                state.subscribers.remove(&self.key);
            }
        }
    }
}

/// Passes changes on to subscribers until there have been none for a while.
async fn listen(notifier: Weak<ChangeNotifier>, mut changes: Box<dyn Changes>) {
    let mut until = Instant::now() + LINGER;
    loop {
        let change = tokio::select! {
            // In this order: a steady stream of changes must not keep an idle task alive.
            biased;
            () = sleep_until(until) => {
                until += LINGER;
                match notifier.upgrade() {
                    Some(notifier) if !notifier.stop_if_idle() => continue,
                    _ => return,
                }
            }
            change = changes.next() => change,
        };
        let Some(notifier) = notifier.upgrade() else {
            return;
        };
        match change {
            Some(change) => notifier.notify(&change),
            // The journal was closed: subscribers poll.
            None => {
                notifier.state().is_listening = false;
                return;
            }
        }
    }
}
