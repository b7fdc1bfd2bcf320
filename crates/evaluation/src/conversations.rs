//! Figures of conversation search: the past conversations that are found for a question. They are
//! those of the notes, replayed with an agent over a database.

use std::collections::HashMap;
use std::sync::Arc;

use adjutant_core::{AgentName, ConversationId, UserId};
use adjutant_memory::{ConversationSearchOptions, index_conversations, search_conversations};
use adjutant_providers::scripted::{ScriptedModel, text};
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::sqlite;
use tempfile::TempDir;

use crate::set::Set;
use crate::share::Share;

const AGENT: &str = "memory-eval";
/// The answer to a last message that has none.
const LAST: &str = "All right.";

/// The conversations of a set, in a database that is removed with this value.
pub(crate) struct ConversationIndex {
    _folder: TempDir,
    store: Arc<sqlite::Store>,
    agent: AgentName,
    /// The note of each conversation.
    notes: HashMap<ConversationId, String>,
}

impl ConversationIndex {
    /// Replays the conversations: of every two lines the first is the user's message, the second
    /// the answer.
    pub(crate) async fn replay(set: &Set) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let path = folder.path().join("past.db");
        let store = Arc::new(
            sqlite::Store::open(&path)
                .await
                .map_err(|error| error.to_string())?,
        );
        let conversations: Vec<(&str, Vec<[String; 2]>)> = set
            .notes
            .iter()
            .map(|(name, text)| (name.as_str(), turns(text)))
            .collect();
        let answers = conversations
            .iter()
            .flat_map(|(_, turns)| turns.iter().map(|[_, answer]| text(answer)));
        let agent = Agent::builder(AGENT)
            .model(ScriptedModel::new(answers))
            .instruction("You talk with a person.")
            .journal(store.clone(), AGENT)
            .build()
            .map_err(|error| error.to_string())?;
        let mut notes = HashMap::new();
        for (name, turns) in &conversations {
            let conversation = RunContext::default().conversation;
            notes.insert(conversation, (*name).to_owned());
            for [said, _] in turns {
                let mut context = RunContext {
                    conversation,
                    ..RunContext::default()
                };
                agent
                    .run_in(&mut context, said)
                    .await
                    .map_err(|error| error.to_string())?;
            }
        }
        let agent = AgentName::new(AGENT).map_err(|error| error.to_string())?;
        while index_conversations(&*store, &agent)
            .await
            .map_err(|error| error.to_string())?
        {}
        Ok(Self {
            _folder: folder,
            store,
            agent,
            notes,
        })
    }

    /// Searches with a question as it was typed. All conversations of the evidence have to be among
    /// the first five.
    pub(crate) async fn ask(
        &self,
        at_5: &mut Share,
        question: &str,
        evidence: &[String],
    ) -> Result<(), String> {
        let options = ConversationSearchOptions {
            limit: 5,
            ..ConversationSearchOptions::default()
        };
        let found = search_conversations(
            &*self.store,
            &self.agent,
            &UserId::local(),
            question,
            options,
        )
        .await;
        let found = found.map_err(|error| error.to_string())?.found;
        let names: Vec<&String> = found
            .iter()
            .filter_map(|hit| self.notes.get(&hit.conversation))
            .collect();
        at_5.count(evidence.iter().all(|note| names.contains(&note)));
        Ok(())
    }
}

/// Returns the turns in the note of a conversation: quoted paragraphs, two a turn.
fn turns(note: &[u8]) -> Vec<[String; 2]> {
    let note = String::from_utf8_lossy(note);
    let mut said: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in note.lines() {
        let words = line.strip_prefix('>').map(str::trim);
        match (words, said.last_mut()) {
            (Some(words), Some(open)) if is_open => {
                open.push('\n');
                open.push_str(words);
            }
            (Some(words), _) => said.push(words.to_owned()),
            (None, _) => {}
        }
        is_open = words.is_some();
    }
    let mut said = said.into_iter().filter(|words| !words.trim().is_empty());
    std::iter::from_fn(|| Some([said.next()?, said.next().unwrap_or_else(|| LAST.to_owned())]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_paragraphs_are_the_messages() {
        let note = "---\ntype: conversation\n---\n\n**Ana**\n\n> Hello\n> there\n\n**Bo**\n\n> Hi\n\n**Ana**\n\n> Bye\n";
        assert_eq!(
            turns(note.as_bytes()),
            [["Hello\nthere", "Hi"], ["Bye", LAST]]
        );
    }
}
