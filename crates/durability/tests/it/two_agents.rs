//! Two agents on one store, each in a process that is killed: each continues its own turn, and
//! while only one of them runs, nothing of the other's changes.

use std::collections::BTreeSet;

use adjutant_core::{AgentName, CallId, Effect};
use adjutant_durability::Setup;

use crate::bench::{Bench, Kind};
use crate::invariants;
use crate::scene::{APPROVE, ONE, Scene, Talk};
use crate::size;
use crate::worker::{Gone, Harm, Worker, receive};

/// One of this many pairs of boundaries is in the sample.
const ONE_OF: u32 = 11;

/// One of the two agents.
struct Side {
    setup: Setup,
    talk: Talk,
    kills: Vec<String>,
    open: BTreeSet<CallId>,
}

impl Side {
    fn new(bench: &Bench, agent: &str, scene: &Scene, effect: Effect) -> Self {
        let agent = AgentName::new(agent).unwrap();
        let talk = Talk::new(scene, effect).with(&agent);
        let name = bench.setup.name.as_ref().map(|_| agent.as_str().to_owned());
        let setup = Setup {
            agent,
            name,
            resumes: true,
            ..bench.setup.clone()
        };
        Self {
            setup,
            talk,
            kills: Vec::new(),
            open: BTreeSet::new(),
        }
    }

    fn start(&self, kill_at: Option<u32>) -> Worker {
        Worker::start(
            &self.setup,
            Harm {
                kill_at,
                ..Harm::default()
            },
        )
    }

    /// Submits everything that is left.
    fn finish(&mut self) {
        let worker = self.start(None);
        while let Some(request) = self.talk.next() {
            self.talk.record(worker.ask(&request).unwrap().unwrap());
        }
    }
}

/// Runs both at the same time, and kills them at these boundaries.
fn work_and_die(sides: &mut [Side; 2], bench: &Bench, kill_at: [u32; 2]) {
    let workers = [
        sides[0].start(Some(kill_at[0])),
        sides[1].start(Some(kill_at[1])),
    ];
    let mut alive = [true, true];
    loop {
        let asked = [0, 1].map(|side: usize| {
            let request = if alive[side] {
                sides[side].talk.next()
            } else {
                None
            };
            request.map(|request| workers[side].submit(&request))
        });
        let answers =
            asked.map(|asked| asked.map(|asked| asked.and_then(|answer| receive(&answer))));
        if answers.iter().all(Option::is_none) {
            return;
        }
        for (side, answer) in answers.into_iter().enumerate() {
            match answer {
                Some(Ok(response)) => sides[side].talk.record(response.unwrap()),
                Some(Err(Gone)) => {
                    let words = workers[side].last_words();
                    assert!(words.starts_with("killed at boundary"), "{words}");
                    alive[side] = false;
                    let this = &mut sides[side];
                    this.kills.push(words);
                    this.open
                        .extend(bench.left_open(&workers[side], &this.talk.key));
                    if let Some(name) = &this.setup.name {
                        bench.release(&this.talk.key, name);
                    }
                }
                None => {}
            }
        }
    }
}

/// Returns the number of pairs of boundaries, all or in the sample.
fn at_every_pair(bench: &Bench, scene: &Scene, effect: Effect) -> usize {
    let golden = bench.golden(scene, effect);
    let mut pairs = 0;
    for first in 1.. {
        for second in (1..).filter(|second| size::takes(first + second, ONE_OF)) {
            let mut sides = ["worker", "other"].map(|agent| Side::new(bench, agent, scene, effect));
            work_and_die(&mut sides, bench, [first, second]);
            let killed = [0, 1].map(|side: usize| !sides[side].kills.is_empty());
            // The other one continues alone first.
            let before = bench.load(&sides[0].talk.key);
            sides[1].finish();
            assert_eq!(
                bench.load(&sides[0].talk.key),
                before,
                "{:?} moved",
                sides[0].kills
            );
            let before = bench.load(&sides[1].talk.key);
            sides[0].finish();
            assert_eq!(
                bench.load(&sides[1].talk.key),
                before,
                "{:?} moved",
                sides[1].kills
            );
            for Side {
                talk, kills, open, ..
            } in sides
            {
                let played = bench.played(talk, kills, open);
                invariants::check(&played, &golden);
            }
            match killed {
                [false, _] => return pairs,
                [true, false] => break,
                [true, true] => pairs += 1,
            }
        }
    }
    unreachable!("there are always more numbers")
}

fn two_agents(kind: Kind, scene: &Scene, effect: Effect) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    let pairs = at_every_pair(&bench, scene, effect);
    assert!(
        pairs > size::cases(80, 10),
        "only {pairs} pairs of places to die at"
    );
}

#[test]
fn each_goes_on_with_its_own_on_sqlite() {
    two_agents(Kind::Sqlite, &ONE, Effect::Once);
}

#[test]
fn each_goes_on_with_its_own_on_postgres() {
    two_agents(Kind::Postgres, &ONE, Effect::Keyed);
}

#[test]
fn each_goes_on_with_what_was_approved() {
    two_agents(Kind::Sqlite, &APPROVE, Effect::Once);
}
