//! `/retry`, `/rewind` and `/branches`: branches of a conversation from an earlier message, and
//! switching between them.

use adjutant_core::port::Alternatives;
use adjutant_core::{ConversationId, Event, Recorded, TurnId};
use adjutant_runtime::{BranchError, RunContext};

use super::Chat;
use super::editor::PROMPT;
use crate::error::CliError;
use crate::store;
use crate::terminal::display::clip;
use crate::terminal::screen::dim;

/// Characters of a message shown when it is repeated or replaced.
const SHOWN_CHARS: usize = 160;
/// Characters of each message in a list of branches.
const LISTED_CHARS: usize = 60;

impl Chat<'_> {
    /// Answers the last message again, in a new branch.
    pub(super) async fn retry(&mut self) -> Result<(), CliError> {
        let Some((turn, text)) = self.message(1).await? else {
            return Err(CliError::usage("nothing has been said yet"));
        };
        self.branch_off(turn).await?;
        self.session
            .screen
            .side_line(&dim(&format!("{PROMPT}{}", clip(&text, SHOWN_CHARS))));
        self.run_message(&text).await
    }

    /// Makes the next message replace an earlier one: the last, or the `count`th last. The earlier
    /// text is put at the prompt for editing.
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
        let screen = self.session.screen;
        screen.note(&format!(
            "the next message replaces “{}”; the earlier version is kept (/branches)",
            clip(&text, SHOWN_CHARS)
        ));
        self.fill = Some(text).filter(|_| self.editor.is_some());
        self.rewound = Some(turn);
        Ok(())
    }

    /// Creates the branch that `/rewind` prepared, if there is one.
    pub(super) async fn branch_if_rewound(&mut self) -> Result<(), CliError> {
        match self.rewound.take() {
            Some(turn) => self.branch_off(turn).await,
            None => Ok(()),
        }
    }

    /// Lists the branches at the last place that has several, or switches to the branch with this
    /// number.
    pub(super) async fn branches(&mut self, number: &str) -> Result<(), CliError> {
        let screen = self.session.screen;
        let found = self
            .session
            .store
            .alternatives(&self.session.agent.key(&self.context))
            .await?;
        // The last one is nearest to what the user sees.
        let Some(place) = found.into_iter().next_back() else {
            screen.note(
                "this conversation goes on in one way only; /retry and /rewind begin another",
            );
            return Ok(());
        };
        if number.is_empty() {
            return self.print_alternatives(&place).await;
        }
        let wanted = number.parse::<usize>().ok().and_then(|number| {
            let at = number.checked_sub(1)?;
            Some((at, *place.conversations.get(at)?))
        });
        let Some((at, id)) = wanted else {
            return Err(CliError::usage(format!(
                "there are {} of them",
                place.conversations.len()
            ))
            .or_try("/branches"));
        };
        if at == place.current {
            screen.note("you are there already");
            return Ok(());
        }
        let key = store::key_of(&self.session.user, id);
        let context = self.session.agent.context(&key).await?;
        self.go_to(context).await;
        self.answer = self.session.print_resumed(&self.context).await?;
        Ok(())
    }

    async fn print_alternatives(&self, place: &Alternatives) -> Result<(), CliError> {
        let screen = self.session.screen;
        for (at, id) in place.conversations.iter().enumerate() {
            let (message, answered) = self.first_behind(place.seq, *id).await?;
            let mark = if at == place.current { '*' } else { ' ' };
            let arrow = if answered.is_empty() { "" } else { " → " };
            screen.side_line(&format!("{mark} {}  {message}{arrow}{answered}", at + 1));
        }
        Ok(())
    }

    /// Returns the first message and the first answer of a conversation after the event `seq`.
    async fn first_behind(
        &self,
        seq: u64,
        id: ConversationId,
    ) -> Result<(String, String), CliError> {
        let events = self
            .session
            .store
            .load(&store::key_of(&self.session.user, id))
            .await?
            .events;
        let (mut first, mut answered) = (None, None);
        for Recorded { event, .. } in events.iter().filter(|recorded| recorded.seq > seq) {
            match &**event {
                Event::TurnStarted { message, .. } if first.is_none() => first = Some(message),
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
        Ok((shown(first), shown(answered)))
    }

    /// Returns the turn and the text of the `count`th last message.
    async fn message(&self, count: usize) -> Result<Option<(TurnId, String)>, CliError> {
        let events = self
            .session
            .store
            .load(&self.session.agent.key(&self.context))
            .await?
            .events;
        let mut messages = events
            .iter()
            .rev()
            .filter_map(|recorded| match &*recorded.event {
                Event::TurnStarted {
                    turn,
                    message,
                    // A turn of a command has no message that could be repeated.
                    call: None,
                    ..
                } => Some((*turn, message.clone())),
                _ => None,
            });
        Ok(messages.nth(count - 1))
    }

    async fn branch_off(&mut self, turn: TurnId) -> Result<(), CliError> {
        let key = self.session.agent.key(&self.context);
        let branch = self
            .session
            .agent
            .branch(&key, Some(turn), None)
            .await
            .map_err(|error| match error {
                BranchError::Store(error) => CliError::from(error),
                other => CliError::failed(other.to_string()),
            })?;
        if !self.context.pending.is_empty() {
            self.session
                .screen
                .note("what was waiting for an answer still waits: adjutant pending list");
        }
        self.go_to(branch.context).await;
        Ok(())
    }

    /// Switches to another conversation and records the end of this one.
    pub(super) async fn go_to(&mut self, context: RunContext) {
        self.record_end().await;
        self.context = context;
        self.rewound = None;
        // The last answer belongs to the conversation that was left.
        self.answer = None;
    }
}
