//! Reproducible tar archives: sorted entries, the commit's time, numeric owners.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::system;
use crate::command::{Failure, run};

/// A folder in an archive whose owner is not root.
pub(super) struct OwnedFolder<'a> {
    /// Path from the archive's root, beginning with `./`.
    pub(super) path: &'a str,
    /// Numeric id of both the user and the group.
    pub(super) id: u32,
}

/// Packs one entry of a folder (`.` for everything) into the file `to`, whose name ends in
/// `.tar.gz`.
///
/// # Errors
/// `tar` or `gzip` is missing or fails.
pub(super) fn pack(
    folder: &Path,
    entry: &str,
    epoch: u64,
    owned: Option<&OwnedFolder<'_>>,
    to: &Path,
) -> Result<(), Failure> {
    let plain = to.with_extension("");
    // `--owner` applies to all entries of a call, so a folder with another owner is appended by a
    // second call.
    let mut create = tar("--create", folder, epoch, 0, &plain)?;
    if let Some(owned) = owned {
        create.arg(format!("--exclude={}", owned.path));
    }
    run(create.arg(entry))?;
    if let Some(owned) = owned {
        run(tar("--append", folder, epoch, owned.id, &plain)?.arg(owned.path))?;
    }
    // gzip would store the file's name and time, which makes two archives of the same files differ.
    run(system::command("gzip", "gzip")?
        .args(["--force", "--no-name", "-9"])
        .arg(&plain))
}

fn tar(
    action: &str,
    folder: &Path,
    epoch: u64,
    owner: u32,
    archive: &Path,
) -> Result<std::process::Command, Failure> {
    let mut tar = system::command("tar", "tar")?;
    // The order in which a file system lists a folder differs between machines.
    tar.args([action, "--sort=name", "--format=gnu", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch}"))
        .arg(format!("--owner={owner}"))
        .arg(format!("--group={owner}"));
    tar.arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(folder);
    Ok(tar)
}

/// Unpacks an archive, or only the named members, into an existing folder.
///
/// # Errors
/// `tar` is missing or fails.
pub(super) fn unpack(archive: &Path, folder: &Path, members: &[&str]) -> Result<(), Failure> {
    let mut tar = system::command("tar", "tar")?;
    // By number, because this machine may have other ids for the names in the archive.
    tar.arg("--extract")
        .arg("--numeric-owner")
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(folder);
    run(tar.args(members))
}

/// Makes everything below a folder readable by all users and writable by its owner only, regardless
/// of the umask under which the files were created.
///
/// # Errors
/// Permissions cannot be read or set.
pub(super) fn make_readable(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(failed)?;
    for path in crate::file_system::entries(folder)? {
        // Symbolic links have no permissions, and following them could leave the folder.
        let kind = fs::symlink_metadata(&path).map_err(failed)?;
        if kind.is_dir() {
            make_readable(&path)?;
        } else if kind.is_file() {
            let mode = if kind.permissions().mode() & 0o100 == 0 {
                0o644
            } else {
                0o755
            };
            fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_make_the_same_bytes() {
        let scratch = crate::command::target().join("xtask/dist/test-tar");
        let mut made = Vec::new();
        for name in ["first", "second"] {
            let folder = crate::file_system::create_empty(&scratch.join(name)).expect("a folder");
            crate::file_system::write(&folder.join("x/b"), "b").expect("a file");
            crate::file_system::write(&folder.join("x/a"), "a").expect("a file");
            crate::file_system::write(&folder.join("x/home/file"), "mine").expect("a file");
            make_readable(&folder).expect("permissions");
            let owned = OwnedFolder {
                path: "./x/home",
                id: 65532,
            };
            let archive = scratch.join(format!("{name}.tar.gz"));
            pack(&folder, ".", 1_700_000_000, Some(&owned), &archive).expect("an archive");
            made.push(fs::read(&archive).expect("an archive"));
            let mut list = system::command("tar", "tar").expect("tar");
            let listed =
                crate::command::output(list.args(["--list", "--verbose", "--file"]).arg(&archive))
                    .expect("a list");
            let owners: Vec<&str> = listed
                .lines()
                .filter_map(|line| line.split_whitespace().nth(1))
                .collect();
            assert_eq!(
                owners,
                ["0/0", "0/0", "0/0", "0/0", "65532/65532", "65532/65532"],
                "{listed}"
            );
        }
        assert_eq!(made[0], made[1]);
        fs::remove_dir_all(&scratch).expect("clean");
    }
}
