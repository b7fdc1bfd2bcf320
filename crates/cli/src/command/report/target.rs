//! The ZIP archive or folder of a bug report.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::parts::Part;
use crate::args::Report;
use crate::command::output::file_error;
use crate::error::CliError;
use crate::private_file;

/// Writes the files and returns the path of the report.
///
/// # Errors
/// The path exists already, or cannot be written.
pub(super) fn write(options: &Report, parts: &[Part], now: Timestamp) -> Result<PathBuf, CliError> {
    let (place, written) = match &options.folder {
        Some(folder) => (absolute(folder), folder_of(folder, parts)),
        None => {
            let usual = || {
                PathBuf::from(format!(
                    "adjutant-report-{}.zip",
                    now.strftime("%Y%m%d-%H%M%S")
                ))
            };
            let file = options.output.clone().unwrap_or_else(usual);
            (absolute(&file), archive(&file, parts))
        }
    };
    written.map_err(|error| {
        file_error(&place, "written", &error)
            .or_try("another name, of something that is not there yet")
    })?;
    Ok(place)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn folder_of(folder: &Path, parts: &[Part]) -> std::io::Result<()> {
    // Fails if it exists: files of an earlier report must not be sent as part of this one.
    fs::create_dir(folder)?;
    for part in parts {
        private_file::create_new(&folder.join(part.name))?.write_all(part.text.as_bytes())?;
    }
    Ok(())
}

fn archive(file: &Path, parts: &[Part]) -> std::io::Result<()> {
    let written = private_file::create_new(file)?;
    let write = || -> std::io::Result<()> {
        let mut archive = ZipWriter::new(&written);
        for part in parts {
            archive.start_file(part.name, SimpleFileOptions::default())?;
            archive.write_all(part.text.as_bytes())?;
        }
        archive.finish()?;
        written.sync_all()
    };
    // A partial archive is removed.
    write().inspect_err(|_| drop(fs::remove_file(file)))
}
