//! A vendor for a test: answers one request after the other with prepared bytes, and keeps what it
//! was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The pieces in which an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// It is one JSON value.
    Whole,
    /// Server-sent events.
    Events,
    /// One JSON value a line.
    Lines,
}

/// An answer of the test server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    chunk: usize,
    end: End,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Properly,
    /// The connection closes in the middle.
    Broken,
    /// Nothing more comes.
    Stalled,
    /// The connection closes before anything was said.
    Unanswered,
    /// Nothing is said at all.
    Mute,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            chunk: usize::MAX,
            end: End::Properly,
        }
    }

    /// Events, one JSON value each.
    pub(crate) fn events(framing: Framing, events: &[&str]) -> Self {
        let framed = events.iter().map(|event| match framing {
            Framing::Events => format!("data: {event}\r\n\r\n"),
            Framing::Lines | Framing::Whole => format!("{event}\n"),
        });
        Self::new(200, framed.collect::<String>())
    }

    pub(crate) fn reset() -> Self {
        Self {
            end: End::Unanswered,
            ..Self::new(0, "")
        }
    }

    pub(crate) fn mute() -> Self {
        Self {
            end: End::Mute,
            ..Self::new(0, "")
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// In chunks of so many bytes.
    pub(crate) fn cut(mut self, chunk: usize) -> Self {
        self.chunk = chunk;
        self
    }

    /// With other bytes wherever these are.
    pub(crate) fn replace(&mut self, these: &[u8], others: &[u8]) {
        let find = |body: &[u8]| body.windows(these.len()).position(|window| window == these);
        while let Some(at) = find(&self.body) {
            self.body
                .splice(at..at + these.len(), others.iter().copied());
        }
    }

    /// With more bytes behind it.
    pub(crate) fn and(mut self, bytes: &[u8]) -> Self {
        self.body.extend_from_slice(bytes);
        self
    }

    pub(crate) fn then_break(mut self) -> Self {
        self.end = End::Broken;
        self
    }

    pub(crate) fn then_stall(mut self) -> Self {
        self.end = End::Stalled;
        self
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl ReceivedRequest {
    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(crate) struct Server {
    pub(crate) url: url::Url,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves these answers, in order; connections beyond them are closed unanswered. What a server
    /// may be asked about itself first ([`ABOUT`]) it does not know, and it does not count.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        Self::serve(answers, &ABOUT).await
    }

    /// The same, but what it is asked about itself counts, and has its answers too.
    #[cfg(feature = "ollama")]
    pub(crate) async fn knowing(answers: Vec<Answer>) -> Self {
        Self::serve(answers, &[]).await
    }

    async fn serve(answers: Vec<Answer>, unknown: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let seen = asked.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            let answers = Arc::new(Mutex::new(answers.into_iter()));
            while let Ok((connection, _)) = listener.accept().await {
                let (answers, seen) = (answers.clone(), seen.clone());
                connections.spawn(async move {
                    // A client that goes away in the middle is part of the tests.
                    let _ = serve(connection, answers, unknown, seen).await;
                });
            }
        });
        Self { url, asked, task }
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

/// The requests that Ollama's adapter sends before the first one for an answer.
const ABOUT: [&str; 2] = ["/api/show ", "/api/version "];

async fn serve(
    mut connection: TcpStream,
    answers: Arc<Mutex<std::vec::IntoIter<Answer>>>,
    unknown: &[&str],
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
) -> std::io::Result<()> {
    let asked = read_request(&mut connection).await?;
    let answer = if unknown
        .iter()
        .any(|path| asked.head.lines().next().unwrap_or_default().contains(path))
    {
        Answer::new(404, "")
    } else {
        seen.lock().unwrap().push(asked);
        answers.lock().unwrap().next().unwrap_or_else(Answer::reset)
    };
    match answer.end {
        End::Unanswered => return Ok(()),
        End::Mute => std::future::pending().await,
        End::Properly | End::Broken | End::Stalled => {}
    }
    let mut head = format!(
        "HTTP/1.1 {} X\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    connection
        .write_all(format!("{head}\r\n").as_bytes())
        .await?;
    let mut framed = Vec::new();
    for chunk in answer.body.chunks(answer.chunk) {
        framed.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
    }
    connection.write_all(&framed).await?;
    match answer.end {
        End::Properly => connection.write_all(b"0\r\n\r\n").await,
        End::Broken | End::Unanswered => Ok(()),
        End::Stalled | End::Mute => std::future::pending().await,
    }
}

pub(crate) async fn read_request(connection: &mut TcpStream) -> std::io::Result<ReceivedRequest> {
    let mut bytes = Vec::new();
    let head = loop {
        if connection.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length = text
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse::<usize>()
                .ok()
        })
        .unwrap_or(0);
    while bytes.len() < head + length {
        if connection.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(ReceivedRequest {
        head: text,
        body: String::from_utf8_lossy(&bytes[head..]).into_owned(),
    })
}
