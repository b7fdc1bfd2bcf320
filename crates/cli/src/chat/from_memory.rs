//! `/memory told`: what of the memory the last answer rests on, and how to mend it.

use adjutant_core::{Event, Recorded, Told};
use adjutant_memory::KeyFact;

use super::Chat;
use crate::display::clean_line;
use crate::error::CliError;
use crate::memory::why_lines;
use crate::screen::dim;

/// The tool whose results are shown.
const RECALL: &str = "recall";

impl Chat<'_> {
    /// Shows what was told with the last message and what the model looked up for it, each with
    /// where it is from.
    ///
    /// # Errors
    /// There has been no turn yet, or the conversation cannot be read.
    pub(super) async fn tell_memory(&self) -> Result<(), CliError> {
        let screen = self.talk.screen;
        let key = self.talk.agent.key(&self.context);
        let last = self.talk.store.load_turns(&key, None, 1).await?;
        let events = last.map(|last| last.events).unwrap_or_default();
        if events.is_empty() {
            return Err(CliError::usage("there has been no turn yet").or_try("/memory"));
        }
        let (told, found) = (told_in(&events), found_in(&events));
        if told.is_empty() && found.is_empty() {
            screen
                .note("nothing more of your memory than what stands above and the important facts (/memory)");
            return Ok(());
        }
        if !told.is_empty() {
            screen.side_line("told with your message:");
        }
        let facts = self.talk.desk.list().await?;
        for part in told {
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

    /// The lines of a part: the fact with its history, or the words alone if it reads otherwise by
    /// now.
    async fn origin(&self, part: &Told, facts: &[KeyFact]) -> Result<Vec<String>, CliError> {
        match part
            .id
            .as_deref()
            .filter(|id| facts.iter().any(|fact| fact.id.as_str() == *id))
        {
            Some(id) => Ok(why_lines(&self.talk.desk.why(id).await?)),
            None if part.id.is_some() => Ok(vec![format!(
                "{}  (changed or forgotten since)",
                part.text.trim_end()
            )]),
            None => Ok(vec![part.text.trim_end().to_owned()]),
        }
    }
}

/// Returns what the memory put in front of the words of the turn's message.
fn told_in(events: &[Recorded]) -> &[Told] {
    let told = events.iter().find_map(|recorded| match &*recorded.event {
        Event::TurnStarted { told, .. } => Some(told.as_slice()),
        _ => None,
    });
    told.unwrap_or_default()
}

/// Returns what the model found in the memory, in words.
fn found_in(events: &[Recorded]) -> Vec<&str> {
    let found = events.iter().filter_map(|recorded| match &*recorded.event {
        Event::CallFinished { tool, summary, .. } if tool == RECALL => summary.as_deref(),
        _ => None,
    });
    found.collect()
}
