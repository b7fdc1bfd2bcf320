//! The tools over a memory, one file each.
//!
//! A model can remember, read and search, add to notes, and forget a fact after confirmation. It
//! cannot overwrite or delete notes, or leave the vault.

mod brief; // fewer and shorter tools, for weak models
mod forget;
mod list_notes;
mod operation; // the parts of `Tool` that all of them share
mod property; // arguments that several tools have
mod read_note;
mod recall;
mod remember;
mod search_notes;
mod write_daily_note;
mod write_note;

use std::sync::Arc;

use adjutant_core::Tool;

use self::operation::tool;
use self::recall::Sources;
use crate::{DatabaseMemory, Memories, Memory};

pub use brief::{brief_fact_tools, brief_tools};

/// Returns all tools over one memory, in the order models see them; those over notes only if it has
/// a vault. They refuse every user but the memory's owner.
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use adjutant_core::UserId;
/// use adjutant_memory::memory_tools;
/// # use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (vault, options) = (Vault::open(folder.path())?, MemoryOptions::default());
/// # let (ledger, clock) = (Arc::new(InMemoryLedger::new()), Arc::new(jiff::Zoned::now));
/// # let memory = Memory::new(vault, UserId::local(), options, ledger, clock)?;
/// let tools = memory_tools(&memory);
/// let names: Vec<&str> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
/// assert_eq!(names[..4], ["remember", "recall", "forget", "write_daily_note"]);
/// # Ok(()) }
/// ```
#[must_use]
pub fn memory_tools(memory: &Memory) -> Vec<Arc<dyn Tool>> {
    let notes = memory.notes();
    let sources = Sources {
        notes: notes.is_some(),
        conversations: memory.conversations().is_some(),
    };
    let mut tools = tools_over_facts(&Memories::single(memory.clone()), sources);
    if let Some(notes) = notes {
        tools.push(tool(write_daily_note::WriteDailyNote(notes.clone())));
        tools.push(tool(write_note::WriteNote(notes.clone())));
        tools.push(tool(read_note::ReadNote(notes.clone())));
        tools.push(tool(search_notes::SearchNotes(notes.clone())));
        tools.push(tool(list_notes::ListNotes(notes)));
    }
    tools
}

/// Returns the tools over the facts of a database. Each works in the memory of the user whose turn
/// runs; no argument of a model can name another.
#[must_use]
pub fn fact_tools(memory: &DatabaseMemory) -> Vec<Arc<dyn Tool>> {
    let sources = Sources {
        notes: false,
        conversations: memory.has_conversations(),
    };
    tools_over_facts(&Memories::default().with_others(memory.clone()), sources)
}

fn tools_over_facts(memories: &Memories, sources: Sources) -> Vec<Arc<dyn Tool>> {
    let memories = || memories.clone();
    vec![
        tool(remember::Remember(memories())),
        tool(recall::Recall {
            memories: memories(),
            sources,
        }),
        tool(forget::Forget(memories())),
    ]
}

/// Returns those of [`memory_tools`] that change nothing: for a conversation that must leave no
/// trace.
#[must_use]
pub fn reading_tools(memory: &Memory) -> Vec<Arc<dyn Tool>> {
    let mut tools = memory_tools(memory);
    tools.retain(|tool| tool.definition().annotations.read_only);
    tools
}
