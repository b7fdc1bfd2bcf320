//! Builds the program with Zig as the linker, against the symbols of an old glibc, so that it runs
//! on old and new Linux distributions.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::{GLIBC, Target};
use crate::command::{Failure, output, pip_install, root, run, target as target_folder};

/// The linker, and the program through which cargo uses it; both are on PyPI.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

/// The cargo profile of packaged binaries.
const PROFILE: &str = "dist";

/// Features of packaged binaries beyond the default ones. Users of a package cannot add a feature,
/// so optional integrations are built in.
pub(super) const FEATURES: &str = "restate";

/// Builds the program for Linux with glibc, and returns its path.
///
/// # Errors
/// The linker cannot be installed, or the build fails.
pub(super) fn build(target: Target) -> Result<PathBuf, Failure> {
    let triple = target.gnu();
    build_for(&triple, &format!("{triple}.{}.{}", GLIBC.0, GLIBC.1))
}

/// Builds the program for a target triple. `linked` is the triple in cargo-zigbuild's notation,
/// which may end in a glibc version.
///
/// # Errors
/// As for [`build`].
pub(super) fn build_for(triple: &str, linked: &str) -> Result<PathBuf, Failure> {
    let tools = tools()?;
    let mut zigbuild = Command::new(tools.join("bin/cargo-zigbuild"));
    zigbuild.args([
        "zigbuild",
        "--locked",
        "--package",
        "adjutant-cli",
        "--profile",
        PROFILE,
    ]);
    zigbuild.args(["--features", FEATURES]);
    zigbuild.args(["--target", linked]).current_dir(root());
    zigbuild.env("CARGO_ZIGBUILD_ZIG_PATH", zig_folder(&tools).join("zig"));
    // By default both tools keep their caches in the home folder.
    let caches = target_folder().join("xtask/zig-cache");
    zigbuild
        .env("ZIG_GLOBAL_CACHE_DIR", &caches)
        .env("CARGO_ZIGBUILD_CACHE_DIR", &caches);
    // Panic messages contain source paths: this removes the folders of the build machine. It also
    // replaces `rustflags` of a cargo configuration, which are meant for another linker.
    zigbuild.env(
        "CARGO_ENCODED_RUSTFLAGS",
        remapped("--remap-path-prefix", '\u{1f}', &root(), &cargo_home()?),
    );
    // The same for `__FILE__` in C code.
    zigbuild.env(
        "CFLAGS",
        remapped("-ffile-prefix-map", ' ', &root(), &cargo_home()?),
    );
    run(&mut zigbuild)?;
    let file = target_folder().join(triple).join(PROFILE).join("adjutant");
    if file.is_file() {
        Ok(file)
    } else {
        Err(format!("{} was not built", file.display()))
    }
}

/// Checks that the binary does not contain paths of the build machine.
///
/// # Errors
/// It contains one; the message has the folder.
pub(super) fn check_paths(binary: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let folders = [root(), cargo_home()?].map(|folder| format!("{}/", folder.display()));
    let found = folders_in(&bytes, &folders);
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the program contains the path {}",
            found.join(" and ")
        ))
    }
}

/// Returns the folders whose path occurs in a binary.
fn folders_in(bytes: &[u8], folders: &[String]) -> Vec<String> {
    let occurs = |folder: &&String| {
        bytes
            .windows(folder.len())
            .any(|window| window == folder.as_bytes())
    };
    folders.iter().filter(occurs).cloned().collect()
}

/// Returns the licence of the linker, whose runtime library is linked into the program.
///
/// # Errors
/// The linker cannot be installed.
pub(super) fn linker_licence() -> Result<PathBuf, Failure> {
    Ok(zig_folder(&tools()?).join("LICENSE"))
}

fn zig_folder(tools: &Path) -> PathBuf {
    tools.join("ziglang")
}

/// Returns the folder of both packages, and installs them there if they are missing.
fn tools() -> Result<PathBuf, Failure> {
    let folder = target_folder().join("xtask").join(PACKAGES.join("+"));
    if !zig_folder(&folder).is_dir() {
        output(pip_install(&folder).arg("--no-deps").args(PACKAGES))?;
    }
    Ok(folder)
}

/// Returns compiler flags that replace both folders by neutral names, joined by `separator`.
fn remapped(option: &str, separator: char, root: &Path, cargo_home: &Path) -> String {
    let flag = |folder: &Path, name: &str| format!("{option}={}={name}", folder.display());
    [flag(root, "adjutant"), flag(cargo_home, "cargo")].join(&separator.to_string())
}

fn cargo_home() -> Result<PathBuf, Failure> {
    let default = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(default)
        .ok_or_else(|| "neither CARGO_HOME nor HOME is set".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_have_other_names_in_the_program() {
        let flags = remapped("--map", ' ', Path::new("/a/source"), Path::new("/b/.cargo"));
        assert_eq!(flags, "--map=/a/source=adjutant --map=/b/.cargo=cargo");
    }

    #[test]
    fn a_folder_inside_a_program_is_found() {
        let folders = ["/a/source/".to_owned(), "/b/.cargo/".to_owned()];
        assert_eq!(
            folders_in(b"\0panicked at cargo/registry\0", &folders),
            [] as [String; 0]
        );
        assert_eq!(
            folders_in(b"\0/b/.cargo/registry/src/x.rs\0", &folders),
            ["/b/.cargo/"]
        );
    }
}
