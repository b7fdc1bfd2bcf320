//! Slash commands of memory in a conversation: `/memory`, `/remember`, `/forget`, `/undo`, and
//! `#text`.

use adjutant_memory::NewFact;

use super::{UserMemory, line, why_lines};
use crate::error::CliError;
use crate::terminal::display::clean_line;

/// Arguments of `/memory`.
pub(crate) const ARGUMENT: &str = "[WORDS | told | why FACT | edit FACT: WORDS | important FACT]";

/// Lines of a list shown at once.
const LINES_MAX: usize = 50;

impl UserMemory {
    /// Runs `/memory`: lists all facts or those that match, or explains or changes one. Returns the
    /// lines to print.
    ///
    /// # Errors
    /// There is no vault, it cannot be read or written, or there is no such fact or several.
    pub(crate) async fn slash_memory(&self, rest: &str) -> Result<Vec<String>, CliError> {
        let (word, after) = rest
            .trim()
            .split_once(char::is_whitespace)
            .unwrap_or((rest.trim(), ""));
        let after = after.trim();
        match (word, after) {
            ("", _) | ("list", "") => limit_lines(self.list().await?),
            ("undo", "") => Ok(vec![self.slash_undo().await?]),
            ("why", which) if !which.is_empty() => {
                let lines = why_lines(&self.why(which).await?);
                Ok(lines.iter().map(|line| clean_line(line)).collect())
            }
            ("important", which) if !which.is_empty() => {
                let change = self.edit(which, None, Some(true)).await?;
                Ok(vec![clean_line(&self.describe_change(&change))])
            }
            ("edit", change) if !change.is_empty() => {
                let parts = change.split_once(':');
                let parts = parts.map(|(which, words)| (which.trim(), words.trim()));
                let complete =
                    parts.filter(|(which, words)| !which.is_empty() && !words.is_empty());
                let (which, words) = complete.ok_or_else(|| {
                    CliError::usage("which fact should be changed, and to what?")
                        .or_try("/memory edit ID: the new words")
                })?;
                let change = self.edit(which, Some(words), None).await?;
                Ok(vec![clean_line(&self.describe_change(&change))])
            }
            ("forget", which) if !which.is_empty() => Ok(vec![self.slash_forget(which).await?]),
            ("search", words) if !words.is_empty() => limit_lines(self.search(words).await?),
            _ => limit_lines(self.search(rest).await?),
        }
    }

    /// Runs `/remember WORDS` and `#WORDS`.
    ///
    /// # Errors
    /// Those of [`UserMemory::remember`].
    pub(crate) async fn slash_remember(&self, words: &str) -> Result<String, CliError> {
        let known = self.contradicted(words).await?;
        let change = self
            .remember(&NewFact {
                words,
                ..NewFact::default()
            })
            .await?;
        let beside = known.map(|known| {
            format!(
                " · beside “{}”; if that is wrong now: /forget {}",
                known.content, known.id
            )
        });
        Ok(clean_line(&format!(
            "{}{}",
            self.describe_change(&change),
            beside.unwrap_or_default()
        )))
    }

    /// Runs `/forget FACT`.
    ///
    /// # Errors
    /// Those of [`UserMemory::forget`].
    pub(crate) async fn slash_forget(&self, which: &str) -> Result<String, CliError> {
        if which.trim().is_empty() {
            return Err(CliError::usage("which fact?").or_try("/memory, then /forget ID"));
        }
        Ok(clean_line(
            &self.describe_change(&self.forget(which).await?),
        ))
    }

    /// Runs `/undo`.
    ///
    /// # Errors
    /// Those of [`UserMemory::undo`].
    pub(crate) async fn slash_undo(&self) -> Result<String, CliError> {
        Ok(clean_line(&self.undo().await?.message))
    }
}

/// Returns the fact in a line that begins with `#`, or `None` for anything else, such as a pasted
/// heading. The mark `#important` stays in the text.
pub(crate) fn fact_typed(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('#')?;
    if rest.starts_with('#') || rest.trim().is_empty() || rest.contains('\n') {
        return None;
    }
    let is_mark = rest.split_whitespace().next() == Some("important");
    Some(if is_mark && !rest.starts_with(char::is_whitespace) {
        line.trim()
    } else {
        rest.trim()
    })
}

fn limit_lines(facts: Vec<adjutant_memory::KeyFact>) -> Result<Vec<String>, CliError> {
    if facts.is_empty() {
        return Ok(vec!["no facts".to_owned()]);
    }
    let mut lines: Vec<String> = facts.iter().take(LINES_MAX).map(line).collect();
    if facts.len() > LINES_MAX {
        lines.push(format!(
            "… and {} more (/memory WORDS, or adjutant memory list)",
            facts.len() - LINES_MAX
        ));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_a_number_sign_is_a_fact() {
        assert_eq!(fact_typed("#Ana rides to work"), Some("Ana rides to work"));
        assert_eq!(
            fact_typed(" # Ana rides to work "),
            Some("Ana rides to work")
        );
        assert_eq!(
            fact_typed("#important Ana rides"),
            Some("#important Ana rides")
        );
        assert_eq!(
            fact_typed("# important meetings are on Monday"),
            Some("important meetings are on Monday")
        );
        for other in ["#", "##", "## Heading", "# Heading\ntext", "Ana #tag", ""] {
            assert_eq!(fact_typed(other), None, "{other:?}");
        }
    }
}
