//! `[vault]` and `[memory]`: the user's folder of notes, and facts that are remembered.

use std::collections::BTreeMap;
use std::path::PathBuf;

use adjutant_memory::{Daily, Locale, MemoryOptions};

use super::dirs::expand_home;
use super::section::settings;
use super::value::choices;

/// The place where tasks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskStorage {
    Database,
    /// Lines of the vault's notes.
    Notes,
}

choices! {
    TaskStorage { "database" => Database, "notes" => Notes }
}

// No setting here may stand in a project's file that is not trusted: they say which of the user's
// files are read and written.
settings! {
    /// `[vault]` and `[memory]`.
    #[derive(Debug, Clone)]
    pub(crate) struct MemorySettings {
        /// The vault: a folder of Markdown notes.
        #[setting("vault.path", alias = "vaultPath",
            unset = "none: facts are kept in the database, and there are no notes")]
        pub(crate) vault: Option<PathBuf>,
        /// The user of the service whose vault that is.
        #[setting("vault.owner", quiet, unset = "the user of this machine")]
        pub(crate) owner: Option<String>,
        /// Other users of the service that have a vault, and its folder.
        #[setting("vault.users", quiet, unset = "no other user has a vault")]
        pub(crate) users: BTreeMap<String, PathBuf>,
        /// Notes that are kept from the assistant, as patterns of `.gitignore`; Obsidian's excluded
        /// files and notes with `adjutant: false` are in any case.
        #[setting("vault.exclude", unset = "none but those")]
        pub(crate) exclude: Vec<String>,
        /// The path of a daily note as a format of moment.js. `auto`: as the vault's own settings
        /// have it.
        #[setting("vault.daily", default = "auto")]
        pub(crate) daily: Daily,
        /// The language of months and days in daily notes. `auto`: the one that the notes there are
        /// named in, else English.
        #[setting("vault.locale", default = "auto")]
        pub(crate) locale: Option<Locale>,
        /// True if a conversation is written into the vault when it ends.
        #[setting("vault.log_conversations", default = false)]
        pub(crate) log_conversations: bool,
        /// The folder of the notes of conversations, in the vault.
        #[setting("vault.conversations", default = MemoryOptions::default().conversations)]
        pub(crate) conversations: String,
        /// The place where tasks are stored: the database, or lines of the vault's notes.
        #[setting("vault.tasks", default = "database")]
        pub(crate) tasks: TaskStorage,
        /// The note that new tasks are added to, if they are lines of notes.
        ///
        /// One note and not that of the day: so they are found again, and no daily note is made
        /// only for a task.
        #[setting("vault.tasks_note", default = "Tasks.md")]
        pub(crate) tasks_note: String,
        /// The note with the facts, in the vault.
        #[setting("memory.path", alias = "memoryPath", default = MemoryOptions::default().path)]
        pub(crate) facts_path: String,
        /// Facts that are kept at most; with so many, no new one is accepted.
        #[setting("memory.max_facts", range = 1..=10_000,
            default = MemoryOptions::default().max_facts as u64)]
        pub(crate) max_facts: u32,
        /// True if facts about people without a vault are kept in the database.
        #[setting("memory.database", default = true)]
        pub(crate) in_database: bool,
        /// True if a model is given facts that it did not ask for (automatic recall).
        #[setting("memory.told", default = true)]
        pub(crate) automatic_recall: bool,
        /// The heading of daily notes under which entries are written.
        #[setting("memory.heading", default = MemoryOptions::default().heading)]
        pub(crate) heading: String,
    }
}

impl MemorySettings {
    /// Returns the options of a vault's memory.
    pub(crate) fn options(&self) -> MemoryOptions {
        let path = expand_home(PathBuf::from(&self.facts_path));
        let heading = self.heading.trim_start_matches(['#', ' ']);
        let default = MemoryOptions::default();
        MemoryOptions {
            path: path.to_string_lossy().into_owned(),
            max_facts: self.max_facts as usize,
            daily: self.daily.clone(),
            locale: self.locale,
            // A heading of `#` alone has no text to look for.
            heading: if heading.is_empty() {
                default.heading
            } else {
                heading.to_owned()
            },
            conversations: self.conversations.clone(),
        }
    }

    /// Replaces all that the user has set about the vault: another one, in a folder, with default
    /// options and its tasks in the database.
    pub(crate) fn use_plain_vault(&mut self, folder: PathBuf) {
        let options = MemoryOptions::default();
        *self = Self {
            vault: Some(folder),
            exclude: Vec::new(),
            daily: options.daily,
            locale: options.locale,
            log_conversations: false,
            conversations: options.conversations,
            tasks: TaskStorage::Database,
            facts_path: options.path,
            max_facts: u32::try_from(options.max_facts).unwrap_or(u32::MAX),
            heading: options.heading,
            ..self.clone()
        };
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::toml_file::{self, Owner};

    /// Returns names and values of the settings in a file.
    fn settings_of(text: &str) -> Vec<(String, String)> {
        let parsed = toml_file::parse(text, Path::new("/c/config.toml"), Owner::User).unwrap();
        parsed
            .layer
            .iter()
            .map(|set| (set.key.name.to_string(), set.value.to_string()))
            .collect()
    }

    #[test]
    fn older_spellings_count_at_the_top_and_in_their_sections() {
        let vault = [("vault.path".to_owned(), "/c/Notes".to_owned())];
        for text in [
            "vaultPath = \"Notes\"",
            "[vault]\nvaultPath = \"Notes\"",
            "[obsidian]\nvaultPath = \"Notes\"",
        ] {
            assert_eq!(settings_of(text), vault, "{text}");
        }
        assert_eq!(
            settings_of("memoryPath = \"m.md\"\n"),
            [("memory.path".to_owned(), "m.md".to_owned())]
        );
        assert_eq!(
            settings_of("contextSize = 4096\n")[0].0,
            "ollama.context_size"
        );
        assert_eq!(
            settings_of("[ollama]\ncontextSize = 4096\n")[0].0,
            "ollama.context_size"
        );
        assert_eq!(
            settings_of("[vault]\nlog_conversations = true\n")[0].1,
            "true"
        );
    }

    #[test]
    fn a_project_sets_nothing_about_the_users_notes() {
        let text = "vaultPath = \"/x\"\n[memory]\npath = \"y\"\n";
        let parsed = toml_file::parse(text, Path::new("/p/adjutant.toml"), Owner::Project).unwrap();
        assert!(parsed.layer.is_empty());
        assert_eq!(parsed.unused.len(), 2);
    }
}
