//! Changes to the user's file that leave the rest of it as it is: comments, order and blanks stay.

use std::path::{Path, PathBuf};

use adjutant_core::nearest;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value as TomlValue};

use super::files::{read_file, write_keeping_permissions, write_private};
use super::key::Key;
use super::layer::Assignment;
use super::mcp::sent_variables;
use super::toml_file::{self, MCP_SECTION, Owner, did_you_mean};
use super::value::{Kind, Value};
use super::{find_key, names};
use crate::error::CliError;

/// The user's file with changes that are not written yet.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    document: DocumentMut,
    /// True if a secret was set, which only the file's owner may read.
    secret: bool,
}

/// Finds a setting by its name or its other spelling.
///
/// # Errors
/// There is no such setting; the error names the nearest one.
pub(crate) fn find_setting(name: &str) -> Result<&'static Key, CliError> {
    let (section, plain) = name.split_once('.').unwrap_or(("", name));
    if let Some(key) = find_key(section, plain) {
        return Ok(key);
    }
    let error = CliError::configuration(format!("there is no setting {name:?}"));
    if name.starts_with("mcp.") {
        return Err(error
            .because("servers are tables of their own")
            .or_try("adjutant mcp add NAME -- COMMAND, or adjutant mcp add NAME URL")
            .or_try("adjutant config edit"));
    }
    let near = nearest(name, names());
    Err(did_you_mean(
        error,
        near,
        "adjutant config show lists every setting",
    ))
}

