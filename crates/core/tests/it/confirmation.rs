//! Plain words while something waits, and digests.

use adjutant_core::*;
use serde_json::json;
use uuid::Uuid;

#[test]
fn only_bare_words_are_an_answer() {
    for yes in [
        "yes",
        "Yes.",
        " y ",
        "YES!",
        "ok",
        "go ahead",
        "yes, delete it",
        "do it",
    ] {
        assert_eq!(read_words(yes), Reading::Yes, "{yes}");
    }
    for no in [
        "no",
        "No!",
        "n",
        "cancel",
        "don't",
        "don’t do it",
        "never mind",
        "no, thanks",
        "keep it",
    ] {
        assert_eq!(read_words(no), Reading::No, "{no}");
    }
    for unclear in [
        "",
        "maybe",
        "yes but not that one",
        "yes?",
        "yes no",
        "delete the other one",
        "yes, and add milk",
        "not yes",
        "yesterday",
        "no idea",
        "ok what does that mean",
        "👍",
    ] {
        assert_eq!(read_words(unclear), Reading::Unclear, "{unclear}");
    }
}

#[test]
fn only_the_three_answers_resolve_a_doubt() {
    for (words, verdict) in [
        ("It was done.", Verdict::Done),
        ("done", Verdict::Done),
        ("Not done, try again", Verdict::Retry),
        ("“not done, try again”", Verdict::Retry),
        ("It wasn't done. Try again!", Verdict::Retry),
        ("leave it", Verdict::Leave),
        ("Never mind.", Verdict::Leave),
    ] {
        assert_eq!(
            read_doubt_words(words),
            DoubtReading::Verdict(verdict),
            "{words}"
        );
    }
    for unclear in [
        "",
        "yes",
        "no",
        "do it",
        "ok",
        "cancel",
        "not done",
        "it was not done",
        "was it done?",
        "done?",
        "try again later",
        "it was done, I think",
        "leave it to me to try again",
        "not done, leave it",
    ] {
        assert_eq!(
            read_doubt_words(unclear),
            DoubtReading::Unclear,
            "{unclear}"
        );
    }
}

#[test]
fn plain_words_answer_what_they_fit_and_nothing_where_it_is_not_clear_what_is_meant() {
    let call = |id: &str, doubt: bool| -> PendingCall {
        let doubt = doubt.then(|| json!({"attempt": 1, "since": "2026-11-22T14:02:00Z"}));
        serde_json::from_value(json!({
            "call_id": id, "tool": "send", "arguments": {}, "preview": "x", "digest": id, "doubt": doubt,
            "requested_at": "2026-11-22T14:05:00Z", "expires_at": "2026-11-29T14:05:00Z",
        }))
        .unwrap()
    };
    let (asked, doubtful) = (|id| call(id, false), |id| call(id, true));
    for (waiting, text, expected) in [
        (
            vec![asked("a"), asked("b")],
            "yes",
            vec![("a", Verdict::Approved), ("b", Verdict::Approved)],
        ),
        (
            vec![asked("a"), asked("b")],
            "no",
            vec![("a", Verdict::Denied), ("b", Verdict::Denied)],
        ),
        (vec![asked("a")], "it was done", vec![]),
        (
            vec![doubtful("a")],
            "it was done",
            vec![("a", Verdict::Done)],
        ),
        (vec![doubtful("a")], "yes", vec![]),
        // Which of them?
        (vec![doubtful("a"), doubtful("b")], "it was done", vec![]),
        (vec![doubtful("a"), asked("b")], "yes", vec![]),
        (vec![doubtful("a"), asked("b")], "leave it", vec![]),
        (vec![], "yes", vec![]),
    ] {
        let read: Vec<_> = read_message(&waiting, text)
            .into_iter()
            .map(|(call, verdict)| (call.call_id.as_str(), verdict))
            .collect();
        assert_eq!(read, expected, "{text} to {}", waiting.len());
    }
    for verdict in [
        Verdict::Approved,
        Verdict::Denied,
        Verdict::Done,
        Verdict::Retry,
        Verdict::Leave,
    ] {
        assert_ne!(
            asked("a").takes(verdict),
            doubtful("a").takes(verdict),
            "{verdict:?}"
        );
    }
}

#[test]
fn the_digest_of_a_doubt_is_of_one_start_only() {
    let (turn, call) = (TurnId(Uuid::from_u128(1)), CallId::new("c").unwrap());
    let of = |attempt| doubt_digest(turn, &call, "send", &Arguments::new(), attempt);
    assert_ne!(of(1), of(2));
    assert_ne!(of(1), digest(turn, &call, "send", &Arguments::new(), ""));
}

#[test]
fn a_digest_binds_turn_call_tool_arguments_and_description_but_not_the_order() {
    let (turn, call) = (TurnId(Uuid::from_u128(1)), CallId::new("c").unwrap());
    let object = |value: serde_json::Value| value.as_object().cloned().unwrap();
    let base = digest(
        turn,
        &call,
        "remove",
        &object(json!({"a": 1, "b": {"d": 1, "c": 2}})),
        "Remove it",
    );
    assert_eq!(
        base,
        digest(
            turn,
            &call,
            "remove",
            &object(json!({"b": {"c": 2, "d": 1}, "a": 1})),
            "Remove it"
        )
    );
    assert_eq!(base.len(), 64);
    for other in [
        digest(
            TurnId(Uuid::from_u128(2)),
            &call,
            "remove",
            &object(json!({"a": 1, "b": {"d": 1, "c": 2}})),
            "Remove it",
        ),
        digest(
            turn,
            &CallId::new("d").unwrap(),
            "remove",
            &object(json!({"a": 1, "b": {"d": 1, "c": 2}})),
            "Remove it",
        ),
        digest(
            turn,
            &call,
            "add",
            &object(json!({"a": 1, "b": {"d": 1, "c": 2}})),
            "Remove it",
        ),
        digest(
            turn,
            &call,
            "remove",
            &object(json!({"a": 1, "b": {"d": 1, "c": 3}})),
            "Remove it",
        ),
        digest(
            turn,
            &call,
            "remove",
            &object(json!({"a": 1, "b": {"d": 1, "c": 2}})),
            "Remove the other",
        ),
    ] {
        assert_ne!(base, other);
    }
}
