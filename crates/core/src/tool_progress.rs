//! Progress of running calls, as their tools report it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::visible::visible;

/// Maximum length of a progress message, in characters.
const WORDS_MAX: usize = 200;

/// The progress of a running call, such as "3 of 10: reading a.txt". Shown while the call runs, and
/// not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// Amount completed, in the tool's own unit.
    pub done: f64,
    /// Total amount in the same unit. `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Description of the current step, one line of at most 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl ToolProgress {
    /// Creates a progress report. The message is reduced to one visible line of 200 characters;
    /// invalid numbers, and a total that is not positive, are dropped.
    #[must_use]
    pub fn new(done: f64, total: Option<f64>, words: Option<&str>) -> Self {
        let words = words.map(|words| {
            let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
            // Cut before, because the text is a tool's and may be long, and after, because escapes
            // make it longer.
            visible(&line.chars().take(WORDS_MAX).collect::<String>())
                .chars()
                .take(WORDS_MAX)
                .collect()
        });
        Self {
            done: if done.is_finite() { done.max(0.0) } else { 0.0 },
            total: total.filter(|total| total.is_finite() && *total > 0.0),
            words: words.filter(|words: &String| !words.is_empty()),
        }
    }
}

impl fmt::Display for ToolProgress {
    /// Writes "3 of 10: reading a.txt", "40 %: reading a.txt" for fractions, the message alone
    /// without a total, or the number alone without a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_counted = |number: f64| number.fract() == 0.0 && number < 1e15;
        let share = |total: f64| (self.done / total * 100.0).clamp(0.0, 100.0).floor();
        let numbers = match self.total {
            Some(total) if is_counted(self.done) && is_counted(total) && total > 1.0 => {
                Some(format!("{} of {total}", self.done))
            }
            Some(total) => Some(format!("{} %", share(total))),
            None if self.words.is_none() => Some(self.done.to_string()),
            None => None,
        };
        match (numbers, &self.words) {
            (Some(numbers), Some(words)) => write!(f, "{numbers}: {words}"),
            (Some(numbers), None) => f.write_str(&numbers),
            (None, words) => f.write_str(words.as_deref().unwrap_or_default()),
        }
    }
}

/// A callback for the progress of a call. The default ignores it.
#[derive(Clone, Default)]
pub struct ProgressListener(Option<Arc<dyn Fn(ToolProgress) + Send + Sync>>);

impl ProgressListener {
    /// Creates a listener that is called with each report, from any task. The callback must not
    /// block.
    #[must_use]
    pub fn new(callback: impl Fn(ToolProgress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    /// Reports the progress of the call. May be called at any rate: only the latest report is
    /// shown.
    pub fn report(&self, progress: ToolProgress) {
        if let Some(callback) = &self.0 {
            callback(progress);
        }
    }
}

impl fmt::Debug for ProgressListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressListener")
            .field(&self.0.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_a_person_would_say_it() {
        let said = |done, total, words| ToolProgress::new(done, total, words).to_string();
        assert_eq!(
            said(3.0, Some(10.0), Some("reading\n a.txt")),
            "3 of 10: reading a.txt"
        );
        assert_eq!(said(3.0, Some(10.0), None), "3 of 10");
        assert_eq!(said(0.4, Some(1.0), Some("half-way")), "40 %: half-way");
        assert_eq!(said(12.5, Some(50.0), None), "25 %");
        assert_eq!(said(9.0, Some(1.0), None), "100 %");
        assert_eq!(said(7.0, None, Some("still at it")), "still at it");
        assert_eq!(said(7.0, None, Some(" ")), "7");
    }

    #[test]
    fn numbers_that_are_none_and_words_that_steer_do_no_harm() {
        let odd = ToolProgress::new(f64::NAN, Some(f64::INFINITY), Some("\u{1b}[2J\u{202e}x"));
        assert_eq!((odd.done, odd.total), (0.0, None));
        assert!(!odd.to_string().chars().any(crate::is_control), "{odd}");
        assert_eq!(ToolProgress::new(-1.0, Some(-5.0), None).to_string(), "0");
        let long = ToolProgress::new(1.0, None, Some(&"\u{200b}".repeat(500)));
        assert_eq!(long.words.unwrap().chars().count(), WORDS_MAX);
    }
}
