//! A vendor on this machine: answers what it is told to, and keeps what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde_json::Value;

/// A server that answers one request with each of its answers, in order, and is gone with the last.
pub(crate) struct Vendor {
    port: u16,
    asked: Receiver<Asked>,
    thread: JoinHandle<()>,
}

/// A request as it arrived.
#[derive(Debug)]
pub(crate) struct Asked {
    /// `POST /path`.
    pub(crate) line: String,
    /// Header lines, names in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

/// The response to a request.
pub(crate) struct Reply {
    status: u16,
    headers: &'static str,
    body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: impl ToString) -> Self {
        Self {
            status,
            headers: "content-type: application/json\r\n",
            body: body.to_string(),
        }
    }

    pub(crate) fn with(self, headers: &'static str) -> Self {
        Self { headers, ..self }
    }

    /// Server-sent events; the last of them ends the answer, whatever it is.
    pub(crate) fn events(events: &[Value]) -> Self {
        let body = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        Self {
            status: 200,
            headers: "content-type: text/event-stream\r\n",
            body,
        }
    }
}

impl Vendor {
    pub(crate) fn answering(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self::start(move |listener, sender| {
            for reply in replies {
                answer(&listener, &sender, |_| reply);
            }
        })
    }

    /// A server that answers by what it is asked, until the test ends.
    pub(crate) fn answering_by_path(
        reply: impl Fn(&str, &Value) -> Reply + Send + 'static,
    ) -> Self {
        Self::answering_by(move |asked| reply(&asked.line, &asked.body))
    }

    /// The same by all of the request.
    pub(crate) fn answering_by(reply: impl Fn(&Asked) -> Reply + Send + 'static) -> Self {
        Self::start(move |listener, sender| while answer(&listener, &sender, &reply) {})
    }

    fn start(serve: impl FnOnce(TcpListener, Sender<Asked>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, asked) = channel();
        let thread = std::thread::spawn(move || serve(listener, sender));
        Self {
            port,
            asked,
            thread,
        }
    }

    /// Returns the requests received so far.
    pub(crate) fn so_far(&self) -> Vec<Asked> {
        self.asked.try_iter().collect()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends a server that answers until it is told to stop.
    pub(crate) fn stop(self) {
        let Self {
            port,
            asked,
            thread,
        } = self;
        drop(asked);
        TcpStream::connect(("127.0.0.1", port))
            .unwrap()
            .write_all(b"GET / HTTP/1.1\r\n\r\n")
            .unwrap();
        thread.join().unwrap();
    }

    /// Everything it was asked, once it has given all its answers.
    pub(crate) fn asked(self) -> Vec<Asked> {
        self.thread.join().unwrap();
        self.asked.into_iter().collect()
    }
}

/// Answers one request; whether there was one. Who only looks whether somebody listens asks
/// nothing.
fn answer(
    listener: &TcpListener,
    sender: &Sender<Asked>,
    reply: impl FnOnce(&Asked) -> Reply,
) -> bool {
    let (mut peer, _) = listener.accept().unwrap();
    let Some(asked) = read(&peer) else {
        return true;
    };
    let Reply {
        status,
        headers,
        body,
    } = reply(&asked);
    let length = body.len();
    // Nobody listens any more if the test has what it wanted.
    let was_received = sender.send(asked).is_ok();
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    peer.write_all(format!("{head}{body}").as_bytes()).unwrap();
    was_received
}

/// `None`: the peer left without a word.
fn read(peer: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(peer);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    if lines.is_empty() {
        return None;
    }
    let first = lines.remove(0);
    let headers: Vec<String> = lines
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| format!("{}: {value}", name.to_lowercase()))
        .collect();
    let length = headers
        .iter()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    Some(Asked {
        line: first.trim_end_matches(" HTTP/1.1").to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
