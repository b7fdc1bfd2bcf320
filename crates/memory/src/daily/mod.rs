//! Daily notes, where the vault's own settings say they are.

mod entry; // one line of the log, and where it goes
mod followed; // whose settings
mod guess; // which language
mod locale; // names of months and days
pub(crate) mod moment; // Obsidian's date formats
mod periodic; // settings of the plugin Periodic Notes
mod settings; // folder, format, template
mod template; // what a new note begins with

pub(crate) use entry::{Entry, Placed, place};
pub use followed::{DailyNotes, DailySource};
pub use locale::{LOCALES, Locale, UnknownLocale};
pub use moment::{format_moment, format_moment_in};
pub use settings::{Daily, DailySettings};
pub(crate) use template::{has_code, render};
