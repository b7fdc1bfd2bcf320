//! `[vault]` and `[memory]`: a person's folder of notes, and what is remembered in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adjutant_memory::{Daily, LOCALES, MemoryOptions};

use super::Values;
use super::key::{Key, Kind, Value, key};
use super::layers::home;

/// The folder of notes.
pub(crate) const VAULT: &str = "vault.path";

/// The language that the notes are named in.
const AUTO: &str = "auto";
/// Values of `vault.locale`.
const LANGUAGES: [&str; LOCALES.len() + 1] = {
    let mut words = [AUTO; LOCALES.len() + 1];
    let mut at = 0;
    while at < LOCALES.len() {
        words[at + 1] = LOCALES[at];
        at += 1;
    }
    words
};

/// Values of `vault.tasks`.
const DATABASE: &str = "database";
const NOTES: &str = "notes";
/// The note that new tasks go to. One note, not that of the day: so they are found, and no daily
/// note is made for a task.
const TASKS_NOTE: &str = "Tasks.md";

/// What the seeds call the section of the vault.
pub(super) const OLD_SECTION: &str = "obsidian";

/// What the two sections say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MemorySettings {
    /// The folder of notes, if there is one.
    pub(crate) vault: Option<PathBuf>,
    /// The user whose vault it is where several can ask: see `serve`.
    pub(crate) owner: Option<String>,
    /// Other users of the service with a vault of their own, and where it is.
    pub(crate) users: BTreeMap<String, PathBuf>,
    /// True if facts about the users of the service that have no vault are kept in the database.
    /// Default: true.
    pub(crate) in_database: bool,
    /// True if tasks are lines of the vault's notes, not of the database.
    pub(crate) tasks_in_notes: bool,
    /// The note that new tasks go to then.
    pub(crate) tasks_note: String,
    /// Whether a conversation is written into the vault when it ends.
    pub(crate) log_conversations: bool,
    /// True if a model is told facts that it did not ask for.
    pub(crate) told: bool,
    pub(crate) options: MemoryOptions,
}

/// The settings of the sections. None of them may stand in a project's file: they say which of a
/// person's files are read and written.
pub(super) fn keys() -> Vec<Key> {
    vec![
        Key {
            alias: Some("vaultPath"),
            unset: "none: nothing is remembered in the terminal",
            ..key(VAULT, Kind::Path)
        },
        Key {
            quiet: true,
            unset: "the person of this machine",
            ..key("vault.owner", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "nobody else has a vault",
            ..key("vault.users", Kind::Paths)
        },
        Key {
            default: |_| Some(Value::Text("auto".to_owned())),
            ..key("vault.daily", Kind::Text)
        },
        Key {
            default: |_| Some(Value::Text(AUTO.to_owned())),
            ..key("vault.locale", Kind::Word(&LANGUAGES))
        },
        Key {
            default: |_| Some(Value::Truth(false)),
            ..key("vault.log_conversations", Kind::Truth)
        },
        Key {
            default: |_| Some(Value::Text(MemoryOptions::default().conversations)),
            ..key("vault.conversations", Kind::Text)
        },
        Key {
            default: |_| Some(Value::Text(DATABASE.to_owned())),
            ..key("vault.tasks", Kind::Word(&[DATABASE, NOTES]))
        },
        Key {
            default: |_| Some(Value::Text(TASKS_NOTE.to_owned())),
            ..key("vault.tasks_note", Kind::Text)
        },
        Key {
            alias: Some("memoryPath"),
            default: |_| Some(Value::Text(MemoryOptions::default().path)),
            ..key("memory.path", Kind::Text)
        },
        Key {
            default: |_| Some(Value::Integer(MemoryOptions::default().max_facts as u64)),
            ..key(
                "memory.max_facts",
                Kind::Integer {
                    min: 1,
                    max: 10_000,
                },
            )
        },
        Key {
            default: |_| Some(Value::Truth(true)),
            ..key("memory.database", Kind::Truth)
        },
        Key {
            default: |_| Some(Value::Truth(true)),
            ..key("memory.told", Kind::Truth)
        },
        Key {
            default: |_| Some(Value::Text(MemoryOptions::default().heading)),
            ..key("memory.heading", Kind::Text)
        },
    ]
}

/// What the sections say.
pub(super) fn memory(values: &Values) -> MemorySettings {
    let usual = MemoryOptions::default();
    let path = values
        .text("memory.path")
        .map(|path| match Path::new(&path).starts_with("~") {
            true => home(PathBuf::from(path)).to_string_lossy().into_owned(),
            false => path,
        });
    let heading = values
        .text("memory.heading")
        .map(|text| text.trim_start_matches(['#', ' ']).to_owned());
    let Ok(daily) = values
        .text("vault.daily")
        .unwrap_or_default()
        .parse::<Daily>();
    MemorySettings {
        vault: values.path(VAULT),
        owner: values.text("vault.owner"),
        users: values
            .paths("vault.users")
            .into_iter()
            .map(|(user, path)| (user, home(path)))
            .collect(),
        in_database: values.truth("memory.database"),
        tasks_in_notes: values.text("vault.tasks").as_deref() == Some(NOTES),
        tasks_note: values
            .text("vault.tasks_note")
            .unwrap_or_else(|| TASKS_NOTE.to_owned()),
        log_conversations: values.truth("vault.log_conversations"),
        told: values.truth("memory.told"),
        options: MemoryOptions {
            path: path.unwrap_or(usual.path),
            max_facts: values
                .integer("memory.max_facts")
                .map_or(usual.max_facts, |max| max as usize),
            daily,
            locale: values
                .text("vault.locale")
                .and_then(|code| code.parse().ok()),
            heading: heading
                .filter(|text| !text.is_empty())
                .unwrap_or(usual.heading),
            conversations: values
                .text("vault.conversations")
                .unwrap_or(usual.conversations),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::layers::{self, Owner};

    /// What a file says, by the names of the settings.
    fn of_file(text: &str) -> Vec<(String, String)> {
        let parsed = layers::toml(text, Path::new("/c/config.toml"), Owner::User).unwrap();
        parsed
            .layer
            .iter()
            .map(|(key, value, _)| (key.name.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn the_seeds_spellings_count_at_the_top_and_in_their_sections() {
        let vault = [("vault.path".to_owned(), "/c/Notes".to_owned())];
        for text in [
            "vaultPath = \"Notes\"",
            "[vault]\nvaultPath = \"Notes\"",
            "[obsidian]\nvaultPath = \"Notes\"",
        ] {
            assert_eq!(of_file(text), vault, "{text}");
        }
        assert_eq!(
            of_file("memoryPath = \"m.md\"\n"),
            [("memory.path".to_owned(), "m.md".to_owned())]
        );
        assert_eq!(of_file("contextSize = 4096\n")[0].0, "ollama.context_size");
        assert_eq!(
            of_file("[ollama]\ncontextSize = 4096\n")[0].0,
            "ollama.context_size"
        );
        assert_eq!(of_file("[vault]\nlog_conversations = true\n")[0].1, "true");
    }

    #[test]
    fn a_project_says_nothing_about_a_persons_notes() {
        let text = "vaultPath = \"/x\"\n[memory]\npath = \"y\"\n";
        let parsed = layers::toml(text, Path::new("/p/adjutant.toml"), Owner::Project).unwrap();
        assert!(parsed.layer.is_empty());
        assert_eq!(parsed.unused.len(), 2);
    }
}
