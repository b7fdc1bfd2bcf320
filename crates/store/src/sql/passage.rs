//! The index for searching past conversations. It is filled after the turns, up to a mark in each
//! conversation.
//!
//! A passage is a row, which the database finds by the words in its text: SQLite with FTS5,
//! PostgreSQL with `tsvector`. Both take the words without stemming. Each text begins with a mark
//! of its owner, which is no word of any passage, so that a search does not visit other users'
//! passages. The mark is only for speed: the owner is the conversation's, and every statement
//! checks it.

use adjutant_core::port::{
    Candidate, ConversationIndex, IndexMatches, IndexQuery, IndexedPart, Passage, StoreError,
    Unindexed,
};
use adjutant_core::{AgentName, BoxFuture, ConversationId, ConversationKey, UserId};
use serde_json::json;

use super::history::{event_rows, select_events};
use super::journal::Writes;
use super::{Connection, Failure, Row, SqlStore, Value, count, decode_all, key_values, values};
use crate::digest::hash;
use crate::record;

/// Characters of an owner's mark after its `@`: enough that two owners hardly ever share one.
const MARK_CHARS: usize = 16;

/// Conversations with turns that are not indexed: of the user `$2`, or of all users if it is NULL.
/// If `$5` is 1, only those without an open turn.
// UUIDs of version 8 (the 15th character) are conversations of single requests, which are not
// searched.
pub(crate) const UNINDEXED: &str =
    "SELECT key, user_id, id, title, created_at, indexed_to, next_seq, turns, turn FROM adjutant_conversation
     WHERE agent = $1 AND indexed_turns <> turns AND substr(id, 15, 1) <> '8' AND (CAST($2 AS TEXT) IS NULL OR user_id = $2)
       AND (CAST($3 AS TEXT) IS NULL OR id <> $3) AND ($5 = 0 OR turn IS NULL)
     ORDER BY updated_at DESC, key DESC LIMIT $4";

/// The start of the turn after the next `$3` ones.
const BEHIND: &str =
    "SELECT seq FROM adjutant_event WHERE conversation = $1 AND seq > $2 AND kind = 'turn_started'
     ORDER BY seq LIMIT 1 OFFSET $3";

/// The first and last events of the turns in a part.
const PART: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq > $2 AND seq <= $3 AND kind IN ('turn_started', 'turn_finished') ORDER BY seq"
);

const TOTALS: &str =
    "SELECT count(*) AS conversations, CAST(coalesce(sum(indexed_passages), 0) AS BIGINT) AS passages,
       CAST(coalesce(sum(indexed_length), 0) AS BIGINT) AS length
     FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND indexed_passages > 0";

/// Counts the passages for each of the matches in `$1`, a JSON list.
const HOLDING_FTS5: &str = "SELECT CAST(wanted.key AS INTEGER) AS word, count(*) AS passages
     FROM json_each($1) AS wanted CROSS JOIN adjutant_passage_words
     WHERE adjutant_passage_words MATCH wanted.value GROUP BY wanted.key";
const HOLDING_TSVECTOR: &str = "SELECT wanted.at - 1 AS word, count(*) AS passages
     FROM jsonb_array_elements_text(CAST($1 AS JSONB)) WITH ORDINALITY AS wanted (value, at)
     JOIN adjutant_passage ON array_to_tsvector(string_to_array(words, ' ')) @@ CAST(wanted.value AS TSQUERY) GROUP BY wanted.at";

/// The passages with the rarest words, by the weights in `$3`, a JSON list; of equal weights the
/// newest first. The limit is raised by the number of passages in the conversation that is left
/// out.
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
// `CROSS JOIN` keeps SQLite from turning the loops around (sqlite.org/optoverview.html): the index
// is asked once for each word.
const CANDIDATES_FTS5: &str = candidates!(
    "SELECT adjutant_passage_words.rowid, sum(wanted.value ->> 'weight') FROM json_each($3) AS wanted CROSS JOIN adjutant_passage_words
     WHERE adjutant_passage_words MATCH (wanted.value ->> 'match')"
);
// The words are stems already, so `array_to_tsvector` takes them as they are; `to_tsvector` would
// stem them a second time.
const CANDIDATES_TSVECTOR: &str = candidates!(
    "SELECT adjutant_passage.key, sum(CAST(wanted.value ->> 'weight' AS DOUBLE PRECISION))
     FROM jsonb_array_elements(CAST($3 AS JSONB)) AS wanted (value)
     JOIN adjutant_passage ON array_to_tsvector(string_to_array(words, ' ')) @@ CAST(wanted.value ->> 'match' AS TSQUERY)"
);

/// Moves the mark of a conversation, if it is still where the part begins.
const MOVE_MARK: &str =
    "UPDATE adjutant_conversation SET indexed_to = $6, indexed_turns = COALESCE($7, indexed_turns),
       indexed_passages = indexed_passages + $8, indexed_length = indexed_length + $9
     WHERE agent = $1 AND user_id = $2 AND id = $3 AND created_at = $4 AND indexed_to = $5";
