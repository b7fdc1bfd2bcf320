//! The state of a session: from the conversation's events, its inbox and the time.

use adjutant_core::port::Loaded;
use adjutant_core::{
    Event, Input, InputBody, InputId, Message, Recorded, SESSION_IDLE_MAX, Session, SessionState,
    session,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const TURN: &str = "11111111-0000-7000-8000-000000000001";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// Returns a conversation with these events, a second apart from second 1 on.
fn known(bodies: &[Value]) -> Loaded {
    let event = |body: &Value| -> Event { serde_json::from_value(body.clone()).unwrap() };
    let events = (1..).zip(bodies).map(|(seq, body)| Recorded {
        seq,
        at: at(i64::try_from(seq).unwrap()),
        event: event(body).into(),
    });
    Loaded {
        events: events.collect(),
        inbox: Vec::new(),
    }
}

fn started(words: &str) -> Value {
    json!({"event": "turn_started", "turn": TURN, "input": "i1", "accepted_at": at(0), "message": words,
        "message_chars": words.len(), "model": {"provider": "scripted", "name": "demo"}, "limits": {}})
}

fn finished(messages: &[Message]) -> Value {
    json!({"event": "turn_finished", "turn": TURN, "end": {"decision": {"kind": "RESPOND_ONLY",
        "intent": "GENERAL_CHAT", "text": "Yes.", "tool_calls": [], "pending": []},
        "outcome": "SUCCESS:RESPONSE_GIVEN", "usage": {}, "iterations": 0, "error": null, "notices": [],
        "messages": messages}})
}

fn parked() -> Value {
    json!({"event": "turn_parked", "turn": TURN, "content": "Sure?", "pending": [{"call_id": "c", "tool": "x",
        "arguments": {}, "preview": "x", "digest": "d", "requested_at": at(2), "expires_at": at(600_000)}]})
}

fn ended() -> Value {
    json!({"event": "session_ended"})
}

/// A turn of two messages, which take this many tokens each with what stands around them.
fn said() -> [Value; 2] {
    let words = "word".repeat(96);
    [
        started(&words),
        finished(&[
            Message::user(&words).unwrap(),
            Message::user(&words).unwrap(),
        ]),
    ]
}

const TOKENS: u32 = 2 * (96 + 4);

fn at_once(known: &Loaded) -> Session {
    session(known, at(100), None)
}

fn check(known: &Loaded, now: Timestamp, state: SessionState) {
    let session = session(known, now, None);
    assert_eq!(session.state, state, "{session:?}");
}

#[test]
fn what_nobody_has_said_anything_in_is_empty() {
    let empty = at_once(&Loaded::default());
    assert_eq!(
        (empty.state, empty.started_at, empty.messages),
        (SessionState::Empty, None, 0)
    );
    // A cancellation of nothing is no word either.
    let ignored = json!({"event": "input_ignored", "input": "i0", "reason": "nothing"});
    check(&known(&[ignored]), at(2), SessionState::Empty);
}

#[test]
fn a_session_lasts_from_its_first_input_to_the_last_that_happened() {
    let [started, finished] = said();
    let session = at_once(&known(&[started, finished]));
    assert_eq!(
        (session.started_at, session.last_activity),
        (Some(at(0)), Some(at(2)))
    );
    assert_eq!(
        (session.turns, session.messages, session.token_estimate),
        (1, 2, TOKENS)
    );
    assert_eq!(
        (session.state, session.summarized_at),
        (SessionState::Active, None)
    );
}

#[test]
fn it_is_closed_by_its_person_or_by_a_day_without_anything_and_open_with_the_next_word() {
    let [started, finished] = said();
    let talk = [started.clone(), finished.clone()];
    let idle = at(2).checked_add(SESSION_IDLE_MAX).unwrap();
    check(
        &known(&talk),
        idle - SignedDuration::from_secs(1),
        SessionState::Active,
    );
    check(&known(&talk), idle, SessionState::Closed);
    let left = [started.clone(), finished.clone(), ended()];
    check(&known(&left), at(4), SessionState::Closed);
    let mut back = known(&left);
    let body = InputBody::message("again");
    back.inbox
        .push(Input::new(InputId::new("i2").unwrap(), at(9), body));
    check(&back, at(10), SessionState::Active);
    assert_eq!(at_once(&back).last_activity, Some(at(9)));
    check(
        &known(&[
            started,
            finished.clone(),
            ended(),
            said()[0].clone(),
            finished,
        ]),
        at(6),
        SessionState::Active,
    );
}

#[test]
fn what_runs_is_not_over_however_long_it_takes_and_what_waits_may_be() {
    let [started, _] = said();
    let late = at(1_000_000);
    check(
        &known(std::slice::from_ref(&started)),
        late,
        SessionState::Active,
    );
    check(
        &known(&[started.clone(), parked()]),
        late,
        SessionState::Closed,
    );
    check(
        &known(&[started, parked(), ended()]),
        at(4),
        SessionState::Closed,
    );
}

#[test]
fn it_is_to_be_summarized_from_so_many_tokens_on_and_is_short_again_after_that() {
    let [started, finished] = said();
    let mut events = vec![started.clone(), finished.clone()];
    let state = |events: &[Value], from| session(&known(events), at(10), from).state;
    assert_eq!(state(&events, Some(TOKENS)), SessionState::Summarize);
    assert_eq!(state(&events, Some(TOKENS + 1)), SessionState::Active);
    assert_eq!(state(&events, None), SessionState::Active);
    events.push(json!({"event": "conversation_summarized", "number": 0, "summary": {"summarized_at": 2, "text": "Words."},
        "before": 200, "after": 2, "usage": {}, "cost": null, "ms": 1}));
    let short = session(&known(&events), at(10), Some(TOKENS));
    assert_eq!(
        (short.state, short.summarized_at, short.messages),
        (SessionState::Active, Some(2), 2)
    );
    assert!((1..TOKENS).contains(&short.token_estimate), "{short:?}");
    // What is said after it counts on top.
    events.extend([started, finished]);
    let longer = session(&known(&events), at(10), None);
    assert_eq!(
        (longer.messages, longer.token_estimate),
        (4, short.token_estimate + TOKENS)
    );
}
