//! Lists that are read page by page.

use adjutant_core::port::Cursor;
use serde::Deserialize;

use crate::problem::Problem;

/// How many entries a page has at most: 1 to 200, 50 unless said otherwise.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct Limit(u32);

impl Limit {
    const MAX: u32 = 200;

    pub(crate) fn get(self) -> u32 {
        self.0
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

/// Where a client wants to go on.
pub(crate) fn cursor(text: Option<&str>) -> Result<Option<Cursor>, Problem> {
    let read = |text: &str| {
        text.parse()
            .map_err(|error| Problem::invalid(format!("cursor: {error}")))
    };
    text.map(read).transpose()
}

/// A place in a conversation before which a client wants to read on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before(u64);

impl Before {
    /// Reads what an answer gave as its `next_cursor`.
    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        let is_place = |digits: &&str| {
            digits.len() <= 18
                && !digits.starts_with('0')
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let place = text
            .strip_prefix('e')
            .filter(is_place)
            .and_then(|digits| digits.parse().ok());
        place.map(Self).ok_or_else(|| {
            Problem::malformed(&format!(
                "before: {text:?} is no cursor; use the one an answer gave, as it is"
            ))
        })
    }

    /// Writes a place as a client is told it.
    pub(crate) fn written(place: u64) -> String {
        format!("e{place}")
    }

    pub(crate) fn place(self) -> u64 {
        self.0
    }
}

/// A page of entries of which one more than fits was asked for, and where the next page goes on, if
/// there is one.
pub(crate) fn split<T>(
    mut entries: Vec<T>,
    limit: Limit,
    place: impl Fn(&T) -> Cursor,
) -> (Vec<T>, Option<String>) {
    let fits = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let more = entries.len() > fits;
    entries.truncate(fits);
    let next = entries
        .last()
        .filter(|_| more)
        .map(|last| place(last).to_string());
    (entries, next)
}
