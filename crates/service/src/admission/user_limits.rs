//! Limits of users: requests a minute and concurrent turns, and the concurrent turns of all users.

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

/// Rate and concurrency limits of each user, and the concurrency limit of all users together.
/// Counted per process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// Requests a minute; all of them may come at once. Default 60.
    pub requests_per_minute: NonZeroU32,
    /// Concurrent turns of one user, including those that wait for an earlier turn of their
    /// conversation. Default 4.
    pub turns_at_once: NonZeroU32,
    /// Concurrent turns of all users together. Default 1,000.
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

/// Times as many requests that only ask what there is as others.
const LIGHT_FACTOR: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// Number of log lines a minute for one reason of refusing requests.
const WARNINGS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(6).unwrap();

/// State of a user's rate limit after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Requests allowed a minute.
    pub(crate) limit: u32,
    /// Requests that are allowed right now.
    pub(crate) remaining: u32,
    /// Seconds until `remaining` equals `limit` again, without further requests.
    pub(crate) reset: u64,
}

impl Rate {
    fn new(limit: NonZeroU32, remaining: u32) -> Self {
        // Requests become free one by one, evenly over the minute.
        let missing = u64::from(limit.get().saturating_sub(remaining));
        Self {
            limit: limit.get(),
            remaining,
            reset: (missing * 60).div_ceil(u64::from(limit.get())),
        }
    }

