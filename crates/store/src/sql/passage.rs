//! What was said in conversations, as it is searched for: filled behind the turns, from a mark in
//! each conversation.
//!
//! A passage is a row, and the database finds rows by the words in their text: SQLite by FTS5,
//! PostgreSQL by `tsvector`. Both take the words for what they are. So that a search looks at
//! nobody else's passages, each text begins with a mark of its owner, which no word of a passage
//! is; whose a passage is says the conversation alone, and every statement asks for that too.

use adjutant_core::port::{
    Candidate, IndexedPart, Passage, PastConversations, PastFound, PastQuery, StoreError, Unindexed,
};
use adjutant_core::{AgentName, BoxFuture, ConversationId, ConversationKey, UserId};
use serde_json::json;

use super::journal::Writes;
use super::past::{event_rows, select_events};
use super::{Columns, Connection, Failure, SqlStore, Value, count, key_values, values};
use crate::digest::hash;
use crate::row;

/// Characters of an owner's mark behind its `@`: enough that two owners hardly ever share one.
const MARK_CHARS: usize = 16;

/// Conversations with turns that are not in the index: those of `$2`, or of everybody if that is
/// NULL. Where `$5` is 1, those without an open turn.
pub(crate) const UNINDEXED: &str =
    "SELECT key, user_id, id, title, created_at, indexed_to, next_seq, turns, turn FROM adjutant_conversation
     WHERE agent = $1 AND indexed_turns <> turns AND substr(id, 15, 1) <> '8' AND (CAST($2 AS TEXT) IS NULL OR user_id = $2)
       AND (CAST($3 AS TEXT) IS NULL OR id <> $3) AND ($5 = 0 OR turn IS NULL)
     ORDER BY updated_at DESC, key DESC LIMIT $4";

/// The beginning of the turn behind the next `$3` ones.
const BEHIND: &str =
    "SELECT seq FROM adjutant_event WHERE conversation = $1 AND seq > $2 AND kind = 'turn_started'
     ORDER BY seq LIMIT 1 OFFSET $3";

/// The beginnings and ends of turns in a part.
const PART: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq > $2 AND seq <= $3 AND kind IN ('turn_started', 'turn_finished') ORDER BY seq"
);

const TOTALS: &str =
    "SELECT count(*), CAST(coalesce(sum(indexed_passages), 0) AS BIGINT), CAST(coalesce(sum(indexed_length), 0) AS BIGINT)
     FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND indexed_passages > 0";

/// For each of the matches in `$1`, a list in JSON, the number of passages: `$1[n]` as n.
const HOLDING_FTS5: &str = "SELECT CAST(wanted.key AS INTEGER), count(*)
     FROM json_each($1) AS wanted CROSS JOIN adjutant_passage_words
     WHERE adjutant_passage_words MATCH wanted.value GROUP BY wanted.key";
const HOLDING_TSVECTOR: &str = "SELECT wanted.at - 1, count(*)
     FROM jsonb_array_elements_text(CAST($1 AS JSONB)) WITH ORDINALITY AS wanted (value, at)
     JOIN adjutant_passage ON array_to_tsvector(string_to_array(words, ' ')) @@ CAST(wanted.value AS TSQUERY) GROUP BY wanted.at";

/// The passages that hold the rarest words, by the weights in `$3`, a list in JSON. The newest
/// comes first of those that weigh the same. So many are looked at beyond those that are asked for
/// as the conversation has that is left out.
macro_rules! candidates {
    ($held:literal) => {
        concat!(
            "WITH held (passage, weight) AS (",
            $held,
            " GROUP BY 1 ORDER BY 2 DESC, 1 DESC LIMIT $5 + COALESCE(
               (SELECT indexed_passages FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $4), 0))
             SELECT conversation.id, title, indexed_length, seq, number, passage.turn, at, length, words
             FROM held JOIN adjutant_passage AS passage ON passage.key = held.passage
             JOIN adjutant_conversation AS conversation ON conversation.key = passage.conversation
             WHERE agent = $1 AND user_id = $2 AND (CAST($4 AS TEXT) IS NULL OR conversation.id <> $4)
             ORDER BY weight DESC, passage.key DESC LIMIT $5"
        )
    };
}
const CANDIDATES_FTS5: &str = candidates!(
    "SELECT adjutant_passage_words.rowid, sum(wanted.value ->> 'weight') FROM json_each($3) AS wanted CROSS JOIN adjutant_passage_words
     WHERE adjutant_passage_words MATCH (wanted.value ->> 'match')"
);
const CANDIDATES_TSVECTOR: &str = candidates!(
    "SELECT adjutant_passage.key, sum(CAST(wanted.value ->> 'weight' AS DOUBLE PRECISION))
     FROM jsonb_array_elements(CAST($3 AS JSONB)) AS wanted (value)
     JOIN adjutant_passage ON array_to_tsvector(string_to_array(words, ' ')) @@ CAST(wanted.value ->> 'match' AS TSQUERY)"
);

