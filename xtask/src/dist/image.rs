//! Builds the container image from the root file system and `deploy/Containerfile`, and runs it
//! once.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::release::{PROGRAM, Release, skip_without_root};
use super::system;
use crate::command::{Failure, output, root, run};
use crate::file_system::create_empty;
use crate::steps::Outcome;

/// Builds the image with buildah and sends one message to the program in it.
///
/// # Errors
/// The image cannot be built, or the program does not answer.
pub(super) fn test(release: &Release, archive: &Path) -> Result<Outcome, Failure> {
    if let Some(ended) = skip_without_root("a container without a daemon") {
        return Ok(ended);
    }
    let program = match system::program("buildah", "buildah") {
        Ok(program) => program,
        Err(reason) => return Ok(Outcome::NotRun(reason)),
    };
    let scratch = create_empty(&release.work.join("image"))?;
    // Private storage with the `vfs` driver: the images of this machine stay untouched, and nothing
    // has to be mounted.
    let buildah = |arguments: &[&str]| {
        let mut buildah = Command::new(&program);
        buildah
            .args(["--storage-driver", "vfs", "--root"])
            .arg(scratch.join("storage"));
        buildah
            .arg("--runroot")
            .arg(scratch.join("run"))
            .args(arguments);
        buildah
    };
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    // The isolation `chroot` needs no container runtime, so it also works inside a container.
    let mut build = buildah(&[
        "bud",
        "--isolation",
        "chroot",
        "--quiet",
        "--tag",
        "adjutant",
    ]);
    build.arg("--file").arg(root().join("deploy/Containerfile"));
    run(build
        .arg("--build-arg")
        .arg(format!("ROOTFS={name}"))
        .arg(&release.folder))?;
    let container = output(&mut buildah(&["from", "localhost/adjutant"]))?;
    let message = [
        "run",
        "--isolation",
        "chroot",
        container.trim(),
        "--",
        PROGRAM,
        "-m",
        "demo",
        "add buy milk",
    ];
    let answer = output(&mut buildah(&message))?;
    println!("    {}", answer.trim());
    fs::remove_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    if answer.contains("buy milk") {
        Ok(Outcome::Passed)
    } else {
        Err("the program did not answer".to_owned())
    }
}
