//! `adjutant users`: lists the users with stored data, and exports or deletes the data of one.

mod delete; // deletion of all data
mod export; // export of all data
mod row_counts; // row counts

use adjutant_core::UserId;
use adjutant_core::port::{PeopleFilter, Person};
use comfy_table::{ContentArrangement, Table, presets};

use crate::args::Users;
use crate::command::log::{moment, totals};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::store::{self, Store};
use crate::terminal::display::{clip, local, tokens};
use crate::terminal::screen::Screen;

/// Runs one subcommand.
///
/// # Errors
/// The store cannot be used, there is no data of the user, the file cannot be written, the deletion
/// was not confirmed, or a turn cannot be stopped.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Users,
    yes: &[String],
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
            )
            .await?;
        }
        Users::Export {
            user,
            output,
            force,
        } => {
            return export::run(&*store, screen, &user_of(user)?, output.as_deref(), force).await;
        }
        Users::Delete { user } => delete::run(&*store, screen, &user_of(user)?, yes).await?,
    }
    Ok(Exit::Ok)
}

fn user_of(name: String) -> Result<UserId, CliError> {
    UserId::new(name).map_err(|error| CliError::usage(format!("that is no user's name: {error}")))
}

async fn list(store: &dyn Store, screen: &Screen, filter: PeopleFilter) -> Result<(), CliError> {
    // One more than asked for shows if there are more.
    let asked = PeopleFilter {
        limit: filter.limit.saturating_add(1),
        ..filter
    };
    let mut people = store.people(&asked).await?;
    let fit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let more = people.len() > fit;
    people.truncate(fit);
    if screen.json() {
        screen.answer_json(&people);
    } else if people.is_empty() {
        screen.answer_line("Nothing is kept of anybody.");
    } else {
        screen.answer_line(&table(&people));
    }
    if let (true, Some(last)) = (more, people.last()) {
        screen.note(&format!(
            "there are more: --after {}",
            crate::command::log::quoted(&last.user)
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
