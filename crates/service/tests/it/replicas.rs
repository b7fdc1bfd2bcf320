//! Two services over one PostgreSQL: a run that goes on in one of them, asked for at the other.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use adjutant_core::port::{DeltaStream, TokenGrant, TokenStore as _};
use adjutant_core::{
    BoxFuture, CancellationToken, Capabilities, Content, Counters, Delta, FinishReason,
    GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId, Part, Usage, UserId,
};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig, new_token};
use adjutant_store::postgres::Store;
use adjutant_store::worker_id;
use futures::stream;
use serde_json::{Value, json};
use sqlx::postgres::{PgConnection, PgListener};
use sqlx::{Connection as _, Row as _};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::runs::{Frame, Listening};
use crate::server::Server;

/// A model that says what the test says, when it says it.
struct Dictated {
    id: ModelId,
    capabilities: Capabilities,
    answers: Mutex<VecDeque<mpsc::UnboundedReceiver<String>>>,
}

/// The model of one answer: its pieces as they are sent, and its end when the sender is dropped.
fn dictated() -> (Dictated, mpsc::UnboundedSender<String>) {
    let (sender, pieces) = mpsc::unbounded_channel();
    let id = ModelId::new("scripted", "dictated").unwrap();
    let answers = Mutex::new(VecDeque::from([pieces]));
    let capabilities = ScriptedModel::new([]).capabilities().clone();
    (
        Dictated {
            id,
            capabilities,
            answers,
        },
        sender,
    )
}

impl LanguageModel for Dictated {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        _request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        panic!("a turn reads the stream")
    }

    fn stream<'a>(
        &'a self,
        _request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        let pieces = self.answers.lock().unwrap().pop_front().unwrap();
        let model = self.id.clone();
        let deltas = stream::unfold(Some((pieces, String::new())), move |state| {
            let model = model.clone();
            async move {
                let (mut pieces, mut said) = state?;
                match pieces.recv().await {
                    Some(piece) => {
                        said += &piece;
                        Some((Ok(Delta::Text(piece)), Some((pieces, said))))
                    }
                    None => {
                        let reply = GenerateResponse {
                            parts: vec![Part::ours(Content::Text { text: said })],
                            finish: FinishReason::Stop,
                            usage: Usage::default(),
                            counters: Counters::default(),
                            cost: None,
                            model,
                            losses: Vec::new(),
                            certainty: None,
                        };
                        Some((Ok(Delta::Finished(reply)), None))
                    }
                }
            }
        });
        Box::pin(async move { Ok(Box::pin(deltas) as DeltaStream) })
    }
}

/// A service with a runtime of its own, so that it can go as a process goes that is killed.
struct Replica {
    runtime: Option<Runtime>,
    address: SocketAddr,
    store: Arc<Store>,
}

impl Replica {
    async fn start(url: &str, model: Dictated) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let url = url.to_owned();
        let started = runtime.spawn(async move {
            let store = Arc::new(Store::connect(&url, 4).await.unwrap());
            let agent = Agent::builder("adjutant")
                .instruction("Be brief.")
                .journal(store.clone(), worker_id())
                .model(model)
                .build()
                .unwrap();
            let config =
                ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::Token(store.clone()));
            let service = Service::bind(agent, config).await.unwrap();
            let address = service.address();
            tokio::spawn(service.run(CancellationToken::new()));
            (address, store)
        });
        let (address, store) = started.await.unwrap();
        Self {
            runtime: Some(runtime),
            address,
            store,
        }
    }

    async fn token(&self, user: &str) -> String {
        let token = new_token().unwrap();
        let (store, user) = (self.store.clone(), UserId::new(user).unwrap());
        let digest = token.digest;
        let made = async move {
            store
                .create_token(&TokenGrant::token(user, "test"), &digest)
                .await
                .unwrap()
        };
        self.runtime.as_ref().unwrap().spawn(made).await.unwrap();
        format!("Bearer {}", token.secret)
    }

    async fn post(&self, token: &str, body: &Value) -> Listening {
        let headers = [
            ("Authorization", token),
            ("Accept", "text/event-stream"),
            ("Content-Type", "application/json"),
        ];
        Listening::start(self.address, "POST /v1/runs", &headers, &body.to_string()).await
    }

    async fn join(&self, token: &str, run: &str, last: Option<&str>) -> Listening {
        let mut headers = vec![("Authorization", token)];
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        let path = format!("GET /v1/runs/{run}/events?thread_id=talk");
        Listening::start(self.address, &path, &headers, "").await
    }

    /// Goes without a word, as a killed process does.
    fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // A runtime must not wait inside of another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn body() -> Value {
    let message = json!({"id": "m1", "role": "user", "content": "hello"});
    json!({"threadId": "talk", "runId": "run", "messages": [message], "state": {}})
}

fn text(frames: &[Frame]) -> String {
    frames
        .iter()
        .filter(|frame| frame.event["type"] == "TEXT_MESSAGE_CONTENT")
        .map(delta)
        .collect()
}

fn delta(frame: &Frame) -> &str {
    frame.event["delta"].as_str().unwrap()
}

fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame.event["type"].as_str().unwrap())
        .collect()
}

