//! Lost answers, repeats, expiry, cancellation, a full disk.

use std::time::Duration;

use adjutant_core::{
    Effect, Event, GateVerdict, Input, InputBody, InputId, OutcomeCategory, Verdict,
};
use adjutant_durability::{EFFECTS, Request, Setup};

use crate::bench::{Bench, Kind, Played, open_calls};
use crate::invariants;
use crate::scene::{APPROVE, CALL_APPROVED, ONE, PLAIN, Scene, TWO, Talk};
use crate::worker::{Harm, Worker, receive};
use crate::world::{Manner, Seen};

const KINDS: [Kind; 2] = [Kind::Sqlite, Kind::Postgres];

fn finish(talk: &mut Talk, worker: &Worker) {
    while let Some(request) = talk.next() {
        talk.record(worker.ask(&request).unwrap().unwrap());
    }
}

fn played(bench: &Bench, talk: Talk) -> Played {
    bench.played(talk, Vec::new(), Default::default())
}

/// Checks the invariants of a scene in which no worker was killed.
fn check(played: &Played, about: &str) {
    invariants::basics(played, 0, about);
}

/// No answer after the call was sent: only the receiver knows whether it took effect.
fn silent(kind: Kind, manner: Manner, patience: Duration) {
    let Some(mut bench) = Bench::new(kind) else {
        return;
    };
    bench.setup.patience = patience;
    let worker = bench.start(Harm::default());
    for effect in EFFECTS {
        let about = format!("{kind:?}, {effect:?}, {manner:?}");
        let mut talk = Talk::new(&ONE, effect).in_doubt(Verdict::Leave);
        bench.world.set(talk.key.conversation, manner);
        let request = talk.next().unwrap();
        talk.record(worker.ask(&request).unwrap().unwrap());
        let asked = talk.pending().iter().any(|call| call.doubt.is_some());
        assert_eq!(
            asked,
            effect != Effect::None,
            "{about}: {:?}",
            talk.responses
        );
        finish(&mut talk, &worker);
        bench.world.set(talk.key.conversation, Manner::Prompt);
        let played = played(&bench, talk);
        assert_eq!(
            played.in_doubt().len(),
            usize::from(effect != Effect::None),
            "{about}"
        );
        // A keyed call was tried once more with the same key before the user was asked.
        invariants::basics(&played, 1, &about);
    }
}

#[test]
fn a_tool_that_does_not_answer_in_time_is_in_doubt() {
    KINDS
        .into_iter()
        .for_each(|kind| silent(kind, Manner::HoldTools, Duration::from_millis(300)));
}

#[test]
fn a_connection_that_closes_after_sending_is_in_doubt() {
    KINDS
        .into_iter()
        .for_each(|kind| silent(kind, Manner::CutTools, Duration::from_secs(60)));
}

#[test]
fn a_message_that_is_sent_twice_at_once_is_one_message() {
    for kind in KINDS {
        let Some(bench) = Bench::new(kind) else {
            return;
        };
        let workers = [
            bench.start_as("one", Harm::default()),
            bench.start_as("two", Harm::default()),
        ];
        for effect in EFFECTS {
            let mut talk = Talk::new(&TWO, effect);
            let request = talk.next().unwrap();
            let answers = workers
                .each_ref()
                .map(|worker| worker.submit(&request).unwrap());
            for answer in answers {
                let response = receive(&answer).unwrap().unwrap();
                assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
                talk.record(response);
            }
            let played = played(&bench, talk);
            assert_eq!(played.calls(effect).len(), 2);
            check(&played, &format!("{kind:?}, {effect:?}"));
        }
    }
}

/// A hundred answers to one confirmation, each an input of its own, submitted to two workers at
/// once.
#[test]
fn of_a_hundred_uses_of_one_confirmation_one_has_an_effect() {
    for kind in KINDS {
        let Some(bench) = Bench::new(kind) else {
            return;
        };
        let workers = [
            bench.start_as("one", Harm::default()),
            bench.start_as("two", Harm::default()),
        ];
        for (scene, model_calls) in [(APPROVE, 2), (CALL_APPROVED, 0)] {
            let mut talk = Talk::new(&scene, Effect::Once);
            let asks = talk.next().unwrap();
            talk.record(workers[0].ask(&asks).unwrap().unwrap());
            let approves = talk.next().unwrap();
            let answers: Vec<_> = (0..100_u64)
                .map(|number| {
                    let input = match number {
                        0 => approves.input.clone(),
                        _ => InputId::new(format!("race-{number}")).unwrap(),
                    };
                    let request = Request {
                        number: 1000 + number,
                        input,
                        ..approves.clone()
                    };
                    workers[usize::from(number % 2 == 1)]
                        .submit(&request)
                        .unwrap()
                })
                .collect();
            for answer in answers {
                let response = receive(&answer).unwrap().unwrap();
                assert_eq!(response.outcome, OutcomeCategory::TaskCompleted, "{kind:?}");
                talk.record(response);
            }
            let played = played(&bench, talk);
            let calls = played.calls(Effect::Once);
            assert_eq!(
                calls.iter().map(|(_, times, _)| *times).collect::<Vec<_>>(),
                [1],
                "{kind:?}"
            );
            assert_eq!(played.model_calls(), model_calls, "{kind:?}");
            check(&played, &format!("{kind:?}, {scene:?}"));
        }
    }
}

