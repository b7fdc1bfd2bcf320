//! Requests over all that a user has: one at a time for each user, on threads of their own, so that
//! however much it is, nobody else waits for it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::ready;
use std::thread;

use adjutant_core::{CancellationToken, UserId};
use axum::http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;
use tracing::Instrument as _;

use crate::problem::Problem;

/// Number of requests of one user that may wait for the one that is served. A page sends a few at
/// once.
const WAITING_MAX: usize = 8;
/// Number of requests that have a thread at the same time.
const THREADS_MAX: usize = 64;

/// The queues of all users, and the threads of all of them together.
pub(crate) struct WholeData {
    users: Mutex<HashMap<UserId, Arc<Semaphore>>>,
    threads: Arc<Semaphore>,
    /// Slices that compute at the same time. Half of the processors: the others stay with what
    /// everybody shares.
    slices: Arc<Semaphore>,
}

impl Default for WholeData {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            users: Mutex::default(),
            threads: Arc::new(Semaphore::new(THREADS_MAX)),
            slices: Arc::new(Semaphore::new(processors.div_ceil(2))),
        }
    }
}

impl WholeData {
    /// Runs work over a user's whole data after what they asked for before. Between two points at
    /// which it waits, another user's work has its slice. Work whose caller leaves ends at the next
    /// such point.
    ///
    /// # Errors
    /// [`Problem`] 409 `busy_with_your_data` if too many of this user's requests wait already; the
    /// error of the work.
    pub(crate) async fn run<T, E>(
        &self,
        user: &UserId,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Send + 'static,
        Problem: From<E>,
    {
        let queue = self.queue(user);
        // The map's own, one of the request that is served, and one of each that waits.
        if Arc::strong_count(&queue) > WAITING_MAX + 2 {
            return Err(busy());
        }
        Ok(self.run_in_turn(queue, work).await??)
    }

    /// Runs a further part of work that [`WholeData::run`] began. It waits for its turn however
    /// many wait.
    ///
    /// # Errors
    /// The error of the work; [`Problem`] 500 if it panicked.
    pub(crate) async fn run_part<T, E>(
        &self,
        user: &UserId,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Send + 'static,
        Problem: From<E>,
    {
        Ok(self.run_in_turn(self.queue(user), work).await??)
    }

    fn queue(&self, user: &UserId) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        // A queue that only this map holds has nobody in it.
        users.retain(|known, queue| known == user || Arc::strong_count(queue) > 1);
        users
            .entry(user.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(1)))
            .clone()
    }

    async fn run_in_turn<T: Send + 'static>(
        &self,
        queue: Arc<Semaphore>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        // Semaphores are fair: requests are served in the order of their arrival.
        let turn = permit(queue).await?;
        let thread = permit(self.threads.clone()).await?;
        let (handle, slices) = (Handle::current(), self.slices.clone());
        let left = CancellationToken::new();
        let _leaving = left.clone().drop_guard();
        let work = work.in_current_span();
        let working = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if its caller has left.
            let _held = (turn, thread);
            handle.block_on(left.run_until_cancelled(in_slices(work, slices)))
        });
        // The work is cancelled by the end of this future only, which then returns nothing.
        working.await?.ok_or_else(Problem::internal)
    }
}

/// Runs work that computes only while it holds one of the permits.
async fn in_slices<F: Future>(work: F, slices: Arc<Semaphore>) -> F::Output {
    let mut work = pin!(work);
    let mut slices = PollSemaphore::new(slices);
    poll_fn(|context| {
        let _slice = ready!(slices.poll_acquire(context));
        work.as_mut().poll(context)
    })
    .await
}

async fn permit(semaphore: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    // It is never closed.
    let permit = semaphore.acquire_owned().await;
    permit.map_err(|error| Problem::internal_error(&error))
}

fn busy() -> Problem {
    let detail = "your requests over all of your data are served one after the other, and too many of them wait already; nothing was done: \
                  wait for their answers, then send this one again";
    let title = "Busy with your data";
    Problem::new(StatusCode::CONFLICT, "busy_with_your_data", title, detail)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn user(name: &str) -> UserId {
        UserId::new(name).unwrap()
    }

    /// Returns the thread on which it is polled.
    async fn thread_id() -> Result<thread::ThreadId, Problem> {
        Ok(thread::current().id())
    }

    #[tokio::test]
    async fn work_of_one_user_is_served_in_order_and_a_full_queue_refuses() {
        let data = WholeData::default();
        let (ana, ben) = (user("ana"), user("ben"));
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(data.run(&ana, async move {
            released.await.unwrap();
            Ok::<_, Problem>(())
        }));
        assert!(first.as_mut().poll(&mut context).is_pending());
        let mut waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| Box::pin(data.run(&ana, thread_id())))
            .collect();
        for request in &mut waiting {
            assert!(request.as_mut().poll(&mut context).is_pending());
        }
        let refused = data.run(&ana, thread_id()).await.unwrap_err();
        assert_eq!(
            (refused.status(), refused.code()),
            (StatusCode::CONFLICT, "busy_with_your_data")
        );
        // Another user has a queue and a slice of their own, on another thread than requests.
        let served_on = data.run(&ben, thread_id()).await.unwrap();
        assert_ne!(served_on, thread::current().id());
        // A caller that leaves gives its place up; a part of accepted work is not refused.
        drop(waiting.pop());
        let mut next = Box::pin(data.run(&ana, thread_id()));
        assert!(next.as_mut().poll(&mut context).is_pending());
        waiting.push(next);
        let mut part = Box::pin(data.run_part(&ana, thread_id()));
        assert!(part.as_mut().poll(&mut context).is_pending());
        release.send(()).unwrap();
        first.await.unwrap();
        for request in waiting {
            request.await.unwrap();
        }
        part.await.unwrap();
    }

    #[tokio::test]
    async fn work_whose_caller_leaves_makes_room_for_the_next() {
        let (data, ana) = (WholeData::default(), user("ana"));
        let work = std::future::pending::<Result<(), Problem>>();
        let mut endless = Box::pin(data.run(&ana, work));
        let mut context = Context::from_waker(Waker::noop());
        assert!(endless.as_mut().poll(&mut context).is_pending());
        drop(endless);
        data.run(&ana, thread_id()).await.unwrap();
        // A permit that is returned wakes the next request a moment before it lets its queue go, so
        // that the queue of a user may be found only by a later request.
        let is_alone = || data.users.lock().unwrap().len() == 1;
        for _ in 0..1000 {
            data.run(&user("ben"), thread_id()).await.unwrap();
            if is_alone() {
                break;
            }
        }
        assert!(is_alone());
    }
}
