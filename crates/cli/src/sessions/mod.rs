//! `adjutant sessions`: the conversations, to be found, read, named, taken up again, kept elsewhere or removed.

mod args; // the command line
mod choose; // which one is taken up again
mod end; // when a person leaves
mod export; // one of them in a file
mod find; // by a part of its id
mod list; // all of them
mod pick; // by looking
mod remove; // for good
mod show; // where one stands, and its last turns

use adjutant_core::{ConversationKey, UserId, session};
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
pub(crate) use export::{Export, save};
pub(crate) use find::find;
pub(crate) use list::{list, table, title};
pub(crate) use pick::pick;
pub(crate) use remove::{remove, rename};
pub(crate) use show::show_again;

/// Lists, shows, exports, renames or removes conversations.
///
/// # Errors
/// The store cannot be used; there is no, or more than one, such conversation; the file cannot be written; nobody could say
/// yes to a removal.
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
        Sessions::List { limit, search } => {
            list::tell(store, screen, &user, (search.as_deref(), limit), json).await?;
        }
        Sessions::Show { id, turns } => {
            let found = find(store, &user, &id).await?;
            let export = Export::of(store, &user, found).await?;
            if json {
                let pending: Vec<Pending> = export.pending().map(Pending::of).collect();
                screen.answer_line(&json_line(&show::Shown::of(&export, pending, now)));
            } else {
                show::tell(screen, &export, turns, now);
            }
        }
        Sessions::Export { id, output, force } => {
            let found = find(store, &user, &id).await?;
            let export = Export::of(store, &user, found).await?;
            let text = if json { export.json(now) + "\n" } else { export.markdown() };
            match output {
                None => screen.answer(&text),
                Some(file) => {
                    let file = save(&file, &text, force)?;
                    if json {
                        screen.answer_line(&json_line(&json!({ "file": file.to_string_lossy() })));
                    } else {
                        screen.answer_line(&format!("It is in {}.", file.display()));
                    }
                }
            }
        }
        Sessions::Rename { id, title: words } => {
            let found = find(store, &user, &id).await?;
            let key = ConversationKey { user, conversation: found.id };
            let title = rename(store, &key, &words.join(" ")).await?;
            if json {
                screen.answer_line(&json_line(&json!({ "id": found.id, "title": title })));
            } else {
                screen.answer_line(&format!("It is called “{title}” now."));
            }
        }
        Sessions::Rm { ids } => return remove::ask_and_remove(store, screen, &user, (&ids, yes), json).await,
    }
    Ok(Exit::Ok)
}

/// A conversation as a session, from all that is known of it.
fn standing(known: &adjutant_core::port::Loaded, now: Timestamp) -> adjutant_core::Session {
    session(known, now, None)
}

#[expect(clippy::disallowed_methods, reason = "how long ago something is has to be told by somebody")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// `3 min ago`.
fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", crate::display::rough(now.as_second() - at.as_second()))
}
