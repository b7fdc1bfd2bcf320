//! Shell completions and manual pages that the program generates, and notices of third-party code.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::Target;
use super::{binary, licences};
use crate::command::{Failure, output};
use crate::file_system::{copy, write};

/// Shells, each with the conventional name of its completion file.
pub(super) const SHELLS: &[(&str, &str)] = &[
    ("bash", "adjutant.bash"),
    ("zsh", "_adjutant"),
    ("fish", "adjutant.fish"),
    ("elvish", "adjutant.elv"),
    ("powershell", "_adjutant.ps1"),
];

/// Folders of the generated files.
pub(super) struct Pages {
    /// Completions, one file per shell in [`SHELLS`].
    pub(super) completions: PathBuf,
    /// Manual pages of section 1.
    pub(super) manual: PathBuf,
    /// Licence notices of third-party crates, Rust's standard library and the linker.
    pub(super) notices: PathBuf,
}

/// Generates all of them into a folder. The program must run on this machine.
///
/// # Errors
/// The program cannot be run, or a licence text is missing.
pub(super) fn generate(program: &Path, target: Target, folder: &Path) -> Result<Pages, Failure> {
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

/// Returns the notice of Rust's standard library, which is part of the toolchain.
fn rust_notice() -> Result<PathBuf, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = PathBuf::from(output(rustc.args(["--print", "sysroot"]))?.trim());
    Ok(sysroot.join("share/doc/rust/COPYRIGHT-library.html"))
}
