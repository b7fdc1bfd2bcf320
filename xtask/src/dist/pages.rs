//! Completions and manual pages from the program itself, and the notices of its third-party parts.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{copy, write};
use super::target::Target;
use super::{binary, licences};
use crate::command::{Failure, output};

/// Shells, each with the name its file has by custom.
pub(super) const SHELLS: &[(&str, &str)] = &[
    ("bash", "adjutant.bash"),
    ("zsh", "_adjutant"),
    ("fish", "adjutant.fish"),
    ("elvish", "adjutant.elv"),
    ("powershell", "_adjutant.ps1"),
];

/// Folders with those files.
pub(super) struct Pages {
    /// One file for each of [`SHELLS`].
    pub(super) completions: PathBuf,
    /// Pages of section 1.
    pub(super) manual: PathBuf,
    /// Notices of others whose work is inside.
    pub(super) notices: PathBuf,
}

/// Writes them into a folder. The program has to be one that runs on this machine.
///
/// # Errors
/// If the program does not run, or a licence is missing.
pub(super) fn make(program: &Path, target: Target, folder: &Path) -> Result<Pages, Failure> {
    let pages = Pages {
        completions: folder.join("completions"),
        manual: folder.join("man"),
        notices: folder.join("notices"),
    };
    for (shell, file) in SHELLS {
        let script = output(Command::new(program).args(["completions", shell]))?;
        write(&pages.completions.join(file), &script)?;
    }
    output(Command::new(program).arg("man").arg(&pages.manual))?;
    write(
        &pages.notices.join("THIRD-PARTY.txt"),
        &licences::notice(&target.gnu())?,
    )?;
    copy(
        &rust_notice()?,
        &pages.notices.join("THIRD-PARTY-RUST.html"),
    )?;
    copy(
        &binary::linker_licence()?,
        &pages.notices.join("THIRD-PARTY-ZIG.txt"),
    )?;
    Ok(pages)
}

/// Returns the notice of Rust's standard library, which comes with the compiler.
fn rust_notice() -> Result<PathBuf, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = PathBuf::from(output(rustc.args(["--print", "sysroot"]))?.trim());
    Ok(sysroot.join("share/doc/rust/COPYRIGHT-library.html"))
}
