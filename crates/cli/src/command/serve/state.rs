use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

/// `serve.json`: address and token of the service on this machine, readable by its owner only. It
/// is removed when the service ends in order; after a crash, its `pid` names no running process.
#[derive(Debug)]
pub(super) struct StateFile(PathBuf);

impl StateFile {
    /// Writes the file; of several services of one user, the last one overwrites it.
    pub(super) fn write(folder: &Path, url: &str, token: Option<&str>) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let path = folder.join("serve.json");
        let draft = folder.join(format!("serve.json.{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let content =
            json!({ "url": url, "token": token, "user": "local", "pid": std::process::id() });
        let written = options
            .open(&draft)
            .and_then(|mut file| writeln!(file, "{content}"));
        // Renamed into place, so that readers see the old or the new file, never a partial one.
        if let Err(error) = written.and_then(|()| fs::rename(&draft, &path)) {
            // The error that is returned matters more; a draft that stays is overwritten by the
            // next start of a process with this id.
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // Another service of the same user may have overwritten the file meanwhile.
        let ours = fs::read(&self.0)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
            .is_some_and(|content| content["pid"] == std::process::id());
        if ours {
            // A file that cannot be removed names a process that has ended, which readers check.
            let _ = fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_owners_alone_and_goes_with_its_service_only() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("state");
        let file = StateFile::write(&folder, "http://127.0.0.1:1", Some("secret")).unwrap();
        let path = file.path().to_owned();
        let content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (&content["url"], &content["token"]),
            (&json!("http://127.0.0.1:1"), &json!("secret"))
        );
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(&path).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
        drop(file);
        assert!(fs::read_dir(&folder).unwrap().next().is_none());
        // Another service has written its own since.
        let file = StateFile::write(&folder, "http://127.0.0.1:1", None).unwrap();
        fs::write(&path, r#"{"pid": 0}"#).unwrap();
        drop(file);
        assert!(path.exists());
    }
}
