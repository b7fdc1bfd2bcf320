//! Sums over turns, by user, model, day, outcome or error.

use adjutant_core::port::{COUNTED_MAX, GroupBy, Total, Totals, TotalsFilter};
use adjutant_core::{Cost, DecisionFilter};
use comfy_table::{ContentArrangement, Table, presets};

use super::filter::Whose;
use crate::args::By;
use crate::display::{clip, json_line, tokens};
use crate::error::CliError;
use crate::screen::Screen;
use crate::store::Store;

/// Adds turns up and tells it.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn tell(
    store: &dyn Store,
    screen: &Screen,
    whose: &Whose,
    filter: &DecisionFilter,
    (by, limit): (Option<By>, u32),
    json: bool,
) -> Result<(), CliError> {
    let by = by.unwrap_or(By::Day);
    let asked = TotalsFilter {
        user: match whose {
            Whose::One(user) => Some(user.clone()),
            Whose::All(_) => None,
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
    if json {
        screen.answer_line(&json_line(&totals));
        return Ok(());
    }
    screen.answer_line(&table(&totals, by));
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

fn table(totals: &Totals, by: By) -> String {
    let name = match by {
        By::User => "user",
        By::Model => "model",
        By::Day => "day",
        By::Outcome => "outcome",
        By::Error => "error",
    };
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([name, "turns", "failed", "tokens in/out", "cost", "up/down"]);
    for group in &totals.groups {
        let name = match group.group.as_str() {
            "" => "open".to_owned(),
            name => clip(name, 60),
        };
        table.add_row(row(name, &group.total));
    }
    table.add_row(row("all".to_owned(), &totals.all));
    table.trim_fmt()
}

fn row(name: String, total: &Total) -> [String; 6] {
    [
        name,
        total.turns.to_string(),
        total.failed.to_string(),
        format!(
            "{}/{}",
            tokens(total.input_tokens),
            tokens(total.output_tokens)
        ),
        cost(total),
        ratings(total.rated_up, total.rated_down),
    ]
}

/// Answers that were rated either way, with the share of those that were of use. Empty: none was
/// rated.
pub(super) fn ratings(up: u64, down: u64) -> String {
    match up + down {
        0 => String::new(),
        rated => format!("{up}/{down} ({} %)", (up * 100 + rated / 2) / rated),
    }
}

/// Money, with a sign for what is not known.
pub(crate) fn cost(total: &Total) -> String {
    match (total.cost, total.cost_unknown) {
        (known, 0) => known.to_string(),
        (known, _) if known == Cost::default() => "$?".to_owned(),
        (known, _) => format!("{known} + $?"),
    }
}