    /// Writes the rate limit headers: the two structured fields of the IETF draft since its version
    /// 08, and the three numbers of its first versions, which most client libraries read.
    pub(crate) fn write_headers(self, headers: &mut HeaderMap) {
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

/// Counters of requests and running turns. Per process: each replica counts its own.
pub(crate) struct Limits {
    bounds: UserLimits,
    rate: RateLimiter<
        UserId,
        DefaultKeyedStateStore<UserId>,
        DefaultClock,
        StateInformationMiddleware,
    >,
    /// The rate of requests that only ask what there is.
    light: DefaultKeyedRateLimiter<UserId>,
    /// Bounds the log lines about refused requests, which clients must not be able to flood.
    warnings: DefaultKeyedRateLimiter<&'static str>,
    running: Arc<Running>,
}

type Running = Mutex<Counts>;

/// Numbers of running turns.
#[derive(Default)]
struct Counts {
    of_user: HashMap<UserId, u32>,
    in_all: u32,
}

/// A running turn in the user's count, which it leaves when dropped.
pub(crate) struct RunningTurn {
    user: UserId,
    running: Arc<Running>,
    metrics: Arc<Metrics>,
}

impl Limits {
    pub(crate) fn new(bounds: UserLimits) -> Self {
        // The middleware reports what is left, for the response headers.
        let rate =
            RateLimiter::keyed(Quota::per_minute(bounds.requests_per_minute)).with_middleware();
        let light = bounds.requests_per_minute.saturating_mul(LIGHT_FACTOR);
        let light = RateLimiter::keyed(Quota::per_minute(light));
        let warnings = RateLimiter::keyed(Quota::per_minute(WARNINGS_PER_MINUTE));
        Self {
            bounds,
            rate,
            light,
            warnings,
            running: Arc::default(),
        }
    }

    /// Counts a request that only asks what there is. A user may make [`LIGHT_FACTOR`] times as many of
    /// these as of others.
    ///
    /// # Errors
    /// A problem 429 if the limit is exceeded.
    pub(crate) fn count_light_request(&self, user: &UserId) -> Result<(), Problem> {
        let bound = self.bounds.requests_per_minute;
        self.light.check_key(user).map_err(|early| {
            let wait = early.wait_time_from(DefaultClock::default().now());
            let detail = format!(
                "{LIGHT_FACTOR} times {bound} lists and pings a minute are taken from one user (serve.requests_per_minute)"
            );
            Problem::limit_reached(detail, wait)
        })
    }

    /// Counts a request. Returns the state of the rate limit, and an error if it is exceeded.
    pub(crate) fn count_request(&self, user: &UserId) -> (Rate, Result<(), Problem>) {
        let bound = self.bounds.requests_per_minute;
        match self.rate.check_key(user) {
            Ok(state) => (Rate::new(bound, state.remaining_burst_capacity()), Ok(())),
            Err(early) => {
                let wait = early.wait_time_from(DefaultClock::default().now());
                let detail = format!(
                    "{bound} requests a minute are taken from one user (serve.requests_per_minute)"
                );
                (
                    Rate::new(bound, 0),
                    Err(Problem::limit_reached(detail, wait)),
                )
            }
        }
    }

    /// Returns the number of running turns of a user, and their limit.
    pub(crate) fn running_turns(&self, user: &UserId) -> (u32, u32) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        (
            running.of_user.get(user).copied().unwrap_or_default(),
            self.bounds.turns_at_once.get(),
        )
    }

    /// Returns true if a refusal for this reason should be logged once more.
    pub(crate) fn may_warn(&self, reason: &'static str) -> bool {
        self.warnings.check_key(&reason).is_ok()
    }

    /// Counts a turn until the result is dropped.
    ///
    /// # Errors
    /// A problem 429 if the user's limit is reached, 503 if that of all users is.
    pub(crate) fn start_turn(
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
        // After the limit of the user, whose error names something that the user can change.
        if running.in_all >= self.bounds.turns_in_all.get() {
            return Err(Problem::busy());
        }
        running.in_all += 1;
        *running.of_user.entry(user.clone()).or_default() += 1;
        metrics.turn_started();
        Ok(RunningTurn {
            user: user.clone(),
            running: self.running.clone(),
            metrics: metrics.clone(),
        })
    }

    /// Removes the rate limits of users who sent no request for a while.
    pub(crate) fn remove_idle(&self) {
        self.rate.retain_recent();
        self.light.retain_recent();
    }
}

impl RunningTurn {
    /// Records the turn's outcome in the metrics.
    pub(crate) fn record_end(&self, response: &AgentResponse) {
        self.metrics.record_turn(response);
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.in_all -= 1;
        if let Some(count) = running.of_user.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                // The map has an entry for users with running turns only.
                running.of_user.remove(&self.user);
            }
        }
        self.metrics.turn_stopped();
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
    fn the_rate_limit_is_per_user() {
        let limits = limits(3, 1);
        let [ana, eve] = ["ana", "eve"].map(|name| UserId::new(name).unwrap());
        for left in [2, 1, 0] {
            let (rate, asked) = limits.count_request(&ana);
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
        let (rate, asked) = limits.count_request(&ana);
        assert_eq!(
            (rate.remaining, asked.unwrap_err().code()),
            (0, "limit_reached")
        );
        assert!(limits.count_request(&eve).1.is_ok());
    }

    #[test]
    fn a_turn_counts_until_it_is_over() {
        let (limits, metrics) = (limits(1, 2), Arc::new(Metrics::new()));
        let ana = UserId::new("ana").unwrap();
        let first = limits.start_turn(&ana, &metrics).unwrap();
        let _second = limits.start_turn(&ana, &metrics).unwrap();
        assert!(limits.start_turn(&ana, &metrics).is_err());
        assert!(limits.start_turn(&UserId::local(), &metrics).is_ok());
        drop(first);
        assert!(limits.start_turn(&ana, &metrics).is_ok());
    }

    #[test]
    fn the_turns_of_all_users_are_limited_too() {
        let (limits, metrics) = (limits(1, 2), Arc::new(Metrics::new()));
        let [ana, eve] = ["ana", "eve"].map(|name| UserId::new(name).unwrap());
        let first = limits.start_turn(&ana, &metrics).unwrap();
        let _others = [
            limits.start_turn(&ana, &metrics).unwrap(),
            limits.start_turn(&eve, &metrics).unwrap(),
        ];
        let refused = |user| {
            limits
                .start_turn(user, &metrics)
                .map(drop)
                .unwrap_err()
                .code()
                .to_owned()
        };
        assert_eq!([refused(&eve), refused(&ana)], ["busy", "limit_reached"]);
        drop(first);
        assert!(limits.start_turn(&eve, &metrics).is_ok());
    }
}
