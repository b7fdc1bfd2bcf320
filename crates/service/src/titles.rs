//! Generation of conversation titles by the model, in the background after an answer was given.

use adjutant_core::{AgentResponse, ConversationKey};

use crate::state::Shared;

/// Starts generating a title after a turn that ended with an answer; [`Agent::generate_title`] asks the
/// model only if it is time. A failure is reported and has no other effect.
///
/// [`Agent::generate_title`]: adjutant_runtime::Agent::generate_title
pub(crate) fn generate(app: &Shared, key: &ConversationKey, response: &AgentResponse) {
    let is_answered = response.error.is_none() && response.decision.pending.is_empty();
    // A shutdown waits for tasks like this one, so none is started then.
    if !app.model_titles || !is_answered || app.stopping.is_cancelled() {
        return;
    }
    let (app, key) = (app.clone(), key.clone());
    app.turns.clone().spawn(async move {
        if let Err(error) = app.agent.generate_title(&key).await {
            app.report(&error);
        }
    });
}
