//! The conversation that `-c` and `-r` choose for `chat` and `ask`.

use adjutant_core::{ConversationId, UserId};

use super::find;
use super::pick::{self, pick};
use crate::config::Settings;
use crate::error::CliError;
use crate::store;
use crate::terminal::screen::Screen;
use crate::terminal::tty::obeys_escapes;

/// The choice made by `-c` and `-r [ID]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resume {
    /// A new conversation.
    New,
    /// The one with the newest message.
    Newest,
    /// The one whose id begins or ends so.
    Id(String),
    /// One that the user picks from a list.
    Pick,
}

/// The conversation in which a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// A new conversation.
    New,
    /// The one with the newest message; a new one, if there is none.
    Newest,
    /// This conversation.
    In(ConversationId),
}

impl Resume {
    pub(crate) fn from_options(continues: bool, resume: Option<Option<String>>) -> Self {
        match resume {
            Some(Some(id)) => Self::Id(id),
            Some(None) => Self::Pick,
            None if continues => Self::Newest,
            None => Self::New,
        }
    }

    /// Resolves the choice, asking the user if needed. Called before a model is loaded, because a
    /// wrong id should fail fast.
    ///
    /// # Errors
    /// There is no such conversation or several, or one is to be picked and the user cannot be
    /// asked or cancels.
    pub(crate) async fn resolve(
        self,
        settings: &Settings,
        screen: &Screen,
    ) -> Result<Start, CliError> {
        let user = UserId::local();
        match self {
            Self::New => Ok(Start::New),
            Self::Newest => Ok(Start::Newest),
            Self::Id(id) => {
                let store = store::open(settings).await?;
                let found = find(&*store, &user, &id).await.map_err(|error| {
                    error.or_try("the word behind -r is read as an id; -c goes on with the newest")
                })?;
                Ok(Start::In(found.id))
            }
            Self::Pick if !screen.asks() => Err(CliError::usage(
                "-r without an id asks which conversation, and this is not a terminal",
            )
            .or_try("adjutant sessions list, then -r ID")
            .or_try("-c    for the newest")),
            Self::Pick => {
                let store = store::open(settings).await?;
                // A terminal without escape sequences cannot redraw a list, so the id is typed
                // there.
                let picked = if obeys_escapes() {
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