/// Moves the mark of a conversation, if it is where the part begins.
const MOVE_MARK: &str =
    "UPDATE adjutant_conversation SET indexed_to = $6, indexed_turns = COALESCE($7, indexed_turns),
       indexed_passages = indexed_passages + $8, indexed_length = indexed_length + $9
     WHERE agent = $1 AND user_id = $2 AND id = $3 AND created_at = $4 AND indexed_to = $5";
const INSERT: &str =
    "INSERT INTO adjutant_passage (conversation, seq, number, turn, at, length, words)
     SELECT key, $4, $5, $6, $7, $8, $9 FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3";

impl<B: Writes> PastConversations for SqlStore<B> {
    fn unindexed<'a>(
        &'a self,
        agent: &'a AgentName,
        turns: u32,
    ) -> BoxFuture<'a, Result<Vec<Unindexed>, StoreError>> {
        self.run(async move {
            let wanted = Wanted {
                agent: agent.clone(),
                user: None,
                except: None,
                turns,
                at_rest: true,
            };
            // Mostly there is nothing, and then this is all.
            if self
                .0
                .fetch_first(UNINDEXED, &wanted.listing(1))
                .await?
                .is_none()
            {
                return Ok(Vec::new());
            }
            let read = self
                .0
                .read(wanted, |rows, wanted| Box::pin(unindexed(rows, wanted)));
            read.await.map(|(found, _)| found)
        })
    }

    fn index<'a>(
        &'a self,
        parts: &'a [(ConversationKey, IndexedPart, Vec<Passage>)],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.run(async move {
            self.0
                .write(parts.to_vec(), |rows, parts| Box::pin(index(rows, parts)))
                .await
        })
    }

    fn search<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        query: PastQuery<'a>,
    ) -> BoxFuture<'a, Result<PastFound, StoreError>> {
        self.run(async move {
            let newer = Wanted {
                agent: agent.clone(),
                user: Some(user.clone()),
                except: query.except,
                turns: query.unindexed_max,
                at_rest: false,
            };
            let data = Search {
                words: query.words.to_vec(),
                candidates_max: query.candidates_max,
                newer,
            };
            self.0
                .read(data, |rows, data| Box::pin(search(rows, data)))
                .await
        })
    }
}

/// Turns to read that are not in the index.
struct Wanted {
    agent: AgentName,
    /// `None`: everybody's.
    user: Option<UserId>,
    except: Option<ConversationId>,
    turns: u32,
    /// True if conversations with an open turn are left out.
    at_rest: bool,
}

impl Wanted {
    /// Returns the values of [`UNINDEXED`] for so many conversations.
    fn listing(&self, limit: i64) -> [Value<'_>; 5] {
        [
            self.agent.as_str().into(),
            self.user.as_ref().map(UserId::as_str).into(),
            Value::Text(self.except.map(|except| except.to_string().into())),
            limit.into(),
            i64::from(self.at_rest).into(),
        ]
    }
}

struct Search {
    words: Vec<String>,
    candidates_max: u32,
    newer: Wanted,
}

/// Reads turns that are not in the index, and whether those are all.
async fn unindexed<C: Connection>(
    rows: &mut C,
    wanted: &Wanted,
) -> Result<(Vec<Unindexed>, bool), Failure> {
    let Wanted { agent, turns, .. } = wanted;
    let listed = rows
        .fetch(UNINDEXED, &wanted.listing(i64::from(*turns) + 1))
        .await?;
    let (mut found, mut left) = (Vec::new(), i64::from(*turns));
    for mut columns in listed {
        if left == 0 {
            return Ok((found, false));
        }
        let conversation = columns.int()?;
        let (owner, id) = (columns.text()?, columns.text()?);
        let key = row::conversation_key(agent.to_string(), owner, &id)?;
        let title = columns.text()?;
        let created_at = row::read_time(&columns.text()?, &format!("conversation {id}"))?;
        let (after, last) = (columns.int()?, columns.int()? - 1);
        let (begun, open) = (count(columns.int()?), columns.maybe_text()?);
        let behind = rows
            .fetch_first(BEHIND, values![conversation, after, left])
            .await?;
        let behind = behind.map(|mut columns| columns.int()).transpose()?;
        let until = behind.map_or(last, |next| next - 1);
        let events = rows
            .fetch(PART, values![conversation, after, until])
            .await?;
        let events = event_rows(rows, events).await?;
        left -= events
            .iter()
            .map(|event| i64::from(event.kind == "turn_started"))
            .sum::<i64>();
        let part = IndexedPart {
            created_at,
            after: count(after),
            until: count(until),
            turns: (behind.is_none() && open.is_none()).then_some(begun),
        };
        // One that cannot be read is what `check` finds; all others can be searched.
        let events = events
            .into_iter()
            .filter_map(|event| event.read(&key).ok())
            .collect();
        found.push(Unindexed {
            key,
            title,
            part,
            events,
        });
        if behind.is_some() {
            return Ok((found, false));
        }
    }
    Ok((found, true))
}

