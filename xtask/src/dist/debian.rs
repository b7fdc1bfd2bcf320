//! File systems of Debian releases, made by `mmdebstrap`. Packages are tested in them, and the
//! container image takes its shared libraries from one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{system, tar};
use crate::command::{Failure, run, target as target_folder};
use crate::file_system::create_empty;

/// The oldest release that Debian's main mirrors still carry (glibc 2.31).
pub(super) const OLDEST: &str = "bullseye";
/// The release whose libraries go into the container image.
pub(super) const STABLE: &str = "trixie";

/// Packages to install in addition to the essential ones.
const PACKAGES: &str = "ca-certificates,systemd,tzdata";

/// Maximum age of a downloaded release, so that it has current security updates.
const MAX_AGE: Duration = Duration::from_hours(24);

/// Returns a tar archive of a Debian release, downloaded at most once per [`MAX_AGE`].
///
/// # Errors
/// `mmdebstrap` is missing or cannot download the packages.
pub(super) fn archive(release: &str) -> Result<PathBuf, Failure> {
    let archive = target_folder().join(format!("xtask/debian-{release}.tar"));
    let age = fs::metadata(&archive)
        .and_then(|file| file.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    if age.is_none_or(|age| age > MAX_AGE) {
        // An interrupted download must not look like a complete archive, so the file is renamed
        // last.
        let partial = archive.with_extension("partial.tar");
        let mut mmdebstrap = system::command("mmdebstrap", "mmdebstrap")?;
        mmdebstrap.args([
            "--quiet",
            "--variant=minbase",
            &format!("--include={PACKAGES}"),
            release,
        ]);
        run(mmdebstrap.arg(&partial))?;
        fs::rename(&partial, &archive)
            .map_err(|error| format!("{}: {error}", archive.display()))?;
    }
    Ok(archive)
}

/// A root file system to test in, deleted on drop.
pub(super) struct Root {
    pub(super) folder: PathBuf,
}

impl Root {
    /// Unpacks an archive of a whole file system into a folder. Only root can do this.
    ///
    /// # Errors
    /// The archive cannot be unpacked.
    pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<Self, Failure> {
        let root = Self {
            folder: create_empty(folder)?,
        };
        tar::unpack(archive, &root.folder, &[])?;
        Ok(root)
    }

    /// Returns a command that runs as root inside this file system.
    ///
    /// # Errors
    /// `chroot` is missing.
    pub(super) fn command(&self, arguments: &[&str]) -> Result<std::process::Command, Failure> {
        let mut chroot = system::command("chroot", "coreutils")?;
        chroot
            .arg(&self.folder)
            .args(arguments)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        chroot.env("DEBIAN_FRONTEND", "noninteractive");
        Ok(chroot)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // If deleting fails, the next run deletes the folder before it unpacks.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
