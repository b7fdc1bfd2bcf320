//! `/retry`, `/rewind` and `/branches`: a conversation that goes on differently from an earlier
//! place, and the way back.

use adjutant_core::port::Alternatives;
use adjutant_core::{ConversationId, Event, Recorded, TurnId};
use adjutant_runtime::{BranchError, RunContext};

use super::Chat;
use super::editor::PROMPT;
use crate::display::clip;
use crate::error::CliError;
use crate::screen::dim;
use crate::{sessions, store};

/// So much of a message is shown.
const SHOWN_CHARS: usize = 160;
/// So much of each message in a list of alternatives.
const LISTED_CHARS: usize = 60;

impl Chat<'_> {
    /// Has the last message answered anew, in a branch.
    pub(super) async fn retry(&mut self) -> Result<(), CliError> {
        let Some((turn, text)) = self.message(1).await? else {
            return Err(CliError::usage("nothing has been said yet"));
        };
        self.branch_off(turn).await?;
        self.talk
            .screen
            .side_line(&dim(&format!("{PROMPT}{}", clip(&text, SHOWN_CHARS))));
        self.send(&text).await
    }

    /// Has the next message stand in the place of an earlier one: the last, or the `count`th last.
    /// It is put before the person where it can be changed.
    pub(super) async fn rewind(&mut self, count: &str) -> Result<(), CliError> {
        let count = if count.is_empty() {
            Some(1)
        } else {
            count.parse().ok().filter(|count| *count > 0)
        };
        let count = count.ok_or_else(|| CliError::usage("/rewind takes a number from 1"))?;
        let Some((turn, text)) = self.message(count).await? else {
            return Err(CliError::usage(
                "this conversation does not have that many messages",
            ));
        };
        let screen = self.talk.screen;
        screen.note(&format!(
            "the next message stands in the place of “{}”; what was said is kept (/branches)",
            clip(&text, SHOWN_CHARS)
        ));
        self.fill = Some(text).filter(|_| self.editor.is_some());
        self.rewound = Some(turn);
        Ok(())
    }

    /// Goes on from where the person went back to, if they did.
    pub(super) async fn branch_if_rewound(&mut self) -> Result<(), CliError> {
        match self.rewound.take() {
            Some(turn) => self.branch_off(turn).await,
            None => Ok(()),
        }
    }

    /// Lists the alternatives at the last place that has some, or goes on with one of them.
    pub(super) async fn branches(&mut self, number: &str) -> Result<(), CliError> {
        let screen = self.talk.screen;
        let found = self
            .talk
            .store
            .alternatives(&self.talk.agent.key(&self.context))
            .await?;
        let Some(place) = found.into_iter().next_back() else {
            screen.note(
                "this conversation goes on in one way only; /retry and /rewind begin another",
            );
            return Ok(());
        };
        if number.is_empty() {
            return self.tell_alternatives(&place).await;
        }
        let wanted = number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let Some(wanted) = wanted.filter(|wanted| *wanted < place.conversations.len()) else {
            return Err(CliError::usage(format!(
                "there are {} of them",
                place.conversations.len()
            ))
            .or_try("/branches"));
        };
        if wanted == place.current {
            screen.note("you are there already");
            return Ok(());
        }
        let Some(id) = place.conversations.get(wanted) else {
            return Ok(());
        };
        let context = self
            .talk
            .agent
            .context(&store::key_of(&self.talk.user, *id))
            .await?;
        self.go_to(context).await;
        let vault = self.talk.desk.vault();
        self.answer = sessions::show_again(screen, &*self.talk.store, &self.context, vault).await?;
        Ok(())
    }

    async fn tell_alternatives(&self, place: &Alternatives) -> Result<(), CliError> {
        let screen = self.talk.screen;
        for (at, id) in place.conversations.iter().enumerate() {
            let (said, answered) = self.first_behind(place.seq, *id).await?;
            let mark = if at == place.current { '*' } else { ' ' };
            let answered = if answered.is_empty() {
                String::new()
            } else {
                format!(" → {answered}")
            };
            screen.side_line(&format!("{mark} {}  {said}{answered}", at + 1));
        }
        Ok(())
    }

    /// Returns what was said and answered in a conversation first behind a place.
    async fn first_behind(
        &self,
        seq: u64,
        id: ConversationId,
    ) -> Result<(String, String), CliError> {
        let events = self
            .talk
            .store
            .load(&store::key_of(&self.talk.user, id))
            .await?
            .events;
        let (mut said, mut answered) = (None, None);
        for Recorded { event, .. } in events.iter().filter(|recorded| recorded.seq > seq) {
            match &**event {
                Event::TurnStarted { message, .. } if said.is_none() => said = Some(message),
                Event::TurnFinished { end, .. } if answered.is_none() => {
                    answered = Some(&end.decision.text)
                }
                _ => {}
            }
        }
        let shown = |text: Option<&String>| {
            text.map(|text| clip(text, LISTED_CHARS))
                .unwrap_or_default()
        };
        Ok((shown(said), shown(answered)))
    }

    /// Returns the turn and the words of the `count`th last message.
    async fn message(&self, count: usize) -> Result<Option<(TurnId, String)>, CliError> {
        let events = self
            .talk
            .store
            .load(&self.talk.agent.key(&self.context))
            .await?
            .events;
        let mut messages = events
            .iter()
            .rev()
            .filter_map(|recorded| match &*recorded.event {
                Event::TurnStarted {
                    turn,
                    message,
                    call: None,
                    ..
                } => Some((*turn, message.clone())),
                _ => None,
            });
        Ok(messages.nth(count - 1))
    }

    async fn branch_off(&mut self, turn: TurnId) -> Result<(), CliError> {
        let key = self.talk.agent.key(&self.context);
        let branch = self
            .talk
            .agent
            .branch(&key, Some(turn), None)
            .await
            .map_err(|error| match error {
                BranchError::Store(error) => CliError::from(error),
                other => CliError::failed(other.to_string()),
            })?;
        if !self.context.pending.is_empty() {
            self.talk
                .screen
                .note("what was waiting for an answer still waits: adjutant pending list");
        }
        self.go_to(branch.context).await;
        Ok(())
    }

    /// Leaves this conversation for another.
    pub(super) async fn go_to(&mut self, context: RunContext) {
        self.ended().await;
        self.context = context;
        self.rewound = None;
        // What was answered there is not what was answered here.
        self.answer = None;
    }
}