async fn index<C: Connection>(
    rows: &mut C,
    parts: &[(ConversationKey, IndexedPart, Vec<Passage>)],
) -> Result<u64, Failure> {
    // In one order, so that of two who do the same one waits for the other.
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|(key, _, _)| key.conversation.0);
    let mut moved = 0;
    for (key, part, passages) in parts {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let length = passages
            .iter()
            .map(|passage| i64::from(passage.length))
            .sum::<i64>();
        let created_at = row::time_text(part.created_at);
        let found = rows
            .execute(
                MOVE_MARK,
                key_values![
                    key,
                    &created_at,
                    number(part.after),
                    number(part.until),
                    part.turns.map(number),
                    number(passages.len() as u64),
                    length,
                ],
            )
            .await?;
        if found == 0 {
            continue;
        }
        moved += 1;
        let mark = mark(&key.agent, &key.user);
        let lists: Vec<Vec<Value<'static>>> = passages
            .iter()
            .map(|passage| {
                let text = |text: String| Value::Text(Some(text.into()));
                vec![
                    text(key.agent.to_string()),
                    text(key.user.to_string()),
                    text(key.conversation.to_string()),
                    number(passage.seq).into(),
                    i64::from(passage.number).into(),
                    text(passage.turn.to_string()),
                    text(row::time_text(passage.at)),
                    i64::from(passage.length).into(),
                    text(format!("{mark} {}", passage.words)),
                ]
            })
            .collect();
        rows.execute_each(INSERT, &lists).await?;
    }
    Ok(moved)
}

async fn search<C: Connection>(rows: &mut C, search: &Search) -> Result<PastFound, Failure> {
    let Search {
        words,
        candidates_max,
        newer,
    } = search;
    let Some(user) = &newer.user else {
        return Ok(PastFound::default());
    };
    let (unindexed, is_complete) = unindexed(rows, newer).await?;
    let mut found = PastFound {
        unindexed,
        is_complete,
        holding: vec![0; words.len()],
        ..PastFound::default()
    };
    let totals = rows
        .fetch_first(TOTALS, values![newer.agent.as_str(), user.as_str()])
        .await?;
    if let Some(mut totals) = totals {
        found.conversations = count(totals.int()?);
        found.passages = count(totals.int()?);
        found.length = count(totals.int()?);
    }
    if found.passages == 0 || words.is_empty() {
        return Ok(found);
    }
    let mark = mark(&newer.agent, user);
    let matches: Vec<String> = words
        .iter()
        .map(|word| matching::<C>(&mark, word))
        .collect();
    let statement = if C::HAS_FTS5 {
        HOLDING_FTS5
    } else {
        HOLDING_TSVECTOR
    };
    for mut columns in rows
        .fetch(statement, values![&json!(matches).to_string()])
        .await?
    {
        let (at, passages) = (columns.int()?, columns.int()?);
        if let Some(held) = usize::try_from(at)
            .ok()
            .and_then(|at| found.holding.get_mut(at))
        {
            *held = count(passages);
        }
    }
    // The rarer a word is, the more it weighs.
    let weights: Vec<serde_json::Value> = matches
        .iter()
        .zip(&found.holding)
        .filter(|(_, held)| **held > 0)
        .map(|(wanted, held)| json!({ "match": wanted, "weight": 1.0 / *held as f64 }))
        .collect();
    if weights.is_empty() {
        return Ok(found);
    }
    let statement = if C::HAS_FTS5 {
        CANDIDATES_FTS5
    } else {
        CANDIDATES_TSVECTOR
    };
    let except = newer.except.map(|except| except.to_string());
    let candidates = rows
        .fetch(
            statement,
            values![
                newer.agent.as_str(),
                user.as_str(),
                &json!(weights).to_string(),
                except.as_deref(),
                i64::from(*candidates_max)
            ],
        )
        .await?;
    found.candidates = candidates
        .into_iter()
        .map(candidate)
        .collect::<Result<_, StoreError>>()?;
    Ok(found)
}

