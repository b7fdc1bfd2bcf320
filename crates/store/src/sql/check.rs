//! Whether a journal is what it must be, conversation by conversation.

use std::collections::HashMap;

use adjutant_core::conversation::{self, Conversation};
use adjutant_core::{ConversationKey, Event, Recorded, TurnId, UserId};

use super::{
    Backend, Connection, Failure, count, fact, memory_ledger, passage, past, snapshot, task, values,
};
use crate::maintenance::Finding;
use crate::row;
use crate::status::{Status, Waiting};

/// Conversations that are read in one transaction.
const PAGE: i64 = 50;

/// Reads everything once, and says what does not fit together.
pub(super) async fn rows<B: Backend>(
    backend: &B,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let mut after = Some(0);
    while let Some(from) = after {
        let (found, last) = backend
            .read(from, |rows, after| Box::pin(conversations(rows, *after)))
            .await?;
        findings.extend(found);
        after = last;
    }
    tasks(backend, findings).await?;
    memory(backend, findings).await?;
    facts(backend, findings).await
}

/// Returns the findings in a page of conversations, and the last of them if there was one.
async fn conversations<C: Connection>(
    rows: &mut C,
    after: i64,
) -> Result<(Vec<Finding>, Option<i64>), Failure> {
    let page = rows
        .fetch(
            "SELECT key, agent, user_id, id, next_seq, untaken, turns, turn, parked_seq, waiting, wake_at, branched_from_seq FROM adjutant_conversation
             WHERE key > $1 ORDER BY key LIMIT $2",
            values![after, PAGE],
        )
        .await?;
    let (mut findings, mut last) = (Vec::new(), None);
    for mut columns in page {
        let number = columns.int()?;
        last = Some(number);
        let (agent, user, id) = (columns.text()?, columns.text()?, columns.text()?);
        let place = format!("conversation {id} of {user}");
        let mut problems = Vec::new();
        match row::conversation_key(agent, user, &id) {
            Ok(key) => {
                let stored = Stored {
                    next_seq: columns.int()?,
                    untaken: columns.int()?,
                    turns: columns.int()?,
                    turn: columns.maybe_text()?,
                    parked_seq: columns.maybe_int()?,
                    waiting: columns.text()?,
                    wake_at: columns.maybe_text()?,
                    branched_from_seq: columns.maybe_int()?,
                };
                conversation(rows, number, &key, &stored, &mut problems).await?;
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

/// What is kept of a conversation so that nobody has to read its events.
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

async fn conversation<C: Connection>(
    rows: &mut C,
    number: i64,
    key: &ConversationKey,
    stored: &Stored,
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut events = Vec::new();
    for row in past::events(rows, (number, stored.branched_from_seq), 0).await? {
        match row.read(key) {
            Ok(recorded) => events.push(recorded),
            Err(error) => problems.push(error.to_string()),
        }
    }
    inbox(rows, number, key, (&events, stored), problems).await?;
    // What follows from all events follows from nothing if one cannot be read.
    if problems.is_empty() {
        order(&events, stored, problems);
        turns(&events, problems);
        follows(&events, stored, problems);
        let decisions = rows
            .fetch_first(
                "SELECT count(*) FROM adjutant_decision WHERE conversation = $1",
                values![number],
            )
            .await?;
        let decisions = decisions
            .map(|mut columns| columns.int())
            .transpose()?
            .map_or(0, count);
        let began = || {
            events
                .iter()
                .filter(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }))
        };
        let from = stored.branched_from_seq.map_or(0, count);
        // The log of a turn is where its events are.
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
        snapshotted(rows, number, events, problems).await?;
    }
    problems.extend(passage::miscounted(rows, number).await?);
    Ok(())
}

/// The snapshot, if there is one in a format that this program reads, is what the events up to its
/// place come to.
async fn snapshotted<C: Connection>(
    rows: &mut C,
    number: i64,
    mut events: Vec<Recorded>,
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    let Some(stored) = snapshot::stored(rows, number)
        .await?
        .filter(|stored| stored.is_known())
    else {
        return Ok(());
    };
    let read = stored
        .read()
        .and_then(|read| Some((read.messages_max()?, read)));
    let follows = read.and_then(|(messages_max, read)| {
        events.retain(|recorded| recorded.seq <= read.seq);
        let folded = Conversation::of(messages_max, events).snapshot().ok()?;
        Some(folded? == read)
    });
    if !stored.is_whole() {
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

/// Every input can be read, and one that was taken was taken by the event that says so.
async fn inbox<C: Connection>(
    rows: &mut C,
    number: i64,
    key: &ConversationKey,
    (events, stored): (&[Recorded], &Stored),
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    let found = rows
        .fetch(
            "SELECT id, v, body, at, request_id, fingerprint, after_seq, taken_seq FROM adjutant_inbox WHERE conversation = $1 ORDER BY accepted",
            values![number],
        )
        .await?;
    let mut inputs = Vec::with_capacity(found.len());
    for mut columns in found {
        inputs.push((past::input(&mut columns)?, columns.maybe_int()?));
    }
    past::whole_bodies(
        rows,
        inputs
            .iter_mut()
            .map(|(input, _)| (number, &mut input.body))
            .collect(),
    )
    .await?;
    let mut untaken = 0;
    let status = conversation::Status::of(events);
    for (input, taken_seq) in inputs {
        let id = input.id.clone();
        let is_queued = match input.read(key) {
            Ok(input) => status.is_queued(&input.id),
            Err(error) => {
                problems.push(error.to_string());
                false
            }
        };
        let Some(seq) = taken_seq else {
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

/// The events are numbered from 1 without gaps.
fn order(events: &[Recorded], stored: &Stored, problems: &mut Vec<String>) {
    let mut next = 1;
    for recorded in events {
        if recorded.seq != next {
            problems.push(format!(
                "event {next} is not there: the next is {}",
                recorded.seq
            ));
        }
        next = recorded.seq + 1;
    }
    if i64::try_from(next) != Ok(stored.next_seq) {
        problems.push(format!(
            "the events end before {next}, and {} is the next place",
            stored.next_seq
        ));
    }
}

/// Each turn begins once, ends at most once, and nothing of it comes before or after; only the last
/// may be open.
fn turns(events: &[Recorded], problems: &mut Vec<String>) {
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

/// What is kept beside the events is what follows from them.
fn follows(events: &[Recorded], stored: &Stored, problems: &mut Vec<String>) {
    let mut status = Status::default();
    for recorded in events {
        status.follow(
            i64::try_from(recorded.seq).unwrap_or(i64::MAX),
            &recorded.event,
        );
    }
    if status.turn != stored.turn {
        let name = |turn: &Option<String>| turn.clone().unwrap_or_else(|| "none".to_owned());
        problems.push(format!(
            "the open turn is {}, and {} is noted",
            name(&status.turn),
            name(&stored.turn)
        ));
    }
    let noted = match row::read_waiting(&stored.waiting, "what waits") {
        Ok(waiting) => Status {
            waiting,
            ..status.clone()
        },
        Err(error) => return problems.push(error.to_string()),
    };
    let is_noted = |(follows, noted): (&Waiting, &Waiting)| noted.stands_for(follows);
    if status.parked_seq != stored.parked_seq
        || status.waiting.len() != noted.waiting.len()
        || !status.waiting.iter().zip(&noted.waiting).all(is_noted)
    {
        problems.push("what waits for a person is not what is noted to wait".to_owned());
    }
    // What was noted without a time, before anybody looked for what expires, wakes nobody.
    let wake_at = noted.wake_at().map(row::time_text);
    if wake_at != stored.wake_at {
        let name = |at: &Option<String>| at.clone().unwrap_or_else(|| "never".to_owned());
        problems.push(format!(
            "it is to be woken at {}, and {} is noted",
            name(&wake_at),
            name(&stored.wake_at)
        ));
    }
}

/// Every task can be read.
async fn tasks<B: Backend>(backend: &B, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let found = backend
        .fetch(
            "SELECT user_id, id, description, created_at, updated_at, completed_at FROM adjutant_task ORDER BY user_id, id",
            &[],
        )
        .await?;
    for mut columns in found {
        let user = columns.text()?;
        let read = match UserId::new(user.clone()) {
            Ok(user) => task::task(columns, &user)
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

/// Every fact can be read.
async fn facts<B: Backend>(backend: &B, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let page = backend
            .fetch(
                "SELECT key, user_id, text, important, created_at, updated_at, conversation, turn, call FROM adjutant_fact
                 WHERE key > $1 ORDER BY key LIMIT $2",
                values![after, PAGE],
            )
            .await?;
        if page.is_empty() {
            return Ok(());
        }
        for mut columns in page {
            after = columns.int()?;
            let place = format!("the facts about {}", columns.text()?);
            let problem = fact::fact(after, &mut columns)
                .err()
                .map(|error| error.to_string());
            findings.extend(problem.map(|problem| Finding { place, problem }));
        }
    }
}

/// Every change of a memory can be read.
async fn memory<B: Backend>(backend: &B, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let page = backend.fetch(
                "SELECT seq, user_id, vault, id, v, body FROM adjutant_memory_change WHERE seq > $1 ORDER BY seq LIMIT $2",
                values![after, PAGE],
            )
            .await?;
        if page.is_empty() {
            return Ok(());
        }
        for mut columns in page {
            after = columns.int()?;
            let place = format!("the memory of {} in {}", columns.text()?, columns.text()?);
            let problem = memory_ledger::change(columns)
                .err()
                .map(|error| error.to_string());
            findings.extend(problem.map(|problem| Finding { place, problem }));
        }
    }
}
