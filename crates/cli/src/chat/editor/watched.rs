use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Color, Highlighter, StyledText};

/// Whether the line that is on the screen holds any text: the editor has cleared it by the time it
/// tells of a Ctrl-C.
///
/// It watches where the editor shows the line; the line is shown as it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched(Arc<AtomicBool>);

impl Watched {
    pub(super) fn holds_text(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Highlighter for Watched {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        self.0.store(!line.is_empty(), Ordering::Relaxed);
        let mut shown = StyledText::new();
        shown.push((Color::Default.normal(), line.to_owned()));
        shown
    }
}
