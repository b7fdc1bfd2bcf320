//! External programs of the system, with an error that names the Debian package if one is missing.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{Failure, output};

/// Folders of administration programs, which an ordinary user's `PATH` often lacks.
const ALSO: &[&str] = &["/usr/sbin", "/sbin"];

/// Finds a program on the `PATH`.
///
/// # Errors
/// The program is not installed; the message names the Debian package that has it.
pub(super) fn program(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(ALSO.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is missing (Debian: apt-get install {package})"))
}

/// Returns a command for a program, with English messages regardless of the system's language,
/// because its output is parsed.
///
/// # Errors
/// As for [`program`].
pub(super) fn command(name: &str, package: &str) -> Result<Command, Failure> {
    let mut command = Command::new(program(name, package)?);
    command.env("LC_ALL", "C.UTF-8");
    Ok(command)
}

/// Returns true if the current user is root, who may call `chroot` and `chown`.
pub(super) fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let missing = program("no-such-program-anywhere", "some-package");
        let message = "no-such-program-anywhere is missing (Debian: apt-get install some-package)";
        assert_eq!(missing, Err(message.to_owned()));
        assert!(program("sh", "dash").is_ok());
    }
}
