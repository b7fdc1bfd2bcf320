//! Two processes of the binary on one PostgreSQL behind a balancer, each restarted twice while a
//! thousand requests are made: nobody notices. The balancer sends nothing a second time.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use adjutant_core::port::Journal as _;
use adjutant_core::{AgentName, ConversationId, ConversationKey, Event, UserId};
use adjutant_store::postgres::Store;
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Home, Run};
use crate::server::Server;
use crate::service::{self, Serving, send};

/// A model that takes a tenth of a second.
const MODEL: &[&str] = &[r#"{"text": "You said: {{input}}", "delay_ms": 100, "repeat": true}"#];
const REQUESTS: usize = 1000;
/// At the same time, each in a conversation of its own.
const CLIENTS: usize = 16;
const ROUNDS: usize = 2;

/// A connection to a replica, with what was read of it and not yet used.
type Connection = BufReader<TcpStream>;

/// One replica, as the balancer sees it.
#[derive(Default)]
struct Backend {
    /// `None`: it is not ready, and gets nothing.
    address: Option<String>,
    /// Connections that are kept for the next request.
    idle: Vec<Connection>,
}

/// Hands each request to the next replica that is ready, on a connection that is kept if there is
/// one.
struct Balancer {
    backends: [Mutex<Backend>; 2],
    next: AtomicUsize,
    /// Requests that were made on a connection that was kept.
    kept: AtomicUsize,
    changed: Condvar,
    changes: Mutex<usize>,
}

impl Balancer {
    fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let balancer = Arc::new(Self {
            backends: Default::default(),
            next: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            changed: Condvar::new(),
            changes: Mutex::new(0),
        });
        let shared = Arc::clone(&balancer);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let balancer = Arc::clone(&shared);
                // Whoever asked sees an answer that is not whole.
                std::thread::spawn(move || drop(balancer.serve(client)));
            }
        });
        (balancer, address)
    }

    /// One request, and its answer.
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        let mut client = BufReader::new(client);
        let Some((head, body)) = message(&mut client)? else {
            return Ok(());
        };
        // What the client says of its connection is not about the other one.
        let head = head.replace("Connection: close\r\n", "");
        let (number, mut connection) = self.connection()?;
        connection
            .get_mut()
            .write_all(&[head.as_bytes(), &body].concat())?;
        let (head, body) = message(&mut connection)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !head
            .to_ascii_lowercase()
            .contains("\r\nconnection: close\r\n")
        {
            let mut backend = self.backends[number].lock().unwrap();
            if backend.address.is_some() {
                backend.idle.push(connection);
            }
        }
        client
            .get_mut()
            .write_all(&[head.as_bytes(), &body].concat())
    }

    fn connection(&self) -> io::Result<(usize, Connection)> {
        let first = self.next.fetch_add(1, Ordering::SeqCst);
        // Both are asked, whoever else asks meanwhile.
        for number in [first % 2, (first + 1) % 2] {
            let mut backend = self.backends[number].lock().unwrap();
            let Some(address) = backend.address.clone() else {
                continue;
            };
            if let Some(connection) = backend.idle.pop() {
                self.kept.fetch_add(1, Ordering::SeqCst);
                return Ok((number, connection));
            }
            return Ok((number, BufReader::new(TcpStream::connect(address)?)));
        }
        Err(io::Error::other("no replica is ready"))
    }

    /// Asks a replica again and again whether it is ready, until `over`. One that is not gets
    /// nothing more.
    fn watch(&self, number: usize, address: &Mutex<String>, over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            let address = address.lock().unwrap().clone();
            let is_ready =
                send(&address, "GET", "/readyz", &[], "").is_ok_and(|it| it.status == 200);
            let mut backend = self.backends[number].lock().unwrap();
            let seen = is_ready.then_some(address);
            if backend.address != seen {
                *backend = Backend {
                    address: seen,
                    idle: Vec::new(),
                };
                *self.changes.lock().unwrap() += 1;
                self.changed.notify_all();
            }
            drop(backend);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Waits until so many changes of readiness were seen.
    fn wait_for(&self, changes: usize) {
        drop(
            self.changed
                .wait_while(self.changes.lock().unwrap(), |seen| *seen < changes)
                .unwrap(),
        );
    }
}

