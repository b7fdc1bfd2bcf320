//! Faults at random times, under load: two workers, eight conversations at once; workers die, or the
//! database does, clocks step, and syncs of the disk fail.
//!
//! `ADJUTANT_STORM_SECONDS` says for how long the conversations go on at least.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjutant_core::Effect;
use adjutant_durability::Setup;
use adjutant_durability::{EFFECTS, Request};
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

use crate::bench::{Bench, Kind, Played};
use crate::clock::ClockStep;
use crate::dice::Dice;
use crate::invariants;
use crate::power::record::{Defect, Recorder};
use crate::power::recorder;
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

/// Seconds that a clock is wrong by after a step.
const STEPS: [i64; 6] = [0, 3600, 86_400, -3600, -86_400, -259_200];
/// One sync of this many fails, of each process.
const SYNCS_OF: u32 = 9;

/// The faults of a storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A worker is killed and started again.
    Kill,
    /// The database server is killed and started again. The workers stay alive.
    KillServer,
    /// The clock of a worker steps.
    StepClock,
    /// The clock of a worker steps forwards.
    StepClockForwards,
}

/// A storm: its faults, in turn, and defects for its whole duration.
#[derive(Debug, Clone, Copy)]
struct Storm {
    kind: Kind,
    faults: &'static [Fault],
    /// True if syncs of the disk fail.
    syncs_fail: bool,
    /// True if clients send each request to both workers.
    is_impatient: bool,
    /// True if the names of workers do not tell that they live, so that the clock decides.
    is_anonymous: bool,
}

impl Storm {
    const fn new(kind: Kind, faults: &'static [Fault]) -> Self {
        Self {
            kind,
            faults,
            syncs_fail: false,
            is_impatient: false,
            is_anonymous: false,
        }
    }

    /// Returns a storm of clocks: each conversation has two workers that may run it.
    const fn of_clocks(faults: &'static [Fault]) -> Self {
        Self {
            is_impatient: true,
            ..Self::new(Kind::Sqlite, faults)
        }
    }
}

/// The result of a storm.
struct Survived {
    conversations: Vec<Played>,
    /// Number of faults.
    strikes: usize,
    /// Number of requests that were refused because another worker had the lease.
    conflicts: usize,
    /// Number of requests that got another error.
    errors: usize,
}

impl Survived {
    /// Returns the number of calls that were in doubt.
    fn doubts(&self) -> usize {
        let doubts = self.conversations.iter();
        doubts.map(|played| played.in_doubt().len()).sum()
    }
}

/// The environment of the workers.
struct Surroundings {
    _folder: TempDir,
    clocks: [ClockStep; WORKERS],
    recorder: Option<Recorder>,
}

impl Surroundings {
    /// `None`, with a note, if syncs are to fail and cannot be made to fail here.
    fn new(syncs_fail: bool) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let clock = |worker: usize| ClockStep::new(folder.path(), &format!("clock-{worker}"));
        let recorder = if syncs_fail { Some(recorder()?) } else { None };
        Some(Self {
            clocks: std::array::from_fn(clock),
            recorder,
            _folder: folder,
        })
    }

    /// Returns the variables of a worker.
    fn variables(&self, worker: usize, setup: &Setup) -> Vec<(&'static str, OsString)> {
        let mut variables = self.clocks[worker].variables();
        if let Some(recorder) = &self.recorder {
            let folder = Path::new(&setup.database).parent().unwrap();
            let defect = Defect::FailsSyncs { of: SYNCS_OF };
            variables.extend(recorder.variables(folder, defect));
        }
        variables
    }
}

/// The workers behind a load balancer.
struct Replicas {
    surroundings: Surroundings,
    workers: [Mutex<Arc<Worker>>; WORKERS],
    started: AtomicUsize,
    conflicts: AtomicUsize,
    errors: AtomicUsize,
    is_impatient: bool,
    until: Instant,
}

impl Replicas {
    fn new(bench: &Bench, surroundings: Surroundings, is_impatient: bool) -> Self {
        let started = AtomicUsize::new(0);
        let fresh = |worker| Self::fresh(bench, &surroundings, &started, worker);
        let workers = std::array::from_fn(|worker| Mutex::new(fresh(worker)));
        Self {
            surroundings,
            workers,
            started,
            conflicts: AtomicUsize::new(0),
            errors: AtomicUsize::new(0),
            is_impatient,
            until: Instant::now() + PATIENCE,
        }
    }

    fn fresh(
        bench: &Bench,
        surroundings: &Surroundings,
        started: &AtomicUsize,
        worker: usize,
    ) -> Arc<Worker> {
        let number = started.fetch_add(1, Ordering::SeqCst);
        let variables = surroundings.variables(worker, &bench.setup);
        let mut setup = bench.setup.clone();
        if setup.name.is_some() {
            setup.name = Some(format!("replica-{number}"));
        }
        Arc::new(Worker::start_with(&setup, HARM, variables))
    }

    fn kill_one(&self, bench: &Bench, dice: &mut Dice) {
        let worker = dice.roll(WORKERS);
        let place = &self.workers[worker];
        place.lock().unwrap().kill();
        *place.lock().unwrap() = Self::fresh(bench, &self.surroundings, &self.started, worker);
    }

