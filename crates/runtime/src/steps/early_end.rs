//! Ends a turn before its work is done: its time is up, or nobody wants it any more.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adjutant_core::turn::StopReason;
use adjutant_core::{CancellationToken, InputId};
use tokio::time::Instant;

/// The time and the cancellation of one turn.
pub(super) struct EarlyEnd {
    /// Fires when nobody waits any more.
    cancelled: CancellationToken,
    /// The input that stopped the turn, if one did; the end of the turn takes it.
    stopped_by: OnceLock<InputId>,
    /// `None`: the turn takes the time it takes.
    deadline: Option<Instant>,
    /// Milliseconds that are added to it, for what is no part of the turn's time.
    not_counted_ms: AtomicU64,
}

impl EarlyEnd {
    /// Begins a turn that ends with `cancelled`, and in `time` from now on. `None`, or longer than
    /// the clock can count: it has no end in time.
    pub(super) fn new(cancelled: &CancellationToken, time: Option<Duration>) -> Self {
        Self {
            cancelled: cancelled.child_token(),
            stopped_by: OnceLock::new(),
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
            not_counted_ms: AtomicU64::new(0),
        }
    }

    /// Returns what fires when nobody waits any more.
    pub(super) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Returns why the turn has to end, if it has to.
    pub(super) fn reason(&self) -> Option<StopReason> {
        if self.cancelled.is_cancelled() {
            Some(StopReason::Cancelled)
        } else if self
            .deadline()
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            Some(StopReason::Deadline)
        } else {
            None
        }
    }

    /// Returns the time that is left. `None`: there is no end to it.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.deadline()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits until the time is up.
    pub(super) async fn out_of_time(&self) {
        match self.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Takes so many milliseconds for no part of the turn's time.
    pub(super) fn do_not_count(&self, ms: u64) {
        self.not_counted_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Stops the turn, because this input says so.
    pub(super) fn stop(&self, input: InputId) {
        // The first one counts; another finds nothing to stop.
        let _ = self.stopped_by.set(input);
        self.cancelled.cancel();
    }

    /// Returns the input that stopped the turn, if one did.
    pub(super) fn stopped_by(&self) -> Option<&InputId> {
        self.stopped_by.get()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline? + Duration::from_millis(self.not_counted_ms.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn input(number: u128) -> InputId {
        InputId::from(Uuid::from_u128(number))
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_is_not_counted_moves_the_end() {
        let end = EarlyEnd::new(&CancellationToken::new(), Some(Duration::from_secs(2)));
        end.do_not_count(1_000);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(
            (end.reason(), end.time_left()),
            (None, Some(Duration::from_secs(1)))
        );
        end.out_of_time().await;
        assert_eq!(
            (end.reason(), end.time_left()),
            (Some(StopReason::Deadline), Some(Duration::ZERO))
        );
    }

    #[tokio::test]
    async fn the_first_input_that_stops_a_turn_is_named_and_the_caller_goes_on() {
        let caller = CancellationToken::new();
        let end = EarlyEnd::new(&caller, None);
        assert_eq!(
            (end.reason(), end.time_left(), end.stopped_by()),
            (None, None, None)
        );
        end.stop(input(1));
        end.stop(input(2));
        assert_eq!(end.reason(), Some(StopReason::Cancelled));
        assert_eq!(end.stopped_by(), Some(&input(1)));
        assert!(!caller.is_cancelled());
    }

    #[tokio::test]
    async fn a_caller_that_cancels_stops_the_turn_and_no_input_is_named() {
        let caller = CancellationToken::new();
        let end = EarlyEnd::new(&caller, Some(Duration::MAX));
        caller.cancel();
        assert_eq!(
            (end.reason(), end.time_left()),
            (Some(StopReason::Cancelled), None)
        );
        assert_eq!(end.stopped_by(), None);
    }
}
