//! Clocks that step while processes work: on SQLite no clock takes a lease from a process that
//! lives.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use adjutant_core::{Effect, InputId, OutcomeCategory};
use adjutant_durability::{Request, Setup};
use tempfile::TempDir;

use crate::bench::{Bench, Kind};
use crate::invariants;
use crate::scene::{ONE, PLAIN, Talk};
use crate::worker::{Harm, Worker, receive};
use crate::world::{Manner, PATIENCE, Seen};

/// Seconds by which a clock steps: an hour and a day forwards, three days backwards.
const STEPS: [i64; 3] = [3600, 86_400, -259_200];

/// The steps of one worker's clock.
pub(crate) struct ClockStep(PathBuf);

impl ClockStep {
    /// Creates the clock `name`, which is right at first.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let step = Self(folder.join(name));
        step.set(0);
        step
    }

    pub(crate) fn set(&self, seconds: i64) {
        // Replaced as a whole, so that a worker never reads half a number.
        let new = self.0.with_extension("new");
        std::fs::write(&new, seconds.to_string()).unwrap();
        std::fs::rename(new, &self.0).unwrap();
    }

    /// Returns the variables of a worker that has this clock.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![("ADJUTANT_CLOCK_STEP", self.0.clone().into_os_string())]
    }
}

/// Waits until the journal of a conversation has an input that was not taken.
fn wait_for_input(bench: &Bench, talk: &Talk, input: &InputId) {
    let until = Instant::now() + PATIENCE;
    let is_there = || {
        let inbox = bench.load(&talk.key).inbox;
        inbox.iter().any(|waiting| waiting.id == *input)
    };
    while !is_there() {
        assert!(Instant::now() < until, "the input was not accepted");
        std::thread::yield_now();
    }
}

/// The fault during the call of the first worker.
#[derive(Debug, Clone, Copy)]
struct Fault {
    /// Seconds by which the clocks of the first and the second worker step.
    steps: [i64; 2],
    /// True if the first worker is suspended meanwhile.
    is_suspended: bool,
}

/// One worker runs a call that must not be repeated. Then a clock steps; a message to that
/// conversation reaches another worker, and a third looks for work without a worker.
fn a_clock_steps_during_a_call(fault: Fault) {
    let about = format!("{fault:?}");
    let bench = Bench::new(Kind::Sqlite).unwrap();
    let folder = TempDir::new().unwrap();
    let clocks = ["first", "second"].map(|name| ClockStep::new(folder.path(), name));
    // Short enough that heartbeats come during the call.
    let harm = Harm {
        lease_ms: Some(300),
        ..Harm::default()
    };
    let start =
        |setup: &Setup, clock: &ClockStep| Worker::start_with(setup, harm, clock.variables());
    let [first, second] = clocks.each_ref().map(|clock| start(&bench.setup, clock));
    let mut talk = Talk::new(&ONE, Effect::Once);
    let conversation = talk.key.conversation;
    let request = talk.next().unwrap();
    bench.world.set(conversation, Manner::HoldTools);
    let answer = first.submit(&request).unwrap();
    bench.world.wait_for(conversation, |seen| {
        seen.iter().any(|seen| matches!(seen, Seen::Tool(_)))
    });
    if fault.is_suspended {
        first.signal("-STOP");
    }
    for (clock, seconds) in clocks.iter().zip(fault.steps) {
        clock.set(seconds);
    }
    let message = Request {
        input: InputId::new("later").unwrap(),
        ..talk.again(&PLAIN).next().unwrap()
    };
    let waiting = second.submit(&message).unwrap();
    wait_for_input(&bench, &talk, &message.input);
    let recovering = Setup {
        resumes: true,
        ..bench.setup.clone()
    };
    let third = start(&recovering, &clocks[1]);
    // It answers after its recovery.
    let elsewhere = Talk::new(&PLAIN, Effect::None).next().unwrap();
    third.ask(&elsewhere).unwrap().unwrap();

    bench.world.set(conversation, Manner::Prompt);
    if fault.is_suspended {
        first.signal("-CONT");
    }
    talk.record(receive(&answer).unwrap().unwrap());
    assert_eq!(talk.outcome(), OutcomeCategory::TaskCompleted, "{about}");
    let later = receive(&waiting).unwrap().unwrap();
    assert_eq!(later.outcome, OutcomeCategory::ResponseGiven, "{about}");
    let played = bench.played(talk, Vec::new(), Default::default());
    assert!(
        played.in_doubt().is_empty(),
        "{about}: a call of a living process is in doubt"
    );
    assert_eq!(played.called().len(), 1, "{about}");
    invariants::basics(&played, 0, &about);
}

#[test]
fn a_clock_that_steps_takes_no_lease_from_a_living_process() {
    for seconds in STEPS {
        for steps in [[0, seconds], [seconds, 0], [seconds, seconds]] {
            a_clock_steps_during_a_call(Fault {
                steps,
                is_suspended: false,
            });
        }
    }
}

/// A process that is suspended may go on at any moment, so it keeps its leases.
#[test]
fn a_suspended_process_keeps_its_leases_on_sqlite() {
    a_clock_steps_during_a_call(Fault {
        steps: [0, STEPS[1]],
        is_suspended: true,
    });
}
