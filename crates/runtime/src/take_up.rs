//! Going on with what is open in one conversation, as events.

use adjutant_core::conversation::Conversation;

use crate::event::RunEvent;
use crate::run::advance;
use crate::stream::RunStream;
use crate::sweep::response;
use crate::{Agent, RunContext, RunError};

impl Agent {
    /// Goes on with what nobody works on in the conversation of a context: an open turn, and
    /// messages behind it that were accepted. [`Agent::sweep`] does the same for all conversations,
    /// unseen. [`RunContext::cancelled`] stops the turn that runs, as it stops any other. Whoever
    /// cares about the model that a turn began with looks at [`Event::TurnStarted`] first: here the
    /// agent's own goes on.
    ///
    /// The stream ends with [`RunError::CannotContinue`] if the conversation has had no turn.
    ///
    /// [`Event::TurnStarted`]: adjutant_core::Event::TurnStarted
    #[must_use]
    pub fn stream_open(&self, context: &RunContext) -> RunStream {
        let (inner, mut own) = (self.inner().of(&context.user).clone(), context.clone());
        RunStream::start(&context.cancelled, |emitter, cancelled| async move {
            let key = own.key(&inner.name);
            let read = |conversation: &Conversation| {
                let said = (
                    conversation.kept_messages().to_vec(),
                    conversation.pending().to_vec(),
                );
                response(&key, conversation).map(|response| (response, said))
            };
            let ended = advance(&inner, &key, None, (&emitter, &cancelled), read)
                .await?
                .flatten();
            let Some((response, (history, pending))) = ended else {
                return Err(RunError::CannotContinue(
                    "nothing is open in this conversation".to_owned(),
                ));
            };
            (own.history, own.pending) = (history, pending);
            emitter
                .emit(|| RunEvent::Finished(Box::new(response.clone())))
                .await;
            Ok((response, own))
        })
    }
}
