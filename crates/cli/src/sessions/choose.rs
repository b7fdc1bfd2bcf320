//! Which conversation `chat` and `ask` go on with.

use adjutant_core::{ConversationId, UserId};

use super::find;
use super::pick::{self, pick};
use crate::config::Settings;
use crate::error::CliError;
use crate::screen::Screen;
use crate::store;

/// What `-c` and `-r [ID]` ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TakeUp {
    /// A new conversation.
    New,
    /// The one with the newest message.
    Newest,
    /// The one with this id, or a part of it.
    Meant(String),
    /// One that the person picks.
    Picked,
}

/// Where a talk begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// In a new conversation.
    New,
    /// In the one with the newest message; in a new one, if there is none.
    Newest,
    /// In this one.
    In(ConversationId),
}

impl TakeUp {
    pub(crate) fn of(continues: bool, resume: Option<Option<String>>) -> Self {
        match resume {
            Some(Some(id)) => Self::Meant(id),
            Some(None) => Self::Picked,
            None if continues => Self::Newest,
            None => Self::New,
        }
    }

    /// Finds it, or has the person pick it. Before a model is looked for: a wrong id needs none.
    ///
    /// # Errors
    /// There is no, or more than one, such conversation; or one is to be picked, and nobody can or
    /// does.
    pub(crate) async fn start(
        self,
        settings: &Settings,
        screen: &Screen,
    ) -> Result<Start, CliError> {
        let user = UserId::local();
        match self {
            Self::New => Ok(Start::New),
            Self::Newest => Ok(Start::Newest),
            Self::Meant(id) => {
                let store = store::open(settings).await?;
                let found = find(&*store, &user, &id).await.map_err(|error| {
                    error.or_try("the word behind -r is read as an id; -c goes on with the newest")
                })?;
                Ok(Start::In(found.id))
            }
            Self::Picked if !screen.asks() => Err(CliError::usage(
                "-r without an id asks which conversation, and no one can be asked",
            )
            .or_try("adjutant sessions list, then -r ID")
            .or_try("-c    for the newest")),
            Self::Picked => {
                let store = store::open(settings).await?;
                let picked = if pick::can_move() {
                    pick(&*store, &user).await?
                } else {
                    pick::named(&*store, screen, &user).await?
                };
                match picked {
                    Some(picked) => Ok(Start::In(picked.id)),
                    None => Err(CliError::interrupted("no conversation was picked")),
                }
            }
        }
    }
}