/// Reads until this text was received.
async fn until(listening: &mut Listening, said: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    while text(&frames) != said {
        frames.push(listening.next().await.unwrap());
    }
    frames
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_on_another_replica_gets_earlier_and_later_events() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("joined").await;
    let (model, says) = dictated();
    let (a, b) = (
        Replica::start(&url, model).await,
        Replica::start(&url, dictated().0).await,
    );
    let (anna, bert) = (a.token("anna").await, a.token("bert").await);

    let mut at_a = a.post(&anna, &body()).await;
    says.send("One ".to_owned()).unwrap();
    let mut told = until(&mut at_a, "One ").await;

    let mut at_b = b.join(&anna, "run", None).await;
    assert_eq!(at_b.status, 200);
    let mut joined = until(&mut at_b, "One ").await;
    assert_eq!(
        joined, told,
        "what was said so far, as it was told there, with the same ids"
    );
    // Whose run it is not is told what is told of one that is not there.
    let (theirs, nothing) = (
        b.join(&bert, "run", None).await,
        b.join(&bert, "no-such-run", None).await,
    );
    assert_eq!((theirs.status, nothing.status), (404, 404));

    says.send("two ".to_owned()).unwrap();
    told.extend(until(&mut at_a, "two ").await);
    joined.extend(until(&mut at_b, "two ").await);
    // A connection that was lost, and one more tab that has nothing; a client that sends its
    // request again.
    let last = joined.last().unwrap().id.clone();
    let (mut again, tab) = (
        b.join(&anna, "run", Some(&last)).await,
        b.join(&anna, "run", None).await,
    );
    let sent_again = b.post(&anna, &body()).await;
    says.send("three.".to_owned()).unwrap();
    assert_eq!(
        until(&mut again, "three.").await.len(),
        1,
        "only what was said since"
    );
    drop(says);
    told.extend(at_a.all().await);
    joined.extend(at_b.all().await);
    assert_eq!(text(&told), "One two three.");
    assert_eq!(kinds(&told).last(), Some(&"RUN_FINISHED"));
    assert_eq!(
        (&joined, &tab.all().await, &sent_again.all().await),
        (&told, &told, &told)
    );

    // What it came to is the same at both.
    let messages = async |replica: &Replica| {
        let headers = [("Authorization", anna.as_str())];
        let path = "GET /v1/threads/talk/messages";
        Listening::start(replica.address, path, &headers, "")
            .await
            .rest()
            .await
    };
    let said = messages(&a).await;
    assert!(said.contains("One two three."), "{said}");
    assert_eq!(messages(&b).await, said);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_exchange_messages_only_for_subscribed_runs() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("silent").await;
    let (model, says) = dictated();
    let (a, b) = (
        Replica::start(&url, model).await,
        Replica::start(&url, dictated().0).await,
    );
    let anna = a.token("anna").await;
    let mut asked = PgListener::connect(&url).await.unwrap();
    asked.listen("adjutant_relay_1").await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    // What each connection was last asked.
    let mut relayed = async || {
        let found = sqlx::query(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_notify(''adjutant_relay%'",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        found.get::<i64, _>(0)
    };

    let mut at_a = a.post(&anna, &body()).await;
    for piece in ["One ", "two "] {
        says.send(piece.to_owned()).unwrap();
        until(&mut at_a, piece).await;
    }
    assert_eq!(relayed().await, 0);
    assert!(asked.next_buffered().is_none());
    // It is looked at the right place: somebody who asks is seen there.
    let mut at_b = b.join(&anna, "run", None).await;
    until(&mut at_b, "One two ").await;
    let ask = asked.recv().await.unwrap();
    assert!(
        ask.payload().contains("\"user\":\"anna\""),
        "{}",
        ask.payload()
    );
    assert_eq!(relayed().await, 2, "who asks, and who answers");
    drop(says);
    assert_eq!(kinds(&at_b.all().await).last(), Some(&"RUN_FINISHED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_arrives_byte_for_byte() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("long").await;
    let (model, says) = dictated();
    let (a, b) = (
        Replica::start(&url, model).await,
        Replica::start(&url, dictated().0).await,
    );
    let anna = a.token("anna").await;
    let mut at_a = a.post(&anna, &body()).await;
    // One event that is longer than a notification, quotes and backslashes, and thousands of short
    // ones.
    let long = "Grüße, \"日本\" \\ 🦀 $1 'x'\n".repeat(4_000);
    says.send(long.clone()).unwrap();
    let mut told = until(&mut at_a, &long).await;
    let mut at_b = b.join(&anna, "run", None).await;
    let mut joined = until(&mut at_b, &long).await;
    for number in 0..3_000 {
        says.send(format!("{number}ß🦀 ")).unwrap();
    }
    drop(says);
    told.extend(at_a.all().await);
    joined.extend(at_b.all().await);
    assert!(text(&told).len() > 100_000 && kinds(&told).last() == Some(&"RUN_FINISHED"));
    assert!(joined == told, "{} events of {}", joined.len(), told.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_whose_replica_was_killed_reaches_its_followers() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("killed").await;
    let (model, says) = dictated();
    let (other, answers) = dictated();
    let (mut a, b) = (
        Replica::start(&url, model).await,
        Replica::start(&url, other).await,
    );
    let anna = a.token("anna").await;
    let mut at_a = a.post(&anna, &body()).await;
    says.send("Half an ".to_owned()).unwrap();
    let told = until(&mut at_a, "Half an ").await;
    let mut at_b = b.join(&anna, "run", None).await;
    assert_eq!(until(&mut at_b, "Half an ").await, told);
    a.kill();
    // Another replica goes on with the turn, and asks its model again.
    answers.send("Here it is.".to_owned()).unwrap();
    drop(answers);
    let rest = at_b.all().await;
    // What was begun is ended; what was said is replaced.
    assert_eq!(kinds(&rest)[0], "TEXT_MESSAGE_END", "{:?}", kinds(&rest));
    let all = rest
        .iter()
        .find(|frame| frame.event["type"] == "MESSAGES_SNAPSHOT")
        .unwrap();
    let messages = all.event["messages"].as_array().unwrap();
    assert_eq!(
        messages.last().unwrap()["content"],
        "Here it is.",
        "{messages:?}"
    );
    assert_eq!(kinds(&rest).last(), Some(&"RUN_FINISHED"));
}
