//! A pending call with edited arguments, as it would be shown for confirmation.

use adjutant_core::port::StoreError;
use adjutant_core::{
    Arguments, CancellationToken, ClientTools, ConversationKey, GateCheck, IdempotencyKey,
    PendingCall, ProgressListener, ToolCall, ToolChoice, ToolContext,
};

use crate::Agent;
use crate::inner::Inner;

/// The reason why a pending call cannot be shown with edited arguments.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// No call that can be edited is pending under this digest: it was answered, it has expired, or
    /// it never was.
    #[error("no call is pending that could be edited")]
    NotPending,
    /// The arguments cannot be used; the reason is written for the user.
    #[error("{0}")]
    Unusable(String),
    /// The conversation could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Agent {
    /// Returns a pending call with edited arguments: its new preview, and the digest with which
    /// [`Answer::as_shown`] proves that the user has seen it. Nothing is executed or recorded.
    ///
    /// # Errors
    /// - [`EditError::NotPending`]: no call that can be edited is pending under `digest`.
    /// - [`EditError::Unusable`]: the tool does not accept these arguments.
    /// - [`EditError::Store`]: the conversation cannot be read.
    ///
    /// [`Answer::as_shown`]: adjutant_core::Answer::as_shown
    pub async fn preview_edited_call(
        &self,
        key: &ConversationKey,
        digest: &str,
        arguments: Arguments,
    ) -> Result<PendingCall, EditError> {
        let inner = self.inner();
        let Some(state) = inner.current(key).await? else {
            return Err(EditError::NotPending);
        };
        let conversation = state.conversation();
        let now = inner.now();
        let is_editable = |call: &&PendingCall| {
            call.digest == digest && call.doubt.is_none() && !call.has_expired(now)
        };
        let (Some(call), Some(turn)) = (
            conversation.pending().iter().find(is_editable),
            conversation.current(),
        ) else {
            return Err(EditError::NotPending);
        };
        let context = ToolContext {
            agent: key.agent.clone(),
            user: key.user.clone(),
            conversation: key.conversation,
            turn: turn.id(),
            call: call.call_id.clone(),
            message: turn.message().into(),
            // The person edits it.
            from_others: false,
            key: IdempotencyKey::for_call(key.conversation, turn.id(), &call.call_id),
            cancelled: CancellationToken::new(),
            trace: None,
            progress: ProgressListener::default(),
        };
        preview_edited_call(inner, &context, call, arguments, &turn.interrupted())
            .await
            .map_err(EditError::Unusable)
    }
}

/// Passes edited arguments through the same gate as those of a model. The call keeps its expiry.
///
/// # Errors
/// The reason why the arguments cannot be used, for the user.
pub(crate) async fn preview_edited_call(
    inner: &Inner,
    context: &ToolContext,
    call: &PendingCall,
    arguments: Arguments,
    interrupted: &[(String, Arguments)],
) -> Result<PendingCall, String> {
    let asked = ToolCall {
        id: call.call_id.clone(),
        ..ToolCall::from_object(0, None, call.tool.clone(), arguments)
    };
    let check = GateCheck {
        now: inner.now(),
        confirmation_expiry: inner.limits.confirmation_expiry,
        // The user wrote the arguments, so earlier denials and text of others do not apply.
        denied: &[],
        interrupted,
        provenance: None,
        allowed_tools: None,
        // Client-side tools await a result, not a confirmation.
        client: &ClientTools::default(),
        choice: &ToolChoice::Auto,
    };
    let question = inner.gate.question(context, &asked, &check).await?;
    Ok(PendingCall {
        expires_at: call.expires_at,
        for_conversation: call.for_conversation,
        always: call.always,
        ..question
    })
}
