//! Daily notes, in the folder and under the names that the vault's own settings give them.

mod entry; // an entry of the log, and its position
mod locale; // names of months and days
mod locale_guess; // the language of existing notes
pub(crate) mod moment; // Obsidian's date formats
mod periodic; // settings of the plugin Periodic Notes
mod settings; // folder, format, template
mod source; // the settings that are in force
mod template; // templates of new notes

pub(crate) use entry::{Entry, EntryPlace, place_entry};
pub use locale::{LOCALES, Locale, UnknownLocale};
pub use moment::{format_moment, format_moment_in};
pub use settings::{Daily, DailySettings};
pub use source::{DailyNotes, DailySource};
pub(crate) use template::{has_code, render};
