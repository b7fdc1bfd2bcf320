//! Which conversation a request belongs to that names none.
//!
//! A request is a new conversation, unless it answers a question of ours. To find that question
//! again on any replica and after a restart, the id of a conversation holds what it was begun with:
//! its last 48 bits are a hash of the user and of all that was said up to the person's message.
//! What was said is in the next request too, so the question is looked for among what waits of this
//! user: same hash, same words. Nothing is kept beside the journal.
//!
//! Such ids are UUIDs of version 8 ([`ConversationId::is_of_a_request`]), so that lists of
//! conversations leave them out: the client has the conversation, and these are its single
//! requests.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, Answer, ConversationId, ConversationKey, DecisionFilter, DecisionKind, Event,
    InputId, Notice, OutcomeCategory, PendingCall, Reading, Recorded, Usage, UserId, conversation,
    read_words, words,
};
use adjutant_runtime::Agent;
use jiff::SignedDuration;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::history::Said;
use crate::problem::Problem;

/// How many bytes of an id are the hash.
const HASH: usize = 6;
/// How often a person may have been asked the same question again before it is not looked for any
/// more.
const ASKED_AGAIN_MAX: usize = 20;
/// A yes to a question that was settled that long ago is an answer to nothing.
pub(super) const SETTLED: SignedDuration = SignedDuration::from_hours(24);
/// Among how many of the user's last decisions such a question is looked for.
pub(super) const SETTLED_MAX: u32 = 500;

/// Bytes of an id that its name makes, if its request has one.
const NAME: usize = 16 - HASH;
/// Among how many of the user's last decisions another request of the same name is looked for.
const NAMED_MAX: u32 = 100;

/// What was said up to a place, in short.
type Prefix = [u8; HASH];

/// The place of a message of the person, and what was said up to it.
type Place = (usize, Prefix);

/// The conversations that a request may belong to.
#[derive(Debug)]
pub(super) enum Candidates {
    /// Those that were begun at one of these places.
    BegunAt(Vec<Place>),
    /// The one that the request names.
    Named(ConversationId),
}

impl Candidates {
    /// Returns where the question may have been asked that the last message answers.
    pub(super) fn of_answer(user: &UserId, said: &[Said]) -> Self {
        let mut all = prefixes(user, said);
        // What is said now is behind the question.
        all.pop();
        Self::BegunAt(newest(all))
    }

    /// Returns where the turn may have begun that results of a client's tools are for.
    pub(super) fn of_results(user: &UserId, said: &[Said]) -> Self {
        Self::BegunAt(newest(prefixes(user, said)))
    }

    /// Returns whether that conversation is one of them.
    pub(super) fn have(&self, id: ConversationId) -> bool {
        match self {
            Self::BegunAt(places) => places.iter().any(|(_, prefix)| holds(id, prefix)),
            Self::Named(named) => *named == id,
        }
    }

    /// Returns whether that conversation is one of them, and everything the agent said since is its
    /// question.
    fn have_asked(&self, id: ConversationId, question: &str, said: &[Said]) -> bool {
        match self {
            Self::BegunAt(places) => places.iter().any(|(at, prefix)| {
                let mut since = said.iter().skip(at + 1).filter(|said| !said.by_person);
                holds(id, prefix) && since.all(|said| plain(&said.text).ends_with(&plain(question)))
            }),
            Self::Named(named) => *named == id,
        }
    }

    fn are_none(&self) -> bool {
        matches!(self, Self::BegunAt(places) if places.is_empty())
    }
}

/// Returns the last places, the last first.
fn newest(places: Vec<Place>) -> Vec<Place> {
    places.into_iter().rev().take(ASKED_AGAIN_MAX).collect()
}

/// Where an answer goes.
#[derive(Debug)]
pub(super) enum Belongs {
    /// To a question that waits: there, and what waits.
    Waiting(ConversationKey, Vec<PendingCall>),
    /// To calls of the client's tools that await these results.
    Awaiting(ConversationKey, Vec<Answer>),
    /// To a question that waits no more: this is what became of it.
    Settled(Box<AgentResponse>),
    /// Nowhere: it begins something new.
    New,
}

/// The id of a new conversation. With a name that a client gives its request, always the same.
pub(super) fn new_id(
    user: &UserId,
    said: &[Said],
    fresh: Uuid,
    name: Option<&InputId>,
) -> ConversationId {
    let mut bytes = *fresh.as_bytes();
    if let Some(name) = name {
        let digest = Sha256::digest(name.as_str().as_bytes());
        bytes
            .iter_mut()
            .zip(digest)
            .for_each(|(byte, hashed)| *byte = hashed);
    }
    let hash = prefixes(user, said)
        .last()
        .map(|(_, hash)| *hash)
        .unwrap_or_default();
    bytes
        .iter_mut()
        .rev()
        .zip(hash.iter().rev())
        .for_each(|(byte, hashed)| *byte = *hashed);
    ConversationId::of_request(bytes)
}

