//! The steps and messages of a turn, derived from its events alone.

use adjutant_core::{Event, LogContent, Recorded, Step, StepKind, TurnId, trace, transcript};
use jiff::Timestamp;
use serde_json::{Value, json};

const TURN: &str = "11111111-0000-7000-8000-000000000001";

fn turn() -> TurnId {
    TURN.parse().unwrap()
}

/// So many milliseconds after the input was accepted.
fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_767_225_600_000 + ms).unwrap()
}

/// Events with their times.
fn events(bodies: &[(i64, Value)]) -> Vec<Recorded> {
    let event = |body: &Value| -> Event {
        let mut body = body.clone();
        body["turn"] = json!(TURN);
        serde_json::from_value(body).unwrap()
    };
    (1..)
        .zip(bodies)
        .map(|(seq, (ms, body))| Recorded {
            seq,
            at: at(*ms),
            event: event(body).into(),
        })
        .collect()
}

fn started() -> Value {
    json!({"event": "turn_started", "input": "i1", "accepted_at": at(0), "request_id": "req-1", "message": "drop both",
        "message_chars": 9, "model": {"provider": "scripted", "name": "demo"}, "limits": {}})
}

fn replied(number: u32, ms: u64, parts: &Value) -> Value {
    let finish = if parts.to_string().contains("tool_call") {
        "tool_calls"
    } else {
        "stop"
    };
    json!({"event": "model_replied", "number": number, "ms": ms, "attempts": 2, "reply": {"Ok": {
        "model": {"provider": "scripted", "name": "demo"}, "finish": finish, "parts": parts,
        "usage": {"input_tokens": 10, "output_tokens": 2}}}})
}

/// The id the machine gives to the `number`th call of the turn.
fn id(number: u32) -> String {
    format!("call_8000000000000001_{number}")
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"type": "tool_call", "id": "provisional_0", "name": name, "arguments": arguments})
}

fn checked(number: u32, verdict: &Value) -> Value {
    json!({"event": "call_checked", "call": id(number), "verdict": verdict})
}

fn finished(number: u32, tool: &str, ms: u64) -> Value {
    json!({"event": "call_finished", "call": id(number), "tool": tool, "arguments": {"task_id": "1"},
        "result": {"success": true, "data": {"deleted": "Erika"}}, "ms": ms, "attempt": 1})
}

fn pending(number: u32) -> Value {
    json!({"call_id": id(number), "tool": "delete_task", "arguments": {"task_id": number.to_string()},
        "preview": "Delete \"Erika\"", "digest": format!("d{number}"), "requested_at": at(30), "expires_at": at(60_000)})
}

fn ended(outcome: &str) -> Value {
    json!({"event": "turn_finished", "end": {"decision": {"kind": "EXECUTE_PENDING", "intent": "CONFIRM_YES",
        "text": "Gone.", "tool_calls": [], "pending": []}, "outcome": outcome, "usage": {}, "iterations": 1,
        "error": null, "notices": []}})
}

/// Kind, name, offset and length of each step.
fn told(steps: &[Step]) -> Vec<(StepKind, &str, u64, Option<u64>)> {
    steps
        .iter()
        .map(|step| (step.kind, step.name.as_str(), step.offset_ms, step.ms))
        .collect()
}

#[test]
fn the_steps_cover_the_turn_and_what_runs_side_by_side_overlaps() {
    let looks = json!([
        call("list_tasks", &json!({})),
        call("list_notes", &json!({}))
    ]);
    let run = json!({"gate": "run", "arguments": {}});
    let steps = trace(
        &events(&[
            (5, started()),
            (105, replied(1, 98, &looks)),
            (107, checked(1, &run)),
            (107, checked(2, &run)),
            (147, finished(1, "list_tasks", 40)),
            (157, finished(2, "list_notes", 50)),
            (
                260,
                replied(2, 103, &json!([{"type": "text", "text": "Two."}])),
            ),
            (262, ended("SUCCESS:TASK_COMPLETED")),
        ]),
        turn(),
        LogContent::Full,
    );
    assert_eq!(
        told(&steps),
        [
            (StepKind::Queue, "queue", 0, Some(5)),
            (StepKind::Engine, "engine", 5, Some(2)),
            (StepKind::Model, "scripted/demo", 7, Some(98)),
            (StepKind::Engine, "engine", 105, Some(2)),
            (StepKind::Tool, "list_tasks", 107, Some(40)),
            (StepKind::Tool, "list_notes", 107, Some(50)),
            (StepKind::Model, "scripted/demo", 157, Some(103)),
            (StepKind::Engine, "engine", 260, Some(2)),
        ]
    );
    assert_eq!(
        (steps[2].attempt, steps[2].usage.unwrap().input_tokens),
        (Some(2), Some(10))
    );
    // The second call has what the first had, the two calls, and their results.
    let request = steps[6].request.as_ref().unwrap();
    assert_eq!(
        (
            &request["repeated"],
            request["messages"].as_array().unwrap().len()
        ),
        (&json!(1), 3),
        "{request}"
    );
}

