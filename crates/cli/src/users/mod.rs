//! `adjutant users`: everybody of whom something is kept, and what is kept of one.

mod delete; // for good
mod export; // all of it in a file
mod kept; // how much there is

use adjutant_core::UserId;
use adjutant_core::port::{PeopleFilter, Person};
use comfy_table::{ContentArrangement, Table, presets};

use crate::args::Users;
use crate::config::Settings;
use crate::display::{clip, json_line, local, tokens};
use crate::error::{CliError, Exit};
use crate::log::{moment, totals};
use crate::screen::Screen;
use crate::store::{self, Store};

/// Lists users, exports what is kept of one, or deletes it.
///
/// # Errors
/// The store cannot be used; nothing is kept of the user; the file cannot be written; nobody said
/// yes, or a turn of the user cannot be stopped.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Users,
    yes: &[String],
    json: bool,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Users::List {
            limit,
            after,
            since,
        } => {
            let since = since.map(|text| moment(&text)).transpose()?;
            list(
                &*store,
                screen,
                PeopleFilter {
                    after,
                    since,
                    limit,
                },
                json,
            )
            .await?;
        }
        Users::Export {
            user,
            output,
            force,
        } => {
            return export::run(
                &*store,
                screen,
                &user_of(user)?,
                (output.as_deref(), force),
                json,
            )
            .await;
        }
        Users::Delete { user } => delete::run(&*store, screen, &user_of(user)?, yes, json).await?,
    }
    Ok(Exit::Ok)
}

fn user_of(name: String) -> Result<UserId, CliError> {
    UserId::new(name).map_err(|error| CliError::usage(format!("that is no user's name: {error}")))
}

async fn list(
    store: &dyn Store,
    screen: &Screen,
    filter: PeopleFilter,
    json: bool,
) -> Result<(), CliError> {
    // One more tells whether there are more.
    let asked = PeopleFilter {
        limit: filter.limit.saturating_add(1),
        ..filter
    };
    let mut people = store.people(&asked).await?;
    let fit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let more = people.len() > fit;
    people.truncate(fit);
    if json {
        screen.answer_line(&json_line(&people));
    } else if people.is_empty() {
        screen.answer_line("Nothing is kept of anybody.");
    } else {
        screen.answer_line(&table(&people));
    }
    if let (true, Some(last)) = (more, people.last()) {
        screen.note(&format!(
            "there are more: --after {}",
            crate::log::quoted(&last.user)
        ));
    }
    Ok(())
}

fn table(people: &[Person]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "user",
        "conversations",
        "waiting",
        "tasks",
        "turns",
        "failed",
        "tokens in/out",
        "cost",
        "last seen",
    ]);
    for person in people {
        let total = &person.total;
        table.add_row([
            clip(&person.user, 40),
            person.conversations.to_string(),
            person.waiting.to_string(),
            person.tasks.to_string(),
            total.turns.to_string(),
            total.failed.to_string(),
            format!(
                "{}/{}",
                tokens(total.input_tokens),
                tokens(total.output_tokens)
            ),
            totals::cost(total),
            person.last_seen.map(local).unwrap_or_default(),
        ]);
    }
    table.trim_fmt()
}
