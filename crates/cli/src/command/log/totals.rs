//! Figures of turns by user, model, day, outcome or error.

use adjutant_core::port::{COUNTED_MAX, GroupBy, Total, Totals, TotalsFilter};
use adjutant_core::{Cost, DecisionFilter};

use super::filter::UserSelection;
use crate::args::By;
use crate::command::output::table;
use crate::error::CliError;
use crate::store::Store;
use crate::terminal::display::{clip, tokens};
use crate::terminal::screen::Screen;

/// Sums up turns and prints the figures.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn print(
    store: &dyn Store,
    screen: &Screen,
    users: &UserSelection,
    filter: &DecisionFilter,
    by: Option<By>,
    limit: u32,
) -> Result<(), CliError> {
    // By day as without `--all-users`, so that both say the same by default.
    let by = by.unwrap_or(By::Day);
    let asked = TotalsFilter {
        user: match users {
            UserSelection::One(user) => Some(user.clone()),
            UserSelection::All(_) => None,
        },
        since: filter.since,
        until: filter.until,
        by: match by {
            By::User => GroupBy::User,
            By::Model => GroupBy::Model,
            By::Day => GroupBy::Day,
            By::Outcome => GroupBy::Outcome,
            By::Error => GroupBy::Error,
        },
        limit,
    };
    let totals = store.totals(&asked).await?;
    if screen.json() {
        screen.answer_json(&totals);
        return Ok(());
    }
    screen.answer_line(&format_table(&totals, by));
    if totals.is_cut {
        screen.note(&format!(
            "only the newest {COUNTED_MAX} turns are added up; --since and --until take fewer"
        ));
    }
    if totals.more_groups {
        screen.note("there are more lines: -n NUMBER");
    }
    Ok(())
}

fn format_table(totals: &Totals, by: By) -> String {
    let name = match by {
        By::User => "user",
        By::Model => "model",
        By::Day => "day",
        By::Outcome => "outcome",
        By::Error => "error",
    };
    let groups = totals.groups.iter().map(|group| {
        let name = match group.group.as_str() {
            "" => "open".to_owned(),
            name => clip(name, 60),
        };
        row(name, &group.total)
    });
    let all = row("all".to_owned(), &totals.all);
    let header = [name, "turns", "failed", "tokens in/out", "cost", "up/down"];
    table(&header, groups.chain([all]))
}

fn row(name: String, total: &Total) -> [String; 6] {
    [
        name,
        total.turns.to_string(),
        total.failed.to_string(),
        tokens_in_out(total.input_tokens, total.output_tokens),
        cost(total.cost, total.cost_unknown),
        ratings(total.rated_up, total.rated_down),
    ]
}

/// Formats the tokens of requests and answers: `1.2k/80`.
pub(crate) fn tokens_in_out(input: u64, output: u64) -> String {
    format!("{}/{}", tokens(input), tokens(output))
}

/// Formats the number of ratings with the share of useful answers; empty if there are none.
pub(super) fn ratings(up: u64, down: u64) -> String {
    match up + down {
        0 => String::new(),
        rated => format!("{up}/{down} ({} %)", (up * 100 + rated / 2) / rated),
    }
}

/// Formats a cost, with a mark if that of `unknown` turns is missing.
pub(crate) fn cost(known: Cost, unknown: u64) -> String {
    match unknown {
        0 => known.to_string(),
        _ if known == Cost::default() => "$?".to_owned(),
        _ => format!("{known} + $?"),
    }
}
