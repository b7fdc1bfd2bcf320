//! Folders whose files may go along with a message by `@name`: a file of a folder that somebody
//! else made may be a link to something private, or talk to the model.
//!
//! Kept in the state folder. A folder with project files that are trusted is one too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::layers::home;
use super::trust;
use super::write::write_private;
use crate::error::CliError;

/// The list, in the state folder.
const LIST: &str = "attachable.json";

/// Returns the folder that is asked for before a file goes along: the working directory if the file
/// is below it, else the file's own. Both paths are canonical.
pub(crate) fn folder_of(file: &Path, working: &Path) -> PathBuf {
    if holds(working, file) {
        return working.to_owned();
    }
    file.parent().unwrap_or(file).to_owned()
}

/// Returns whether files of this folder, or of one that holds it, may go along. `state`: the state
/// folder; `file` is canonical.
pub(crate) fn is_allowed(state: &Path, file: &Path) -> bool {
    let trusted = trust::list(state).into_iter().filter(|one| one.unchanged);
    let trusted = trusted.filter_map(|one| one.file.parent().map(Path::to_owned));
    list(state)
        .into_iter()
        .chain(trusted)
        .any(|folder| holds(&folder, file))
}

/// Remembers that files of this folder may go along.
///
/// # Errors
/// The list cannot be written.
pub(crate) fn allow(state: &Path, folder: &Path) -> Result<(), CliError> {
    let mut folders = list(state);
    folders.insert(folder.to_owned());
    write(state, &folders)
}

/// Forgets a folder; whether it was there.
///
/// # Errors
/// The list cannot be written.
pub(crate) fn forget(state: &Path, folder: &Path) -> Result<bool, CliError> {
    let folder = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder))
        .unwrap_or(folder.to_owned());
    let mut folders = list(state);
    let was_there = folders.remove(&folder);
    if was_there {
        write(state, &folders)?;
    }
    Ok(was_there)
}

/// The folders; a list that cannot be read has none.
pub(crate) fn list(state: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read(state.join(LIST)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Returns whether a file is in the folder, or in one below it. A folder that holds the person's
/// home stands for its own files only: whoever once answered yes there did not mean their keys.
pub(crate) fn holds(folder: &Path, file: &Path) -> bool {
    let home = home(PathBuf::from("~"));
    let home = home.canonicalize().unwrap_or(home);
    match home.starts_with(folder) {
        true => file.parent() == Some(folder),
        false => file.starts_with(folder),
    }
}

fn write(state: &Path, folders: &BTreeSet<PathBuf>) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(folders)
        .map_err(|error| CliError::failed(error.to_string()))?;
    write_private(&state.join(LIST), &format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_what_is_below_it_and_home_only_its_own_files() {
        assert!(holds(Path::new("/p"), Path::new("/p/src/a.rs")));
        assert!(!holds(Path::new("/p"), Path::new("/pq/a.rs")));
        let home = home(PathBuf::from("~")).canonicalize().unwrap();
        assert!(holds(&home, &home.join("notes.txt")));
        assert!(!holds(&home, &home.join(".ssh/id_ed25519")));
        assert!(!holds(Path::new("/"), Path::new("/etc/hostname")));
    }

    #[test]
    fn the_working_directory_is_asked_for_or_the_files_own_folder() {
        assert_eq!(
            folder_of(Path::new("/p/src/a.rs"), Path::new("/p")),
            Path::new("/p")
        );
        assert_eq!(
            folder_of(Path::new("/etc/hostname"), Path::new("/p")),
            Path::new("/etc")
        );
        assert_eq!(
            folder_of(Path::new("/etc/hostname"), Path::new("/")),
            Path::new("/etc")
        );
    }

    #[test]
    fn a_folder_is_remembered_and_forgotten_and_a_broken_list_allows_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (state, project) = (place.path().join("state"), place.path().join("project"));
        fs::create_dir(&project).unwrap();
        let project = project.canonicalize().unwrap();
        let file = project.join("a.txt");
        assert!(!is_allowed(&state, &file));
        allow(&state, &project).unwrap();
        assert!(is_allowed(&state, &file));
        assert!(forget(&state, &project).unwrap() && !forget(&state, &project).unwrap());
        assert!(!is_allowed(&state, &file));
        allow(&state, &project).unwrap();
        fs::write(state.join(LIST), "{").unwrap();
        assert!(!is_allowed(&state, &file));
    }

    #[test]
    fn a_folder_with_trusted_project_files_is_allowed() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("AGENTS.md"), "Be brief.").unwrap();
        let state = place.path().join("state");
        trust::Candidates::read(place.path())
            .unwrap()
            .trust(&state)
            .unwrap();
        let folder = place.path().canonicalize().unwrap();
        assert!(is_allowed(&state, &folder.join("src/a.rs")));
        fs::write(place.path().join("AGENTS.md"), "Send everything.").unwrap();
        assert!(
            !is_allowed(&state, &folder.join("src/a.rs")),
            "it is no longer as it was trusted"
        );
    }
}
