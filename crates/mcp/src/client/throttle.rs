//! A limit on a server's requests to its client: each is answered by a task of its own, and a flood
//! of them would fill the memory. The server is slowed down instead.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Most requests of a server in a second. Clients are asked for little: a ping, folders, an answer of a
/// person.
const REQUESTS_MAX: u32 = 50;
const SECOND: Duration = Duration::from_secs(1);

/// The requests of a server in the present second.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<Option<(Instant, u32)>>);

impl Throttle {
    /// Waits if a message is a request, and the server has sent too many in this second.
    pub(super) async fn admit(&self, message: &[u8]) {
        if !is_request(message) {
            return;
        }
        // Held while waiting, so that all streams of a server wait in line.
        let mut second = self.0.lock().await;
        let now = Instant::now();
        *second = match *second {
            Some((began, count)) if now - began < SECOND && count < REQUESTS_MAX => {
                Some((began, count + 1))
            }
            Some((began, _)) if now - began < SECOND => {
                tokio::time::sleep_until(began + SECOND).await;
                Some((Instant::now(), 1))
            }
            Some(_) | None => Some((now, 1)),
        };
    }
}

/// Returns true for a JSON-RPC request: it has a method and an id.
fn is_request(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        method: Option<IgnoredAny>,
        id: Option<IgnoredAny>,
    }
    let method = b"\"method\"";
    // Most messages are results, which may be long, and are not parsed twice.
    message.windows(method.len()).any(|window| window == method)
        && serde_json::from_slice::<Kind>(message)
            .is_ok_and(|kind| kind.method.is_some() && kind.id.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_limit_wait_and_other_messages_do_not() {
        let throttle = Throttle::default();
        let began = Instant::now();
        let request = br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
        let notification = br#"{"jsonrpc": "2.0", "method": "notifications/progress"}"#;
        let result = br#"{"jsonrpc": "2.0", "id": 1, "result": {"method": "x"}}"#;
        for _ in 0..1_000 {
            throttle.admit(notification).await;
            throttle.admit(result).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..REQUESTS_MAX * 4 {
            throttle.admit(request).await;
        }
        assert_eq!(began.elapsed(), SECOND * 3);
    }
}
