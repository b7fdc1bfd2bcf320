//! Memory of the terminal and the service: vaults, facts in the database, tools, and automatic
//! recall.

mod conversation_notes; // conversations as notes
mod database; // tools and automatic recall of people without a vault
mod database_memory; // the memory in the database
mod error; // conversion of errors
mod instruction; // instruction files and facts in every turn
mod slash_commands; // slash commands
mod tasks; // the store of tasks: database or notes
mod tools; // memory tools of a model
mod undo; // the undo command in messages
mod user_memory; // the user's own operations: list, remember, forget, undo
mod vaults; // vaults of several users

pub(crate) use database::{DatabaseRecall, tools_in_database};
pub(crate) use database_memory::in_database;
pub(crate) use instruction::UserInstruction;
pub(crate) use slash_commands::{ARGUMENT, fact_typed};
pub(crate) use tasks::{own_task_store, task_store};
pub(crate) use tools::{NAMES as TOOL_NAMES, brief, tools};
pub(crate) use user_memory::{UserMemory, line, no_vault, why_lines};
pub(crate) use vaults::{OwnVault, vaults};

/// Notice for a weak model with a vault, which gets few memory tools.
pub(crate) const SMALL: &str = "this model is small: it keeps facts, finds them and what stands in notes, forgets one after a yes, and adds \
                                to today's note; other notes it cannot write (another model: -m MODEL)";
/// The same without a vault.
pub(crate) const SMALL_WITHOUT_VAULT: &str = "this model is small: it keeps tasks and facts about you, in the database (a vault: adjutant init; another \
                                              model: -m MODEL)";
