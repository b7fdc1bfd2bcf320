//! [`Agent::drop_turn`]: ends a stuck turn on behalf of an operator.

use adjutant_core::turn::given_up;
use adjutant_core::{ConversationKey, OutcomeCategory, TurnId, words};

use crate::heartbeat::LEASE;
use crate::lease::{OpenConversation, acquire};
use crate::{Agent, RunError};

impl Agent {
    /// Ends the open turn of a conversation without running it any further, for turns that cannot
    /// continue. Calls that have not started are not executed; what was said and done so far stays.
    /// `None`: no turn is open.
    ///
    /// # Errors
    /// [`RunError::Busy`] if a live worker has the conversation; [`RunError::Store`].
    pub async fn drop_turn(&self, key: &ConversationKey) -> Result<Option<TurnId>, RunError> {
        let inner = self.inner().for_user(&key.user);
        if key.agent != inner.name {
            return Ok(None);
        }
        // `acquire` would wait for a live worker; an operator gets an error instead.
        let claim = inner.journal.claim(key, &inner.worker, LEASE).await?;
        if !claim.is_held() {
            return Err(RunError::Busy);
        }
        let Some(OpenConversation {
            leased, mut log, ..
        }) = acquire(inner, key, None, None).await?
        else {
            return Ok(None);
        };
        leased
            .run(async {
                let open = log.conversation().open_turn();
                if let Some(turn) = open {
                    let (recent, outcome) =
                        (log.conversation().recent(), OutcomeCategory::Cancelled);
                    let end = given_up(recent, turn, outcome, words::DROPPED, None);
                    log.append_turn_end(inner, key, turn, end).await?;
                }
                Ok((open, log))
            })
            .await
    }
}
