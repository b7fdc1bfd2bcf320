//! Lost answers to commits: PostgreSQL has committed, and the connection is cut before the worker
//! receives the answer.

use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use adjutant_core::Effect;
use adjutant_durability::{EFFECTS, Setup};
use sqlx::postgres::PgConnectOptions;

use crate::bench::{Bench, Kind, open_calls};
use crate::invariants;
use crate::scene::{APPROVE, CALL, ONE, PLAIN, Scene, Talk};
use crate::worker::{Harm, Worker};

/// A proxy between a worker and PostgreSQL.
struct Proxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

/// SQL functions whose answers are lost: those that a turn waits for. Heartbeats, bookkeeping of
/// sessions and notifications are answered, because they come at any time.
const OF_A_TURN: [&str; 2] = ["FROM adjutant_begin_", "FROM adjutant_append_"];

#[derive(Default)]
struct Plan {
    /// Ends of transactions until the one whose answer is lost. `None`: no answer is lost.
    left: Option<u32>,
    /// True if an answer was lost.
    is_lost: bool,
}

impl Proxy {
    /// Starts a proxy to the server with this socket.
    fn new(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let plan: Arc<Mutex<Plan>> = Arc::default();
        let shared = Arc::clone(&plan);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&socket).unwrap();
                let (from_client, to_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                let of_a_turn = Arc::new(AtomicBool::new(false));
                let asked = Arc::clone(&of_a_turn);
                // Either end may close at any time.
                std::thread::spawn(move || {
                    let _ = hand_on(&from_client, &to_server, &asked);
                    let _ = to_server.shutdown(Shutdown::Both);
                });
                let plan = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let _ = hand_back(&server, &client, &of_a_turn, &plan);
                    let _ = (
                        client.shutdown(Shutdown::Both),
                        server.shutdown(Shutdown::Both),
                    );
                });
            }
        });
        Self { address, plan }
    }

    /// Loses the answer to the end of a transaction: that of the one with this number, counted from
    /// now.
    fn lose(&self, number: u32) {
        *self.plan.lock().unwrap() = Plan {
            left: Some(number),
            is_lost: false,
        };
    }

    /// Returns true if an answer was lost. From now on none is.
    fn has_lost(&self) -> bool {
        std::mem::take(&mut *self.plan.lock().unwrap()).is_lost
    }
}

/// Reads the next message. `kind` is the length of the message's type, which the first message of a
/// client does not have (PostgreSQL's documentation, "Message Formats").
fn message<const KIND: usize>(
    mut from: impl Read,
) -> std::io::Result<([u8; KIND], Vec<u8>, Vec<u8>)> {
    let (mut kind, mut length) = ([0; KIND], [0; 4]);
    from.read_exact(&mut kind)?;
    from.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - length.len()];
    from.read_exact(&mut body)?;
    let whole = [&kind[..], &length, &body].concat();
    Ok((kind, body, whole))
}

/// Forwards a client's messages to the server, and notes calls of a function in [`OF_A_TURN`].
fn hand_on(
    client: &TcpStream,
    mut server: &UnixStream,
    of_a_turn: &AtomicBool,
) -> std::io::Result<()> {
    let ([], _, startup) = message(client)?;
    server.write_all(&startup)?;
    loop {
        let ([kind], body, whole) = message(client)?;
        if kind == b'Q' {
            let statement = String::from_utf8_lossy(&body);
            of_a_turn.store(
                OF_A_TURN.iter().any(|call| statement.contains(call)),
                Ordering::SeqCst,
            );
        }
        server.write_all(&whole)?;
    }
}

/// Forwards the server's answers to the client until one of them is to be lost. An answer ends when
/// the server is ready for the next query, which also states whether a transaction is open.
fn hand_back(
    server: &UnixStream,
    mut client: &TcpStream,
    of_a_turn: &AtomicBool,
    plan: &Mutex<Plan>,
) -> std::io::Result<()> {
    let mut answer = Vec::new();
    loop {
        let ([kind], body, whole) = message(server)?;
        answer.extend_from_slice(&whole);
        if kind != b'Z' {
            continue;
        }
        if body == b"I" && of_a_turn.swap(false, Ordering::SeqCst) {
            let mut plan = plan.lock().unwrap();
            plan.left = plan.left.map(|left| left - 1);
            if plan.left == Some(0) {
                *plan = Plan {
                    left: None,
                    is_lost: true,
                };
                return Ok(());
            }
        }
        client.write_all(&answer)?;
        answer.clear();
    }
}

/// Plays a scene repeatedly, each time with the next answer lost, until there is no further answer.
/// Returns the number of lost answers, and of those that a client got an error for.
fn every_answer_is_lost_once(
    bench: &Bench,
    proxy: &Proxy,
    scene: &Scene,
    effect: Effect,
) -> (u32, u32) {
    let golden = bench.golden(scene, effect);
    let database = format!(
        "postgres://postgres@{}/faults?sslmode=disable",
        proxy.address
    );
    let worker = Worker::start(
        &Setup {
            database,
            ..bench.setup.clone()
        },
        Harm::default(),
    );
    // The worker is connected by then.
    let mut before = Talk::new(&PLAIN, effect);
    let request = before.next().unwrap();
    before.record(worker.ask(&request).unwrap().unwrap());
    let (mut lost, mut told) = (0, 0);
    loop {
        let mut talk = Talk::new(scene, effect);
        let (mut errors, mut open) = (Vec::new(), Default::default());
        proxy.lose(lost + 1);
        while let Some(request) = talk.next() {
            match worker.ask(&request).unwrap() {
                Ok(response) => talk.record(response),
                Err(error) => {
                    assert!(
                        error.contains("cannot be reached"),
                        "{scene:?}, answer {lost}: {error}"
                    );
                    errors.push(format!("answer {lost}: {error}"));
                    open = open_calls(&bench.load(&talk.key));
                    assert!(errors.len() < 2, "{errors:?}: only one answer is lost");
                }
            }
        }
        told += u32::try_from(errors.len()).unwrap();
        invariants::check(&bench.played(talk, errors, open), &golden);
        if !proxy.has_lost() {
            return (lost, told);
        }
        lost += 1;
    }
}

fn lost_answers(effect: Effect) {
    let Some(bench) = Bench::new(Kind::Postgres) else {
        return;
    };
    let options: PgConnectOptions = bench
        .server
        .as_ref()
        .unwrap()
        .url("faults")
        .parse()
        .unwrap();
    let folder: &Path = options.get_socket().unwrap();
    let proxy = Proxy::new(folder.join(".s.PGSQL.5432"));
    for scene in [ONE, APPROVE, CALL] {
        let (lost, told) = every_answer_is_lost_once(&bench, &proxy, &scene, effect);
        // Begin and end; with an effect, also intent and result.
        let least = if effect == Effect::None { 2 } else { 4 };
        assert!(
            lost >= least && told == lost,
            "{scene:?}, {effect:?}: {told} of {lost} were told"
        );
    }
}

#[test]
fn a_commit_whose_answer_is_lost_is_done_once() {
    std::thread::scope(|scope| {
        for effect in EFFECTS {
            scope.spawn(move || lost_answers(effect));
        }
    });
}
