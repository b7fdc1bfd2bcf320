use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Color, Highlighter, StyledText};

/// Records if the edited line holds text. reedline has cleared the line when it reports a Ctrl-C, so
/// its highlighter, which sees every line that is drawn, records it. The line is drawn without
/// styles.
#[derive(Debug, Clone, Default)]
pub(super) struct LineState(Arc<AtomicBool>);

impl LineState {
    pub(super) fn holds_text(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Highlighter for LineState {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        self.0.store(!line.is_empty(), Ordering::Relaxed);
        let mut shown = StyledText::new();
        shown.push((Color::Default.normal(), line.to_owned()));
        shown
    }
}
