//! File systems of Debian, made by `mmdebstrap`: to try products in, and to take the container's
//! libraries from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::empty;
use super::{system, tar};
use crate::command::{Failure, run, target as target_folder};

/// The oldest release that can still be fetched from where new ones are (glibc 2.31).
pub(super) const OLDEST: &str = "bullseye";
/// The release whose libraries go into the container's image.
pub(super) const STABLE: &str = "trixie";

/// Packages that are in every one of them, besides those without which Debian does not run.
const PACKAGES: &str = "ca-certificates,systemd,tzdata";

/// Time after which one is fetched again, for the sake of its security updates.
const FRESH: Duration = Duration::from_hours(24);

/// Returns a release as a tar archive.
///
/// # Errors
/// If `mmdebstrap` is missing, or the packages cannot be fetched.
pub(super) fn packed(release: &str) -> Result<PathBuf, Failure> {
    let archive = target_folder().join(format!("xtask/debian-{release}.tar"));
    let age = fs::metadata(&archive)
        .and_then(|file| file.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    if age.is_none_or(|age| age > FRESH) {
        let begun = archive.with_extension("begun.tar");
        let mut mmdebstrap = system::command("mmdebstrap", "mmdebstrap")?;
        mmdebstrap.args([
            "--quiet",
            "--variant=minbase",
            &format!("--include={PACKAGES}"),
            release,
        ]);
        run(mmdebstrap.arg(&begun))?;
        fs::rename(&begun, &archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    }
    Ok(archive)
}

/// A file system to work in. It is removed with this.
pub(super) struct Root {
    pub(super) folder: PathBuf,
}

impl Root {
    /// Unpacks an archive with a whole file system. Needs root.
    ///
    /// # Errors
    /// If it cannot be unpacked.
    pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<Self, Failure> {
        let root = Self {
            folder: empty(folder)?,
        };
        tar::unpack(archive, &root.folder, &[])?;
        Ok(root)
    }

    /// Returns a command that runs in it, as root.
    ///
    /// # Errors
    /// If `chroot` is missing.
    pub(super) fn command(&self, words: &[&str]) -> Result<std::process::Command, Failure> {
        let mut chroot = system::command("chroot", "coreutils")?;
        chroot
            .arg(&self.folder)
            .args(words)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        chroot.env("DEBIAN_FRONTEND", "noninteractive");
        Ok(chroot)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // What is left is overwritten by the next run.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
