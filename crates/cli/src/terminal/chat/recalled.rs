//! `/memory told`: the facts and notes that the last answer used, and how to correct them.

use adjutant_core::{Event, RecalledText, Recorded};
use adjutant_memory::KeyFact;

use super::Chat;
use crate::error::CliError;
use crate::memory::why_lines;
use crate::terminal::display::clean_line;
use crate::terminal::screen::dim;

/// The tool whose results are listed.
const RECALL: &str = "recall";

impl Chat<'_> {
    /// Prints the facts that were attached to the last message and those that the model searched
    /// for, each with its source.
    ///
    /// # Errors
    /// There has been no turn yet, or the conversation cannot be read.
    pub(super) async fn print_recalled(&self) -> Result<(), CliError> {
        let screen = self.session.screen;
        let key = self.session.agent.key(&self.context);
        // Only the last turn, however long the conversation is.
        let last = self.session.store.load_turns(&key, None, 1).await?;
        let events = last.map(|last| last.events).unwrap_or_default();
        if events.is_empty() {
            return Err(CliError::usage("there has been no turn yet").or_try("/memory"));
        }
        let (instruction, found) = (attached_in(&events), found_in(&events));
        if instruction.is_empty() && found.is_empty() {
            screen
                .note("nothing more of your memory than what stands above and the important facts (/memory)");
            return Ok(());
        }
        if !instruction.is_empty() {
            screen.side_line("told with your message:");
        }
        let facts = self.session.user_memory.list().await?;
        for part in instruction {
            for line in self.origin(part, &facts).await? {
                screen.side_line(&clean_line(&line));
            }
        }
        if !found.is_empty() {
            screen.side_line("looked up for the answer:");
        }
        found
            .iter()
            .flat_map(|words| words.lines())
            .for_each(|line| screen.side_line(&clean_line(line)));
        screen.side_line(&dim(
            "/memory edit ID: WORDS · /forget ID · /memory important ID (always told)",
        ));
        Ok(())
    }

    /// Formats one attached part: the fact with its history, or only the attached text if the fact
    /// has changed since.
    async fn origin(
        &self,
        part: &RecalledText,
        facts: &[KeyFact],
    ) -> Result<Vec<String>, CliError> {
        match part
            .id
            .as_deref()
            .filter(|id| facts.iter().any(|fact| fact.id.as_str() == *id))
        {
            Some(id) => Ok(why_lines(&self.session.user_memory.why(id).await?)),
            None if part.id.is_some() => Ok(vec![format!(
                "{}  (changed or forgotten since)",
                part.text.trim_end()
            )]),
            None => Ok(vec![part.text.trim_end().to_owned()]),
        }
    }
}

/// Returns the parts that automatic recall attached to the message of the turn.
fn attached_in(events: &[Recorded]) -> &[RecalledText] {
    let attached = events.iter().find_map(|recorded| match &*recorded.event {
        Event::TurnStarted { recalled_texts, .. } => Some(recalled_texts.as_slice()),
        _ => None,
    });
    attached.unwrap_or_default()
}

/// Returns the summaries of the memory searches that the model made.
fn found_in(events: &[Recorded]) -> Vec<&str> {
    let found = events.iter().filter_map(|recorded| match &*recorded.event {
        Event::CallFinished { tool, summary, .. } if tool == RECALL => summary.as_deref(),
        _ => None,
    });
    found.collect()
}
