//! Titles of conversations by the model: found after an answer was given, so that nobody waits for
//! them.

use adjutant_core::{AgentResponse, ConversationKey};

use crate::state::Shared;

/// Has the model find a title, if a turn ended with an answer and nobody has named its
/// conversation. What fails changes nothing.
pub(crate) fn find(app: &Shared, key: &ConversationKey, response: &AgentResponse) {
    let is_answered = response.error.is_none() && response.decision.pending.is_empty();
    if !app.model_titles || !is_answered || app.stopping.is_cancelled() {
        return;
    }
    let (app, key) = (app.clone(), key.clone());
    app.turns.clone().spawn(async move {
        if let Err(error) = app.agent.name_it(&key).await {
            app.tell(error);
        }
    });
}
