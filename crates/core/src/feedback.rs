//! Feedback of people on answers: a rating and a comment.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::impl_names;
use crate::redact::LogContent;

/// Maximum length of a comment, in Unicode characters.
pub const COMMENT_CHARS_MAX: usize = 2_000;

/// A rating of an answer: useful or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rating {
    /// The answer was useful.
    Up,
    /// The answer was not useful.
    Down,
}

/// The error for a name that is not a [`Rating`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither up nor down")]
pub struct UnknownRating(pub String);

/// The error for a comment of more than [`COMMENT_CHARS_MAX`] characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a comment has at most {COMMENT_CHARS_MAX} characters")]
pub struct CommentTooLong;

/// A person's feedback on the answer of one of their turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Useful or not, as the person chose.
    pub rating: Rating,
    /// Comment that the person wrote, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Time at which the feedback was given.
    pub at: Timestamp,
}

impl_names!(Rating, UnknownRating { Up = "up", Down = "down" });

impl Feedback {
    /// Creates feedback, with the comment trimmed and control characters other than line ends
    /// replaced by spaces. A blank comment is none.
    ///
    /// # Errors
    ///
    /// [`CommentTooLong`] if the comment exceeds [`COMMENT_CHARS_MAX`].
    pub fn new(
        rating: Rating,
        comment: Option<&str>,
        at: Timestamp,
    ) -> Result<Self, CommentTooLong> {
        let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
        if comment.is_some_and(|comment| comment.chars().count() > COMMENT_CHARS_MAX) {
            return Err(CommentTooLong);
        }
        let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
        let comment = comment.map(|comment| comment.chars().map(plain).collect::<String>());
        let comment = comment
            .map(|comment| comment.trim().to_owned())
            .filter(|comment| !comment.is_empty());
        Ok(Self {
            rating,
            comment,
            at,
        })
    }

    /// Returns the feedback with its comment as far as the logs may contain it.
    #[must_use]
    pub fn kept(&self, content: LogContent) -> Self {
        let comment = self.comment.as_deref().map(|comment| content.text(comment));
        Self {
            comment: comment.filter(|comment| !comment.is_empty()),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_bounded_and_plain() {
        let of = |comment: &str| Feedback::new(Rating::Down, Some(comment), Timestamp::UNIX_EPOCH);
        assert_eq!(of(" no \n").unwrap().comment.as_deref(), Some("no"));
        assert_eq!(
            of("first\r\nsecond\u{0}\u{1b}[2J")
                .unwrap()
                .comment
                .as_deref(),
            Some("first \nsecond  [2J")
        );
        for nothing in ["", " \n\t", "\u{0}\u{7}"] {
            assert_eq!(of(nothing).unwrap().comment, None, "{nothing:?}");
        }
        assert!(of(&"漢".repeat(COMMENT_CHARS_MAX)).is_ok());
        assert_eq!(of(&"x".repeat(COMMENT_CHARS_MAX + 1)), Err(CommentTooLong));
    }

    #[test]
    fn a_comment_is_kept_as_the_logs_keep_words() {
        let given = Feedback::new(Rating::Down, Some("wrong day"), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(given.kept(LogContent::Full), given);
        assert_eq!(given.kept(LogContent::None).comment, None);
        let redacted = given.kept(LogContent::Redacted).comment.unwrap();
        assert!(redacted.starts_with("[9 chars #"), "{redacted}");
    }
}
