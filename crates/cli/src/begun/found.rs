//! Open turns, read from the journal.

use adjutant_core::{ConversationKey, Event, Recorded, TurnId, UserId, conversation};
use jiff::Timestamp;

use super::rule::Begun;
use crate::display::{clip, rough};
use crate::error::CliError;
use crate::sessions;
use crate::store::{self, Store};

/// Characters of a conversation's name in a line about it.
const TITLE_CHARS: usize = 40;

/// A turn that has begun and not ended, or a message that no turn has taken.
pub(super) struct Open {
    pub(super) key: ConversationKey,
    pub(super) begun: Begun,
    /// `None`: only a message was accepted.
    pub(super) turn: Option<TurnId>,
    /// Whether it waits for a person.
    pub(super) waits: bool,
    since: Option<Timestamp>,
    title: String,
    /// The last that is known of it.
    doing: String,
}

impl Open {
    /// `“Trip to Oslo”, begun 3 min ago with ollama/qwen3:8b (on this machine), waiting for the
    /// model`.
    pub(super) fn line(&self, now: Timestamp) -> String {
        let since = self
            .since
            .map(|at| rough(now.as_second() - at.as_second()))
            .unwrap_or_default();
        format!(
            "“{}”, begun {since} ago with {}, {}",
            self.title,
            self.begun.name(),
            self.doing
        )
    }

    /// The end of its id, by which `adjutant turns` finds it.
    pub(super) fn short_id(&self) -> String {
        let id = self.turn.map(|turn| turn.to_string()).unwrap_or_default();
        id.get(id.len().saturating_sub(8)..)
            .unwrap_or(&id)
            .to_owned()
    }
}

/// Returns what nobody alive works on in a user's conversations and would go on by itself, the
/// oldest first: turns that were broken off, and those that wait for a yes whose time has run out.
pub(super) async fn left(
    store: &dyn Store,
    user: &UserId,
    now: Timestamp,
) -> Result<Vec<Open>, CliError> {
    let mut all = Vec::new();
    for key in left_keys(store, user, now).await? {
        let open = in_conversation(store, &key).await?;
        all.extend(open.map(|open| match open.waits {
            true => Open {
                doing: "waiting for a yes, for which the time is up".to_owned(),
                ..open
            },
            false => open,
        }));
    }
    all.sort_by_key(|open| open.since);
    Ok(all)
}

/// Returns the conversations of [`left`].
pub(super) async fn left_keys(
    store: &dyn Store,
    user: &UserId,
    now: Timestamp,
) -> Result<Vec<ConversationKey>, CliError> {
    let agent = store::agent_name();
    let mut keys = store.unsettled(&agent, Some(user)).await?;
    for key in store.expired(&agent, Some(user), now).await? {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Returns whether nobody alive works on what is open in a conversation.
pub(super) async fn is_left(store: &dyn Store, key: &ConversationKey) -> Result<bool, CliError> {
    Ok(store
        .unsettled(&key.agent, Some(&key.user))
        .await?
        .contains(key))
}

/// Returns what is open in a conversation, whoever works on it.
pub(super) async fn in_conversation(
    store: &dyn Store,
    key: &ConversationKey,
) -> Result<Option<Open>, CliError> {
    let Some(last) = store.load_turns(key, None, 1).await? else {
        return Ok(None);
    };
    let events = &last.events;
    let turn = conversation::open_turn(events);
    if turn.is_none() && !last.inbox.iter().any(|input| input.body.starts_turn()) {
        return Ok(None);
    }
    let begun = events.iter().find_map(|recorded| match &*recorded.event {
        Event::TurnStarted {
            turn: begun,
            model,
            local,
            ..
        } if Some(*begun) == turn => Some((
            recorded.at,
            Begun {
                model: Some(model.clone()),
                local: *local,
            },
        )),
        _ => None,
    });
    let (since, begun) = match begun {
        Some((at, begun)) => (Some(at), begun),
        None => (
            last.inbox.first().map(|input| input.at),
            Begun {
                model: None,
                local: None,
            },
        ),
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
    Ok(Some(Open {
        key: key.clone(),
        begun,
        turn,
        waits,
        since,
        title,
        doing,
    }))
}

/// The step a turn was at when it was broken off.
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
