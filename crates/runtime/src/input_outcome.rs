//! The outcome of an input: read from the state of its conversation, or searched for in earlier
//! turns.

use adjutant_core::conversation::Conversation;
use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, ConversationKey, Disposition, Event, Input, InputBody, Message, Notice,
    PendingCall, Recorded, TurnId, conversation,
};

use crate::inner::Inner;

/// Factor by which the number of turns grows that are read in search of an outcome.
const SEARCH_GROWTH: u32 = 4;

/// The response to an input, with what the caller's context needs.
pub(crate) struct InputOutcome {
    pub(crate) response: AgentResponse,
    pub(crate) notices: Vec<Notice>,
    pub(crate) pending: Vec<PendingCall>,
    pub(crate) messages: NewMessages,
}

/// The messages that bring a caller's context up to date.
pub(crate) enum NewMessages {
    /// The messages that the next request begins with; they replace the context's.
    Replace(Vec<Message>),
    /// The messages of the turn; they follow those of the context.
    Append(Vec<Message>),
}

impl InputOutcome {
    /// Reads the outcome from the conversation's current turn, for a context with `known` messages.
    /// `None`: that turn did not take the input.
    pub(crate) fn from_conversation(
        key: &ConversationKey,
        conversation: &Conversation,
        input: &Input,
        known: usize,
    ) -> Option<Self> {
        let mut outcome =
            Self::from_turn(key, conversation.recent(), conversation.pending(), input)?;
        let NewMessages::Append(said) = &outcome.messages else {
            return Some(outcome);
        };
        // The turn's messages are the last of the conversation. If the number before them is not
        // the context's, others continued the conversation in between.
        let before = conversation.messages() - said.len();
        // A context without messages gets the turn's own only: it was started without the history.
        if known != 0 && known != before {
            outcome.messages = NewMessages::Replace(conversation.kept_messages().to_vec());
        }
        Some(outcome)
    }

    /// Reads the outcome from the events of a turn, for a context without messages. `None`: the
    /// turn did not take the input.
    pub(crate) fn from_turn(
        key: &ConversationKey,
        events: &[Recorded],
        pending: &[PendingCall],
        input: &Input,
    ) -> Option<Self> {
        let (response, notices) = Self::response(key, events, input)?;
        let said = events.iter().find_map(|recorded| match &*recorded.event {
            Event::TurnFinished { end, .. } => Some(end.history().collect()),
            _ => None,
        });
        let messages = NewMessages::Append(said.unwrap_or_default());
        Some(Self {
            response,
            notices,
            pending: pending.to_vec(),
            messages,
        })
    }

    /// Searches earlier turns for the outcome.
    pub(crate) async fn search(
        inner: &Inner,
        key: &ConversationKey,
        input: &Input,
    ) -> Result<Option<Self>, StoreError> {
        let found = match Self::search_taking_turn(inner, key, input).await? {
            Some(found) => Some(found),
            None => Self::search_backwards(inner, key, input).await?,
        };
        let (Some((response, notices)), Some(known)) = (found, inner.current(key).await?) else {
            return Ok(None);
        };
        let conversation = known.conversation();
        let messages = NewMessages::Replace(conversation.kept_messages().to_vec());
        Ok(Some(Self {
            response,
            notices,
            pending: conversation.pending().to_vec(),
            messages,
        }))
    }

    /// Reads the turn that took the input, by the journal's index of inputs.
    async fn search_taking_turn(
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

    /// Reads turns from the newest backwards. The index does not help if another answer was taken
    /// in place of this one, or if the input was taken in the conversation that this one branches
    /// off.
    async fn search_backwards(
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
            // Geometric growth: all reads together cost little more than the last one.
            turns = turns.saturating_mul(SEARCH_GROWTH);
        }
    }

    fn response(
        key: &ConversationKey,
        events: &[Recorded],
        input: &Input,
    ) -> Option<(AgentResponse, Vec<Notice>)> {
        let turn = conversation::turn_of_input(events, &input.id)
            .or_else(|| turn_of_answers(events, &input.body))?;
        let mut response = conversation::response(key.conversation, events, turn)?;
        // Answers that another input's, or the expiry, came before are in no event of that turn.
        response.disposition =
            conversation::disposition(events, &input.id).unwrap_or(Disposition::Dropped);
        let is_message = matches!(input.body, InputBody::Message { .. });
        if is_message && response.disposition == Disposition::Dropped {
            let is_over = response.decision.pending.is_empty();
            let notices = match is_over {
                true => Vec::new(),
                false => conversation::notices_of(events, input),
            };
            return Some((conversation::response_to_dropped(response), notices));
        }
        Some((response, conversation::notices_of(events, input)))
    }
}

/// Returns the turn whose calls these answers are for. Another client, or the expiry, may have
/// answered them first; the outcome of that turn is then the outcome of these answers too.
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
