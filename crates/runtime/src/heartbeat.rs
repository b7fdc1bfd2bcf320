//! The heartbeat of a worker: one statement that extends all leases of this process, sent while it
//! runs something.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::port::{Beat, Change, Journal, Running, StoreError, Worker};
use adjutant_core::{AgentName, CancellationToken, ConversationKey};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::RunError;
use crate::change_notifier::{ChangeNotifier, ChangeSubscription};
use crate::daily_budget::DailyBudget;
use crate::faults::lease_duration;

/// Duration of a lease without a heartbeat.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// Heartbeats per duration of a lease: two may fail before the lease expires.
const BEATS_PER_LEASE: u32 = 3;

/// Counts the conversations that an agent runs in this process, and keeps their leases alive.
pub(crate) struct Heartbeat {
    journal: Arc<dyn Journal>,
    agent: AgentName,
    worker: String,
    notifier: Arc<ChangeNotifier>,
    daily_budget: Option<Arc<DailyBudget>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    epoch: Epoch,
    /// True while a task sends heartbeats.
    is_beating: bool,
    /// The conversations that run or wait for their lease, with the number of tasks of each.
    running: HashMap<ConversationKey, usize>,
    /// Number of recovery scans: the store may have leased conversations to them that are not in
    /// `running` yet.
    scans: usize,
    /// The time at which the last confirmed heartbeat was sent. `None`: none in this epoch.
    last_beat: Option<Instant>,
}

/// A period in which the worker's leases did not expire. After a pause that is longer than a lease,
/// a new epoch begins, so that appends under old leases are refused.
#[derive(Debug, Clone)]
struct Epoch {
    number: i64,
    /// Fires when it has ended: other workers may have its leases.
    ended: CancellationToken,
}

impl Default for Epoch {
    fn default() -> Self {
        static LAST: AtomicI64 = AtomicI64::new(0);
        // A time with random bits, so that no earlier process of the same worker name has used it.
        // The bits taken here repeat within a millisecond, so each is made larger than the last.
        let (high, _) = Uuid::now_v7().as_u64_pair();
        let now = (high >> 1).cast_signed();
        let next = |last: i64| now.max(last.saturating_add(1));
        let last = LAST.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last)));
        Self {
            number: last.map_or(now, next),
            ended: CancellationToken::new(),
        }
    }
}

/// The names of all workers of this process. Two agents with the same name are two workers, and
/// must not extend each other's leases.
static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn names() -> MutexGuard<'static, BTreeSet<String>> {
    // A panic under the lock leaves no partial update, so a poisoned lock is usable.
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name if no other worker of this process has it, else the name with a number.
fn unique_worker_name(name: String) -> String {
    let mut names = names();
    let others = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.clone())
        .chain(others)
        .find(|name| !names.contains(name))
        .unwrap_or(name);
    names.insert(free.clone());
    free
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        names().remove(&self.worker);
    }
}

