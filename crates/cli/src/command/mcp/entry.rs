//! A server's entry in the configuration.

use toml_edit::{Array, InlineTable, Item, Table, Value as TomlValue};

/// A server as its table in the file has it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Entry {
    pub(super) command: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) bearer_token_env: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) disabled: bool,
}

impl Entry {
    /// Returns true if a value may be a secret that stands in the file itself.
    pub(super) fn has_secret(&self) -> bool {
        let values = self.env.iter().chain(&self.headers);
        values
            .into_iter()
            .any(|(_, value)| !value.starts_with("${"))
    }

    /// Returns the table for the file.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        let mut put = |key: &str, value: TomlValue| {
            table.insert(key, Item::Value(value));
        };
        if !self.command.is_empty() {
            let words: Array = self.command.iter().map(String::as_str).collect();
            put("command", words.into());
        }
        for (key, text) in [
            ("url", &self.url),
            ("bearer_token_env", &self.bearer_token_env),
            ("cwd", &self.cwd),
        ] {
            if let Some(text) = text {
                put(key, text.as_str().into());
            }
        }
        for (key, texts) in [("env", &self.env), ("headers", &self.headers)] {
            if !texts.is_empty() {
                let texts = texts
                    .iter()
                    .map(|(name, text)| (name.as_str(), text.as_str()));
                put(key, texts.collect::<InlineTable>().into());
            }
        }
        if self.disabled {
            put("disabled", true.into());
        }
        table
    }
}
