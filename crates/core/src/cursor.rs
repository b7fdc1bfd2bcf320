use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use uuid::Uuid;

/// A position in a list that is ordered by time, newest first.
///
/// Entries that are added meanwhile do not move it: no entry is repeated or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Time of the last entry of the page.
    pub at: Timestamp,
    /// Id of that entry, which breaks ties of the time.
    pub id: Uuid,
}

/// The error for a text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no cursor; use the one an answer gave, as it is")]
pub struct InvalidCursor(pub String);

impl fmt::Display for Cursor {
    /// Writes nanoseconds since 1970 and the id: opaque to clients, the same in every store.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.at.as_nanosecond(), self.id.simple())
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;
    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let read = || {
            let (at, id) = text.split_once('_')?;
            let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
            Some(Self {
                at,
                id: id.parse().ok()?,
            })
        };
        read().ok_or_else(|| InvalidCursor(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_and_nothing_else_is_one() {
        let cursor = Cursor {
            at: Timestamp::new(1_767_225_600, 123_456_789).unwrap(),
            id: Uuid::from_u128(7),
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in [
            "",
            "_",
            "1_",
            "x_00000000000000000000000000000007",
            "9".repeat(50).as_str(),
        ] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
