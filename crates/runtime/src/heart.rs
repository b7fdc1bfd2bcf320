//! The signs of life of this process: one for everything that it runs, and none while it runs
//! nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::port::{Beat, Change, Journal, Running, StoreError, Worker};
use adjutant_core::{AgentName, CancellationToken, ConversationKey};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::RunError;
use crate::faults::lease;
use crate::purse::Purse;
use crate::waiting::{Waiter, Waiting};

/// A claim is good for this long without a sign of life.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// So many signs of life are given in the time of a claim.
const BEATS: u32 = 3;

/// Claims what this process runs, and says that it lives.
pub(crate) struct Heart {
    journal: Arc<dyn Journal>,
    agent: AgentName,
    worker: String,
    waiting: Arc<Waiting>,
    purse: Option<Arc<Purse>>,
    state: Mutex<State>,
}

struct State {
    epoch: Epoch,
    /// Whether a task gives signs of life.
    beats: bool,
    /// What runs, or is about to, and how often.
    running: HashMap<ConversationKey, usize>,
    /// Number of those that look for work: what they have claimed is not known yet.
    taking: usize,
    /// The time at which the last sign of life was given that was answered. `None`: none in this
    /// epoch.
    seen: Option<Instant>,
}

/// A stretch of time in which this process lives without a pause.
#[derive(Debug, Clone)]
struct Epoch {
    number: i64,
    /// Fires when it is over: what was claimed in it may be another worker's.
    over: CancellationToken,
}

impl Epoch {
    fn new() -> Self {
        static LAST: AtomicI64 = AtomicI64::new(0);
        // In the order of time, and with random bits: no other life under the same name has it.
        // These bits are the same within a millisecond, so that it is made larger than the last of
        // this process.
        let (high, _) = Uuid::now_v7().as_u64_pair();
        let now = (high >> 1).cast_signed();
        let next = |last: i64| now.max(last.saturating_add(1));
        let last = LAST.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last)));
        Self {
            number: last.map_or(now, next),
            over: CancellationToken::new(),
        }
    }
}

/// The names of all workers of this process: two agents are two workers, whatever they are called.
static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn names() -> MutexGuard<'static, BTreeSet<String>> {
    // Nothing is half done while it is locked.
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name if no other worker of this process has it, else one that begins with it.
fn name_of_its_own(name: String) -> String {
    let mut names = names();
    let others = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.clone())
        .chain(others)
        .find(|name| !names.contains(name))
        .unwrap_or(name);
    names.insert(free.clone());
    free
}

impl Drop for Heart {
    fn drop(&mut self) {
        names().remove(&self.worker);
    }
}