/// Refuses a conversation whose request has the name of one that asked for something else: their
/// ids differ in what was said alone. Looked for among the user's last requests.
pub(super) async fn is_first(agent: &Agent, key: &ConversationKey) -> Result<(), Problem> {
    let named = |id: ConversationId| id.0.as_bytes().first_chunk::<NAME>().copied();
    let filter = DecisionFilter {
        agent: Some(agent.name().clone()),
        since: agent.now().checked_sub(SETTLED).ok(),
        limit: Some(NAMED_MAX),
        ..DecisionFilter::default()
    };
    let decisions = agent.logs().decisions(&key.user, &filter).await;
    let is_reused = decisions
        .map_err(|error| Problem::store(&error))?
        .iter()
        .any(|decision| {
            let id = decision.conversation;
            id.is_of_a_request() && id != key.conversation && named(id) == named(key.conversation)
        });
    if is_reused {
        Err(Problem::store(&StoreError::Reused))
    } else {
        Ok(())
    }
}

/// What the last message of a conversation is to.
pub(super) async fn belongs(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    said: &[Said],
) -> Result<Belongs, Problem> {
    if candidates.are_none() {
        return Ok(Belongs::New);
    }
    let failed = |error: StoreError| Problem::store(&error);
    let waiting = agent
        .journal()
        .parked(agent.name(), Some(user))
        .await
        .map_err(failed)?;
    // The newest first: of two conversations with the same words it is the one on the screen.
    for (key, recorded) in waiting.iter().rev() {
        let Event::TurnParked {
            pending, content, ..
        } = &*recorded.event
        else {
            continue;
        };
        // Once results of the client's have come, what still waits is asked without what was done
        // before.
        let asked = [content.as_str(), &words::questions(pending)];
        if !asked
            .iter()
            .any(|question| candidates.have_asked(key.conversation, question, said))
        {
            continue;
        }
        if !pending.iter().all(|call| call.has_expired(agent.now())) {
            return Ok(Belongs::Waiting(key.clone(), pending.clone()));
        }
        // Its time ran out and nobody looked since.
        agent
            .advance(key)
            .await
            .map_err(|error| Problem::run(&error))?;
    }
    let bare = said
        .last()
        .is_some_and(|last| read_words(&last.text) != Reading::Unclear);
    if bare && let Some(response) = settled(agent, user, candidates, said).await? {
        return Ok(Belongs::Settled(Box::new(response)));
    }
    Ok(Belongs::New)
}

/// What became of a question to which this yes or no comes after its end: sent again, or too late.
async fn settled(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    said: &[Said],
) -> Result<Option<AgentResponse>, Problem> {
    let failed = |error: StoreError| Problem::store(&error);
    let since = agent.now().checked_sub(SETTLED).ok();
    let filter = DecisionFilter {
        agent: Some(agent.name().clone()),
        since,
        limit: Some(SETTLED_MAX),
        ..DecisionFilter::default()
    };
    for decision in agent
        .logs()
        .decisions(user, &filter)
        .await
        .map_err(failed)?
    {
        // One that waited has been answered meanwhile, or it would have been found waiting.
        let was_asked = matches!(
            decision.kind,
            Some(
                DecisionKind::RequestConfirmation
                    | DecisionKind::ExecutePending
                    | DecisionKind::CancelPending
            )
        ) || decision.outcome == Some(OutcomeCategory::ConfirmationExpired);
        if !was_asked || !candidates.have(decision.conversation) {
            continue;
        }
        let key = decision.key();
        if decision.ended_at.is_none() {
            // It is being carried out: what becomes of it is the answer.
            agent
                .advance(&key)
                .await
                .map_err(|error| Problem::run(&error))?;
        }
        let events = agent.journal().load(&key).await.map_err(failed)?.events;
        let question = events
            .iter()
            .rev()
            .find_map(|recorded: &Recorded| match &*recorded.event {
                Event::TurnParked { turn, content, .. } if *turn == decision.id => Some(content),
                _ => None,
            });
        if !question.is_some_and(|question| candidates.have_asked(key.conversation, question, said))
        {
            continue;
        }
        if let Some(mut response) = conversation::response(key.conversation, &events, decision.id) {
            let (code, text) = match response.outcome {
                OutcomeCategory::ConfirmationExpired => ("answered_late", words::ANSWERED_LATE),
                _ => ("answered_before", words::ANSWERED_BEFORE),
            };
            response.content = match response.outcome {
                OutcomeCategory::ConfirmationExpired => text.to_owned(),
                _ => format!("{text}\n{}", response.content),
            };
            // It was counted when it was used.
            response.usage = Usage::default();
            response.notices.push(Notice {
                code: code.to_owned(),
                text: text.to_owned(),
            });
            return Ok(Some(response));
        }
    }
    Ok(None)
}

fn holds(id: ConversationId, prefix: &Prefix) -> bool {
    id.is_of_a_request() && id.0.as_bytes().ends_with(prefix)
}

/// The hash at each message of the person: over the user, and all that was said up to there.
fn prefixes(user: &UserId, said: &[Said]) -> Vec<Place> {
    let mut hash = Sha256::new();
    hash.update(user.as_str());
    let mut places = Vec::new();
    for (at, said) in said.iter().enumerate() {
        hash.update(if said.by_person { [0, 0] } else { [0, 1] });
        hash.update(plain(&said.text));
        if said.by_person {
            let digest: [u8; 32] = hash.clone().finalize().into();
            let mut prefix = Prefix::default();
            prefix
                .iter_mut()
                .zip(digest)
                .for_each(|(byte, hashed)| *byte = hashed);
            places.push((at, prefix));
        }
    }
    places
}

/// White space does not count: interfaces change it.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
