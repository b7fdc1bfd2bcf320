//! SIGKILL at random times, under load: two workers, eight conversations at once; workers die, or
//! the database does.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjutant_core::Effect;
use adjutant_durability::{EFFECTS, Request};
use sqlx::postgres::PgConnectOptions;

use crate::bench::{Bench, Kind};
use crate::dice::Dice;
use crate::invariants;
use crate::scene::{APPROVE, CHAIN, DENY, ONE, PLAIN, Scene, TWO, Talk};
use crate::server::Server;
use crate::size;
use crate::worker::{Gone, Harm, Worker};

const CONVERSATIONS: u64 = 8;
/// Turns of each conversation, in a long run and in the sample.
const TURNS: [usize; 2] = [25, 8];
const WORKERS: usize = 2;
const SCENES: [Scene; 6] = [PLAIN, ONE, TWO, CHAIN, APPROVE, DENY];
/// Long enough for a live but slow worker, short enough to wait for after a worker was killed.
const HARM: Harm = Harm {
    kill_at: None,
    stop_at: None,
    lease_ms: Some(2000),
    disk_kib: None,
};
/// Time in which everything must be done.
const PATIENCE: Duration = Duration::from_secs(1200);
/// Pause between two attempts of a client that got no answer.
const PAUSE: Duration = Duration::from_millis(25);

/// The workers behind a load balancer.
struct Replicas {
    workers: [Mutex<Arc<Worker>>; WORKERS],
    started: AtomicUsize,
    /// Number of requests that were refused because another worker had the lease.
    conflicts: AtomicUsize,
    until: Instant,
}

impl Replicas {
    fn new(bench: &Bench) -> Self {
        let started = AtomicUsize::new(0);
        let workers = std::array::from_fn(|_| Mutex::new(Self::fresh(bench, &started)));
        Self {
            workers,
            started,
            conflicts: AtomicUsize::new(0),
            until: Instant::now() + PATIENCE,
        }
    }

    fn fresh(bench: &Bench, started: &AtomicUsize) -> Arc<Worker> {
        let number = started.fetch_add(1, Ordering::SeqCst);
        Arc::new(match bench.setup.name {
            Some(_) => bench.start_as(&format!("replica-{number}"), HARM),
            None => bench.start(HARM),
        })
    }

    fn kill_one(&self, bench: &Bench, dice: &mut Dice) {
        let worker = &self.workers[dice.roll(WORKERS)];
        worker.lock().unwrap().kill();
        *worker.lock().unwrap() = Self::fresh(bench, &self.started);
    }

    /// Submits a request to one worker after the other until one answers.
    fn ask(&self, talk: &mut Talk, request: &Request, dice: &mut Dice) {
        let mut last = String::new();
        while Instant::now() < self.until {
            let worker = Arc::clone(&self.workers[dice.roll(WORKERS)].lock().unwrap());
            match worker.ask(request) {
                Ok(Ok(response)) => return talk.record(response),
                Ok(Err(error)) => {
                    if error.contains("another process is writing") {
                        self.conflicts.fetch_add(1, Ordering::SeqCst);
                    }
                    last = error;
                }
                Err(Gone) => {}
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{:?} was never answered; last: {last}", request.input);
    }
}

fn converse(replicas: &Replicas, seed: u64) -> Talk {
    let mut dice = Dice(seed);
    let mut talk = Talk::new(&Scene { says: &[], ..PLAIN }, Effect::None);
    for _ in 0..size::cases(TURNS[0], TURNS[1]) {
        talk.then(
            &SCENES[dice.roll(SCENES.len())],
            EFFECTS[dice.roll(EFFECTS.len())],
        );
        while let Some(request) = talk.next() {
            replicas.ask(&mut talk, &request, &mut dice);
        }
    }
    talk
}

/// The processes that are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The workers, in turn.
    Worker,
    /// The database server. The workers stay alive.
    Server,
}

fn storm(kind: Kind, victim: Victim) {
    let Some(mut bench) = Bench::new(kind) else {
        return;
    };
    let mut server = bench.server.take();
    let bench = &bench;
    let replicas = &Replicas::new(bench);
    let (talks, kills): (Vec<Talk>, usize) = std::thread::scope(|scope| {
        let talking: Vec<_> = (1..=CONVERSATIONS)
            .map(|seed| scope.spawn(move || converse(replicas, seed)))
            .collect();
        let server = &mut server;
        let killing = scope.spawn(move || {
            let mut dice = Dice(99);
            for kills in 0.. {
                if !bench.world.wait_for_more(5 + dice.roll(20)) {
                    return kills;
                }
                match (victim, server.as_mut()) {
                    (Victim::Server, Some(server)) => {
                        kill_server(server);
                        server.run();
                    }
                    _ => replicas.kill_one(bench, &mut dice),
                }
            }
            unreachable!("there are always more numbers")
        });
        let talks: Vec<_> = talking
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        bench.world.end();
        let kills = killing.join().unwrap();
        (talks.into_iter().collect::<Result<_, _>>().unwrap(), kills)
    });
    assert!(kills >= size::cases(10, 3), "only {kills} kills");
    let interruptions = kills + replicas.conflicts.load(Ordering::SeqCst);
    assert_eq!(bench.unsettled(), [], "after {kills} kills");
    for talk in talks {
        let about = format!("{} after {kills} kills", talk.key.conversation);
        assert!(
            talk.pending().is_empty(),
            "{about}: {:?} still waits",
            talk.pending()
        );
        let played = bench.played(talk, Vec::new(), Default::default());
        invariants::basics(&played, interruptions, &about);
        assert!(
            played
                .in_doubt()
                .iter()
                .all(|call| played.has_effect(call, Effect::Once)),
            "{about}: what can be repeated is in doubt"
        );
    }
}

/// Sends SIGKILL to PostgreSQL's first process and to all that it started.
fn kill_server(server: &mut Server) {
    let options: PgConnectOptions = server.url("postgres").parse().unwrap();
    let first =
        std::fs::read_to_string(options.get_socket().unwrap().join("data/postmaster.pid")).unwrap();
    let first = first.lines().next().unwrap();
    let listed = Command::new("ps")
        .args(["-o", "pid=", "--ppid", first])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let others: Vec<&str> = listed.split_whitespace().collect();
    assert!(others.len() > 4, "what PostgreSQL started: {listed}");
    // The first process first, so that it starts no more. Some of the others may have ended
    // meanwhile.
    let _ = Command::new("kill")
        .arg("-KILL")
        .arg(first)
        .args(&others)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let is_there = |pid: &str| {
        let state = Command::new("ps")
            .args(["-o", "stat=", "-p", pid])
            .output()
            .unwrap()
            .stdout;
        !(state.is_empty() || state.starts_with(b"Z"))
    };
    let until = Instant::now() + PATIENCE;
    while others.iter().any(|pid| is_there(pid)) {
        assert!(Instant::now() < until, "they outlive SIGKILL");
    }
    server.crash();
}

#[test]
fn nothing_is_lost_on_sqlite() {
    storm(Kind::Sqlite, Victim::Worker);
}

#[test]
fn nothing_is_lost_on_postgres() {
    storm(Kind::Postgres, Victim::Worker);
}

#[test]
fn nothing_is_lost_where_the_server_is_killed() {
    storm(Kind::Postgres, Victim::Server);
}
