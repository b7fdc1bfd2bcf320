//! Answers that say that something was changed, where nothing was.

use super::*;

/// A turn that checks its texts, with a tool that only reads.
fn checked() -> TurnSetup {
    TurnSetup {
        claims_change: Some(|text| text.contains("I added")),
        tools: setup().tools.with([look()]),
        ..setup()
    }
}

fn ends(setup: TurnSetup, arrivals: &[In]) -> TurnEnd {
    run(Turn::new(setup).unwrap(), arrivals).1.unwrap()
}

const CLAIM: &str = "I added “buy milk” to your list!";

#[test]
fn a_claim_without_a_change_has_a_notice() {
    let looks = [
        In::Calls(vec![("look", json!({}))]),
        In::Ends(vec![ran(json!([]), "Nothing there.")]),
        In::Says(CLAIM),
    ];
    let asks = "I added it. Which shop do you mean?";
    for arrivals in [&[In::Says(CLAIM)][..], &[In::Says(asks)], &looks] {
        let end = ends(checked(), arrivals);
        assert_eq!(codes(&end.notices), ["nothing_changed"], "{end:?}");
        assert_eq!(
            end.notices[0].text,
            "Nothing was changed in this turn, although the answer says so."
        );
        assert!(end.decision.text.starts_with("I added"), "{end:?}");
    }
    let asked = calls(&[(ASK_USER, json!({ "question": asks }))]);
    let end = ends(checked(), &[In::Reply(FinishReason::ToolCalls, asked)]);
    assert_eq!(codes(&end.notices), ["nothing_changed"]);
}

#[test]
fn a_change_or_an_answer_that_claims_none_has_no_notice() {
    let changes = [
        In::Calls(vec![("add", json!({}))]),
        In::Ends(vec![ran(json!(1), "Added.")]),
        In::Says(CLAIM),
    ];
    assert_eq!(ends(checked(), &changes).notices, []);
    assert_eq!(ends(checked(), &[In::Says("Hello.")]).notices, []);
    assert_eq!(ends(setup(), &[In::Says(CLAIM)]).notices, [], "unchecked");
}

#[test]
fn a_failure_is_read_in_the_place_of_a_claim() {
    let fails = || In::Ends(vec![broke("the disk is full")]);
    let both = In::Calls(vec![("look", json!({})), ("add", json!({}))]);
    let quotes = "the disk is full, but I added it";
    for arrivals in [
        vec![
            In::Calls(vec![("add", json!({}))]),
            fails(),
            In::Says(CLAIM),
        ],
        vec![
            In::Calls(vec![("add", json!({}))]),
            fails(),
            In::Says(quotes),
        ],
        vec![
            In::Calls(vec![("add", json!({}))]),
            fails(),
            In::Says("I added it. Which shop do you mean?"),
        ],
        vec![
            both,
            In::Ends(vec![
                ran(json!([]), "Nothing there."),
                broke("the disk is full"),
            ]),
            In::Says(CLAIM),
        ],
    ] {
        let end = ends(checked(), &arrivals);
        assert_eq!(end.decision.text, "the disk is full");
        assert_eq!(end.outcome, OutcomeCategory::ToolFailure);
        assert_eq!(end.error.unwrap().code(), "tool_failure");
        assert_eq!(end.notices, []);
    }
}

#[test]
fn a_failure_stays_behind_an_answer_about_a_change_that_succeeded() {
    let arrivals = [
        In::Calls(vec![("add", json!({})), ("add_task", json!({}))]),
        In::Ends(vec![ran(json!(1), "Added."), broke("the disk is full")]),
        In::Says(CLAIM),
    ];
    let end = ends(checked(), &arrivals);
    assert_eq!(end.decision.text, format!("{CLAIM}\nthe disk is full"));
    assert_eq!(end.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(end.notices, []);
}

/// A text that may be replaced is not shown while it comes.
#[test]
fn an_answer_is_withheld_if_calls_that_change_failed_and_others_read() {
    let mut turn = Turn::new(checked()).unwrap();
    turn.start().unwrap();
    let both = calls(&[("look", json!({})), ("add", json!({}))]);
    let reply = reply(FinishReason::ToolCalls, both);
    let Action::CallTools(asked) = turn.on_model_result(Ok(reply)).unwrap() else {
        panic!("no calls")
    };
    let results = [ran(json!([]), "Nothing there."), broke("the disk is full")];
    let ids = asked.iter().map(|call| call.id.clone());
    turn.on_call_ends(ids.zip(results).collect()).unwrap();
    assert!(turn.withholds_answer());
}