#[test]
fn a_confirmation_that_is_given_twice_runs_once() {
    for kind in KINDS {
        let Some(bench) = Bench::new(kind) else {
            return;
        };
        let workers = [
            bench.start_as("one", Harm::default()),
            bench.start_as("two", Harm::default()),
        ];
        for effect in EFFECTS {
            let mut talk = Talk::new(&APPROVE, effect);
            let question = talk.next().unwrap();
            talk.record(workers[0].ask(&question).unwrap().unwrap());
            let yes = talk.next().unwrap();
            // The same text from two clients: two inputs about the same call.
            let again = Request {
                input: InputId::new("again").unwrap(),
                ..yes.clone()
            };
            let answers = [
                workers[0].submit(&yes).unwrap(),
                workers[1].submit(&again).unwrap(),
            ];
            let [first, second] = answers.each_ref().map(|answer| receive(answer).unwrap());
            for response in [&first, &second].into_iter().flatten() {
                assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
            }
            talk.record(first.or(second).unwrap());
            // And once more, long after.
            let late = Request {
                input: InputId::new("late").unwrap(),
                ..yes
            };
            if let Ok(response) = workers[1].ask(&late).unwrap() {
                assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
            }
            let played = played(&bench, talk);
            let calls = played.calls(effect);
            assert_eq!((calls.len(), calls[0].1), (1, 1), "{kind:?}, {effect:?}");
            check(&played, &format!("{kind:?}, {effect:?}"));
        }
    }
}

#[test]
fn a_confirmation_that_comes_too_late_runs_nothing() {
    for kind in KINDS {
        let Some(mut bench) = Bench::new(kind) else {
            return;
        };
        bench.setup.confirmation_expiry = Duration::ZERO;
        let worker = bench.start(Harm::default());
        for effect in EFFECTS {
            let mut talk = Talk::new(&APPROVE, effect);
            let question = talk.next().unwrap();
            let response = worker.ask(&question).unwrap().unwrap();
            assert_eq!(response.outcome, OutcomeCategory::ConfirmationExpired);
            talk.record(response);
            let loaded = bench.load(&talk.key);
            let asked = loaded
                .events
                .iter()
                .find_map(|recorded| match &*recorded.event {
                    Event::CallChecked {
                        verdict: GateVerdict::Confirm { pending },
                        ..
                    } => Some(pending),
                    _ => None,
                });
            let body = InputBody::Answers {
                answers: vec![asked.unwrap().answer(Verdict::Approved)],
            };
            let yes = Request {
                number: 1000,
                input: InputId::new("late").unwrap(),
                body,
                ..question
            };
            // It answers no pending call, however often it is submitted.
            for _ in 0..2 {
                let response = worker.ask(&yes).unwrap().unwrap();
                assert_eq!(
                    response.outcome,
                    OutcomeCategory::ConfirmationExpired,
                    "{kind:?}, {effect:?}"
                );
            }
            let played = played(&bench, talk);
            assert!(played.calls(effect).is_empty(), "{kind:?}, {effect:?}");
            check(&played, &format!("{kind:?}, {effect:?}"));
        }
    }
}

/// Another client cancels the turn while its worker is suspended at each boundary in turn. From
/// there on the model is slow, so that the turn does not end first.
fn cancelled_at_every_boundary(kind: Kind) {
    let Some(bench) = &Bench::new(kind) else {
        return;
    };
    std::thread::scope(|scope| {
        for effect in EFFECTS {
            scope.spawn(move || {
                let cancelled = (1..).map_while(|boundary| cancelled_at(bench, effect, boundary));
                let cancelled = cancelled.filter(|cancelled| *cancelled).count();
                assert!(
                    cancelled > 6,
                    "{kind:?}, {effect:?}: only {cancelled} turns were stopped"
                );
            });
        }
    });
}

