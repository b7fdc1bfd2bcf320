//! Waiting for something to happen in a conversation, without asking again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Change, Changes, Journal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Time for which the journal's news are listened to although nobody waits: until the next turn,
/// probably.
const LINGERS: Duration = Duration::from_secs(30);

/// All who wait, and the one task that listens to the journal's news for them.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<State>);

#[derive(Default)]
struct State {
    listens: bool,
    waiters: HashMap<ConversationKey, Vec<Arc<Signals>>>,
}

#[derive(Default)]
struct Signals {
    input: Notify,
    free: Notify,
}

/// One who waits. It hears of what happens from the moment it was made.
pub(crate) struct Waiter {
    waiting: Arc<Waiting>,
    key: ConversationKey,
    signals: Arc<Signals>,
}

impl Waiting {
    /// Begins to wait for what happens in a conversation.
    pub(crate) fn waiter(
        self: &Arc<Self>,
        journal: &Arc<dyn Journal>,
        key: &ConversationKey,
    ) -> Waiter {
        let signals = Arc::<Signals>::default();
        let mut state = self.state();
        state
            .waiters
            .entry(key.clone())
            .or_default()
            .push(signals.clone());
        if !std::mem::replace(&mut state.listens, true) {
            tokio::spawn(listen(Arc::downgrade(self), journal.changes()));
        }
        drop(state);
        Waiter {
            waiting: self.clone(),
            key: key.clone(),
            signals,
        }
    }

    /// Tells whoever waits for it.
    pub(crate) fn hear(&self, change: &Change) {
        let state = self.state();
        let of = |key| state.waiters.get(key).into_iter().flatten();
        match change {
            Change::Input(key) => of(key).for_each(|signals| signals.input.notify_one()),
            Change::Free(key) => of(key).for_each(|signals| signals.free.notify_one()),
            // It may have been anything. Told in the same order every time, so that a simulation
            // repeats.
            _ => {
                let mut all: Vec<_> = state.waiters.iter().collect();
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

    /// Stops listening, if nobody waits. Returns whether it has.
    fn stops(&self) -> bool {
        let mut state = self.state();
        state.listens = !state.waiters.is_empty();
        !state.listens
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Waits for an input that was accepted.
    pub(crate) async fn input(&self) {
        self.signals.input.notified().await;
    }

    /// Waits for the end of a claim.
    pub(crate) async fn free(&self) {
        self.signals.free.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.waiting.state();
        if let Some(waiters) = state.waiters.get_mut(&self.key) {
            waiters.retain(|signals| !Arc::ptr_eq(signals, &self.signals));
            if waiters.is_empty() {
                state.waiters.remove(&self.key);
            }
        }
    }
}

/// Hands on the news until nobody has waited for a while.
async fn listen(waiting: Weak<Waiting>, mut changes: Box<dyn Changes>) {
    let mut until = Instant::now() + LINGERS;
    loop {
        let change = tokio::select! {
            // In this order: news that never end do not keep it from seeing that nobody waits.
            biased;
            () = sleep_until(until) => {
                until += LINGERS;
                match waiting.upgrade() {
                    Some(waiting) if !waiting.stops() => continue,
                    _ => return,
                }
            }
            change = changes.next() => change,
        };
        let Some(waiting) = waiting.upgrade() else {
            return;
        };
        match change {
            Some(change) => waiting.hear(&change),
            // The journal was closed.
            None => {
                waiting.state().listens = false;
                return;
            }
        }
    }
}
