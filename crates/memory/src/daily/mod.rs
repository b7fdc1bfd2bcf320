//! Daily notes, where the vault's own settings say they are.

mod entry; // one line of the log, and where it goes
pub(crate) mod moment; // Obsidian's date formats
mod settings; // .obsidian/daily-notes.json
mod template; // what a new note begins with

pub(crate) use entry::{Entry, Placed, place};
pub use moment::format_moment;
pub(crate) use settings::read;
pub use settings::{Daily, DailySettings};
pub(crate) use template::render;
