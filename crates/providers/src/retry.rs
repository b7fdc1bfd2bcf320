//! Retries of model calls: only for errors that may pass, only before anything was emitted, never
//! beyond the caller's time.

use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{BoxFuture, Delta, ModelError, TimeBound};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{StreamExt as _, stream};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::warn;

use crate::delay::Delay;

/// The longest wait a provider may ask for when the caller set no time limit.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest pause during an overload, before jitter.
const OVERLOAD_PAUSE_MAX: Duration = Duration::from_secs(8);
/// The time for which a model that is loaded is waited for when the caller set no time limit.
const LOADING_MAX: Duration = Duration::from_secs(10 * 60);

/// A failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) error: ModelError,
    /// The server's own statement on whether to retry; it overrides ours.
    pub(crate) retry: Option<bool>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, retry: None }
    }
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The number and pace of retries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Attempts after the first.
    pub(crate) retries: u32,
    /// The first pause. Each later one is twice as long; jitter of up to the pause's own length is
    /// added.
    pub(crate) pause: Duration,
    /// True if a request may be sent again after the server was silent for too long.
    pub(crate) after_silence: bool,
    /// Reads a delay from an error. An overloaded server is asked again as long as the caller's time
    /// allows, and one that loads the model also without a limit of time, but neither without
    /// retries. `None`: their retries are counted as those of other errors.
    pub(crate) delay: Option<fn(&ModelError) -> Option<Delay>>,
}

impl Policy {
    /// Returns the policy for a server over the network.
    #[cfg(feature = "_http")]
    pub(crate) fn network(retries: u32, after_silence: bool) -> Self {
        Self {
            retries,
            pause: Duration::from_millis(500),
            after_silence,
            delay: Some(crate::error::delay),
        }
    }

    fn start(self, time_left: Option<Duration>) -> Attempts {
        let deadline = time_left.and_then(|left| Instant::now().checked_add(left));
        Attempts {
            policy: self,
            delays: None,
            overload_delays: None,
            failed: 0,
            started: Instant::now(),
            time: time_left,
            deadline,
        }
    }

    fn delays(self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.pause)
            .with_max_delay(WAIT_MAX)
            .with_factor(2.0)
            .with_max_times(self.retries as usize)
            // Clients that failed at the same time should not retry at the same time.
            .with_jitter()
            .build()
    }

    fn overload_delays(self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.pause)
            .with_max_delay(OVERLOAD_PAUSE_MAX)
            .with_factor(2.0)
            .without_max_times()
            .with_jitter()
            .build()
    }
}

/// The attempts of one request: those that failed, and the time that is left.
struct Attempts {
    policy: Policy,
    /// Built at the first failure, because most requests have none.
    delays: Option<ExponentialBackoff>,
    /// The pauses during an overload, which are not counted as retries.
    overload_delays: Option<ExponentialBackoff>,
    failed: u32,
    started: Instant,
    /// The caller's time at the start.
    time: Option<Duration>,
    deadline: Option<Instant>,
}

