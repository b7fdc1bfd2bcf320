//! A task as one line of Markdown, as Obsidian's plugin Tasks reads it: `- [ ] Call mom #family 🔁
//! every week 📅 2026-11-30`.
//!
//! Nothing here reads or writes a file. A line is parsed into ranges and changed by replacing some
//! of them, so the other bytes stay. The plugin itself writes a line anew from its parsed parts;
//! where that would differ (spaces, the order of fields, a date that does not exist), the bytes are
//! kept here.
//!
//! Source: `obsidian-tasks-group/obsidian-tasks`, `TaskRegularExpressions`,
//! `DefaultTaskSerializer`, `DataviewTaskSerializer`, `Recurrence`, `Occurrence`, `OnCompletion`
//! and `Task` (read 2026-11-27).

mod edit; // edit and complete a line
mod field; // fields such as 📅 2026-11-30, [due:: 2026-11-30]
mod parse; // parse a line into ranges
mod recurrence; // rules such as every 2 weeks when done
#[cfg(test)]
mod tests;

pub(crate) use edit::{Style, TaskEdit, complete, edit, new_line, without_closing_dates};
pub(crate) use field::{Kind, TaskFormat};
pub(crate) use parse::TaskLine;
