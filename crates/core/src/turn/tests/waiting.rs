//! Calls that wait for an answer: to be confirmed, or in doubt.

use super::*;

#[test]
fn a_waiting_call_parks_the_turn_and_the_answer_goes_on() {
    let inputs = [
        In::Calls(vec![("done", json!({})), ("delete_task", json!({}))]),
        In::Ends(vec![ran(json!(1), "Completed “A”."), waits("Delete “B”")]),
    ];
    check(
        &inputs,
        expect![[r#"
        call model (2 messages, last: hello)
        call tools: done{}, delete_task{}
        ask user: Completed “A”.
        Delete “B”? Please answer yes or no.
    "#]],
    );
    let answer = |end: CallEnd| {
        let mut all = inputs.to_vec();
        all.extend([
            In::Ends(vec![ran(json!(1), "Completed “A”."), end]),
            In::Says("Okay."),
        ]);
        run(Turn::new(setup()).unwrap(), &all).1.unwrap()
    };
    let approved = answer(ran(json!(2), "Deleted “B”."));
    assert_eq!(approved.decision.kind, DecisionKind::ExecutePending);
    assert_eq!(approved.decision.intent, UserIntent::ConfirmYes);
    assert_eq!(approved.outcome, OutcomeCategory::TaskCompleted);
    let denied = answer(CallEnd::Denied {
        arguments: Arguments::new(),
    });
    assert_eq!(denied.decision.kind, DecisionKind::CancelPending);
    assert_eq!(denied.tools_used.len(), 2, "a denied call is in tools_used");
}

#[test]
fn only_a_denial_is_a_refusal_and_only_an_expiry_an_expiry() {
    for (end, outcome) in [
        (
            CallEnd::Denied {
                arguments: Arguments::new(),
            },
            OutcomeCategory::ConfirmationDenied,
        ),
        (
            CallEnd::Expired {
                arguments: Arguments::new(),
            },
            OutcomeCategory::ConfirmationExpired,
        ),
    ] {
        let (_, end) = run(
            Turn::new(setup()).unwrap(),
            &[
                In::Calls(vec![("delete", json!({}))]),
                In::Ends(vec![waits("Delete “B”")]),
                In::Ends(vec![end]),
                In::Says("Okay."),
            ],
        );
        let end = end.unwrap();
        assert_eq!(
            (end.decision.kind, end.outcome),
            (DecisionKind::CancelPending, outcome)
        );
    }
}

#[test]
fn in_doubt_is_said_and_not_repeated() {
    let (_, end) = run(
        Turn::new(setup()).unwrap(),
        &[
            In::Calls(vec![("send", json!({}))]),
            In::Ends(vec![CallEnd::InDoubt {
                arguments: Arguments::new(),
            }]),
            In::Says("I could not send it."),
        ],
    );
    let end = end.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::InDoubt);
    assert!(
        end.notices[0].text.contains("may or may not"),
        "{:?}",
        end.notices
    );
    let shown = end.messages[2].tool_result().unwrap().2.to_json();
    assert_eq!(
        (&shown["success"], &shown["data"]["status"]),
        (&json!(false), &json!("unknown"))
    );
}

#[test]
fn a_doubt_waits_and_is_taken_as_done_or_left_open() {
    let CallEnd::Waiting(pending) = waits("Send a letter") else {
        panic!()
    };
    let doubt = Some(Doubt {
        attempt: 1,
        since: Timestamp::UNIX_EPOCH,
    });
    let doubtful = CallEnd::Waiting(PendingCall { doubt, ..pending });
    let arguments = Arguments::new();
    for (answer, outcome, shown) in [
        (
            CallEnd::TakenAsDone {
                arguments: arguments.clone(),
            },
            OutcomeCategory::TaskCompleted,
            "done",
        ),
        (
            CallEnd::InDoubt {
                arguments: arguments.clone(),
            },
            OutcomeCategory::InDoubt,
            "unknown",
        ),
    ] {
        let inputs = [
            In::Calls(vec![("send", json!({}))]),
            In::Ends(vec![doubtful.clone()]),
            In::Ends(vec![answer]),
            In::Says("Well."),
        ];
        let (trace, end) = run(Turn::new(setup()).unwrap(), &inputs);
        assert!(
            trace[2].contains("may or may not") && trace[2].contains("Send a letter"),
            "{}",
            trace[2]
        );
        let end = end.unwrap();
        assert_eq!(end.outcome, outcome);
        let result = end.messages[2].tool_result().unwrap().2.clone();
        assert_eq!(result.data.unwrap()["status"], shown);
    }
    // Stopped while it waits: it is not said that it did not run.
    let stopped = [
        In::Calls(vec![("send", json!({}))]),
        In::Ends(vec![doubtful]),
        In::Stop(StopReason::Cancelled),
    ];
    let end = run(Turn::new(setup()).unwrap(), &stopped).1.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::Cancelled);
    assert!(
        end.decision.text.contains("may or may not"),
        "{}",
        end.decision.text
    );
    assert_eq!(end.tools_used[0].result, ToolResult::left_open());
}
