//! A process that can be killed or suspended at every interaction with its environment.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

use crate::lock::lock;

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Runs,
    /// It is suspended, as by SIGSTOP, while the clocks continue.
    Stopped,
    /// It was killed. Nothing that it does reaches the environment any more.
    Dead,
}

/// One life of a worker.
#[derive(Debug)]
pub(crate) struct Process {
    /// The number of the worker, from 0.
    pub(crate) worker: usize,
    /// The number of the life, from 1.
    pub(crate) life: u32,
    /// The name of the worker, which is unique to this life.
    pub(crate) name: String,
    state: Mutex<State>,
    /// Milliseconds by which its clock has stepped.
    clock_step: AtomicI64,
    /// Wakes waiting tasks in the order in which they came; the order of a `watch` channel is not
    /// deterministic.
    changed: Notify,
}

impl Process {
    pub(crate) fn new(seed: u64, worker: usize, life: u32) -> Self {
        let name = format!("seed-{seed}-worker-{worker}-life-{life}");
        Self {
            worker,
            life,
            name,
            state: Mutex::new(State::Runs),
            clock_step: AtomicI64::new(0),
            changed: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> State {
        *lock(&self.state)
    }

    pub(crate) fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_waiters();
    }

    /// Returns the milliseconds by which its clock has stepped.
    pub(crate) fn clock_step(&self) -> i64 {
        self.clock_step.load(Ordering::Relaxed)
    }

    pub(crate) fn set_clock_step(&self, ms: i64) {
        self.clock_step.store(ms, Ordering::Relaxed);
    }

    async fn is(&self, wanted: State) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.state() == wanted {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the process runs; never returns if it was killed. Every interaction with the
    /// environment passes through here, so that a process can be killed or suspended between any
    /// two of them.
    pub(crate) async fn runs(&self) {
        self.is(State::Runs).await;
    }

    /// Waits until the process is killed.
    pub(crate) async fn dies(&self) {
        self.is(State::Dead).await;
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}.{}", self.worker, self.life)
    }
}
