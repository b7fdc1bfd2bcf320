//! The consistency check of a journal, conversation by conversation.

use std::collections::HashMap;

use adjutant_core::conversation::{self, Conversation};
use adjutant_core::port::StoreError;
use adjutant_core::{ConversationKey, Event, Recorded, TurnId, UserId};

use super::{
    Backend, Connection, Failure, FromRow as _, Row, count, fact, from_row, history, memory_ledger,
    passage, snapshot, values,
};
use crate::maintenance::Finding;
use crate::record::{self, InputRow, TaskRow};
use crate::status::{Status, WaitingCall};

/// Conversations that are read in one transaction.
const PAGE: i64 = 50;

/// Reads everything once, and reports what is inconsistent.
pub(super) async fn check_all<B: Backend>(
    backend: &B,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let mut after = Some(0);
    while let Some(from) = after {
        let (found, last) = backend
            .read(from, |tx, after| Box::pin(conversations(tx, *after)))
            .await?;
        findings.extend(found);
        after = last;
    }
    check_tasks(backend, findings).await?;
    check_memory(backend, findings).await?;
    check_facts(backend, findings).await
}

/// Checks a page of conversations. Returns the findings, and the key of the last conversation if
/// there was one.
async fn conversations<C: Connection>(
    tx: &mut C,
    after: i64,
) -> Result<(Vec<Finding>, Option<i64>), Failure> {
    let page = tx
        .fetch_all(
            "SELECT key, agent, user_id, id, next_seq, untaken, turns, turn, parked_seq, waiting, wake_at, branched_from_seq FROM adjutant_conversation
             WHERE key > $1 ORDER BY key LIMIT $2",
            values![after, PAGE],
        )
        .await?;
    let (mut findings, mut last) = (Vec::new(), None);
    for mut columns in page {
        let number = columns.get("key")?;
        last = Some(number);
        let (user, id): (String, String) = (columns.get("user_id")?, columns.get("id")?);
        let place = format!("conversation {id} of {user}");
        let mut problems = Vec::new();
        match record::conversation_key(columns.get("agent")?, user, &id) {
            Ok(key) => {
                let stored = Stored::from_row(&mut columns)?;
                check_conversation(tx, number, &key, &stored, &mut problems).await?;
            }
            Err(error) => problems.push(error.to_string()),
        }
        findings.extend(problems.into_iter().map(|problem| Finding {
            place: place.clone(),
            problem,
        }));
    }
    Ok((findings, last))
}

/// The derived columns of a conversation.
struct Stored {
    next_seq: i64,
    untaken: i64,
    turns: i64,
    turn: Option<String>,
    parked_seq: Option<i64>,
    waiting: String,
    wake_at: Option<String>,
    branched_from_seq: Option<i64>,
}
from_row! {
    Stored {
        next_seq, untaken, turns, turn, parked_seq, waiting, wake_at, branched_from_seq
    }
}

async fn check_conversation<C: Connection>(
    tx: &mut C,
    number: i64,
    key: &ConversationKey,
    stored: &Stored,
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut events = Vec::new();
    for row in history::events(tx, number, stored.branched_from_seq, 0).await? {
        match row.decode(key) {
            Ok(recorded) => events.push(recorded),
            Err(error) => problems.push(error.to_string()),
        }
    }
    check_inbox(tx, number, key, &events, stored, problems).await?;
    // Checks that need all events would report nonsense if one cannot be read.
    if problems.is_empty() {
        check_order(&events, stored, problems);
        check_turns(&events, problems);
        check_columns(&events, stored, problems);
        let decisions = tx
            .fetch_scalar(
                "SELECT count(*) FROM adjutant_decision WHERE conversation = $1",
                values![number],
            )
            .await?;
        let decisions = decisions.map_or(0, count);
        let began = || {
            events
                .iter()
                .filter(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }))
        };
        let from = stored.branched_from_seq.map_or(0, count);
        // The log of a turn belongs to the conversation that has its events.
        let own = began().filter(|recorded| recorded.seq > from).count();
        if u64::try_from(own) != Ok(decisions) {
            problems.push(format!(
                "{own} turns began, and the log has {decisions} decisions"
            ));
        }
        let turns = began().count();
        if i64::try_from(turns) != Ok(stored.turns) {
            problems.push(format!(
                "{turns} turns began, and {} are counted",
                stored.turns
            ));
        }
        check_snapshot(tx, number, events, problems).await?;
    }
    problems.extend(passage::miscounted(tx, number).await?);
    Ok(())
}

