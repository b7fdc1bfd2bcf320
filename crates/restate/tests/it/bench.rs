//! Two servers, a world and a worker between them.

use std::time::Duration;

use adjutant_core::port::{Journal as _, Loaded};
use adjutant_core::{AgentName, ConversationId, ConversationKey, UserId};
use adjutant_restate::Worker as Called;
use adjutant_runtime::Agent;
use adjutant_store::postgres::Store;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::restate::{Restate, free_port};
use crate::server::Server;
use crate::tools::World;
use crate::worker::{Setup, Worker, agent};

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(20);

/// Time after which an expected event is considered missing.
pub(crate) const NEVER: Duration = Duration::from_secs(300);

pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) restate: Restate,
    pub(crate) setup: Setup,
    /// Accepts inputs and leaves the work to Restate; did it do some itself, that would be seen in
    /// [`Bench::elsewhere`].
    pub(crate) front: Agent,
    pub(crate) elsewhere: World,
    store: Store,
    _server: Server,
}

impl Bench {
    /// With a worker that Restate knows, but that does not run.
    pub(crate) async fn new(confirmation_expiry: Duration) -> Self {
        Self::of(Restate::start(), "", confirmation_expiry).await
    }

    /// The same with this Restate, of which the address says more.
    pub(crate) async fn of(restate: Restate, more: &str, confirmation_expiry: Duration) -> Self {
        let server = Server::start().expect("these tests need PostgreSQL");
        let (world, elsewhere) = (World::new().await, World::new().await);
        let setup = Setup {
            name: "replica".to_owned(),
            database: server.create_database("restate").await,
            restate: restate.address(free_port()) + more,
            world: world.address,
            service: None,
            confirmation_expiry,
            lease_ms: None,
        };
        let store = Store::connect(&setup.database, 2).await.unwrap();
        let front = Setup {
            name: "front".to_owned(),
            world: elsewhere.address,
            ..setup.clone()
        };
        let front = agent(&front).await;
        let asking = Called::bind(restate.address(0).parse().unwrap())
            .await
            .unwrap();
        let front = front.with_dispatch(asking.dispatch());
        let bench = Self {
            world,
            restate,
            setup,
            front,
            elsewhere,
            store,
            _server: server,
        };
        let _worker = bench.start(None);
        bench.restate.wait_for_worker();
        bench
    }

    pub(crate) fn start(&self, kill_at: Option<u32>) -> Worker {
        Worker::start(&self.setup, kill_at)
    }

    pub(crate) async fn load(&self, conversation: ConversationId, user: &UserId) -> Loaded {
        self.store
            .load(&ConversationKey {
                agent: AgentName::new("worker").unwrap(),
                user: user.clone(),
                conversation,
            })
            .await
            .unwrap()
    }

    /// Waits until the conversation looks like that, which it does in a second or never.
    pub(crate) async fn until(
        &self,
        conversation: ConversationId,
        user: &UserId,
        is_so: impl Fn(&Loaded) -> bool,
    ) -> Loaded {
        let looking = async {
            loop {
                let loaded = self.load(conversation, user).await;
                if is_so(&loaded) {
                    return loaded;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(NEVER, looking)
            .await
            .expect("it stayed as it was")
    }
}

/// One request, such as `POST /v1/chat`; status and body, status 0 if the connection broke.
pub(crate) async fn http(authority: &str, what: &str, headers: &str, body: &str) -> (u16, Value) {
    let request = format!(
        "{what} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut answer = Vec::new();
    let exchange = async {
        let mut connection = TcpStream::connect(authority).await?;
        connection.write_all(request.as_bytes()).await?;
        connection.read_to_end(&mut answer).await
    };
    if exchange.await.is_err() {
        return (0, Value::Null);
    }
    let answer = String::from_utf8(answer).unwrap();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return (0, Value::Null);
    };
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}
