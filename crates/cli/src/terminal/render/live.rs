//! The live lines below all final output: the unfinished end of the answer, and the current status.
//!
//! After drawing them, the cursor returns to their first column and stays there, so that everything
//! below it can be cleared without knowing how many rows they take: a terminal that was narrowed
//! wraps or cuts them, and does not report which. indicatif counts rows instead and then clears too
//! many or too few.

use std::time::Duration;

use termimad::StrFit;
use tokio::time::Instant;

use crate::terminal::display::{clean, clip, tokens, wrap};

/// Interval of the spinner.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Minimum interval between two drawings for changed content.
const FRAME: Duration = Duration::from_millis(50);

/// Frames of the spinner, one per tick.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Lines of the unfinished answer that are shown.
const TAIL_LINES: usize = 3;

/// Columns of the tail in all, in a terminal with many rows and in one with few, and of the status
/// below it.
///
/// Narrowing a terminal wraps lines into more rows, and those scrolled off the top are out of
/// reach. With these limits the live lines stay within 14 rows of 20 columns, or 10 rows in a low
/// terminal.
const TAIL_COLUMNS: usize = 160;
const TAIL_COLUMNS_LOW: usize = 80;
const STATUS_COLUMNS: usize = 60;

/// Number of rows from which a terminal has many.
const ROWS_MANY: usize = 24;

/// Minimum columns for the status text before its figures.
const WORDS_COLUMNS_MIN: usize = 8;

/// Clears the live lines, if they were drawn last.
pub(crate) const CLEAR: &str = "\r\x1b[J";

/// Turns off line wrapping: the terminal cuts a long line instead of continuing it in the next row,
/// so that the cursor finds back to the first row even if the terminal was narrowed a moment
/// before.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// The current activity.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    /// The activity in a word or two: `waiting`, `⚙ add_task {…}`.
    pub(crate) words: String,
    pub(crate) since: Instant,
    /// Remaining seconds, where they are known.
    pub(crate) countdown: Option<Countdown>,
    /// Estimated number of tokens received so far.
    pub(crate) tokens: u64,
}

/// Seconds that count down to an expected moment.
#[derive(Debug, Clone)]
pub(crate) struct Countdown {
    pub(crate) until: Instant,
    /// Text before the seconds.
    pub(crate) before: &'static str,
    /// Text after the seconds.
    pub(crate) after: &'static str,
    /// Replaces the text after that moment, because no event may report that it has come.
    pub(crate) then: String,
}

impl Status {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            since: Instant::now(),
            countdown: None,
            tokens: 0,
        }
    }

    /// Formats the status: `waiting · 3 s · ~80 tok`, `again in 4 s`, `reading the prompt · 43 % ·
    /// 12 s left`. In a narrow terminal the text is cut and the figures are kept.
    fn line(&self, now: Instant, columns: usize) -> String {
        let (words, since) = match &self.countdown {
            Some(Countdown {
                until,
                before,
                after,
                ..
            }) if now < *until => {
                let left = until.saturating_duration_since(now).as_secs_f64().ceil();
                (format!("{}{before}{left} s{after}", self.words), now)
            }
            Some(Countdown { until, then, .. }) => (then.clone(), *until),
            None => (self.words.clone(), self.since),
        };
        let mut figures = String::new();
        let seconds = now.saturating_duration_since(since).as_secs();
        if seconds > 0 {
            figures.push_str(&format!(" · {seconds} s"));
        }
        if self.tokens > 0 {
            figures.push_str(&format!(" · ~{} tok", tokens(self.tokens)));
        }
        let remaining = columns
            .saturating_sub(figures.chars().count())
            .max(WORDS_COLUMNS_MIN);
        clip_columns(&words, remaining) + &figures
    }
}

/// The live lines and the time of their last drawing.
#[derive(Debug)]
pub(crate) struct LiveLine {
    status: Status,
    tail: String,
    began: Instant,
    drawn_at: Option<Instant>,
}

impl LiveLine {
    pub(crate) fn new(status: Status) -> Self {
        Self {
            status,
            tail: String::new(),
            began: Instant::now(),
            drawn_at: None,
        }
    }

    /// Replaces the content. `tail` is the unfinished end of the answer.
    pub(crate) fn set(&mut self, status: Status, tail: String) {
        self.status = status;
        self.tail = tail;
    }

