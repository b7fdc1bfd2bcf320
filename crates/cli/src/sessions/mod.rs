//! `adjutant sessions`: the conversations, to be found, read, named, taken up again, kept elsewhere
//! or removed.

mod args; // the command line
mod choose; // which one is taken up again
mod end; // when a person leaves
mod export; // one of them in a file
mod find; // by a part of its id
mod folder; // where it began
mod list; // all of them
mod pick; // by looking
mod remove; // for good
mod search; // what was said
mod show; // where one stands, and its last turns

use adjutant_core::UserId;
use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use jiff::Timestamp;
use serde_json::json;

use crate::config::Settings;
use crate::display::json_line;
use crate::error::{CliError, Exit};
use crate::report::Pending;
use crate::screen::Screen;
use crate::store;

pub(crate) use args::Sessions;
pub(crate) use choose::{Start, TakeUp};
pub(crate) use end::end;
pub(crate) use export::{export_of, save};
pub(crate) use find::find;
pub(crate) use folder::Folders;
pub(crate) use list::{list, list_of, short_of, table, title};
pub(crate) use pick::pick;
pub(crate) use remove::rename;
pub(crate) use show::{LastAnswer, show_again};

/// Tokens of Ollama's window where nobody says otherwise. As `OllamaOptions::default` has it.
const OLLAMA_WINDOW: u32 = 32_768;

/// Lists, shows, exports, renames or removes conversations.
///
/// # Errors
/// The store cannot be used; there is no, or more than one, such conversation; the file cannot be
/// written; nobody could say yes to a removal.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Sessions,
    yes: &[String],
    json: bool,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let (store, user) = (&*store, UserId::local());
    let now = now();
    match command {
        Sessions::List {
            limit,
            search,
            here,
        } => {
            let only = here.then(|| Folders::new(settings).begun_here());
            list::tell(
                store,
                screen,
                &user,
                (search.as_deref(), only.as_ref(), limit),
                json,
            )
            .await?;
        }
        Sessions::Search { words, limit } => {
            search::tell(store, screen, &user, (&words.join(" "), limit), json).await?;
        }
        Sessions::Show { id, turns } => {
            let found = find(store, &user, &id).await?;
            let export = export_of(store, &user, found).await?;
            let session = export.session(now, summarize_from(settings, export.models.last()));
            if json {
                let pending: Vec<Pending> = export.pending().map(Pending::of).collect();
                screen.answer_line(&json_line(&show::Shown::of(&export, pending, &session)));
            } else {
                show::tell(screen, &export, &session, turns, now);
            }
        }
        Sessions::Export { id, output, force } => {
            let found = find(store, &user, &id).await?;
            let export = export_of(store, &user, found).await?;
            let text = if json {
                export.json(&export.session(now, summarize_from(settings, export.models.last())))
                    + "\n"
            } else {
                export.markdown()
            };
            match output {
                None => screen.answer(&text),
                Some(file) => {
                    let file = save(&file, &text, force)?;
                    if json {
                        screen.answer_line(&json_line(&json!({ "file": file.to_string_lossy() })));
                    } else {
                        screen.answer_line(&format!("Written to {}.", file.display()));
                    }
                }
            }
        }
        Sessions::Rename { id, title: words } => {
            let found = find(store, &user, &id).await?;
            let key = store::key_of(&user, found.id);
            let title = rename(store, &key, &words.join(" ")).await?;
            if json {
                screen.answer_line(&json_line(&json!({ "id": found.id, "title": title })));
            } else {
                screen.answer_line(&format!("Renamed to “{title}”."));
            }
        }
        Sessions::Rm { ids } => {
            return remove::ask_and_remove(
                store,
                screen,
                (&user, &settings.dirs),
                (&ids, yes),
                json,
            )
            .await;
        }
    }
    Ok(Exit::Ok)
}

/// From how many tokens on a conversation is summarized. `None`: it is not, or the window of its
/// model is only known to whoever opens it.
fn summarize_from(settings: &Settings, model: Option<&String>) -> Option<u32> {
    let window = match model?.split_once('/')?.0 {
        "ollama" => settings.ollama.context_size.unwrap_or(OLLAMA_WINDOW),
        _ => return None,
    };
    let usable = window.saturating_sub(OUTPUT_TOKENS_MAX);
    // A share of what fits into 32 bits does, too.
    settings
        .agent
        .summarize_at
        .map(|share| (f64::from(usable) * share.get()) as u32)
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long ago something is has to be told by somebody"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// `3 min ago`.
fn ago(at: Timestamp, now: Timestamp) -> String {
    format!(
        "{} ago",
        crate::display::rough(now.as_second() - at.as_second())
    )
}
