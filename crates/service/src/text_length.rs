//! Length limits of texts in requests.

use crate::problem::Problem;

/// Checks that a text has at most `max` Unicode characters. They are counted as sent, as
/// `maxLength` in the OpenAPI document does: blanks and control characters that are removed later
/// count too.
///
/// # Errors
/// A problem 422 that names the field `name`.
pub(crate) fn at_most(name: &str, text: &str, max: usize) -> Result<(), Problem> {
    if text.chars().count() <= max {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "{name} has at most {max} characters"
    )))
}

/// Parses the query parameter `q` of a list. `None`: it is absent or blank, so everything is
/// listed.
pub(crate) fn search_query(q: Option<&str>, max: usize) -> Result<Option<&str>, Problem> {
    let Some(q) = q else { return Ok(None) };
    at_most("q", q, max)?;
    Ok(Some(q.trim()).filter(|words| !words.is_empty()))
}