impl Heart {
    /// Makes the heart of an agent, whose worker is called so, unless another agent of this process
    /// has the name.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        agent: AgentName,
        worker: String,
        waiting: Arc<Waiting>,
        purse: Option<Arc<Purse>>,
    ) -> Self {
        let worker = name_of_its_own(worker);
        let state = State {
            epoch: Epoch::new(),
            beats: false,
            running: HashMap::new(),
            taking: 0,
            seen: None,
        };
        Self {
            journal,
            agent,
            worker,
            waiting,
            purse,
            state: Mutex::new(state),
        }
    }

    /// Returns the name of the worker.
    pub(crate) fn worker(&self) -> &str {
        &self.worker
    }

    /// Begins to hold a conversation that is about to be claimed.
    pub(crate) fn hold(self: &Arc<Self>, key: &ConversationKey) -> Hold {
        let epoch = self.begin(|state| *state.running.entry(key.clone()).or_default() += 1);
        self.holding(key, epoch)
    }

    /// Begins to look for work.
    pub(crate) fn take(self: &Arc<Self>) -> Taking {
        let epoch = self.begin(|state| state.taking += 1);
        Taking {
            heart: self.clone(),
            epoch,
            since: Instant::now(),
        }
    }

    fn begin(self: &Arc<Self>, note: impl FnOnce(&mut State)) -> Epoch {
        let mut state = self.state();
        note(&mut state);
        if !std::mem::replace(&mut state.beats, true) {
            // Whatever was claimed before was given back before the last pause.
            (state.epoch, state.seen) = (Epoch::new(), None);
            tokio::spawn(beat(Arc::downgrade(self)));
        }
        state.epoch.clone()
    }

    fn holding(self: &Arc<Self>, key: &ConversationKey, epoch: Epoch) -> Hold {
        let waiter = self.waiting.waiter(&self.journal, key);
        let (heart, key, claimed) = (self.clone(), key.clone(), Mutex::new(Instant::now()));
        Hold {
            heart,
            key,
            epoch,
            claimed,
            waiter,
        }
    }

    /// Gives one sign of life, and gives back what is claimed and does not run. Returns `false` if
    /// there is nothing that runs.
    async fn beat(&self) -> bool {
        let (epoch, is_first, is_taking) = {
            let mut state = self.state();
            state.beats = !state.running.is_empty() || state.taking > 0;
            if !state.beats {
                return false;
            }
            (state.epoch.clone(), state.seen.is_none(), state.taking > 0)
        };
        let asked = Instant::now();
        let worker = Worker {
            id: &self.worker,
            epoch: epoch.number,
        };
        let beat = Beat {
            agent: &self.agent,
            worker,
            lease: lease(LEASE),
            is_first,
        };
        match self.journal.beat(beat).await {
            Ok(Some(claimed)) => {
                self.state().seen = Some(asked);
                // It may not have been told here.
                for Running { key, .. } in claimed.iter().filter(|running| running.has_inputs) {
                    self.waiting.hear(&Change::Input(key.clone()));
                }
                // Whoever takes work has claims of which nothing is known here yet.
                if !is_taking {
                    self.give_back(worker, claimed).await;
                }
            }
            Ok(None) => {
                epoch.over.cancel();
                let mut state = self.state();
                (state.epoch, state.seen) = (Epoch::new(), None);
            }
            // The next one may be answered, before the claims are over.
            Err(_) => {}
        }
        true
    }

    async fn give_back(&self, worker: Worker<'_>, claimed: Vec<Running>) {
        for Running { key, .. } in claimed {
            let is_lost = {
                let state = self.state();
                state.taking == 0 && !state.running.contains_key(&key)
            };
            if is_lost {
                // Best effort: the next sign of life finds it again.
                let _ = self.journal.release(&key, worker).await;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn beat(heart: Weak<Heart>) {
    loop {
        sleep(lease(LEASE) / BEATS).await;
        let Some(heart) = heart.upgrade() else { return };
        if !heart.beat().await {
            if let Some(purse) = &heart.purse {
                purse.give_back().await;
            }
            return;
        }
    }
}

/// One who looks for work.
pub(crate) struct Taking {
    heart: Arc<Heart>,
    epoch: Epoch,
    since: Instant,
}

impl Taking {
    /// Returns the name under which work is claimed.
    pub(crate) fn worker(&self) -> Worker<'_> {
        Worker {
            id: &self.heart.worker,
            epoch: self.epoch.number,
        }
    }

    /// Begins to hold a conversation that was claimed.
    pub(crate) fn hold(&self, key: &ConversationKey) -> Hold {
        *self.heart.state().running.entry(key.clone()).or_default() += 1;
        let hold = self.heart.holding(key, self.epoch.clone());
        hold.was_claimed(self.since);
        hold
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.heart.state().taking -= 1;
    }
}

/// A conversation that this process runs, or is about to.
pub(crate) struct Hold {
    heart: Arc<Heart>,
    key: ConversationKey,
    epoch: Epoch,
    /// The time before the claim was last made or confirmed.
    claimed: Mutex<Instant>,
    /// It is made before the claim, so that it hears of every input that was not there then.
    pub(crate) waiter: Waiter,
}

impl Hold {
    /// Returns the name under which the conversation is claimed.
    pub(crate) fn worker(&self) -> Worker<'_> {
        Worker {
            id: &self.heart.worker,
            epoch: self.epoch.number,
        }
    }

    /// Notes that the conversation was claimed no earlier than at this time.
    pub(crate) fn was_claimed(&self, at: Instant) {
        *self.claimed.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(crate) fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// Returns whether the epoch is over: what is claimed in it is lost.
    pub(crate) fn is_over(&self) -> bool {
        self.epoch.over.is_cancelled()
    }

    /// Waits until the claim is lost.
    pub(crate) async fn lost(&self) {
        self.epoch.over.cancelled().await;
    }

    /// Makes sure that the conversation is still ours before something is done that must not be
    /// done twice: the claim is confirmed, unless a sign of life was answered a short time ago. Who
    /// stood still may have lost it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it is not, and the store's errors.
    pub(crate) async fn confirm(&self) -> Result<(), RunError> {
        let claimed = *self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = {
            let state = self.heart.state();
            state
                .seen
                .filter(|_| state.epoch.number == self.epoch.number)
        };
        let known = seen.map_or(claimed, |seen| seen.max(claimed));
        if known.elapsed() < lease(LEASE) / 2 {
            return Ok(());
        }
        let asked = Instant::now();
        if !self
            .heart
            .journal
            .renew(&self.key, self.worker(), lease(LEASE))
            .await?
        {
            return Err(StoreError::Conflict.into());
        }
        self.was_claimed(asked);
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.heart.state();
        if let Some(count) = state.running.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.running.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_epochs_of_a_process_are_the_same() {
        let mut numbers: Vec<i64> = (0..1000).map(|_| Epoch::new().number).collect();
        let made = numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, made, "each is larger than the one before");
    }
}
