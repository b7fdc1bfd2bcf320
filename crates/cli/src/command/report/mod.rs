//! `adjutant report`: collects data for a bug report, without secrets and message contents.
//!
//! All written fields are listed in this module; nothing is included because it seems harmless.

mod parts; // contents of the files
mod target; // the archive or folder

use serde_json::json;

use crate::args::Report;
use crate::clock;
use crate::config::Sources;
use crate::error::{CliError, Exit};
use crate::store;
use crate::terminal::display::{shown_path, size};
use crate::terminal::screen::Screen;
use parts::Part;

/// Collects and writes the report, and prints what it contains.
///
/// # Errors
/// The report cannot be written, there is no such turn, or the log file cannot be read. Unreadable
/// settings or databases are recorded in the report instead.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    options: Report,
) -> Result<Exit, CliError> {
    let now = clock::now();
    let mut parts = vec![parts::about(now), parts::doctor(sources).await];
    match sources.load() {
        Ok(settings) => {
            parts.push(parts::settings(&settings));
            match store::open(&settings).await {
                Ok(store) => {
                    parts.extend(parts::database(&*store).await);
                    if let Some(id) = &options.turn {
                        parts.push(parts::turn(&*store, &settings, id, options.with_words).await?);
                    }
                }
                // A report with `--turn` that lacks the turn would be of no use.
                Err(error) if options.turn.is_some() => return Err(error),
                Err(error) => parts.push(parts::unreadable("database", &error)),
            }
        }
        Err(error) if options.turn.is_some() => return Err(error),
        Err(error) => parts.push(parts::unreadable("settings", &error)),
    }
    if let Some(file) = &options.log {
        parts.push(parts::log(file)?);
    }
    let place = target::write(&options, &parts, now)?;
    if screen.json() {
        let files: Vec<_> = parts
            .iter()
            .map(|part| json!({ "file": part.name, "holds": part.holds }))
            .collect();
        screen.answer_json(&json!({ "written": place.to_string_lossy(), "files": files }));
        return Ok(Exit::Ok);
    }
    screen.answer_line(&format!("Written to {}:", shown_path(&place)));
    for Part { name, holds, text } in &parts {
        screen.answer_line(&format!(
            "  {name:14} {:>9}  {holds}",
            size(text.len() as u64)
        ));
    }
    screen.note("nothing was sent: look at it, then attach it to your report");
    Ok(Exit::Ok)
}