const INSERT: &str =
    "INSERT INTO adjutant_passage (conversation, seq, number, turn, at, length, words)
     SELECT key, $4, $5, $6, $7, $8, $9 FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3";

impl<B: Writes> ConversationIndex for SqlStore<B> {
    fn unindexed<'a>(
        &'a self,
        agent: &'a AgentName,
        turns: u32,
    ) -> BoxFuture<'a, Result<Vec<Unindexed>, StoreError>> {
        self.explained(async move {
            let wanted = UnindexedQuery {
                agent: agent.clone(),
                user: None,
                except: None,
                turns,
                at_rest: true,
            };
            // Mostly everything is indexed, and this cheap query is all.
            if self
                .backend
                .fetch_optional(UNINDEXED, &wanted.listing(1))
                .await?
                .is_none()
            {
                return Ok(Vec::new());
            }
            let read = self
                .backend
                .read(wanted, |tx, wanted| Box::pin(unindexed(tx, wanted)));
            read.await.map(|(found, _)| found)
        })
    }

    fn index<'a>(
        &'a self,
        parts: &'a [(ConversationKey, IndexedPart, Vec<Passage>)],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.write(parts.to_vec(), |tx, parts| Box::pin(index(tx, parts)))
    }

    fn search<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        query: IndexQuery<'a>,
    ) -> BoxFuture<'a, Result<IndexMatches, StoreError>> {
        let newer = UnindexedQuery {
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
        self.read(data, |tx, data| Box::pin(search(tx, data)))
    }
}

/// A query for turns that are not indexed.
struct UnindexedQuery {
    agent: AgentName,
    /// `None` for all users.
    user: Option<UserId>,
    except: Option<ConversationId>,
    turns: u32,
    /// True if conversations with an open turn are left out.
    at_rest: bool,
}

impl UnindexedQuery {
    /// Returns the parameters of [`UNINDEXED`] with this limit.
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
    newer: UnindexedQuery,
}