impl Attempts {
    fn time_left(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns the time for which an overload may still be waited for; `None` for another failure, or
    /// one whose retries are counted.
    fn patience(&self, error: &ModelError) -> Option<Duration> {
        let delay = self.policy.delay.filter(|_| self.policy.retries > 0)?;
        match (delay(error)?, self.time, self.time_left()) {
            // The answer needs time as well.
            (_, Some(time), Some(left)) => Some(left.saturating_sub(time / 8)),
            (Delay::Loading, ..) => Some(LOADING_MAX.saturating_sub(self.started.elapsed())),
            // Without a limit nobody said that they would wait for minutes.
            (Delay::Overload, ..) => None,
        }
    }

    /// Returns the next pause of an overload; `None` if there is no time for another attempt.
    fn overload_pause(&mut self, error: &ModelError, patience: Duration) -> Option<Duration> {
        if patience.is_zero() {
            return None;
        }
        let policy = self.policy;
        let pause = self
            .overload_delays
            .get_or_insert_with(|| policy.overload_delays())
            .next()?;
        match error.retry_after() {
            // A server that asks for no wait would be asked without end.
            Some(wait) => Some(wait.max(policy.pause)).filter(|wait| *wait <= patience),
            // The last attempt is made when the time is over.
            None => Some(pause.min(patience)),
        }
    }

    /// Counts a failure, and returns the wait before the next attempt; `None` if the error is
    /// final.
    fn wait_after(&mut self, Failure { error, retry }: &Failure) -> Option<Duration> {
        self.failed += 1;
        let may_help = match error {
            ModelError::Timeout {
                bound: TimeBound::Silence,
                waited,
                ..
            } => {
                // An attempt that the caller's time cuts short would only hide the cause.
                self.policy.after_silence && self.time_left().is_none_or(|left| left >= *waited)
            }
            // The server had begun to answer. A retry would begin anew, and both may be charged.
            ModelError::Timeout {
                bound: TimeBound::Pause,
                ..
            } => false,
            error => error.is_transient(),
        };
        if !retry.unwrap_or(may_help) {
            return None;
        }
        let wait = match self.patience(error) {
            Some(patience) => self.overload_pause(error, patience)?,
            None => self.counted_pause(error)?,
        };
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        warn!(attempt = self.failed, wait_ms, %error, "an attempt of the model call failed; it is sent again");
        Some(wait)
    }

    /// Returns the pause before the next of the counted retries; `None` if there is none left, or no
    /// time for it.
    fn counted_pause(&mut self, error: &ModelError) -> Option<Duration> {
        let pause = self
            .delays
            .get_or_insert_with(|| self.policy.delays())
            .next()?;
        let wait = match error {
            // The silence was pause enough.
            ModelError::Timeout {
                bound: TimeBound::Silence,
                ..
            } => Duration::ZERO,
            // The server's own wait wins, even if it is shorter than our pause.
            error => error.retry_after().unwrap_or(pause),
        };
        // A wait that outlasts the caller would only delay the error.
        (wait <= self.time_left().unwrap_or(WAIT_MAX)).then_some(wait)
    }
}

/// Sends a request until it is answered or a retry cannot help. `send` gets the time that is left.
pub(crate) async fn generate<T, F>(
    policy: Policy,
    time_left: Option<Duration>,
    send: impl Fn(Option<Duration>) -> F,
) -> Result<T, ModelError>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut attempts = policy.start(time_left);
    loop {
        let failure = match send(attempts.time_left()).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        match attempts.wait_after(&failure) {
            Some(wait) => sleep(wait).await,
            None => return Err(failure.error),
        }
    }
}

/// Opens one attempt of a stream. Its argument is the time that is left.
pub(crate) type Open =
    Box<dyn Fn(Option<Duration>) -> BoxFuture<'static, Result<DeltaStream, Failure>> + Send + Sync>;

/// Adds advice to the error that ends all attempts.
pub(crate) type Explain = Box<dyn Fn(ModelError) -> ModelError + Send>;

/// Streams an answer over as many attempts as it takes. Waits are announced as [`Delta::Retrying`];
/// once a delta was emitted, an error is final.
///
/// # Errors
/// The error of the first attempt, if nothing was emitted and a retry cannot help.
pub(crate) async fn stream(
    policy: Policy,
    time_left: Option<Duration>,
    open: Open,
    explain: Explain,
) -> Result<DeltaStream, ModelError> {
    let mut attempts = StreamAttempts {
        attempts: policy.start(time_left),
        open,
        explain,
        wait_until: None,
        deltas: None,
        emitted: false,
        over: false,
    };
    // The first item decides between an error of the call and an error within the stream.
    let first = attempts.next().await.transpose()?;
    let rest = stream::unfold(attempts, |mut attempts| async move {
        let item = attempts.next().await?;
        Some((item, attempts))
    });
    Ok(stream::iter(first.map(Ok)).chain(rest).boxed())
}

