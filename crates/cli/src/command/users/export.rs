//! Export of all data of a user as JSON lines.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use adjutant_core::port::StoreError;
use adjutant_core::{DecisionFilter, DecisionRecord, UserId, transcript};
use adjutant_store::StoredConversation;
use adjutant_tools::{TaskFilter, TaskStore};
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::row_counts::row_counts;
use crate::clock;
use crate::command::output::file_error;
use crate::command::sessions::file_exists;
use crate::command::token;
use crate::error::{CliError, Exit};
use crate::store::Store;
use crate::terminal::display::{json_line, plural, shown_path};
use crate::terminal::screen::Screen;

/// Version of the format. Kinds of lines and fields may be added without a new version.
const VERSION: u32 = 1;
/// Decisions loaded at once.
const AT_ONCE: u32 = 200;

/// Data that an export lacks; its manifest names it.
const LEFT_OUT: [&str; 3] = [
    "hashes of the secrets of access tokens",
    "snapshots of conversations: they follow from the events",
    "files: the vault with its notes and facts, settings, keys",
];

/// Writes all data of a user to a file or standard output. With exit code 1, some of it could not
/// be read: a line in its place says so.
///
/// # Errors
/// There is no data of the user, the store cannot be read, or the file cannot be written.
pub(super) async fn run(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    file: Option<&Path>,
    force: bool,
) -> Result<Exit, CliError> {
    let kept = row_counts(store, user).await?;
    let target = match file {
        Some(file) => Target::beside(file, force)?,
        None => Target::Output(screen),
    };
    let mut lines = Lines {
        target,
        counts: BTreeMap::new(),
    };
    let rows: BTreeMap<&str, u64> = kept
        .iter()
        .map(|table| (table.name.as_str(), table.rows))
        .collect();
    let now = clock::now();
    lines.line(
        "manifest",
        &json!({
            "format": "adjutant-user-export", "version": VERSION, "user": user, "exported_at": now,
            "adjutant": env!("CARGO_PKG_VERSION"), "schema_version": store.status().await?.schema_version,
            "rows": rows, "left_out": LEFT_OUT,
        }),
    )?;
    for task in TaskStore::list(store, user, TaskFilter::All).await? {
        lines.line("task", &task)?;
    }
    // Page by page, so that memory does not grow with the user's history.
    let mut after = 0;
    loop {
        let page = store.conversations_of(user, after).await?;
        let Some(last) = page.last() else { break };
        after = last.place;
        for stored in page {
            conversation(store, &mut lines, &stored).await?;
        }
    }
    decisions(store, &mut lines, user).await?;
    for token in store.tokens(Some(user)).await? {
        let mut fields = token::to_json(&token);
        // The user is in the manifest, for all lines.
        fields
            .as_object_mut()
            .and_then(|fields| fields.shift_remove("user"));
        lines.line("access_token", &fields)?;
    }
    for row in store.rows_of(user).await? {
        lines.line("row", &row)?;
    }
    let unreadable = lines.counts.get("unreadable").copied().unwrap_or_default();
    let counts = lines.counts.clone();
    // The last line, by which a reader knows that the file is complete.
    lines.line("end", &json!({ "lines": counts }))?;
    if let Some(place) = lines.target.end()? {
        screen.result(
            &json!({ "file": place.to_string_lossy(), "lines": counts }),
            || format!("Written to {}.", shown_path(&place)),
        );
    }
    if unreadable > 0 {
        let unread = plural(unreadable, "conversation", "conversations");
        screen.error(
            &CliError::failed(format!("{unread} cannot be read; the rest is there"))
                .or_try("adjutant db check"),
        );
        return Ok(Exit::Failed);
    }
    Ok(Exit::Ok)
}

