//! The container's image: built from the root file system as `deploy/Containerfile` says, and run
//! once.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::files::empty;
use super::release::{PROGRAM, Release, unless_root};
use super::system;
use crate::command::{Failure, output, root, run};
use crate::steps::Ended;

/// Builds the image with buildah and runs the program in it.
///
/// # Errors
/// If the image cannot be built, or the program does not answer in it.
pub(super) fn tried(release: &Release, archive: &Path) -> Result<Ended, Failure> {
    if let Some(ended) = unless_root("a container without a daemon") {
        return Ok(ended);
    }
    let program = match system::program("buildah", "buildah") {
        Ok(program) => program,
        Err(cause) => return Ok(Ended::NotRun(cause)),
    };
    let place = empty(&release.work.join("image"))?;
    // A storage of its own, of plain folders: nothing of this machine's images is touched, and
    // nothing is mounted.
    let buildah = |words: &[&str]| {
        let mut buildah = Command::new(&program);
        buildah
            .args(["--storage-driver", "vfs", "--root"])
            .arg(place.join("storage"));
        buildah.arg("--runroot").arg(place.join("run")).args(words);
        buildah
    };
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
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
    let asked = [
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
    let said = output(&mut buildah(&asked))?;
    println!("    {}", said.trim());
    fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    if said.contains("buy milk") {
        Ok(Ended::Ok)
    } else {
        Err("the program did not answer".to_owned())
    }
}
