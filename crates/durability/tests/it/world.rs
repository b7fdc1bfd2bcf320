//! The model and the tools of every worker, in a process that is never killed. It logs every call.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use adjutant_core::ConversationId;
use adjutant_durability::Called;
use serde_json::{Value, json};

use crate::model;

/// Time that a test waits for an event that must happen. A passing test does not depend on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A call that a worker made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    /// A request to the model.
    Model,
    /// A call of a tool.
    Tool(Called),
}

/// The way in which the tool process treats the calls of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Calls are answered.
    #[default]
    Prompt,
    /// Tool calls are executed, but the answer waits until the mode changes.
    HoldTools,
    /// Model calls wait until the mode changes.
    HoldModel,
    /// Tool calls are executed, and the connection closes without an answer.
    CutTools,
}

#[derive(Default)]
struct State {
    seen: HashMap<ConversationId, Vec<Seen>>,
    manners: HashMap<ConversationId, Manner>,
    limited: HashSet<ConversationId>,
    total: usize,
    /// True once no worker makes calls any more.
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The model server and the tool server.
pub(crate) struct World {
    pub(crate) model: SocketAddr,
    pub(crate) tools: SocketAddr,
    shared: Arc<Shared>,
}

impl World {
    pub(crate) fn new() -> Self {
        let shared: Arc<Shared> = Arc::default();
        Self {
            model: listen(&shared, ask_model),
            tools: listen(&shared, call_tool),
            shared,
        }
    }

    /// Returns all calls of a conversation.
    pub(crate) fn seen(&self, conversation: ConversationId) -> Vec<Seen> {
        self.shared
            .state
            .lock()
            .unwrap()
            .seen
            .get(&conversation)
            .cloned()
            .unwrap_or_default()
    }

    pub(crate) fn set(&self, conversation: ConversationId, manner: Manner) {
        self.shared
            .state
            .lock()
            .unwrap()
            .manners
            .insert(conversation, manner);
        self.shared.changed.notify_all();
    }

    /// Waits until the calls of a conversation fulfil a condition.
    pub(crate) fn wait_for(&self, conversation: ConversationId, wanted: impl Fn(&[Seen]) -> bool) {
        drop(self.shared.wait(|state| {
            state
                .seen
                .get(&conversation)
                .is_some_and(|seen| wanted(seen))
        }));
    }

    /// Waits for this number of further calls; returns `false` if no more are made.
    pub(crate) fn wait_for_more(&self, calls: usize) -> bool {
        let wanted = self.shared.state.lock().unwrap().total + calls;
        !self
            .shared
            .wait(|state| state.total >= wanted || state.is_over)
            .is_over
    }

    /// Ends every [`World::wait_for_more`], also later ones.
    pub(crate) fn end(&self) {
        self.shared.state.lock().unwrap().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn wait(&self, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap();
        let (state, late) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !done(state))
            .unwrap();
        assert!(!late.timed_out(), "what must happen did not");
        state
    }

    fn see(&self, conversation: ConversationId, seen: Seen) {
        let mut state = self.state.lock().unwrap();
        state.seen.entry(conversation).or_default().push(seen);
        state.total += 1;
        self.changed.notify_all();
    }

    fn manner(&self, conversation: ConversationId) -> Manner {
        self.state
            .lock()
            .unwrap()
            .manners
            .get(&conversation)
            .copied()
            .unwrap_or_default()
    }

    /// Waits until the conversation is not in this mode any more.
    fn hold(&self, conversation: ConversationId, manner: Manner) {
        if self.manner(conversation) == manner {
            drop(self.wait(|state| state.manners.get(&conversation) != Some(&manner)));
        }
    }
}

fn listen(
    shared: &Arc<Shared>,
    serve: fn(&Shared, TcpStream) -> std::io::Result<()>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let shared = Arc::clone(&shared);
            // A worker may be killed in the middle of a request.
            std::thread::spawn(move || serve(&shared, connection));
        }
    });
    address
}

fn call_tool(shared: &Shared, mut connection: TcpStream) -> std::io::Result<()> {
    let mut line = String::new();
    BufReader::new(connection.try_clone()?).read_line(&mut line)?;
    // The request was cut off before its end: nothing is executed.
    let Some(line) = line.strip_suffix('\n') else {
        return Ok(());
    };
    let called: Called = serde_json::from_str(line)?;
    let conversation = called.conversation;
    let answer = json!({"did": called.n});
    if called.probe {
        let seen = shared
            .state
            .lock()
            .unwrap()
            .seen
            .get(&conversation)
            .cloned()
            .unwrap_or_default();
        let done = seen.contains(&Seen::Tool(Called {
            probe: false,
            ..called
        }));
        return connection
            .write_all(format!("{}\n", if done { answer } else { Value::Null }).as_bytes());
    }
    shared.see(conversation, Seen::Tool(called));
    shared.hold(conversation, Manner::HoldTools);
    if shared.manner(conversation) == Manner::CutTools {
        return Ok(());
    }
    connection.write_all(format!("{answer}\n").as_bytes())
}

fn ask_model(shared: &Shared, mut connection: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body)?;
    if let Some(body) = model::summary(&request) {
        return respond(&mut connection, "200 OK", "text/event-stream", &body);
    }
    let asked = model::ModelRequest::parse(&request);
    shared.see(asked.conversation, Seen::Model);
    shared.hold(asked.conversation, Manner::HoldModel);
    let limited = asked.is_limited()
        && shared
            .state
            .lock()
            .unwrap()
            .limited
            .insert(asked.conversation);
    let (status, kind, body) = if limited {
        (
            "429 Too Many Requests",
            "application/json",
            json!({"error": {"message": "too many"}}).to_string(),
        )
    } else {
        ("200 OK", "text/event-stream", asked.answer())
    };
    respond(&mut connection, status, kind, &body)
}

fn respond(
    connection: &mut TcpStream,
    status: &str,
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nretry-after-ms: 1\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    connection.write_all((head + body).as_bytes())
}
