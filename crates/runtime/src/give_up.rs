//! Ending a turn from outside, for whoever runs the agent.

use adjutant_core::turn::given_up;
use adjutant_core::{ConversationKey, Event, OutcomeCategory, TurnId, words};

use crate::heart::LEASE;
use crate::held::{Opened, open};
use crate::{Agent, RunError};

impl Agent {
    /// Ends the open turn of a conversation without taking it any further: what has not begun is
    /// not done, and what was said and done so far stays. For turns that cannot go on, of any user.
    /// `None`: no turn is open.
    ///
    /// # Errors
    /// [`RunError::Busy`] if somebody alive works on it; [`RunError::Store`].
    pub async fn drop_turn(&self, key: &ConversationKey) -> Result<Option<TurnId>, RunError> {
        let inner = self.inner().of(&key.user);
        if key.agent != inner.name {
            return Ok(None);
        }
        if !inner
            .journal
            .claim(key, &inner.worker, LEASE)
            .await?
            .is_held()
        {
            return Err(RunError::Busy);
        }
        let Some(Opened { held, mut log, .. }) = open(inner, key, None, None).await? else {
            return Ok(None);
        };
        held.run(async {
            let open = log.conversation().open_turn();
            if let Some(turn) = open {
                let recent = log.conversation().recent();
                let end = given_up(
                    recent,
                    turn,
                    OutcomeCategory::Cancelled,
                    words::DROPPED,
                    None,
                );
                log.append(
                    inner,
                    key,
                    vec![Event::TurnFinished {
                        turn,
                        input: None,
                        end,
                    }],
                )
                .await?;
            }
            Ok((open, log))
        })
        .await
    }
}
