//! What one user may ask for, requests a minute and turns at once, and the turns of all.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::{AgentResponse, UserId};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::metrics::Metrics;
use crate::problem::Problem;

/// Bounds of one user, and of the turns of all users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// Requests a minute, as many of them at once. Default 60.
    pub requests_per_minute: NonZeroU32,
    /// Turns that run at the same time, those included that wait for their conversation. Default 4.
    pub turns_at_once: NonZeroU32,
    /// Turns of all users that run at the same time. Default 1,000.
    pub turns_in_all: NonZeroU32,
}

impl Default for UserLimits {
    fn default() -> Self {
        const REQUESTS: NonZeroU32 = NonZeroU32::new(60).unwrap();
        const TURNS: NonZeroU32 = NonZeroU32::new(4).unwrap();
        const IN_ALL: NonZeroU32 = NonZeroU32::new(1_000).unwrap();
        Self {
            requests_per_minute: REQUESTS,
            turns_at_once: TURNS,
            turns_in_all: IN_ALL,
        }
    }
}

/// How often a minute one reason for refusing requests is told.
const TOLD: NonZeroU32 = NonZeroU32::new(6).unwrap();

/// The requests that are left to one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Requests a minute.
    pub(crate) limit: u32,
    /// Requests that may come at once.
    pub(crate) remaining: u32,
    /// Seconds until `remaining` is `limit` again, if none comes meanwhile.
    pub(crate) reset: u64,
}

impl Rate {
    fn of(limit: NonZeroU32, remaining: u32) -> Self {
        let missing = u64::from(limit.get().saturating_sub(remaining));
        Self {
            limit: limit.get(),
            remaining,
            reset: (missing * 60).div_ceil(u64::from(limit.get())),
        }
    }

    /// Puts it into the headers of an answer: the two structured fields that the IETF's draft has
    /// since its eighth version, and the three numbers of its first ones, which most client
    /// libraries read.
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        let Self {
            limit,
            remaining,
            reset,
        } = self;
        for (name, value) in [
            ("ratelimit-policy", format!("\"requests\";q={limit};w=60")),
            ("ratelimit", format!("\"requests\";r={remaining};t={reset}")),
            ("ratelimit-limit", limit.to_string()),
            ("ratelimit-remaining", remaining.to_string()),
            ("ratelimit-reset", reset.to_string()),
        ] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

/// Keeps count. Per process: with several replicas, each counts what it gets.
pub(crate) struct Limits {
    bounds: UserLimits,
    rate: RateLimiter<
        UserId,
        DefaultKeyedStateStore<UserId>,
        DefaultClock,
        StateInformationMiddleware,
    >,
    /// Reasons that are told to whoever runs the service: clients must not fill the log with them.
    told: DefaultKeyedRateLimiter<&'static str>,
    running: Arc<Running>,
}

type Running = Mutex<Counts>;

/// Running turns.
#[derive(Default)]
struct Counts {
    of_user: HashMap<UserId, u32>,
    in_all: u32,
}

/// One running turn of a user. Dropped when it ends.
pub(crate) struct RunningTurn {
    user: UserId,
    running: Arc<Running>,
    metrics: Arc<Metrics>,
}

impl Limits {
    pub(crate) fn new(bounds: UserLimits) -> Self {
        let rate =
            RateLimiter::keyed(Quota::per_minute(bounds.requests_per_minute)).with_middleware();
        let told = RateLimiter::keyed(Quota::per_minute(TOLD));
        Self {
            bounds,
            rate,
            told,
            running: Arc::default(),
        }
    }

    /// Counts a request, and returns what is left with whether it may go on.
    pub(crate) fn request(&self, user: &UserId) -> (Rate, Result<(), Problem>) {
        let bound = self.bounds.requests_per_minute;
        match self.rate.check_key(user) {
            Ok(state) => (Rate::of(bound, state.remaining_burst_capacity()), Ok(())),
            Err(early) => {
                let wait = early.wait_time_from(DefaultClock::default().now());
                let detail = format!(
                    "{bound} requests a minute are taken from one user (serve.requests_per_minute)"
                );
                (
                    Rate::of(bound, 0),
                    Err(Problem::limit_reached(detail, wait)),
                )
            }
        }
    }

