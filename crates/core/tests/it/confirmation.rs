//! Plain words while something waits, and digests.

use adjutant_core::*;
use serde_json::json;
use uuid::Uuid;

#[test]
fn only_bare_words_are_an_answer() {
    for yes in ["yes", "Yes.", " y ", "YES!", "ok", "go ahead", "yes, delete it", "do it"] {
        assert_eq!(read_words(yes), Reading::Yes, "{yes}");
    }
    for no in ["no", "No!", "n", "cancel", "don't", "don’t do it", "never mind", "no, thanks", "keep it"] {
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
fn a_digest_binds_turn_call_tool_and_arguments_but_not_their_order() {
    let (turn, call) = (TurnId(Uuid::from_u128(1)), CallId::new("c").unwrap());
    let object = |value: serde_json::Value| value.as_object().cloned().unwrap();
    let base = digest(turn, &call, "remove", &object(json!({"a": 1, "b": {"d": 1, "c": 2}})));
    assert_eq!(base, digest(turn, &call, "remove", &object(json!({"b": {"c": 2, "d": 1}, "a": 1}))));
    assert_eq!(base.len(), 64);
    for other in [
        digest(TurnId(Uuid::from_u128(2)), &call, "remove", &object(json!({"a": 1, "b": {"d": 1, "c": 2}}))),
        digest(turn, &CallId::new("d").unwrap(), "remove", &object(json!({"a": 1, "b": {"d": 1, "c": 2}}))),
        digest(turn, &call, "add", &object(json!({"a": 1, "b": {"d": 1, "c": 2}}))),
        digest(turn, &call, "remove", &object(json!({"a": 1, "b": {"d": 1, "c": 3}}))),
    ] {
        assert_ne!(base, other);
    }
}
