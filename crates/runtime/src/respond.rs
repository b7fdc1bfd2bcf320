//! One input: accepted, its conversation run, and what became of it read.

use std::sync::Arc;

use adjutant_core::conversation::Conversation;
use adjutant_core::limits::MESSAGE_BYTES_MAX;
use adjutant_core::{
    AgentResponse, CancellationToken, ConversationKey, Event, Input, InputBody, InputId,
    LongMessage, ToolResult, check_history,
};
use uuid::Uuid;

use crate::answered::{Answered, NewMessages};
use crate::dispatch::Dispatcher;
use crate::event::RunEvent;
use crate::held::Arrival;
use crate::inner::Inner;
use crate::run::{advance, turn_of};
use crate::stream::Emitter;
use crate::turn_tools::check_client;
use crate::{RunContext, RunError};

/// Accepts an input, runs the conversation, and reads what became of the input.
pub(crate) async fn respond(
    inner: &Arc<Inner>,
    dispatcher: Option<&Dispatcher>,
    mut context: RunContext,
    (id, body): (Option<InputId>, InputBody),
    (emitter, cancelled): (&Emitter, &CancellationToken),
) -> Result<(AgentResponse, RunContext), RunError> {
    check(inner, &body)?;
    check_history(&context.history)?;
    let key = context.key(&inner.name);
    let id = id.unwrap_or_else(|| InputId::from(Uuid::now_v7()));
    let (request_id, fingerprint) = (context.request_id.clone(), context.fingerprint.clone());
    let input = Input {
        id,
        at: inner.now(),
        request_id,
        fingerprint,
        after: 0,
        body,
    };
    crate::faults::boundary("before the input is accepted");
    let known = context.history.len();
    let read = |conversation: &Conversation| Answered::read(&key, conversation, &input, known);
    // A history that only the caller knows is gone on with here.
    let dispatched = dispatcher
        .filter(|_| known == 0)
        .and_then(|it| Some((it, it.leave()?)));
    let answered = match dispatched {
        Some((dispatcher, leave)) => {
            // What a memory tells is found by whoever begins with the turn.
            match turn_of(inner, &input).filter(|_| inner.recall.is_none()) {
                Some((_, started)) => {
                    inner
                        .journal
                        .submit_with_turn(&key, &input, &started)
                        .await?
                }
                None => inner.journal.submit(&key, &input).await?,
            }
            emitter.emit(|| RunEvent::Accepted).await;
            let around = (emitter, cancelled);
            match dispatcher
                .see_to(inner, leave, &key, &input, around, read)
                .await?
            {
                Some(answered) => Some(answered),
                None => inner
                    .current(&key)
                    .await?
                    .and_then(|known| read(known.conversation())),
            }
        }
        None => here(inner, &key, &input, &context, (emitter, cancelled), read).await?,
    };
    let answered = match answered {
        Some(answered) => Some(answered),
        // It was answered before, or something else was done in the conversation since.
        None => Answered::search(inner, &key, &input).await?,
    };
    let answered = match answered {
        Some(answered) => answered,
        None => {
            return Err(RunError::CannotContinue(
                "nothing was waiting for this answer".to_owned(),
            ));
        }
    };
    let Answered {
        mut response,
        notices,
        pending,
        messages,
    } = answered;
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
    emitter
        .emit(|| RunEvent::Finished(Box::new(response.clone())))
        .await;
    Ok((response, context))
}

/// Refuses what nobody could answer, before anything is accepted.
pub(crate) fn check(inner: &Inner, body: &InputBody) -> Result<(), RunError> {
    let bounded = |bytes: usize| match bytes > MESSAGE_BYTES_MAX {
        true => Err(RunError::MessageTooLarge {
            bytes,
            max: MESSAGE_BYTES_MAX,
        }),
        false => Ok(()),
    };
    match body {
        InputBody::Message { text, limits, .. } => {
            bounded(text.len())?;
            let limits = limits.as_deref().unwrap_or(&inner.limits);
            if let (Some(max), LongMessage::Refuse) =
                (limits.message_chars_max, limits.long_message)
            {
                let chars = text.chars().count();
                if chars > max {
                    return Err(RunError::MessageTooLong { chars, max });
                }
            }
            if text.trim().is_empty() {
                return Err(RunError::EmptyMessage);
            }
        }
        InputBody::Answers { answers } => {
            bounded(
                answers
                    .iter()
                    .filter_map(|answer| answer.result.as_ref())
                    .map(ToolResult::bytes)
                    .sum(),
            )?;
        }
        InputBody::Cancel | InputBody::Call(_) => {}
    }
    if let Some(client) = body.client() {
        check_client(inner, client)?;
    }
    Ok(())
}

/// Accepts the input and runs the conversation in this process.
async fn here(
    inner: &Inner,
    key: &ConversationKey,
    input: &Input,
    context: &RunContext,
    around: (&Emitter, &CancellationToken),
    read: impl FnOnce(&Conversation) -> Option<Answered>,
) -> Result<Option<Answered>, RunError> {
    let started = turn_of(inner, input);
    let history = &context.history;
    let first = (!history.is_empty()).then(|| Event::HistorySet {
        messages: history.clone(),
    });
    let turn = started.as_ref().map(|(_, event)| event);
    let arrival = Arrival {
        input,
        turn,
        first: first.as_ref(),
        trace: context.trace.as_ref(),
    };
    Ok(advance(inner, key, Some(arrival), around, read)
        .await?
        .flatten())
}
