//! Dispatch through Restate's ingress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjutant_core::{BoxFuture, ConversationKey};
use adjutant_runtime::{Dispatch, DispatchCall, DispatchError, SendResult};
use hyper::StatusCode;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;
use tokio::sync::Notify;
use url::Url;

use crate::client::{Answer, Client, answer};
use crate::object::{ADVANCE, CONVERSATION, REPLY_TO, object_key};

/// Timeout of sending a call; Restate accepts one in milliseconds.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(1);

/// A [`Dispatch`] that calls the object `Conversation` through Restate's ingress.
pub(crate) struct Ingress {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) state: Arc<RegistrationState>,
}

/// The registration state of this process, shared by the dispatch and the registration task.
#[derive(Debug, Default)]
pub(crate) struct RegistrationState {
    /// Notified when Restate answers that it does not know the object.
    pub(crate) unknown: Notify,
    /// True if Restate called this worker at the last check.
    pub(crate) is_registered: AtomicBool,
    /// True if a registration task checks. `false`: `admin=none`.
    pub(crate) is_watched: bool,
}

impl Ingress {
    async fn post(
        &self,
        key: &ConversationKey,
        handler: &[&str],
        idempotency_key: &str,
        reply_to: Option<&str>,
    ) -> Result<Answer, DispatchError> {
        let url = path(key, handler).and_then(|path| self.url.join(&path).ok());
        let url = url.ok_or_else(|| DispatchError("its name is no address".to_owned()))?;
        let mut request = self
            .client
            .request(Method::POST, url)
            .header("idempotency-key", idempotency_key);
        if let Some(name) = reply_to {
            request = request.header(REPLY_TO, name);
        }
        let answer = answer(request).await.map_err(DispatchError)?;
        if answer.status == StatusCode::NOT_FOUND {
            self.state.unknown.notify_one();
        }
        if answer.status.is_success() {
            Ok(answer)
        } else {
            Err(DispatchError(format!("Restate answered {}", answer.status)))
        }
    }
}

impl Dispatch for Ingress {
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), DispatchError>> {
        let DispatchCall {
            key,
            input,
            reply_to,
            ..
        } = call;
        Box::pin(async move {
            self.post(key, &[ADVANCE], input.as_str(), reply_to)
                .await
                .map(drop)
        })
    }

    fn send<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<SendResult, DispatchError>> {
        Box::pin(async move {
            // At most one call per minute and conversation, however many processes send one.
            let name = format!("again-{}", now().as_second() / 60);
            let answer = tokio::time::timeout(
                ACCEPTED_WITHIN,
                self.post(key, &[ADVANCE, "send"], &name, None),
            )
            .await;
            let answer =
                answer.map_err(|_elapsed| DispatchError("Restate did not answer".to_owned()))??;
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            Ok(if body["status"] == "PreviouslyAccepted" {
                SendResult::Duplicate
            } else {
                SendResult::Accepted
            })
        })
    }

    fn is_registered(&self) -> Option<bool> {
        self.state
            .is_watched
            .then(|| self.state.is_registered.load(Ordering::Relaxed))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "names a minute for other processes; nothing is decided by it"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the escaped path of a conversation's handler.
fn path(key: &ConversationKey, handler: &[&str]) -> Option<String> {
    let mut url = Url::parse("http://ingress/").ok()?;
    url.path_segments_mut()
        .ok()?
        .clear()
        .push(CONVERSATION)
        .push(&object_key(key))
        .extend(handler);
    Some(url.path().to_owned())
}

#[cfg(test)]
mod tests {
    use adjutant_core::{AgentName, ConversationId, UserId};

    use super::*;

    #[test]
    fn users_of_any_name_have_a_path() {
        let conversation: ConversationId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        let key = ConversationKey {
            agent: AgentName::adjutant(),
            user: UserId::new("a/b c%d?é").unwrap(),
            conversation,
        };
        assert_eq!(
            path(&key, &["advance", "send"]).unwrap(),
            "/Conversation/2:00000000-0000-7000-8000-000000000001:adjutant:a%2Fb%20c%25d%3F%C3%A9/advance/send"
        );
    }
}