impl Heartbeat {
    /// Creates the heartbeat of an agent. A number is added to the worker's name if another agent
    /// of this process has it.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        agent: AgentName,
        worker: String,
        notifier: Arc<ChangeNotifier>,
        daily_budget: Option<Arc<DailyBudget>>,
    ) -> Self {
        let worker = unique_worker_name(worker);
        Self {
            journal,
            agent,
            worker,
            notifier,
            daily_budget,
            state: Mutex::default(),
        }
    }

    /// Returns the name of this agent's worker.
    pub(crate) fn worker(&self) -> &str {
        &self.worker
    }

    /// Returns the lease of a conversation, to be acquired from the store. The heartbeat counts it
    /// from now on, so that it is never taken for a stray one.
    pub(crate) fn lease(self: &Arc<Self>, key: &ConversationKey) -> Lease {
        let epoch = self.begin(|state| *state.running.entry(key.clone()).or_default() += 1);
        self.new_lease(key, epoch)
    }

    /// Starts a scan that leases conversations for recovery.
    pub(crate) fn start_scan(self: &Arc<Self>) -> RecoveryScan {
        let epoch = self.begin(|state| state.scans += 1);
        RecoveryScan {
            heartbeat: self.clone(),
            epoch,
            since: Instant::now(),
        }
    }

    /// Applies a change that gives the heartbeat something to keep alive, and starts it if needed.
    fn begin(self: &Arc<Self>, change: impl FnOnce(&mut State)) -> Epoch {
        let mut state = self.state();
        change(&mut state);
        // Checked under the lock, so that two tasks do not start two heartbeats.
        if !std::mem::replace(&mut state.is_beating, true) {
            // All leases were released before the heartbeat stopped, so a new epoch loses none.
            (state.epoch, state.last_beat) = (Epoch::default(), None);
            tokio::spawn(beat(Arc::downgrade(self)));
        }
        state.epoch.clone()
    }

    fn new_lease(self: &Arc<Self>, key: &ConversationKey, epoch: Epoch) -> Lease {
        let changes = self.notifier.subscribe(&self.journal, key);
        let (heartbeat, key, confirmed_at) =
            (self.clone(), key.clone(), Mutex::new(Instant::now()));
        Lease {
            heartbeat,
            key,
            epoch,
            confirmed_at,
            changes,
        }
    }

    /// Sends one heartbeat, and releases stray leases. Returns `false` if nothing runs.
    async fn beat(&self) -> bool {
        let (epoch, is_first, is_taking) = {
            let mut state = self.state();
            state.is_beating = !state.running.is_empty() || state.scans > 0;
            if !state.is_beating {
                return false;
            }
            (
                state.epoch.clone(),
                state.last_beat.is_none(),
                state.scans > 0,
            )
        };
        // Taken before the statement: the store counts the lease from its own, later, time, so this
        // process never believes that it has a lease which has expired.
        let asked = Instant::now();
        let worker = Worker {
            id: &self.worker,
            epoch: epoch.number,
        };
        let beat = Beat {
            agent: &self.agent,
            worker,
            lease: lease_duration(LEASE),
            is_first,
        };
        match self.journal.beat(beat).await {
            Ok(Some(claimed)) => {
                self.state().last_beat = Some(asked);
                // The notification of an input may have been missed; the heartbeat repeats it.
                for Running { key, .. } in claimed.iter().filter(|running| running.has_inputs) {
                    self.notifier.notify(&Change::Input(key.clone()));
                }
                // During a scan the store knows leases that this process has not seen yet.
                if !is_taking {
                    self.release_strays(worker, claimed).await;
                }
            }
            Ok(None) => {
                // The store has let the epoch expire, for instance while this process was
                // suspended: other workers may have its leases, so everything that runs under them
                // is stopped.
                epoch.ended.cancel();
                let mut state = self.state();
                (state.epoch, state.last_beat) = (Epoch::default(), None);
            }
            // The next heartbeat may succeed before the leases expire.
            Err(_) => {}
        }
        true
    }

    /// Releases leases that nothing runs under, such as those of tasks that were cancelled.
    async fn release_strays(&self, worker: Worker<'_>, claimed: Vec<Running>) {
        for Running { key, .. } in claimed {
            let is_stray = {
                let state = self.state();
                state.scans == 0 && !state.running.contains_key(&key)
            };
            if is_stray {
                // Best effort: the next heartbeat finds it again.
                let _ = self.journal.release(&key, worker).await;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn beat(heartbeat: Weak<Heartbeat>) {
    loop {
        sleep(lease_duration(LEASE) / BEATS_PER_LEASE).await;
        let Some(heartbeat) = heartbeat.upgrade() else {
            return;
        };
        if !heartbeat.beat().await {
            if let Some(daily_budget) = &heartbeat.daily_budget {
                daily_budget.release_idle().await;
            }
            return;
        }
    }
}

/// A scan for recoverable conversations, which are leased in one statement.
pub(crate) struct RecoveryScan {
    heartbeat: Arc<Heartbeat>,
    epoch: Epoch,
    since: Instant,
}

impl RecoveryScan {
    /// Returns the worker that the conversations are leased to.
    pub(crate) fn worker(&self) -> Worker<'_> {
        Worker {
            id: &self.heartbeat.worker,
            epoch: self.epoch.number,
        }
    }

    /// Returns the lease of a conversation that the scan was granted.
    pub(crate) fn lease(&self, key: &ConversationKey) -> Lease {
        *self
            .heartbeat
            .state()
            .running
            .entry(key.clone())
            .or_default() += 1;
        let lease = self.heartbeat.new_lease(key, self.epoch.clone());
        lease.set_confirmed_at(self.since);
        lease
    }
}

impl Drop for RecoveryScan {
    fn drop(&mut self) {
        self.heartbeat.state().scans -= 1;
    }
}

/// The lease of a conversation that this process runs, or waits for.
pub(crate) struct Lease {
    heartbeat: Arc<Heartbeat>,
    key: ConversationKey,
    epoch: Epoch,
    /// A time before the lease was last acquired or confirmed.
    confirmed_at: Mutex<Instant>,
    /// Subscribed before the lease is acquired, so that no later input is missed.
    pub(crate) changes: ChangeSubscription,
}

impl Lease {
    /// Returns the worker that the conversation is leased to.
    pub(crate) fn worker(&self) -> Worker<'_> {
        Worker {
            id: &self.heartbeat.worker,
            epoch: self.epoch.number,
        }
    }

    /// Records that the lease was acquired or confirmed no earlier than at this time.
    pub(crate) fn set_confirmed_at(&self, at: Instant) {
        *self
            .confirmed_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(crate) fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// Returns true if the lease is lost because its epoch has ended.
    pub(crate) fn is_lost(&self) -> bool {
        self.epoch.ended.is_cancelled()
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        self.epoch.ended.cancelled().await;
    }

    /// Makes sure that the lease is not lost, before a call that must not run twice: asks the
    /// store, unless a heartbeat was confirmed within half a lease. A process that was suspended
    /// may have lost it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it is lost, and other errors of the store.
    pub(crate) async fn ensure_held(&self) -> Result<(), RunError> {
        let confirmed = *self
            .confirmed_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last_beat = {
            let state = self.heartbeat.state();
            state
                .last_beat
                .filter(|_| state.epoch.number == self.epoch.number)
        };
        let known = last_beat.map_or(confirmed, |beat| beat.max(confirmed));
        if known.elapsed() < lease_duration(LEASE) / 2 {
            return Ok(());
        }
        let asked = Instant::now();
        if !self
            .heartbeat
            .journal
            .renew(&self.key, self.worker(), lease_duration(LEASE))
            .await?
        {
            return Err(StoreError::Conflict.into());
        }
        self.set_confirmed_at(asked);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.heartbeat.state();
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
        let mut numbers: Vec<i64> = (0..1000).map(|_| Epoch::default().number).collect();
        let made = numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, made, "each is larger than the one before");
    }
}