/// The answer to a turn whose state took so long to read, until then.
fn replied_after(loaded: i64, took: u64, ms: u64) -> Value {
    let mut reply = replied(1, ms, &json!([{"type": "text", "text": "Two."}]));
    let loading = json!({"at": at(loaded), "ms": took, "events": 7});
    reply["past"] = json!({"from": 0, "messages": 0, "loading": loading});
    reply
}

#[test]
fn reading_the_state_is_a_step_between_the_queue_and_the_first_model_call() {
    let steps = trace(
        &events(&[
            (5, started()),
            (140, replied_after(35, 30, 100)),
            (140, ended("SUCCESS:TASK_COMPLETED")),
        ]),
        turn(),
        LogContent::Full,
    );
    assert_eq!(
        told(&steps),
        [
            (StepKind::Queue, "queue", 0, Some(5)),
            (StepKind::Load, "load", 5, Some(30)),
            (StepKind::Engine, "engine", 35, Some(5)),
            (StepKind::Model, "scripted/demo", 40, Some(100)),
        ]
    );
    assert_eq!(steps[1].response, Some(json!({"events": 7})));
    // The input waited for its conversation, which was claimed and read before its turn began.
    let steps = trace(
        &events(&[
            (50, started()),
            (150, replied_after(45, 30, 100)),
            (150, ended("SUCCESS:TASK_COMPLETED")),
        ]),
        turn(),
        LogContent::Full,
    );
    assert_eq!(
        told(&steps),
        [
            (StepKind::Queue, "queue", 0, Some(15)),
            (StepKind::Load, "load", 15, Some(30)),
            (StepKind::Engine, "engine", 45, Some(5)),
            (StepKind::Model, "scripted/demo", 50, Some(100)),
        ]
    );
}

#[test]
fn a_wait_lasts_until_the_last_of_what_waits_is_answered() {
    let drops = json!([
        call("delete_task", &json!({"task_id": "1"})),
        call("delete_task", &json!({"task_id": "2"}))
    ]);
    let confirm = |number| json!({"gate": "confirm", "pending": pending(number)});
    let mut turn_so_far = vec![
        (0, started()),
        (30, replied(1, 30, &drops)),
        (30, checked(1, &confirm(1))),
        (30, checked(2, &confirm(2))),
        (
            30,
            json!({"event": "turn_parked", "pending": [pending(1), pending(2)], "content": "Delete both?"}),
        ),
        (
            500,
            json!({"event": "call_answered", "call": id(1), "input": "i2", "verdict": "approved"}),
        ),
    ];
    let waiting = trace(&events(&turn_so_far), turn(), LogContent::Full);
    let wait = waiting.last().unwrap();
    assert_eq!(
        (wait.kind, wait.offset_ms, wait.ms),
        (StepKind::Wait, 30, None),
        "{waiting:?}"
    );
    // While it waits, the conversation shows the calls and the question.
    let said = transcript(&events(&turn_so_far));
    assert_eq!(
        said.iter()
            .map(|message| message.content.as_str())
            .collect::<Vec<_>>(),
        ["drop both", "", "Delete both?"]
    );
    assert_eq!(
        said[1]
            .tool_calls
            .iter()
            .map(|call| call.id.to_string())
            .collect::<Vec<_>>(),
        [id(1), id(2)]
    );

    turn_so_far.extend([
        (
            800,
            json!({"event": "call_answered", "call": id(2), "input": "i3", "verdict": "denied"}),
        ),
        (810, finished(1, "delete_task", 10)),
        (820, ended("SUCCESS:TASK_COMPLETED")),
    ]);
    let steps = trace(&events(&turn_so_far), turn(), LogContent::Full);
    let wait = steps
        .iter()
        .find(|step| step.kind == StepKind::Wait)
        .unwrap();
    assert_eq!((wait.offset_ms, wait.ms), (30, Some(770)));
    let answers = &wait.response.as_ref().unwrap()["answers"];
    assert_eq!(
        (&answers[0]["verdict"], &answers[1]["verdict"]),
        (&json!("approved"), &json!("denied"))
    );
    assert_eq!(
        steps.last().map(|step| step.offset_ms + step.ms.unwrap()),
        Some(820)
    );
}

