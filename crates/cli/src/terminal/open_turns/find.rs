//! Open turns, found in the journal.

use adjutant_core::{ConversationKey, Event, Recorded, TurnId, UserId, conversation};
use jiff::Timestamp;

use super::rule::Origin;
use crate::command::sessions;
use crate::error::CliError;
use crate::store::{self, Store};
use crate::terminal::display::{clip, rough};

/// Characters of a conversation's title in a line about it.
const TITLE_CHARS: usize = 40;

/// A turn that has begun and not ended, or a message that was accepted and not answered.
pub(super) struct OpenTurn {
    pub(super) key: ConversationKey,
    pub(super) origin: Origin,
    /// `None` if a message was accepted and no turn has begun.
    pub(super) turn: Option<TurnId>,
    /// True if the turn waits for a confirmation.
    pub(super) waits: bool,
    since: Option<Timestamp>,
    title: String,
    /// The last recorded step.
    doing: String,
}

impl OpenTurn {
    /// Describes the turn in one line: `“Trip to Oslo”, begun 3 min ago with ollama/qwen3:8b (on
    /// this machine), waiting for the model`.
    pub(super) fn line(&self, now: Timestamp) -> String {
        let since = self
            .since
            .map(|at| rough(now.as_second() - at.as_second()))
            .unwrap_or_default();
        format!(
            "“{}”, begun {since} ago with {}, {}",
            self.title,
            self.origin.name(),
            self.doing
        )
    }

    /// Returns the end of the turn's id, which `adjutant turns` accepts.
    pub(super) fn short_id(&self) -> String {
        let id = self.turn.map(|turn| turn.to_string()).unwrap_or_default();
        id.get(id.len().saturating_sub(8)..)
            .unwrap_or(&id)
            .to_owned()
    }
}

/// Returns the open turns of a user that no worker runs, oldest first: interrupted ones, and those
/// whose confirmation has expired.
pub(super) async fn recoverable(
    store: &dyn Store,
    user: &UserId,
    now: Timestamp,
) -> Result<Vec<OpenTurn>, CliError> {
    let mut all = Vec::new();
    for key in recoverable_keys(store, user, now).await? {
        let open = in_conversation(store, &key).await?;
        // A turn that waits is in this list only if the time for its answer is up.
        all.extend(open.map(|open| match open.waits {
            true => OpenTurn {
                doing: "waiting for a yes, for which the time is up".to_owned(),
                ..open
            },
            false => open,
        }));
    }
    all.sort_by_key(|open| open.since);
    Ok(all)
}

/// Returns the conversations of [`recoverable`].
pub(super) async fn recoverable_keys(
    store: &dyn Store,
    user: &UserId,
    now: Timestamp,
) -> Result<Vec<ConversationKey>, CliError> {
    let agent = store::agent_name();
    let mut keys = store.unsettled(&agent, Some(user)).await?;
    for key in store.expired(&agent, Some(user), now).await? {
        // A conversation may be in both lists.
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Returns true if no worker runs what is open in the conversation.
pub(super) async fn is_recoverable(
    store: &dyn Store,
    key: &ConversationKey,
) -> Result<bool, CliError> {
    Ok(store
        .unsettled(&key.agent, Some(&key.user))
        .await?
        .contains(key))
}

/// Returns what is open in a conversation, even if a worker runs it.
pub(super) async fn in_conversation(
    store: &dyn Store,
    key: &ConversationKey,
) -> Result<Option<OpenTurn>, CliError> {
    // Turns of a conversation follow each other, so only the last one can be open.
    let Some(last) = store.load_turns(key, None, 1).await? else {
        return Ok(None);
    };
    let events = &last.events;
    let turn = conversation::open_turn(events);
    if turn.is_none() && !last.inbox.iter().any(|input| input.body.starts_turn()) {
        return Ok(None);
    }
    let started = events.iter().find_map(|recorded| match &*recorded.event {
        Event::TurnStarted {
            turn: started,
            model,
            local,
            ..
        } if Some(*started) == turn => Some((recorded.at, Some(model.clone()), *local)),
        _ => None,
    });
    let (since, model, local) = match started {
        Some((at, model, local)) => (Some(at), model, local),
        // No turn has begun: the time of the oldest message that was accepted.
        None => (last.inbox.first().map(|input| input.at), None, None),
    };
    let summary = store.summary(key).await?;
    let title = summary
        .map(|summary| clip(&sessions::title(&summary), TITLE_CHARS))
        .unwrap_or_default();
    let waits = turn.is_some() && !conversation::pending(events).is_empty();
    let doing = if waits {
        "waiting for a yes".to_owned()
    } else {
        doing(events, turn)
    };
    Ok(Some(OpenTurn {
        key: key.clone(),
        origin: Origin { model, local },
        turn,
        waits,
        since,
        title,
        doing,
    }))
}

/// Describes the last recorded step of a turn.
fn doing(events: &[Recorded], turn: Option<TurnId>) -> String {
    let of_turn = events
        .iter()
        .rev()
        .filter(|recorded| turn.is_some() && recorded.event.turn() == turn);
    let last = of_turn
        .map(|recorded| &*recorded.event)
        .find_map(|event| match event {
            Event::CallStarted { tool, .. } => {
                Some(format!("in the middle of {}", clip(tool, TITLE_CHARS)))
            }
            Event::CallFinished { tool, .. } => Some(format!("after {}", clip(tool, TITLE_CHARS))),
            Event::ModelReplied { .. } => Some("after an answer of the model".to_owned()),
            _ => None,
        });
    last.unwrap_or_else(|| "waiting for the model".to_owned())
}
