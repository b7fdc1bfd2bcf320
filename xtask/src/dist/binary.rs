//! The program, linked by Zig against the symbols of an old glibc, so that it runs on old and new
//! systems.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::{GLIBC, Target};
use crate::command::{Failure, output, root, run, target as target_folder};

/// The linker and the program that puts it into cargo's hands, from PyPI.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

/// Cargo's profile.
const PROFILE: &str = "dist";

/// The features of the packages beside the default ones: whoever takes a package or an image cannot
/// build it in.
pub(super) const FEATURES: &str = "restate";

/// Builds the program for a machine with glibc, and returns its path.
///
/// # Errors
/// If the linker cannot be had, or the program not be built.
pub(super) fn build(target: Target) -> Result<PathBuf, Failure> {
    let triple = target.gnu();
    build_for(&triple, &format!("{triple}.{}.{}", GLIBC.0, GLIBC.1))
}

/// Builds the program for a triple; `linked` is the triple as the linker has it, which may have a
/// version of glibc.
///
/// # Errors
/// As [`build`].
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
    let caches = target_folder().join("xtask/zig-cache");
    zigbuild
        .env("ZIG_GLOBAL_CACHE_DIR", &caches)
        .env("CARGO_ZIGBUILD_CACHE_DIR", &caches);
    // Messages of a panic name source files: without the folders of this machine. This also
    // replaces flags of the configuration, which are for another linker.
    zigbuild.env(
        "CARGO_ENCODED_RUSTFLAGS",
        remapped("--remap-path-prefix", '\u{1f}', &root(), &cargo_home()?),
    );
    // C's `__FILE__` too.
    zigbuild.env(
        "CFLAGS",
        remapped("-ffile-prefix-map", ' ', &root(), &cargo_home()?),
    );
    run(&mut zigbuild)?;
    let file = target_folder().join(triple).join(PROFILE).join("adjutant");
    if file.is_file() {
        Ok(file)
    } else {
        Err(format!("{} was not made", file.display()))
    }
}

/// Passes if a program does not name the folders of the machine it was built on.
///
/// # Errors
/// If it does, which.
pub(super) fn names_no_folder_of_ours(binary: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let folders = [root(), cargo_home()?].map(|folder| format!("{}/", folder.display()));
    let found = named(&bytes, &folders);
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("the program names {}", found.join(" and ")))
    }
}

/// Returns those folders that stand somewhere in a program.
fn named(bytes: &[u8], folders: &[String]) -> Vec<String> {
    let stands = |folder: &&String| {
        bytes
            .windows(folder.len())
            .any(|window| window == folder.as_bytes())
    };
    folders.iter().filter(stands).cloned().collect()
}

/// Returns the licence of the linker, whose run-time library is in the program.
///
/// # Errors
/// If the linker cannot be had.
pub(super) fn linker_licence() -> Result<PathBuf, Failure> {
    Ok(zig_folder(&tools()?).join("LICENSE"))
}

fn zig_folder(tools: &Path) -> PathBuf {
    tools.join("ziglang")
}

/// Returns the folder of both packages, installed there if they are not yet.
fn tools() -> Result<PathBuf, Failure> {
    let folder = target_folder().join("xtask").join(PACKAGES.join("+"));
    if !zig_folder(&folder).is_dir() {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--target",
        ]);
        output(pip.arg(&folder).args(PACKAGES))?;
    }
    Ok(folder)
}

/// Returns flags of a compiler that give both folders other names, `between` them.
fn remapped(option: &str, between: char, root: &Path, cargo_home: &Path) -> String {
    let flag = |folder: &Path, name: &str| format!("{option}={}={name}", folder.display());
    [flag(root, "adjutant"), flag(cargo_home, "cargo")].join(&between.to_string())
}

fn cargo_home() -> Result<PathBuf, Failure> {
    let of_user = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(of_user)
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
            named(b"\0panicked at cargo/registry\0", &folders),
            [] as [String; 0]
        );
        assert_eq!(
            named(b"\0/b/.cargo/registry/src/x.rs\0", &folders),
            ["/b/.cargo/"]
        );
    }
}
