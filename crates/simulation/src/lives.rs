//! The workers, each with its current life.

use std::sync::{Arc, Mutex};

use adjutant_runtime::Agent;

use crate::lock::lock;
use crate::process::{Process, State};
use crate::world::World;

/// One life of a worker, with its agent.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) process: Arc<Process>,
    pub(crate) agent: Agent,
    /// The same agent with a dispatcher.
    pub(crate) dispatched: Agent,
}

/// The current lives of all workers.
#[derive(Clone, Default)]
pub(crate) struct Lives(Arc<Mutex<Vec<Life>>>);

impl Lives {
    /// Adds the first life of another worker.
    pub(crate) fn push(&self, life: Life) {
        lock(&self.0).push(life);
    }

    /// Replaces the last life of a worker by a new one.
    pub(crate) fn replace(&self, worker: usize, life: Life) {
        if let Some(place) = lock(&self.0).get_mut(worker) {
            *place = life;
        }
    }

    /// Drops all of them: each refers to the others, so none would ever be dropped otherwise.
    pub(crate) fn part(&self) {
        let lives = std::mem::take(&mut *lock(&self.0));
        drop(lives);
    }

    /// Returns the number of workers.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Returns the current life of a worker.
    pub(crate) fn life(&self, worker: usize) -> Option<Life> {
        lock(&self.0).get(worker).cloned()
    }

    /// Returns a worker that a client or dispatcher can reach: alive, though perhaps suspended.
    /// `None`: all are dead.
    pub(crate) fn any(&self, world: &World) -> Option<Life> {
        let alive: Vec<Life> = lock(&self.0)
            .iter()
            .filter(|life| life.process.state() != State::Dead)
            .cloned()
            .collect();
        let at = world.chance().below(alive.len());
        alive.into_iter().nth(at)
    }
}
