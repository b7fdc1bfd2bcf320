//! Discovery of Obsidian vaults: in Obsidian's own list, in iCloud, and below the home folder.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::outside_file::read_regular_file;

/// Levels of folders below the home folder that are searched.
const DEPTH_MAX: usize = 4;
/// Number of folders that are opened below the home folder.
const FOLDERS_MAX: usize = 5_000;
/// Number of vaults that are returned.
const VAULTS_MAX: usize = 20;
/// Bytes of Obsidian's list that are read. Obsidian's own is a few kilobytes.
const LIST_BYTES_MAX: u64 = 1024 * 1024;
/// Names of large folders of programs, which hold no notes.
const SKIPPED: &[&str] = &[
    "node_modules",
    "target",
    "vendor",
    "Library",
    "AppData",
    "snap",
    "go",
    "__pycache__",
];

/// The operating system, which decides where programs keep their settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum System {
    /// Linux, and every other system that follows the XDG directories.
    Linux,
    /// macOS, with `~/Library` and iCloud Drive below it.
    MacOs,
    /// Windows, with `%APPDATA%` and `iCloudDrive` in the home folder.
    Windows,
}

impl System {
    /// Returns the system that this program was built for.
    #[must_use]
    pub fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// The folders of a user below which vaults are searched for.
#[derive(Debug, Clone)]
pub struct UserFolders {
    /// The system whose conventions the folders follow.
    pub system: System,
    /// The user's home folder.
    pub home: PathBuf,
    /// The folder of settings: `$XDG_CONFIG_HOME` on Linux, `%APPDATA%` on Windows. `None` if it is
    /// not set; then its default below `home` is used.
    pub config: Option<PathBuf>,
}

impl UserFolders {
    /// Returns the files in which Obsidian may keep its list of vaults.
    fn lists(&self) -> Vec<PathBuf> {
        let below = |path: &str| self.home.join(path);
        let config = |usual: &str| self.config.clone().unwrap_or_else(|| below(usual));
        match self.system {
            System::Linux => vec![
                config(".config").join("obsidian/obsidian.json"),
                // Obsidian as Flatpak and Snap install it, which give it a home folder of its own.
                below(".var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json"),
                below("snap/obsidian/current/.config/obsidian/obsidian.json"),
            ],
            System::MacOs => vec![below("Library/Application Support/obsidian/obsidian.json")],
            System::Windows => vec![config("AppData/Roaming").join("obsidian/obsidian.json")],
        }
    }

    /// Returns the folder of the vaults that Obsidian keeps in iCloud.
    fn icloud(&self) -> Option<PathBuf> {
        match self.system {
            System::MacOs => Some(
                self.home
                    .join("Library/Mobile Documents/iCloud~md~obsidian/Documents"),
            ),
            System::Windows => Some(self.home.join("iCloudDrive/iCloud~md~obsidian")),
            System::Linux => None,
        }
    }
}

/// Finds a user's vaults: those of Obsidian's own list, the open ones first, then the one opened
/// last; then those of iCloud; then folders below the home folder with a `.obsidian` folder,
/// nearest first, then by name. At most 20.
///
/// Below the home folder 4 levels are searched, 5,000 folders at most. Hidden folders, folders of
/// programs, symbolic links and folders that cannot be read are skipped there, and a vault is not
/// searched for vaults. A list that cannot be read is skipped, and so are its entries that do not
/// exist any more.
///
/// # Examples
///
/// ```no_run
/// use std::path::PathBuf;
///
/// use adjutant_memory::{System, UserFolders, find_vaults};
///
/// let folders = UserFolders {
///     system: System::current(),
///     home: PathBuf::from("/srv/anna"),
///     config: None,
/// };
/// for vault in find_vaults(&folders) {
///     println!("{}", vault.display());
/// }
/// ```
#[must_use]
pub fn find_vaults(folders: &UserFolders) -> Vec<PathBuf> {
    let mut vaults = Vec::new();
    let listed = folders
        .lists()
        .into_iter()
        .flat_map(|list| listed_vaults(&list));
    let icloud = folders.icloud().into_iter();
    let icloud = icloud
        .flat_map(|folder| subfolders(&folder))
        .filter(|folder| folder.join(".obsidian").is_dir());
    let found = search_below_home(&folders.home);
    for vault in listed.chain(icloud).chain(found) {
        if vaults.len() == VAULTS_MAX {
            break;
        }
        // One vault may be reached by several paths.
        let is_same = |other: &PathBuf| match (fs::canonicalize(other), fs::canonicalize(&vault)) {
            (Ok(one), Ok(other)) => one == other,
            _ => *other == vault,
        };
        if !vaults.iter().any(is_same) {
            vaults.push(vault);
        }
    }
    vaults
}

/// Returns the existing folders of Obsidian's list: `{"vaults": {"id": {"path": ..., "ts": ...,
/// "open": true}}}`.
fn listed_vaults(list: &Path) -> Vec<PathBuf> {
    let text = read_regular_file(list, LIST_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8(text).unwrap_or_default();
    let known: Map<String, Value> =
        serde_json::from_str(text.trim_start_matches('\u{FEFF}')).unwrap_or_default();
    let mut vaults: Vec<(bool, u64, PathBuf)> = known
        .get("vaults")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|vault| {
            let open = vault
                .get("open")
                .and_then(Value::as_bool)
                .unwrap_or_default();
            let opened = vault.get("ts").and_then(Value::as_u64).unwrap_or_default();
            Some((open, opened, PathBuf::from(vault.get("path")?.as_str()?)))
        })
        .filter(|(_, _, path)| path.is_absolute() && path.is_dir())
        .collect();
    // The open vault first, then the one that was opened last.
    vaults.sort_by(|one, other| (other.0, other.1, &one.2).cmp(&(one.0, one.1, &other.2)));
    vaults.into_iter().map(|(_, _, path)| path).collect()
}

fn search_below_home(home: &Path) -> Vec<PathBuf> {
    let mut vaults = Vec::new();
    // Breadth first: if a bound ends the search, all folders near the home were searched.
    let mut queue = VecDeque::from([(home.to_owned(), 0)]);
    let mut opened = 0;
    while let Some((folder, depth)) = queue.pop_front() {
        if opened == FOLDERS_MAX || vaults.len() == VAULTS_MAX {
            break;
        }
        opened += 1;
        if folder.join(".obsidian").is_dir() {
            vaults.push(folder);
            continue;
        }
        if depth == DEPTH_MAX {
            continue;
        }
        queue.extend(
            subfolders(&folder)
                .into_iter()
                .map(|folder| (folder, depth + 1)),
        );
    }
    vaults
}

/// Returns the folders in a folder, by name, without hidden ones and those of programs.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let mut below: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            !name.starts_with('.') && !SKIPPED.contains(&name.as_ref())
        })
        .map(|entry| entry.path())
        .collect();
    below.sort();
    below
}
