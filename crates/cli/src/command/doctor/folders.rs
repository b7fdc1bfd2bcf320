//! Checks of folders: write access and free space.

use std::path::Path;

use super::{Check, Group};
use crate::config::Settings;
use crate::terminal::display::shell_quoted;

const GROUP: Group = Group("data");

/// Free bytes below which a database cannot be kept safely.
#[cfg(unix)]
const SPACE_NEEDED: u64 = 64 * 1024 * 1024;
/// Free bytes below which the embedded model cannot be downloaded.
#[cfg(unix)]
const SPACE_WANTED: u64 = 2 * 1024 * 1024 * 1024;

/// Checks the folders, and the free space for data.
pub(super) fn checks(settings: &Settings) -> Vec<Check> {
    let dirs = &settings.dirs;
    let all = [
        ("data folder", &dirs.data, "XDG_DATA_HOME"),
        ("state folder", &dirs.state, "XDG_STATE_HOME"),
        ("cache folder", &dirs.cache, "XDG_CACHE_HOME"),
    ];
    let mut checks: Vec<Check> = all
        .into_iter()
        .map(|(name, folder, variable)| writable(name, folder, variable))
        .collect();
    #[cfg(unix)]
    checks.extend(space(&dirs.data));
    checks
}

fn writable(name: &'static str, folder: &Path, variable: &str) -> Check {
    match try_write(folder) {
        Ok(true) => GROUP.ok(name, folder.display().to_string()),
        Ok(false) => GROUP.ok(
            name,
            format!("{} (not there yet: made when needed)", folder.display()),
        ),
        Err(error) => {
            let blocking = nearest_existing(folder);
            let remedy = match blocking {
                Some(file) if !file.is_dir() => {
                    let file = file.to_string_lossy();
                    format!(
                        "mv {} {}    (it is a file where a folder belongs), or set {variable}",
                        shell_quoted(&file),
                        shell_quoted(&format!("{file}.old"))
                    )
                }
                Some(there) => {
                    format!(
                        "chmod u+rwx {}, or set {variable} to a folder you can write",
                        shell_quoted(&there.to_string_lossy())
                    )
                }
                None => format!("set {variable} to a folder you can write"),
            };
            GROUP
                .fail(name, format!("{} cannot be written", folder.display()))
                .because(error)
                .with_remedy(remedy)
        }
    }
}

/// Creates and removes a file in the folder; returns false if the folder does not exist and could
/// be created.
fn try_write(folder: &Path) -> std::io::Result<bool> {
    // A folder that does not exist is made when it is needed, so its nearest ancestor decides.
    let there = nearest_existing(folder).ok_or(std::io::ErrorKind::NotFound)?;
    if !there.is_dir() {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    if there == folder {
        // The temporary file is removed on drop.
        tempfile::NamedTempFile::new_in(folder)?;
        return Ok(true);
    }
    // Asked of the system and not tried: doctor changes nothing, so the folder is not created.
    #[cfg(unix)]
    rustix::fs::access(
        there,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )?;
    Ok(false)
}

/// Returns the nearest ancestor that exists.
pub(super) fn nearest_existing(path: &Path) -> Option<&Path> {
    path.ancestors().find(|path| path.exists())
}

#[cfg(unix)]
fn space(folder: &Path) -> Option<Check> {
    let about = rustix::fs::statvfs(nearest_existing(folder)?).ok()?;
    // The blocks that this user may use; some of the free ones are reserved for root.
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let shown = format!("{:.1} GB free where data is", free as f64 / 1e9);
    let remedy = format!(
        "df -h {}    (free some space)",
        shell_quoted(&folder.to_string_lossy())
    );
    Some(match free {
        ..SPACE_NEEDED => GROUP
            .fail("disk space", shown)
            .because("what is written may not be kept")
            .with_remedy(remedy),
        SPACE_NEEDED..SPACE_WANTED => GROUP
            .warn("disk space", shown)
            .because("the embedded model would not fit beside everything else")
            .with_remedy(remedy),
        _ => GROUP.ok("disk space", shown),
    })
}
