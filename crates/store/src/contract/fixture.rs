//! Users, conversations and the events of a whole turn, for tests, and what they do most with a
//! journal.

use std::time::Duration;

use adjutant_core::port::Journal;
use adjutant_core::{
    AgentName, ConversationId, ConversationKey, Event, IdempotencyKey, Input, InputBody, InputId,
    Recorded, TurnId, UserId,
};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// The agent whose conversations they are.
pub(crate) fn agent() -> AgentName {
    AgentName::adjutant()
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).unwrap()
}

/// The `number`th conversation of a user.
pub(crate) fn conversation(name: &str, number: u32) -> ConversationKey {
    let conversation: ConversationId = format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap();
    ConversationKey {
        agent: agent(),
        user: user(name),
        conversation,
    }
}

/// Conversations of one user and of one id with two agents.
pub(crate) fn two_agents() -> (ConversationKey, ConversationKey) {
    let ours = conversation("anna", 1);
    let theirs = ConversationKey {
        agent: AgentName::new("other").unwrap(),
        ..ours.clone()
    };
    (ours, theirs)
}

pub(crate) fn turn(number: u32) -> TurnId {
    format!("11111111-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

/// Returns the time `seconds` after a moment with nanoseconds, so that a store that rounds is
/// noticed.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::new(1_767_225_600 + seconds, 123_456_789).unwrap()
}

pub(crate) fn message(id: &str, seconds: i64, text: &str) -> Input {
    Input::new(input_id(id), at(seconds), InputBody::message(text))
}

pub(crate) fn cancel(id: &str, seconds: i64) -> Input {
    Input::new(input_id(id), at(seconds), InputBody::Cancel)
}

pub(crate) fn input_id(id: &str) -> InputId {
    InputId::new(id).unwrap()
}

/// Decodes an event from JSON, so that fields added later need no change here.
pub(crate) fn event(body: Value) -> Event {
    serde_json::from_value(body).expect("a sample event")
}

pub(crate) fn started(number: u32, input: &str) -> Event {
    event(json!({
        "event": "turn_started", "turn": turn(number), "input": input, "message": "drop the milk", "message_chars": 13,
        "model": {"provider": "scripted", "name": "demo"}, "limits": {},
    }))
}

/// The `call`th model call of a turn: it asks for `delete_task`.
pub(crate) fn replied(number: u32, call: u32) -> Event {
    event(json!({
        "event": "model_replied", "turn": turn(number), "number": call, "ms": 250, "attempts": 1,
        "reply": {"Ok": response()},
    }))
}

fn response() -> Value {
    let model = json!({"provider": "scripted", "name": "demo"});
    json!({
        "model": model, "finish": "tool_calls",
        "parts": [
            {"type": "thinking", "text": "milk is task 1", "state": {"origin": model, "data": {"signature": "c2ln"}}},
            {"type": "tool_call", "id": "call_1", "name": "delete_task", "arguments": {"z": 0.1, "task_id": "1", "a": null}},
        ],
        "usage": {"input_tokens": 100, "output_tokens": 20, "cache_written_tokens": 30},
        "cost": 123_456_789_001_u64,
        "losses": ["temperature 0 was left out"],
    })
}

pub(crate) fn failed(number: u32, call: u32) -> Event {
    event(json!({
        "event": "model_replied", "turn": turn(number), "number": call, "ms": 50, "attempts": 2,
        "reply": {"Err": {"code": "invalid_response", "provider": "scripted", "reason": "no JSON", "raw": "<html>"}},
    }))
}

fn pending(call: &str) -> Value {
    json!({
        "call_id": call, "tool": "delete_task", "arguments": {"task_id": "1"}, "preview": "Delete \"milk\"",
        "digest": "d1", "requested_at": at(2), "expires_at": at(60),
    })
}

pub(crate) fn checked(number: u32, call: &str) -> Event {
    let verdict = json!({"gate": "confirm", "pending": pending(call)});
    event(json!({"event": "call_checked", "turn": turn(number), "call": call, "verdict": verdict}))
}

pub(crate) fn parked(number: u32, calls: &[&str]) -> Event {
    let pending: Vec<Value> = calls.iter().map(|call| pending(call)).collect();
    event(
        json!({"event": "turn_parked", "turn": turn(number), "pending": pending, "content": "Delete \"milk\"?"}),
    )
}

pub(crate) fn unclear(number: u32, input: &str) -> Event {
    event(json!({"event": "answer_unclear", "turn": turn(number), "input": input, "text": "hm"}))
}

pub(crate) fn answered(number: u32, call: &str, input: Option<&str>) -> Event {
    let verdict = input.map(|_| "approved");
    event(
        json!({"event": "call_answered", "turn": turn(number), "call": call, "input": input, "verdict": verdict}),
    )
}

pub(crate) fn call_started(number: u32, call: &str) -> Event {
    event(json!({
        "event": "call_started", "turn": turn(number), "call": call, "tool": "delete_task",
        "arguments": {"task_id": "1"}, "key": format!("c/{number}/{call}"), "effect": "keyed",
    }))
}

pub(crate) fn call_finished(number: u32, call: &str) -> Event {
    event(json!({
        "event": "call_finished", "turn": turn(number), "call": call, "tool": "delete_task",
        "arguments": {"task_id": "1"}, "result": {"success": true, "data": {"deleted": "1", "share": 0.1}},
        "summary": "Deleted \"milk\".", "ms": 7, "attempt": 2,
    }))
}

pub(crate) fn call_failed(number: u32, call: &str) -> Event {
    event(json!({
        "event": "call_finished", "turn": turn(number), "call": call, "tool": "delete_task", "arguments": {},
        "result": {"success": false, "error": "there is no task 1"}, "summary": null, "ms": 3, "attempt": 1,
    }))
}

pub(crate) fn in_doubt(number: u32, call: &str) -> Event {
    event(
        json!({"event": "call_in_doubt", "turn": turn(number), "call": call, "tool": "send", "arguments": {"to": "Anna"}}),
    )
}

/// Returns the same event in the form of a question, about the `attempt`th start of the call.
pub(crate) fn asked_about(number: u32, call: &str, attempt: u32) -> Event {
    let mut pending = pending(call);
    pending["doubt"] = json!({"attempt": attempt, "since": at(2)});
    event(json!({
        "event": "call_in_doubt", "turn": turn(number), "call": call, "tool": "send", "arguments": {"to": "Anna"},
        "doubt": pending,
    }))
}

/// Resolves a call in doubt by an input, or by a timeout.
pub(crate) fn resolved(number: u32, call: &str, attempt: u32, input: Option<&str>) -> Event {
    let (by, verdict) = if input.is_some() {
        ("person", "retry")
    } else {
        ("expiry", "leave")
    };
    event(json!({
        "event": "doubt_resolved", "turn": turn(number), "call": call, "attempt": attempt, "by": by, "input": input,
        "verdict": verdict,
    }))
}

pub(crate) fn refused(number: u32, call: &str, input: &str) -> Event {
    event(json!({
        "event": "answer_refused", "turn": turn(number), "call": call, "input": input, "reason": "no such task",
    }))
}

/// A call with a long result.
pub(crate) fn call_finished_at_length(number: u32, call: &str, chars: usize) -> Event {
    event(json!({
        "event": "call_finished", "turn": turn(number), "call": call, "tool": "read", "arguments": {},
        "result": {"success": true, "data": "ä👋🏽\"\\ ".repeat(chars / 5)}, "summary": null, "ms": 1, "attempt": 1,
    }))
}

pub(crate) fn ignored(input: &str) -> Event {
    event(json!({"event": "input_ignored", "input": input, "reason": "there is nothing to cancel"}))
}

pub(crate) fn queued(number: u32, input: &str) -> Event {
    event(json!({"event": "input_queued", "turn": turn(number), "input": input}))
}

pub(crate) fn history_set() -> Event {
    let parts = json!([{"type": "text", "text": "We spoke before. 👋🏽"}]);
    event(json!({"event": "history_set", "messages": [{"role": "user", "parts": parts}]}))
}

pub(crate) fn finished(number: u32, outcome: &str) -> Event {
    event(json!({
        "event": "turn_finished", "turn": turn(number),
        "end": {
            "decision": {
                "kind": "EXECUTE_PENDING", "intent": "DELETE_TASK", "text": "Done.", "tool_calls": [], "pending": [],
            },
            "outcome": outcome, "usage": {"input_tokens": 220, "output_tokens": 30}, "iterations": 1, "error": null,
            "cost": 5, "notices": [{"code": "not_sent", "text": "temperature 0 was left out"}],
        },
    }))
}

/// One event of every kind, in an order a turn could have.
pub(crate) fn every_kind() -> Vec<Event> {
    vec![
        history_set(),
        ignored("i0"),
        started(1, "i1"),
        failed(1, 1),
        replied(1, 2),
        checked(1, "call_1"),
        parked(1, &["call_1"]),
        unclear(1, "i2"),
        answered(1, "call_1", Some("i3")),
        call_started(1, "call_1"),
        call_finished(1, "call_1"),
        in_doubt(1, "call_2"),
        asked_about(1, "call_3", 1),
        refused(1, "call_3", "i4"),
        resolved(1, "call_3", 1, Some("i5")),
        asked_about(1, "call_3", 2),
        resolved(1, "call_3", 2, None),
        finished(1, "SUCCESS:TASK_COMPLETED"),
    ]
}

/// Returns events as a journal returns them.
pub(crate) fn recorded(first: u64, at: Timestamp, events: &[Event]) -> Vec<Recorded> {
    Recorded::sequence(first, at, events)
}

/// Submits an input.
pub(crate) async fn submit(store: &impl Journal, key: &ConversationKey, input: &Input) {
    store.submit(key, input).await.unwrap();
}

/// Appends events of one time from the sequence number `first` on, without a lease.
pub(crate) async fn append(
    store: &impl Journal,
    key: &ConversationKey,
    first: u64,
    at: Timestamp,
    events: &[Event],
) {
    let events = recorded(first, at, events);
    store.append(key, &events).await.unwrap();
}

/// Tries to take the lease of a conversation. Returns true if the worker holds it then.
pub(crate) async fn claims(
    store: &impl Journal,
    key: &ConversationKey,
    worker: &str,
    ttl: Duration,
) -> bool {
    store.claim(key, worker, ttl).await.unwrap().is_held()
}

/// Lists the conversations of all users that have work to do and are not leased.
pub(crate) async fn unsettled(store: &impl Journal) -> Vec<ConversationKey> {
    store.unsettled(&agent(), None).await.unwrap()
}
