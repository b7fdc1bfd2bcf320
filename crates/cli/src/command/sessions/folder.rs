//! The folder in which each conversation began, for `-c` per folder and `sessions list --here`.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use adjutant_core::ConversationId;
use serde::{Deserialize, Serialize};

use crate::config::{Scope, Settings, write_private};
use crate::terminal::display::json_line;

/// The file in the state folder: one JSON line per conversation, newest last.
const FILE: &str = "folders.jsonl";

/// Size in bytes from which the older half of the file is dropped. Enough for about 8,000
/// conversations.
const BYTES_MAX: u64 = 1024 * 1024;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct FolderRecord {
    conversation: ConversationId,
    folder: PathBuf,
}

/// The conversations that began in the working directory.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    file: PathBuf,
    /// The working directory; `None` if there is none.
    here: Option<PathBuf>,
    scope: Scope,
    /// True with `--temp`: nothing may be written.
    temporary: bool,
    /// The conversation that was recorded last.
    noted: Option<ConversationId>,
}

impl Folders {
    pub(crate) fn new(settings: &Settings) -> Self {
        // The working directory may have been deleted; then no conversation belongs to it.
        let here = std::env::current_dir().ok();
        Self {
            file: settings.dirs.state.join(FILE),
            // One folder can be reached by several links.
            here: here.map(|here| here.canonicalize().unwrap_or(here)),
            scope: settings.scope,
            temporary: settings.bounds.temp,
            noted: None,
        }
    }

    /// Returns the conversations that `-c` may continue; `None` for all.
    pub(crate) fn within_scope(&self) -> Option<HashSet<ConversationId>> {
        match self.scope {
            Scope::Global => None,
            Scope::Folder => Some(self.begun_here()),
        }
    }

    /// Returns the conversations that began here.
    pub(crate) fn begun_here(&self) -> HashSet<ConversationId> {
        let Some(here) = &self.here else {
            return HashSet::new();
        };
        let record = load(&self.file)
            .into_iter()
            .filter(|record| record.folder == *here);
        record.map(|record| record.conversation).collect()
    }

    /// Records that a conversation begins here.
    ///
    /// # Errors
    /// The file cannot be written; the message says why.
    pub(crate) fn note(&mut self, conversation: ConversationId) -> Result<(), String> {
        if self.temporary || self.noted == Some(conversation) {
            return Ok(());
        }
        let Some(here) = &self.here else {
            return Ok(());
        };
        self.noted = Some(conversation);
        let line = json_line(&FolderRecord {
            conversation,
            folder: here.clone(),
        });
        append(&self.file, &format!("{line}\n"))
            .map_err(|error| format!("{} cannot be written: {error}", self.file.display()))
    }
}

/// Loads the file. Malformed lines, such as a partial one, are skipped.
fn load(file: &Path) -> Vec<FolderRecord> {
    let text = fs::read(file).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let length = match fs::metadata(file) {
        Ok(data) => data.len(),
        Err(_) => {
            // Created separately, so that only its owner may read it.
            write_private(file, "").map_err(|error| std::io::Error::other(error.message))?;
            0
        }
    };
    if length > BYTES_MAX {
        let all = load(file);
        let newer = all
            .iter()
            .skip(all.len() / 2)
            .map(|record| json_line(record) + "\n");
        write_private(file, &newer.collect::<String>())
            .map_err(|error| std::io::Error::other(error.message))?;
    }
    // A single write in append mode: lines of two processes do not mix.
    OpenOptions::new()
        .append(true)
        .open(file)?
        .write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn folders(state: &Path, here: &str, scope: Scope) -> Folders {
        Folders {
            file: state.join(FILE),
            here: Some(PathBuf::from(here)),
            scope,
            temporary: false,
            noted: None,
        }
    }

    fn id(number: u128) -> ConversationId {
        ConversationId(Uuid::from_u128(number))
    }

    #[test]
    fn a_folder_has_the_conversations_that_began_in_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |here: &str| folders(place.path(), here, Scope::Folder);
        let mut here = at("/a");
        here.note(id(1)).unwrap();
        here.note(id(1)).unwrap();
        here.note(id(2)).unwrap();
        at("/b").note(id(3)).unwrap();
        assert_eq!(at("/a").within_scope(), Some(HashSet::from([id(1), id(2)])));
        assert_eq!(at("/b").begun_here(), HashSet::from([id(3)]));
        assert_eq!(at("/c").begun_here(), HashSet::new());
        assert_eq!(
            folders(place.path(), "/a", Scope::Global).within_scope(),
            None
        );
        assert_eq!(
            fs::read_to_string(place.path().join(FILE))
                .unwrap()
                .lines()
                .count(),
            3
        );
    }

    #[test]
    fn a_broken_line_is_left_out_and_a_temporary_conversation_is_not_written() {
        let place = tempfile::tempdir().unwrap();
        let mut here = folders(place.path(), "/a", Scope::Folder);
        fs::write(place.path().join(FILE), "{\"conversation\":\n\0\n[]\n").unwrap();
        here.note(id(1)).unwrap();
        assert_eq!(here.begun_here(), HashSet::from([id(1)]));
        let mut temporary = Folders {
            temporary: true,
            ..here
        };
        temporary.note(id(2)).unwrap();
        assert_eq!(temporary.begun_here(), HashSet::from([id(1)]));
    }

    #[test]
    fn a_long_list_forgets_its_older_half() {
        let place = tempfile::tempdir().unwrap();
        let mut here = folders(place.path(), "/a", Scope::Folder);
        let line = |number: u128| {
            json_line(&FolderRecord {
                conversation: id(number),
                folder: PathBuf::from(format!("/{}", "x".repeat(1_000))),
            })
        };
        let lines: Vec<String> = (0..1_100).map(line).collect();
        fs::write(place.path().join(FILE), lines.join("\n") + "\n").unwrap();
        here.note(id(9_999)).unwrap();
        let left = load(&place.path().join(FILE));
        assert_eq!(
            (left.len(), left.last().map(|record| record.conversation)),
            (551, Some(id(9_999)))
        );
    }
}
