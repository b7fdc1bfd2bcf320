//! `adjutant users`: lists the users with stored data, and exports or deletes the data of one.

mod delete; // deletion of all data
mod export; // export of all data
mod row_counts; // stored data by table

use adjutant_core::UserId;
use adjutant_core::port::{PeopleFilter, Person};

use crate::args::Users;
use crate::command::log::{self, totals};
use crate::command::output::{cut_to, print_list, table};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::store::{self, Store};
use crate::terminal::display::{clip, local, shell_quoted};
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
            // Parsed as `log` does, so that both take the same times.
            let since = since.map(|text| log::moment(&text)).transpose()?;
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
    let more = cut_to(&mut people, filter.limit);
    print_list(screen, &people, "No user has any data here.", || {
        format_table(&people)
    });
    if let (true, Some(last)) = (more, people.last()) {
        screen.note(&format!(
            "there are more: --after {}",
            shell_quoted(&last.user)
        ));
    }
    Ok(())
}

fn format_table(people: &[Person]) -> String {
    let header = [
        "user",
        "conversations",
        "waiting",
        "tasks",
        "turns",
        "failed",
        "tokens in/out",
        "cost",
        "last seen",
    ];
    let rows = people.iter().map(|person| {
        let total = &person.total;
        [
            clip(&person.user, 40),
            person.conversations.to_string(),
            person.waiting.to_string(),
            person.tasks.to_string(),
            total.turns.to_string(),
            total.failed.to_string(),
            totals::tokens_in_out(total.input_tokens, total.output_tokens),
            totals::cost(total.cost, total.cost_unknown),
            person.last_seen.map(local).unwrap_or_default(),
        ]
    });
    table(&header, rows)
}
