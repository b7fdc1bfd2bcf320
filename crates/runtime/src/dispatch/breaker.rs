//! Leaves a dispatcher alone that does not do what it is asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The weight of a failure. A success makes up for one part of it: one failure in twenty calls is
/// borne.
const FAILURE: u32 = 20;
/// The count at which nobody is asked any more.
const LIMIT: u32 = 3 * FAILURE;
/// Time until somebody is asked again, for the first time. It doubles while that fails.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Counts what succeeds and what fails.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u32,
    open: Option<Open>,
}

/// Nobody is asked, but one from time to time.
#[derive(Debug)]
struct Open {
    until: Instant,
    pause: Duration,
    /// Somebody is asked at the moment, to see whether it works again.
    tries: bool,
}

/// Leave to ask. Dropped without [`Leave::succeeded`] or [`Leave::failed`], it counts as neither.
#[derive(Debug)]
pub(crate) struct Leave<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
}

impl Breaker {
    /// Returns leave to ask, unless it is left alone at the moment.
    pub(crate) fn leave(&self) -> Option<Leave<'_>> {
        let mut state = self.state();
        let is_trial = match &mut state.open {
            None => false,
            Some(open) if !open.tries && Instant::now() >= open.until => {
                open.tries = true;
                true
            }
            Some(_) => return None,
        };
        Some(Leave {
            breaker: self,
            is_trial,
        })
    }

    /// Returns whether it is left alone.
    pub(crate) fn is_open(&self) -> bool {
        self.state().open.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leave<'_> {
    /// Counts a success. Returns whether it is the first one after it was left alone.
    pub(crate) fn succeeded(self) -> bool {
        let mut state = self.breaker.state();
        if self.is_trial {
            *state = State::default();
            return true;
        }
        state.count = state.count.saturating_sub(1);
        false
    }

    /// Counts a failure. Returns whether it is left alone from now on.
    pub(crate) fn failed(self) -> bool {
        let mut state = self.breaker.state();
        match &mut state.open {
            Some(open) if self.is_trial => {
                let pause = (open.pause * 2).min(PAUSE_MAX);
                *open = Open {
                    until: Instant::now() + pause,
                    pause,
                    tries: false,
                };
                false
            }
            // It was asked before.
            Some(_) => false,
            None => {
                state.count += FAILURE;
                if state.count < LIMIT {
                    return false;
                }
                state.open = Some(Open {
                    until: Instant::now() + PAUSE,
                    pause: PAUSE,
                    tries: false,
                });
                true
            }
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.is_trial
            && let Some(open) = &mut self.breaker.state().open
        {
            open.tries = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_fails_is_left_alone_and_tried_again() {
        let breaker = Breaker::default();
        let fails = || breaker.leave().unwrap().failed();
        assert_eq!([fails(), fails(), fails()], [false, false, true]);
        assert!(breaker.leave().is_none());
        tokio::time::advance(PAUSE).await;
        // One is asked, and while nothing is known of it nobody else.
        let trial = breaker.leave().unwrap();
        assert!(breaker.leave().is_none());
        assert!(!trial.failed());
        tokio::time::advance(PAUSE).await;
        assert!(breaker.leave().is_none());
        tokio::time::advance(PAUSE).await;
        // Who goes away decides nothing.
        drop(breaker.leave().unwrap());
        assert!(breaker.is_open() && breaker.leave().unwrap().succeeded());
        assert!(!breaker.is_open() && !breaker.leave().unwrap().succeeded());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_in_a_while_is_borne_and_one_in_ten_is_not() {
        let calls = |breaker: &Breaker, one_in: u32| {
            (1..=1000).any(|number| {
                let leave = breaker.leave().unwrap();
                if number % one_in == 0 {
                    leave.failed()
                } else {
                    leave.succeeded()
                }
            })
        };
        assert!(!calls(&Breaker::default(), 25));
        assert!(calls(&Breaker::default(), 10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_before_it_was_left_alone_changes_nothing_then() {
        let breaker = Breaker::default();
        let [before, late] = [(); 2].map(|()| breaker.leave().unwrap());
        assert!((0..3).any(|_| breaker.leave().unwrap().failed()));
        assert!(!before.failed() && !late.succeeded() && breaker.is_open());
    }
}
