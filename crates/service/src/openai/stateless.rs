//! Finding the conversation that a request without an id continues.
//!
//! A request starts a new conversation, unless it answers a confirmation. To find that confirmation
//! again on any replica and after a restart, the last 48 bits of a conversation's id are a hash of
//! the user and of the dialogue up to the user's message. The next request repeats that dialogue,
//! so the confirmation is the one among the user's pending confirmations with the same hash and the
//! same text. Nothing is stored besides the journal.
//!
//! The ids are UUIDs of version 8 ([`ConversationId::is_of_a_request`]), which lists of
//! conversations leave out: the client has the conversation, and these are its single requests.

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

use super::history::Utterance;
use crate::problem::Problem;

/// Length of the hash in an id, in bytes.
const HASH_BYTES: usize = 6;
/// Number of user messages, from the end, at which the confirmation may have been asked. A user who
/// gives unclear answers is asked again several times.
const POSITIONS_MAX: usize = 20;
/// Age up to which a repeated or late answer to a confirmation is recognised.
const SETTLED_AGE_MAX: SignedDuration = SignedDuration::from_hours(24);
/// Number of the user's last decisions among which a settled confirmation is looked for.
pub(super) const SETTLED_DECISIONS_MAX: u32 = 500;

/// Bytes of an id that are derived from the request's idempotency key, if it has one.
const KEY_BYTES: usize = 16 - HASH_BYTES;
/// Number of the user's last decisions among which a request with the same idempotency key is
/// looked for.
const SAME_KEY_DECISIONS_MAX: u32 = 100;

/// Hash of the user and the dialogue up to a message.
type PrefixHash = [u8; HASH_BYTES];

/// Index of a user message in the dialogue, with the hash up to it.
type Position = (usize, PrefixHash);

/// The conversations that a request may continue.
#[derive(Debug)]
pub(super) enum Candidates {
    /// Conversations that were started at one of these positions of the dialogue.
    StartedAt(Vec<Position>),
    /// The conversation that the request names.
    Named(ConversationId),
}

impl Candidates {
    /// Returns the conversations whose confirmation the last message may answer.
    pub(super) fn for_answer(user: &UserId, dialogue: &[Utterance]) -> Self {
        let mut positions = prefix_hashes(user, dialogue);
        // The last position is that of the answer itself.
        positions.pop();
        Self::StartedAt(newest(positions))
    }

    /// Returns the conversations whose turn may wait for the client's results.
    pub(super) fn for_results(user: &UserId, dialogue: &[Utterance]) -> Self {
        Self::StartedAt(newest(prefix_hashes(user, dialogue)))
    }

    /// Returns true if the conversation is one of them.
    pub(super) fn contain(&self, id: ConversationId) -> bool {
        match self {
            Self::StartedAt(positions) => positions.iter().any(|(_, hash)| has_hash(id, hash)),
            Self::Named(named) => *named == id,
        }
    }

    /// Returns true if the conversation is one of them, and the agent has said nothing but its
    /// question since.
    fn contain_question(&self, id: ConversationId, question: &str, dialogue: &[Utterance]) -> bool {
        match self {
            Self::StartedAt(positions) => positions.iter().any(|(at, hash)| {
                let mut since = dialogue
                    .iter()
                    .skip(at + 1)
                    .filter(|utterance| !utterance.by_user);
                has_hash(id, hash)
                    && since
                        .all(|utterance| normalize(&utterance.text).ends_with(&normalize(question)))
            }),
            Self::Named(named) => *named == id,
        }
    }

    fn are_empty(&self) -> bool {
        matches!(self, Self::StartedAt(positions) if positions.is_empty())
    }
}

/// Returns the last positions, newest first.
fn newest(positions: Vec<Position>) -> Vec<Position> {
    positions.into_iter().rev().take(POSITIONS_MAX).collect()
}

/// The conversation or turn that a request continues.
#[derive(Debug)]
pub(super) enum Continuation {
    /// A conversation with pending confirmations.
    Waiting(ConversationKey, Vec<PendingCall>),
    /// A turn that awaits these results of the client's tools.
    Awaiting(ConversationKey, Vec<Answer>),
    /// A confirmation that was answered before or has expired, with the turn's response.
    Settled(Box<AgentResponse>),
    /// Nothing: it starts a new conversation.
    New,
}

/// Returns the id of a new conversation. With an idempotency key, repeated requests get the same
/// id.
pub(super) fn new_id(
    user: &UserId,
    dialogue: &[Utterance],
    fresh: Uuid,
    key: Option<&InputId>,
) -> ConversationId {
    let mut bytes = *fresh.as_bytes();
    if let Some(key) = key {
        // Hashed, because a key may be longer than an id and have any characters.
        let digest: [u8; 32] = Sha256::digest(key.as_str().as_bytes()).into();
        bytes = digest.first_chunk().copied().unwrap_or(bytes);
    }
    let position = prefix_hashes(user, dialogue).pop();
    // The last bytes of a UUID are free of version and variant bits.
    if let Some(end) = bytes.last_chunk_mut() {
        *end = position.map(|(_, hash)| hash).unwrap_or_default();
    }
    ConversationId::of_request(bytes)
}

