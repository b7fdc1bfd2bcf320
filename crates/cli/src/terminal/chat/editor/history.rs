use std::path::{Path, PathBuf};

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

use super::paste::Pastes;
use crate::private_file;

/// Lines of history kept in the file.
const LINES: usize = 2_000;

/// Longer lines are not kept, in bytes: a pasted file is no line to search for.
const BYTES_MAX: usize = 16 * 1024;

/// Opens the history of earlier sessions. The second value is a notice for the user if it cannot be
/// kept in `file`.
pub(super) fn open(file: Option<PathBuf>, pastes: Pastes) -> (Box<dyn History>, Option<String>) {
    let unkept = || FileBackedHistory::new(LINES).unwrap_or_default();
    let (inner, notice) = match file {
        None => (unkept(), None),
        Some(file) => match create_private(&file)
            .map_err(Into::into)
            .and_then(|()| open_file(&file))
        {
            Ok(history) => (history, None),
            Err(error) => {
                let notice = format!("what you type is not kept: {}: {error}", file.display());
                (unkept(), Some(notice))
            }
        },
    };
    (Box::new(ExpandingHistory { inner, pastes }), notice)
}

fn open_file(file: &Path) -> Result<FileBackedHistory> {
    FileBackedHistory::with_file(LINES, file.to_owned())
}

/// Creates the file and its folder, readable by their owner only.
fn create_private(file: &Path) -> std::io::Result<()> {
    let file = private_file::append(file)?;
    // The file of an earlier version, or one that the user made, may be readable by others.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}

/// A history that stores pasted texts in full instead of their placeholders.
struct ExpandingHistory {
    inner: FileBackedHistory,
    pastes: Pastes,
}

impl History for ExpandingHistory {
    fn save(&mut self, mut item: HistoryItem) -> Result<HistoryItem> {
        item.command_line = self.pastes.expand(&item.command_line);
        if item.command_line.len() > BYTES_MAX {
            return Ok(item);
        }
        self.inner.save(item)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.inner.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.inner.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        let mut found = self.inner.search(query)?;
        // The file may have been edited, and a control sequence in it would be printed.
        for item in &mut found {
            item.command_line = crate::terminal::display::clean(&item.command_line);
        }
        Ok(found)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.inner.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.inner.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.inner.delete(id)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.inner.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.inner.session()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> HistoryItem {
        HistoryItem::from_command_line(text)
    }

    fn lines(file: &Path) -> String {
        std::fs::read_to_string(file).unwrap()
    }

    #[test]
    fn lines_are_kept_for_the_owner_alone_and_very_long_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/history.txt");
        let pastes = Pastes::default();
        let word = pastes.shorten(&"p\n".repeat(30));
        let (mut history, notice) = open(Some(file.clone()), pastes);
        assert_eq!(notice, None);
        for text in ["add buy milk", &word, &"x".repeat(BYTES_MAX + 1)] {
            history.save(line(text)).unwrap();
        }
        history.sync().unwrap();
        assert!(
            lines(&file).starts_with("add buy milk\np<"),
            "{}",
            lines(&file)
        );
        assert!(!lines(&file).contains("pasted") && !lines(&file).contains("xxx"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[test]
    fn a_file_that_is_no_text_is_named_and_not_attached() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.txt");
        std::fs::write(&file, b"fine\n\xff\xfe\n").unwrap();
        let (mut history, notice) = open(Some(file.clone()), Pastes::default());
        assert!(notice.unwrap().contains("history.txt"));
        history.save(line("x")).unwrap();
        history.sync().unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"fine\n\xff\xfe\n");
    }
}