fn candidate(mut columns: Columns) -> Result<Candidate, StoreError> {
    let id = columns.text()?;
    let what = format!("a passage of conversation {id}");
    let unreadable = |error: &dyn std::fmt::Display| row::unreadable(&what, error);
    Ok(Candidate {
        conversation: id.parse().map_err(|error| unreadable(&error))?,
        title: columns.text()?,
        conversation_length: count(columns.int()?),
        passage: Passage {
            seq: count(columns.int()?),
            number: u32::try_from(columns.int()?).map_err(|error| unreadable(&error))?,
            turn: columns
                .text()?
                .parse()
                .map_err(|error| unreadable(&error))?,
            at: row::read_time(&columns.text()?, &what)?,
            length: u32::try_from(columns.int()?).map_err(|error| unreadable(&error))?,
            words: columns
                .text()?
                .split_once(' ')
                .map_or_else(String::new, |(_, words)| words.to_owned()),
        },
    })
}

/// Returns the mark of an owner.
fn mark(agent: &AgentName, user: &UserId) -> String {
    let name = format!("{} {agent}{user}", agent.as_str().len());
    format!(
        "@{}",
        hash(&name).chars().take(MARK_CHARS).collect::<String>()
    )
}

/// Returns what the database is asked for to find the passages of an owner that hold a word.
fn matching<C: Connection>(mark: &str, word: &str) -> String {
    if C::HAS_FTS5 {
        let quoted = |text: &str| text.replace('"', "\"\"");
        format!("\"{mark}\" AND \"{}\"", quoted(word))
    } else {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "''");
        format!("'{mark}' & '{}'", quoted(word))
    }
}

/// Statements that give passages to an heir, and set its mark so that what it is given and was not
/// in the index is put there: that is behind no mark of its own.
const GIVE: [&str; 3] = [
    "UPDATE adjutant_passage SET conversation = $2 WHERE conversation = $1 AND seq <= $3",
    "UPDATE adjutant_conversation SET indexed_turns = 0, indexed_to = (
       SELECT CASE WHEN origin.indexed_to < $3 AND origin.indexed_to < adjutant_conversation.indexed_to
         THEN origin.indexed_to ELSE adjutant_conversation.indexed_to END
       FROM adjutant_conversation AS origin WHERE origin.key = $1) WHERE key = $2",
    "DELETE FROM adjutant_passage WHERE conversation = $2
       AND seq > (SELECT indexed_to FROM adjutant_conversation WHERE key = $2)",
];
const COUNT_AGAIN: &str = "UPDATE adjutant_conversation SET
       indexed_passages = (SELECT count(*) FROM adjutant_passage WHERE conversation = $1),
       indexed_length = (SELECT CAST(coalesce(sum(length), 0) AS BIGINT) FROM adjutant_passage WHERE conversation = $1)
     WHERE key = $1";

/// Gives the passages of a conversation up to a place to the branch that gets its events up to
/// there.
pub(super) async fn give_to_heir<C: Connection>(
    rows: &mut C,
    (conversation, heir, until): (i64, i64, i64),
) -> Result<(), Failure> {
    for statement in GIVE {
        rows.execute(statement, values![conversation, heir, until])
            .await?;
    }
    for conversation in [conversation, heir] {
        rows.execute(COUNT_AGAIN, values![conversation]).await?;
    }
    Ok(())
}

/// Returns what does not fit together in the index of a conversation.
pub(super) async fn miscounted<C: Connection>(
    rows: &mut C,
    conversation: i64,
) -> Result<Option<String>, Failure> {
    let found = rows
        .fetch_first(
            "SELECT indexed_passages, indexed_length, (SELECT count(*) FROM adjutant_passage WHERE conversation = $1),
               (SELECT CAST(coalesce(sum(length), 0) AS BIGINT) FROM adjutant_passage WHERE conversation = $1)
             FROM adjutant_conversation WHERE key = $1",
            values![conversation],
        )
        .await?;
    let Some(mut found) = found else {
        return Ok(None);
    };
    let (passages, length) = (found.int()?, found.int()?);
    let (there, words) = (found.int()?, found.int()?);
    let fits = (passages, length) == (there, words);
    Ok((!fits).then(|| {
        format!("the index has {there} passages of {words} words, and {passages} of {length} are counted")
    }))
}
