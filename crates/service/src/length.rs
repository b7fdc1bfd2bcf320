//! How long a text may be that a client sends.

use crate::problem::Problem;

/// Refuses a text of more than `max` Unicode characters. They are counted as sent, like `maxLength`
/// in the interface's description does: blanks and control characters that are taken out afterwards
/// count too.
pub(crate) fn at_most(name: &str, text: &str, max: usize) -> Result<(), Problem> {
    if text.chars().count() <= max {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "{name} has at most {max} characters"
    )))
}

/// Reads the words to search for in a list. `None`: there are none, so everything is listed.
pub(crate) fn search_words(q: Option<&str>, max: usize) -> Result<Option<&str>, Problem> {
    let Some(q) = q else { return Ok(None) };
    at_most("q", q, max)?;
    Ok(Some(q.trim()).filter(|words| !words.is_empty()))
}