    /// Submits a request to one worker after the other until one answers.
    fn ask(&self, talk: &mut Talk, request: &Request, dice: &mut Dice) {
        let mut last = String::new();
        while Instant::now() < self.until {
            let first = dice.roll(WORKERS);
            if self.is_impatient {
                let second = Arc::clone(&self.workers[(first + 1) % WORKERS].lock().unwrap());
                // Its answer is the same one, or it is killed.
                let _ = second.submit(request);
            }
            let worker = Arc::clone(&self.workers[first].lock().unwrap());
            match worker.ask(request) {
                Ok(Ok(response)) => return talk.record(response),
                Ok(Err(error)) => {
                    let count = match error.contains("another process is writing") {
                        true => &self.conflicts,
                        false => &self.errors,
                    };
                    count.fetch_add(1, Ordering::SeqCst);
                    last = error;
                }
                Err(Gone) => {}
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{:?} was never answered; last: {last}", request.input);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "`cargo xtask test` says by a variable how long"
)]
fn least_duration() -> Duration {
    let seconds = std::env::var("ADJUTANT_STORM_SECONDS").ok();
    Duration::from_secs(seconds.map_or(0, |seconds| seconds.parse().unwrap()))
}

fn converse(replicas: &Replicas, seed: u64) -> Talk {
    let mut dice = Dice(seed);
    let mut talk = Talk::new(&Scene { says: &[], ..PLAIN }, Effect::None);
    let (turns, until) = (
        size::cases(TURNS[0], TURNS[1]),
        Instant::now() + least_duration(),
    );
    for turn in 0.. {
        if turn >= turns && Instant::now() >= until {
            break;
        }
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

/// Lets a storm pass, and checks that nothing is lost and nothing done twice. `None`, with a note,
/// if this machine does not have what it takes.
fn pass(storm: Storm) -> Option<Survived> {
    let mut bench = Bench::new(storm.kind)?;
    if storm.is_anonymous {
        bench.setup.name = Some("replica".to_owned());
    }
    let surroundings = Surroundings::new(storm.syncs_fail)?;
    let mut server = bench.server.take();
    let replicas = &Replicas::new(&bench, surroundings, storm.is_impatient);
    let (talks, strikes): (Vec<Talk>, usize) = std::thread::scope(|scope| {
        let talking: Vec<_> = (1..=CONVERSATIONS)
            .map(|seed| scope.spawn(move || converse(replicas, seed)))
            .collect();
        let (server, bench) = (&mut server, &bench);
        let striking = scope.spawn(move || {
            let (mut dice, mut forwards) = (Dice(99), 0);
            for (strikes, fault) in storm.faults.iter().cycle().enumerate() {
                if !bench.world.wait_for_more(5 + dice.roll(20)) {
                    return strikes;
                }
                let clock = &replicas.surroundings.clocks[dice.roll(WORKERS)];
                match fault {
                    Fault::Kill => replicas.kill_one(bench, &mut dice),
                    Fault::KillServer => {
                        let server = server.as_mut().unwrap();
                        kill_server(server);
                        server.run();
                    }
                    Fault::StepClock => clock.set(STEPS[dice.roll(STEPS.len())]),
                    Fault::StepClockForwards => {
                        forwards += 3600;
                        clock.set(forwards);
                    }
                }
            }
            unreachable!("the faults come again and again")
        });
        let talks: Vec<_> = talking
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        bench.world.end();
        let strikes = striking.join().unwrap();
        (
            talks.into_iter().collect::<Result<_, _>>().unwrap(),
            strikes,
        )
    });
    assert!(strikes >= size::cases(10, 3), "only {strikes} faults");
    let conflicts = replicas.conflicts.load(Ordering::SeqCst);
    let errors = replicas.errors.load(Ordering::SeqCst);
    assert_eq!(bench.unsettled(), [], "after {strikes} faults");
    let check = |talk: Talk| {
        let about = format!("{} after {strikes} faults", talk.key.conversation);
        assert!(
            talk.pending().is_empty(),
            "{about}: {:?} still waits",
            talk.pending()
        );
        let played = bench.played(talk, Vec::new(), Default::default());
        invariants::basics(&played, strikes + conflicts + errors, &about);
        assert!(
            played
                .in_doubt()
                .iter()
                .all(|call| played.has_effect(call, Effect::Once)),
            "{about}: what can be repeated is in doubt"
        );
        played
    };
    let conversations = talks.into_iter().map(check).collect();
    Some(Survived {
        conversations,
        strikes,
        conflicts,
        errors,
    })
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
    pass(Storm::new(Kind::Sqlite, &[Fault::Kill]));
}

#[test]
fn nothing_is_lost_on_postgres() {
    pass(Storm::new(Kind::Postgres, &[Fault::Kill]));
}

#[test]
fn nothing_is_lost_where_the_server_is_killed() {
    pass(Storm::new(Kind::Postgres, &[Fault::KillServer]));
}

#[test]
fn nothing_is_lost_where_clocks_step_and_workers_are_killed() {
    pass(Storm::of_clocks(&[
        Fault::StepClock,
        Fault::StepClock,
        Fault::Kill,
    ]));
}

#[test]
fn clocks_that_step_put_no_call_of_a_living_worker_in_doubt() {
    let Some(survived) = pass(Storm::of_clocks(&[Fault::StepClock])) else {
        return;
    };
    assert_eq!((survived.doubts(), survived.conflicts), (0, 0));
}

/// The check above finds a store that judges leases by its clock.
#[test]
fn a_store_that_judges_leases_by_the_time_is_found_out() {
    let storm = Storm {
        is_anonymous: true,
        ..Storm::of_clocks(&[Fault::StepClockForwards])
    };
    let Some(survived) = pass(storm) else {
        return;
    };
    assert!(
        survived.doubts() + survived.conflicts > 0,
        "none in {} steps",
        survived.strikes
    );
}

#[test]
fn nothing_is_lost_where_syncs_fail_and_workers_are_killed() {
    let storm = Storm {
        syncs_fail: true,
        ..Storm::new(Kind::Sqlite, &[Fault::Kill])
    };
    let Some(survived) = pass(storm) else {
        return;
    };
    assert!(survived.errors > 0, "no client was told of a failed sync");
}