/// Reads turns that are not indexed. The flag is true if those are all.
async fn unindexed<C: Connection>(
    tx: &mut C,
    wanted: &UnindexedQuery,
) -> Result<(Vec<Unindexed>, bool), Failure> {
    let UnindexedQuery { agent, turns, .. } = wanted;
    let listed = tx
        // One more than asked for shows that there are others.
        .fetch_all(UNINDEXED, &wanted.listing(i64::from(*turns) + 1))
        .await?;
    let (mut found, mut left) = (Vec::new(), i64::from(*turns));
    for mut columns in listed {
        if left == 0 {
            return Ok((found, false));
        }
        let conversation: i64 = columns.get("key")?;
        let id: String = columns.get("id")?;
        let key = record::conversation_key(agent.to_string(), columns.get("user_id")?, &id)?;
        let created_at = columns.parse("created_at", &format!("conversation {id}"))?;
        let (after, next_seq): (i64, i64) = (columns.get("indexed_to")?, columns.get("next_seq")?);
        let open: Option<String> = columns.get("turn")?;
        let behind: Option<i64> = tx
            .fetch_scalar(BEHIND, values![conversation, after, left])
            .await?;
        let until = behind.unwrap_or(next_seq) - 1;
        let events = tx
            .fetch_all(PART, values![conversation, after, until])
            .await?;
        let events = event_rows(tx, events).await?;
        left -= events
            .iter()
            .map(|event| i64::from(event.kind == "turn_started"))
            .sum::<i64>();
        let part = IndexedPart {
            created_at,
            after: count(after),
            until: count(until),
            turns: match (behind, open) {
                (None, None) => Some(columns.get("turns")?),
                _ => None,
            },
        };
        // An event that cannot be read is a finding of `check`; all others can be searched.
        let events = events
            .into_iter()
            .filter_map(|event| event.decode(&key).ok())
            .collect();
        found.push(Unindexed {
            key,
            title: columns.get("title")?,
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
    tx: &mut C,
    parts: &[(ConversationKey, IndexedPart, Vec<Passage>)],
) -> Result<u64, Failure> {
    // In a fixed order, so that two processes that index the same parts do not deadlock.
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|(key, _, _)| key.conversation.0);
    let mut moved = 0;
    for (key, part, passages) in parts {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let length = passages
            .iter()
            .map(|passage| i64::from(passage.length))
            .sum::<i64>();
        let created_at = record::format_time(part.created_at);
        let found = tx
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
        // The mark is elsewhere: another process has indexed this part, or the conversation was
        // deleted.
        if found == 0 {
            continue;
        }
        moved += 1;
        let mark = mark(&key.agent, &key.user);
        let lists: Vec<Vec<Value<'static>>> = passages
            .iter()
            .map(|passage| {
                values![
                    key.agent.to_string(),
                    key.user.to_string(),
                    key.conversation.to_string(),
                    number(passage.seq),
                    i64::from(passage.number),
                    passage.turn.to_string(),
                    record::format_time(passage.at),
                    i64::from(passage.length),
                    format!("{mark} {}", passage.words),
                ]
                .to_vec()
            })
            .collect();
        tx.execute_each(INSERT, &lists).await?;
    }
    Ok(moved)
}

async fn search<C: Connection>(tx: &mut C, search: &Search) -> Result<IndexMatches, Failure> {
    let Search {
        words,
        candidates_max,
        newer,
    } = search;
    let Some(user) = &newer.user else {
        return Ok(IndexMatches::default());
    };
    // In the same snapshot as the index, so that no turn is in both or in neither.
    let (unindexed, is_complete) = unindexed(tx, newer).await?;
    let mut found = IndexMatches {
        unindexed,
        is_complete,
        holding: vec![0; words.len()],
        ..IndexMatches::default()
    };
    let totals = tx
        .fetch_optional(TOTALS, values![newer.agent.as_str(), user.as_str()])
        .await?;
    if let Some(mut totals) = totals {
        found.conversations = totals.get("conversations")?;
        found.passages = totals.get("passages")?;
        found.length = totals.get("length")?;
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
    for mut columns in tx
        .fetch_all(statement, values![&json!(matches).to_string()])
        .await?
    {
        let word: i64 = columns.get("word")?;
        if let Some(held) = usize::try_from(word)
            .ok()
            .and_then(|word| found.holding.get_mut(word))
        {
            *held = columns.get("passages")?;
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
    let candidates = tx
        .fetch_all(
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
    found.candidates = decode_all(candidates, candidate)?;
    Ok(found)
}

fn candidate(mut row: Row) -> Result<Candidate, StoreError> {
    let id: String = row.get("id")?;
    let what = format!("a passage of conversation {id}");
    let words: String = row.get("words")?;
    Ok(Candidate {
        conversation: record::parse(&id, &what)?,
        title: row.get("title")?,
        conversation_length: row.get("indexed_length")?,
        passage: Passage {
            seq: row.get("seq")?,
            number: record::convert(row.get::<i64>("number")?, &what)?,
            turn: row.parse("turn", &what)?,
            at: row.parse("at", &what)?,
            length: record::convert(row.get::<i64>("length")?, &what)?,
            // The first word is the owner's mark.
            words: words
                .split_once(' ')
                .map_or_else(String::new, |(_, words)| words.to_owned()),
        },
    })
}

/// Returns the mark of an owner.
fn mark(agent: &AgentName, user: &UserId) -> String {
    // The length keeps `a` + `bc` and `ab` + `c` apart.
    let name = format!("{} {agent}{user}", agent.as_str().len());
    format!(
        "@{}",
        hash(&name).chars().take(MARK_CHARS).collect::<String>()
    )
}

/// Returns the search expression for an owner's passages with a word.
fn matching<C: Connection>(mark: &str, word: &str) -> String {
    // Quoted, so that no word is read as an operator of the database's query language.
    if C::HAS_FTS5 {
        let quoted = |text: &str| text.replace('"', "\"\"");
        format!("\"{mark}\" AND \"{}\"", quoted(word))
    } else {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "''");
        format!("'{mark}' & '{}'", quoted(word))
    }
}

/// Statements that move passages to an heir. They also set its mark so far back that the events it
/// got and that were not indexed are indexed there.
const MOVE_TO_HEIR: [&str; 3] = [
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

/// Moves the passages of a conversation up to a place to the branch that gets its events.
pub(super) async fn move_to_heir<C: Connection>(
    tx: &mut C,
    conversation: i64,
    heir: i64,
    until: i64,
) -> Result<(), Failure> {
    for statement in MOVE_TO_HEIR {
        tx.execute(statement, values![conversation, heir, until])
            .await?;
    }
    for conversation in [conversation, heir] {
        tx.execute(COUNT_AGAIN, values![conversation]).await?;
    }
    Ok(())
}

/// Returns the inconsistency in the index of a conversation, if there is one.
pub(super) async fn miscounted<C: Connection>(
    tx: &mut C,
    conversation: i64,
) -> Result<Option<String>, Failure> {
    let found = tx
        .fetch_optional(
            "SELECT indexed_passages, indexed_length, (SELECT count(*) FROM adjutant_passage WHERE conversation = $1) AS passages,
               (SELECT CAST(coalesce(sum(length), 0) AS BIGINT) FROM adjutant_passage WHERE conversation = $1) AS length
             FROM adjutant_conversation WHERE key = $1",
            values![conversation],
        )
        .await?;
    let Some(mut found) = found else {
        return Ok(None);
    };
    let (passages, length): (i64, i64) =
        (found.get("indexed_passages")?, found.get("indexed_length")?);
    let (there, words): (i64, i64) = (found.get("passages")?, found.get("length")?);
    let fits = (passages, length) == (there, words);
    Ok((!fits).then(|| {
        format!("the index has {there} passages of {words} words, and {passages} of {length} are counted")
    }))
}
