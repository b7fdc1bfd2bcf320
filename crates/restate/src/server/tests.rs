use std::net::SocketAddr;
use std::task::Context;

use http_body_util::BodyExt as _;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use restate_sdk::prelude::{HandlerError, ObjectContext};
use tokio::sync::{Notify, mpsc};

use super::*;

/// Time after which an expected event is considered missing.
const NEVER: Duration = Duration::from_secs(60);

/// Waits until it may go on.
struct Waiting {
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[restate_sdk::object(client_visibility = "pub(crate)")]
impl Waiting {
    #[handler]
    async fn wait(&self, _ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        self.arrived.notify_one();
        self.go_on.notified().await;
        Ok(())
    }
}

/// A port that is served until the test ends.
struct Served {
    place: SocketAddr,
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
    stop: CancellationToken,
    said: mpsc::UnboundedReceiver<WorkerError>,
    serving: tokio::task::JoinHandle<()>,
}

async fn serve(age: Duration) -> Served {
    serve_signed(age, Vec::new()).await
}

async fn serve_signed(age: Duration, keys: Vec<PublicKey>) -> Served {
    let (arrived, go_on): (Arc<Notify>, Arc<Notify>) = Default::default();
    let object = Waiting {
        arrived: arrived.clone(),
        go_on: go_on.clone(),
    };
    let (tell, said) = mpsc::unbounded_channel();
    let report = Arc::new(move |event: &WorkerEvent| {
        let WorkerEvent::Failed(error) = event else {
            panic!("{event}")
        };
        tell.send(error.clone()).unwrap();
    });
    let endpoint = Endpoint::builder().bind(object).build();
    let port = CallServer {
        age,
        ..CallServer::new(endpoint, HeaderValue::from_static("us"), keys, report)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(port.serve(listener, stop.clone()));
    Served {
        place,
        arrived,
        go_on,
        stop,
        said,
        serving,
    }
}

/// A connection of one's own.
async fn connect(place: SocketAddr) -> SendRequest<Sent> {
    let stream = TcpStream::connect(place).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn discover(sender: &mut SendRequest<Sent>) -> hyper::Result<StatusCode> {
    let request = Request::get("/discover")
        .header(ACCEPT, "application/vnd.restate.endpointmanifest.v4+json");
    Ok(sender
        .send_request(request.body(Sent::nothing()).unwrap())
        .await?
        .status())
}

fn invoke(body: Sent) -> Request<Sent> {
    let request = Request::post("/invoke/Waiting/wait");
    request
        .header(CONTENT_TYPE, "application/vnd.restate.invocation.v5")
        .body(body)
        .unwrap()
}

/// A message of Restate's protocol: type, flags and length, then what it holds.
fn message(kind: u16, length: u32, content: &[u8]) -> Bytes {
    let header = u64::from(kind) << 48 | u64::from(length);
    Bytes::from([&header.to_be_bytes(), content].concat())
}

fn whole(kind: u16, content: &[u8]) -> Bytes {
    message(kind, u32::try_from(content.len()).unwrap(), content)
}

/// A body in pieces; how many bytes of it were taken.
struct Sent {
    pieces: Box<dyn Iterator<Item = Bytes> + Send>,
    /// Ends the body after its last piece; until then there may be more.
    end: Option<mpsc::Receiver<()>>,
    taken: Arc<AtomicUsize>,
}

impl Sent {
    fn new(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self {
            pieces: Box::new(pieces),
            end: None,
            taken: Arc::default(),
        }
    }

    fn nothing() -> Self {
        Self::new(std::iter::empty())
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.pieces.next();
        if let Some(piece) = &next {
            self.taken.fetch_add(piece.len(), Ordering::Relaxed);
        } else if let Some(end) = &mut self.end {
            std::task::ready!(end.poll_recv(context));
        }
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Sends it as one message that claims 4 GB; how many bytes of it were taken before it was refused.
async fn flood(place: SocketAddr, pieces: impl Iterator<Item = Bytes> + Send + 'static) -> usize {
    let body = Sent::new(std::iter::once(message(0, u32::MAX, b"")).chain(pieces));
    let taken = Arc::clone(&body.taken);
    let mut sender = connect(place).await;
    let refused = async {
        // The call ends in words or with its connection; nobody waits for the rest.
        if let Ok(response) = sender.send_request(invoke(body)).await {
            let _ = response.into_body().collect().await;
        }
    };
    tokio::time::timeout(NEVER, refused).await.unwrap();
    taken.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_message_that_claims_gigabytes_is_refused_after_megabytes() {
    let served = serve(AGE).await;
    let piece = Bytes::from(vec![0; 16 * 1024]);
    let taken = flood(served.place, std::iter::repeat_n(piece, 4096)).await;
    // The client has taken up to a megabyte that it has not sent.
    assert!(
        (REQUEST_MAX / 2..REQUEST_MAX + 2 * 1024 * 1024).contains(&taken),
        "{taken}"
    );
    // Small pieces count for more than their bytes.
    let piece = Bytes::from_static(&[0; 100]);
    let taken = flood(served.place, std::iter::repeat_n(piece, REQUEST_MAX / 100)).await;
    assert!(taken < REQUEST_MAX / 2, "{taken}");
    assert_eq!(
        discover(&mut connect(served.place).await).await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn the_requests_of_a_connection_share_a_bound() {
    let served = serve(AGE).await;
    let mut sender = connect(served.place).await;
    let seven = || (0..7 * 64).map(|_| Bytes::from(vec![0; 16 * 1024]));
    let mut held = Vec::new();
    let mut ended = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (end, ends) = mpsc::channel(1);
        held.push(end);
        let body = Sent {
            end: Some(ends),
            ..Sent::new(std::iter::once(message(0, u32::MAX, b"")).chain(seven()))
        };
        let response = sender.send_request(invoke(body)).await.unwrap();
        ended.spawn(response.into_body().collect());
    }
    // Each is short enough, all three are not: one ends though its sender has not ended it.
    tokio::time::timeout(NEVER, ended.join_next())
        .await
        .unwrap()
        .unwrap()
        .unwrap()
        .ok();
    assert_eq!(discover(&mut sender).await.unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn a_connection_of_some_age_takes_no_new_calls_and_ends_those_that_run() {
    let mut served = serve(Duration::from_millis(200)).await;
    let mut sender = connect(served.place).await;
    // An id, a name for people, one entry, a key; then the input, nothing.
    let start = whole(0x0000, b"\x0a\x01i\x12\x01i\x18\x01\x32\x01k");
    let input = whole(0x0400, b"\x72\x00");
    let (end, ends) = mpsc::channel(1);
    let body = Sent {
        end: Some(ends),
        ..Sent::new([start, input].into_iter())
    };
    let running = sender.send_request(invoke(body)).await.unwrap();
    let running = tokio::spawn(running.into_body().collect());
    served.arrived.notified().await;

    let told = async { while discover(&mut sender).await.is_ok() {} };
    tokio::time::timeout(NEVER, told)
        .await
        .expect("it is never told to take no more");
    assert_eq!(
        discover(&mut connect(served.place).await).await.unwrap(),
        StatusCode::OK
    );
    assert!(!running.is_finished());

    served.go_on.notify_one();
    end.send(()).await.unwrap();
    let said = tokio::time::timeout(NEVER, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap()
        .to_bytes();
    assert!(said.ends_with(&whole(0x0003, b"")), "{said:?}");
    assert!(served.said.try_recv().is_err());
}

#[tokio::test]
async fn who_stops_waits_for_what_runs() {
    let served = serve(AGE).await;
    let mut sender = connect(served.place).await;
    let (end, ends) = mpsc::channel(1);
    let body = Sent {
        end: Some(ends),
        ..Sent::nothing()
    };
    let running = sender.send_request(invoke(body)).await.unwrap();
    served.stop.cancel();
    let told = async { while discover(&mut sender).await.is_ok() {} };
    tokio::time::timeout(NEVER, told).await.unwrap();
    assert!(!served.serving.is_finished());
    drop(end);
    running.into_body().collect().await.unwrap();
    tokio::time::timeout(NEVER, served.serving)
        .await
        .unwrap()
        .unwrap();
    TcpStream::connect(served.place).await.unwrap_err();
}

#[tokio::test]
async fn more_connections_than_there_may_be_are_closed_and_said_once() {
    let mut served = serve(AGE).await;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut sender = connect(served.place).await;
        discover(&mut sender).await.unwrap();
        open.push(sender);
    }
    for _ in 0..2 {
        let mut stream = TcpStream::connect(served.place).await.unwrap();
        let mut end = [0];
        assert_eq!(
            tokio::io::AsyncReadExt::read(&mut stream, &mut end)
                .await
                .unwrap(),
            0
        );
    }
    let said = served.said.recv().await.unwrap().to_string();
    assert!(
        said.contains("256 connections") && served.said.try_recv().is_err(),
        "{said}"
    );
    // One that ended makes room; when, only the server knows.
    drop(open.pop());
    let taken = async {
        loop {
            let stream = TokioIo::new(TcpStream::connect(served.place).await.unwrap());
            let Ok((mut sender, connection)) = handshake(TokioExecutor::new(), stream).await else {
                continue;
            };
            tokio::spawn(connection);
            if discover(&mut sender).await.is_ok() {
                break;
            }
        }
    };
    tokio::time::timeout(NEVER, taken).await.unwrap();
}

#[tokio::test]
async fn an_idle_client_is_not_waited_for() {
    let served = serve(Duration::from_millis(10)).await;
    let mut stream = TcpStream::connect(served.place).await.unwrap();
    let mut said = Vec::new();
    let ended = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut said);
    tokio::time::timeout(NEVER, ended).await.unwrap().unwrap();
}

#[test]
fn connections_made_together_end_apart() {
    let ages: Vec<Duration> = (0..64).map(|number| spread(AGE, number)).collect();
    assert!(ages.iter().all(|age| (AGE..=AGE + AGE / 5).contains(age)));
    let span = *ages.iter().max().unwrap() - *ages.iter().min().unwrap();
    assert!(span > AGE / 10, "{span:?}");
}

#[tokio::test]
async fn a_call_that_nobody_signed_is_turned_away_before_it_is_read() {
    let key = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp"
        .parse()
        .unwrap();
    let mut served = serve_signed(AGE, vec![key]).await;
    let mut sender = connect(served.place).await;
    assert_eq!(
        discover(&mut sender).await.unwrap(),
        StatusCode::UNAUTHORIZED
    );
    // A body that never ends is not waited for.
    let (_end, ends) = mpsc::channel(1);
    let body = Sent {
        end: Some(ends),
        ..Sent::nothing()
    };
    let response = sender.send_request(invoke(body)).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()[WORKER], "us");
    let health = Request::get("/health").body(Sent::nothing()).unwrap();
    assert_eq!(
        sender.send_request(health).await.unwrap().status(),
        StatusCode::OK
    );
    // Said once for both.
    let said = served.said.recv().await.unwrap();
    assert_eq!(said, WorkerError::Refused("it is not signed".to_owned()));
}