#[test]
fn a_turn_that_was_stopped_shows_what_it_was_at() {
    let open = events(&[(0, started())]);
    let running = trace(&open, turn(), LogContent::Full);
    assert_eq!(
        told(&running).last(),
        Some(&(StepKind::Model, "scripted/demo", 0, None)),
        "{running:?}"
    );
    let stopped = events(&[(0, started()), (700, ended("CANCELLED:BY_USER"))]);
    let steps = trace(&stopped, turn(), LogContent::Full);
    assert_eq!(
        told(&steps).last(),
        Some(&(StepKind::Model, "scripted/demo", 0, Some(700))),
        "{steps:?}"
    );
    assert_eq!(
        steps.last().unwrap().error.as_ref().unwrap()["code"],
        "stopped"
    );
    // A budget ends a turn before the model is asked.
    let unpaid = events(&[(0, started()), (3, ended("LIMIT:BUDGET"))]);
    let steps = trace(&unpaid, turn(), LogContent::Full);
    assert!(
        steps.iter().all(|step| step.kind != StepKind::Model),
        "{steps:?}"
    );
    assert!(
        trace(
            &open,
            "22222222-0000-7000-8000-000000000001".parse().unwrap(),
            LogContent::Full
        )
        .is_empty()
    );
}

#[test]
fn words_that_were_taken_for_a_call_are_asked_for_again_in_the_trace_too() {
    let said = |words: &str| json!([{"type": "text", "text": words}]);
    let steps = trace(
        &events(&[
            (1, started()),
            (
                10,
                replied(1, 5, &said("<tool_call>{\"name\": \"add_task\"")),
            ),
            (20, replied(2, 5, &said("Added."))),
        ]),
        turn(),
        LogContent::Full,
    );
    let asked: Vec<String> = steps
        .iter()
        .filter(|step| step.kind == StepKind::Model)
        .map(|step| {
            step.request
                .as_ref()
                .map(Value::to_string)
                .unwrap_or_default()
        })
        .collect();
    assert_eq!(asked.len(), 2);
    assert!(
        !asked[0].contains("could not be read") && asked[1].contains("could not be read"),
        "{asked:?}"
    );
}

#[test]
fn a_trace_says_no_more_than_the_log_may() {
    let drops = json!([{"type": "thinking", "text": "It is Erika."}, call("delete_task", &json!({"task_id": "Erika"}))]);
    let refuse = json!({"gate": "refuse", "refusal": "invalid_arguments", "message": "no Erika"});
    let all = events(&[
        (0, started()),
        (30, replied(1, 30, &drops)),
        (30, checked(1, &refuse)),
        (
            60,
            replied(2, 30, &json!([{"type": "text", "text": "No Erika."}])),
        ),
        (60, ended("SUCCESS:RESPONSE_GIVEN")),
    ]);
    let of = |content| serde_json::to_string(&trace(&all, turn(), content)).unwrap();
    assert!(of(LogContent::Full).contains("It is Erika."));
    for content in [LogContent::Redacted, LogContent::None] {
        let told = of(content);
        assert!(
            !told.contains("Erika") && !told.contains("drop both"),
            "{content}: {told}"
        );
        assert!(
            told.contains("delete_task") && told.contains("refused"),
            "{content}: {told}"
        );
    }
}