    /// Returns true if the lines are to be drawn again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.drawn_at
            .is_none_or(|at| now.saturating_duration_since(at) >= FRAME)
    }

    /// Returns the text that draws the lines, for a cursor at the start of the previous drawing.
    pub(crate) fn drawing(&mut self, columns: usize, rows: usize, now: Instant) -> String {
        self.drawn_at = Some(now);
        // The last column stays free: some terminals wrap as soon as it is filled.
        let columns = columns.saturating_sub(1).max(1);
        let tail_columns = if rows < ROWS_MANY {
            TAIL_COLUMNS_LOW
        } else {
            TAIL_COLUMNS
        };
        let mut lines = last_lines(
            &self.tail,
            columns,
            tail_columns,
            TAIL_LINES.min(rows.saturating_sub(2)),
        );
        let turns = now.saturating_duration_since(self.began).as_millis() / TICK.as_millis();
        let spinner = SPINNER[(turns % SPINNER.len() as u128) as usize];
        // Below a tail the status is short, so that the rows of both stay few when the terminal
        // gets narrower.
        let columns = if lines.is_empty() {
            columns
        } else {
            columns.min(STATUS_COLUMNS)
        };
        lines.push(clip_columns(
            &format!(
                "{spinner} {}",
                self.status.line(now, columns.saturating_sub(2))
            ),
            columns,
        ));
        let up = match lines.len() - 1 {
            0 => String::new(),
            up => format!("\x1b[{up}A"),
        };
        format!("{CLEAR}{NO_WRAP}{}{WRAP}\r{up}", lines.join("\r\n"))
    }
}

/// Returns the beginning of a text that fits into the columns.
fn clip_columns(text: &str, columns: usize) -> String {
    let text = clip(text, columns);
    let (bytes, _) = StrFit::count_fitting(&text, columns);
    text[..bytes].to_owned()
}

/// Returns the last lines of a text, wrapped, as many as fit. Markdown is shown as written, since a
/// mark may not be closed yet.
fn last_lines(text: &str, columns: usize, mut remaining: usize, most: usize) -> Vec<String> {
    // The width of a tab depends on its column, and the rows would be counted wrongly.
    let text = clean(text).replace('\t', " ");
    let columns = columns.min(remaining);
    let lines = text
        .trim_matches('\n')
        .lines()
        .flat_map(|line| wrap(line, columns))
        .collect::<Vec<&str>>();
    let mut shown: Vec<String> = Vec::new();
    for line in lines.iter().rev().take(most) {
        // An empty line takes a row too.
        let Some(left) = remaining.checked_sub(StrFit::count_fitting(line, usize::MAX).1.max(1))
        else {
            break;
        };
        remaining = left;
        shown.push((*line).to_owned());
    }
    shown.reverse();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_has_the_figures_of_the_activity() {
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
            .line(now + Duration::from_secs(since), 60)
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
        let reading = Status {
            since: now,
            countdown: Some(countdown),
            ..Status::new("reading · 43 %")
        };
        assert_eq!(reading.line(now, 60), "reading · 43 % · 12 s left");
    }

    #[test]
    fn figures_are_kept_where_it_gets_narrow() {
        let status = Status {
            tokens: 80,
            ..Status::new("⚙ add_task {\"description\":\"buy milk\"}")
        };
        let now = status.since + Duration::from_secs(3);
        assert_eq!(status.line(now, 30), "⚙ add_task {\"… · 3 s · ~80 tok");
        assert_eq!(status.line(now, 9), "⚙ add_t… · 3 s · ~80 tok");
    }

    #[test]
    fn the_last_lines_fit_and_break_at_blanks() {
        let lines = |text: &str, columns| last_lines(text, columns, TAIL_COLUMNS, 3);
        assert!(lines("", 20).is_empty());
        assert_eq!(lines("one\ntwo\nthree\nfour", 20), ["two", "three", "four"]);
        assert_eq!(
            lines("alpha beta gamma delta", 12),
            ["alpha beta", "gamma delta"]
        );
        // Wide characters take two columns.
        assert_eq!(lines("牛奶牛奶牛奶", 8), ["牛奶牛奶", "牛奶"]);
        assert_eq!(lines(&"x".repeat(30), 10), vec!["x".repeat(10); 3]);
        assert!(last_lines("one", 20, TAIL_COLUMNS, 0).is_empty());
        let long = "x".repeat(600);
        assert_eq!(lines(&long, 200), ["x".repeat(120)]);
        assert_eq!(lines(&long, 100), ["x".repeat(100)]);
    }
}
