//! `adjutant sessions`: finds, shows, renames, exports and deletes conversations.

mod args; // command-line arguments
mod choose; // the conversation chosen by -c and -r
mod end; // recording the end of a session
mod export; // export to a file
mod find; // lookup by a part of the id
mod folder; // the folder in which a conversation began
mod list; // tables
mod pick; // an interactive list
mod remove; // renaming and deletion
mod search; // conversation search
mod show; // state and last turns of a conversation

use adjutant_core::UserId;
use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use serde_json::json;

use crate::clock::now;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::store;
use crate::terminal::display::shown_path;
use crate::terminal::json_answer::Pending;
use crate::terminal::screen::Screen;

pub(crate) use args::Sessions;
pub(crate) use choose::{Resume, Start};
pub(crate) use end::end;
pub(crate) use export::{file_exists, load_export, save};
pub(crate) use find::find;
pub(crate) use folder::Folders;
pub(crate) use list::{list, list_filtered, short_of, table, title};
pub(crate) use pick::pick;
pub(crate) use remove::rename;
pub(crate) use show::{LastAnswer, print_resumed};

/// Context window of Ollama, in tokens, if none is set; the value of `OllamaOptions::default`.
const OLLAMA_WINDOW: u32 = 32_768;

/// Runs one subcommand.
///
/// # Errors
/// The store cannot be used, there is no such conversation or several, the file cannot be written,
/// or a deletion was not confirmed.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Sessions,
    yes: &[String],
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let (store, user) = (&*store, UserId::local());
    let now = now();
    let load = async |id: &str| {
        let found = find(store, &user, id).await?;
        let export = load_export(store, &user, found).await?;
        let session = export.session(now, summarize_from(settings, export.models.last()));
        Ok::<_, CliError>((export, session))
    };
    match command {
        Sessions::List {
            limit,
            search,
            here,
        } => {
            let only = here.then(|| Folders::new(settings).begun_here());
            list::print(
                store,
                screen,
                &user,
                search.as_deref(),
                only.as_ref(),
                limit,
            )
            .await?;
        }
        Sessions::Search { words, limit } => {
            search::print(store, screen, &user, &words.join(" "), limit).await?;
        }
        Sessions::Show { id, turns } => {
            let (export, session) = load(&id).await?;
            if screen.json() {
                let pending: Vec<Pending> = export.pending().map(Pending::new).collect();
                screen.answer_json(&show::Shown::new(&export, pending, &session));
            } else {
                show::print(screen, &export, &session, turns, now);
            }
        }
        Sessions::Export { id, output, force } => {
            let (export, session) = load(&id).await?;
            let text = match screen.json() {
                true => export.json(&session) + "\n",
                false => export.markdown(),
            };
            match output {
                None => screen.answer(&text),
                Some(file) => {
                    let file = save(&file, &text, force)?;
                    screen.result(&json!({ "file": file.to_string_lossy() }), || {
                        format!("Written to {}.", shown_path(&file))
                    });
                }
            }
        }
        Sessions::Rename { id, title: words } => {
            let found = find(store, &user, &id).await?;
            let key = store::key_of(&user, found.id);
            let title = rename(store, &key, &words.join(" ")).await?;
            screen.result(&json!({ "id": found.id, "title": title }), || {
                format!("Renamed to “{title}”.")
            });
        }
        Sessions::Rm { ids } => {
            return remove::ask_and_remove(store, screen, &user, &settings.dirs, &ids, yes).await;
        }
    }
    Ok(Exit::Ok)
}

/// Returns the number of tokens from which a conversation is compacted. `None` if compaction is
/// off, or the context window is known only when the model is opened.
fn summarize_from(settings: &Settings, model: Option<&String>) -> Option<u32> {
    // Other models report their window only when they are opened, and showing a conversation must
    // not load one.
    let window = match model?.split_once('/')?.0 {
        "ollama" => settings.ollama.context_size.unwrap_or(OLLAMA_WINDOW),
        _ => return None,
    };
    let usable = window.saturating_sub(OUTPUT_TOKENS_MAX);
    // A share of a `u32` fits into a `u32`.
    settings
        .agent
        .summarize_at
        .map(|share| (f64::from(usable) * share.get()) as u32)
}
