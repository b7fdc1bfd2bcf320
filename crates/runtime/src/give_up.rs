//! Ending a turn from outside, for whoever runs the agent.

use adjutant_core::turn::given_up;
use adjutant_core::{ConversationKey, Event, OutcomeCategory, TurnId, conversation, words};

use crate::run::LEASE;
use crate::steps::Log;
use crate::{Agent, RunError};

impl Agent {
    /// Ends the open turn of a conversation without taking it any further: what has not begun is not done, and what was
    /// said and done so far stays. For turns that cannot go on, of any user. `None`: no turn is open.
    ///
    /// # Errors
    /// [`RunError::Busy`] if somebody alive works on it; [`RunError::Store`].
    pub async fn drop_turn(&self, key: &ConversationKey) -> Result<Option<TurnId>, RunError> {
        let inner = self.inner();
        if key.agent != inner.name {
            return Ok(None);
        }
        if !inner.journal.claim(key, &inner.worker, LEASE).await?.is_held() {
            return Err(RunError::Busy);
        }
        let ended = async {
            let loaded = inner.journal.load(key).await?;
            let Some(turn) = conversation::open_turn(&loaded.events) else { return Ok(None) };
            let end = given_up(&loaded.events, turn, OutcomeCategory::Cancelled, words::DROPPED, None);
            let mut log = Log { events: loaded.events, inbox: loaded.inbox };
            log.append(inner, key, vec![Event::TurnFinished { turn, input: None, end }]).await?;
            Ok(Some(turn))
        }
        .await;
        // Best effort: an unreleased claim runs out by itself.
        let _ = inner.journal.release(key, &inner.worker).await;
        ended
    }
}
