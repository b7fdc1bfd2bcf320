//! Progress of a download: a bar at a terminal, else a line every few percent.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::display::size;
use crate::terminal::screen::Screen;

/// Percent between two lines, where no bar is shown.
const LINE_EVERY: u64 = 5;

pub(crate) struct DownloadProgress<'a> {
    screen: &'a Screen,
    bar: Option<ProgressBar>,
    /// The step that was printed last.
    doing: String,
    told_percent: u64,
}

impl<'a> DownloadProgress<'a> {
    pub(crate) fn new(screen: &'a Screen) -> Self {
        let bar = screen.shows_progress().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = "{msg} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            // The template is a constant; a wrong one would leave the bar in its default style.
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar
        });
        Self {
            screen,
            bar,
            doing: String::new(),
            told_percent: 0,
        }
    }

    /// Starts a step without known progress.
    #[cfg(feature = "embedded")]
    pub(crate) fn begin_step(&mut self, doing: String) {
        if doing == self.doing {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(doing.clone()),
            None => self.screen.note(&doing),
        }
        self.doing = doing;
    }

    /// Reports progress in bytes. A changed description `doing` starts a new step.
    pub(crate) fn report(&mut self, doing: String, done_bytes: u64, total_bytes: u64) {
        let new_step = doing != self.doing;
        if let Some(bar) = &self.bar {
            if new_step {
                bar.set_message(doing.clone());
                // The bytes of an earlier, resumed attempt would count as speed of this one.
                bar.reset_eta();
            }
            bar.set_length(total_bytes);
            bar.set_position(done_bytes);
        } else {
            let percent = done_bytes * 100 / total_bytes.max(1);
            if new_step || percent >= self.told_percent + LINE_EVERY {
                self.told_percent = percent;
                let (done, total) = (size(done_bytes), size(total_bytes));
                self.screen
                    .note(&format!("{doing}: {done} of {total} ({percent} %)"));
            }
        }
        self.doing = doing;
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
