//! The workers, each in its present life.

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
    /// The same agent whose conversations the dispatcher sees to.
    pub(crate) dispatched: Agent,
}

/// The present lives of all workers.
#[derive(Clone, Default)]
pub(crate) struct Lives(Arc<Mutex<Vec<Life>>>);

impl Lives {
    /// Adds the first life of another worker.
    pub(crate) fn push(&self, life: Life) {
        lock(&self.0).push(life);
    }

    /// Puts a new life of a worker in the place of the last one.
    pub(crate) fn replace(&self, worker: usize, life: Life) {
        if let Some(place) = lock(&self.0).get_mut(worker) {
            *place = life;
        }
    }

    /// Lets go of all of them: each knows the others, so that none would ever be dropped.
    pub(crate) fn part(&self) {
        let lives = std::mem::take(&mut *lock(&self.0));
        drop(lives);
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Returns the present life of a worker.
    pub(crate) fn life(&self, worker: usize) -> Option<Life> {
        lock(&self.0).get(worker).cloned()
    }

    /// Returns one that a client or dispatcher reaches: not dead, but it may stand still. `None`:
    /// all are dead.
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
