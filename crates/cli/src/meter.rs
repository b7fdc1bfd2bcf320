//! How far a download is: a bar at a terminal, else a line every few percent.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::display::size;
use crate::screen::Screen;

/// Percent between two lines, where no bar is shown.
const LINE_EVERY: u64 = 5;

pub(crate) struct Meter<'a> {
    screen: &'a Screen,
    bar: Option<ProgressBar>,
    /// What was told last.
    doing: String,
    told_percent: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(screen: &'a Screen) -> Self {
        let bar = screen.shows_progress().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = "{msg} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
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

    /// A step of which nothing is counted.
    #[cfg(feature = "embedded")]
    pub(crate) fn begin(&mut self, doing: String) {
        if doing == self.doing {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(doing.clone()),
            None => self.screen.note(&doing),
        }
        self.doing = doing;
    }

    /// `doing`: the step, in words; other words are a new step.
    pub(crate) fn tell(&mut self, doing: String, done_bytes: u64, total_bytes: u64) {
        let new_step = doing != self.doing;
        if let Some(bar) = &self.bar {
            if new_step {
                bar.set_message(doing.clone());
                // The rate counts from here: what an earlier attempt fetched is not today's speed.
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