/// Reads the head and the body of a request or an answer. `None`: there is no more.
fn message(from: &mut impl io::BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

#[tokio::test]
async fn no_client_notices_a_rolling_restart() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("rolling").await;
    let home = Home::new();
    let model = home.script(MODEL);
    let made =
        Run::of(&mut home.command(&["token", "create", "--user", "anna", "--database", &url]));
    let token = made.succeeds().stdout.trim().to_owned();
    let start = || {
        // The balancer asks every 20 ms, and must have asked once before this is over, however busy
        // the machine is.
        let args = [
            "serve",
            "--json",
            "--bind",
            "127.0.0.1:0",
            "-m",
            &model,
            "--database",
            &url,
        ];
        let mut command = home.command(&[&args[..], &["--drain-delay", "5s"]].concat());
        command.env("ADJUTANT_SERVE_REQUESTS_PER_MINUTE", "1000000");
        Serving::start(command.env("ADJUTANT_SERVE_TURNS_AT_ONCE", "1000"))
    };
    let mut services = [start(), start()];
    let addresses = [0, 1].map(|number: usize| Mutex::new(services[number].address.clone()));
    let (balancer, address) = Balancer::start();
    let (asked, answered) = (AtomicUsize::new(0), (Mutex::new(0), Condvar::new()));
    let over = AtomicBool::new(false);
    let conversations: Vec<_> = (0..CLIENTS)
        .map(|_| ConversationId(Uuid::now_v7()))
        .collect();
    let said: Vec<Vec<String>> = std::thread::scope(|scope| {
        for (number, address) in addresses.iter().enumerate() {
            let (balancer, over) = (&balancer, &over);
            scope.spawn(move || balancer.watch(number, address, over));
        }
        balancer.wait_for(2);
        let clients: Vec<_> = conversations
            .iter()
            .map(|conversation| {
                let (asked, answered, address, token) = (&asked, &answered, &address, &token);
                scope.spawn(move || {
                    let mut said = Vec::new();
                    loop {
                        let number = asked.fetch_add(1, Ordering::SeqCst);
                        if number >= REQUESTS {
                            return said;
                        }
                        let body =
                            json!({"message": format!("word {number}"), "thread_id": conversation});
                        // Without a name of its own: whoever sent it twice would do it twice.
                        let answer = service::chat(address, token, None, &body).unwrap();
                        let expected = json!(format!("You said: word {number}"));
                        assert_eq!(
                            (answer.status, &answer.body["content"]),
                            (200, &expected),
                            "{answer:?}"
                        );
                        said.push(format!("word {number}"));
                        *answered.0.lock().unwrap() += 1;
                        answered.1.notify_all();
                    }
                })
            })
            .collect();
        for restart in 0..2 * ROUNDS {
            let (count, changed) = (&answered.0, &answered.1);
            let wanted = (restart + 1) * REQUESTS / (2 * ROUNDS + 1);
            drop(
                changed
                    .wait_while(count.lock().unwrap(), |count| *count < wanted)
                    .unwrap(),
            );
            let number = restart % 2;
            services[number].signal("-TERM");
            assert_eq!(
                services[number].wait().code(),
                Some(0),
                "all that ran has ended"
            );
            services[number] = start();
            addresses[number]
                .lock()
                .unwrap()
                .clone_from(&services[number].address);
            // Gone, and there again.
            balancer.wait_for(2 + 2 * (restart + 1));
        }
        let said = clients
            .into_iter()
            .map(|client| client.join())
            .collect::<Result<_, _>>();
        over.store(true, Ordering::SeqCst);
        said.unwrap()
    });
    assert_eq!(said.iter().map(Vec::len).sum::<usize>(), REQUESTS);
    assert!(
        balancer.kept.load(Ordering::SeqCst) > REQUESTS / 2,
        "connections were kept"
    );

    let store = Store::connect(&url, 2).await.unwrap();
    assert_eq!(
        store.unsettled(&AgentName::adjutant(), None).await.unwrap(),
        []
    );
    for (conversation, said) in conversations.iter().zip(said) {
        let user = UserId::new("anna").unwrap();
        let key = ConversationKey {
            agent: AgentName::adjutant(),
            user,
            conversation: *conversation,
        };
        let events = store.load(&key).await.unwrap().events;
        let mut turns: BTreeMap<String, usize> = BTreeMap::new();
        let mut heard = Vec::new();
        for recorded in &events {
            match &*recorded.event {
                Event::TurnStarted { turn, message, .. } => {
                    turns.insert(turn.to_string(), 0);
                    heard.push(message.clone());
                }
                Event::TurnFinished { turn, .. } => *turns.get_mut(&turn.to_string()).unwrap() += 1,
                Event::TurnTakenUp { .. } => panic!("a turn was left behind: {recorded:?}"),
                _ => {}
            }
        }
        assert_eq!(heard, said);
        assert!(turns.values().all(|ends| *ends == 1), "{turns:?}");
    }
    store.close().await;
}
