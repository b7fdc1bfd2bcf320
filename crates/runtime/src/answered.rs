//! Reads the outcome of an input from the state of its conversation, or searches for it in the
//! past.

use adjutant_core::conversation::Conversation;
use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, ConversationKey, Event, Input, InputBody, Message, Notice, PendingCall,
    Recorded, TurnId, conversation,
};

use crate::inner::Inner;

/// The outcome of an input that is not among the last turns read is searched for among so many
/// times as many.
const MORE_TURNS: u32 = 4;

/// The outcome of an input.
pub(crate) struct Answered {
    pub(crate) response: AgentResponse,
    pub(crate) notices: Vec<Notice>,
    pub(crate) pending: Vec<PendingCall>,
    pub(crate) messages: NewMessages,
}

/// The messages of a conversation that a context does not know.
pub(crate) enum NewMessages {
    /// Those that the next request begins with, in the place of what the context has.
    Last(Vec<Message>),
    /// Those behind what it has.
    Behind(Vec<Message>),
}

impl Answered {
    /// Reads it from the turn that the conversation is at, for a context with so many messages.
    /// `None`: that turn is another.
    pub(crate) fn read(
        key: &ConversationKey,
        conversation: &Conversation,
        input: &Input,
        known: usize,
    ) -> Option<Self> {
        let mut answered = Self::of(key, (conversation.recent(), conversation.pending()), input)?;
        let NewMessages::Behind(said) = &answered.messages else {
            return Some(answered);
        };
        // The messages of the turn are the last of the history, and those before it come behind
        // what there was.
        let before = conversation.messages() - said.len();
        // A context that does not know the past of its conversation is not told of it.
        if known != 0 && known != before {
            answered.messages = NewMessages::Last(conversation.kept_messages().to_vec());
        }
        Some(answered)
    }

    /// Reads it from a turn, for a context that knows no messages. `None`: it is that of another
    /// turn.
    pub(crate) fn of(
        key: &ConversationKey,
        (events, pending): (&[Recorded], &[PendingCall]),
        input: &Input,
    ) -> Option<Self> {
        let (response, notices) = Self::response(key, events, input)?;
        let said = events.iter().find_map(|recorded| match &*recorded.event {
            Event::TurnFinished { end, .. } => Some(end.messages.clone()),
            _ => None,
        });
        let messages = NewMessages::Behind(said.unwrap_or_default());
        Some(Self {
            response,
            notices,
            pending: pending.to_vec(),
            messages,
        })
    }

    /// Searches the past for it.
    pub(crate) async fn search(
        inner: &Inner,
        key: &ConversationKey,
        input: &Input,
    ) -> Result<Option<Self>, StoreError> {
        let found = match Self::of_its_turn(inner, key, input).await? {
            Some(found) => Some(found),
            None => Self::backwards(inner, key, input).await?,
        };
        let (Some((response, notices)), Some(known)) = (found, inner.current(key).await?) else {
            return Ok(None);
        };
        let conversation = known.conversation();
        let messages = NewMessages::Last(conversation.kept_messages().to_vec());
        Ok(Some(Self {
            response,
            notices,
            pending: conversation.pending().to_vec(),
            messages,
        }))
    }

    /// Reads the turn that took the input, wherever it is.
    async fn of_its_turn(
        inner: &Inner,
        key: &ConversationKey,
        input: &Input,
    ) -> Result<Option<(AgentResponse, Vec<Notice>)>, StoreError> {
        let found = inner.journal.find_input(key, &input.id).await?;
        let Some(place) = found.and_then(|found| found.taken_at) else {
            return Ok(None);
        };
        let read = inner.journal.load_turns(key, Some(place + 1), 1).await?;
        let Some(turn) = read.and_then(|read| read.events.last()?.event.turn()) else {
            return Ok(None);
        };
        let read = inner.journal.load_turn(key, turn).await?;
        Ok(read.and_then(|read| Self::response(key, &read.events, input)))
    }

    /// Reads turns from the newest backwards: an answer may amount to what another one led to, and
    /// a branch may have taken the input where it comes from.
    async fn backwards(
        inner: &Inner,
        key: &ConversationKey,
        input: &Input,
    ) -> Result<Option<(AgentResponse, Vec<Notice>)>, StoreError> {
        let mut turns = 1_u32;
        loop {
            let Some(read) = inner.journal.load_turns(key, None, turns).await? else {
                return Ok(None);
            };
            if let Some(found) = Self::response(key, &read.events, input) {
                return Ok(Some(found));
            }
            if read.after == 0 {
                return Ok(None);
            }
            turns = turns.saturating_mul(MORE_TURNS);
        }
    }

    fn response(
        key: &ConversationKey,
        events: &[Recorded],
        input: &Input,
    ) -> Option<(AgentResponse, Vec<Notice>)> {
        let turn = conversation::turn_of_input(events, &input.id)
            .or_else(|| turn_of_answers(events, &input.body))?;
        let response = conversation::response(key.conversation, events, turn)?;
        Some((response, conversation::notices_of(events, input)))
    }
}

/// The turn whose calls an answer was for, if somebody else or the clock answered them first: what
/// became of it is what the answer amounts to.
fn turn_of_answers(events: &[Recorded], body: &InputBody) -> Option<TurnId> {
    let InputBody::Answers { answers } = body else {
        return None;
    };
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::CallAnswered { turn, call, .. } | Event::DoubtResolved { turn, call, .. } => {
                answers
                    .iter()
                    .any(|answer| answer.call_id == *call)
                    .then_some(*turn)
            }
            _ => None,
        })
}
