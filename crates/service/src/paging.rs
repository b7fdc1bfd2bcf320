//! Paging of lists: the parameters `limit` and `cursor`.

use adjutant_core::port::Cursor;
use serde::Deserialize;

use crate::problem::Problem;

/// Largest number of entries of a page: 1 to 200, default 50.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct Limit(u32);

impl Limit {
    const MAX: u32 = 200;

    pub(crate) fn get(self) -> u32 {
        self.0
    }

    /// Returns the limit as a number of entries in memory.
    pub(crate) fn entries(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(50)
    }
}

impl TryFrom<u32> for Limit {
    type Error = String;
    fn try_from(limit: u32) -> Result<Self, String> {
        if (1..=Self::MAX).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(format!("limit is from 1 to {}, not {limit}", Self::MAX))
        }
    }
}

/// Parses the query parameter `cursor`.
pub(crate) fn parse_cursor(text: Option<&str>) -> Result<Option<Cursor>, Problem> {
    let parse = |text: &str| {
        text.parse()
            .map_err(|error| Problem::invalid(format!("cursor: {error}")))
    };
    text.map(parse).transpose()
}

/// Position in a conversation's journal; a page holds what comes before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before(u64);

impl Before {
    /// Parses a cursor that an earlier response gave as `next_cursor`.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        // The form is strict so that one position has one spelling; 18 digits always fit an `u64`.
        let is_position = |digits: &&str| {
            digits.len() <= 18
                && !digits.starts_with('0')
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let position = text
            .strip_prefix('e')
            .filter(is_position)
            .and_then(|digits| digits.parse().ok());
        position.map(Self).ok_or_else(|| {
            Problem::malformed(&format!(
                "before: {text:?} is no cursor; use the one an answer gave, as it is"
            ))
        })
    }

    /// Formats a position as a cursor.
    pub(crate) fn format(position: u64) -> String {
        format!("e{position}")
    }

    pub(crate) fn position(self) -> u64 {
        self.0
    }
}

/// Splits entries of a query with limit `limit + 1` into a page and the cursor of the next page.
pub(crate) fn split_page<T, C: ToString>(
    mut entries: Vec<T>,
    limit: Limit,
    cursor_of: impl Fn(&T) -> C,
) -> (Vec<T>, Option<String>) {
    // The query asked for one entry more than a page has.
    let more = entries.len() > limit.entries();
    entries.truncate(limit.entries());
    let next = entries
        .last()
        .filter(|_| more)
        .map(|last| cursor_of(last).to_string());
    (entries, next)
}