/// Returns true if the turn was cancelled; `None` if it has no boundary of this number.
fn cancelled_at(bench: &Bench, effect: Effect, boundary: u32) -> Option<bool> {
    let mut talk = Talk::new(&ONE, effect);
    let conversation = talk.key.conversation;
    let request = talk.next().unwrap();
    let harm = Harm {
        stop_at: Some(boundary),
        ..Harm::default()
    };
    let worker = bench.start_as(&format!("for-{conversation}"), harm);
    let answer = worker.submit(&request).unwrap();
    let words = worker.stopped_before(&answer)?;
    let found = bench.load(&talk.key);
    // A cancellation of a turn that has not started cancels nothing.
    if !(found.inbox.is_empty() && found.events.is_empty()) {
        bench.world.set(conversation, Manner::HoldModel);
    }
    let id = InputId::new("cancel").unwrap();
    bench.submit(
        &talk.key,
        &Input {
            id,
            at: jiff::Timestamp::UNIX_EPOCH,
            body: InputBody::Cancel,
            request_id: None,
            fingerprint: None,
            after: 0,
        },
    );
    worker.signal("-CONT");
    let response = receive(&answer)
        .unwrap()
        .unwrap_or_else(|error| panic!("{words}: {error}"));
    bench.world.set(conversation, Manner::Prompt);
    let cancelled = match response.outcome {
        OutcomeCategory::Cancelled => true,
        OutcomeCategory::TaskCompleted => false,
        other => panic!("{words}: {other}"),
    };
    talk.record(response);
    // With or without a cancelled turn, the conversation continues.
    talk.then(&PLAIN, effect);
    finish(&mut talk, &worker);
    check(
        &played(bench, talk),
        &format!("{effect:?}, cancelled where it {words}"),
    );
    Some(cancelled)
}

#[test]
fn a_turn_can_be_stopped_at_every_boundary_on_sqlite() {
    cancelled_at_every_boundary(Kind::Sqlite);
}

#[test]
fn a_turn_can_be_stopped_at_every_boundary_on_postgres() {
    cancelled_at_every_boundary(Kind::Postgres);
}

/// A call with an effect is awaited: its result is known, and the turn ends there.
#[test]
fn a_tool_that_works_while_the_turn_is_stopped_is_not_forgotten() {
    for kind in KINDS {
        let Some(bench) = Bench::new(kind) else {
            return;
        };
        let worker = bench.start(Harm::default());
        for effect in [Effect::Keyed, Effect::Once] {
            let about = format!("{kind:?}, {effect:?}");
            let mut talk = Talk::new(&ONE, effect);
            let conversation = talk.key.conversation;
            bench.world.set(conversation, Manner::HoldTools);
            let request = talk.next().unwrap();
            let answer = worker.submit(&request).unwrap();
            bench.world.wait_for(conversation, |seen| {
                seen.iter().any(|seen| matches!(seen, Seen::Tool(_)))
            });
            let id = InputId::new("cancel").unwrap();
            bench.submit(
                &talk.key,
                &Input {
                    id,
                    at: jiff::Timestamp::UNIX_EPOCH,
                    body: InputBody::Cancel,
                    request_id: None,
                    fingerprint: None,
                    after: 0,
                },
            );
            bench.world.set(conversation, Manner::Prompt);
            talk.record(receive(&answer).unwrap().unwrap());
            talk.then(&PLAIN, effect);
            finish(&mut talk, &worker);
            let played = played(&bench, talk);
            let recorded = played.loaded.events.iter().any(
                |recorded| matches!(&*recorded.event, Event::CallFinished { result, .. } if result.success),
            );
            assert!(recorded, "{about}");
            check(&played, &about);
        }
    }
}

/// The disk is full from the n-th KiB on, for every n until it is large enough: a failed write is
/// reported, and the conversation continues once there is space. The limit is one of the process
/// (RLIMIT_FSIZE): no test may fill a real disk. PostgreSQL's disk is its server's, which reports a
/// full disk like any other error; that is not tried here.
#[test]
fn a_full_disk_loses_nothing() {
    for effect in EFFECTS {
        full_disk(&ONE, effect);
    }
}

fn full_disk(scene: &Scene, effect: Effect) {
    let golden = Bench::new(Kind::Sqlite).unwrap().golden(scene, effect);
    // Writes go to a log beside the database, which is empty when a process starts.
    for (refused, room) in (0..).step_by(20).enumerate() {
        let bench = Bench::new(Kind::Sqlite).unwrap();
        let setup = Setup {
            name: None,
            ..bench.setup.clone()
        };
        let disk_kib = Some(room);
        let cramped = Worker::start(
            &setup,
            Harm {
                disk_kib,
                ..Harm::default()
            },
        );
        let mut talk = Talk::new(scene, effect);
        let request = talk.next().unwrap();
        let about = format!("{effect:?}, room for {room} KiB");
        let (mut kills, mut open) = (Vec::new(), Default::default());
        match cramped.ask(&request) {
            Ok(Ok(response)) => {
                assert!(refused > 5, "{about}: only {refused} sizes were too small");
                talk.record(response);
                finish(&mut talk, &cramped);
                return invariants::check(&bench.played(talk, kills, open), &golden);
            }
            Ok(Err(error)) => {
                let told = ["full", "write", "room", "space"]
                    .iter()
                    .any(|word| error.contains(word));
                assert!(told, "{about}: {error}");
            }
            // The worker could not even start.
            Err(_) => assert!(
                !cramped.last_words().is_empty(),
                "{about}: it died without a word"
            ),
        }
        kills.push(about);
        open = open_calls(&bench.load(&talk.key));
        drop(cramped);
        finish(&mut talk, &bench.start(Harm::default()));
        invariants::check(&bench.played(talk, kills, open), &golden);
    }
}
