//! Progress of the embedded model while it reads a prompt, and the messages when that ends early.

use std::time::Duration;

use adjutant_core::{AgentResponse, ModelError, OutcomeCategory, PromptProgress, TurnError};
use tokio::time::Instant;

use super::live::{Countdown, Status};
use crate::error::CliError;

/// Reading that takes at least this long gets a line of its own where no live line can be shown.
const TOLD_FROM: Duration = Duration::from_secs(5);

/// Time for the answer after the prompt was read, in a bound that is advised.
const ANSWER: Duration = Duration::from_secs(30);

/// Room in advised bounds for other load on the machine.
const MARGIN: f64 = 1.5;

/// Advised bounds are multiples of this, in seconds.
const ROUND_SECONDS: u64 = 10;

/// `reading the prompt · 43 % · 12 s left`.
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

/// The line where no live line can be shown: one as soon as it is known how long it takes, and one
/// in each later quarter. `None`: not worth one. `told`: the quarter of the last one.
pub(super) fn line(progress: PromptProgress, told: Option<u32>) -> Option<String> {
    if told.is_some_and(|told| told >= quarter(progress)) {
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

/// Returns the message for a person who stopped the model while it read. `stays`: the process goes
/// on.
pub(crate) fn stopped(progress: PromptProgress, stays: bool) -> String {
    let percent = kept_percent(progress, stays);
    match (percent, progress.left) {
        (0, _) => "the model had only begun to read the prompt".to_owned(),
        (percent, Some(left)) => format!(
            "{percent} % of the prompt was read and is kept: the next request goes on there (about {} s)",
            left.as_secs_f64().ceil()
        ),
        (percent, None) => {
            format!(
                "{percent} % of the prompt was read and is kept: the next request goes on there"
            )
        }
    }
}

/// The error of a turn whose time was up while the model read: with what is kept, and the bound
/// that is long enough.
pub(crate) fn explained(
    response: &AgentResponse,
    error: CliError,
    progress: PromptProgress,
    stays: bool,
) -> CliError {
    // The model in the process has no bound but the turn's own.
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
    let mut shown = CliError {
        tries: Vec::new(),
        ..error.because(cause)
    };
    if percent > 0 {
        shown = shown.or_try(format!("the same again: it goes on at {percent} %"));
    }
    match progress.left {
        Some(left) => shown.or_try(long_enough(left)),
        None => shown,
    }
}

fn long_enough(left: Duration) -> String {
    let seconds = enough(left);
    format!(
        "adjutant config set agent.turn_deadline {seconds}s    is long enough at the measured rate"
    )
}

/// The setting that gives a turn or a summary more time in all, with the number to use. `left`: the
/// rest of the prompt, if it was not read to its end.
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

/// A bound, in seconds, that suffices for the rest of a prompt and an answer.
fn enough(left: Duration) -> u64 {
    let seconds = ((left + ANSWER).as_secs_f64() * MARGIN).ceil() as u64;
    seconds.div_ceil(ROUND_SECONDS) * ROUND_SECONDS
}

/// Returns the percentage that the next request need not read again: in another process, only what
/// is on disk.
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
        let told = line(progress(430, 0, Some(57)), None).unwrap();
        assert_eq!(
            told,
            "the model reads the prompt (1000 tokens, 43 % so far): about 57 s more"
        );
    }

    #[test]
    fn a_long_reading_is_told_of_in_each_quarter() {
        let mut told = None;
        let lines = (0..100)
            .map(|percent| progress(percent * 10, 0, Some(100 - u64::from(percent))))
            .filter(|progress| {
                let is_told = line(*progress, told).is_some();
                told = if is_told {
                    Some(quarter(*progress))
                } else {
                    told
                };
                is_told
            });
        assert_eq!(
            lines.map(|progress| progress.percent()).collect::<Vec<_>>(),
            [0, 25, 50, 75]
        );
    }

    #[test]
    fn only_what_the_next_request_finds_is_called_kept() {
        let told = stopped(progress(430, 400, Some(57)), true);
        assert_eq!(
            told,
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
        let told = more_time_in_all(Duration::from_secs(121), None);
        assert_eq!(
            told,
            "adjutant config set agent.turn_deadline 250s    (now 121s)"
        );
        let told = more_time_in_all(Duration::from_secs(120), Some(Duration::from_secs(50)));
        assert!(told.contains("turn_deadline 300s "), "{told}");
    }

    #[test]
    fn an_advised_bound_has_room_for_the_rest_and_an_answer() {
        assert_eq!(enough(Duration::ZERO), 50);
        assert_eq!(enough(Duration::from_secs(57)), 140);
    }
}
