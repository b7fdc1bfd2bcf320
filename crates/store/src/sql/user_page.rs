//! All users with data in the store, page by page.

use std::collections::BTreeMap;

use adjutant_core::Cost;
use adjutant_core::port::{PeopleFilter, Person, StoreError, Total};

use super::{Connection, Failure, Row, decode_all, values};
use crate::record;

/// The next `$2` user ids of a table after `$1`. Each is found by one look into the index, so a
/// user with many rows costs as much as one with a single row.
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

/// The agents that have conversations.
pub(crate) const AGENTS: &str = "WITH RECURSIVE agents (name) AS (
     SELECT min(agent) FROM adjutant_conversation
     UNION ALL
     SELECT (SELECT min(agent) FROM adjutant_conversation WHERE agent > agents.name) FROM agents WHERE agents.name IS NOT NULL
   ) SELECT name FROM agents WHERE name IS NOT NULL";

/// Totals of the users from the first id of a page to the last: every user in that range is on the
/// page.
const CONVERSATIONS: &str =
    "SELECT user_id, count(*) AS conversations, count(CASE WHEN asks = 1 THEN 1 END) AS waiting, max(updated_at) AS last_seen
     FROM adjutant_conversation
     WHERE user_id >= $1 AND user_id <= $2 AND agent = $3 GROUP BY user_id";
const TASKS: &str = "SELECT user_id, count(*) AS number FROM adjutant_task WHERE user_id >= $1 AND user_id <= $2 GROUP BY user_id";
const TOKENS: &str = "SELECT user_id, count(*) AS number FROM adjutant_token
     WHERE user_id >= $1 AND user_id <= $2 AND revoked_at IS NULL GROUP BY user_id";
pub(crate) const TURNS: &str =
    "SELECT user_id, count(*) AS turns, count(error_code) AS failed,
            CAST(coalesce(sum(input_tokens), 0) AS BIGINT) AS input, CAST(coalesce(sum(output_tokens), 0) AS BIGINT) AS output,
            sum(cost_usd) AS cost, count(*) - count(cost_usd) AS unknown,
            count(CASE WHEN feedback = 'up' THEN 1 END) AS up, count(CASE WHEN feedback = 'down' THEN 1 END) AS down
     FROM adjutant_decision WHERE user_id >= $1 AND user_id <= $2 AND started_at >= $3 GROUP BY user_id";

/// Returns the agents that have conversations.
pub(super) async fn agents<C: Connection>(tx: &mut C) -> Result<Vec<String>, Failure> {
    let found = tx.fetch_all(AGENTS, &[]).await?;
    Ok(decode_all(found, Row::scalar)?)
}

/// Reads a page of users.
pub(super) async fn page<C: Connection>(
    tx: &mut C,
    filter: &PeopleFilter,
) -> Result<Vec<Person>, Failure> {
    let agents = agents(tx).await?;
    let mut people = names(tx, &agents, filter).await?;
    let (Some(first), Some(last)) = (
        people.keys().next().cloned(),
        people.keys().next_back().cloned(),
    ) else {
        return Ok(Vec::new());
    };
    // By agent, because the index of conversations begins with it.
    for agent in &agents {
        for mut columns in tx
            .fetch_all(CONVERSATIONS, values![&first, &last, agent])
            .await?
        {
            if let Some(person) = people.get_mut(&columns.get::<String>("user_id")?) {
                person.conversations += columns.get::<u64>("conversations")?;
                person.waiting += columns.get::<u64>("waiting")?;
                let seen = columns.parse_optional("last_seen", "a conversation")?;
                person.last_seen = person.last_seen.max(seen);
            }
        }
    }
    for mut columns in tx.fetch_all(TASKS, values![&first, &last]).await? {
        if let Some(person) = people.get_mut(&columns.get::<String>("user_id")?) {
            person.tasks = columns.get("number")?;
        }
    }
    for mut columns in tx.fetch_all(TOKENS, values![&first, &last]).await? {
        if let Some(person) = people.get_mut(&columns.get::<String>("user_id")?) {
            person.access_tokens = columns.get("number")?;
        }
    }
    let since = filter.since.map_or_else(String::new, record::format_time);
    for mut columns in tx.fetch_all(TURNS, values![&first, &last, &since]).await? {
        if let Some(person) = people.get_mut(&columns.get::<String>("user_id")?) {
            person.total = total(&mut columns, "")?;
        }
    }
    Ok(people.into_values().collect())
}

/// Reads the user ids of a page.
async fn names<C: Connection>(
    tx: &mut C,
    agents: &[String],
    filter: &PeopleFilter,
) -> Result<BTreeMap<String, Person>, Failure> {
    let after = filter.after.as_deref().unwrap_or_default();
    let limit = i64::from(filter.limit);
    let mut found = Vec::new();
    for statement in NAMES {
        found.extend(tx.fetch_all(statement, values![after, limit]).await?);
    }
    for agent in agents {
        found.extend(
            tx.fetch_all(NAMES_OF_AGENT, values![after, limit, agent])
                .await?,
        );
    }
    let mut people = BTreeMap::new();
    for row in found {
        let user: String = row.scalar()?;
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
    // Each table contributed up to a page of names; only the first of all are on this page.
    while people.len() > fit {
        people.pop_last();
    }
    Ok(people)
}

/// Reads the columns of a total, whose names have this prefix.
pub(super) fn total(row: &mut Row, prefix: &str) -> Result<Total, StoreError> {
    let cost: Option<f64> = row.get(&format!("{prefix}cost"))?;
    let mut number = |name| row.get(&format!("{prefix}{name}"));
    Ok(Total {
        turns: number("turns")?,
        failed: number("failed")?,
        input_tokens: number("input")?,
        output_tokens: number("output")?,
        cost: cost.and_then(Cost::from_usd).unwrap_or_default(),
        cost_unknown: number("unknown")?,
        rated_up: number("up")?,
        rated_down: number("down")?,
    })
}
