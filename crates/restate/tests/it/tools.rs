//! Tools whose work is done in the process of the test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use adjutant_core::ConversationId;
use adjutant_durability::Called;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// In the test: where the work is done, and logged before it is answered.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Called>>>,
    /// As many calls as it has permits are answered.
    pub(crate) answers: Arc<Semaphore>,
    /// Gets a permit for each call that arrives.
    pub(crate) arrivals: Arc<Semaphore>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (answers, arrivals) = (
            Arc::new(Semaphore::new(Semaphore::MAX_PERMITS / 2)),
            Arc::new(Semaphore::new(0)),
        );
        let world = Self {
            address,
            log: log.clone(),
            answers: answers.clone(),
            arrivals: arrivals.clone(),
        };
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (log, answers, arrivals) = (log.clone(), answers.clone(), arrivals.clone());
                tokio::spawn(async move {
                    let mut connection = BufReader::new(connection);
                    let mut line = String::new();
                    // Whoever calls may be killed at any time.
                    let Ok(1..) = connection.read_line(&mut line).await else {
                        return;
                    };
                    let Ok(called) = serde_json::from_str(&line) else {
                        return;
                    };
                    log.lock().unwrap().push(called);
                    arrivals.add_permits(1);
                    answers.acquire().await.unwrap().forget();
                    let _ = connection.write_all(b"\"done\"\n").await;
                });
            }
        });
        world
    }

    /// Returns the calls that arrived from a conversation.
    pub(crate) fn seen(&self, conversation: ConversationId) -> Vec<Called> {
        let log = self.log.lock().unwrap();
        log.iter()
            .filter(|called| called.conversation == conversation)
            .cloned()
            .collect()
    }

    /// From now on calls are logged and not answered.
    pub(crate) fn hold(&self) {
        self.answers.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// From now on calls are answered again.
    pub(crate) fn release(&self) {
        self.answers.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}
