//! A standby of PostgreSQL that takes the place of its primary. If it lacks the last commits, their
//! effects remain and nothing tells of them: what must not be repeated is asked about.

use std::time::{Duration, Instant};

use adjutant_core::{AgentName, Effect, InputId, OutcomeCategory};
use adjutant_durability::{Request, Response, Setup};
use tokio::runtime::Runtime;

use crate::scene::{APPROVE, ONE, PLAIN, Talk};
use crate::size;
use crate::standby::{PATIENCE, Pair};
use crate::worker::{Harm, Worker, receive};
use crate::world::{Seen, World};

/// A worker on a primary that has a standby.
struct Scene {
    runtime: Runtime,
    pair: Pair,
    world: World,
    setup: Setup,
    worker: Worker,
}

impl Scene {
    /// `None` without PostgreSQL on this machine.
    fn start() -> Option<Self> {
        let runtime = Runtime::new().unwrap();
        let pair = runtime.block_on(Pair::start())?;
        let world = World::new();
        let setup = Setup {
            database: pair.url(),
            agent: AgentName::new("worker").unwrap(),
            resumes: false,
            name: Some("worker".to_owned()),
            model: world.model,
            tools: world.tools,
            probe: false,
            patience: Duration::from_secs(60),
            confirmation_expiry: Duration::from_secs(3600),
        };
        let worker = Worker::start(&setup, Harm::default());
        let scene = Self {
            runtime,
            pair,
            world,
            setup,
            worker,
        };
        // After that the database has its schema.
        scene.ask(&Talk::new(&PLAIN, Effect::None).next().unwrap());
        Some(scene)
    }

    /// Sends a request again and again until it is answered.
    fn ask(&self, request: &Request) -> Response {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.worker.ask(request).unwrap();
            match answer {
                Ok(response) => return response,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    }

    /// Sends a request that the standby gets to know of only if `arrives`, lets the standby take
    /// over, and sends the request again, as a client does that got no answer.
    fn ask_across_a_fail_over(&mut self, request: &Request, arrives: bool) -> [Response; 2] {
        if !arrives {
            self.runtime.block_on(self.pair.cut_off());
        }
        let first = self.ask(request);
        if arrives {
            self.runtime.block_on(self.pair.wait_until_caught_up());
        }
        self.runtime.block_on(self.pair.fail_over());
        [first, self.ask(request)]
    }

    /// Returns the number of calls that reached the tools.
    fn calls(&self, request: &Request) -> usize {
        let seen = self.world.seen(request.conversation);
        seen.iter()
            .filter(|seen| matches!(seen, Seen::Tool(_)))
            .count()
    }
}

#[test]
fn a_call_that_a_fail_over_forgot_is_asked_about_before_it_is_repeated() {
    let Some(mut scene) = Scene::start() else {
        return;
    };
    let request = Talk::new(&ONE, Effect::Once).next().unwrap();
    let [first, again] = scene.ask_across_a_fail_over(&request, false);
    assert_eq!(first.outcome, OutcomeCategory::TaskCompleted);
    let [asked] = &again.pending[..] else {
        panic!("nothing was asked: {again:?}")
    };
    assert!(
        asked.preview.contains("may have been done already"),
        "{}",
        asked.preview
    );
    assert_eq!(scene.calls(&request), 1);
}

#[test]
fn an_approval_that_a_fail_over_forgot_is_asked_about_once() {
    let Some(mut scene) = Scene::start() else {
        return;
    };
    let mut talk = Talk::new(&APPROVE, Effect::Once);
    let question = talk.next().unwrap();
    talk.record(scene.ask(&question));
    let approval = talk.next().unwrap();
    let [first, again] = scene.ask_across_a_fail_over(&approval, false);
    assert_eq!(first.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(again.pending.len(), 1, "{again:?}");
    assert_eq!(scene.calls(&approval), 1);
    // A person who has looked decides.
    let decided = Request {
        input: InputId::new("decided").unwrap(),
        ..approval
    };
    assert!(scene.ask(&decided).pending.is_empty());
    assert_eq!(scene.calls(&decided), 2);
}

#[test]
fn nothing_is_asked_after_a_fail_over_that_forgot_nothing() {
    let Some(mut scene) = Scene::start() else {
        return;
    };
    let request = Talk::new(&ONE, Effect::Once).next().unwrap();
    let [first, again] = scene.ask_across_a_fail_over(&request, true);
    assert_eq!(first.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(again.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(scene.calls(&request), 1);
    let other = Talk::new(&ONE, Effect::Once).next().unwrap();
    assert_eq!(scene.ask(&other).outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(scene.calls(&other), 1);
}

/// The last commit that the standby receives is each one in turn: the worker is suspended at every
/// boundary of an approved call, in the sample at every fourth, and the standby is cut off there.
#[test]
fn an_approved_call_is_not_repeated_unasked_wherever_the_standby_was_cut_off() {
    for boundary in (1..).filter(|boundary| size::takes(*boundary, 4)) {
        let Some(mut scene) = Scene::start() else {
            return;
        };
        let mut talk = Talk::new(&APPROVE, Effect::Once);
        let question = talk.next().unwrap();
        talk.record(scene.ask(&question));
        let approval = talk.next().unwrap();
        scene.worker.end();
        let harm = Harm {
            stop_at: Some(boundary),
            ..Harm::default()
        };
        scene.worker = Worker::start(&scene.setup, harm);
        let answer = scene.worker.submit(&approval).unwrap();
        let Some(words) = scene.worker.stopped_before(&answer) else {
            assert!(boundary > 8, "only {boundary} places to stand still at");
            return;
        };
        scene.runtime.block_on(scene.pair.cut_off());
        scene.worker.signal("-CONT");
        // An error tells that the server has ended a transaction meanwhile.
        let _ = receive(&answer).unwrap();
        scene.runtime.block_on(scene.pair.fail_over());
        scene.ask(&approval);
        assert_eq!(scene.calls(&approval), 1, "cut off when {words}");
    }
}
