//! Changing the person's file without touching what else stands in it: comments, order and blanks
//! stay.

use std::path::{Path, PathBuf};

use adjutant_core::nearest;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value as TomlValue};

use super::key::{KEYS, Key, Kind, Value};
use super::layers::{self, Owner};
use super::write::{write_kept, write_private};
use super::{memory, read};
use crate::error::CliError;

/// The person's file, as it is and as it is going to be.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    document: DocumentMut,
    /// Whether it holds something that nobody else may read.
    secret: bool,
}

/// The setting of that name, its seed's spelling counts too.
///
/// # Errors
/// There is none; the nearest is named.
pub(crate) fn setting(name: &str) -> Result<&'static Key, CliError> {
    let (section, plain) = name.split_once('.').unwrap_or(("", name));
    if let Some(key) = layers::find(section, plain) {
        return Ok(key);
    }
    let error = CliError::configuration(format!("there is no setting {name:?}"));
    if name.starts_with("mcp.") {
        return Err(error
            .because("servers are tables of their own")
            .or_try("adjutant config edit"));
    }
    Err(
        match nearest(name, KEYS.iter().map(|key| key.name.as_ref())) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.or_try("adjutant config show lists every setting"),
        },
    )
}

impl Draft {
    /// Opens the file; one that is not there is empty.
    ///
    /// # Errors
    /// It cannot be read, or is wrong already: a change would not be a change to something that is
    /// known.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let text = read(path, false)?.unwrap_or_default();
        layers::toml(&text, path, Owner::User)?;
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

    /// What the file says about a setting, and in which line.
    ///
    /// # Errors
    /// As [`Draft::open`].
    pub(crate) fn said(&self, key: &Key) -> Result<Option<(Value, usize)>, CliError> {
        let text = self.document.to_string();
        let parsed = layers::toml(&text, &self.path, Owner::User)?;
        Ok(parsed
            .layer
            .into_iter()
            .find(|(known, ..)| known.name == key.name)
            .map(|(_, value, origin)| {
                let layers::Origin::File { line, .. } = origin else {
                    return (value, 0);
                };
                (value, line)
            }))
    }

