//! A circuit breaker: suspends a dispatch that fails, and tries it again from time to time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The weight of a failure against successes of weight 1: one failure in twenty calls is tolerated.
const FAILURE: u32 = 20;
/// The count at which dispatch is suspended: three failures in a row.
const LIMIT: u32 = 3 * FAILURE;
/// Time until the first trial call of a suspended dispatch. It doubles with each trial that fails.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Counts successes and failures, and decides whether a call may be made.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u32,
    suspended: Option<Suspension>,
}

/// The state of a suspended dispatch.
#[derive(Debug)]
struct Suspension {
    until: Instant,
    pause: Duration,
    /// True while a trial call runs.
    is_trying: bool,
}

/// A permit for one call. Dropped without [`Permit::succeeded`] or [`Permit::failed`], the call
/// counts as neither.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
}

impl Breaker {
    /// Returns a permit for one call. `None`: dispatch is suspended, and no trial is due.
    pub(crate) fn permit(&self) -> Option<Permit<'_>> {
        let mut state = self.state();
        let is_trial = match &mut state.suspended {
            None => false,
            Some(open) if !open.is_trying && Instant::now() >= open.until => {
                open.is_trying = true;
                true
            }
            Some(_) => return None,
        };
        Some(Permit {
            breaker: self,
            is_trial,
        })
    }

    /// Returns true while dispatch is suspended.
    pub(crate) fn is_open(&self) -> bool {
        self.state().suspended.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Counts a success. Returns true if it ends a suspension.
    pub(crate) fn succeeded(self) -> bool {
        let mut state = self.breaker.state();
        if self.is_trial {
            *state = State::default();
            return true;
        }
        state.count = state.count.saturating_sub(1);
        false
    }

    /// Counts a failure. Returns true if it suspends dispatch.
    pub(crate) fn failed(self) -> bool {
        let mut state = self.breaker.state();
        match &mut state.suspended {
            Some(open) if self.is_trial => {
                let pause = (open.pause * 2).min(PAUSE_MAX);
                *open = Suspension {
                    until: Instant::now() + pause,
                    pause,
                    is_trying: false,
                };
                false
            }
            // A call from before the suspension.
            Some(_) => false,
            None => {
                state.count += FAILURE;
                if state.count < LIMIT {
                    return false;
                }
                state.suspended = Some(Suspension {
                    until: Instant::now() + PAUSE,
                    pause: PAUSE,
                    is_trying: false,
                });
                true
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_trial
            && let Some(open) = &mut self.breaker.state().suspended
        {
            open.is_trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_dispatch_that_fails_is_suspended_and_tried_again() {
        let breaker = Breaker::default();
        let fails = || breaker.permit().unwrap().failed();
        assert_eq!([fails(), fails(), fails()], [false, false, true]);
        assert!(breaker.permit().is_none());
        tokio::time::advance(PAUSE).await;
        // One trial runs, and no other until its result is known.
        let trial = breaker.permit().unwrap();
        assert!(breaker.permit().is_none());
        assert!(!trial.failed());
        tokio::time::advance(PAUSE).await;
        assert!(breaker.permit().is_none());
        tokio::time::advance(PAUSE).await;
        // A trial that is dropped decides nothing.
        drop(breaker.permit().unwrap());
        assert!(breaker.is_open() && breaker.permit().unwrap().succeeded());
        assert!(!breaker.is_open() && !breaker.permit().unwrap().succeeded());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rare_failure_is_tolerated_and_one_in_ten_is_not() {
        let calls = |breaker: &Breaker, one_in: u32| {
            (1..=1000).any(|number| {
                let permit = breaker.permit().unwrap();
                if number % one_in == 0 {
                    permit.failed()
                } else {
                    permit.succeeded()
                }
            })
        };
        assert!(!calls(&Breaker::default(), 25));
        assert!(calls(&Breaker::default(), 10));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_from_before_a_suspension_do_not_end_it() {
        let breaker = Breaker::default();
        let [before, late] = [(); 2].map(|()| breaker.permit().unwrap());
        assert!((0..3).any(|_| breaker.permit().unwrap().failed()));
        assert!(!before.failed() && !late.succeeded() && breaker.is_open());
    }
}
