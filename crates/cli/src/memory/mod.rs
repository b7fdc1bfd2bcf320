//! The memory in the terminal and the service: vaults, opened as the settings say, facts in the
//! database, and what can be done with them.

mod command; // `adjutant memory`
mod database; // facts of those who have no vault
mod desk; // what a person does: list, remember, forget, undo
mod error; // why not, in a person's words
mod log; // conversations as notes
mod slash; // the same in a conversation
mod tasks; // where the tasks are
mod told; // what a model is told of it, every turn
mod tools; // what a model may do with it
mod undo; // the way back, in words
mod vaults; // whose vault is where

pub(crate) use command::{Command, run};
pub(crate) use database::{ToldOfEach, in_database, tools_in_database};
pub(crate) use desk::{Desk, line, why_lines};
pub(crate) use slash::{ARGUMENT, fact_typed};
pub(crate) use tasks::{own_task_store, task_store};
pub(crate) use told::Told;
pub(crate) use tools::{NAMES as TOOL_NAMES, brief, tools};
pub(crate) use vaults::{OwnVault, vaults};

/// What is told of a model that cannot be trusted with free tool calls.
pub(crate) const SMALL: &str = "this model is small: it keeps facts, finds them and what stands in notes, forgets one after a yes, and adds \
                                to today's note, in English; other notes it cannot write (another model: -m MODEL)";