/// Writes a conversation as a transcript, then its events.
async fn conversation(
    store: &dyn Store,
    lines: &mut Lines<'_>,
    stored: &StoredConversation,
) -> Result<(), CliError> {
    let id = stored.key.conversation;
    let loaded = match store.load(&stored.key).await {
        Ok(loaded) => loaded,
        // The export goes on: a damaged conversation must not keep the user from the others.
        Err(StoreError::Unreadable { message, .. }) => {
            return lines.line(
                "unreadable",
                &json!({ "conversation": id, "problem": message }),
            );
        }
        Err(error) => return Err(error.into()),
    };
    lines.line(
        "conversation",
        &json!({
            "id": id, "agent": stored.key.agent, "title": stored.title, "created_at": stored.created_at,
            "updated_at": stored.updated_at, "turns": stored.turns, "messages": transcript(&loaded.events),
            "not_yet_begun": loaded.inbox,
        }),
    )?;
    for recorded in &loaded.events {
        lines.line(
            "event",
            &json!({ "conversation": id, "seq": recorded.seq, "at": recorded.at, "event": &*recorded.event }),
        )?;
    }
    Ok(())
}

async fn decisions(
    store: &dyn Store,
    lines: &mut Lines<'_>,
    user: &UserId,
) -> Result<(), CliError> {
    let mut filter = DecisionFilter {
        limit: Some(AT_ONCE),
        ..DecisionFilter::default()
    };
    loop {
        let page = store.decisions(user, &filter).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        filter.after = Some(DecisionRecord::cursor(last));
        for decision in page {
            let calls = store.tool_invocations(user, decision.id).await?;
            lines.line("decision", &decision)?;
            for call in calls {
                lines.line("tool_invocation", &call)?;
            }
        }
    }
}

/// Writes the lines of an export and counts them by kind.
struct Lines<'a> {
    target: Target<'a>,
    counts: BTreeMap<&'static str, u64>,
}

impl Lines<'_> {
    /// Writes an object with its kind as the first field. An object that has such a field itself is
    /// nested in `data`.
    fn line(&mut self, kind: &'static str, value: &impl Serialize) -> Result<(), CliError> {
        let value =
            serde_json::to_value(value).map_err(|error| CliError::failed(error.to_string()))?;
        let line = match value {
            Value::Object(fields) if !fields.contains_key("kind") => {
                let mut line = serde_json::Map::from_iter([("kind".to_owned(), kind.into())]);
                line.extend(fields);
                Value::Object(line)
            }
            other => json!({ "kind": kind, "data": other }),
        };
        *self.counts.entry(kind).or_default() += 1;
        self.target.write(&json_line(&line))
    }
}

/// Destination of an export: a file that appears when it is complete, or standard output.
enum Target<'a> {
    Output(&'a Screen),
    File {
        place: PathBuf,
        /// Beside the final path, because a file can be moved in one step within a folder only. It
        /// is removed on drop, unless it was moved.
        file: BufWriter<NamedTempFile>,
    },
}

impl Target<'_> {
    /// Creates a temporary file beside the final path, which only its owner may read.
    fn beside(place: &Path, force: bool) -> Result<Self, CliError> {
        let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
        if place.exists() && !force {
            return Err(file_exists(&place));
        }
        let folder = place.parent().unwrap_or(&place);
        let file =
            NamedTempFile::new_in(folder).map_err(|error| file_error(&place, "written", &error))?;
        Ok(Self::File {
            file: BufWriter::new(file),
            place,
        })
    }

    fn write(&mut self, line: &str) -> Result<(), CliError> {
        match self {
            Self::Output(screen) => {
                screen.answer_line(line);
                // Checked after every line: a full disk ends the export, not only its exit code.
                screen.lost_output().map_or(Ok(()), Err)
            }
            Self::File { place, file, .. } => {
                writeln!(file, "{line}").map_err(|error| file_error(place, "written", &error))
            }
        }
    }

    /// Moves the file to its final path; `None` for standard output.
    fn end(self) -> Result<Option<PathBuf>, CliError> {
        let Self::File { place, file } = self else {
            return Ok(None);
        };
        let moved = file
            .into_inner()
            .map_err(|error| error.into_error())
            .and_then(|file| {
                // Synced before it is renamed: after a crash the name must not lead to an empty
                // file.
                file.as_file().sync_all()?;
                Ok(file.persist(&place)?)
            });
        match moved {
            Ok(_) => Ok(Some(place)),
            Err(error) => Err(file_error(&place, "written", &error)),
        }
    }
}
