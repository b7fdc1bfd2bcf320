//! One input: accepted, its conversation run, and what became of it read.

use std::sync::Arc;

use adjutant_core::conversation::Conversation;
use adjutant_core::limits::MESSAGE_BYTES_MAX;
use adjutant_core::{AgentResponse, CancellationToken, Event, Input, InputBody, InputId, check_history};
use uuid::Uuid;

use crate::answered::{Answered, NewMessages};
use crate::dispatch::{Dispatch, seen_to_elsewhere};
use crate::event::{Emitter, RunEvent};
use crate::held::Arrival;
use crate::inner::Inner;
use crate::run::{advance, turn_of};
use crate::{RunContext, RunError};

/// Accepts an input, runs the conversation, and reads what became of the input.
pub(crate) async fn respond(
    inner: &Arc<Inner>,
    dispatch: Option<&Arc<dyn Dispatch>>,
    mut context: RunContext,
    (id, body): (Option<InputId>, InputBody),
    (emitter, cancelled): (&Emitter, &CancellationToken),
) -> Result<(AgentResponse, RunContext), RunError> {
    if let InputBody::Message { text, .. } = &body {
        match text.len() {
            bytes if bytes > MESSAGE_BYTES_MAX => {
                return Err(RunError::MessageTooLarge { bytes, max: MESSAGE_BYTES_MAX });
            }
            _ if text.trim().is_empty() => return Err(RunError::EmptyMessage),
            _ => {}
        }
    }
    check_history(&context.history)?;
    let key = context.key(&inner.name);
    let id = id.unwrap_or_else(|| InputId::from(Uuid::now_v7()));
    let (request_id, fingerprint) = (context.request_id.clone(), context.fingerprint.clone());
    let input = Input { id, at: inner.now(), request_id, fingerprint, after: 0, body };
    crate::faults::boundary("before the input is accepted");
    let seen_to = match dispatch.filter(|_| context.history.is_empty()) {
        Some(dispatch) => {
            inner.journal.submit(&key, &input).await?;
            seen_to_elsewhere(inner, dispatch.as_ref(), &key, &input.id, cancelled).await
        }
        None => false,
    };
    let answered = if seen_to {
        None
    } else {
        let started = turn_of(inner, &input);
        let messages = context.history.clone();
        let first = (!messages.is_empty()).then_some(Event::HistorySet { messages });
        let arrival =
            Arrival { input: &input, turn: started.as_ref().map(|(_, event)| event), first: first.as_ref() };
        let known = context.history.len();
        let read = |conversation: &Conversation| Answered::read(&key, conversation, &input, known);
        advance(inner, &key, Some(arrival), (emitter, cancelled), read).await?.flatten()
    };
    let answered = match answered {
        Some(answered) => answered,
        // It was answered elsewhere, or before, or something else was done in the conversation since.
        None => Answered::search(inner, &key, &input)
            .await?
            .ok_or_else(|| RunError::CannotContinue("nothing was waiting for this answer".to_owned()))?,
    };
    let Answered { mut response, notices, pending, messages } = answered;
    context.pending = pending;
    match messages {
        NewMessages::Last(messages) => context.history = messages,
        NewMessages::Behind(more) => context.history.extend(more),
    }
    for notice in notices {
        response.content = format!("{}\n{}", notice.text, response.content);
        emitter.emit(|| RunEvent::Noticed(notice.clone())).await;
        response.notices.push(notice);
    }
    emitter.emit(|| RunEvent::Finished(Box::new(response.clone()))).await;
    Ok((response, context))
}