/// A streamed answer, over as many attempts as it takes.
struct StreamAttempts {
    attempts: Attempts,
    open: Open,
    explain: Explain,
    /// The end of the pause before the next attempt.
    wait_until: Option<Instant>,
    /// The deltas of the running attempt.
    deltas: Option<DeltaStream>,
    emitted: bool,
    over: bool,
}

impl StreamAttempts {
    /// Returns the next delta, the announcement of another attempt, or the final error.
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        if self.over {
            return None;
        }
        let failure = match self.next_delta().await {
            Ok(delta) => {
                self.emitted = true;
                self.over = matches!(delta, None | Some(Delta::Finished(_)));
                return delta.map(Ok);
            }
            Err(failure) => failure,
        };
        let wait = if self.emitted {
            // The caller has shown part of the answer; a second one would contradict it.
            None
        } else {
            self.attempts.wait_after(&failure)
        };
        let Some(wait) = wait else {
            self.over = true;
            // Advice is added once, not to every attempt's error.
            return Some(Err((self.explain)(failure.error)));
        };
        // The pause begins now, not when the caller asks for the next delta.
        self.wait_until = Some(Instant::now() + wait);
        self.deltas = None;
        Some(Ok(Delta::Retrying {
            attempt: self.attempts.failed,
            wait,
            reason: failure.error.to_string(),
        }))
    }

    /// Returns the next delta of the running attempt, which is begun if there is none. `None` at the
    /// end of its stream.
    async fn next_delta(&mut self) -> Result<Option<Delta>, Failure> {
        if let Some(end) = self.wait_until {
            sleep_until(end).await;
            self.wait_until = None;
        }
        let deltas = match &mut self.deltas {
            Some(deltas) => deltas,
            None => {
                let opened = (self.open)(self.attempts.time_left()).await?;
                self.deltas.insert(opened)
            }
        };
        Ok(deltas.next().await.transpose()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use adjutant_core::{FinishReason, GenerateResponse, ModelId, ProviderId, Usage};

    use super::*;

    const PATIENT: Policy = Policy {
        retries: 2,
        pause: Duration::from_millis(500),
        after_silence: true,
        delay: Some(delay),
    };

    fn delay(error: &ModelError) -> Option<Delay> {
        match error {
            ModelError::Server { message, .. } | ModelError::RateLimited { message, .. } => {
                match &**message {
                    "busy" => Some(Delay::Overload),
                    "loading" => Some(Delay::Loading),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn provider() -> ProviderId {
        ProviderId::new("test").unwrap()
    }

    fn network() -> ModelError {
        ModelError::Network {
            provider: provider(),
            message: "reset".into(),
            source: None,
        }
    }

    fn limited(seconds: u64) -> ModelError {
        ModelError::RateLimited {
            provider: provider(),
            message: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    fn finished() -> Delta {
        Delta::Finished(GenerateResponse {
            parts: Vec::new(),
            finish: FinishReason::Stop,
            usage: Usage::default(),
            model: ModelId::new("test", "m").unwrap(),
            counters: adjutant_core::Counters::default(),
            cost: None,
            losses: Vec::new(),
            certainty: None,
        })
    }

    /// Sends with these outcomes; returns the result and how many were used.
    async fn blocking(
        policy: Policy,
        left: Option<u64>,
        outcomes: Vec<Result<u8, impl Into<Failure>>>,
    ) -> (Result<u8, ModelError>, usize) {
        let total = outcomes.len();
        let queue = Mutex::new(outcomes.into_iter());
        let result = generate(policy, left.map(Duration::from_secs), |_| {
            let next = queue
                .lock()
                .unwrap()
                .next()
                .expect("no further attempt is made");
            async { next.map_err(Into::into) }
        })
        .await;
        let used = total - queue.lock().unwrap().len();
        (result, used)
    }

    type Script = Vec<Result<Vec<Result<Delta, ModelError>>, ModelError>>;

    /// Streams with these attempts; returns a description of each item.
    async fn streaming(policy: Policy, script: Script) -> Vec<String> {
        let queue = Mutex::new(script.into_iter());
        let open: Open = Box::new(move |_| {
            let next = queue
                .lock()
                .unwrap()
                .next()
                .expect("no further attempt is made");
            Box::pin(async move {
                let items = next?;
                Ok(Box::pin(stream::iter(items)) as DeltaStream)
            })
        });
        match super::stream(policy, None, open, Box::new(|error| error)).await {
            Err(error) => vec![format!("refused: {}", error.code())],
            Ok(deltas) => {
                deltas
                    .map(|item| match item {
                        Ok(Delta::Retrying { attempt, .. }) => {
                            format!("retrying after attempt {attempt}")
                        }
                        Ok(Delta::Finished(_)) => "finished".into(),
                        Ok(delta) => format!("{delta:?}"),
                        Err(error) => format!("error: {}", error.code()),
                    })
                    .collect()
                    .await
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_sent_again_until_the_count_is_used() {
        let (result, used) =
            blocking(PATIENT, None, vec![Err(network()), Err(network()), Ok(7)]).await;
        assert_eq!((result.unwrap(), used), (7, 3));
        let (result, used) = blocking(
            PATIENT,
            None,
            vec![Err(network()), Err(network()), Err(network()), Ok(7)],
        )
        .await;
        assert_eq!((result.unwrap_err().code(), used), ("network", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_help_is_not_sent_again() {
        let refused = ModelError::BadRequest {
            provider: provider(),
            message: "no".into(),
        };
        let (result, used) = blocking(PATIENT, None, vec![Err(refused), Ok(7)]).await;
        assert_eq!((result.unwrap_err().code(), used), ("bad_request", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_asked_again_only_where_that_helps() {
        let timeout = |bound| ModelError::Timeout {
            provider: provider(),
            waited: PATIENT.pause,
            bound,
        };
        for (bound, after_silence, expected) in [
            (TimeBound::Silence, true, 2),
            (TimeBound::Silence, false, 1),
            (TimeBound::Connect, false, 2),
            (TimeBound::Total, false, 2),
            (TimeBound::Pause, true, 1),
        ] {
            let policy = Policy {
                after_silence,
                ..PATIENT
            };
            let (_, used) = blocking(policy, None, vec![Err(timeout(bound)), Ok(7)]).await;
            assert_eq!(used, expected, "{bound:?} {after_silence}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_has_the_last_word_on_asking_again() {
        let refused = ModelError::BadRequest {
            provider: provider(),
            message: "not yet".into(),
        };
        for (error, retry, expected) in [
            (refused.clone(), true, 2),
            (refused, false, 1),
            (network(), true, 2),
            (network(), false, 1),
        ] {
            let failure = Failure {
                error,
                retry: Some(retry),
            };
            let (_, used) = blocking(PATIENT, None, vec![Err(failure.clone()), Ok(7)]).await;
            assert_eq!(used, expected, "{failure:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_limit_is_waited_for_if_there_is_time() {
        let before = Instant::now();
        let (result, _) = blocking(PATIENT, Some(100), vec![Err(limited(42)), Ok(7)]).await;
        assert_eq!(result.unwrap(), 7);
        assert_eq!(before.elapsed().as_secs(), 42);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_limit_beyond_the_deadline_is_returned_at_once() {
        let before = Instant::now();
        let (result, used) = blocking(PATIENT, Some(10), vec![Err(limited(42)), Ok(7)]).await;
        assert_eq!(
            result.unwrap_err().retry_after(),
            Some(Duration::from_secs(42))
        );
        assert_eq!((used, before.elapsed()), (1, Duration::ZERO));
        let (result, used) = blocking(PATIENT, None, vec![Err(limited(3600)), Ok(7)]).await;
        assert_eq!((result.unwrap_err().code(), used), ("rate_limit", 1));
    }

    fn server(message: &str) -> ModelError {
        ModelError::Server {
            provider: provider(),
            status: 503,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Sends to a server that fails like this for a time; returns the seconds after which the call
    /// ended, and whether it was answered.
    async fn during(
        policy: Policy,
        left: Option<u64>,
        error: ModelError,
        lasts: u64,
    ) -> (u64, bool) {
        let begun = Instant::now();
        let over = begun + Duration::from_secs(lasts);
        let result = generate(policy, left.map(Duration::from_secs), async |_| {
            if Instant::now() < over {
                return Err(error.clone().into());
            }
            Ok(())
        })
        .await;
        (begun.elapsed().as_secs(), result.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn an_overload_is_waited_for_as_long_as_the_time_allows() {
        for error in [
            server("busy"),
            server("loading"),
            ModelError::RateLimited {
                provider: provider(),
                message: "busy".into(),
                retry_after: None,
            },
        ] {
            let (took, answered) = during(PATIENT, Some(120), error.clone(), 80).await;
            assert!(answered && (80..=97).contains(&took), "{error} {took}");
            // The time that is left would be too little for an answer.
            let (took, answered) = during(PATIENT, Some(120), error.clone(), 1_000).await;
            assert_eq!((took, answered), (105, false), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stated_end_of_an_overload_is_waited_for_if_there_is_time() {
        let back_after = |seconds| ModelError::Server {
            provider: provider(),
            status: 503,
            message: "busy".into(),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(
            during(PATIENT, Some(120), back_after(30), 80).await,
            (90, true)
        );
        assert_eq!(
            during(PATIENT, Some(120), back_after(300), 80).await,
            (0, false)
        );
        // No wait at all is no invitation to ask without end.
        let (took, answered) = during(PATIENT, Some(20), back_after(0), 5).await;
        assert_eq!((took, answered), (5, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_is_loaded_is_waited_for_without_a_time_limit() {
        let loading = server("loading");
        let (took, answered) = during(PATIENT, None, loading.clone(), 500).await;
        assert!(answered && (500..=516).contains(&took), "{took}");
        let (took, answered) = during(PATIENT, None, loading, 5_000).await;
        assert_eq!((took, answered), (600, false));
    }

    #[tokio::test(start_paused = true)]
    async fn other_failures_and_other_policies_count_their_retries() {
        let overloaded = server("busy");
        let hurried = Policy {
            delay: None,
            ..PATIENT
        };
        let once = Policy {
            retries: 0,
            ..PATIENT
        };
        for (policy, left, error) in [
            (PATIENT, Some(120), server("oops")),
            (PATIENT, None, overloaded.clone()),
            (hurried, Some(120), overloaded.clone()),
            (once, Some(120), overloaded),
        ] {
            let (took, answered) = during(policy, left, error.clone(), 60).await;
            assert!(!answered && took <= 3, "{error} {took}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn streams_announce_what_they_wait_for() {
        let out = streaming(
            PATIENT,
            vec![
                Err(network()),
                Ok(vec![Err(network())]),
                Ok(vec![Ok(finished())]),
            ],
        )
        .await;
        assert_eq!(
            out,
            [
                "retrying after attempt 1",
                "retrying after attempt 2",
                "finished"
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_not_retried_once_something_was_emitted() {
        let out = streaming(
            PATIENT,
            vec![Ok(vec![Ok(Delta::Text("a".into())), Err(network())])],
        )
        .await;
        assert_eq!(out, ["Text(\"a\")", "error: network"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_cannot_begin_is_an_error_of_the_call() {
        let refused = ModelError::BadRequest {
            provider: provider(),
            message: "no".into(),
        };
        assert_eq!(
            streaming(PATIENT, vec![Err(refused)]).await,
            ["refused: bad_request"]
        );
        let none = Policy {
            retries: 0,
            ..PATIENT
        };
        assert_eq!(
            streaming(none, vec![Err(network())]).await,
            ["refused: network"]
        );
    }
}
