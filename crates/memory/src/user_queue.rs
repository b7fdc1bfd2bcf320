//! The order of one user's work on their whole memory: one piece at a time, off the threads that
//! serve all users.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use adjutant_core::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::MemoryError;

/// Number of changes of one user that may wait for the one that is being made.
const WAITING_MAX: usize = 32;

/// The queues of all users of one database, and the bound of the work of all of them together.
/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct UserQueues {
    users: Arc<Mutex<HashMap<UserId, Arc<Semaphore>>>>,
    /// Pieces of work that compute at the same time. Half of the processors: the others stay with
    /// what everybody shares.
    computing: Arc<Semaphore>,
}

/// The turn of one change in its user's queue, given up on drop.
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Default for UserQueues {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            users: Arc::default(),
            computing: Arc::new(Semaphore::new(processors.div_ceil(2))),
        }
    }
}

impl UserQueues {
    /// Waits until no other change of this user is being made. A change that is planned while
    /// another one is made would have to be planned again.
    ///
    /// # Errors
    /// [`MemoryError::Busy`] if too many of this user's changes wait already.
    pub(crate) async fn enter(&self, user: &UserId) -> Result<Turn, MemoryError> {
        let queue = {
            let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            // A queue that only this map holds has nobody in it.
            users.retain(|known, queue| known == user || Arc::strong_count(queue) > 1);
            let queue = users
                .entry(user.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(1)));
            // The map's own, one of the change that is made, and one of each that waits.
            if Arc::strong_count(queue) > WAITING_MAX + 1 {
                return Err(MemoryError::Busy);
            }
            queue.clone()
        };
        // Semaphores are fair: changes are made in the order of their arrival.
        let permit = queue.acquire_owned().await;
        permit
            .map(|permit| Turn { _permit: permit })
            .map_err(|_| MemoryError::Busy)
    }

    /// Runs work whose cost grows with the number of a user's facts on a thread where it holds up
    /// no request of another user.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, MemoryError> {
        let permit = self.computing.clone().acquire_owned().await;
        let permit = permit.map_err(|_| MemoryError::Busy)?;
        let working = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if its caller has left.
            let _permit = permit;
            work()
        });
        working
            .await
            .map_err(|error| MemoryError::BrokeOff(Some(error)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;

    use super::*;

    #[tokio::test]
    async fn changes_of_one_user_wait_for_each_other_and_a_full_queue_refuses() {
        let queues = UserQueues::default();
        let [ana, ben] = ["ana", "ben"].map(|name| UserId::new(name).unwrap());
        let first = queues.enter(&ana).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| Box::pin(queues.enter(&ana)))
            .collect();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for turn in &mut waiting {
            assert!(turn.as_mut().poll(&mut context).is_pending());
        }
        assert!(matches!(queues.enter(&ana).await, Err(MemoryError::Busy)));
        // Another user's queue is another one.
        drop(queues.enter(&ben).await.unwrap());
        drop(first);
        drop(waiting.remove(0).await.unwrap());
        // A caller that leaves gives its place up.
        waiting.truncate(1);
        drop(waiting.remove(0).await.unwrap());
        drop(queues.enter(&ana).await.unwrap());
    }

    #[tokio::test]
    async fn the_queues_of_users_without_changes_are_dropped() {
        let queues = UserQueues::default();
        for number in 0..10 {
            let user = UserId::new(format!("user-{number}")).unwrap();
            drop(queues.enter(&user).await.unwrap());
        }
        assert_eq!(queues.users.lock().unwrap().len(), 1);
    }
}
