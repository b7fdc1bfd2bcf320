//! The live line: what is happening now, below everything that is final. It is taken away before anything else is
//! written, so that it never stays behind.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use termimad::StrFit;

use super::drawn::Drawn;
use crate::display::{clean, clip, tokens, wrap};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Frames a second at most.
const FRAMES: u8 = 20;

/// Lines of the unfinished answer that are shown.
const TAIL_LINES: usize = 3;

/// Columns for spinner, seconds and tokens.
const FIGURES_COLUMNS: usize = 30;

/// What is happening.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    /// In a word or two: `waiting`, `⚙ add_task {…}`.
    pub(crate) words: String,
    pub(crate) since: Instant,
    /// The seconds that are left, where they are known.
    pub(crate) countdown: Option<Countdown>,
    /// Tokens that came so far, as they are estimated.
    pub(crate) tokens: u64,
}

/// Seconds that count down to an expected moment.
#[derive(Debug, Clone)]
pub(crate) struct Countdown {
    pub(crate) until: Instant,
    /// Stands before the seconds.
    pub(crate) before: &'static str,
    /// Stands after the seconds.
    pub(crate) after: &'static str,
    /// Replaces the words from that moment on, because no event may tell that it has come.
    pub(crate) then: String,
}

impl Status {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), since: Instant::now(), countdown: None, tokens: 0 }
    }

    /// `waiting · 3 s · ~80 tok`, `again in 4 s`, `reading the prompt · 43 % · 12 s left`.
    fn line(&self, now: Instant) -> String {
        let (mut line, since) = match &self.countdown {
            Some(Countdown { until, before, after, .. }) if now < *until => {
                let left = until.saturating_duration_since(now).as_secs_f64().ceil();
                (format!("{}{before}{left} s{after}", self.words), now)
            }
            Some(Countdown { until, then, .. }) => (then.clone(), *until),
            None => (self.words.clone(), self.since),
        };
        let seconds = now.saturating_duration_since(since).as_secs();
        if seconds > 0 {
            line.push_str(&format!(" · {seconds} s"));
        }
        if self.tokens > 0 {
            line.push_str(&format!(" · ~{} tok", tokens(self.tokens)));
        }
        line
    }
}

/// The line, until it is dropped.
pub(crate) struct LiveLine {
    bar: ProgressBar,
    status: Arc<Mutex<Status>>,
}

impl LiveLine {
    pub(crate) fn new(status: Status) -> Self {
        let status = Arc::new(Mutex::new(status));
        let shown = Arc::clone(&status);
        let line = move |_: &ProgressState, out: &mut dyn Write| {
            let status = shown.lock().unwrap_or_else(PoisonError::into_inner);
            // A line that cannot be drawn is drawn at the next tick.
            let _ = out.write_str(&status.line(Instant::now()));
        };
        let bar = ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::term_like_with_hz(Box::new(Drawn::on_stderr()), FRAMES),
        );
        // The template is fixed; a test draws it.
        if let Ok(style) = ProgressStyle::with_template("{msg}{spinner} {line}") {
            bar.set_style(style.with_key("line", line));
        }
        bar.enable_steady_tick(TICK);
        Self { bar, status }
    }

    /// Shows something else. `tail`: the unfinished end of the answer.
    pub(crate) fn show(&self, status: Status, tail: &str, columns: usize) {
        let words = clip_columns(&status.words, columns.saturating_sub(FIGURES_COLUMNS).max(8));
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Status { words, ..status };
        self.bar.set_message(last_lines(tail, columns));
    }

    /// Writes above the line.
    pub(crate) fn above<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The beginning of a text that fits.
fn clip_columns(text: &str, columns: usize) -> String {
    let text = clip(text, columns);
    let (bytes, _) = StrFit::count_fitting(&text, columns);
    text[..bytes].to_owned()
}

/// The last lines of a text, wrapped, each with its end. Written as it is: a mark may not be closed yet.
fn last_lines(text: &str, columns: usize) -> String {
    let columns = columns.saturating_sub(1).max(8);
    let text = clean(text).replace('\t', " ");
    let mut lines: Vec<&str> = Vec::new();
    for line in text.trim_matches('\n').lines() {
        lines.extend(wrap(line, columns));
    }
    lines.iter().skip(lines.len().saturating_sub(TAIL_LINES)).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_told_with_its_figures() {
        let now = Instant::now();
        let status = |since: u64, until: Option<u64>, tokens| {
            Status {
                words: "waiting".to_owned(),
                since: now,
                countdown: until.map(|seconds| Countdown {
                    until: now + Duration::from_secs(seconds),
                    before: " ",
                    after: "",
                    then: "at work".to_owned(),
                }),
                tokens,
            }
            .line(now + Duration::from_secs(since))
        };
        assert_eq!(status(0, None, 0), "waiting");
        assert_eq!(status(3, None, 1_234), "waiting · 3 s · ~1.2k tok");
        assert_eq!(status(1, Some(5), 0), "waiting 4 s");
        assert_eq!(status(5, Some(5), 0), "at work");
        assert_eq!(status(9, Some(5), 0), "at work · 4 s");
        let countdown = Countdown {
            until: now + Duration::from_secs(12),
            before: " · ",
            after: " left",
            then: "reading · 43 %".to_owned(),
        };
        let reading = Status { since: now, countdown: Some(countdown), ..Status::new("reading · 43 %") };
        assert_eq!(reading.line(now), "reading · 43 % · 12 s left");
    }

    #[test]
    fn the_last_lines_fit_and_break_at_blanks() {
        assert_eq!(last_lines("", 20), "");
        assert_eq!(last_lines("one\ntwo\nthree\nfour", 20), "two\nthree\nfour\n");
        assert_eq!(last_lines("alpha beta gamma delta", 12), "alpha beta\ngamma delta\n");
        // Wide characters take two columns.
        assert_eq!(last_lines("牛奶牛奶牛奶", 9), "牛奶牛奶\n牛奶\n");
        assert_eq!(last_lines(&"x".repeat(30), 11), "xxxxxxxxxx\n".repeat(3));
    }
}
