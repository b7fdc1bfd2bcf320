//! Additional instructions for one run: `--role NAME`, a file of the user's, and `--system TEXT`.

use std::path::Path;

use adjutant_core::nearest;

use crate::config::Dirs;
use crate::error::CliError;
use crate::terminal::display::{clean_line, clip};
use crate::terminal::input::text_of_file;

/// The folder of roles, in the configuration folder.
const FOLDER: &str = "roles";

/// File extension of roles.
const END: &str = ".md";

/// Returns the additional instruction of a run: the role first, then the text.
///
/// # Errors
/// There is no such role or file, or it is empty or no text.
pub(crate) fn additional_instruction(
    role: Option<&str>,
    system: Option<&str>,
    dirs: &Dirs,
) -> Result<Option<String>, CliError> {
    let role = role
        .map(|name| role_text(name, &dirs.config.join(FOLDER)))
        .transpose()?;
    let system = system.map(system_text).transpose()?;
    let texts: Vec<String> = role.into_iter().chain(system).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

fn system_text(text: &str) -> Result<String, CliError> {
    let text = match text.strip_prefix('@') {
        Some(file) => text_of_file(Path::new(file), file)?,
        None => text.trim().to_owned(),
    };
    if text.is_empty() {
        return Err(CliError::usage("--system is empty").or_try("--system \"Answer in one line.\""));
    }
    Ok(text)
}

fn role_text(name: &str, folder: &Path) -> Result<String, CliError> {
    let there = names(folder);
    // Only a name of the list becomes a path: `../x` leads out of the folder.
    if !there.iter().any(|one| one == name) {
        return Err(unknown(name, folder, &there));
    }
    let file = folder.join(format!("{name}{END}"));
    let text = text_of_file(&file, &file.to_string_lossy())?;
    if text.is_empty() {
        return Err(
            CliError::usage(format!("the role {name} is empty")).or_try(format!(
                "describe in {} how the assistant should behave",
                clean_line(&file.to_string_lossy())
            )),
        );
    }
    Ok(text)
}

fn unknown(name: &str, folder: &Path, there: &[String]) -> CliError {
    let error = CliError::usage(format!("there is no role {:?}", clip(name, 80)));
    let file = clean_line(&folder.join("NAME.md").to_string_lossy());
    if there.is_empty() {
        return error
            .because("there are no roles yet")
            .or_try(format!("a role is a text in {file}"));
    }
    let error = match nearest(name, there.iter().map(String::as_str)) {
        Some(near) => error.or_try(format!(
            "--role {}, if that is what you mean",
            clean_line(near)
        )),
        None => error,
    };
    error
        .or_try(format!("one of: {}", clean_line(&there.join(", "))))
        .or_try(format!("a new one is a text in {file}"))
}

/// Returns the names of all roles, sorted; none if the folder cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(END)?.to_owned()))
        .filter(|name| !name.is_empty() && !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_role_is_the_text_of_its_file() {
        let folder = roles(&[("pirate.md", "Talk like a pirate.\n")]);
        assert_eq!(
            role_text("pirate", folder.path()).unwrap(),
            "Talk like a pirate."
        );
    }

    #[test]
    fn an_unknown_role_is_an_error_that_lists_the_others() {
        let folder = roles(&[
            ("pirate.md", "x"),
            ("reviewer.md", "x"),
            ("notes.txt", "x"),
            (".md", "x"),
        ]);
        let error = role_text("pirat", folder.path()).unwrap_err();
        assert_eq!(error.exit as u8, 2);
        assert_eq!(
            error.tries.first().unwrap(),
            "--role pirate, if that is what you mean"
        );
        assert_eq!(error.tries.get(1).unwrap(), "one of: pirate, reviewer");
        for name in ["../pirate", "notes", "", "pirate.md", "/etc/passwd"] {
            assert!(
                role_text(name, folder.path())
                    .unwrap_err()
                    .message
                    .contains("no role"),
                "{name}"
            );
        }
        let none = role_text("pirate", &folder.path().join("gone")).unwrap_err();
        assert_eq!(none.cause.unwrap(), "there are no roles yet");
    }

    #[test]
    fn an_empty_role_and_an_empty_text_are_errors() {
        let folder = roles(&[("quiet.md", " \n"), ("broken.md", "a\0")]);
        assert!(
            role_text("quiet", folder.path())
                .unwrap_err()
                .message
                .contains("empty")
        );
        assert!(
            role_text("broken", folder.path())
                .unwrap_err()
                .message
                .contains("not text")
        );
        assert_eq!(system_text(" \n").unwrap_err().exit as u8, 2);
        assert_eq!(system_text(" Be brief. ").unwrap(), "Be brief.");
        let file = folder.path().join("quiet.md");
        assert!(system_text(&format!("@{}", file.display())).is_err());
        assert!(
            system_text("@/nowhere/at/all")
                .unwrap_err()
                .message
                .contains("cannot be read")
        );
    }
}