/// Checks that the snapshot, if this program knows its format, equals the fold of the events up to
/// its place.
async fn check_snapshot<C: Connection>(
    tx: &mut C,
    number: i64,
    mut events: Vec<Recorded>,
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    let Some(stored) = snapshot::stored(tx, number)
        .await?
        .filter(|stored| stored.has_known_format())
    else {
        return Ok(());
    };
    let read = stored
        .decode()
        .and_then(|read| Some((read.messages_max()?, read)));
    let follows = read.and_then(|(messages_max, read)| {
        events.retain(|recorded| recorded.seq <= read.seq);
        let folded = Conversation::from_events(messages_max, events)
            .snapshot()
            .ok()?;
        Some(folded? == read)
    });
    if !stored.is_undamaged() {
        problems.push(format!(
            "the snapshot at event {} is damaged; it is not used",
            stored.seq
        ));
    } else if follows != Some(true) {
        problems.push(format!(
            "the snapshot at event {} is not what the events come to",
            stored.seq
        ));
    }
    Ok(())
}

/// Checks that every input can be read, and was taken by the event that says so.
async fn check_inbox<C: Connection>(
    tx: &mut C,
    number: i64,
    key: &ConversationKey,
    events: &[Recorded],
    stored: &Stored,
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    let found = tx
        .fetch_all(
            "SELECT id, v, body, at, request_id, fingerprint, after_seq AS after, taken_seq FROM adjutant_inbox WHERE conversation = $1 ORDER BY accepted",
            values![number],
        )
        .await?;
    let mut inputs: Vec<(_, Option<i64>)> = Vec::with_capacity(found.len());
    for mut row in found {
        inputs.push((InputRow::from_row(&mut row)?, row.get("taken_seq")?));
    }
    history::whole_bodies(
        tx,
        inputs
            .iter_mut()
            .map(|(input, _)| (number, &mut input.body))
            .collect(),
    )
    .await?;
    let mut untaken = 0;
    let status = conversation::Status::from_events(events);
    for (input, taken_seq) in inputs {
        let id = input.id.clone();
        let is_queued = match input.decode(key) {
            Ok(input) => status.is_queued(&input.id),
            Err(error) => {
                problems.push(error.to_string());
                false
            }
        };
        let Some(seq) = taken_seq else {
            // Inputs that are queued until the end of the open turn are not counted in the row.
            untaken += i64::from(!is_queued);
            continue;
        };
        let taker = events
            .iter()
            .find(|recorded| i64::try_from(recorded.seq) == Ok(seq));
        let takes = taker.and_then(|recorded| recorded.event.takes_input());
        if takes.is_none_or(|taken| taken.as_str() != id) {
            problems.push(format!(
                "input {id} was taken by event {seq}, which is not there or says otherwise"
            ));
        }
    }
    if untaken != stored.untaken {
        problems.push(format!(
            "{untaken} inputs were not taken, and {} are counted",
            stored.untaken
        ));
    }
    Ok(())
}

/// Checks that the events are numbered from 1 without gaps.
fn check_order(events: &[Recorded], stored: &Stored, problems: &mut Vec<String>) {
    let mut next = 1;
    for recorded in events {
        if recorded.seq != next {
            problems.push(format!(
                "event {next} is not there: the next is {}",
                recorded.seq
            ));
        }
        // From what is there, so that one gap is one finding.
        next = recorded.seq + 1;
    }
    if i64::try_from(next) != Ok(stored.next_seq) {
        problems.push(format!(
            "the events end before {next}, and {} is the next place",
            stored.next_seq
        ));
    }
}

/// Checks that each turn starts once and ends at most once, has no events outside of that, and that
/// only the last turn is open.
fn check_turns(events: &[Recorded], problems: &mut Vec<String>) {
    let mut ended: HashMap<TurnId, bool> = HashMap::new();
    let mut open: Option<TurnId> = None;
    for Recorded { seq, event, .. } in events {
        let Some(turn) = event.turn() else { continue };
        match (&**event, ended.get(&turn)) {
            (Event::TurnStarted { .. }, None) => {
                if let Some(open) = open {
                    problems.push(format!(
                        "turn {turn} began (event {seq}) before turn {open} ended"
                    ));
                }
                open = Some(turn);
                ended.insert(turn, false);
            }
            (Event::TurnStarted { .. }, Some(_)) => {
                problems.push(format!("turn {turn} began twice (event {seq})"));
            }
            (_, None) => problems.push(format!(
                "event {seq} is of turn {turn}, which has not begun"
            )),
            (_, Some(true)) => {
                problems.push(format!(
                    "event {seq} ({}) is of turn {turn}, which has ended",
                    event.kind()
                ));
            }
            (Event::TurnFinished { .. }, Some(false)) => {
                ended.insert(turn, true);
                open = open.filter(|open| *open != turn);
            }
            (_, Some(false)) => {}
        }
    }
}

