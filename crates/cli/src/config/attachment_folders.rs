//! Folders whose files may be attached to a message by `@name`. The user is asked once per folder:
//! a file that a stranger made may be a link to something private, or give the model instructions.
//!
//! The list is in the state folder. A folder whose project files are trusted counts too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::dirs::expand_home;
use super::trust;
use crate::error::CliError;

/// The file with the list, in the state folder.
const LIST: &str = "attachable.json";

/// Returns the folder that the user is asked about before a file is attached: the working directory
/// if the file is below it, else the file's own. Both paths are canonical.
pub(crate) fn folder_to_allow(file: &Path, working: &Path) -> PathBuf {
    if contains(working, file) {
        return working.to_owned();
    }
    file.parent().unwrap_or(file).to_owned()
}

/// Returns true if a file is in a folder whose files may be attached. `state`: the state folder;
/// `file` is canonical.
pub(crate) fn is_allowed(state: &Path, file: &Path) -> bool {
    // A folder whose instructions the model follows may have its files read too; not any more once
    // a trusted file of it has changed.
    let trusted = trust::list(state).into_iter().filter(|one| one.unchanged);
    let trusted = trusted.filter_map(|one| one.file.parent().map(Path::to_owned));
    list(state)
        .into_iter()
        .chain(trusted)
        .any(|folder| contains(&folder, file))
}

/// Adds a folder to the list.
///
/// # Errors
/// The list cannot be written.
pub(crate) fn allow(state: &Path, folder: &Path) -> Result<(), CliError> {
    let mut folders = list(state);
    folders.insert(folder.to_owned());
    trust::save_list(&state.join(LIST), &folders)
}

/// Removes a folder from the list. Returns false if it was not there.
///
/// # Errors
/// The list cannot be written.
pub(crate) fn forget(state: &Path, folder: &Path) -> Result<bool, CliError> {
    let folder = trust::canonical_or_absolute(folder);
    let mut folders = list(state);
    let was_there = folders.remove(&folder);
    if was_there {
        trust::save_list(&state.join(LIST), &folders)?;
    }
    Ok(was_there)
}

/// Loads the list. One that cannot be read has no folders: nothing is attached by mistake.
pub(crate) fn list(state: &Path) -> BTreeSet<PathBuf> {
    trust::load_list(&state.join(LIST))
}

/// Returns true if a file is in the folder, or in one below it. The home directory and the folders
/// above it stand for their own files only: who once answered yes there did not mean their SSH
/// keys.
pub(crate) fn contains(folder: &Path, file: &Path) -> bool {
    let home = expand_home(PathBuf::from("~"));
    let home = home.canonicalize().unwrap_or(home);
    match home.starts_with(folder) {
        true => file.parent() == Some(folder),
        false => file.starts_with(folder),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_holds_what_is_below_it_and_home_only_its_own_files() {
        assert!(contains(Path::new("/p"), Path::new("/p/src/a.rs")));
        assert!(!contains(Path::new("/p"), Path::new("/pq/a.rs")));
        let home = expand_home(PathBuf::from("~")).canonicalize().unwrap();
        assert!(contains(&home, &home.join("notes.txt")));
        assert!(!contains(&home, &home.join(".ssh/id_ed25519")));
        assert!(!contains(Path::new("/"), Path::new("/etc/hostname")));
    }

    #[test]
    fn the_working_directory_is_asked_for_or_the_files_own_folder() {
        assert_eq!(
            folder_to_allow(Path::new("/p/src/a.rs"), Path::new("/p")),
            Path::new("/p")
        );
        assert_eq!(
            folder_to_allow(Path::new("/etc/hostname"), Path::new("/p")),
            Path::new("/etc")
        );
        assert_eq!(
            folder_to_allow(Path::new("/etc/hostname"), Path::new("/")),
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