/// Returns the filter for the agent's last `limit` decisions that may settle a repeated request.
pub(super) fn recent(agent: &Agent, limit: u32) -> DecisionFilter {
    DecisionFilter {
        agent: Some(agent.name().clone()),
        since: agent.now().checked_sub(SETTLED_AGE_MAX).ok(),
        limit: Some(limit),
        ..DecisionFilter::default()
    }
}

/// Refuses a conversation whose idempotency key was used for a request with another dialogue. Looks
/// among the user's last requests.
pub(super) async fn check_key_is_new(agent: &Agent, key: &ConversationKey) -> Result<(), Problem> {
    let key_bytes = |id: ConversationId| id.0.as_bytes().first_chunk::<KEY_BYTES>().copied();
    let filter = recent(agent, SAME_KEY_DECISIONS_MAX);
    let decisions = agent.logs().decisions(&key.user, &filter).await;
    let is_reused = decisions?.iter().any(|decision| {
        let id = decision.conversation;
        id.is_of_a_request()
            && id != key.conversation
            && key_bytes(id) == key_bytes(key.conversation)
    });
    if is_reused {
        Err(Problem::store(&StoreError::Reused))
    } else {
        Ok(())
    }
}

/// Finds what the last message of a dialogue continues.
pub(super) async fn find(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    dialogue: &[Utterance],
) -> Result<Continuation, Problem> {
    if candidates.are_empty() {
        return Ok(Continuation::New);
    }
    let waiting = agent.journal().parked(agent.name(), Some(user)).await?;
    // The newest first: of two conversations with the same texts, it is the one being shown.
    for (key, recorded) in waiting.iter().rev() {
        let Event::TurnParked {
            pending, content, ..
        } = &*recorded.event
        else {
            continue;
        };
        // After results of the client's tools, the remaining confirmations are asked about alone.
        let questions = [content.as_str(), &words::questions(pending)];
        if !questions
            .iter()
            .any(|question| candidates.contain_question(key.conversation, question, dialogue))
        {
            continue;
        }
        if !pending.iter().all(|call| call.has_expired(agent.now())) {
            return Ok(Continuation::Waiting(key.clone(), pending.clone()));
        }
        // The calls have expired, and the turn has not been ended yet.
        agent.run_conversation(key).await?;
    }
    let is_bare_answer = dialogue
        .last()
        .is_some_and(|last| read_words(&last.text) != Reading::Unclear);
    // Any other message starts a new conversation, and costs no search in the log.
    if is_bare_answer
        && let Some(response) = find_settled(agent, user, candidates, dialogue).await?
    {
        return Ok(Continuation::Settled(Box::new(response)));
    }
    Ok(Continuation::New)
}

/// Returns the response to a confirmation that this yes or no answers again, or too late.
async fn find_settled(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    dialogue: &[Utterance],
) -> Result<Option<AgentResponse>, Problem> {
    let filter = recent(agent, SETTLED_DECISIONS_MAX);
    for decision in agent.logs().decisions(user, &filter).await? {
        // A turn that had a confirmation; a pending one would have been found before.
        let was_asked = matches!(
            decision.kind,
            Some(
                DecisionKind::RequestConfirmation
                    | DecisionKind::ExecutePending
                    | DecisionKind::CancelPending
            )
        ) || decision.outcome == Some(OutcomeCategory::ConfirmationExpired);
        if !was_asked || !candidates.contain(decision.conversation) {
            continue;
        }
        let key = decision.key();
        if decision.ended_at.is_none() {
            // The turn is running: wait for its end.
            agent.run_conversation(&key).await?;
        }
        let events = agent.journal().load(&key).await?.events;
        let question = events
            .iter()
            .rev()
            .find_map(|recorded: &Recorded| match &*recorded.event {
                Event::TurnParked { turn, content, .. } if *turn == decision.id => Some(content),
                _ => None,
            });
        if !question.is_some_and(|question| {
            candidates.contain_question(key.conversation, question, dialogue)
        }) {
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
            // The usage was reported with the first response.
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

fn has_hash(id: ConversationId, hash: &PrefixHash) -> bool {
    id.is_of_a_request() && id.0.as_bytes().ends_with(hash)
}

/// Returns the hash at each user message, over the user and the dialogue up to it.
fn prefix_hashes(user: &UserId, dialogue: &[Utterance]) -> Vec<Position> {
    let mut hash = Sha256::new();
    hash.update(user.as_str());
    let mut positions = Vec::new();
    for (at, utterance) in dialogue.iter().enumerate() {
        // The mark of the speaker separates the texts.
        hash.update(if utterance.by_user { [0, 0] } else { [0, 1] });
        hash.update(normalize(&utterance.text));
        if utterance.by_user {
            let digest: [u8; 32] = hash.clone().finalize().into();
            positions.push((at, digest.first_chunk().copied().unwrap_or_default()));
        }
    }
    positions
}

/// Joins the words of a text by single spaces: interfaces change white space.
fn normalize(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