    /// Returns how many turns of a user run, and how many may.
    pub(crate) fn turns_of(&self, user: &UserId) -> (u32, u32) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        (
            running.of_user.get(user).copied().unwrap_or_default(),
            self.bounds.turns_at_once.get(),
        )
    }

    /// Returns whether whoever runs the service is told this reason once more.
    pub(crate) fn may_tell(&self, reason: &'static str) -> bool {
        self.told.check_key(&reason).is_ok()
    }

    /// Counts a turn until what it gives is dropped.
    pub(crate) fn turn(
        &self,
        user: &UserId,
        metrics: &Arc<Metrics>,
    ) -> Result<RunningTurn, Problem> {
        let bound = self.bounds.turns_at_once.get();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running
            .of_user
            .get(user)
            .is_some_and(|count| *count >= bound)
        {
            let detail =
                format!("{bound} turns of one user run at the same time (serve.turns_at_once)");
            return Err(Problem::limit_reached(detail, Duration::from_secs(1)));
        }
        if running.in_all >= self.bounds.turns_in_all.get() {
            return Err(Problem::busy());
        }
        running.in_all += 1;
        *running.of_user.entry(user.clone()).or_default() += 1;
        metrics.turn_began();
        Ok(RunningTurn {
            user: user.clone(),
            running: self.running.clone(),
            metrics: metrics.clone(),
        })
    }

    /// Forgets who has not asked for a while.
    pub(crate) fn forget_old(&self) {
        self.rate.retain_recent();
    }
}

impl RunningTurn {
    /// What it came to, for the figures.
    pub(crate) fn ended(&self, response: &AgentResponse) {
        self.metrics.turn_ended(response);
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.in_all -= 1;
        if let Some(count) = running.of_user.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                running.of_user.remove(&self.user);
            }
        }
        self.metrics.turn_left();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: u32, turns: u32) -> Limits {
        let bound = |number| NonZeroU32::new(number).unwrap();
        Limits::new(UserLimits {
            requests_per_minute: bound(requests),
            turns_at_once: bound(turns),
            turns_in_all: bound(3),
        })
    }

    #[test]
    fn one_users_requests_are_bounded_and_nobody_elses() {
        let limits = limits(3, 1);
        let [ana, eve] = ["ana", "eve"].map(|name| UserId::new(name).unwrap());
        for left in [2, 1, 0] {
            let (rate, asked) = limits.request(&ana);
            assert!(asked.is_ok());
            assert_eq!(
                rate,
                Rate {
                    limit: 3,
                    remaining: left,
                    reset: u64::from(3 - left) * 20
                }
            );
        }
        let (rate, asked) = limits.request(&ana);
        assert_eq!(
            (rate.remaining, asked.unwrap_err().code()),
            (0, "limit_reached")
        );
        assert!(limits.request(&eve).1.is_ok());
    }

    #[test]
    fn a_turn_counts_until_it_is_over() {
        let (limits, metrics) = (limits(1, 2), Arc::new(Metrics::new()));
        let ana = UserId::new("ana").unwrap();
        let first = limits.turn(&ana, &metrics).unwrap();
        let _second = limits.turn(&ana, &metrics).unwrap();
        assert!(limits.turn(&ana, &metrics).is_err());
        assert!(limits.turn(&UserId::local(), &metrics).is_ok());
        drop(first);
        assert!(limits.turn(&ana, &metrics).is_ok());
    }

    #[test]
    fn the_turns_of_all_are_bounded_too() {
        let (limits, metrics) = (limits(1, 2), Arc::new(Metrics::new()));
        let [ana, eve] = ["ana", "eve"].map(|name| UserId::new(name).unwrap());
        let first = limits.turn(&ana, &metrics).unwrap();
        let _others = [
            limits.turn(&ana, &metrics).unwrap(),
            limits.turn(&eve, &metrics).unwrap(),
        ];
        let refused = |user| {
            limits
                .turn(user, &metrics)
                .map(drop)
                .unwrap_err()
                .code()
                .to_owned()
        };
        assert_eq!([refused(&eve), refused(&ana)], ["busy", "limit_reached"]);
        drop(first);
        assert!(limits.turn(&eve, &metrics).is_ok());
    }
}
