//! A call that waits for a yes, with other arguments: the question that it is with them.

use adjutant_core::port::StoreError;
use adjutant_core::{
    Arguments, CancellationToken, ClientTools, ConversationKey, GateCheck, IdempotencyKey,
    PendingCall, ProgressListener, ToolCall, ToolChoice, ToolContext,
};

use crate::Agent;
use crate::inner::Inner;

impl Agent {
    /// Returns the question that a waiting call is with other arguments: what would be touched, and
    /// the digest with which [`Answer::as_shown`] says that the person has seen it. Nothing is done
    /// and nothing recorded. `None`: nothing that can be edited waits under `digest`.
    ///
    /// The inner error is the reason why the call cannot be made with these arguments, for the
    /// person.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// [`Answer::as_shown`]: adjutant_core::Answer::as_shown
    pub async fn question_with(
        &self,
        key: &ConversationKey,
        digest: &str,
        arguments: Arguments,
    ) -> Result<Option<Result<PendingCall, String>>, StoreError> {
        let inner = self.inner();
        let Some(known) = inner.current(key).await? else {
            return Ok(None);
        };
        let conversation = known.conversation();
        let now = inner.now();
        let is_meant = |call: &&PendingCall| {
            call.digest == digest && call.doubt.is_none() && !call.has_expired(now)
        };
        let (Some(call), Some(turn)) = (
            conversation.pending().iter().find(is_meant),
            conversation.current(),
        ) else {
            return Ok(None);
        };
        let context = ToolContext {
            agent: key.agent.clone(),
            user: key.user.clone(),
            conversation: key.conversation,
            turn: turn.id(),
            call: call.call_id.clone(),
            message: turn.message().into(),
            key: IdempotencyKey::of(key.conversation, turn.id(), &call.call_id),
            cancelled: CancellationToken::new(),
            trace: None,
            progress: ProgressListener::default(),
        };
        Ok(Some(
            question_with(inner, &context, call, arguments, &turn.interrupted()).await,
        ))
    }
}

/// Other arguments pass the same gate as those of the model. What waits is asked for as long as it
/// was.
///
/// # Errors
/// The reason why they cannot be used, in words for the person.
pub(crate) async fn question_with(
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
        // What the person writes is the person's: it is refused by nobody before, and wanted by no
        // other.
        denied: &[],
        interrupted,
        said_before_others: None,
        // The caller's own calls await a result, and no yes.
        client: &ClientTools::default(),
        choice: &ToolChoice::Auto,
    };
    let question = inner.gate.question(context, &asked, &check).await?;
    Ok(PendingCall {
        expires_at: call.expires_at,
        ..question
    })
}