    /// Sets a value, given in words as a variable has it.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn set(&mut self, key: &'static Key, text: &str) -> Result<(), CliError> {
        let value = key.kind.read(text, false).ok_or_else(|| {
            let shown = format!("{text:?}");
            CliError::usage(format!(
                "{} must be {}, not {}",
                key.name,
                key.kind.expected(),
                key.kind.shown(&shown)
            ))
        })?;
        self.secret |= matches!(key.kind, Kind::Secret);
        let value = in_toml(&value, text);
        let (section, name) = key.place();
        // Where it stands already, under whichever name.
        let old = [Some(name), key.alias]
            .into_iter()
            .flatten()
            .find_map(|name| self.place(section, name));
        let slot = match old {
            Some((section, name)) => self.slot(section.as_deref(), &name)?,
            None => self.slot(Some(section).filter(|section| !section.is_empty()), name)?,
        };
        match slot.as_value_mut() {
            Some(old) => {
                // A comment behind the value stays.
                let decor = old.decor().clone();
                *old = value;
                *old.decor_mut() = decor;
            }
            None => *slot = Item::Value(value),
        }
        Ok(())
    }

    /// Takes a value out. `false`: it was not there.
    pub(crate) fn unset(&mut self, key: &'static Key) -> bool {
        let (section, name) = key.place();
        let old = [Some(name), key.alias]
            .into_iter()
            .flatten()
            .find_map(|name| self.place(section, name));
        let Some((section, name)) = old else {
            return false;
        };
        match section {
            None => self.document.remove(&name).is_some(),
            Some(section) => self
                .document
                .get_mut(&section)
                .and_then(Item::as_table_like_mut)
                .is_some_and(|table| table.remove(&name).is_some()),
        }
    }

    /// Where a setting stands: in its section, at the top if that is its seed's spelling, or in the
    /// seed's section.
    fn place(&self, section: &str, name: &str) -> Option<(Option<String>, String)> {
        let top = self.document.as_table();
        if section.is_empty() {
            return top.contains_key(name).then(|| (None, name.to_owned()));
        }
        let sections = [
            section,
            if section == "vault" {
                memory::OLD_SECTION
            } else {
                section
            },
        ];
        let inside = sections.into_iter().find(|section| {
            top.get(section)
                .and_then(Item::as_table_like)
                .is_some_and(|table| table.contains_key(name))
        });
        if let Some(section) = inside {
            return Some((Some(section.to_owned()), name.to_owned()));
        }
        let at_top = layers::find("", name).is_some_and(|key| key.place().0 == section);
        (at_top && top.contains_key(name)).then(|| (None, name.to_owned()))
    }

    fn slot(&mut self, section: Option<&str>, name: &str) -> Result<&mut Item, CliError> {
        let path = self.path.clone();
        let top: &mut dyn TableLike = match section {
            None => self.document.as_table_mut(),
            Some(section) => {
                let item = self
                    .document
                    .entry(section)
                    .or_insert_with(|| Item::Table(Table::new()));
                item.as_table_like_mut().ok_or_else(|| {
                    CliError::configuration(format!("{section} is no table in {}", path.display()))
                })?
            }
        };
        Ok(top.entry(name).or_insert(Item::None))
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Writes it, if it is right: whole or not at all, with the permissions the file had.
    ///
    /// # Errors
    /// It would be wrong, or cannot be written; the file is as it was.
    pub(crate) fn write(&self) -> Result<(), CliError> {
        let text = self.text();
        layers::toml(&text, &self.path, Owner::User)?;
        if self.secret {
            write_private(&self.path, &text)
        } else {
            write_kept(&self.path, &text)
        }
    }

    /// Which file it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A value as TOML has it. What is text there keeps its words.
fn in_toml(value: &Value, text: &str) -> TomlValue {
    match value {
        Value::Number(number) => (*number).into(),
        Value::Integer(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => number.to_string().into(),
        },
        Value::Truth(truth) => (*truth).into(),
        Value::List(names) => names.iter().map(String::as_str).collect::<Array>().into(),
        Value::Paths(paths) => {
            let pairs = paths
                .iter()
                .map(|(name, path)| (name.as_str(), path.to_string_lossy().into_owned()));
            pairs.collect::<InlineTable>().into()
        }
        Value::Text(_)
        | Value::Path(_)
        | Value::Duration(_)
        | Value::Database(_)
        | Value::Secret(_) => text.trim().into(),
    }
}

#[cfg(test)]
mod tests {
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

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(text: &str) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::write(place.path(), text).unwrap();
            place
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("config.toml")
        }

        fn set(&self, name: &str, text: &str) -> Result<String, CliError> {
            let mut draft = Draft::open(&self.path())?;
            draft.set(setting(name)?, text)?;
            draft.write()?;
            Ok(std::fs::read_to_string(self.path()).unwrap())
        }
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        let changed = |name, text| Place::new(FILE).set(name, text).unwrap();
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
                Kind::Truth => "true".to_owned(),
                Kind::Word(words) => words[0].to_owned(),
                Kind::Address => "127.0.0.1:1".to_owned(),
                Kind::Database => "postgres://h/d".to_owned(),
                Kind::Keep => "forever".to_owned(),
                Kind::Paths => "anna=/some/folder".to_owned(),
                Kind::Text | Kind::Path | Kind::List | Kind::Secret => "word".to_owned(),
            };
            let place = Place::new("");
            place.set(&key.name, &text).unwrap();
            let mut draft = Draft::open(&place.path()).unwrap();
            assert!(draft.said(key).unwrap().is_some(), "{}", key.name);
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
            let text = Place::new(file).set(name, "999").unwrap();
            assert_eq!(
                text,
                file.replace("700", "999").replace("\"a\"", "\"999\""),
                "{name}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_or_is_wrong_already_changes_nothing() {
        let place = Place::new(FILE);
        assert_eq!(place.set("llm.temperature", "3").unwrap_err().exit as u8, 2);
        assert!(
            place
                .set("llm.temprature", "1")
                .unwrap_err()
                .cause
                .unwrap()
                .contains("llm.temperature")
        );
        assert_eq!(std::fs::read_to_string(place.path()).unwrap(), FILE);
        assert_eq!(
            Place::new("modle = 1\n")
                .set("model", "demo")
                .unwrap_err()
                .exit as u8,
            3
        );
    }
}
