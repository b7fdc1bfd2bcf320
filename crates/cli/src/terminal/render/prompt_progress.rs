//! Progress of the embedded model while it reads a prompt, and messages if that ends early.

use std::time::Duration;

use adjutant_core::{AgentResponse, ModelError, OutcomeCategory, PromptProgress, TurnError};
use tokio::time::Instant;

use super::live::{Countdown, Status};
use crate::error::CliError;

/// Reading that takes at least this long is reported, where there is no live line.
const TOLD_FROM: Duration = Duration::from_secs(5);

/// Time for the answer after the prompt, in a recommended timeout.
const ANSWER: Duration = Duration::from_secs(30);

/// Factor on recommended timeouts, for other load on the machine.
const MARGIN: f64 = 1.5;

/// Recommended timeouts are multiples of this, in seconds.
const ROUND_SECONDS: u64 = 10;

/// Returns the status `reading the prompt · 43 % · 12 s left`.
pub(super) fn status(progress: PromptProgress, since: Instant) -> Status {
    let until = progress
        .left
        .and_then(|left| Instant::now().checked_add(left));
    let words = format!("reading the prompt · {} %", progress.percent());
    let countdown = until.map(|until| Countdown {
        until,
        before: " · ",
        after: " left",
        then: words.clone(),
    });
    Status {
        since,
        countdown,
        ..Status::new(words)
    }
}

/// Returns the quarter of the prompt that is being read, from 0.
pub(super) fn quarter(progress: PromptProgress) -> u32 {
    progress.percent() / 25
}

/// Returns a progress line for output without a live line: one as soon as the duration is known,
/// and one in each later quarter. `None` if none is due. `reported` is the quarter of the last one.
pub(super) fn line(progress: PromptProgress, reported: Option<u32>) -> Option<String> {
    if reported.is_some_and(|reported| reported >= quarter(progress)) {
        return None;
    }
    let left = progress.left.filter(|left| *left >= TOLD_FROM)?;
    let so_far = match progress.percent() {
        0 => String::new(),
        percent => format!(", {percent} % so far"),
    };
    Some(format!(
        "the model reads the prompt ({} tokens{so_far}): about {} s more",
        progress.total,
        left.as_secs_f64().ceil()
    ))
}

/// Returns the message after the user stopped the model while it read. `stays`: the process
/// continues.
pub(crate) fn stopped(progress: PromptProgress, stays: bool) -> String {
    let percent = kept_percent(progress, stays);
    if percent == 0 {
        return "the model had only begun to read the prompt".to_owned();
    }
    let about = progress.left.map_or_else(String::new, |left| {
        format!(" (about {} s)", left.as_secs_f64().ceil())
    });
    format!("{percent} % of the prompt was read and is kept: the next request goes on there{about}")
}

/// Adds to the error of a turn that timed out while the model read: the part that need not be read
/// again, and a sufficient timeout.
pub(crate) fn explained(
    response: &AgentResponse,
    error: CliError,
    progress: PromptProgress,
    stays: bool,
) -> CliError {
    // The embedded model has no timeout but the turn's.
    let timed_out = matches!(
        &response.error,
        Some(TurnError::Model {
            error: ModelError::Timeout { .. }
        })
    );
    if !timed_out && response.outcome != OutcomeCategory::DeadlineLimit {
        return error;
    }
    let percent = kept_percent(progress, stays);
    let cause = match percent {
        0 => format!("the model had read {} % of the prompt", progress.percent()),
        _ => format!("the model had read {percent} % of the prompt; that is kept"),
    };
    let again = (percent > 0).then(|| format!("the same again: it goes on at {percent} %"));
    CliError {
        // The remedies of the error itself do not know how far the model was.
        tries: again
            .into_iter()
            .chain(progress.left.map(long_enough))
            .collect(),
        ..error.because(cause)
    }
}

fn long_enough(left: Duration) -> String {
    let seconds = enough(left);
    format!(
        "adjutant config set agent.turn_deadline {seconds}s    is long enough at the measured rate"
    )
}

/// Returns the setting for the total time of a turn or a summary, with a sufficient value. `left`
/// is the time for the rest of the prompt.
pub(crate) fn more_time_in_all(waited: Duration, left: Option<Duration>) -> String {
    match left {
        Some(left) => long_enough(waited + left),
        None => {
            let now = (waited.as_secs_f64().round() as u64).max(1);
            let more = now
                .saturating_mul(2)
                .div_ceil(ROUND_SECONDS)
                .saturating_mul(ROUND_SECONDS);
            format!("adjutant config set agent.turn_deadline {more}s    (now {now}s)")
        }
    }
}

/// Returns a timeout, in seconds, for the rest of a prompt and an answer.
fn enough(left: Duration) -> u64 {
    let seconds = ((left + ANSWER).as_secs_f64() * MARGIN).ceil() as u64;
    seconds.div_ceil(ROUND_SECONDS) * ROUND_SECONDS
}

/// Returns the percentage that the next request need not read again; in another process, that is
/// only what was written to disk.
fn kept_percent(progress: PromptProgress, stays: bool) -> u32 {
    let done = if stays { progress.done } else { progress.kept };
    PromptProgress { done, ..progress }.percent()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(done: u32, kept: u32, left: Option<u64>) -> PromptProgress {
        PromptProgress {
            done,
            total: 1000,
            kept,
            left: left.map(Duration::from_secs),
        }
    }

    #[test]
    fn a_line_is_worth_it_for_seconds_only() {
        assert_eq!(line(progress(0, 0, None), None), None);
        assert_eq!(line(progress(900, 0, Some(4)), None), None);
        let reported = line(progress(430, 0, Some(57)), None).unwrap();
        assert_eq!(
            reported,
            "the model reads the prompt (1000 tokens, 43 % so far): about 57 s more"
        );
    }

    #[test]
    fn a_long_reading_is_reported_in_each_quarter() {
        let mut reported = None;
        let lines = (0..100)
            .map(|percent| progress(percent * 10, 0, Some(100 - u64::from(percent))))
            .filter(|progress| {
                let is_due = line(*progress, reported).is_some();
                reported = if is_due {
                    Some(quarter(*progress))
                } else {
                    reported
                };
                is_due
            });
        assert_eq!(
            lines.map(|progress| progress.percent()).collect::<Vec<_>>(),
            [0, 25, 50, 75]
        );
    }

    #[test]
    fn only_what_the_next_request_finds_is_called_kept() {
        let reported = stopped(progress(430, 400, Some(57)), true);
        assert_eq!(
            reported,
            "43 % of the prompt was read and is kept: the next request goes on there (about 57 s)"
        );
        assert!(stopped(progress(430, 400, Some(57)), false).starts_with("40 %"));
        assert_eq!(
            stopped(progress(430, 0, Some(57)), false),
            "the model had only begun to read the prompt"
        );
    }

    #[test]
    fn more_time_in_all_is_twice_as_much_or_what_the_prompt_needs() {
        let reported = more_time_in_all(Duration::from_secs(121), None);
        assert_eq!(
            reported,
            "adjutant config set agent.turn_deadline 250s    (now 121s)"
        );
        let reported = more_time_in_all(Duration::from_secs(120), Some(Duration::from_secs(50)));
        assert!(reported.contains("turn_deadline 300s "), "{reported}");
    }

    #[test]
    fn an_advised_bound_has_time_for_the_rest_and_an_answer() {
        assert_eq!(enough(Duration::ZERO), 50);
        assert_eq!(enough(Duration::from_secs(57)), 140);
    }
}
