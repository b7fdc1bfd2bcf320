//! `adjutant report`: what a report of a bug needs, without secrets and without what was said.
//!
//! Nothing gets in because it looks harmless: each field that is written is named here.

mod parts; // what is in it
mod target; // where it goes

use jiff::Timestamp;
use serde_json::json;

use crate::args::Report;
use crate::config::Sources;
use crate::display::{json_line, size};
use crate::error::{CliError, Exit};
use crate::screen::Screen;
use crate::store;
use parts::Part;

/// Collects everything, writes it, and says what is in it.
///
/// # Errors
/// It cannot be written, there is no such turn, or the log cannot be read. Settings and a database
/// that cannot be read are no error: that is then in the report.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    options: Report,
    json: bool,
) -> Result<Exit, CliError> {
    #[expect(clippy::disallowed_methods, reason = "a report says when it was made")]
    let now = Timestamp::now();
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
    if json {
        let files: Vec<_> = parts
            .iter()
            .map(|part| json!({ "file": part.name, "holds": part.holds }))
            .collect();
        screen.answer_line(&json_line(
            &json!({ "written": place.to_string_lossy(), "files": files }),
        ));
        return Ok(Exit::Ok);
    }
    screen.answer_line(&format!("Written to {}:", place.display()));
    for Part { name, holds, text } in &parts {
        screen.answer_line(&format!(
            "  {name:14} {:>9}  {holds}",
            size(text.len() as u64)
        ));
    }
    screen.note("nothing was sent: look at it, then attach it to your report");
    Ok(Exit::Ok)
}
