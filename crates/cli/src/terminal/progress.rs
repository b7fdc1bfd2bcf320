//! Progress of a download: a bar at a terminal, else a line every few percent.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal::display::{clip_words, rough, size, visible_width};
use crate::terminal::screen::Screen;

/// Percent between two lines, where no bar is shown.
const LINE_EVERY: u64 = 5;

/// Columns of the bar.
const BAR: usize = 24;

pub(crate) struct DownloadProgress<'a> {
    screen: &'a Screen,
    bar: Option<ProgressBar>,
    /// The current step, which the bar's line begins with.
    doing: Arc<Mutex<String>>,
    told_percent: u64,
}

impl<'a> DownloadProgress<'a> {
    pub(crate) fn new(screen: &'a Screen) -> Self {
        let doing = Arc::new(Mutex::new(String::new()));
        let bar = screen.shows_progress().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let (step, columns) = (Arc::clone(&doing), screen.current_columns());
            let draw = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let step = step.lock().unwrap_or_else(PoisonError::into_inner);
                // The last column stays empty: some terminals wrap a line that fills it.
                let line = line(&step, &Moved::of(state), columns() - 1);
                // The reader of the text keeps it in memory.
                let _ = out.write_str(&line);
            };
            // The template is a constant; a wrong one would leave the bar in its default style.
            if let Ok(style) = ProgressStyle::with_template("{line}") {
                bar.set_style(style.with_key("line", draw));
            }
            bar
        });
        Self {
            screen,
            bar,
            doing,
            told_percent: 0,
        }
    }

    /// Starts a step without known progress.
    #[cfg(feature = "embedded")]
    pub(crate) fn begin_step(&mut self, doing: String) {
        if !self.changes_to(&doing) {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_length(0),
            None => self.screen.note(&doing),
        }
    }

    /// Reports progress in bytes. A changed description `doing` starts a new step.
    pub(crate) fn report(&mut self, doing: String, done_bytes: u64, total_bytes: u64) {
        let new_step = self.changes_to(&doing);
        if let Some(bar) = &self.bar {
            if new_step {
                // The bytes of an earlier, resumed attempt would count as speed of this one.
                bar.reset_eta();
            }
            bar.set_length(total_bytes);
            bar.set_position(done_bytes);
            return;
        }
        let percent = done_bytes * 100 / total_bytes.max(1);
        if new_step || percent >= self.told_percent + LINE_EVERY {
            self.told_percent = percent;
            let (done, total) = (size(done_bytes), size(total_bytes));
            self.screen
                .note(&format!("{doing}: {done} of {total} ({percent} %)"));
        }
    }

    /// Makes this the current step. Returns false if it is already.
    fn changes_to(&self, doing: &str) -> bool {
        let mut step = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = *step != doing;
        doing.clone_into(&mut step);
        changes
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Bytes that were fetched, and how fast.
struct Moved {
    done: u64,
    /// All bytes; 0 if their number is unknown.
    total: u64,
    per_second: u64,
    seconds_left: i64,
}

impl Moved {
    fn of(state: &ProgressState) -> Self {
        Self {
            done: state.pos(),
            total: state.len().unwrap_or(0),
            per_second: state.per_sec() as u64,
            seconds_left: i64::try_from(state.eta().as_secs()).unwrap_or(i64::MAX),
        }
    }
}

/// Formats a step with its progress in at most `columns` columns: what does not fit is left out, the
/// bar first, then time and speed, and then words of the step.
fn line(step: &str, moved: &Moved, columns: usize) -> String {
    if moved.total == 0 {
        return clip_words(step, columns);
    }
    let done = moved.done.min(moved.total);
    let amount = format!("{}/{}", size(done), size(moved.total));
    let speed = format!("{amount} {}/s", size(moved.per_second));
    let time = format!("{speed} {}", rough(moved.seconds_left));
    let filled = usize::try_from(done.saturating_mul(BAR as u64) / moved.total).unwrap_or(BAR);
    let bar = "█".repeat(filled) + &"░".repeat(BAR - filled);
    let whole = [format!("{bar} {time}"), time, speed, amount.clone()]
        .iter()
        .map(|end| format!("{step} {end}"))
        .find(|line| visible_width(line) <= columns);
    whole.unwrap_or_else(|| {
        let left = columns.saturating_sub(visible_width(&amount) + 1);
        format!("{} {amount}", clip_words(step, left))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_what_matters_least_is_left_out_first() {
        let moved = Moved {
            done: 45_850_000,
            total: 1_117_000_000,
            per_second: 3_200_000,
            seconds_left: 334,
        };
        let step = "qwen2.5-coder-1.5b from huggingface.co";
        let bar = "░".repeat(BAR);
        for (columns, expected) in [
            (100, format!("{step} {bar} 45 MB/1.1 GB 3 MB/s 5 min")),
            (79, format!("{step} 45 MB/1.1 GB 3 MB/s 5 min")),
            (60, format!("{step} 45 MB/1.1 GB 3 MB/s")),
            (51, format!("{step} 45 MB/1.1 GB")),
            (39, "qwen2.5-coder-1.5b from … 45 MB/1.1 GB".to_owned()),
        ] {
            assert_eq!(line(step, &moved, columns), expected, "{columns}");
        }
        for columns in 20..120 {
            let line = line("looking at it", &moved, columns);
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }

    #[test]
    fn a_step_of_unknown_length_is_its_words() {
        let moved = Moved {
            done: 0,
            total: 0,
            per_second: 0,
            seconds_left: 0,
        };
        assert_eq!(line("looking for it", &moved, 39), "looking for it");
    }
}
