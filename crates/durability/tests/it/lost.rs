//! The answer to a commit is lost: PostgreSQL has written it, and the connection is cut before the worker hears of it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use adjutant_core::Effect;
use adjutant_durability::{EFFECTS, Setup};
use sqlx::postgres::PgConnectOptions;

use crate::bench::{Bench, Kind, open_calls};
use crate::invariants;
use crate::scene::{APPROVE, CALL, ONE, PLAIN, Scene, Talk};
use crate::worker::{Harm, Worker};

/// Stands between a worker and PostgreSQL, and hands on what they say.
struct Proxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    /// Ends of transactions until the one whose answer is lost. `None`: no answer is.
    left: Option<u32>,
    /// The last word of the answer that was lost, such as `COMMIT`.
    lost: Option<String>,
}

impl Proxy {
    /// Stands in front of the server with this socket.
    fn new(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let plan: Arc<Mutex<Plan>> = Arc::default();
        let shared = Arc::clone(&plan);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&socket).unwrap();
                let (mut from_client, mut to_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                // Either end may close at any time.
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from_client, &mut to_server);
                    let _ = to_server.shutdown(Shutdown::Both);
                });
                let plan = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let _ = hand_back(&server, &client, &plan);
                    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
                });
            }
        });
        Self { address, plan }
    }

    /// The answer to the end of a transaction is lost, that of the one with this number from now on.
    fn lose(&self, number: u32) {
        *self.plan.lock().unwrap() = Plan { left: Some(number), lost: None };
    }

    /// Returns what was lost; from now on nothing more is.
    fn lost(&self) -> Option<String> {
        std::mem::take(&mut *self.plan.lock().unwrap()).lost
    }
}

/// Hands answers of the server to the client until one of them is to be lost. An answer ends when the server is ready for
/// more, and says then whether it is inside of a transaction (PostgreSQL's documentation, "Message Formats").
fn hand_back(server: &UnixStream, client: &TcpStream, plan: &Mutex<Plan>) -> std::io::Result<()> {
    let (mut server, mut client) = (server, client);
    let (mut answer, mut done) = (Vec::new(), None);
    loop {
        let mut head = [0; 5];
        server.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        server.read_exact(&mut body)?;
        answer.extend_from_slice(&head);
        answer.extend_from_slice(&body);
        match kind {
            b'C' => done = Some(String::from_utf8_lossy(body.trim_ascii_end()).into_owned()),
            b'Z' => {
                if let Some(done) = done.take().filter(|_| body == b"I") {
                    let mut plan = plan.lock().unwrap();
                    plan.left = plan.left.map(|left| left - 1);
                    if plan.left == Some(0) {
                        *plan = Plan { left: None, lost: Some(done) };
                        return Ok(());
                    }
                }
                client.write_all(&answer)?;
                answer.clear();
            }
            _ => {}
        }
    }
}

/// Plays a scene again and again, each time with another lost answer, until there is none left to lose. Returns how many were
/// lost, and how many of them somebody was told about.
fn every_answer_is_lost_once(bench: &Bench, proxy: &Proxy, scene: &Scene, effect: Effect) -> (u32, u32) {
    let golden = bench.golden(scene, effect);
    let database = format!("postgres://postgres@{}/faults?sslmode=disable", proxy.address);
    let worker = Worker::start(&Setup { database, ..bench.setup.clone() }, Harm::default());
    // It is connected by then.
    let mut before = Talk::new(&PLAIN, effect);
    let request = before.next().unwrap();
    before.hear(worker.ask(&request).unwrap().unwrap());
    let (mut lost, mut told) = (0, 0);
    loop {
        let mut talk = Talk::new(scene, effect);
        let (mut errors, mut open) = (Vec::new(), Default::default());
        proxy.lose(lost + 1);
        while let Some(request) = talk.next() {
            match worker.ask(&request).unwrap() {
                Ok(heard) => talk.hear(heard),
                Err(error) => {
                    assert!(error.contains("cannot be reached"), "{scene:?}, answer {lost}: {error}");
                    errors.push(format!("answer {lost}: {error}"));
                    open = open_calls(&bench.load(&talk.key));
                    assert!(errors.len() < 2, "{errors:?}: only one answer is lost");
                }
            }
        }
        told += u32::try_from(errors.len()).unwrap();
        invariants::check(&bench.played(talk, errors, open), &golden);
        if proxy.lost().is_none() {
            return (lost, told);
        }
        lost += 1;
    }
}

fn lost_answers(effect: Effect) {
    let bench = Bench::new(Kind::Postgres);
    let options: PgConnectOptions = bench.server.as_ref().unwrap().url("faults").parse().unwrap();
    let folder: &Path = options.get_socket().unwrap();
    let proxy = Proxy::new(folder.join(".s.PGSQL.5432"));
    for scene in [ONE, APPROVE, CALL] {
        let (lost, told) = every_answer_is_lost_once(&bench, &proxy, &scene, effect);
        // Begin, and the end; with an effect, intent and result too.
        let least = if effect == Effect::None { 2 } else { 4 };
        assert!(lost >= least && told >= least, "{scene:?}, {effect:?}: {told} of {lost} were told");
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