/// Checks that the derived columns equal the fold of the events.
fn check_columns(events: &[Recorded], stored: &Stored, problems: &mut Vec<String>) {
    let mut status = Status::default();
    for recorded in events {
        status.apply(
            i64::try_from(recorded.seq).unwrap_or(i64::MAX),
            &recorded.event,
        );
    }
    if status.turn != stored.turn {
        problems.push(format!(
            "the open turn is {}, and {} is noted",
            status.turn.as_deref().unwrap_or("none"),
            stored.turn.as_deref().unwrap_or("none")
        ));
    }
    let noted = match record::from_json(&stored.waiting, "what waits") {
        Ok(waiting) => Status {
            waiting,
            ..status.clone()
        },
        Err(error) => return problems.push(error.to_string()),
    };
    let is_noted = |(follows, noted): (&WaitingCall, &WaitingCall)| noted.is_same_as(follows);
    if status.parked_seq != stored.parked_seq
        || status.waiting.len() != noted.waiting.len()
        || !status.waiting.iter().zip(&noted.waiting).all(is_noted)
    {
        problems.push("what waits for a person is not what is noted to wait".to_owned());
    }
    // A pending call that an older version stored without its expiry does not count for `wake_at`.
    let wake_at = noted.wake_at().map(record::format_time);
    if wake_at != stored.wake_at {
        problems.push(format!(
            "it is to be woken at {}, and {} is noted",
            wake_at.as_deref().unwrap_or("never"),
            stored.wake_at.as_deref().unwrap_or("never")
        ));
    }
}

/// Checks that every task can be read.
async fn check_tasks<B: Backend>(backend: &B, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let found = backend
        .fetch_all(
            "SELECT user_id, id, description, created_at, updated_at, completed_at, from_others FROM adjutant_task ORDER BY user_id, id",
            &[],
        )
        .await?;
    for mut columns in found {
        let user: String = columns.get("user_id")?;
        let read = match UserId::new(user.clone()) {
            Ok(user) => TaskRow::from_row(&mut columns)
                .and_then(|row| row.decode(&user))
                .map(drop)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        findings.extend(read.err().map(|problem| Finding {
            place: format!("tasks of {user}"),
            problem,
        }));
    }
    Ok(())
}

/// Checks that every fact can be read.
async fn check_facts<B: Backend>(backend: &B, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let statement = "SELECT key AS place, key, user_id, text, important, created_at, updated_at, conversation, turn, call
                     FROM adjutant_fact WHERE key > $1 ORDER BY key LIMIT $2";
    check_pages(backend, statement, findings, |mut row| {
        let place = format!("the facts about {}", row.get::<String>("user_id")?);
        let key = row.get("key")?;
        Ok((place, fact::fact(key, &mut row).map(drop)))
    })
    .await
}

/// Checks that every change of a memory can be read.
async fn check_memory<B: Backend>(backend: &B, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let statement = "SELECT seq AS place, user_id, vault, id, v, body FROM adjutant_memory_change
                     WHERE seq > $1 ORDER BY seq LIMIT $2";
    check_pages(backend, statement, findings, |mut row| {
        let (user, vault): (String, String) = (row.get("user_id")?, row.get("vault")?);
        let place = format!("the memory of {user} in {vault}");
        Ok((place, memory_ledger::change(row).map(drop)))
    })
    .await
}

/// Decodes the rows of a statement page by page, and reports those that cannot be read. `check`
/// returns the place of a row and the result of decoding it.
async fn check_pages<B: Backend>(
    backend: &B,
    statement: &'static str,
    findings: &mut Vec<Finding>,
    check: impl Fn(Row) -> Result<(String, Result<(), StoreError>), StoreError>,
) -> Result<(), Failure> {
    let mut after: i64 = 0;
    loop {
        let page = backend.fetch_all(statement, values![after, PAGE]).await?;
        if page.is_empty() {
            return Ok(());
        }
        for mut row in page {
            after = row.get("place")?;
            let (place, decoded) = check(row)?;
            let problem = decoded.err().map(|error| error.to_string());
            findings.extend(problem.map(|problem| Finding { place, problem }));
        }
    }
}
