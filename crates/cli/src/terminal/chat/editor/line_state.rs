use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Color, Highlighter, StyledText};

use super::paste::Pastes;

/// Shows pasted texts as placeholders, and records if the edited line holds text. reedline has
/// cleared the line when it reports a Ctrl-C, so its highlighter, which sees every line that is
/// drawn, records it. The line is drawn without styles.
#[derive(Debug, Clone)]
pub(super) struct LineState {
    holds_text: Arc<AtomicBool>,
    pastes: Pastes,
}

impl LineState {
    pub(super) fn new(pastes: Pastes) -> Self {
        Self {
            holds_text: Arc::default(),
            pastes,
        }
    }

    pub(super) fn holds_text(&self) -> bool {
        self.holds_text.load(Ordering::Relaxed)
    }

    pub(super) fn forget(&self) {
        self.holds_text.store(false, Ordering::Relaxed);
    }
}

impl Highlighter for LineState {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        self.holds_text.store(!line.is_empty(), Ordering::Relaxed);
        let mut shown = StyledText::new();
        shown.push((Color::Default.normal(), self.pastes.shown(line)));
        shown
    }
}