impl Draft {
    /// Opens the file; one that does not exist is empty.
    ///
    /// # Errors
    /// The file cannot be read, or has a mistake already, so that the result of a change could not
    /// be checked.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let text = read_file(path, false)?.unwrap_or_default();
        // Two parsers: `toml_edit` keeps comments and order, and ours knows the settings.
        toml_file::parse(&text, path, Owner::User)?;
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            CliError::configuration(format!("{} is not TOML", path.display()))
                .because(error.message().to_owned())
        })?;
        Ok(Self {
            path: path.to_owned(),
            document,
            secret: false,
        })
    }

    /// Returns the setting as the file has it.
    ///
    /// # Errors
    /// As [`Draft::open`].
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Assignment>, CliError> {
        let parsed = toml_file::parse(&self.to_text(), &self.path, Owner::User)?;
        let mut layer = parsed.layer.into_iter();
        Ok(layer.find(|set| set.key.name == key.name))
    }

    /// Sets a value, given as text as a variable has it.
    ///
    /// # Errors
    /// The value does not fit the setting.
    pub(crate) fn set(&mut self, key: &'static Key, text: &str) -> Result<(), CliError> {
        let value = key
            .kind
            .parse(text, false)
            .ok_or_else(|| CliError::usage(key.must(&key.name, &format!("{text:?}"))))?;
        self.secret |= matches!(key.kind, Kind::Secret);
        let value = to_toml(&value, text);
        // An older spelling stays as it is: two spellings of one setting would be an error.
        let (section, name) = self.position(key).unwrap_or_else(|| {
            let (section, name) = key.section_and_name();
            (section.to_owned(), name.to_owned())
        });
        if !section.is_empty() {
            self.document
                .entry(&section)
                .or_insert_with(|| Item::Table(Table::new()));
        }
        let file = self.path.display().to_string();
        let table = self
            .table(&section)
            .ok_or_else(|| CliError::configuration(format!("{section} is no table in {file}")))?;
        set_value(table.entry(&name).or_insert(Item::None), value);
        Ok(())
    }

    /// Removes a value. Returns false if the file did not have it.
    pub(crate) fn unset(&mut self, key: &'static Key) -> bool {
        let Some((section, name)) = self.position(key) else {
            return false;
        };
        self.table(&section)
            .is_some_and(|table| table.remove(&name).is_some())
    }

    /// Returns true if the file has a server of this name.
    pub(crate) fn has_server(&mut self, name: &str) -> bool {
        self.servers()
            .is_some_and(|servers| servers.contains_key(name))
    }

    /// Adds the table of a server, `[mcp.servers.NAME]`. `secret`: only the file's owner may read
    /// it from now on.
    ///
    /// # Errors
    /// The table has a mistake; `mcp` or `mcp.servers` is no table.
    pub(crate) fn add_server(
        &mut self,
        name: &str,
        table: Table,
        secret: bool,
    ) -> Result<(), CliError> {
        let file = self.path.display().to_string();
        let no_table =
            |name: &str| CliError::configuration(format!("{name} is no table in {file}"));
        // Without headers of their own: only `[mcp.servers.NAME]` is written.
        let implicit = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let mcp = self.document.entry(MCP_SECTION).or_insert_with(implicit);
        let mcp = mcp
            .as_table_like_mut()
            .ok_or_else(|| no_table(MCP_SECTION))?;
        let servers = mcp.entry("servers").or_insert_with(implicit);
        let servers = servers
            .as_table_like_mut()
            .ok_or_else(|| no_table("mcp.servers"))?;
        servers.insert(name, Item::Table(table));
        self.secret |= secret;
        sent_variables(&self.to_text(), &self.path).map(drop)
    }

    /// Removes a server's table. Returns false if the file did not have it.
    pub(crate) fn remove_server(&mut self, name: &str) -> bool {
        self.servers()
            .is_some_and(|servers| servers.remove(name).is_some())
    }

    fn servers(&mut self) -> Option<&mut dyn TableLike> {
        let mcp = self.document.get_mut(MCP_SECTION)?.as_table_like_mut()?;
        mcp.get_mut("servers")?.as_table_like_mut()
    }

    /// Finds the section and the name under which the file has a setting: in its section, in the
    /// section that older programs have, or at the top, where its other spelling counts too. The
    /// section is empty for the top.
    fn position(&self, key: &Key) -> Option<(String, String)> {
        let is_key = |section: &str, name: &str| {
            find_key(section, name).is_some_and(|found| found.name == key.name)
        };
        self.document.iter().find_map(|(name, item)| {
            if is_key("", name) {
                return Some((String::new(), name.to_owned()));
            }
            let mut inner = item.as_table_like()?.iter().map(|(inner, _)| inner);
            let inner = inner.find(|inner| is_key(name, inner))?;
            Some((name.to_owned(), inner.to_owned()))
        })
    }

    /// Returns a section's table. `None`: there is no such section, or it is no table.
    fn table(&mut self, section: &str) -> Option<&mut dyn TableLike> {
        match section {
            "" => Some(self.document.as_table_mut()),
            section => self.document.get_mut(section)?.as_table_like_mut(),
        }
    }

    /// Returns the file's text with the changes.
    pub(crate) fn to_text(&self) -> String {
        self.document.to_string()
    }

    /// Writes the file whole or not at all, with the permissions it had.
    ///
    /// # Errors
    /// The result has a mistake, or cannot be written; the file is as it was.
    pub(crate) fn write(&self) -> Result<(), CliError> {
        let text = self.to_text();
        toml_file::parse(&text, &self.path, Owner::User)?;
        // A file that others could read so far must not be readable once it has a secret.
        if self.secret {
            write_private(&self.path, &text)
        } else {
            write_keeping_permissions(&self.path, &text)
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Sets a value; a comment behind the old one stays.
pub(super) fn set_value(item: &mut Item, value: TomlValue) {
    match item.as_value_mut() {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => *item = Item::Value(value),
    }
}

/// Converts a value to TOML. What is text there keeps the text that was typed: `2m` does not become
/// `120s`.
fn to_toml(value: &Value, text: &str) -> TomlValue {
    match value {
        Value::List(names) => names.iter().map(String::as_str).collect::<Array>().into(),
        Value::Paths(paths) => {
            let pairs = paths
                .iter()
                .map(|(name, path)| (name.as_str(), path.to_string_lossy().into_owned()));
            pairs.collect::<InlineTable>().into()
        }
        // TOML has signed integers only. No setting goes so far, but the text would be refused.
        Value::Number(_) | Value::Integer(_) | Value::Boolean(_) => {
            let parsed = value.to_string().parse();
            parsed.unwrap_or_else(|_| text.trim().into())
        }
        Value::Text(_)
        | Value::Path(_)
        | Value::Duration(_)
        | Value::Texts(_)
        | Value::Database(_)
        | Value::Secret(_) => text.trim().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::KEYS;
    use super::*;

    const FILE: &str = "\
# mine
model = \"demo\" # for now

[llm]
# warmer
temperature = 0.5
[agent]
deny = [ 'a', ]
";

    struct UserFile(tempfile::TempDir);

    impl UserFile {
        fn new(text: &str) -> Self {
            let file = Self(tempfile::tempdir().unwrap());
            std::fs::write(file.path(), text).unwrap();
            file
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("config.toml")
        }

        fn set(&self, name: &str, text: &str) -> Result<String, CliError> {
            let mut draft = Draft::open(&self.path())?;
            draft.set(find_setting(name)?, text)?;
            draft.write()?;
            Ok(std::fs::read_to_string(self.path()).unwrap())
        }
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        let changed = |name, text| UserFile::new(FILE).set(name, text).unwrap();
        assert_eq!(changed("model", "gemini"), FILE.replace("demo", "gemini"));
        assert_eq!(changed("llm.temperature", "1"), FILE.replace("0.5", "1.0"));
        assert_eq!(
            changed("agent.deny", "x,y"),
            FILE.replace("[ 'a', ]", "[\"x\", \"y\"]")
        );
        assert_eq!(
            changed("llm.timeout", "9s"),
            FILE.replace("0.5\n", "0.5\ntimeout = \"9s\"\n")
        );
        assert_eq!(
            changed("store.path", "/x y/\"z"),
            format!("{FILE}\n[store]\npath = '/x y/\"z'\n")
        );
    }

    #[test]
    fn every_setting_can_be_set_read_again_and_taken_out() {
        for key in KEYS.iter() {
            let text = match key.kind {
                Kind::Number { max, .. } => format!("{max:?}"),
                Kind::Integer { max, .. } => max.to_string(),
                Kind::Duration { max, .. } => format!("{}s", max.as_secs()),
                Kind::Boolean => "true".to_owned(),
                Kind::OneOf(names) => names[0].to_owned(),
                Kind::Address => "127.0.0.1:1".to_owned(),
                Kind::Database => "postgres://h/d".to_owned(),
                Kind::DurationOrForever => "forever".to_owned(),
                Kind::Paths => "anna=/some/folder".to_owned(),
                Kind::Text | Kind::Path | Kind::List | Kind::Texts | Kind::Secret => {
                    "word".to_owned()
                }
            };
            let file = UserFile::new("");
            file.set(&key.name, &text).unwrap();
            let mut draft = Draft::open(&file.path()).unwrap();
            assert!(draft.get(key).unwrap().is_some(), "{}", key.name);
            assert!(draft.unset(key) && !draft.unset(key), "{}", key.name);
        }
    }

    #[test]
    fn another_spelling_is_changed_where_it_stands() {
        for (file, name) in [
            ("vaultPath = \"a\"\n", "vault.path"),
            ("[obsidian]\nvaultPath = \"a\"\n", "vault.path"),
            ("[ollama]\ncontextSize = 700\n", "ollama.context_size"),
            ("vault = { path = \"a\" }\n", "vaultPath"),
        ] {
            let text = UserFile::new(file).set(name, "999").unwrap();
            assert_eq!(
                text,
                file.replace("700", "999").replace("\"a\"", "\"999\""),
                "{name}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_or_is_wrong_already_changes_nothing() {
        let file = UserFile::new(FILE);
        assert_eq!(file.set("llm.temperature", "3").unwrap_err().exit as u8, 2);
        assert!(
            file.set("llm.temprature", "1")
                .unwrap_err()
                .cause
                .unwrap()
                .contains("llm.temperature")
        );
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), FILE);
        assert_eq!(
            UserFile::new("modle = 1\n")
                .set("model", "demo")
                .unwrap_err()
                .exit as u8,
            3
        );
    }
}
