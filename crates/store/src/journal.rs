//! What submitting and appending write, whatever the database.

use adjutant_core::port::{Loaded, StoreError};
use adjutant_core::{
    ConversationKey, DecisionRecord, Event, Input, InputId, ToolInvocationRecord, TurnId, UserId,
};
use jiff::Timestamp;

use crate::row::{ConversationRow, DecisionRow, EventRow, InputRow, InvocationRow};

/// The rows of one transaction. A backend gives the statements; [`submit`] and [`append`] say which.
pub(crate) trait JournalRows: Send {
    type Error: From<StoreError> + Send;

    fn conversation(
        &mut self,
        key: &ConversationKey,
    ) -> impl Future<Output = Result<Option<ConversationRow>, Self::Error>> + Send;

    fn create_conversation(
        &mut self,
        key: &ConversationKey,
        at: Timestamp,
    ) -> impl Future<Output = Result<ConversationRow, Self::Error>> + Send;

    fn save_conversation(
        &mut self,
        row: &ConversationRow,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// `false`: it is there already.
    fn insert_input(
        &mut self,
        conversation: i64,
        row: &InputRow,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// `false`: it was taken before, or never accepted.
    fn take_input(
        &mut self,
        conversation: i64,
        input: &InputId,
        seq: i64,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Fails with [`StoreError::Conflict`] if the place is taken or the step has an event of this kind.
    fn insert_event(
        &mut self,
        conversation: i64,
        row: &EventRow,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    fn decision(
        &mut self,
        user: &UserId,
        id: TurnId,
    ) -> impl Future<Output = Result<Option<DecisionRow>, Self::Error>> + Send;

    fn insert_decision(
        &mut self,
        conversation: i64,
        row: &DecisionRow,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Writes what an open decision may still change.
    fn update_decision(&mut self, row: &DecisionRow) -> impl Future<Output = Result<(), Self::Error>> + Send;

    fn insert_invocation(
        &mut self,
        conversation: i64,
        user: &UserId,
        row: &InvocationRow,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Accepts an input. The caller commits.
pub(crate) async fn submit<R: JournalRows>(
    rows: &mut R,
    key: &ConversationKey,
    input: &Input,
) -> Result<(), R::Error> {
    let mut conversation = match rows.conversation(key).await? {
        Some(conversation) => conversation,
        None => rows.create_conversation(key, input.at).await?,
    };
    if !rows.insert_input(conversation.key, &InputRow::of(input)?).await? {
        return Ok(());
    }
    conversation.untaken += 1;
    conversation.updated_at = conversation.updated_at.max(input.at);
    if conversation.title.is_empty() {
        conversation.title = adjutant_core::title(&input.body).unwrap_or_default();
    }
    rows.save_conversation(&conversation).await
}

/// Adds events, takes their inputs, fills both logs. The caller commits; after an error it must not.
pub(crate) async fn append<R: JournalRows>(
    rows: &mut R,
    key: &ConversationKey,
    next_seq: u64,
    at: Timestamp,
    events: &[Event],
) -> Result<(), R::Error> {
    // A conversation that is not there was deleted, or is another user's: either way not this writer's any more.
    let Some(mut conversation) = rows.conversation(key).await? else {
        return Err(StoreError::Conflict.into());
    };
    if i64::try_from(next_seq) != Ok(conversation.next_seq) {
        return Err(StoreError::Conflict.into());
    }
    for event in events {
        let seq = conversation.next_seq;
        rows.insert_event(conversation.key, &EventRow::of(seq, at, event)?).await?;
        if let Some(input) = event.takes_input()
            && rows.take_input(conversation.key, input, seq).await?
        {
            conversation.untaken -= 1;
        }
        log(rows, &conversation, key, at, event).await?;
        conversation.status.follow(seq, event);
        conversation.next_seq += 1;
    }
    rows.save_conversation(&conversation).await
}

async fn log<R: JournalRows>(
    rows: &mut R,
    conversation: &ConversationRow,
    key: &ConversationKey,
    at: Timestamp,
    event: &Event,
) -> Result<(), R::Error> {
    if let Some(decision) = DecisionRecord::open(key, at, event) {
        rows.insert_decision(conversation.key, &DecisionRow::of(&decision)).await?;
    } else if let Some(turn) = event.turn()
        && let Some(row) = rows.decision(&key.user, turn).await?
    {
        let before = row.read()?;
        let mut decision = before.clone();
        decision.apply(at, event);
        if decision != before {
            rows.update_decision(&DecisionRow::of(&decision)).await?;
        }
    }
    if let Some(invocation) = ToolInvocationRecord::of(at, event) {
        rows.insert_invocation(conversation.key, &key.user, &InvocationRow::of(&invocation)?).await?;
    }
    Ok(())
}

/// What was stored, as records. Fails on the first that cannot be read: a turn is never rebuilt from half a journal.
pub(crate) fn loaded(
    key: &ConversationKey,
    events: Vec<EventRow>,
    inbox: Vec<InputRow>,
) -> Result<Loaded, StoreError> {
    Ok(Loaded {
        events: events.into_iter().map(|row| row.read(key)).collect::<Result<_, _>>()?,
        inbox: inbox.into_iter().map(|row| row.read(key)).collect::<Result<_, _>>()?,
    })
}
