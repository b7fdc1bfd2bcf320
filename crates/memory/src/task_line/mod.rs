//! A task as one line of markdown, as the plugin Tasks of Obsidian reads it: `- [ ] Call mom #family
//! 🔁 every week 📅 2026-11-30`.
//!
//! Nothing here touches a file. A line is read into places and changed by replacing some of them,
//! so what nobody asked to change keeps its bytes. The plugin writes a line anew from what it has
//! read; where that would differ (spaces, the order of fields, a date that does not exist), the
//! bytes are kept here.
//!
//! Source: `obsidian-tasks-group/obsidian-tasks`, `TaskRegularExpressions`,
//! `DefaultTaskSerializer`, `DataviewTaskSerializer`, `Recurrence`, `Occurrence`, `OnCompletion`
//! and `Task` (read 2026-11-27).

mod edit; // other words, another date, done
mod field; // 📅 2026-11-30, [due:: 2026-11-30]
mod read; // a line in places
mod recurrence; // every 2 weeks when done
#[cfg(test)]
mod tests;

pub(crate) use edit::{Style, TaskEdit, complete, edit, new_line, undated};
pub(crate) use field::{Kind, TaskFormat};
pub(crate) use read::TaskLine;
