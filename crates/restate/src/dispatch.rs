use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjutant_core::{BoxFuture, ConversationKey};
use adjutant_runtime::{Dispatch, DispatchCall, NotDispatched, Sent};
use hyper::StatusCode;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;
use tokio::sync::Notify;
use url::Url;

use crate::client::{Answer, Client, answer};
use crate::object::{ADVANCE, CONVERSATION, REPLY_TO, object_key};

/// Restate takes a call in milliseconds; one that takes longer than this is not taken.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// Asks Restate's ingress.
pub(crate) struct Ingress {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) standing: Arc<Standing>,
}

/// The standing of this process with Restate. `admin=none`: nobody looks.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Told when Restate does not know us.
    pub(crate) unknown: Notify,
    /// That it calls us, when somebody last looked.
    pub(crate) is_registered: AtomicBool,
    pub(crate) is_watched: bool,
}

impl Ingress {
    async fn post(
        &self,
        key: &ConversationKey,
        way: &[&str],
        name: &str,
        reply_to: Option<&str>,
    ) -> Result<Answer, NotDispatched> {
        let url = path(key, way).and_then(|path| self.url.join(&path).ok());
        let url = url.ok_or_else(|| NotDispatched("its name is no address".to_owned()))?;
        let mut request = self
            .client
            .request(Method::POST, url)
            .header("idempotency-key", name);
        if let Some(name) = reply_to {
            request = request.header(REPLY_TO, name);
        }
        let answer = answer(request).await.map_err(NotDispatched)?;
        if answer.status == StatusCode::NOT_FOUND {
            self.standing.unknown.notify_one();
        }
        if answer.status.is_success() {
            Ok(answer)
        } else {
            Err(NotDispatched(format!("Restate answered {}", answer.status)))
        }
    }
}

impl Dispatch for Ingress {
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), NotDispatched>> {
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

    fn send<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Sent, NotDispatched>> {
        Box::pin(async move {
            // At most one call a minute for each conversation, however many processes ask; a later
            // minute may ask again.
            let name = format!("again-{}", now().as_second() / 60);
            let answer = tokio::time::timeout(
                TAKEN_WITHIN,
                self.post(key, &[ADVANCE, "send"], &name, None),
            )
            .await;
            let answer =
                answer.map_err(|_| NotDispatched("Restate did not answer".to_owned()))??;
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            Ok(if body["status"] == "PreviouslyAccepted" {
                Sent::Before
            } else {
                Sent::Now
            })
        })
    }

    fn is_registered(&self) -> Option<bool> {
        self.standing
            .is_watched
            .then(|| self.standing.is_registered.load(Ordering::Relaxed))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "names a minute for other processes; nothing is decided by it"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The path of a conversation's handler, escaped.
fn path(key: &ConversationKey, way: &[&str]) -> Option<String> {
    let mut url = Url::parse("http://ingress/").ok()?;
    url.path_segments_mut()
        .ok()?
        .clear()
        .push(CONVERSATION)
        .push(&object_key(key))
        .extend(way);
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
