//! Everybody who has something in the store, page by page.

use std::collections::BTreeMap;

use adjutant_core::Cost;
use adjutant_core::port::{PeopleFilter, Person, StoreError, Total};

use super::{Columns, Connection, Failure, count, values};
use crate::row;

/// The next names of a table, each by a look into its index: a user with many rows is passed over
/// like one with a single row. `$1`: the name they are behind; `$2`: how many.
macro_rules! next_names {
    ($table:literal, $which:literal) => {
        concat!(
            "WITH RECURSIVE names (name) AS (
               SELECT min(user_id) FROM ",
            $table,
            " WHERE user_id > $1",
            $which,
            "
               UNION ALL
               SELECT (SELECT min(user_id) FROM ",
            $table,
            " WHERE user_id > names.name",
            $which,
            ")
               FROM names WHERE names.name IS NOT NULL
             ) SELECT name FROM names WHERE name IS NOT NULL LIMIT $2"
        )
    };
}
pub(crate) const NAMES: [&str; 4] = [
    next_names!("adjutant_decision", ""),
    next_names!("adjutant_task", ""),
    next_names!("adjutant_token", ""),
    next_names!("adjutant_memory_change", ""),
];
pub(crate) const NAMES_OF_AGENT: &str = next_names!("adjutant_conversation", " AND agent = $3");

/// Every agent that has conversations.
pub(crate) const AGENTS: &str = "WITH RECURSIVE agents (name) AS (
     SELECT min(agent) FROM adjutant_conversation
     UNION ALL
     SELECT (SELECT min(agent) FROM adjutant_conversation WHERE agent > agents.name) FROM agents WHERE agents.name IS NOT NULL
   ) SELECT name FROM agents WHERE name IS NOT NULL";

/// Counts and sums of what users have, from the first name of a page to the last: everybody between
/// them is in the page.
const CONVERSATIONS: &str =
    "SELECT user_id, count(*), count(CASE WHEN asks = 1 THEN 1 END), max(updated_at) FROM adjutant_conversation
     WHERE user_id >= $1 AND user_id <= $2 AND agent = $3 GROUP BY user_id";
const TASKS: &str = "SELECT user_id, count(*) FROM adjutant_task WHERE user_id >= $1 AND user_id <= $2 GROUP BY user_id";
const TOKENS: &str = "SELECT user_id, count(*) FROM adjutant_token
     WHERE user_id >= $1 AND user_id <= $2 AND revoked_at IS NULL GROUP BY user_id";
pub(crate) const TURNS: &str =
    "SELECT user_id, count(*), count(error_code), CAST(coalesce(sum(input_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(output_tokens), 0) AS BIGINT), sum(cost_usd), count(*) - count(cost_usd),
            count(CASE WHEN feedback = 'up' THEN 1 END), count(CASE WHEN feedback = 'down' THEN 1 END)
     FROM adjutant_decision WHERE user_id >= $1 AND user_id <= $2 AND started_at >= $3 GROUP BY user_id";

/// Returns the agents that have conversations.
pub(super) async fn agents<C: Connection>(rows: &mut C) -> Result<Vec<String>, Failure> {
    let found = rows.fetch(AGENTS, &[]).await?;
    Ok(found
        .into_iter()
        .map(|mut columns| columns.text())
        .collect::<Result<_, StoreError>>()?)
}

/// Reads a page of everybody.
pub(super) async fn page<C: Connection>(
    rows: &mut C,
    filter: &PeopleFilter,
) -> Result<Vec<Person>, Failure> {
    let agents = agents(rows).await?;
    let mut people = names(rows, &agents, filter).await?;
    let (Some(first), Some(last)) = (
        people.keys().next().cloned(),
        people.keys().next_back().cloned(),
    ) else {
        return Ok(Vec::new());
    };
    for agent in &agents {
        for mut columns in rows
            .fetch(CONVERSATIONS, values![&first, &last, agent])
            .await?
        {
            let Some(person) = people.get_mut(&columns.text()?) else {
                continue;
            };
            person.conversations += count(columns.int()?);
            person.waiting += count(columns.int()?);
            let seen = columns
                .maybe_text()?
                .map(|at| row::read_time(&at, "a conversation"))
                .transpose()?;
            person.last_seen = person.last_seen.max(seen);
        }
    }
    for mut columns in rows.fetch(TASKS, values![&first, &last]).await? {
        let Some(person) = people.get_mut(&columns.text()?) else {
            continue;
        };
        person.tasks = count(columns.int()?);
    }
    for mut columns in rows.fetch(TOKENS, values![&first, &last]).await? {
        let Some(person) = people.get_mut(&columns.text()?) else {
            continue;
        };
        person.access_tokens = count(columns.int()?);
    }
    let since = filter.since.map_or_else(String::new, row::time_text);
    for mut columns in rows.fetch(TURNS, values![&first, &last, &since]).await? {
        let Some(person) = people.get_mut(&columns.text()?) else {
            continue;
        };
        person.total = total(&mut columns)?;
    }
    Ok(people.into_values().collect())
}

/// Finds the names of a page.
async fn names<C: Connection>(
    rows: &mut C,
    agents: &[String],
    filter: &PeopleFilter,
) -> Result<BTreeMap<String, Person>, Failure> {
    let after = filter.after.as_deref().unwrap_or_default();
    let limit = i64::from(filter.limit);
    let mut found = Vec::new();
    for statement in NAMES {
        found.extend(rows.fetch(statement, values![after, limit]).await?);
    }
    for agent in agents {
        found.extend(
            rows.fetch(NAMES_OF_AGENT, values![after, limit, agent])
                .await?,
        );
    }
    let mut people = BTreeMap::new();
    for mut columns in found {
        let user = columns.text()?;
        people.entry(user.clone()).or_insert_with(|| Person {
            user,
            conversations: 0,
            waiting: 0,
            tasks: 0,
            access_tokens: 0,
            total: Total::default(),
            last_seen: None,
        });
    }
    let fit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    while people.len() > fit {
        people.pop_last();
    }
    Ok(people)
}

/// Reads turns, failed turns, tokens in and out, money, turns of which that is not known, and
/// answers that were rated either way.
pub(super) fn total(columns: &mut Columns) -> Result<Total, StoreError> {
    Ok(Total {
        turns: count(columns.int()?),
        failed: count(columns.int()?),
        input_tokens: count(columns.int()?),
        output_tokens: count(columns.int()?),
        cost: columns
            .maybe_real()?
            .and_then(Cost::from_usd)
            .unwrap_or_default(),
        cost_unknown: count(columns.int()?),
        rated_up: count(columns.int()?),
        rated_down: count(columns.int()?),
    })
}
